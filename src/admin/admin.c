/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/dashboard.h"
#include "admin/exchange.h"
#include "admin/gather.h"
#include "admin/guard.h"
#include "admin/inspector.h"
#include "admin/job.h"
#include "admin/live.h"
#include "admin/metrics.h"
#include "admin/openapi.h"
#include "admin/recent.h"
#include "admin/relay.h"
#include "admin/tail.h"
#include "admin/target.h"
#include "base/account.h"
#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"
#include "object/shard.h"
#include "store/store.h"
#include "worker/server.h"

#define SOCKET_NAME "control.sock"

/* One listener. */
struct endpoint {
    struct cn_admin *admin;
    struct cn_http_server *http; /* NULL: not there */
    struct cn_guard *guard;      /* NULL: whoever can connect may everything */
    bool health;                 /* A5 */
};

struct cn_admin {
    struct cn_admin_options options;
    uv_thread_t thread;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct endpoint control, tcp, health;
    struct cn_guard guard;
    struct cn_relay_host *relay; /* NULL: there are no other nodes */
    struct cn_gather gather;
    struct cn_exchanges exchanges;
    struct cn_tail tail;
    struct cn_live live;
    struct cn_inspector inspector;
    struct cn_recent recent;
    uint16_t port, health_port;
    struct cn_list jobs; /* of struct cn_job */
    unsigned job_count;
    unsigned open_count; /* servers that are not closed yet */
    atomic_int state;    /* enum cn_admin_state */
    struct cn_mail stop_mail;
};

/* --- sockets --------------------------------------------------------------------------------- */

int cn_admin_socket(const char *dir, const char *name, bool listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* The path of a socket is short; the folder's may be long. */
    int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return -errno;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.40s", dir_fd, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (listening ? SOCK_NONBLOCK : 0), 0);
    int rc = fd < 0 ? -errno : 0;
    if (rc == 0 && listening) {
        (void)unlinkat(dir_fd, name, 0); /* of a server that was killed */
        /* The mode of the file is that of the socket it is made from. */
        if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fd, SOMAXCONN) < 0)
            rc = -errno;
    } else if (rc == 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        rc = -errno;
    }
    close(dir_fd);
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

