/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/worker_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "bindings/all.h"
#include "net/server.h"
#include "object/node.h"
#include "test/lib/storetest.h"
#include "worker/guest.h"
#include "worker/instance.h"

static void on_deployed(struct cn_lane *lane, struct cn_deployment *deployment,
                        const struct cn_err *err)
{
    (void)deployment;
    struct worker_rig *rig = lane->options.data;
    if (err)
        rig->deploy_err = *err;
    uv_sem_post(&rig->answered);
}

static void on_drained(struct cn_lane *lane)
{
    uv_sem_post(&((struct worker_rig *)lane->options.data)->answered);
}

static void stop_house(struct cn_lane *lane, void *data)
{
    (void)data;
    uv_timer_stop(&lane->house);
}

static bool is_listening(struct cn_lane *lane, void *data)
{
    (void)data;
    return lane->listening;
}

static void open_node(struct worker_rig *rig)
{
    struct cn_err err;
    struct cn_store_config config = {.sync = CN_LOG_OS};
    rig->disk = storetest_disk();
    rig->store = storetest_open(rig->disk, &config);
    CHECK_INT(0, cn_shards_single(rig->store, NULL, &rig->shards, &err));
    struct cn_node_options options = {.shards = rig->shards,
                                      .lane_count = rig->lane_count,
                                      .find_class = cn_javascript.find_class,
                                      .secret = "0123456789abcde"};
    rig->node = cn_node_new(&options);
}

void worker_rig_open(struct worker_rig *rig, unsigned lane_count)
{
    static bool set_up; /* once in a process: threads of the engine run from then on */
    struct cn_err err;
    size_t heap_bytes_max = rig->heap_bytes_max;
    uint64_t cpu_limit_ms = rig->cpu_limit_ms;
    bool objects = rig->objects;
    if (!set_up)
        CHECK_INT(0, cn_javascript.setup(&err));
    set_up = true;
    *rig = (struct worker_rig){.lane_count = lane_count,
                               .heap_bytes_max = heap_bytes_max,
                               .objects = objects,
                               .cpu_limit_ms = cpu_limit_ms ? cpu_limit_ms : 10000};
    CHECK_INT(0, uv_sem_init(&rig->answered, 0));
    if (objects)
        open_node(rig);
    int fd;
    CHECK(cn_http_bind("127.0.0.1", 0, &fd, 1, &rig->port, &err) >= 0);
    for (unsigned i = 0; i < lane_count; i++) {
        struct cn_lane_options options = {
            .index = i,
            .lane_count = lane_count,
            .listen_fd = i == 0 ? fd : -1,
            .heap_bytes_max = heap_bytes_max ? heap_bytes_max : 512u << 20,
            .guest = &cn_javascript,
            .node = rig->node,
            .commits = i == 0,
            .on_deployed = on_deployed,
            .on_drained = on_drained,
            .data = rig,
        };
        CHECK_INT(0, cn_lane_start(&rig->lanes[i], &options, &err));
        worker_rig_run(rig, i, stop_house, NULL);
    }
    cn_lane_listen(&rig->lanes[0]);
    worker_rig_until(rig, 0, is_listening, NULL);
}

void worker_rig_close(struct worker_rig *rig)
{
    for (unsigned i = 0; i < rig->lane_count; i++)
        cn_lane_stop_begin(&rig->lanes[i]);
    for (unsigned i = 0; i < rig->lane_count; i++)
        cn_lane_stop_wait(&rig->lanes[i]);
    if (rig->objects) {
        cn_node_free(rig->node);
        cn_shards_free(rig->shards);
        cn_store_close(rig->store);
        cn_disk_system_free(rig->disk);
    }
    uv_sem_destroy(&rig->answered);
}

static const char *deploy(struct worker_rig *rig, struct cn_deployment *deployment)
{
    rig->deploy_err.code = 0;
    for (unsigned i = 0; i < rig->lane_count && !rig->deploy_err.code; i++) {
        cn_lane_deploy(&rig->lanes[i], cn_deployment_ref(deployment));
        uv_sem_wait(&rig->answered);
    }
    cn_deployment_unref(deployment);
    return rig->deploy_err.code ? rig->deploy_err.text : NULL;
}

static struct cn_namespace *room_of(struct worker_rig *rig, const char *worker)
{
    struct cn_namespace *ns;
    struct cn_err err;
    char *name = cn_sprintf("%s/Room", worker);
    CHECK_INT(0, cn_node_namespace(rig->node, name, &ns, &err));
    cn_free(name);
    return ns;
}

static void add_room(struct worker_rig *rig, struct cn_script *script)
{
    struct cn_namespace *ns = room_of(rig, script->name);
    cn_script_add_class(script, "Room", ns, NULL);
    cn_script_add_namespace(script, ns);
    script->options_json =
        cn_sprintf("{\"worker\":\"%s\",\"classes\":{\"Room\":%u},\"bindings\":"
                   "[{\"name\":\"ROOM\",\"type\":\"durable_object_namespace\",\"ns\":%u}],"
                   "\"compatibilityFlags\":{},\"subrequests\":1000}",
                   script->name, ns->id, ns->id);
}

