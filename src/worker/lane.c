/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/lane.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "js/profile.h"
#include "module/module.h"
#include "net/client.h"
#include "net/egress.h"
#include "net/socket.h"
#include "object/alarm.h"
#include "worker/compiled.h"
#include "worker/compiled_trace.h"
#include "worker/event_life.h"
#include "worker/hold.h"
#include "worker/hung.h"
#include "worker/instance.h"
#include "worker/lent.h"
#include "worker/profile.h"
#include "worker/relief.h"
#include "worker/runtime.h"
#include "worker/trace.h"
#include "worker/websocket.h"

#define HOUSE_INTERVAL_MS 1000
#define HEAP_SLACK (32u << 20)
#define QUIET_TURNS_MAX 50 /* between two ticks */
#define RETRY_NS_MAX (3600 * (uint64_t)1000000000)
#define RETRY_DOUBLINGS 12 /* of a second: then it is the longest */
#define RETRY_SHARE 100    /* of the time that a failed start took */

struct lane_mail {
    struct cn_mail mail;
    struct cn_deployment *deployment;
};

static void post(struct cn_lane *lane, void (*deliver)(struct cn_mail *mail, void *data),
                 struct cn_deployment *deployment)
{
    struct lane_mail *mail = CN_NEW(struct lane_mail);
    mail->mail.deliver = deliver;
    mail->deployment = deployment;
    if (!cn_mailbox_send(&lane->mailbox, &mail->mail)) {
        if (deployment)
            cn_deployment_unref(deployment);
        cn_free(mail);
    }
}

/* --- deployments ----------------------------------------------------------------------------- */

/* I3 of instance.h: frees those that nothing needs any more. */
static void free_unused_instances(struct cn_lane *lane)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        if (cn_instance_is_over(instance) && !cn_compiled_lingers(instance))
            cn_instance_free(instance);
    }
}

/* M3 of module/module.h */
static bool is_deployed(const struct cn_modules *modules, void *data)
{
    const struct cn_deployment *deployment = data;
    for (size_t i = 0; i < deployment->script_count; i++) {
        if (deployment->scripts[i]->modules == modules)
            return true;
    }
    return false;
}

/* N4: it did not start; it is tried again, the later the longer that held the lane. */
static void note_failure(struct cn_lane_place *place, struct cn_instance *instance,
                         const char *text)
{
    uint64_t took_ns = uv_hrtime() - instance->began_ns, wait_ns = RETRY_NS_MAX;
    if (place->attempts < RETRY_DOUBLINGS)
        wait_ns = (uint64_t)1000000000 << place->attempts++;
    if (wait_ns < took_ns * RETRY_SHARE)
        wait_ns = took_ns * RETRY_SHARE;
    place->retry_ns = uv_hrtime() + wait_ns;
    if (place->failed)
        return;
    place->failed = true;
    if (!cn_script_failed(instance->script, text))
        return; /* another lane has said it */
    const struct cn_script *script = instance->script;
    struct cn_diag_field fields[] = {{"worker", script->name, 0, false},
                                     {"version", script->version, 0, false}};
    char *line = cn_sprintf("%s; the other workers serve%s%s", text, script->way_back ? "; " : "",
                            script->way_back ? script->way_back : "");
    cn_diag_fields(CN_DIAG_ERROR, fields, script->version ? 2 : 1, line, strlen(line));
    cn_free(line);
}

/* It runs, after all. */
static void note_success(struct cn_lane_place *place, struct cn_script *script)
{
    if (place->failed)
        cn_script_recovered(script);
    *place = (struct cn_lane_place){0};
}

/* Nothing of it is kept: it was refused, or only tried. */
static void drop_starting(struct cn_lane *lane, struct cn_deployment *deployment,
                          struct cn_instance **instances, const struct cn_err *err)
{
    for (size_t i = 0; i < deployment->script_count; i++) {
        if (instances[i])
            cn_instance_retire(instances[i], &cn_ending_reload);
    }
    cn_free(instances);
    lane->options.on_deployed(lane, deployment, err);
    cn_deployment_unref(deployment);
}

