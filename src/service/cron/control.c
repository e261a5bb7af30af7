/* SPDX-License-Identifier: Apache-2.0 */
/* service/cron/control.c - cron triggers: what is due when, what has run, and a run by hand.
 *
 * What is deployed is known to lane 0 alone (background/crons.h), so an errand goes there by mail
 * and this thread waits for it. A run may take minutes. If whoever asked is gone before its end,
 * the errand is left to the lane, which frees it: the run itself goes on. */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "admin/handler.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/cron/cron.h"
#include "worker/background.h"

#define LOOK_MS 100 /* how often it is looked whether anybody still waits */

struct errand {
    struct cn_mail mail;
    struct cn_manual_run run; /* of a trigger; the lane's until it is over */
    struct cn_buf schedules;  /* of a list: records for list_schedules() */
    pthread_mutex_t lock;     /* guards the two below */
    pthread_cond_t changed;
    bool over, left;
};

static void free_errand(struct errand *errand)
{
    cn_free(errand->run.worker);
    cn_free(errand->run.cron);
    cn_buf_fini(&errand->schedules);
    pthread_mutex_destroy(&errand->lock);
    pthread_cond_destroy(&errand->changed);
    cn_free(errand);
}

/* On the lane. */
static void finish(struct errand *errand)
{
    pthread_mutex_lock(&errand->lock);
    errand->over = true;
    bool left = errand->left;
    pthread_cond_signal(&errand->changed);
    pthread_mutex_unlock(&errand->lock);
    if (left)
        free_errand(errand);
}

static struct errand *errand_new(void (*deliver)(struct cn_mail *mail, void *data))
{
    struct errand *errand = CN_NEW(struct errand);
    pthread_mutex_init(&errand->lock, NULL);
    cn_cond_init(&errand->changed);
    errand->mail.deliver = deliver;
    return errand;
}

/* Takes the errand to lane 0 and waits until it is over. On failure it is no longer the caller's.
 */
static int go(struct cn_control_call *call, struct errand *errand, struct cn_err *err)
{
    struct cn_object_lane *lane = cn_node_lane(call->control->node, 0);
    if (!lane || !cn_mailbox_send(lane->mailbox, &errand->mail)) {
        free_errand(errand);
        return cn_err_set(err, CN_ECLOSED, "the server is %s", lane ? "stopping" : "starting");
    }
    pthread_mutex_lock(&errand->lock);
    while (!errand->over && !(call->cancelled && call->cancelled(call))) {
        (void)cn_cond_wait_ms(&errand->changed, &errand->lock, LOOK_MS);
    }
    bool over = errand->over;
    errand->left = !over;
    pthread_mutex_unlock(&errand->lock);
    return over ? 0 : cn_err_set(err, CN_ECLOSED, "nobody waits for the end of the run");
}

static int need_server(struct cn_control_call *call, struct cn_err *err)
{
    return call->control->node ? 0
                               : cn_err_set(err, CN_EUNSUPPORTED, "this needs a running server");
}

/* --- what is due ----------------------------------------------------------------------------- */

/* One schedule as the lane writes it down; worker and expression follow, each with its NUL. */
struct schedule {
    struct cn_namespace *ns;
    int64_t next_ms;
    size_t size; /* of both texts */
};

static void add_schedule(void *data, struct cn_namespace *ns, const char *worker, const char *cron,
                         int64_t next_ms)
{
    struct cn_buf *out = data;
    size_t worker_size = strlen(worker) + 1, cron_size = strlen(cron) + 1;
    struct schedule schedule = {ns, next_ms, worker_size + cron_size};
    cn_buf_append(out, &schedule, sizeof(schedule));
    cn_buf_append(out, worker, worker_size);
    cn_buf_append(out, cron, cron_size);
}

static void deliver_list(struct cn_mail *mail, void *data)
{
    struct errand *errand = CN_CONTAINER_OF(mail, struct errand, mail);
    struct cn_background *background;
    const struct cn_background_operations *operations = cn_background_of(data, &background);
    if (operations)
        operations->schedules(background, add_schedule, &errand->schedules);
    finish(errand);
}

/* The runs of an expression, or, if it is "", of all: a JSON array in the call, to be freed. */
static int ask_runs(struct cn_control_call *call, struct cn_namespace *ns, const char *cron,
                    struct cn_cron_call **answer, struct cn_err *err)
{
    struct cn_cron_call *request = cn_cron_call_new(ns, CN_CRON_LIST, cron);
    int rc = cn_service_call_wait(&request->base, call->control->node, NULL, err);
    if (rc < 0)
        cn_service_call_free(&request->base);
    else
        *answer = request;
    return rc;
}

