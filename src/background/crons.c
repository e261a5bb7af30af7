/* SPDX-License-Identifier: Apache-2.0 */
#include "background/crons.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cron.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"
#include "object/node.h"
#include "service/cron/cron.h"
#include "text/percent.h"
#include "worker/background.h"
#include "worker/script.h"

/* The clock of the machine may be set while we sleep. */
#define SLEEP_MS_MAX 30000
#define RUN_MS_MAX (15 * 60 * 1000)
/* How soon a service is asked again that is not on this node. */
#define AWAY_MS 1000

struct cn_crons {
    struct cn_list triggers; /* of struct trigger */
    struct cn_list runs;     /* of struct run, under way */
    uv_timer_t timer;
    bool stopped;
};

struct trigger {
    struct cn_list link;
    struct cn_background *background;
    struct cn_namespace *ns;
    char *script;     /* owned */
    char *expression; /* owned */
    struct cn_cron cron;
    int64_t next_ms; /* -1: not known yet, or never */
    bool current;    /* the deployment has it */
    bool busy;       /* a call is under way that refers to it */
    bool away;       /* C2: its service is not on this node; whether it is is asked again */
};

/* One run of a handler. */
struct run {
    struct cn_list link; /* in crons->runs, or alone */
    struct cn_background *background;
    struct cn_namespace *ns;
    char *script, *expression; /* owned */
    int64_t scheduled_ms;
    int64_t number; /* of the service */
    int64_t started_ms, ended_ms;
    bool late;                    /* it has been told to have lasted too long */
    const char *outcome;          /* static; NULL: it has not ended */
    struct cn_err err;            /* what it threw */
    struct cn_http_request *http; /* who waits for it; NULL: nobody */
    struct cn_manual_run *manual; /* or who else waits; NULL: nobody */
};

static int64_t now_ms(struct cn_background *background)
{
    struct cn_node *node = background->node;
    return cn_clock_wall_ms(node ? cn_node_clock(node) : cn_clock_system());
}

/* C2 */
static bool is_here(struct cn_background *background, const struct cn_namespace *ns)
{
    struct cn_object_key key;
    cn_service_key(ns, CN_CRON_OBJECT, &key);
    return cn_object_lane_serves(background->objects, &key);
}

/* --- runs ------------------------------------------------------------------------------------ */

static void free_run(struct run *run)
{
    cn_list_remove(&run->link);
    cn_free(run->script);
    cn_free(run->expression);
    cn_free(run);
}

static void answer_http(struct run *run, int status, const char *text)
{
    struct cn_http_request *http = run->http;
    struct cn_http_header type = {"content-type", "text/plain;charset=UTF-8", 12, 24};
    struct cn_http_head head = {status, &type, 1, NULL};
    (void)cn_http_respond(http, &head, text, strlen(text), NULL, NULL); /* or it has gone */
    http->data = NULL;
    cn_http_request_release(http);
    run->http = NULL;
}

/* As wrangler has it at each of its two addresses. */
static const char *what_became(const struct run *run)
{
    static const char old[] = "/__scheduled";
    const struct cn_http_request *http = run->http;
    bool is_old = http->target.size >= sizeof(old) - 1 &&
                  memcmp(http->target.data, old, sizeof(old) - 1) == 0;
    return is_old && !run->err.code ? "Ran scheduled event" : run->outcome;
}

/* Tells who waits for it how the run ended, or, without an outcome, that it did not begin. */
static void end_run(struct run *run)
{
    struct cn_manual_run *manual = run->manual;
    if (run->http && run->outcome)
        answer_http(run, run->err.code ? 500 : 200, what_became(run));
    else if (run->http)
        answer_http(run, 503, "the run could not begin");
    if (manual) {
        manual->outcome = run->outcome;
        manual->err = run->err;
        manual->number = run->number;
        manual->duration_ms = run->ended_ms - run->started_ms;
        manual->done(manual);
    }
    free_run(run);
}

