/* SPDX-License-Identifier: Apache-2.0 */
/* Cron triggers without JavaScript: when an occurrence becomes an event, which one after a pause,
 * and what those who wait for a run are told. The test is the script, and moves the clock. */
#include "background/crons.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "service/cron/cron.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"
#include "worker/background.h"
#include "worker/script.h"

#define HOUR_MS (60 * 60 * 1000)

static struct service_rig rig;
static struct {
    struct cn_background background;
    struct cn_deployment *deployment;
    struct cn_background_event event;
    bool arrived, draining;
} lane;

static void keep_event(struct cn_background *background, const struct cn_background_event *event)
{
    CHECK(background == &lane.background && !lane.arrived);
    CHECK_STR("worker", event->script);
    CHECK_STR("scheduled", event->handler);
    lane.event = *event;
    lane.arrived = true;
}

/* A lane whose script has one trigger, at every full hour. The clock stands at 22:13:20. */
static void open_lane(struct cn_disk *disk)
{
    service_rig_open(&rig, disk, &cn_cron_class, "$cron/worker");
    memset(&lane, 0, sizeof(lane));
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup("worker");
    script->crons = cn_alloc_zero(sizeof(*script->crons));
    script->crons[0] = cn_strdup("0 * * * *");
    script->cron_count = 1;
    script->cron_ns = rig.ns;
    lane.deployment = cn_deployment_new();
    cn_deployment_add(lane.deployment, script);
    lane.background = service_rig_background(&rig, &lane.draining, &lane.deployment, keep_event);
}

static void close_lane(void)
{
    cn_crons_stop(&lane.background);
    service_rig_close(&rig);
    cn_crons_free(&lane.background);
    cn_deployment_unref(lane.deployment);
}

struct schedule {
    bool known;
    int64_t next_ms;
};

static void see(void *data, struct cn_namespace *ns, const char *worker, const char *cron,
                int64_t next_ms)
{
    struct schedule *schedule = data;
    CHECK(ns == rig.ns);
    CHECK_STR("worker", worker);
    CHECK_STR("0 * * * *", cron);
    *schedule = (struct schedule){next_ms >= 0, next_ms};
}

/* When the trigger is due; waits until the service has said when it last ran. */
static int64_t next_ms(void)
{
    struct schedule schedule = {0};
    while (!schedule.known) {
        cn_crons_each(&lane.background, see, &schedule);
        if (!schedule.known)
            uv_run(&rig.loop, UV_RUN_ONCE);
    }
    return schedule.next_ms;
}

/* The moment that the next event is told. */
static int64_t scheduled_ms(void)
{
    struct cn_err err;
    service_rig_until(&rig, &lane.arrived);
    struct cn_json *json = cn_json_parse((const char *)lane.event.bytes, lane.event.size, &err);
    int64_t time = cn_json_int(json, "scheduledTime");
    cn_json_free(json);
    return time;
}

static void answer(const struct cn_background_answer *how)
{
    lane.arrived = false;
    cn_free(lane.event.bytes);
    lane.event.done(lane.event.data, how);
}

TEST(crons, an_occurrence_becomes_an_event_and_not_before_its_time)
{
    struct cn_disk *disk = storetest_disk();
    open_lane(disk);
    cn_crons_update(&lane.background);
    int64_t due = next_ms();
    CHECK(due > rig.wall_ms && due - rig.wall_ms < HOUR_MS && due % HOUR_MS == 0);
    CHECK(!lane.arrived);
    rig.wall_ms = due;
    cn_crons_update(&lane.background); /* looks at the clock again */
    CHECK_INT(due, scheduled_ms());
    answer(&(struct cn_background_answer){0});
    CHECK_INT(due + HOUR_MS, next_ms());
    close_lane();
    cn_disk_system_free(disk);
}

TEST(crons, of_several_that_were_missed_the_latest_is_made_up)
{
    struct cn_disk *disk = storetest_disk();
    open_lane(disk);
    cn_crons_update(&lane.background);
    int64_t due = next_ms();
    close_lane();
    open_lane(disk); /* a restart, three hours later */
    rig.wall_ms = due + 3 * HOUR_MS + 1000;
    cn_crons_update(&lane.background);
    CHECK_INT(due + 3 * HOUR_MS, scheduled_ms());
    answer(&(struct cn_background_answer){0});
    CHECK_INT(due + 4 * HOUR_MS, next_ms());
    CHECK(!lane.arrived);
    close_lane();
    cn_disk_system_free(disk);
}

static bool manual_done;

static void on_manual(struct cn_manual_run *run)
{
    (void)run;
    manual_done = true;
}

static struct cn_manual_run manual_run(const char *worker, const char *cron)
{
    manual_done = false;
    return (struct cn_manual_run){.worker = cn_strdup(worker),
                                  .cron = cron ? cn_strdup(cron) : NULL,
                                  .scheduled_ms = 1234,
                                  .done = on_manual};
}

static void free_manual(struct cn_manual_run *run)
{
    cn_free(run->worker);
    cn_free(run->cron);
}

TEST(crons, a_run_by_hand_is_told_how_it_ended)
{
    struct cn_disk *disk = storetest_disk();
    open_lane(disk);
    cn_crons_update(&lane.background);
    struct cn_manual_run run = manual_run("worker", NULL);
    cn_crons_trigger(&lane.background, &run);
    CHECK_INT(1234, scheduled_ms());
    struct cn_background_answer thrown = {.faults = CN_FAULT_REMOTE};
    cn_err_set(&thrown.err, CN_EINVALID, "no");
    answer(&thrown);
    service_rig_until(&rig, &manual_done);
    CHECK_STR("exception", run.outcome);
    CHECK_STR("no", run.err.text);
    CHECK_STR("0 * * * *", run.cron); /* its first */
    free_manual(&run);
    close_lane();
    cn_disk_system_free(disk);
}

TEST(crons, refuses_a_run_of_what_is_not_there)
{
    static const char *const cases[][3] = {
        {"nobody", NULL, "there is no worker nobody"},
        {"worker", "1 * * * *",
         "worker has no cron trigger \"1 * * * *\"; its first is \"0 * * * *\""}};
    struct cn_disk *disk = storetest_disk();
    open_lane(disk);
    for (size_t i = 0; i < 2; i++) {
        struct cn_manual_run run = manual_run(cases[i][0], cases[i][1]);
        cn_crons_trigger(&lane.background, &run);
        CHECK(manual_done && !run.outcome);
        CHECK_STR(cases[i][2], run.err.text);
        free_manual(&run);
    }
    close_lane();
    cn_disk_system_free(disk);
}

TEST(crons, a_lane_that_drains_begins_none)
{
    struct cn_disk *disk = storetest_disk();
    open_lane(disk);
    cn_crons_update(&lane.background);
    lane.draining = true;
    struct cn_manual_run run = manual_run("worker", NULL);
    cn_crons_trigger(&lane.background, &run);
    service_rig_until(&rig, &manual_done);
    CHECK(!run.outcome && run.err.code == CN_ECLOSED && !lane.arrived);
    free_manual(&run);
    close_lane();
    cn_disk_system_free(disk);
}
