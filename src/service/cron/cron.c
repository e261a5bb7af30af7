/* SPDX-License-Identifier: Apache-2.0 */
#include "service/cron/cron.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/wire.h"
#include "store/database.h"

static const char *const schema[] = {
    "CREATE TABLE trigger (expression TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, expression TEXT NOT NULL,"
    " scheduled INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER, manual INTEGER NOT NULL,"
    " outcome TEXT, message TEXT);",
};

enum {
    SQL_LAST,
    SQL_SET_LAST,
    SQL_START,
    SQL_FORGET,
    SQL_FINISH,
    SQL_INTERRUPTED,
    SQL_LIST,
    SQL_LATEST,
    SQL_COUNT,
};
#define RUN_COLUMNS "id, expression, scheduled, started, ended, manual, outcome, message"
static const char *const sql_texts[SQL_COUNT] = {
    [SQL_LAST] = "SELECT last FROM trigger WHERE expression = ?1",
    [SQL_SET_LAST] = "INSERT OR REPLACE INTO trigger VALUES (?1, ?2)",
    [SQL_START] =
        "INSERT INTO run (expression, scheduled, started, manual) VALUES (?1, ?2, ?3, ?4)",
    [SQL_FORGET] = "DELETE FROM run WHERE id <= ?1",
    [SQL_FINISH] = "UPDATE run SET ended = ?2, outcome = ?3, message = ?4 WHERE id = ?1",
    [SQL_INTERRUPTED] = "UPDATE run SET outcome = 'interrupted' WHERE outcome IS NULL",
    [SQL_LIST] = "SELECT " RUN_COLUMNS " FROM run ORDER BY id DESC",
    [SQL_LATEST] = "SELECT " RUN_COLUMNS " FROM run WHERE expression = ?1 ORDER BY id DESC LIMIT 1",
};

struct crons {
    struct cn_object *object;
    struct cn_service_sql sql;
};

static int64_t now_ms(struct crons *crons)
{
    return cn_clock_wall_ms(cn_node_clock(crons->object->lane->node));
}

static int get(struct crons *crons, unsigned which, const char *expression,
               struct cn_statement **statement, struct cn_err *err)
{
    struct cn_database *db = cn_object_database(crons->object, err);
    if (!db)
        return err->code;
    int rc = cn_service_sql_get(&crons->sql, db, which, statement, err);
    if (rc == 0 && expression)
        rc = cn_statement_bind_text(*statement, 1, expression, strlen(expression), false, err);
    return rc;
}