static void warn_unrecorded(struct cn_service_call *call)
{
    if (call->call.envelope.err.code)
        cn_warn("%s: a run could not be recorded: %s", call->call.ns->name,
                call->call.envelope.err.text);
}

static void on_recorded(struct cn_service_call *call)
{
    warn_unrecorded(call);
    end_run(call->call.envelope.data);
    cn_service_call_free(call);
}

static void on_late_recorded(struct cn_service_call *call)
{
    warn_unrecorded(call);
    cn_service_call_free(call);
}

static void record(struct run *run, const char *outcome, const char *message,
                   void (*done)(struct cn_service_call *call))
{
    struct cn_cron_call *call = cn_cron_call_new(run->ns, CN_CRON_FINISH, run->expression);
    call->run = run->number;
    call->outcome = cn_strdup(outcome);
    call->message = message ? cn_strdup(message) : NULL;
    call->base.call.envelope.data = run;
    cn_service_call_send(&call->base, run->background->objects, done);
}

static void on_done(void *data, const struct cn_background_answer *answer)
{
    struct run *run = data;
    run->err = answer->err;
    run->ended_ms = now_ms(run->background);
    cn_list_remove(&run->link);
    if (run->err.code)
        cn_error("scheduled() of %s (%s): %s", run->script, run->expression, run->err.text);
    run->outcome = run->late ? "exceededTime" : run->err.code ? "exception" : "ok";
    if (run->late || !run->ns)
        end_run(run);
    else
        record(run, run->outcome, run->err.code ? run->err.text : NULL, on_recorded);
}

static void dispatch_run(struct run *run)
{
    struct cn_background *background = run->background;
    run->started_ms = now_ms(background);
    if (background->crons)
        cn_list_push_back(&background->crons->runs, &run->link);
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "{\"cron\":");
    cn_buf_append_json(&json, run->expression, strlen(run->expression));
    cn_buf_printf(&json, ",\"scheduledTime\":%" PRId64 "}", run->scheduled_ms);
    size_t size = json.size;
    struct cn_background_event event = {.script = run->script,
                                        .handler = "scheduled",
                                        .bytes = cn_buf_take(&json),
                                        .size = size,
                                        .done = on_done,
                                        .data = run};
    background->send(background, &event);
}

static void arm(struct cn_background *background);

static struct trigger *find(struct cn_crons *crons, const char *script, const char *expression)
{
    CN_LIST_FOREACH(&crons->triggers, node)
    {
        struct trigger *trigger = CN_CONTAINER_OF(node, struct trigger, link);
        if (strcmp(trigger->script, script) == 0 && strcmp(trigger->expression, expression) == 0)
            return trigger;
    }
    return NULL;
}

/* The service could not be asked. True: it is not on this node, and its trigger starts over, so
 * that what is missed meanwhile is made up by whichever node has it. */
static bool go_away(struct run *run, const struct cn_object_key *key)
{
    struct cn_background *background = run->background;
    if (cn_object_lane_serves(background->objects, key))
        return false;
    struct trigger *trigger =
        background->crons ? find(background->crons, run->script, run->expression) : NULL;
    if (trigger) {
        trigger->next_ms = -1;
        trigger->away = true;
        arm(background);
    }
    return true;
}

static void on_claimed(struct cn_service_call *base)
{
    struct cn_cron_call *call = CN_CONTAINER_OF(base, struct cn_cron_call, base);
    struct run *run = base->call.envelope.data;
    struct cn_background *background = run->background;
    bool stopping = *background->draining || (background->crons && background->crons->stopped);
    run->number = call->run;
    if (base->call.envelope.err.code || !call->claimed || stopping) {
        run->err = base->call.envelope.err;
        if (stopping)
            cn_err_set(&run->err, CN_ECLOSED, "the server is stopping");
        else if (run->err.code && !go_away(run, &base->call.key))
            cn_warn("%s: %s", base->call.ns->name, run->err.text);
        end_run(run);
    } else {
        dispatch_run(run);
    }
    cn_service_call_free(base);
}