/* Every script has started, or one has not, and what had to be durable is. */
static void settle_starting(struct cn_lane *lane)
{
    struct cn_deployment *deployment = lane->starting;
    struct cn_instance **instances = lane->starting_instances;
    struct cn_lane_place *places = lane->starting_places;
    bool failed = lane->starting_err.code != 0;
    lane->starting = NULL;
    lane->starting_instances = NULL;
    lane->starting_places = NULL;
    if (failed || lane->options.trial) {
        cn_free(places);
        drop_starting(lane, deployment, instances, failed ? &lane->starting_err : NULL);
        return;
    }
    struct cn_deployment *before = lane->deployment;
    struct cn_instance **old = lane->current;
    lane->deployment = deployment;
    lane->current = instances;
    cn_free(lane->places);
    lane->places = places;
    for (size_t i = 0; i < deployment->script_count; i++) {
        if (instances[i])
            cn_instance_install(instances[i]);
    }
    for (size_t i = 0; before && i < before->script_count; i++) {
        if (old[i])
            cn_instance_retire(old[i], &cn_ending_reload);
    }
    cn_free(old);
    cn_compiled_retire(&lane->object_lane, is_deployed, deployment, cn_ending_reload.object_faults,
                       cn_ending_reload.object_text);
    if (before)
        cn_deployment_unref(before);
    if (lane->listening && lane->options.background)
        lane->options.background->update(&lane->background);
    lane->options.on_deployed(lane, deployment, NULL);
}

/* N5 */
struct commit {
    uv_work_t work;
    struct cn_lane *lane;
    struct cn_deployment *deployment; /* a reference */
    struct cn_err err;
};

static void on_commit(uv_work_t *work)
{
    struct commit *commit = work->data;
    struct cn_deployment *deployment = commit->deployment;
    if (deployment->commit(deployment->commit_data, &commit->err) == 0)
        commit->err.code = 0;
}

static void on_committed(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct commit *commit = work->data;
    struct cn_lane *lane = commit->lane;
    if (lane->starting && !lane->stopping) { /* N6 */
        lane->starting_err = commit->err;
        settle_starting(lane);
        free_unused_instances(lane);
    }
    cn_deployment_unref(commit->deployment);
    cn_free(commit);
}

static void finish_starting(struct cn_lane *lane)
{
    if (lane->starting_err.code || !lane->starting->commit || !lane->options.commits) {
        settle_starting(lane);
        return;
    }
    struct commit *commit = CN_NEW(struct commit);
    commit->lane = lane;
    commit->deployment = cn_deployment_ref(lane->starting);
    commit->work.data = commit;
    int rc = uv_queue_work(&lane->loop, &commit->work, on_commit, on_committed);
    CN_ASSERT(rc == 0); /* it fails only without a function */
}

static void on_instance_started(struct cn_instance *instance, const struct cn_err *err)
{
    struct cn_lane *lane = instance->lane;
    bool tolerated = instance->script->tolerated;
    if (err && !tolerated)
        lane->starting_err = *err;
    for (size_t i = 0; err && i < lane->starting->script_count; i++) {
        if (lane->starting_instances[i] == instance)
            lane->starting_instances[i] = NULL; /* it may go before the others have started */
        if (tolerated && lane->starting->scripts[i] == instance->script)
            note_failure(&lane->starting_places[i], instance, err->text); /* F1 */
    }
    if (--lane->starting_left == 0)
        finish_starting(lane);
}