int cn_admin_bind(const char *dir, int *out, struct cn_err *err)
{
    int fd = cn_admin_socket(dir, SOCKET_NAME, false);
    if (fd >= 0) {
        /* Neither has a store, which would be locked: nothing to control is lost. */
        cn_warn("there is no control socket: another server answers on %s/" SOCKET_NAME, dir);
        close(fd);
        *out = -1;
        return 0;
    }
    fd = cn_admin_socket(dir, SOCKET_NAME, true);
    if (fd < 0)
        return cn_err_errno(err, -fd, "cannot make %s/" SOCKET_NAME, dir);
    *out = fd;
    return 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static void answer(struct cn_http_request *http, int status, const char *type, const void *body,
                   size_t size)
{
    struct cn_http_header headers[] = {
        {"content-type", type, 12, (uint32_t)strlen(type)},
        {"cache-control", "no-store", 13, 8},
        {"x-content-type-options", "nosniff", 22, 7},
    };
    struct cn_http_head head = {status, headers, 3, NULL};
    (void)cn_http_respond(http, &head, body, size, NULL, NULL); /* or the client is gone */
    cn_http_request_release(http);
}

static void answer_health(struct cn_admin *admin, struct cn_http_request *http)
{
    (void)admin;
    answer(http, 200, "text/plain;charset=UTF-8", "ok\n", 3);
}

/* 0, or why one of them takes no writes. */
static int check_stores(struct cn_shards *shards, struct cn_err *err)
{
    int rc = 0;
    for (unsigned i = 0; i < cn_shards_count(shards) && rc == 0; i++) {
        struct cn_shard *shard = cn_shards_hold_index(shards, i);
        if (!shard)
            continue;
        rc = cn_store_status(shard->store, err);
        cn_shard_release(shard);
    }
    return rc;
}

static void answer_ready(struct cn_admin *admin, struct cn_http_request *http)
{
    struct cn_err err = {0};
    const char *why = NULL;
    char text[CN_ERR_TEXT_MAX + 2];
    if (atomic_load(&admin->state) == CN_ADMIN_STARTING)
        why = "starting";
    else if (atomic_load(&admin->state) == CN_ADMIN_DRAINING)
        why = "draining";
    else if (admin->options.control.shards && check_stores(admin->options.control.shards, &err) < 0)
        why = err.text;
    else if (admin->options.unready)
        why = admin->options.unready(admin->options.above, err.text, sizeof(err.text));
    int size = snprintf(text, sizeof(text), "%s\n", why ? why : "ready");
    answer(http, why ? 503 : 200, "text/plain;charset=UTF-8", text, (size_t)size);
}

static struct cn_metrics_sources sources_of(const struct cn_admin_options *options)
{
    const struct cn_control *control = &options->control;
    return (struct cn_metrics_sources){options->server,  cn_server_metrics, control->node,
                                       control->shards,  control->points,   options->otlp,
                                       options->metrics, options->above};
}

static void answer_metrics(struct cn_admin *admin, struct cn_http_request *http)
{
    struct cn_metrics_sources sources = sources_of(&admin->options);
    struct cn_buf out = {0};
    cn_metrics_append(&sources, &out);
    answer(http, 200, "text/plain; version=0.0.4; charset=utf-8", out.data, out.size);
    cn_buf_fini(&out);
}

static void answer_recent(struct cn_admin *admin, struct cn_http_request *http)
{
    struct cn_buf out = {0};
    cn_recent_append(&admin->recent, &out);
    answer(http, 200, "application/json", out.data, out.size);
    cn_buf_fini(&out);
}

/* The account (base/account.h). */
static void append_memory(struct cn_buf *out)
{
    unsigned level = cn_account_level();
    cn_buf_printf(out, "{\"used\":%llu,\"limit\":%llu,\"level\":\"%s\",\"kinds\":{",
                  (unsigned long long)cn_account_used(), (unsigned long long)cn_account_limit(),
                  cn_account_level_names[level]);
    for (unsigned i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        cn_buf_printf(out, "\"%s\":%llu,", cn_account_kind_names[i],
                      (unsigned long long)cn_account_kind_bytes(i));
    cn_buf_printf(out, "\"other\":%llu},\"steps\":[", (unsigned long long)cn_account_other_bytes());
    for (unsigned i = CN_ACCOUNT_CALM + 1; i < CN_ACCOUNT_LEVEL_COUNT; i++)
        cn_buf_printf(out, "%s{\"step\":\"%s\",\"percent\":%u,\"count\":%llu}",
                      i > CN_ACCOUNT_CALM + 1 ? "," : "", cn_account_level_names[i],
                      cn_account_level_shares[i], (unsigned long long)cn_account_relief_count(i));
    cn_buf_append_str(out, "]}\n");
}

static void answer_memory(struct cn_admin *admin, struct cn_http_request *http)
{
    (void)admin;
    struct cn_buf out = {0};
    append_memory(&out);
    answer(http, 200, "application/json", out.data, out.size);
    cn_buf_fini(&out);
}

static void answer_openapi(struct cn_admin *admin, struct cn_http_request *http)
{
    (void)admin;
    answer(http, 200, "application/json", cn_openapi, cn_openapi_size);
}

static void answer_tail(struct cn_admin *admin, struct cn_http_request *http)
{
    /* Its head would never be followed by an end, and the client would wait for one. */
    if (http->method == CN_HTTP_HEAD)
        return cn_job_refuse(http, 405, "method", "only GET is possible here", 0);
    cn_tail_add(&admin->tail, http);
}

/* Whoever may ask has the token, or could read it. */
static void answer_address(struct cn_admin *admin, struct cn_http_request *http)
{
    const struct cn_admin_options *options = &admin->options;
    if (!admin->tcp.http)
        return cn_job_refuse(http, 404, "not_found",
                             "the server has no admin listener (--admin HOST:PORT)", 0);
    const char *host = options->host;
    bool any_v4 = !*host || strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0;
    bool any_v6 = strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0;
    bool bare_v6 = !any_v6 && strchr(host, ':') && host[0] != '[';
    struct cn_buf url = {0}, out = {0};
    cn_buf_printf(&url, "%s://%s%s%s:%u", options->tls ? "https" : "http", bare_v6 ? "[" : "",
                  any_v4   ? "127.0.0.1"
                  : any_v6 ? "[::1]"
                           : host,
                  bare_v6 ? "]" : "", admin->port);
    cn_buf_append_str(&out, "{\"url\":");
    cn_buf_append_json(&out, (char *)url.data, url.size);
    cn_buf_append_str(&out, ",\"token\":");
    cn_buf_append_json(&out, options->token, strlen(options->token));
    cn_buf_append_str(&out, "}\n");
    answer(http, 200, "application/json", out.data, out.size);
    cn_buf_fini(&url);
    cn_buf_fini(&out);
}

static const struct page {
    const char *path[CN_TARGET_SEGMENT_MAX];
    enum cn_guard_need need;
    void (*answer)(struct cn_admin *admin, struct cn_http_request *http);
} pages[] = {
    {{"healthz"}, CN_GUARD_OPEN, answer_health},
    {{"readyz"}, CN_GUARD_OPEN, answer_ready},
    {{"metrics"}, CN_GUARD_METRICS, answer_metrics},
    {{"openapi.json"}, CN_GUARD_TOKEN, answer_openapi},
    {{"api", "tail"}, CN_GUARD_TOKEN, answer_tail},
    {{"api", "address"}, CN_GUARD_TOKEN, answer_address},
    {{"api", "recent"}, CN_GUARD_TOKEN, answer_recent},
    {{"api", "memory"}, CN_GUARD_TOKEN, answer_memory},
};

static const struct page *find_page(const struct cn_http_request *http)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(pages); i++) {
        if (cn_target_fits(http->target.data, http->target.size, pages[i].path))
            return &pages[i];
    }
    return NULL;
}

