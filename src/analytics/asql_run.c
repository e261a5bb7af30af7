/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_run.c - runs a query: rows go through WHERE into groups, or to the result; groups
 * go through HAVING to the result; the result is sorted and cut. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analytics/asql_private.h"
#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"

/* A row of the result: its values, then those that it is sorted by. */
struct out {
    struct cn_value *values;
    size_t number; /* equal ones stay as they came */
};

struct group {
    struct cn_value *keys;
    struct cn_state *states; /* one for each aggregate */
};

struct run {
    struct cn_plan *plan;
    struct cn_arena *arena;
    struct cn_row row;
    struct cn_buf key;     /* scratch */
    struct cn_value *keys; /* of the present row */
    struct cn_map by_key;
    struct group *groups; /* malloc'ed */
    size_t group_count, group_capacity;
    struct out *outs; /* malloc'ed */
    size_t out_count, out_capacity;
    struct cn_map distinct; /* rows that are in the result */
    size_t enough;          /* rows, if they need not be sorted */
};

static int check_memory(const struct run *run, struct cn_err *err)
{
    size_t size = run->arena->size + run->out_capacity * sizeof(*run->outs) +
                  run->group_count * (sizeof(struct group) + 64);
    if (size > CN_ASQL_MEMORY_MAX)
        return cn_err_set(err, CN_ELIMIT,
                          "the query needs more than %zu MiB for its groups and results",
                          CN_ASQL_MEMORY_MAX >> 20);
    if (run->row.too_large)
        return cn_err_set(err, CN_ELIMIT, "a text of the result becomes too long");
    return 0;
}

/* --- results --------------------------------------------------------------------------------- */

static bool seen_before(struct run *run, const struct cn_value *values)
{
    cn_buf_clear(&run->key);
    for (size_t i = 0; i < run->plan->item_count; i++)
        cn_value_append_key(&run->key, run->plan->select[i]->type.kind, &values[i]);
    run->arena->size += run->key.size + 64;
    return cn_map_set(&run->distinct, run->key.data, run->key.size, run) != NULL;
}

static size_t order_count(const struct run *run)
{
    bool single = run->plan->aggregated && run->plan->query->group.count == 0;
    return single ? 0 : run->plan->query->order.count;
}

/* Adds what the present row, or group, gives. */
static void add_out(struct run *run)
{
    struct cn_plan *plan = run->plan;
    size_t count = plan->item_count + order_count(run);
    struct cn_value *values = cn_arena_alloc(run->arena, (count + 1) * sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        const struct cn_expr *expr =
            i < plan->item_count ? plan->select[i] : plan->order[i - plan->item_count];
        values[i] = cn_value_keep(run->arena, expr->type.kind, cn_expr_eval(&run->row, expr));
    }
    if (plan->query->distinct && seen_before(run, values))
        return;
    CN_GROW(run->outs, run->out_count, run->out_capacity);
    run->outs[run->out_count] = (struct out){values, run->out_count};
    run->out_count++;
}

static int compare_outs(const void *left, const void *right, void *data)
{
    const struct out *a = left, *b = right;
    const struct cn_plan *plan = ((struct run *)data)->plan;
    for (size_t i = 0; i < plan->query->order.count; i++) {
        size_t at = plan->item_count + i;
        int order = cn_value_compare(plan->order[i]->type.kind, &a->values[at], &b->values[at]);
        if (order)
            return plan->query->order.items[i].descending ? -order : order;
    }
    return (a->number > b->number) - (a->number < b->number);
}

/* --- groups ---------------------------------------------------------------------------------- */

static struct group *new_group(struct run *run)
{
    struct cn_plan *plan = run->plan;
    CN_GROW(run->groups, run->group_count, run->group_capacity);
    struct group *group = &run->groups[run->group_count++];
    group->keys = cn_arena_alloc(run->arena, (plan->query->group.count + 1) * sizeof(*group->keys));
    group->states =
        cn_arena_alloc(run->arena, (plan->aggregate_count + 1) * sizeof(*group->states));
    return group;
}