static void deliver_deploy(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    struct cn_deployment *deployment = ((struct lane_mail *)mail)->deployment;
    cn_free(mail);
    if (lane->starting || lane->stopping) { /* N6 */
        struct cn_err err;
        if (lane->stopping)
            cn_err_set(&err, CN_ECLOSED, "the server is stopping");
        else
            cn_err_set(&err, CN_EOVERLOADED, "another deployment is still starting");
        lane->options.on_deployed(lane, deployment, &err);
        cn_deployment_unref(deployment);
        return;
    }
    size_t count = deployment->script_count;
    lane->starting = deployment;
    lane->starting_err.code = 0;
    lane->starting_instances = cn_alloc_zero((count + 1) * sizeof(*lane->starting_instances));
    lane->starting_places = cn_alloc_zero((count + 1) * sizeof(*lane->starting_places));
    lane->starting_left = count + 1; /* one for this function */
    for (size_t i = 0; i < count; i++) {
        struct cn_script *script = deployment->scripts[i];
        if (script->broken || (lane->options.trial && !cn_script_is_new(script))) {
            lane->starting_left--;
            continue;
        }
        struct cn_instance *instance =
            cn_instance_new(lane, script, on_instance_started, &lane->starting_err);
        lane->starting_instances[i] =
            instance && instance->state != CN_INSTANCE_FAILED ? instance : NULL;
        if (!instance)
            lane->starting_left--;
    }
    if (--lane->starting_left == 0)
        finish_starting(lane);
    free_unused_instances(lane);
}

void cn_lane_deploy(struct cn_lane *lane, struct cn_deployment *deployment)
{
    post(lane, deliver_deploy, deployment);
}

/* --- memory ---------------------------------------------------------------------------------- */

/* The place of the script in the current deployment, or -1. */
static int place_of(const struct cn_lane *lane, const struct cn_script *script)
{
    for (size_t i = 0; lane->deployment && i < lane->deployment->script_count; i++) {
        if (lane->deployment->scripts[i] == script)
            return (int)i;
    }
    return -1;
}

/* N2: nothing reaches it as the script's instance from here on, and it may be freed. */
static void retire_current(struct cn_lane *lane, size_t place, const struct cn_ending *ending)
{
    struct cn_instance *instance = lane->current[place];
    lane->current[place] = NULL;
    if (instance)
        cn_instance_retire(instance, ending);
}

/* An instance that takes the place of one that was ended has started, or not; by then there may be
 * another deployment. */
static void on_restarted(struct cn_instance *instance, const struct cn_err *err)
{
    struct cn_lane *lane = instance->lane;
    int place = place_of(lane, instance->script);
    if (err && place >= 0) {
        note_failure(&lane->places[place], instance, err->text);
    } else if (err) {
        cn_error("%s", err->text);
    } else if (place >= 0 && !lane->current[place]) {
        note_success(&lane->places[place], instance->script);
        lane->current[place] = instance;
        cn_instance_install(instance);
    } else {
        cn_instance_retire(instance, &cn_ending_reload);
    }
}

static bool is_starting(const struct cn_lane *lane, const struct cn_script *script)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        if (instance->script == script && instance->state == CN_INSTANCE_STARTING)
            return true;
    }
    return false;
}

/* Starts what has ended and has not been replaced, and what did not start and is due (N4). */
static void restart_ended(struct cn_lane *lane)
{
    struct cn_err err;
    for (size_t i = 0; lane->deployment && i < lane->deployment->script_count; i++) {
        struct cn_script *script = lane->deployment->scripts[i];
        if (lane->current[i] || script->broken || is_starting(lane, script) || lane->stopping)
            continue;
        if (lane->places[i].failed && uv_hrtime() < lane->places[i].retry_ns)
            continue;
        if (!cn_instance_new(lane, script, on_restarted, &err))
            cn_error("%s", err.text);
    }
}

void cn_lane_replace(struct cn_lane *lane, struct cn_instance *instance)
{
    cn_loop_assert_owner(&lane->loop);
    size_t at = 0, count = lane->deployment ? lane->deployment->script_count : 0;
    while (at < count && lane->current[at] != instance)
        at++;
    if (at < count)
        retire_current(lane, at, &cn_ending_memory);
    else
        cn_instance_retire(instance, &cn_ending_memory); /* unless that has been done */
    for (size_t i = 0; lane->starting && i < lane->starting->script_count; i++) {
        if (lane->starting_instances[i] == instance)
            lane->starting_instances[i] = NULL; /* another is started once it serves */
    }
    /* Objects that were reset go with a sweep; then nothing keeps the instance. */
    if (lane->options.node) {
        cn_object_lane_step(&lane->object_lane);
        cn_object_lane_sweep(&lane->object_lane);
    }
    free_unused_instances(lane);
    cn_js_vm_collect(lane->vm);
    restart_ended(lane);
}