static void check_closed(struct cn_admin *admin);

static void on_job_end(struct cn_job *job, void *data)
{
    (void)job;
    struct cn_admin *admin = data;
    admin->job_count--;
}

/* A path that is the permission itself; `who` gets what it is good for. */
static bool is_transfer(struct cn_admin *admin, const struct cn_http_request *http,
                        struct cn_guard_who *who)
{
    static const char *const pattern[CN_TARGET_SEGMENT_MAX] = {"client", "v4", "transfers", "*"};
    size_t size;
    *who = (struct cn_guard_who){0};
    if (!admin->options.find_token ||
        !cn_target_fits(http->target.data, http->target.size, pattern))
        return false;
    const char *secret = cn_target_segment(http->target.data, http->target.size, 3, &size);
    admin->options.find_token(admin->options.control.more_data, secret, size, who);
    if (!(who->scopes & CN_SCOPE_TRANSFER))
        *who = (struct cn_guard_who){0}; /* a token is no address */
    return who->scopes != 0;
}

/* A3: whether there is a thread for a call of his. */
static bool has_room(const struct cn_admin *admin, const struct cn_guard_who *who)
{
    unsigned own = 0, tokens = 0;
    CN_LIST_FOREACH(&admin->jobs, node)
    {
        const struct cn_guard_who *other = &CN_CONTAINER_OF(node, struct cn_job, link)->call.who;
        tokens += other->id[0] != 0;
        own += other->id[0] && strcmp(other->id, who->id) == 0;
    }
    return admin->job_count < CN_ADMIN_JOB_MAX &&
           (!who->id[0] || (own < CN_ADMIN_TOKEN_JOB_MAX && tokens < CN_ADMIN_TOKENS_JOB_MAX));
}

/* A5 */
static void answer_probe(struct cn_admin *admin, struct cn_http_request *http)
{
    const struct page *page = find_page(http);
    if (!page || (page->answer != answer_health && page->answer != answer_ready))
        return cn_job_refuse(http, 404, "not_found", "there is /healthz and /readyz here", 0);
    if (http->method != CN_HTTP_GET && http->method != CN_HTTP_HEAD)
        return cn_job_refuse(http, 405, "method", "only GET is possible here", 0);
    page->answer(admin, http);
}

static void on_request(struct cn_http_server *server, struct cn_http_request *http)
{
    struct endpoint *endpoint = cn_http_server_data(server);
    struct cn_admin *admin = endpoint->admin;
    if (endpoint->health)
        return answer_probe(admin, http);
    const struct page *page = find_page(http);
    const struct cn_dashboard_file *file = page ? NULL : cn_dashboard_find(http);
    bool live = !page && !file && cn_live_is_path(http); /* its path is the permission */
    struct cn_guard_who who, carrier;
    bool transfer = !page && !file && is_transfer(admin, http, &carrier);
    enum cn_guard_need need = page                       ? page->need
                              : file || live || transfer ? CN_GUARD_OPEN
                                                         : CN_GUARD_TOKEN;
    const char *sentence;
    unsigned retry;
    int status = 0;
    if (endpoint->guard)
        status = cn_guard_check(endpoint->guard, http, need, uv_now(&admin->loop), &who, &sentence,
                                &retry);
    else
        cn_guard_operator(&who);
    if (status)
        return cn_job_refuse(http, status, "denied", sentence, retry);
    if (page && need == CN_GUARD_TOKEN && !(who.scopes & CN_SCOPE_ADMIN))
        return cn_job_refuse(http, 403, "denied", "the token is not good for this request", 0);
    if ((page || file) && http->method != CN_HTTP_GET && http->method != CN_HTTP_HEAD)
        return cn_job_refuse(http, 405, "method", "only GET is possible here", 0);
    if (transfer)
        who = carrier;
    if (live)
        return cn_live_upgrade(&admin->live, http);
    if (page)
        return page->answer(admin, http);
    if (file)
        return cn_dashboard_answer(file, http);
    if (!has_room(admin, &who))
        return cn_job_refuse(http, 503, "overloaded", "too many operations are under way", 1);
    admin->job_count++;
    cn_job_start(&admin->options.control, &admin->mailbox, http, &who, &admin->jobs, on_job_end,
                 admin);
}

