/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of the randomized check (test/stress/objects.mjs --language c): class Cell of
 * test/stress/worker.js in C, with the same methods, the same tables and the same promises. Every
 * operation that changes something has a name of its own and is noted in the same turn. */
#include <cairn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_MAX 20

struct cell {
    cairn_statement *note, *sum, *shift, *ops;
    int64_t n; /* what this instance believes */
    int started;
    int inside; /* how many are in a section that admits one */
    size_t fault_count;
    char faults[FAULTS_MAX][120];
};

/* An operation that ends in another turn. */
struct later {
    cairn_event *event;
    int64_t n;
    char op[32];
};

static void fault(struct cell *cell, const char *format, ...)
{
    va_list args;
    if (cell->fault_count == FAULTS_MAX)
        return;
    va_start(args, format);
    vsnprintf(cell->faults[cell->fault_count++], sizeof(cell->faults[0]), format, args);
    va_end(args);
}

static int64_t stored(cairn_object *object)
{
    int64_t n = 0;
    cairn->value_int(cairn->kv_get(object, "n"), &n);
    return n;
}

/* What is stored is what the only instance has in memory. */
static void begin(cairn_object *object, struct cell *cell)
{
    int64_t n = stored(object);
    if (!cell->started)
        fault(cell, "an event came in before create() had ended");
    if (n != cell->n)
        fault(cell, "another instance wrote: %lld is stored, %lld in memory", (long long)n,
              (long long)cell->n);
}

static void check_sum(struct cell *cell)
{
    if (cairn->sql_step(cell->sum) != 1 || cairn->sql_column_int(cell->sum, 0) != 2000)
        fault(cell, "a torn transaction: the pair sums to %lld",
              (long long)cairn->sql_column_int(cell->sum, 0));
    cairn->sql_reset(cell->sum);
}

/* --- its life -------------------------------------------------------------------------------- */

static void on_started(cairn_object *object, void *instance, void *data)
{
    struct cell *cell = instance;
    (void)data;
    cell->n = stored(object);
    cell->started = 1;
    cairn->unblock_concurrency(object);
}

static int create(cairn_object *object, void **instance)
{
    struct cell *cell = calloc(1, sizeof(*cell));
    *instance = cell;
    if (!cell)
        return cairn->error(object, NULL, "there is no memory left");
    int rc = cairn->sql_exec(object,
                             "CREATE TABLE IF NOT EXISTS ops(op TEXT PRIMARY KEY, n INTEGER);"
                             "CREATE TABLE IF NOT EXISTS pair(id INTEGER PRIMARY KEY, n INTEGER);"
                             "INSERT OR IGNORE INTO pair VALUES(1, 1000), (2, 1000)");
    if (rc < 0)
        return rc;
    cell->note = cairn->sql_prepare(object, "INSERT INTO ops VALUES(?, ?)");
    cell->sum = cairn->sql_prepare(object, "SELECT SUM(n) FROM pair");
    cell->shift = cairn->sql_prepare(object, "UPDATE pair SET n = n + ? WHERE id = ?");
    cell->ops = cairn->sql_prepare(object, "SELECT op, n FROM ops");
    if (!cell->note || !cell->sum || !cell->shift || !cell->ops)
        return CAIRN_ERROR;
    rc = cairn->block_concurrency(object);
    if (rc == 0 && cairn->timer_start(object, rand() % 3, on_started, NULL) < 0)
        rc = CAIRN_ERROR;
    return rc;
}

static void destroy(cairn_object *object, void *instance)
{
    (void)object;
    free(instance);
}

/* --- changes --------------------------------------------------------------------------------- */

/* One more, and its note; the new number, or negative. */
static int64_t increment(cairn_object *object, struct cell *cell, const char *op)
{
    int64_t n = stored(object) + 1;
    cairn_builder *builder = cairn->builder(object);
    cairn->build_int(builder, n);
    int rc = cairn->kv_put(object, "n", builder);
    if (rc == 0) {
        cell->n = n;
        cairn->sql_bind_text(cell->note, 1, op, strlen(op));
        cairn->sql_bind_int(cell->note, 2, n);
        rc = cairn->sql_step(cell->note);
    }
    return rc < 0 ? rc : n;
}