/* The turns of its instances, by worker. */
static void publish_ticks(struct cn_lane *lane)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        cn_instance_publish(instance);
    }
}

static bool does_not_serve(const struct cn_lane *lane, size_t place)
{
    return lane->deployment->scripts[place]->broken || lane->places[place].failed;
}

/* Versions that do not serve, by worker. */
static void publish_failures(struct cn_lane *lane)
{
    const struct cn_deployment *deployment = lane->deployment;
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        if (deployment->scripts[i]->beside)
            continue;
        uint64_t failed = 0;
        for (size_t at = i;; at = deployment->scripts[at]->next) {
            failed += does_not_serve(lane, at);
            if (!deployment->scripts[at]->next)
                break;
        }
        cn_counter_set(
            &cn_lane_metrics_worker(&lane->metrics, deployment->scripts[i]->name)->failed, failed);
    }
}

/* What others may look at, as of now. */
static void publish(struct cn_lane *lane)
{
    struct cn_lane_metrics *metrics = &lane->metrics;
    struct cn_http_stats http;
    cn_http_server_stats(lane->http, &http);
    cn_counter_set(&metrics->turns, lane->vm->turn_count);
    cn_counter_set(&metrics->accepted, http.accepted_count);
    cn_counter_set(&metrics->rejected, http.rejected_count);
    cn_counter_set(&metrics->bad_requests, http.bad_request_count);
    cn_counter_set(&metrics->aborted, http.aborted_count);
    cn_counter_set(&metrics->connections, http.connection_count);
    cn_counter_set(&metrics->busy, http.busy_count);
    cn_counter_set(&metrics->events, lane->events.live);
    cn_counter_set(&metrics->objects, lane->object_lane.live_count);
    cn_counter_set(&metrics->websockets, cn_ws_lane_count(lane->ws));
    publish_ticks(lane);
    publish_failures(lane);
    if (!lane->options.node)
        return;
    size_t running, due;
    cn_alarm_counts(&lane->object_lane, &running, &due);
    cn_counter_set(&metrics->alarms_running, running);
    cn_counter_set(&metrics->alarms_due, due);
    cn_counter_set(&metrics->sockets, lane->object_lane.socket_count);
    cn_counter_set(&metrics->hibernated, lane->object_lane.hibernated_count);
}

/* Collects once the lane has become quiet: memory goes back, and no request pays for it. One that
 * mostly waits is quiet enough, if collecting takes a hundredth of its time at most. */
static void collect_when_quiet(struct cn_lane *lane)
{
    uint64_t turns = lane->vm->turn_count, done = turns - lane->house_turns;
    lane->house_turns = turns;
    if (lane->collect_pause)
        lane->collect_pause--;
    if (turns == lane->collect_turns || done > (lane->collect_pause ? 0 : QUIET_TURNS_MAX))
        return;
    uint64_t began = uv_hrtime();
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        struct cn_err err;
        (void)cn_instance_enter(instance, &instance->quiet, 0, NULL, &err); /* it only forgets */
    }
    cn_js_vm_collect(lane->vm);
    cn_free_kept();
    malloc_trim(0); /* what evicted objects held, too */
    lane->collect_pause = 1 + (uv_hrtime() - began) / (HOUSE_INTERVAL_MS * 10000u);
    lane->house_turns = lane->collect_turns = lane->vm->turn_count;
}

/* --- profiles -------------------------------------------------------------------------------- */

struct profile_mail {
    struct cn_mail mail;
    struct cn_profile *profile; /* a reference, or NULL */
};

static void give_samples(struct cn_lane *lane)
{
    struct cn_buf json = {0};
    if (!lane->profile)
        return;
    cn_js_profile_take(lane->vm, &json);
    cn_profile_give(lane->profile, lane->options.index, &json);
}

