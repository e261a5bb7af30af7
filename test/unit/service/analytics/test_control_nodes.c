/* SPDX-License-Identifier: Apache-2.0 */
/* Data points of several nodes, read as one disk. The other nodes are folders beside it, and their
 * answers come by way of the loop, as those of a network do. */
#include "service/analytics/control_nodes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "analytics/asql.h"
#include "analytics/points.h"
#include "base/mem.h"
#include "service/analytics/analytics.h"
#include "service/kv/kv.h"
#include "service/node_calls.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

#define OTHERS 2

static struct service_rig rig;
static struct node {
    struct cn_disk *disk;
    struct cn_services services;
} nodes[OTHERS];
static long fail_after; /* questions; -1: never */
static unsigned questions;

static size_t list(void *data, struct cn_other items[], size_t max)
{
    (void)data;
    CHECK(max >= OTHERS);
    for (size_t i = 0; i < OTHERS; i++) {
        items[i].disk = i;
        snprintf(items[i].name, sizeof(items[i].name), "n%zu", i);
    }
    return OTHERS;
}

struct answer {
    uv_timer_t timer;
    struct cn_node_calls_question *question;
};

static void on_closed(uv_handle_t *handle)
{
    cn_free(handle);
}

static void on_answer(uv_timer_t *timer)
{
    struct answer *answer = CN_CONTAINER_OF(timer, struct answer, timer);
    struct cn_node_calls_question *question = answer->question;
    questions++;
    if (fail_after >= 0 && fail_after-- == 0)
        cn_err_set(&question->err, CN_ECLOSED, "it is gone");
    else
        (void)cn_analytics_asked(&nodes[question->disk].services, question->asked.data,
                                 question->asked.size, &question->answer, &question->err);
    question->done(question);
    uv_close((uv_handle_t *)timer, on_closed);
}

static void ask_other(void *data, struct cn_object_lane *lane,
                      struct cn_node_calls_question *question)
{
    (void)data;
    CHECK(question->def == &cn_service_analytics);
    struct answer *answer = CN_NEW(struct answer);
    answer->question = question;
    uv_timer_init(lane->loop, &answer->timer);
    uv_timer_start(&answer->timer, on_answer, 0, 0);
}

static const struct cn_node_calls others = {NULL, list, ask_other, NULL};

/* `count` points in a dataset of a disk, each with double1 = 1. */
static void write_points(struct cn_disk *disk, const char *dataset, unsigned count)
{
    struct cn_points_options options = {.disk = disk, .lane_count = 1};
    struct cn_points *points = cn_points_new(&options);
    uint32_t number;
    CHECK_INT(0, cn_points_dataset(points, dataset, &number, NULL));
    for (unsigned i = 0; i < count; i++) {
        struct cn_point point = {.time_ms = cn_clock_wall_ms(cn_clock_system()),
                                 .blob_count = 1,
                                 .double_count = 1,
                                 .blobs = {{"a text that takes some room", 27}},
                                 .doubles = {1}};
        cn_points_write(points, 0, number, &point);
        if (i % 10000 == 9999)
            cn_points_flush(points); /* or they would be sampled */
    }
    cn_points_free(points);
}

struct query {
    const char *sql;
    struct cn_analytics_nodes *nodes;
    struct cn_buf out;
    int rc;
    struct cn_err err;
    bool done;
    uv_async_t wake;
};

static int keep(void *data, const char *type, const void *bytes, size_t size)
{
    (void)type;
    cn_buf_append(&((struct query *)data)->out, bytes, size);
    return 0;
}

static void on_wake(uv_async_t *wake)
{
    CN_CONTAINER_OF(wake, struct query, wake)->done = true;
}

static void *run(void *data)
{
    struct query *query = data;
    query->nodes = cn_analytics_nodes_new(rig.node, rig.disk);
    CHECK(query->nodes);
    struct cn_asql asql = {.disk = &query->nodes->disk,
                           .now_ms = cn_clock_wall_ms(cn_clock_system()),
                           .write = keep,
                           .data = query};
    query->rc = cn_asql_run(&asql, query->sql, strlen(query->sql), &query->err);
    uv_async_send(&query->wake);
    return NULL;
}