static int answer_number(cairn_event *event, int64_t n)
{
    if (n < 0)
        return (int)n;
    cairn->build_int(cairn->event_result(event), n);
    return 0;
}

static void end_later(struct later *later, int64_t n)
{
    if (answer_number(later->event, n) < 0)
        cairn->event_fail(later->event);
    else
        cairn->event_answer(later->event);
    free(later);
}

static struct later *later_of(cairn_event *event, const char *op, int64_t n)
{
    struct later *later = malloc(sizeof(*later));
    if (later) {
        later->event = event;
        later->n = n;
        snprintf(later->op, sizeof(later->op), "%s", op);
    }
    return later;
}

static void end_section(cairn_object *object, struct cell *cell, struct later *later)
{
    begin(object, cell);
    int64_t n = increment(object, cell, later->op);
    if (--cell->inside != 0)
        fault(cell, "two events in one section");
    cairn->unblock_concurrency(object);
    end_later(later, n);
}

static void on_waited(cairn_object *object, void *instance, void *data)
{
    end_section(object, instance, data);
}

static void on_bookmark(cairn_object *object, void *instance, const struct cairn_reply *reply,
                        void *data)
{
    (void)reply;
    end_section(object, instance, data);
}

/* Nothing comes in while it waits: for a timer, or for an answer of the store. */
static int section(cairn_object *object, struct cell *cell, cairn_event *event, const char *op,
                   int waits)
{
    begin(object, cell);
    if (++cell->inside != 1)
        fault(cell, "two events in one section");
    struct later *later = later_of(event, op, 0);
    int rc = later ? cairn->block_concurrency(object) : CAIRN_ERROR;
    if (rc < 0)
        return rc;
    rc = waits ? (int)cairn->timer_start(object, rand() % 3, on_waited, later)
               : cairn->bookmark_now(object, on_bookmark, later);
    return rc < 0 ? rc : CAIRN_LATER;
}

static int transaction(cairn_object *object, struct cell *cell, cairn_event *event, const char *op,
                       int fails)
{
    begin(object, cell);
    int64_t before = cell->n;
    int rc = cairn->transaction_begin(object);
    int64_t n = rc < 0 ? rc : increment(object, cell, op);
    if (n >= 0 && !fails) {
        rc = cairn->transaction_commit(object);
        return rc < 0 ? rc : answer_number(event, n);
    }
    cell->n = before;
    cairn->transaction_rollback(object);
    return fails ? cairn->error(object, NULL, "meant to fail") : (int)n;
}

static void on_answer(cairn_object *object, void *instance, void *data)
{
    struct later *later = data;
    (void)object, (void)instance;
    end_later(later, later->n);
}

/* The change is made, the turn ends, and later comes the answer. */
static int and_wait(cairn_object *object, struct cell *cell, cairn_event *event, const char *op)
{
    begin(object, cell);
    int64_t n = increment(object, cell, op);
    struct later *later = n < 0 ? NULL : later_of(event, op, n);
    if (!later || cairn->timer_start(object, rand() % 5, on_answer, later) < 0)
        return n < 0 ? (int)n : CAIRN_ERROR;
    return CAIRN_LATER;
}

static void on_relayed(cairn_object *object, void *instance, const struct cairn_reply *reply,
                       void *data)
{
    cairn_event *event = data;
    (void)instance;
    if (reply->error) {
        cairn->error(object, NULL, "%s", reply->error);
        cairn->event_fail(event);
        return;
    }
    cairn->build_value(cairn->event_result(event), reply->value);
    cairn->event_answer(event);
}