static int append_schedule(struct cn_control_call *call, const struct schedule *schedule,
                           const char *worker, struct cn_buf *out, struct cn_err *err)
{
    const char *cron = worker + strlen(worker) + 1;
    struct cn_cron_call *last = NULL;
    int rc = ask_runs(call, schedule->ns, cron, &last, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(out, "{\"worker\":");
    cn_buf_append_json(out, worker, strlen(worker));
    cn_buf_append_str(out, ",\"cron\":");
    cn_buf_append_json(out, cron, strlen(cron));
    if (schedule->next_ms < 0)
        cn_buf_append_str(out, ",\"next\":null,\"last\":");
    else
        cn_buf_printf(out, ",\"next\":%" PRId64 ",\"last\":", schedule->next_ms);
    if (last->runs.size > 2) /* [{...}] */
        cn_buf_append(out, last->runs.data + 1, last->runs.size - 2);
    else
        cn_buf_append_str(out, "null");
    cn_buf_append_byte(out, '}');
    cn_service_call_free(&last->base);
    return 0;
}

/* GET /api/crons */
static int list_crons(struct cn_control_call *call, struct cn_err *err)
{
    int rc = need_server(call, err);
    if (rc < 0)
        return rc;
    struct errand *errand = errand_new(deliver_list);
    rc = go(call, errand, err);
    if (rc < 0)
        return rc;
    struct cn_buf result = {0};
    cn_buf_append_str(&result, "{\"schedules\":[");
    for (size_t at = 0; at < errand->schedules.size && rc == 0;) {
        struct schedule schedule;
        memcpy(&schedule, errand->schedules.data + at, sizeof(schedule));
        if (at > 0)
            cn_buf_append_byte(&result, ',');
        at += sizeof(schedule);
        rc = append_schedule(call, &schedule, (char *)errand->schedules.data + at, &result, err);
        at += schedule.size;
    }
    cn_buf_append_str(&result, "]}");
    free_errand(errand);
    if (rc == 0)
        return cn_control_result(call, &result);
    cn_buf_fini(&result);
    return rc;
}

/* GET /api/crons/WORKER: the last runs, the latest first */
static int list_runs(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    struct cn_cron_call *answer = NULL;
    int rc = cn_control_service(call, "cron", call->path[2], &ns, err);
    if (rc == 0)
        rc = ask_runs(call, ns, "", &answer, err);
    if (rc < 0)
        return rc;
    struct cn_buf result = {0};
    cn_buf_append_str(&result, "{\"runs\":");
    cn_buf_append(&result, answer->runs.data, answer->runs.size);
    cn_buf_append_byte(&result, '}');
    cn_service_call_free(&answer->base);
    return cn_control_result(call, &result);
}

/* --- by hand --------------------------------------------------------------------------------- */

static void on_run_over(struct cn_manual_run *run)
{
    finish(CN_CONTAINER_OF(run, struct errand, run));
}

static void deliver_trigger(struct cn_mail *mail, void *data)
{
    struct errand *errand = CN_CONTAINER_OF(mail, struct errand, mail);
    struct cn_background *background;
    cn_background_of(data, &background)->trigger(background, &errand->run);
}

static int read_trigger(struct cn_control_call *call, struct cn_manual_run *run, struct cn_err *err)
{
    const struct cn_json *cron = cn_json_find(call->json, "cron");
    const struct cn_json *time = cn_json_find(call->json, "scheduledTime");
    if (call->json && call->json->kind != CN_JSON_OBJECT)
        return cn_err_set(err, CN_EINVALID, "the body must be an object");
    if (cron && cron->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EINVALID, "\"cron\" must be a string");
    if (time && time->kind != CN_JSON_INT)
        return cn_err_set(err, CN_EINVALID, "\"scheduledTime\" must be milliseconds since 1970");
    run->worker = cn_strdup(call->path[2]);
    run->cron = cron ? cn_strdup(cron->text) : NULL;
    run->scheduled_ms = time ? time->integer : cn_clock_wall_ms(cn_clock_system());
    run->done = on_run_over;
    return 0;
}

/* POST /api/crons/WORKER/trigger {"cron"?, "scheduledTime"?} */
static int trigger(struct cn_control_call *call, struct cn_err *err)
{
    int rc = need_server(call, err);
    if (rc < 0)
        return rc;
    struct errand *errand = errand_new(deliver_trigger);
    rc = read_trigger(call, &errand->run, err);
    if (rc < 0) {
        free_errand(errand);
        return rc;
    }
    rc = go(call, errand, err);
    if (rc < 0)
        return rc;
    const struct cn_manual_run *run = &errand->run;
    struct cn_buf result = {0};
    if (!run->outcome) {
        *err = run->err;
        rc = err->code;
    } else {
        cn_buf_printf(&result, "{\"id\":%" PRId64 ",\"cron\":", run->number);
        cn_buf_append_json(&result, run->cron, strlen(run->cron));
        cn_buf_printf(&result,
                      ",\"scheduledTime\":%" PRId64 ",\"manual\":true,\"outcome\":\"%s\","
                      "\"duration\":%" PRId64 ",\"error\":",
                      run->scheduled_ms, run->outcome, run->duration_ms);
        if (run->err.code)
            cn_buf_append_json(&result, run->err.text, strlen(run->err.text));
        else
            cn_buf_append_str(&result, "null");
        cn_buf_append_byte(&result, '}');
    }
    free_errand(errand);
    return rc < 0 ? rc : cn_control_result(call, &result);
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "crons"}, list_crons, 0},
    {"GET", {"api", "crons", "*"}, list_runs, 0},
    {"POST", {"api", "crons", "*", "trigger"}, trigger, 0},
    {0},
};
const struct cn_control_routes cn_cron_routes = {routes};