const char *worker_rig_room(struct worker_rig *rig, const char *worker, unsigned lane)
{
    static char name[20];
    struct cn_namespace *ns = room_of(rig, worker);
    for (unsigned i = 0;; i++) {
        struct cn_object_key key = {.namespace_id = ns->id};
        int size = snprintf(name, sizeof(name), "room%u", i);
        cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, name, (size_t)size, key.id);
        if (cn_node_owner(rig->node, &key)->index == lane)
            return name;
    }
}

static struct cn_script *make_script(struct worker_rig *rig, const char *name, const char *exports)
{
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup(name);
    script->url = cn_sprintf("%s.js", name);
    script->source = cn_sprintf("(function(__cairn){\"use strict\";return {%s};})", exports);
    script->cpu_limit_ms = rig->cpu_limit_ms;
    script->has_source = true;
    if (rig->objects)
        add_room(rig, script);
    return script;
}

const char *worker_rig_deploy(struct worker_rig *rig, const char *exports)
{
    struct cn_deployment *deployment = cn_deployment_new();
    cn_deployment_add(deployment, make_script(rig, "worker", exports));
    return deploy(rig, deployment);
}

void worker_rig_begin(struct worker_rig *rig, const char *exports,
                      int (*commit)(void *data, struct cn_err *err), void *data)
{
    struct cn_deployment *deployment = cn_deployment_new();
    cn_deployment_add(deployment, make_script(rig, "worker", exports));
    deployment->commit = commit;
    deployment->commit_data = data;
    cn_lane_deploy(&rig->lanes[0], deployment);
}

const char *worker_rig_deploy_named(struct worker_rig *rig, const char *name, ...)
{
    struct cn_deployment *deployment = cn_deployment_new();
    va_list args;
    va_start(args, name);
    for (; name; name = va_arg(args, const char *)) {
        struct cn_script *script = make_script(rig, name, va_arg(args, const char *));
        char route[100];
        snprintf(route, sizeof(route), "%s.test/*", name);
        cn_script_add_route(script, route);
        cn_deployment_add(deployment, script);
    }
    va_end(args);
    return deploy(rig, deployment);
}

struct errand {
    struct cn_mail mail;
    void (*work)(struct cn_lane *lane, void *data);
    void *data;
    uv_sem_t done;
};

static void run_errand(struct cn_mail *mail, void *data)
{
    struct errand *errand = (struct errand *)mail;
    errand->work(data, errand->data);
    uv_sem_post(&errand->done);
}

void worker_rig_run(struct worker_rig *rig, unsigned lane,
                    void (*work)(struct cn_lane *lane, void *data), void *data)
{
    struct errand errand = {.mail = {.deliver = run_errand}, .work = work, .data = data};
    CHECK_INT(0, uv_sem_init(&errand.done, 0));
    CHECK(cn_mailbox_send(&rig->lanes[lane].mailbox, &errand.mail));
    uv_sem_wait(&errand.done);
    uv_sem_destroy(&errand.done);
}

struct question {
    bool (*holds)(struct cn_lane *lane, void *data);
    void *data;
    bool answer;
};

static void ask_question(struct cn_lane *lane, void *data)
{
    struct question *question = data;
    question->answer = question->holds(lane, question->data);
}

void worker_rig_until(struct worker_rig *rig, unsigned lane,
                      bool (*holds)(struct cn_lane *lane, void *data), void *data)
{
    struct question question = {holds, data, false};
    uint64_t end = uv_hrtime() + 30000000000u;
    while (!question.answer) {
        worker_rig_run(rig, lane, ask_question, &question);
        if (uv_hrtime() > end)
            test_fail(__FILE__, __LINE__, "a condition on lane %u does not come true", lane);
        usleep(question.answer ? 0 : 1000);
    }
}

int worker_rig_send(struct worker_rig *rig, const char *host, const char *path)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(rig->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 30};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    CHECK_INT(0, connect(fd, (struct sockaddr *)&address, sizeof(address)));
    char text[500];
    int size =
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                 path, host ? host : "worker.test");
    CHECK_INT(size, send(fd, text, (size_t)size, MSG_NOSIGNAL));
    return fd;
}

const char *worker_rig_receive(int fd)
{
    static struct cn_buf answer;
    char piece[4096];
    ssize_t got;
    cn_buf_clear(&answer);
    while ((got = recv(fd, piece, sizeof(piece), 0)) > 0)
        cn_buf_append(&answer, piece, (size_t)got);
    if (got < 0 && errno != ECONNRESET)
        test_fail(__FILE__, __LINE__, "no whole answer within thirty seconds");
    close(fd);
    return cn_buf_text(&answer);
}

const char *worker_rig_get(struct worker_rig *rig, const char *path)
{
    return worker_rig_receive(worker_rig_send(rig, NULL, path));
}

const char *worker_rig_body(struct worker_rig *rig, const char *path)
{
    const char *body = strstr(worker_rig_get(rig, path), "\r\n\r\n");
    CHECK(body);
    return body + 4;
}

int worker_rig_status(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

struct cn_instance *worker_rig_instance(struct cn_lane *lane)
{
    return lane->current ? lane->current[0] : NULL;
}