/* The change happens in another object, perhaps on another lane. */
static int relay(cairn_object *object, cairn_event *event, const cairn_value *arguments)
{
    cairn_builder *builder = cairn->builder(object);
    const char *name = cairn->value_text(cairn->value_at(arguments, 1), NULL);
    const char *method = cairn->value_text(cairn->value_at(arguments, 2), NULL);
    cairn->build_array(builder);
    cairn->build_value(builder, cairn->value_at(arguments, 0));
    cairn->build_end(builder);
    int rc = cairn->object_call(object, "CELL", name, method, builder, on_relayed, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

static int shift(struct cell *cell, int64_t amount, int64_t id)
{
    cairn->sql_bind_int(cell->shift, 1, amount);
    cairn->sql_bind_int(cell->shift, 2, id);
    return cairn->sql_step(cell->shift);
}

/* The sum of the pair never changes, whoever looks. */
static int move(cairn_object *object, struct cell *cell, int64_t amount, int fails)
{
    check_sum(cell);
    int rc = cairn->transaction_begin(object);
    if (rc == 0)
        rc = shift(cell, -amount, 1);
    if (rc == 0 && fails) {
        cairn->transaction_rollback(object);
        return cairn->error(object, NULL, "meant to fail");
    }
    if (rc == 0)
        rc = shift(cell, amount, 2);
    return rc < 0 ? rc : cairn->transaction_commit(object);
}

/* --- looks ----------------------------------------------------------------------------------- */

static void build_faults(cairn_builder *result, struct cell *cell)
{
    cairn->build_array(result);
    for (size_t i = 0; i < cell->fault_count; i++)
        cairn->build_text(result, cell->faults[i], strlen(cell->faults[i]));
    cairn->build_end(result);
    cell->fault_count = 0;
}

/* { n, ops: [[op, n], ...], faults } */
static int all(cairn_object *object, struct cell *cell, cairn_event *event)
{
    cairn_builder *result = cairn->event_result(event);
    int rc;
    begin(object, cell);
    check_sum(cell);
    cairn->build_object(result);
    cairn->build_name(result, "n");
    cairn->build_int(result, cell->n);
    cairn->build_name(result, "ops");
    cairn->build_array(result);
    while ((rc = cairn->sql_step(cell->ops)) == 1) {
        size_t size;
        const char *op = cairn->sql_column_text(cell->ops, 0, &size);
        cairn->build_array(result);
        cairn->build_text(result, op, size);
        cairn->build_int(result, cairn->sql_column_int(cell->ops, 1));
        cairn->build_end(result);
    }
    cairn->build_end(result);
    cairn->build_name(result, "faults");
    build_faults(result, cell);
    cairn->build_end(result);
    return rc;
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    struct cell *cell = instance;
    const char *method = cairn->event_method(event);
    const cairn_value *arguments = cairn->event_arguments(event);
    const char *op = cairn->value_text(cairn->value_at(arguments, 0), NULL);
    int fails = cairn->value_bool(cairn->value_at(arguments, 1));
    int64_t amount = 0;
    if (strcmp(method, "incSync") == 0) {
        begin(object, cell);
        return answer_number(event, increment(object, cell, op));
    }
    if (strcmp(method, "incAsync") == 0)
        return section(object, cell, event, op, 0);
    if (strcmp(method, "incSection") == 0)
        return section(object, cell, event, op, 1);
    if (strcmp(method, "incTransaction") == 0)
        return transaction(object, cell, event, op, fails);
    if (strcmp(method, "incAndWait") == 0)
        return and_wait(object, cell, event, op);
    if (strcmp(method, "relay") == 0)
        return relay(object, event, arguments);
    if (strcmp(method, "move") == 0) {
        cairn->value_int(cairn->value_at(arguments, 0), &amount);
        return move(object, cell, amount, fails);
    }
    if (strcmp(method, "read") == 0) {
        begin(object, cell);
        check_sum(cell);
        return answer_number(event, stored(object));
    }
    if (strcmp(method, "takeFaults") == 0) {
        build_faults(cairn->event_result(event), cell);
        return 0;
    }
    if (strcmp(method, "all") == 0)
        return all(object, cell, event);
    if (strcmp(method, "reset") == 0)
        cairn->abort(object, "meant to reset");
    return cairn->error(object, "TypeError", "there is no method \"%s\"", method);
}

static const struct cairn_class classes[] = {
    {.name = "Cell", .create = create, .destroy = destroy, .call = call},
};
CAIRN_MODULE(classes)