/* The group of the present row. The map keeps numbers, for groups move; they count from 1. */
static struct group *find_group(struct run *run)
{
    struct cn_plan *plan = run->plan;
    size_t count = plan->query->group.count;
    if (count == 0)
        return &run->groups[0];
    struct cn_value *keys = run->keys;
    cn_buf_clear(&run->key);
    for (size_t i = 0; i < count; i++) {
        keys[i] = cn_expr_eval(&run->row, plan->group[i]);
        cn_value_append_key(&run->key, plan->group[i]->type.kind, &keys[i]);
    }
    uintptr_t number = (uintptr_t)cn_map_find(&run->by_key, run->key.data, run->key.size);
    if (number)
        return &run->groups[number - 1];
    struct group *group = new_group(run);
    for (size_t i = 0; i < count; i++)
        group->keys[i] = cn_value_keep(run->arena, plan->group[i]->type.kind, keys[i]);
    run->arena->size += run->key.size;
    cn_map_set(&run->by_key, run->key.data, run->key.size, (void *)(uintptr_t)run->group_count);
    return group;
}

static int finish_groups(struct run *run, struct cn_err *err)
{
    struct cn_plan *plan = run->plan;
    struct cn_value *results =
        cn_arena_alloc(run->arena, (plan->aggregate_count + 1) * sizeof(*results));
    int rc = 0;
    for (size_t i = 0; i < run->group_count && rc == 0; i++) {
        struct group *group = &run->groups[i];
        for (size_t k = 0; k < plan->aggregate_count; k++)
            results[k] =
                plan->aggregates[k].finish(&group->states[k], &plan->aggregates[k], run->arena);
        run->row.keys = group->keys;
        run->row.aggregates = results;
        if (!plan->having || cn_expr_is_true(&run->row, plan->having))
            add_out(run);
        cn_arena_clear(&run->row.scratch);
        rc = check_memory(run, err);
    }
    return rc;
}

/* --- rows ------------------------------------------------------------------------------------ */

static int take_row(struct run *run, struct cn_err *err)
{
    struct cn_plan *plan = run->plan;
    if (!plan->where || cn_expr_is_true(&run->row, plan->where)) {
        if (plan->aggregated) {
            struct group *group = find_group(run);
            for (size_t i = 0; i < plan->aggregate_count; i++)
                cn_aggregate_add(&group->states[i], &plan->aggregates[i], &run->row, run->arena);
        } else {
            add_out(run);
        }
    }
    cn_arena_clear(&run->row.scratch);
    return check_memory(run, err);
}

static bool is_cancelled(const struct run *run)
{
    const struct cn_asql *asql = run->plan->asql;
    return asql->cancelled && asql->cancelled(asql->data);
}

static int take_points(struct run *run, struct cn_err *err)
{
    struct cn_plan *plan = run->plan;
    struct cn_points_scan scan;
    struct cn_points_batch batch;
    /* A block that no column is read of has rows too. */
    int rc = cn_points_scan_open(&scan, plan->asql->disk, plan->query->dataset, plan->used,
                                 plan->first_ms, plan->last_ms, err);
    if (rc < 0)
        return rc;
    run->row.batch = &batch;
    run->row.dataset = plan->query->dataset;
    while (run->out_count < run->enough && (rc = cn_points_scan_next(&scan, &batch, err)) > 0) {
        rc = is_cancelled(run) ? cn_err_set(err, CN_EABORTED, "the query was cancelled") : 0;
        for (uint32_t i = 0; rc == 0 && i < batch.row_count && run->out_count < run->enough; i++) {
            run->row.index = i;
            rc = take_row(run, err);
        }
        if (rc < 0)
            break;
    }
    if (scan.damaged)
        cn_warn("analytics: %s has %llu damaged places, which were passed over",
                plan->query->dataset, (unsigned long long)scan.damaged);
    if (rc >= 0 && scan.holes) /* sums and counts would be wrong */
        rc = cn_err_set(
            err, CN_ECORRUPT,
            "%llu blocks of %s are damaged: \"cairn check\" names their files, and without"
            " those the rest can be asked",
            (unsigned long long)scan.holes, plan->query->dataset);
    cn_points_scan_close(&scan);
    return rc < 0 ? rc : 0;
}

