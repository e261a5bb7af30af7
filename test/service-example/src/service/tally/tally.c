/* SPDX-License-Identifier: Apache-2.0 */
#include "service/tally/tally.h"

#include "base/assert.h"
#include "base/mem.h"
#include "object/object.h"
#include "service/wire.h"
#include "store/database.h"

/* JavaScript can say every number that a tally can have. */
static const char *const schema[] = {
    "CREATE TABLE tally (count INTEGER NOT NULL CHECK (abs(count) <= 9007199254740991));"
    "INSERT INTO tally VALUES (0)",
};
enum { SQL_GET, SQL_ADD, SQL_COUNT };
static const char *const texts[SQL_COUNT] = {"SELECT count FROM tally",
                                             "UPDATE tally SET count = count + ?1"};

static int create(struct cn_object *object, void *class_data, void **instance, struct cn_err *err)
{
    (void)class_data;
    if (!cn_service_open(object, schema, CN_ARRAY_COUNT(schema), err))
        return err->code;
    struct cn_service_sql *sql = CN_NEW(struct cn_service_sql);
    cn_service_sql_init(sql, texts, SQL_COUNT);
    *instance = sql;
    return 0;
}

static int add(struct cn_service_sql *sql, struct cn_database *db, int64_t by, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_service_sql_get(sql, db, SQL_ADD, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, by, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static int get(struct cn_service_sql *sql, struct cn_database *db, int64_t *count,
               struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = cn_service_sql_get(sql, db, SQL_GET, &statement, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(statement, err);
    if (rc > 0)
        *count = cn_statement_column_int(statement, 0);
    cn_statement_reset(statement);
    return rc < 0 ? rc : 0;
}

static void deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct cn_tally_call *tally = (struct cn_tally_call *)cn_service_request(call);
    struct cn_err err;
    int rc = call->op == CN_TALLY_ADD ? add(instance, object->db, tally->by, &err) : 0;
    if (rc == 0)
        rc = get(instance, object->db, &tally->count, &err);
    cn_service_answer(object, call, rc, &err);
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

static const struct cn_class tally_class = {
    .create = create, .deliver = deliver, .release = release, .destroy = destroy};

struct cn_tally_call *cn_tally_call_new(struct cn_namespace *ns, enum cn_tally_op op, int64_t by)
{
    struct cn_tally_call *call = CN_NEW(struct cn_tally_call);
    cn_service_call_init(&call->base, ns, "tally", op, NULL);
    call->by = by;
    return call;
}

static const struct cn_wire_field asked[] = {CN_WIRE_INT(1, struct cn_tally_call, by), CN_WIRE_END};
static const struct cn_wire_field answered[] = {CN_WIRE_INT(1, struct cn_tally_call, count),
                                                CN_WIRE_END};
static const struct cn_service_wire wire = {.size = sizeof(struct cn_tally_call),
                                            .ops = 1u << CN_TALLY_GET | 1u << CN_TALLY_ADD,
                                            .asked = asked,
                                            .answered = answered};

const struct cn_service_def cn_service_tally = {
    .name = "tally",
    .title = "Tallies",
    .about = "counters that stay",
    .page = "inside/hacking.md",
    .class_ = &tally_class,
    .operations = {"get", "add"},
    .wire = &wire,
    .config = &cn_tally_config,
    .natives = &cn_tally_natives,
    .routes = &cn_tally_routes,
    .command = &cn_tally_command,
};