static void on_abort(struct cn_http_server *server, struct cn_http_request *http, int status)
{
    (void)status;
    struct endpoint *endpoint = cn_http_server_data(server);
    if (!cn_tail_abort(&endpoint->admin->tail, http) && http->data)
        cn_job_cancel(http->data);
}

/* --- start and stop -------------------------------------------------------------------------- */

static void on_server_closed(void *data)
{
    struct cn_admin *admin = data;
    admin->open_count--;
    check_closed(admin);
}

static void check_closed(struct cn_admin *admin)
{
    if (admin->open_count > 0)
        return;
    cn_tail_close(&admin->tail);
    cn_live_close(&admin->live);
    cn_inspector_close(&admin->inspector);
    cn_recent_close(&admin->recent);
    cn_mailbox_close(&admin->mailbox, NULL); /* and the loop ends */
}

static void deliver_stop(struct cn_mail *mail, void *data)
{
    (void)mail;
    struct cn_admin *admin = data;
    struct endpoint *endpoints[] = {&admin->control, &admin->tcp, &admin->health};
    admin->open_count = 1; /* this function's */
    cn_live_stop(&admin->live);
    admin->open_count++;
    if (!cn_inspector_stop(&admin->inspector, on_server_closed, admin))
        admin->open_count--;
    for (size_t i = 0; i < CN_ARRAY_COUNT(endpoints); i++) {
        if (!endpoints[i]->http)
            continue;
        admin->open_count++;
        /* Every request is aborted, which cancels its job; the close waits for their end. */
        cn_http_server_close(endpoints[i]->http, on_server_closed, admin);
    }
    on_server_closed(admin);
}

static void admin_main(void *arg)
{
    struct cn_admin *admin = arg;
    cn_loop_take(&admin->loop);
    uv_run(&admin->loop, UV_RUN_DEFAULT);
    CN_ASSERT(admin->job_count == 0);
}

/* Takes over `fd`. */
static int open_endpoint(struct cn_admin *admin, struct endpoint *endpoint, int fd,
                         struct cn_guard *guard, struct cn_tls_context *tls, struct cn_err *err)
{
    endpoint->admin = admin;
    endpoint->guard = guard;
    struct cn_http_server_options options = {
        .limits = {.connection_count_max = 256, .body_size_max = CN_CONTROL_R2_MAX},
        .callbacks = {on_request, on_abort},
        .data = endpoint,
        .tls = tls,
    };
    int rc = cn_http_server_new(&admin->loop, &options, &endpoint->http, err);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    return cn_http_server_listen(endpoint->http, fd, err);
}

static int open_control(struct cn_admin *admin, struct cn_err *err)
{
    int fd = admin->options.control_fd;
    int rc = fd ? 0 : cn_admin_bind(admin->options.socket_dir, &fd, err);
    if (rc < 0 || fd < 0)
        return rc;
    return open_endpoint(admin, &admin->control, fd, NULL, NULL, err);
}

static int open_tcp(struct cn_admin *admin, struct cn_err *err)
{
    const struct cn_admin_options *options = &admin->options;
    int fd;
    CN_ASSERT(options->token && options->token[0]);
    int rc = cn_http_bind(options->host, options->port, &fd, 1, &admin->port, err);
    if (rc == -EADDRINUSE && options->port_optional) {
        cn_warn("there is no admin listener: port %u is taken (--admin HOST:PORT, or off)",
                options->port);
        return 0;
    }
    if (rc < 0)
        return cn_err_context(err, "admin listener");
    admin->guard.token = options->token;
    admin->guard.find = options->find_token;
    admin->guard.find_data = options->control.more_data;
    admin->guard.loopback = cn_guard_is_loopback(options->host);
    return open_endpoint(admin, &admin->tcp, fd, &admin->guard, options->tls, err);
}