static int take_table(struct run *run, const struct cn_asql_table *table, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < table->row_count && run->out_count < run->enough; i++) {
        run->row.values = table->rows[i];
        rc = i % 4096 == 0 && is_cancelled(run)
                 ? cn_err_set(err, CN_EABORTED, "the query was cancelled")
                 : take_row(run, err);
    }
    return rc;
}

static void finish_table(struct run *run, struct cn_asql_table *table)
{
    struct cn_plan *plan = run->plan;
    if (order_count(run) && run->out_count)
        qsort_r(run->outs, run->out_count, sizeof(*run->outs), compare_outs, run);
    size_t begin = (uint64_t)plan->query->offset < run->out_count ? (size_t)plan->query->offset
                                                                  : run->out_count;
    size_t count = run->out_count - begin;
    if (plan->query->limit >= 0 && (uint64_t)plan->query->limit < count)
        count = (size_t)plan->query->limit;
    *table = (struct cn_asql_table){
        .column_count = plan->item_count, .row_count = count, .row_count_all = run->out_count};
    table->columns = cn_arena_alloc(run->arena, plan->item_count * sizeof(*table->columns));
    for (size_t i = 0; i < plan->item_count; i++)
        table->columns[i] = (struct cn_asql_column){plan->items[i].name, plan->select[i]->type};
    table->rows = cn_arena_alloc(run->arena, (count + 1) * sizeof(*table->rows));
    for (size_t i = 0; i < count; i++)
        table->rows[i] = run->outs[begin + i].values;
}

static void free_run(struct run *run)
{
    for (size_t i = 0; i < run->group_count; i++) {
        for (size_t k = 0; k < run->plan->aggregate_count; k++)
            cn_state_fini(&run->groups[i].states[k]);
    }
    cn_free(run->groups);
    cn_free(run->outs);
    cn_map_fini(&run->by_key);
    cn_map_fini(&run->distinct);
    cn_buf_fini(&run->key);
    cn_arena_fini(&run->row.scratch);
}

static int run_plan(struct cn_plan *plan, const struct cn_asql_table *source,
                    struct cn_asql_table *table, struct cn_err *err)
{
    struct run run = {.plan = plan, .arena = plan->arena, .enough = SIZE_MAX};
    cn_map_init(&run.by_key);
    cn_map_init(&run.distinct);
    const struct cn_ast_query *query = plan->query;
    run.keys = cn_arena_alloc(plan->arena, (query->group.count + 1) * sizeof(*run.keys));
    if (!plan->aggregated && query->order.count == 0 && query->limit >= 0 &&
        query->offset < INT32_MAX && query->limit < INT32_MAX)
        run.enough = (size_t)(query->limit + query->offset);
    if (plan->aggregated && query->group.count == 0)
        (void)new_group(&run); /* there also if no row is */
    int rc = source             ? take_table(&run, source, err)
             : plan->of_dataset ? take_points(&run, err)
                                : take_row(&run, err);
    if (rc == 0 && plan->aggregated)
        rc = finish_groups(&run, err);
    if (rc == 0)
        finish_table(&run, table);
    free_run(&run);
    return rc;
}

/* --- sources --------------------------------------------------------------------------------- */

