/* SPDX-License-Identifier: Apache-2.0 */
/* D1 databases without JavaScript: answers, atomic calls, queries that leave the lane and what may
 * happen to them meanwhile. */
#include "service/d1/d1.h"

#include <string.h>

#include "base/mem.h"
#include "object/object.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

/* Counts to n, which takes the engine about 100 ns a step. */
#define COUNT_TO(n) \
    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " #n ") "

static struct cn_d1_call *query(struct service_rig *rig, const char *sql)
{
    struct cn_d1_call *call = cn_d1_call_new(rig->ns, CN_D1_ROWS);
    call->plain = true;
    cn_d1_call_query(call, sql, strlen(sql));
    return call;
}

/* Runs a query; true if its answer contains `text`. */
static bool says(struct service_rig *rig, const char *sql, const char *text)
{
    struct cn_d1_call *call = query(rig, sql);
    service_rig_call(rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    bool found = strstr(cn_buf_text(&call->json), text) != NULL;
    cn_service_call_free(&call->base);
    return found;
}

static struct cn_object *object_of(struct service_rig *rig)
{
    struct cn_object_key key = {.namespace_id = rig->ns->id};
    cn_id_from_name(&rig->ns->keys, CN_JURISDICTION_NONE, CN_D1_OBJECT, strlen(CN_D1_OBJECT),
                    key.id);
    return cn_map_find(&rig->lane.objects, &key, sizeof(key));
}

TEST(d1, answers_with_json)
{
    struct service_rig rig;
    service_rig_open(&rig, storetest_disk(), &cn_d1_class, "$d1/test");
    CHECK(says(&rig, "CREATE TABLE t(a, b)", "\"changed_db\":1"));
    CHECK(says(&rig, "INSERT INTO t VALUES (1, 'x\"y'), (2.5, x'00ff')", "\"changes\":2"));
    CHECK(says(&rig, "SELECT a, b FROM t",
               "{\"columns\":[\"a\",\"b\"],\"rows\":[[1,\"x\\\"y\"],[2.5,[0,255]]]}"));
    CHECK(says(&rig, "SELECT 1; SELECT 2 AS two; -- end", "\"rows\":[[2]]"));
    CHECK(says(&rig, "SELECT * FROM nope", "{\"error\":\"no such table: nope: SQLITE_ERROR\""));
    CHECK(says(&rig, " ;-- ", "{\"error\":\"SQL code did not contain a statement.\",\"index\":0}"));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(d1, a_call_is_one_transaction)
{
    struct service_rig rig;
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_d1_class, "$d1/test");
    CHECK(says(&rig, "CREATE TABLE t(a)", "success"));
    struct cn_d1_call *call = cn_d1_call_new(rig.ns, CN_D1_OBJECTS);
    static const char *const texts[] = {"INSERT INTO t VALUES (?)", "SELECT ?, 1", "SELECT 2"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(texts); i++) {
        cn_d1_call_query(call, texts[i], strlen(texts[i]));
        if (i == 0)
            cn_d1_call_value(call, CN_SQL_INT)->integer = 7;
    }
    service_rig_call(&rig, &call->base);
    CHECK(strstr(cn_buf_text(&call->json), "Wrong number of parameter bindings"));
    CHECK(strstr(cn_buf_text(&call->json), "\"index\":1}"));
    cn_service_call_free(&call->base);
    CHECK(says(&rig, "SELECT count(*) FROM t", "[[0]]"));
    CHECK(says(&rig, "INSERT INTO t VALUES (8)", "success"));
    service_rig_close(&rig);
    service_rig_open(&rig, disk, &cn_d1_class, "$d1/test");
    CHECK(says(&rig, "SELECT a FROM t", "[[8]]"));
    service_rig_close(&rig);
    cn_disk_system_free(disk);
}

TEST(d1, long_queries_leave_the_lane)
{
    struct service_rig rig;
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_d1_class, "$d1/test");
    CHECK(says(&rig, COUNT_TO(200000) "SELECT sum(i) FROM c", "[[20000100000]]"));
    CHECK(says(&rig, "CREATE TABLE t(a)", "success"));
    CHECK(says(&rig, COUNT_TO(100000) "INSERT INTO t SELECT i FROM c", "\"changes\":100000"));
    service_rig_close(&rig);
    service_rig_open(&rig, disk, &cn_d1_class, "$d1/test");
    CHECK(says(&rig, "SELECT count(*) FROM t", "[[100000]]"));
    service_rig_close(&rig);
    cn_disk_system_free(disk);
}

struct sent {
    bool done;
    int code;
};

static void on_done(struct cn_service_call *call)
{
    struct sent *sent = call->call.envelope.data;
    sent->done = true;
    sent->code = call->call.envelope.err.code;
    cn_service_call_free(call);
}

static void send_query(struct service_rig *rig, const char *sql, struct sent *sent)
{
    struct cn_d1_call *call = query(rig, sql);
    call->base.call.envelope.data = sent;
    cn_service_call_send(&call->base, &rig->lane, on_done);
}

TEST(d1, calls_wait_for_the_long_one)
{
    struct service_rig rig;
    service_rig_open(&rig, storetest_disk(), &cn_d1_class, "$d1/test");
    CHECK(says(&rig, "CREATE TABLE t(a)", "success"));
    struct sent first = {0}, second = {0};
    send_query(&rig, COUNT_TO(300000) "INSERT INTO t SELECT i FROM c", &first);
    send_query(&rig, "DELETE FROM t", &second);
    service_rig_until(&rig, &second.done);
    CHECK(first.done);
    CHECK(says(&rig, "SELECT count(*) FROM t", "[[0]]"));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

/* Sends an endless query and returns once it runs on a thread. */
static void send_endless(struct service_rig *rig, struct sent *sent)
{
    *sent = (struct sent){0};
    send_query(
        rig, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT sum(i) FROM c",
        sent);
    while (!object_of(rig) || !object_of(rig)->transactions) {
        cn_object_lane_step(&rig->lane);
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
}

TEST(d1, a_reset_ends_the_query_on_its_thread)
{
    struct service_rig rig;
    struct sent sent;
    service_rig_open(&rig, storetest_disk(), &cn_d1_class, "$d1/test");
    CHECK(says(&rig, "CREATE TABLE t(a)", "success"));
    send_endless(&rig, &sent);
    cn_object_reset(object_of(&rig), CN_FAULT_RESET, CN_EABORTED, "reset by the test");
    service_rig_until(&rig, &sent.done);
    CHECK_INT(CN_EABORTED, sent.code);
    CHECK(says(&rig, "SELECT count(*) FROM t", "[[0]]"));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(d1, a_stopping_node_ends_the_query_on_its_thread)
{
    struct service_rig rig;
    struct sent sent;
    service_rig_open(&rig, storetest_disk(), &cn_d1_class, "$d1/test");
    send_endless(&rig, &sent);
    service_rig_close(&rig);
    CHECK(sent.done);
    CHECK_INT(CN_ECLOSED, sent.code);
    cn_disk_system_free(rig.disk);
}