/* Without a namespace nobody claims it and it is not recorded. */
static struct run *start_run(struct cn_background *background, struct cn_namespace *ns,
                             const char *script, const char *expression, int64_t scheduled_ms,
                             bool manual)
{
    struct run *run = CN_NEW(struct run);
    cn_list_init(&run->link);
    run->background = background;
    run->ns = ns;
    run->script = cn_strdup(script);
    run->expression = cn_strdup(expression);
    run->scheduled_ms = scheduled_ms;
    if (!ns) {
        dispatch_run(run);
        return run;
    }
    struct cn_cron_call *call = cn_cron_call_new(ns, CN_CRON_CLAIM, expression);
    call->scheduled_ms = scheduled_ms;
    call->manual = manual;
    call->base.call.envelope.data = run;
    cn_service_call_send(&call->base, background->objects, on_claimed);
    return run;
}

/* --- the clock ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void arm(struct cn_background *background)
{
    struct cn_crons *crons = background->crons;
    int64_t now = now_ms(background), wait = SLEEP_MS_MAX;
    bool any = !cn_list_empty(&crons->runs);
    CN_LIST_FOREACH(&crons->triggers, node)
    {
        const struct trigger *trigger = CN_CONTAINER_OF(node, struct trigger, link);
        if (trigger->current && trigger->away) {
            any = true;
            wait = wait < AWAY_MS ? wait : AWAY_MS;
        }
        if (!trigger->current || trigger->next_ms < 0)
            continue;
        any = true;
        if (trigger->next_ms - now < wait)
            wait = trigger->next_ms - now;
    }
    if (any && !crons->stopped)
        uv_timer_start(&crons->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void end_long_runs(struct cn_crons *crons, int64_t now)
{
    CN_LIST_FOREACH(&crons->runs, node)
    {
        struct run *run = CN_CONTAINER_OF(node, struct run, link);
        if (run->late || now - run->started_ms < RUN_MS_MAX)
            continue;
        run->late = true;
        cn_error("scheduled() of %s (%s) has not ended after 15 minutes", run->script,
                 run->expression);
        if (run->ns)
            record(run, "exceededTime", NULL, on_late_recorded);
    }
}

static void on_opened(struct cn_service_call *base);

/* Asks the service when it ran last. */
static void open_trigger(struct trigger *trigger)
{
    trigger->away = !is_here(trigger->background, trigger->ns);
    if (trigger->away)
        return;
    struct cn_cron_call *call = cn_cron_call_new(trigger->ns, CN_CRON_OPEN, trigger->expression);
    call->base.call.envelope.data = trigger;
    trigger->busy = true;
    cn_service_call_send(&call->base, trigger->background->objects, on_opened);
}

static void on_timer(uv_timer_t *timer)
{
    struct cn_background *background = timer->data;
    struct cn_crons *crons = background->crons;
    int64_t now = now_ms(background);
    if (crons->stopped || *background->draining)
        return;
    CN_LIST_FOREACH(&crons->triggers, node)
    {
        struct trigger *trigger = CN_CONTAINER_OF(node, struct trigger, link);
        if (trigger->current && trigger->away && !trigger->busy)
            open_trigger(trigger);
        if (!trigger->current || trigger->next_ms < 0 || trigger->next_ms > now)
            continue;
        if (!is_here(background, trigger->ns)) {
            trigger->next_ms = -1;
            trigger->away = true;
            continue;
        }
        /* After a long sleep (or a clock that was set) only the latest occurrence counts. */
        int64_t latest = cn_cron_previous(&trigger->cron, now);
        start_run(background, trigger->ns, trigger->script, trigger->expression,
                  latest > trigger->next_ms ? latest : trigger->next_ms, false);
        trigger->next_ms = cn_cron_next(&trigger->cron, now);
    }
    end_long_runs(crons, now);
    arm(background);
}