/* What is answered; or "!" and why not. */
static const char *ask(const char *sql)
{
    static char text[1024];
    struct query query = {.sql = sql};
    pthread_t thread;
    uv_async_init(&rig.loop, &query.wake, on_wake);
    CHECK_INT(0, pthread_create(&thread, NULL, run, &query));
    service_rig_until(&rig, &query.done);
    CHECK_INT(0, pthread_join(thread, NULL));
    uv_close((uv_handle_t *)&query.wake, NULL);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    if (query.nodes->err.code)
        snprintf(text, sizeof(text), "!%s", query.nodes->err.text);
    else
        snprintf(text, sizeof(text), "%s", query.rc < 0 ? query.err.text : cn_buf_text(&query.out));
    cn_buf_fini(&query.out);
    cn_analytics_nodes_free(query.nodes);
    return text;
}

static void open_all(void)
{
    service_rig_open(&rig, storetest_disk(), &cn_kv_class, "$kv/test");
    rig.services.others = &others;
    fail_after = -1;
    questions = 0;
    for (size_t i = 0; i < OTHERS; i++) {
        nodes[i].disk = storetest_disk();
        nodes[i].services = (struct cn_services){.disk = nodes[i].disk};
    }
}

static void close_all(void)
{
    struct cn_disk *disk = rig.disk;
    service_rig_close(&rig);
    cn_disk_system_free(disk);
    for (size_t i = 0; i < OTHERS; i++)
        cn_disk_system_free(nodes[i].disk);
}

TEST(control_nodes, a_query_is_of_the_points_of_all_nodes)
{
    open_all();
    write_points(rig.disk, "visits", 10);
    write_points(nodes[0].disk, "visits", 200);
    write_points(nodes[0].disk, "visits", 3000); /* another process: another segment */
    write_points(nodes[1].disk, "elsewhere", 7);
    CHECK_STR("3210\n", ask("SELECT SUM(double1) FROM visits FORMAT TabSeparated"));
    CHECK_STR("7\n", ask("SELECT SUM(double1) FROM elsewhere FORMAT TabSeparated"));
    CHECK_STR("elsewhere\nvisits\n", ask("SHOW TABLES FORMAT TabSeparated"));
    CHECK_STR("there is no dataset \"nowhere\"", ask("SELECT 1 FROM nowhere"));
    close_all();
}

/* Larger than a piece: 1 MiB of texts and more. */
TEST(control_nodes, large_segments_come_in_pieces)
{
    open_all();
    write_points(nodes[1].disk, "visits", 150000);
    CHECK_STR("150000\t27\n",
              ask("SELECT SUM(double1), MAX(length(blob1)) FROM visits FORMAT TabSeparated"));
    CHECK(questions >= 6);
    close_all();
}

/* F2: wherever a node fails, the query does. */
TEST(control_nodes, a_query_fails_if_a_node_does)
{
    open_all();
    write_points(rig.disk, "visits", 10);
    write_points(nodes[0].disk, "visits", 100000);
    write_points(nodes[1].disk, "visits", 100000);
    const char *sql = "SELECT SUM(double1), MAX(length(blob1)) FROM visits FORMAT TabSeparated";
    CHECK_STR("200010\t27\n", ask(sql));
    unsigned all = questions;
    CHECK(all > 4);
    for (unsigned i = 0; i < all; i++) {
        fail_after = i;
        const char *answer = ask(sql);
        if (strstr(answer, "!the data points of node n") != answer)
            test_fail(__FILE__, __LINE__, "question %u failed, and it answers %s", i, answer);
    }
    fail_after = -1;
    CHECK_STR("200010\t27\n", ask(sql));
    close_all();
}

static int asked(const char *bytes, size_t size)
{
    struct cn_buf answer = {0};
    struct cn_err err = {0};
    int rc = cn_analytics_asked(&nodes[0].services, (const uint8_t *)bytes, size, &answer, &err);
    CHECK(rc == err.code);
    cn_buf_fini(&answer);
    return rc;
}

/* F3 */
TEST(control_nodes, names_that_others_ask_for_are_names_of_points)
{
    open_all();
    CHECK_INT(0, asked("\x04\x01", 2));
    CHECK_INT(CN_EPROTOCOL, asked("", 0));
    CHECK_INT(CN_EPROTOCOL, asked("\x04\x01\x09\x02..", 6));
    CHECK_INT(CN_EPROTOCOL, asked("\x04\x02\x09\x01v", 5));
    CHECK_INT(0, asked("\x04\x02\x09\x01v\x0d\x0e"
                       "20260101-1.seg",
                       21));
    CHECK_INT(CN_EPROTOCOL, asked("\x04\x02\x09\x01v\x0d\x0e"
                                  "../../../../sg",
                                  21));
    close_all();
}
