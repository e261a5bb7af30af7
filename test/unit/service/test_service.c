/* SPDX-License-Identifier: Apache-2.0 */
/* What every service builds on: calls to an object in C, its schema, its statements. */
#include "service/service.h"

#include "base/mem.h"
#include "object/object.h"
#include "store/database.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

/* --- a class with one table ------------------------------------------------------------------ */

enum { ADD, FAIL };
enum { SQL_ADD, SQL_SUM };

static const char *const texts[] = {"INSERT INTO t VALUES (?1)", "SELECT sum(n) FROM t"};
static const char *const steps[] = {"CREATE TABLE t(n INTEGER)", "ALTER TABLE t ADD COLUMN m"};
static int step_count = 1;

struct adding {
    struct cn_service_call base;
    int64_t n, sum;
    char *owned;
};

static int create(struct cn_object *object, void *class_data, void **instance, struct cn_err *err)
{
    CHECK(((struct cn_services *)class_data)->blobs);
    struct cn_database *db = cn_object_database(object, err);
    int rc = db ? cn_service_schema(db, steps, step_count, err) : err->code;
    if (rc < 0)
        return rc;
    struct cn_service_sql *sql = CN_NEW(struct cn_service_sql);
    cn_service_sql_init(sql, texts, CN_ARRAY_COUNT(texts));
    *instance = sql;
    return 0;
}

static void deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct adding *adding = (struct adding *)cn_service_request(call);
    struct cn_statement *statement;
    struct cn_err err;
    CHECK_INT(0, cn_service_sql_get(instance, object->db, SQL_ADD, &statement, &err));
    CHECK_INT(0, cn_statement_bind_int(statement, 1, adding->n, &err));
    CHECK_INT(0, cn_service_sql_run(statement, &err));
    if (adding->base.call.op == FAIL) {
        cn_database_rollback(object->db);
        cn_err_set(&err, CN_ELIMIT, "no more");
        cn_service_call_fail(call, &err);
        return;
    }
    CHECK_INT(0, cn_service_sql_get(instance, object->db, SQL_SUM, &statement, &err));
    CHECK_INT(1, cn_statement_step(statement, &err));
    adding->sum = cn_statement_column_int(statement, 0);
    cn_statement_reset(statement);
    cn_call_reply(call, NULL);
}

static void release(struct cn_object *object, void *instance)
{
    (void)object;
    cn_service_sql_release(instance);
}

static void destroy(struct cn_object *object, void *instance)
{
    (void)object;
    cn_service_sql_fini(instance);
    cn_free(instance);
}

static const struct cn_class adder = {
    .create = create, .deliver = deliver, .release = release, .destroy = destroy};

static void fini(struct cn_service_call *call)
{
    cn_free(((struct adding *)call)->owned);
}

static int add(struct service_rig *rig, unsigned op, int64_t n, int64_t *sum)
{
    struct adding *adding = CN_NEW(struct adding);
    cn_service_call_init(&adding->base, rig->ns, "one", op, fini);
    adding->n = n;
    adding->owned = cn_strdup("freed by fini");
    service_rig_call(rig, &adding->base);
    int code = adding->base.call.envelope.err.code;
    *sum = adding->sum;
    cn_service_call_free(&adding->base);
    return code;
}

/* A fresh one, whose sum is 2. */
static struct cn_disk *open_with_two(struct service_rig *rig)
{
    struct cn_disk *disk = storetest_disk();
    int64_t sum;
    step_count = 1;
    service_rig_open(rig, disk, &adder, "$test/a");
    CHECK_INT(0, add(rig, ADD, 2, &sum));
    return disk;
}

TEST(service, answers_and_keeps)
{
    struct service_rig rig;
    int64_t sum;
    struct cn_disk *disk = open_with_two(&rig);
    CHECK_INT(CN_ELIMIT, add(&rig, FAIL, 100, &sum));
    CHECK_INT(0, add(&rig, ADD, 3, &sum));
    CHECK_INT(5, sum);
    service_rig_close(&rig);
    service_rig_open(&rig, disk, &adder, "$test/a");
    CHECK_INT(0, add(&rig, ADD, 1, &sum));
    CHECK_INT(6, sum);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(service, schema_goes_forward_only)
{
    struct service_rig rig;
    struct cn_disk *disk = open_with_two(&rig);
    service_rig_close(&rig);
    step_count = 2; /* a new version: the table gets a second column, so one value is too few */
    service_rig_open(&rig, disk, &adder, "$test/a");
    struct cn_object_key key = {.namespace_id = rig.ns->id};
    cn_id_from_name(&rig.ns->keys, CN_JURISDICTION_NONE, "one", 3, key.id);
    struct cn_database *db;
    struct cn_err err;
    CHECK_INT(0, cn_database_open(rig.store, &key, NULL, &db, &err));
    CHECK_INT(0, cn_service_schema(db, steps, 2, &err));
    CHECK_INT(2, storetest_int(db, "PRAGMA user_version"));
    CHECK_INT(0, cn_service_schema(db, steps, 2, &err)); /* nothing left to do */
    CHECK_INT(CN_EVERSION, cn_service_schema(db, steps, 1, &err));
    cn_database_close(db);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(service, names_of_services_are_reserved)
{
    CHECK(cn_service_owns("$kv/x"));
    CHECK(!cn_service_owns("worker/Class"));
}