static void on_opened(struct cn_service_call *base)
{
    struct cn_cron_call *call = CN_CONTAINER_OF(base, struct cn_cron_call, base);
    struct trigger *trigger = base->call.envelope.data;
    struct cn_background *background = trigger->background;
    int64_t now = now_ms(background);
    trigger->busy = false;
    trigger->away = base->call.envelope.err.code &&
                    !cn_object_lane_serves(background->objects, &base->call.key);
    if (trigger->away && !background->crons->stopped)
        arm(background);
    else if (base->call.envelope.err.code)
        cn_error("cron \"%s\" of %s does not run: %s", trigger->expression, trigger->script,
                 base->call.envelope.err.text);
    if (!base->call.envelope.err.code && trigger->current && !background->crons->stopped) {
        int64_t missed = cn_cron_previous(&trigger->cron, now);
        if (missed > call->last_ms) {
            cn_info("cron \"%s\" of %s: a run was missed and is made up", trigger->expression,
                    trigger->script);
            start_run(background, trigger->ns, trigger->script, trigger->expression, missed, false);
        }
        trigger->next_ms = cn_cron_next(&trigger->cron, now);
        if (trigger->next_ms < 0)
            cn_warn("cron \"%s\" of %s never comes round", trigger->expression, trigger->script);
        arm(background);
    }
    cn_service_call_free(base);
}

/* --- the lane -------------------------------------------------------------------------------- */

static void add(struct cn_background *background, const struct cn_script *script,
                const char *expression)
{
    struct trigger *trigger = find(background->crons, script->name, expression);
    if (trigger) {
        trigger->current = true;
        if (trigger->next_ms >= 0 || trigger->busy)
            return;
    } else {
        trigger = CN_NEW(struct trigger);
        trigger->background = background;
        trigger->ns = script->cron_ns;
        trigger->script = cn_strdup(script->name);
        trigger->expression = cn_strdup(expression);
        trigger->next_ms = -1;
        trigger->current = true;
        struct cn_err err;
        if (cn_cron_parse(expression, &trigger->cron, &err) < 0)
            cn_error("%s", err.text); /* the configuration was checked: cannot be */
        cn_list_push_back(&background->crons->triggers, &trigger->link);
    }
    open_trigger(trigger);
}

void cn_crons_update(struct cn_background *background)
{
    cn_loop_assert_owner(background->loop);
    if (background->index != 0 || !background->node)
        return;
    if (!background->crons) {
        background->crons = CN_NEW(struct cn_crons);
        cn_list_init(&background->crons->triggers);
        cn_list_init(&background->crons->runs);
        uv_timer_init(background->loop, &background->crons->timer);
        background->crons->timer.data = background;
    }
    CN_LIST_FOREACH(&background->crons->triggers, node)
    CN_CONTAINER_OF(node, struct trigger, link)->current = false;
    const struct cn_deployment *deployment = *background->deployment;
    for (size_t i = 0; i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        for (size_t k = 0; k < script->cron_count; k++)
            add(background, script, script->crons[k]);
    }
    CN_LIST_FOREACH(&background->crons->triggers, node)
    {
        struct trigger *trigger = CN_CONTAINER_OF(node, struct trigger, link);
        if (!trigger->current)
            trigger->next_ms = -1; /* if it comes back it asks again when it last ran */
    }
    arm(background);
}

void cn_crons_stop(struct cn_background *background)
{
    cn_loop_assert_owner(background->loop);
    if (!background->crons || background->crons->stopped)
        return;
    background->crons->stopped = true;
    uv_close((uv_handle_t *)&background->crons->timer, NULL);
}

void cn_crons_free(struct cn_background *background)
{
    cn_loop_assert_owner(background->loop);
    if (!background->crons)
        return;
    CN_LIST_FOREACH(&background->crons->triggers, node)
    {
        struct trigger *trigger = CN_CONTAINER_OF(node, struct trigger, link);
        cn_free(trigger->script);
        cn_free(trigger->expression);
        cn_free(trigger);
    }
    CN_LIST_FOREACH(&background->crons->runs, node)
    free_run(CN_CONTAINER_OF(node, struct run, link));
    cn_free(background->crons);
}

/* --- by hand --------------------------------------------------------------------------------- */