/* "dataset" is the last one; the others are in the order of enum cn_points_column. */
static struct cn_asql_column *dataset_columns(struct cn_arena *arena)
{
    struct cn_asql_column *columns =
        cn_arena_alloc(arena, (CN_POINTS_COLUMN_COUNT + 1) * sizeof(*columns));
    for (unsigned i = 0; i <= CN_POINTS_COLUMN_COUNT; i++) {
        struct cn_buf name = {0};
        enum cn_kind kind = i == CN_POINTS_TIME                               ? CN_KIND_TIME
                            : i == CN_POINTS_INTERVAL                         ? CN_KIND_INT
                            : i >= CN_POINTS_DOUBLE && i < CN_POINTS_INTERVAL ? CN_KIND_NUMBER
                                                                              : CN_KIND_TEXT;
        if (i == CN_POINTS_TIME)
            cn_buf_append_str(&name, "timestamp");
        else if (i == CN_POINTS_INDEX)
            cn_buf_append_str(&name, "index1");
        else if (i < CN_POINTS_DOUBLE)
            cn_buf_printf(&name, "blob%u", i - CN_POINTS_BLOB + 1);
        else if (i < CN_POINTS_INTERVAL)
            cn_buf_printf(&name, "double%u", i - CN_POINTS_DOUBLE + 1);
        else
            cn_buf_append_str(&name, i == CN_POINTS_INTERVAL ? "_sample_interval" : "dataset");
        columns[i] = (struct cn_asql_column){cn_arena_text(arena, (char *)name.data, name.size),
                                             {.kind = kind, .bits = 32}};
        cn_buf_fini(&name);
    }
    return columns;
}

static int show(const struct cn_asql *asql, struct cn_arena *arena, enum cn_statement statement,
                struct cn_asql_table *table, struct cn_err *err)
{
    struct cn_disk_entries entries = {0};
    if (statement == CN_SHOW_TABLES) {
        int rc = cn_disk_entries(asql->disk, CN_POINTS_DIR, &entries);
        if (rc < 0 && rc != -ENOENT)
            return cn_err_errno(err, -rc, "cannot list the datasets");
    }
    *table = (struct cn_asql_table){.column_count = 1};
    table->columns = cn_arena_alloc(arena, sizeof(*table->columns));
    table->columns[0] = (struct cn_asql_column){
        statement == CN_SHOW_TABLES ? "dataset" : "timezone", {.kind = CN_KIND_TEXT}};
    size_t most = entries.count + 1;
    table->rows = cn_arena_alloc(arena, most * sizeof(*table->rows));
    for (size_t i = 0; i < most; i++) {
        bool tables = statement == CN_SHOW_TABLES;
        if (tables && (i == entries.count || !entries.items[i].is_dir))
            continue;
        const char *name = tables ? entries.items[i].name : "Etc/UTC";
        struct cn_value *value = cn_arena_alloc(arena, sizeof(*value));
        value->size = (uint32_t)strlen(name);
        value->text = cn_arena_text(arena, name, value->size);
        table->rows[table->row_count++] = value;
    }
    table->row_count_all = table->row_count;
    if (entries.items)
        cn_disk_entries_fini(&entries);
    return 0;
}

int cn_asql_execute(const struct cn_asql *asql, struct cn_arena *arena,
                    const struct cn_ast_query *query, struct cn_asql_table *table,
                    struct cn_err *err)
{
    if (query->statement != CN_SELECT)
        return show(asql, arena, query->statement, table, err);
    struct cn_asql_table source;
    struct cn_plan *plan = cn_arena_alloc(arena, sizeof(*plan));
    plan->asql = asql;
    plan->arena = arena;
    plan->query = query;
    int rc = query->source ? cn_asql_execute(asql, arena, query->source, &source, err) : 0;
    if (rc < 0)
        return rc;
    if (query->source) {
        plan->columns = source.columns;
        plan->column_count = source.column_count;
    } else if (query->dataset) {
        plan->of_dataset = true;
        plan->columns = dataset_columns(arena);
        plan->column_count = CN_POINTS_COLUMN_COUNT + 1;
    }
    rc = cn_asql_plan(plan, err);
    if (rc == 0)
        rc = run_plan(plan, query->source ? &source : NULL, table, err);
    return rc;
}

int cn_asql_run(const struct cn_asql *asql, const char *text, size_t size, struct cn_err *err)
{
    struct cn_arena arena = {0};
    struct cn_ast_query *query;
    struct cn_asql_table table;
    struct cn_err own = {0};
    if (!err)
        err = &own;
    int rc = cn_asql_parse(&arena, text, size, &query, err);
    if (rc == 0)
        rc = cn_asql_execute(asql, &arena, query, &table, err);
    if (rc == 0)
        rc = cn_asql_write(asql, query->format, &table);
    cn_arena_fini(&arena);
    return rc;
}