static void stop_profile(struct cn_lane *lane)
{
    if (!lane->profile)
        return;
    give_samples(lane);
    cn_js_profile_stop(lane->vm);
    cn_profile_done(lane->profile);
    cn_profile_unref(lane->profile);
    lane->profile = NULL;
}

static void deliver_profile(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    struct cn_profile *profile = ((struct profile_mail *)mail)->profile;
    cn_free(mail);
    stop_profile(lane);
    if (!profile)
        return;
    bool starts = !lane->stopping && cn_js_profile_start(lane->vm);
    if (!starts) {
        cn_profile_refuse(profile);
        cn_profile_done(profile);
        cn_profile_unref(profile);
        return;
    }
    lane->profile = profile;
}

void cn_lane_profile(struct cn_lane *lane, struct cn_profile *profile)
{
    struct profile_mail *mail = CN_NEW(struct profile_mail);
    mail->mail.deliver = deliver_profile;
    mail->profile = profile ? cn_profile_ref(profile) : NULL;
    if (profile)
        cn_profile_join(profile);
    if (cn_mailbox_send(&lane->mailbox, &mail->mail))
        return;
    if (profile)
        cn_profile_done(profile);
    cn_profile_unref(mail->profile);
    cn_free(mail);
}

/* --- the house ---------------------------------------------------------------------------------
 */

static void check_handles(const struct cn_lane *lane)
{
    const struct cn_handles *all[] = {&lane->objects, &lane->calls,  &lane->cursors,
                                      &lane->ends,    &lane->traces, &lane->events};
    for (size_t i = 0; i < CN_ARRAY_COUNT(all); i++)
        cn_handles_check(all[i]);
}

void cn_lane_check(const struct cn_lane *lane)
{
    CN_ASSERT(!lane->vm->entered);
    check_handles(lane);
    size_t events = 0;
    uint64_t bodies = 0;
    CN_LIST_FOREACH(&lane->instances, node)
    {
        const struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        CN_ASSERT(instance->lane == lane);
        if (instance->runtime)
            cn_js_context_check(instance->runtime->context);
        CN_LIST_FOREACH(&instance->events, link)
        {
            const struct cn_event *event = CN_CONTAINER_OF(link, struct cn_event, link);
            CN_ASSERT(event->instance == instance);
            CN_ASSERT(cn_event_find(lane, (double)event->handle) == event);
            bodies += event->gathered;
            events++;
        }
    }
    CN_ASSERT(lane->events.live == events);
    CN_ASSERT(cn_account_kind_bytes(CN_ACCOUNT_BODIES) >= bodies); /* other lanes have some, too */
    if (lane->http)
        cn_http_server_check(lane->http);
    cn_ws_lane_check(lane->ws);
    if (lane->client)
        cn_client_check(lane->client);
    if (lane->sockets)
        cn_sockets_check(lane->sockets);
}

static void on_house(uv_timer_t *timer)
{
    struct cn_lane *lane = timer->data;
    publish(lane);
    give_samples(lane);
    collect_when_quiet(lane);
    CN_LIST_FOREACH(&lane->instances, node)
    {
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        cn_instance_after_cut(instance);
        cn_instance_check_start(instance);
    }
    cn_event_sweep(lane);
    cn_hold_sweep(lane);
    cn_hung_sweep(lane);
    cn_websocket_lane_tick(lane);
    free_unused_instances(lane);
    restart_ended(lane);
    cn_js_vm_pump(lane->vm);
    cn_relief_tick(lane);
    /* What this function itself did in the VM is no activity. */
    if (lane->collect_turns == lane->house_turns)
        lane->collect_turns = lane->vm->turn_count;
    lane->house_turns = lane->vm->turn_count;
    if (CN_DEBUG_CHECKS)
        cn_lane_check(lane);
}

/* --- the thread ------------------------------------------------------------------------------ */