/* The value of `name` in a query, with '+' and %xx resolved; false if it is not there. */
static bool query_value(struct cn_http_text target, const char *name, char *out, size_t size)
{
    size_t name_size = strlen(name);
    const char *end = target.data + target.size;
    const char *at = memchr(target.data, '?', target.size);
    while (at) {
        at++;
        const char *stop = memchr(at, '&', (size_t)(end - at));
        const char *limit = stop ? stop : end;
        if ((size_t)(limit - at) > name_size && memcmp(at, name, name_size) == 0 &&
            at[name_size] == '=') {
            at += name_size + 1;
            char *whole = cn_alloc((size_t)(limit - at) + 1);
            size_t used =
                (size_t)cn_percent_decode(at, (size_t)(limit - at), CN_PERCENT_FORM, whole);
            if (used >= size)
                used = size - 1;
            memcpy(out, whole, used);
            out[used] = 0;
            cn_free(whole);
            return true;
        }
        at = stop;
    }
    return false;
}

static void on_abort(struct cn_http_request *http, int status)
{
    (void)status;
    struct run *run = http->data;
    run->http = NULL;
    cn_http_request_release(http);
}

void cn_crons_request(struct cn_background *background, struct cn_script *script,
                      struct cn_http_request *http)
{
    cn_loop_assert_owner(background->loop);
    char expression[256] = "", time[32];
    int64_t scheduled = cn_clock_wall_ms(cn_clock_system());
    query_value(http->target, "cron", expression, sizeof(expression));
    if (query_value(http->target, "time", time, sizeof(time)) && *time)
        scheduled = strtoll(time, NULL, 10);
    struct run *run =
        start_run(background, script->cron_ns, script->name, expression, scheduled, true);
    run->http = http;
    http->data = run;
    http->on_abort = on_abort;
}

/* --- for the administration ------------------------------------------------------------------ */

/* The script's own text of the expression; NULL: it has no such, and `err` says what it has. */
static const char *find_cron(const struct cn_script *script, const char *cron, struct cn_err *err)
{
    for (size_t i = 0; i < script->cron_count; i++) {
        if (!cron || strcmp(script->crons[i], cron) == 0)
            return script->crons[i];
    }
    if (script->cron_count == 0)
        cn_err_set(err, CN_ENOTFOUND, "%s has no cron triggers", script->name);
    else
        cn_err_set(err, CN_EINVALID, "%s has no cron trigger \"%s\"; its first is \"%s\"",
                   script->name, cron, script->crons[0]);
    return NULL;
}

void cn_crons_trigger(struct cn_background *background, struct cn_manual_run *manual)
{
    cn_loop_assert_owner(background->loop);
    const struct cn_script *script = NULL;
    const struct cn_deployment *deployment = *background->deployment;
    for (size_t i = 0; deployment && i < deployment->script_count; i++) {
        if (strcmp(deployment->scripts[i]->name, manual->worker) == 0)
            script = deployment->scripts[i];
    }
    if (!script)
        cn_err_set(&manual->err, CN_ENOTFOUND, "there is no worker %s", manual->worker);
    const char *cron = script ? find_cron(script, manual->cron, &manual->err) : NULL;
    if (!cron) {
        manual->done(manual);
        return;
    }
    if (!manual->cron)
        manual->cron = cn_strdup(cron);
    struct run *run =
        start_run(background, script->cron_ns, script->name, cron, manual->scheduled_ms, true);
    run->manual = manual;
}

void cn_crons_each(struct cn_background *background,
                   void (*each)(void *data, struct cn_namespace *ns, const char *worker,
                                const char *cron, int64_t next_ms),
                   void *data)
{
    cn_loop_assert_owner(background->loop);
    if (!background->crons)
        return;
    CN_LIST_FOREACH(&background->crons->triggers, node)
    {
        const struct trigger *trigger = CN_CONTAINER_OF(node, struct trigger, link);
        int64_t next = trigger->away ? cn_cron_next(&trigger->cron, now_ms(background))
                                     : trigger->next_ms; /* another node keeps its time */
        if (trigger->current)
            each(data, trigger->ns, trigger->script, trigger->expression, next);
    }
}