/* 1: found; 0: it is new. */
static int read_last(struct crons *crons, const char *expression, int64_t *last, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = get(crons, SQL_LAST, expression, &statement, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(statement, err);
    if (rc > 0)
        *last = cn_statement_column_int(statement, 0);
    cn_statement_reset(statement);
    return rc;
}

static int set_last(struct crons *crons, const char *expression, int64_t last, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = get(crons, SQL_SET_LAST, expression, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, last, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static int op_open(struct crons *crons, struct cn_cron_call *call, struct cn_err *err)
{
    int rc = read_last(crons, call->expression, &call->last_ms, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    call->last_ms = now_ms(crons);
    return set_last(crons, call->expression, call->last_ms, err);
}

static int op_claim(struct crons *crons, struct cn_cron_call *call, struct cn_err *err)
{
    int64_t last = INT64_MIN;
    int rc = read_last(crons, call->expression, &last, err);
    if (rc < 0)
        return rc;
    if (!call->manual && last >= call->scheduled_ms)
        return 0; /* C1 */
    rc = call->manual ? 0 : set_last(crons, call->expression, call->scheduled_ms, err);
    struct cn_statement *statement;
    if (rc == 0)
        rc = get(crons, SQL_START, call->expression, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, call->scheduled_ms, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 3, now_ms(crons), err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 4, call->manual, err);
    if (rc == 0)
        rc = cn_service_sql_run(statement, err);
    if (rc < 0)
        return rc;
    call->run = cn_database_last_rowid(crons->object->db);
    call->claimed = true;
    rc = get(crons, SQL_FORGET, NULL, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, call->run - CN_CRON_RUNS_MAX, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static int op_finish(struct crons *crons, struct cn_cron_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = get(crons, SQL_FINISH, NULL, &statement, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 1, call->run, err);
    if (rc == 0)
        rc = cn_statement_bind_int(statement, 2, now_ms(crons), err);
    if (rc == 0)
        rc = cn_statement_bind_text(statement, 3, call->outcome, strlen(call->outcome), false, err);
    if (rc == 0)
        rc = call->message ? cn_statement_bind_text(statement, 4, call->message,
                                                    strlen(call->message), false, err)
                           : cn_statement_bind_null(statement, 4, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static void append_text(struct cn_buf *out, struct cn_statement *statement, int column)
{
    size_t size;
    if (cn_statement_column_type(statement, column) == CN_SQL_NULL) {
        cn_buf_append_str(out, "null");
        return;
    }
    const char *text = cn_statement_column_text(statement, column, &size);
    cn_buf_append_json(out, text, size);
}

static int op_list(struct crons *crons, struct cn_cron_call *call, struct cn_err *err)
{
    struct cn_statement *statement;
    struct cn_buf *out = &call->runs;
    bool all = call->expression[0] == 0;
    int rc =
        get(crons, all ? SQL_LIST : SQL_LATEST, all ? NULL : call->expression, &statement, err);
    cn_buf_append_byte(out, '[');
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        rc = 0;
        cn_buf_printf(out, "%s{\"id\":%" PRId64 ",\"cron\":", out->size > 1 ? "," : "",
                      cn_statement_column_int(statement, 0));
        append_text(out, statement, 1);
        cn_buf_printf(out, ",\"scheduledTime\":%" PRId64 ",\"started\":%" PRId64 ",\"ended\":",
                      cn_statement_column_int(statement, 2), cn_statement_column_int(statement, 3));
        if (cn_statement_column_type(statement, 4) == CN_SQL_NULL)
            cn_buf_append_str(out, "null");
        else
            cn_buf_printf(out, "%" PRId64, cn_statement_column_int(statement, 4));
        cn_buf_printf(out, ",\"manual\":%s,\"outcome\":",
                      cn_statement_column_int(statement, 5) ? "true" : "false");
        append_text(out, statement, 6);
        cn_buf_append_str(out, ",\"message\":");
        append_text(out, statement, 7);
        cn_buf_append_byte(out, '}');
    }
    if (rc == 0)
        cn_statement_reset(statement);
    cn_buf_append_byte(out, ']');
    return rc;
}

/* --- the class ------------------------------------------------------------------------------- */

static int crons_create(struct cn_object *object, void *class_data, void **instance,
                        struct cn_err *err)
{
    (void)class_data;
    if (!cn_service_open(object, schema, CN_ARRAY_COUNT(schema), err))
        return err->code;
    struct crons *crons = CN_NEW(struct crons);
    crons->object = object;
    cn_service_sql_init(&crons->sql, sql_texts, SQL_COUNT);
    cn_object_hold(object); /* so that it starts once per process: what is open then was cut off */
    *instance = crons;
    struct cn_statement *statement;
    int rc = get(crons, SQL_INTERRUPTED, NULL, &statement, err);
    return rc < 0 ? rc : cn_service_sql_run(statement, err);
}

static void crons_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    static int (*const ops[])(struct crons *, struct cn_cron_call *, struct cn_err *) = {
        [CN_CRON_OPEN] = op_open,
        [CN_CRON_CLAIM] = op_claim,
        [CN_CRON_FINISH] = op_finish,
        [CN_CRON_LIST] = op_list,
    };
    struct cn_cron_call *request =
        CN_CONTAINER_OF(cn_service_request(call), struct cn_cron_call, base);
    struct cn_err err;
    int rc = ops[request->base.call.op](instance, request, &err);
    cn_service_answer(object, call, rc, &err);
}

static void crons_release(struct cn_object *object, void *instance)
{
    (void)object;
    cn_service_sql_release(&((struct crons *)instance)->sql);
}

static void crons_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    struct crons *crons = instance;
    cn_service_sql_fini(&crons->sql);
    cn_free(crons);
}

const struct cn_class cn_cron_class = {
    .create = crons_create,
    .deliver = crons_deliver,
    .release = crons_release,
    .destroy = crons_destroy,
};

/* --- calls ----------------------------------------------------------------------------------- */

static void fini(struct cn_service_call *base)
{
    struct cn_cron_call *call = CN_CONTAINER_OF(base, struct cn_cron_call, base);
    cn_free(call->expression);
    cn_free(call->outcome);
    cn_free(call->message);
    cn_buf_fini(&call->runs);
}

struct cn_cron_call *cn_cron_call_new(struct cn_namespace *ns, enum cn_cron_op op,
                                      const char *expression)
{
    struct cn_cron_call *call = CN_NEW(struct cn_cron_call);
    cn_service_call_init(&call->base, ns, CN_CRON_OBJECT, op, fini);
    call->expression = cn_strdup(expression);
    return call;
}

/* --- to other nodes: service/wire.h ---------------------------------------------------------- */

#define EXPRESSION_MAX 1024
#define TEXT_MAX (64u << 10)
#define RUNS_MAX (16u << 20)

static const struct cn_wire_field asked[] = {
    CN_WIRE_TEXT(1, struct cn_cron_call, expression, EXPRESSION_MAX),
    CN_WIRE_INT(2, struct cn_cron_call, scheduled_ms),
    CN_WIRE_BOOL(3, struct cn_cron_call, manual),
    CN_WIRE_INT(4, struct cn_cron_call, run),
    CN_WIRE_TEXT(5, struct cn_cron_call, outcome, TEXT_MAX),
    CN_WIRE_TEXT(6, struct cn_cron_call, message, TEXT_MAX),
    CN_WIRE_END};

static const struct cn_wire_field answered[] = {
    CN_WIRE_INT(1, struct cn_cron_call, run), CN_WIRE_INT(2, struct cn_cron_call, last_ms),
    CN_WIRE_BOOL(3, struct cn_cron_call, claimed),
    CN_WIRE_BUF(4, struct cn_cron_call, runs, RUNS_MAX), CN_WIRE_END};

static bool check(const struct cn_service_call *base)
{
    const struct cn_cron_call *call = (const struct cn_cron_call *)base;
    return call->expression && (base->call.op != CN_CRON_FINISH || call->outcome);
}

static const struct cn_service_wire wire = {
    .size = sizeof(struct cn_cron_call),
    .ops = 1u << CN_CRON_OPEN | 1u << CN_CRON_CLAIM | 1u << CN_CRON_FINISH | 1u << CN_CRON_LIST,
    .asked = asked,
    .answered = answered,
    .fini = fini,
    .check = check,
};

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_cron = {
    .name = "cron",
    .title = "Cron triggers",
    .about = "a handler that runs by the clock",
    .page = "reference/cron.md",
    .class_ = &cn_cron_class,
    .operations = {"open", "claim", "finish", "list"},
    .wire = &wire,
    .config = &cn_cron_config,
    .routes = &cn_cron_routes,
    .command = &cn_cron_command,
};