static void started(struct cn_lane *lane, int status)
{
    lane->started = status;
    uv_sem_post(&lane->start_sem);
}

/* L2 of object/lane.c, for a lane without objects. */
#define STEP_MAX 1000

/* Does what is ready, if no turn is running. */
static void step(struct cn_desk *desk)
{
    struct cn_lane *lane = desk->data;
    if (lane->options.node) {
        cn_object_lane_step(&lane->object_lane);
        return;
    }
    if (desk->stepping || lane->vm->entered)
        return;
    desk->stepping = true;
    for (unsigned i = 0; i < STEP_MAX && cn_desk_step_one(desk); i++) {
    }
    desk->stepping = false;
    if (!cn_list_empty(&desk->ready))
        cn_desk_kick(desk);
}

static void step_from_loop(struct cn_desk *desk)
{
    struct cn_lane *lane = desk->data;
    step(desk);
    if (lane->options.node)
        cn_object_lane_sweep(&lane->object_lane);
}

/* A turn has ended: calls it made and answers it gave go on at once. */
static void on_turn_end(void *data)
{
    struct cn_lane *lane = data;
    cn_relief_turn(lane);
    if (!cn_list_empty(&lane->traces_ended))
        cn_trace_flush(lane);
    step(&lane->desk);
}

static void deliver_relief(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    cn_free(mail);
    atomic_store(&lane->relieving, false);
    cn_relief_step(lane);
}

void cn_lane_relieve(struct cn_lane *lane)
{
    if (!atomic_exchange(&lane->relieving, true))
        post(lane, deliver_relief, NULL);
}

static int lane_open(struct cn_lane *lane)
{
    uint64_t seed;
    cn_rand_secure(&seed, sizeof(seed));
    cn_rand_init(&lane->rand, seed);
    struct cn_err *err = &lane->start_err;
    int rc = cn_loop_init(&lane->loop, err);
    if (rc < 0)
        return rc;
    rc = cn_mailbox_open(&lane->mailbox, &lane->loop, lane);
    if (rc < 0)
        return cn_err_set(err, rc, "cannot make a mailbox");
    uv_timer_init(&lane->loop, &lane->house);
    lane->house.data = lane;
    uv_timer_start(&lane->house, on_house, HOUSE_INTERVAL_MS, HOUSE_INTERVAL_MS);
    cn_module_crash_publish(&lane->module_pulse);
    lane->host = (struct cn_compiled_host){.loop = &lane->loop,
                                           .index = lane->options.index,
                                           .rand = &lane->rand,
                                           .desk = &lane->desk,
                                           .dispatch = cn_compiled_send,
                                           .find_socket = cn_compiled_find_socket,
                                           .turn_ended = on_turn_end,
                                           .tracer = &cn_compiled_lane_tracer,
                                           .data = lane};
    cn_desk_open(&lane->desk, lane->options.index, &lane->loop, &lane->mailbox, step_from_loop,
                 lane);
    lane->vm = cn_js_vm_new(lane);
    lane->vm->tells_place = lane->options.show_errors;
    lane->vm->on_turn_end = on_turn_end;
    lane->vm->pulse = &lane->pulse;
    lane->alloc = lane->vm->alloc;
    /* Garbage included, and room for what a turn may still do before it is ended. */
    cn_js_alloc_bound(lane->options.heap_bytes_max / 2 * 3 + HEAP_SLACK);
    cn_trace_lane_init(lane);
    if (lane->options.node) {
        lane->vm->hooks = &cn_jsclass_hooks;
        rc = cn_object_lane_start(&lane->object_lane, lane->options.node, &lane->desk, lane, err);
        if (rc < 0)
            return rc;
        lane->object_lane.offer_socket = cn_websocket_offer;
        lane->object_lane.host = &lane->host;
        lane->host.objects = &lane->object_lane;
        lane->object_lane.send_lent = cn_lent_send;
        if (lane->options.remote)
            lane->options.remote->open(lane->options.remote->data, &lane->object_lane);
    }
    struct cn_http_server_options http = {
        .limits = lane->options.limits,
        .callbacks = {cn_event_request, cn_event_abort},
        .data = lane,
        .tls = lane->options.tls,
    };
    rc = cn_http_server_new(&lane->loop, &http, &lane->http, err);
    if (rc < 0)
        return rc;
    rc = cn_websocket_lane_start(lane, err);
    if (rc < 0)
        return rc;
    if (lane->options.trust) {
        struct cn_client_options client = {.trust = lane->options.trust,
                                           .address_allowed = cn_egress_allowed,
                                           .address_data = lane->options.egress};
        lane->client = cn_client_new(&lane->loop, &client);
        lane->host.client = lane->client;
        struct cn_sockets_options sockets = {.trust = lane->options.trust,
                                             .address_allowed = cn_egress_allowed,
                                             .address_data = lane->options.egress};
        lane->sockets = cn_sockets_new(&lane->loop, &sockets);
    }
    return 0;
}