static int open_health(struct cn_admin *admin, struct cn_err *err)
{
    const struct cn_admin_options *options = &admin->options;
    int fd, rc = cn_http_bind(options->health_host, options->health_port, &fd, 1,
                              &admin->health_port, err);
    if (rc < 0)
        return cn_err_context(err, "listener for health");
    admin->health.health = true;
    return open_endpoint(admin, &admin->health, fd, NULL, NULL, err);
}

int cn_admin_start(const struct cn_admin_options *options, struct cn_admin **out,
                   struct cn_err *err)
{
    struct cn_admin *admin = CN_NEW(struct cn_admin);
    admin->options = *options;
    admin->stop_mail.deliver = deliver_stop;
    cn_list_init(&admin->jobs);
    int rc = cn_loop_init(&admin->loop, err);
    if (rc < 0) {
        cn_free(admin);
        return rc;
    }
    rc = cn_mailbox_open(&admin->mailbox, &admin->loop, admin);
    CN_ASSERT(rc == 0);
    cn_gather_init(&admin->gather, options->control.relay);
    admin->options.control.gather = &admin->gather;
    cn_exchanges_init(&admin->exchanges);
    admin->options.control.exchanges = &admin->exchanges;
    admin->options.control.data_path = options->socket_dir;
    rc = cn_tail_init(&admin->tail, &admin->loop, &admin->gather);
    CN_ASSERT(rc == 0);
    cn_live_init(&admin->live, &admin->loop, &admin->options.control, options->taps);
    struct cn_metrics_sources sources = sources_of(options);
    cn_recent_start(&admin->recent, &admin->loop, &sources);
    if (options->socket_dir)
        rc = open_control(admin, err);
    if (rc == 0 && options->host)
        rc = open_tcp(admin, err);
    if (rc == 0 && options->health_host)
        rc = open_health(admin, err);
    if (rc == 0 && options->inspector)
        rc = cn_inspector_open(&admin->inspector, &admin->loop, &admin->options.control,
                               options->server, options->inspector_port, err);
    if (rc == 0) {
        cn_loop_give(&admin->loop);
        rc = uv_thread_create(&admin->thread, admin_main, admin);
        if (rc < 0) {
            cn_loop_take(&admin->loop);
            cn_err_set(err, rc, "cannot start a thread");
        }
    }
    if (rc == 0) {
        if (options->control.relay)
            admin->relay = cn_relay_host_start(&admin->options.control);
        *out = admin;
        return 0;
    }
    deliver_stop(&admin->stop_mail, admin);
    uv_run(&admin->loop, UV_RUN_DEFAULT);
    CN_ASSERT(uv_loop_close(&admin->loop) == 0);
    cn_tail_fini(&admin->tail);
    cn_gather_fini(&admin->gather);
    cn_exchanges_fini(&admin->exchanges);
    cn_inspector_fini(&admin->inspector);
    cn_free(admin);
    return rc;
}

void cn_admin_stop(struct cn_admin *admin)
{
    if (!admin)
        return;
    cn_relay_host_stop(admin->relay);
    bool sent = cn_mailbox_send(&admin->mailbox, &admin->stop_mail);
    CN_ASSERT(sent);
    uv_thread_join(&admin->thread);
    CN_ASSERT(uv_loop_close(&admin->loop) == 0);
    cn_tail_fini(&admin->tail);
    cn_gather_fini(&admin->gather);
    cn_exchanges_fini(&admin->exchanges);
    cn_inspector_fini(&admin->inspector);
    if (admin->control.http) {
        int dir = open(admin->options.socket_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)unlinkat(dir, SOCKET_NAME, 0); /* a left-over does no harm */
        if (dir >= 0)
            close(dir);
    }
    cn_free(admin);
}

void cn_admin_set_state(struct cn_admin *admin, enum cn_admin_state state)
{
    if (admin)
        atomic_store(&admin->state, (int)state);
}

uint16_t cn_admin_inspector_port(const struct cn_admin *admin)
{
    return admin->inspector.http ? admin->inspector.port : 0;
}

uint16_t cn_admin_health_port(const struct cn_admin *admin)
{
    return admin->health.http ? admin->health_port : 0;
}

uint16_t cn_admin_port(const struct cn_admin *admin)
{
    return admin->tcp.http ? admin->port : 0;
}