static void lane_main(void *arg)
{
    struct cn_lane *lane = arg;
    int rc = pthread_getcpuclockid(pthread_self(), &lane->cpu_clock);
    CN_ASSERT(rc == 0);
    lane->thread_id = (pid_t)syscall(SYS_gettid);
    rc = lane_open(lane);
    started(lane, rc < 0 ? rc : 1);
    if (rc < 0)
        return;
    cn_block_forbid(true);
    uv_run(&lane->loop, UV_RUN_DEFAULT);
    cn_block_forbid(false);
    if (lane->options.background)
        lane->options.background->free(&lane->background);
    if (lane->desk.carrier)
        lane->options.remote->free(&lane->object_lane);
    CN_ASSERT(cn_list_empty(&lane->instances));
    cn_handles_fini(&lane->objects);
    cn_handles_fini(&lane->calls);
    cn_handles_fini(&lane->cursors);
    cn_jstargets_fini(&lane->targets);
    cn_handles_fini(&lane->ends);
    cn_trace_lane_fini(lane);
    CN_ASSERT(!lane->events.live);
    cn_handles_fini(&lane->events);
    cn_lane_metrics_fini(&lane->metrics);
    cn_buf_fini(&lane->scratch);
    cn_buf_fini(&lane->sql_names);
    cn_js_vm_free(lane->vm);
    rc = uv_loop_close(&lane->loop);
    CN_ASSERT(rc == 0);
}

int cn_lane_start(struct cn_lane *lane, const struct cn_lane_options *options, struct cn_err *err)
{
    *lane = (struct cn_lane){.options = *options};
    cn_background_init(&lane->background, lane);
    cn_list_init(&lane->instances);
    cn_list_init(&lane->held);
    uv_sem_init(&lane->start_sem, 0);
    int rc = uv_thread_create(&lane->thread, lane_main, lane);
    if (rc < 0)
        return cn_err_set(err, rc, "cannot start a thread");
    uv_sem_wait(&lane->start_sem);
    if (lane->started < 0) {
        uv_thread_join(&lane->thread);
        *err = lane->start_err;
        return lane->started;
    }
    return 0;
}

static void deliver_listen(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    cn_free(mail);
    struct cn_err err;
    if (cn_http_server_listen(lane->http, lane->options.listen_fd, &err) < 0)
        cn_error("lane %u cannot listen: %s", lane->options.index, err.text);
    lane->listening = true;
    if (lane->options.background && lane->deployment) /* `cairn dev` listens without one (V6) */
        lane->options.background->update(&lane->background);
}

void cn_lane_listen(struct cn_lane *lane)
{
    post(lane, deliver_listen, NULL);
}

struct release_mail {
    struct cn_mail mail;
    uint64_t last;
    char *problem; /* owned, or NULL */
};

static void deliver_release(struct cn_mail *mail, void *data)
{
    struct release_mail *release = (struct release_mail *)mail;
    cn_hold_release(data, release->last, release->problem);
    cn_free(release->problem);
    cn_free(release);
}

void cn_lane_release(struct cn_lane *lane, uint64_t last, const char *problem)
{
    struct release_mail *release = CN_NEW(struct release_mail);
    release->mail.deliver = deliver_release;
    release->last = last;
    release->problem = problem ? cn_strdup(problem) : NULL;
    if (cn_mailbox_send(&lane->mailbox, &release->mail))
        return;
    cn_free(release->problem);
    cn_free(release);
}

/* --- the end --------------------------------------------------------------------------------- */

static void on_http_drained(void *data)
{
    struct cn_lane *lane = data;
    lane->options.on_drained(lane);
}

static void deliver_drain(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    cn_free(mail);
    lane->draining = true;
    cn_hold_end(lane);
    cn_ws_lane_shutdown(lane->ws); /* clients are told to come again */
    cn_http_server_drain(lane->http, on_http_drained, lane);
}

void cn_lane_drain(struct cn_lane *lane)
{
    post(lane, deliver_drain, NULL);
}

static void on_client_closed(void *data)
{
    (void)data;
}

/* Nothing is left that could call them: the instances can go, and then the loop ends. */
static void finish_stop(struct cn_lane *lane)
{
    CN_LIST_FOREACH(&lane->instances, node)
    {
        /* What the last turns of objects have begun meanwhile. */
        struct cn_instance *instance = CN_CONTAINER_OF(node, struct cn_instance, link);
        cn_instance_fail_events(instance, cn_ending_stop.outcome, cn_ending_stop.event_text);
    }
    CN_LIST_FOREACH(&lane->instances, node)
    cn_instance_free(CN_CONTAINER_OF(node, struct cn_instance, link));
    cn_websocket_lane_stop(lane);
    cn_free(lane->current);
    lane->current = NULL;
    cn_free(lane->places);
    if (lane->deployment)
        cn_deployment_unref(lane->deployment);
    if (lane->starting)
        cn_deployment_unref(lane->starting);
    cn_free(lane->starting_instances);
    cn_free(lane->starting_places);
    if (lane->client)
        cn_client_close(lane->client, on_client_closed, lane);
    if (lane->sockets)
        cn_sockets_close(lane->sockets, on_client_closed, lane);
    uv_close((uv_handle_t *)&lane->house, NULL);
    cn_relief_end(lane);
    cn_desk_close(&lane->desk); /* those in JavaScript that wait for an answer are gone (P2) */
    cn_mailbox_close(&lane->mailbox, NULL);
}

static void on_objects_stopped(struct cn_object_lane *object_lane)
{
    finish_stop(object_lane->data);
}

/* The server is gone: no request is left, so the objects can go. That may take a while: N3. */
static void on_http_closed(void *data)
{
    struct cn_lane *lane = data;
    lane->http = NULL;
    cn_block_forbid(false); /* B3: it serves nobody any more */
    uv_timer_stop(&lane->house);
    if (lane->desk.carrier)
        lane->options.remote->close(&lane->object_lane);
    if (lane->options.node)
        cn_object_lane_stop(&lane->object_lane, on_objects_stopped);
    else
        finish_stop(lane);
}

static void deliver_stop(struct cn_mail *mail, void *data)
{
    struct cn_lane *lane = data;
    cn_free(mail);
    lane->stopping = true;
    cn_hold_end(lane);
    stop_profile(lane);
    if (lane->options.background)
        lane->options.background->stop(&lane->background);
    for (size_t i = 0; lane->deployment && i < lane->deployment->script_count; i++)
        retire_current(lane, i, &cn_ending_stop);
    CN_LIST_FOREACH(&lane->instances, node)
    cn_instance_retire(CN_CONTAINER_OF(node, struct cn_instance, link), &cn_ending_stop);
    cn_websocket_lane_abort(lane);
    cn_http_server_close(lane->http, on_http_closed, lane);
}

void cn_lane_stop_begin(struct cn_lane *lane)
{
    post(lane, deliver_stop, NULL);
}

void cn_lane_stop_wait(struct cn_lane *lane)
{
    uv_thread_join(&lane->thread);
    uv_sem_destroy(&lane->start_sem);
}
