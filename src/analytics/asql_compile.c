/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_compile.c - what names mean, which types come out, which columns are read.
 *
 * An expression is compiled in one of two places. In a row, names are aliases of SELECT or columns
 * of the source. In a group (SELECT, HAVING and ORDER BY of a query that aggregates), what equals
 * an expression of GROUP BY is that key, a call of an aggregate is its result for the group, and a
 * column alone means nothing. Calls whose arguments are constants become constants. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "analytics/asql_private.h"
#include "base/assert.h"

#define DEPTH_MAX 1000
#define NODE_MAX 50000 /* aliases of aliases multiply */
#define COMPARED_MAX 200000

static struct cn_expr *compile(struct cn_plan *plan, const struct cn_ast *ast, bool in_group,
                               unsigned depth, struct cn_err *err);

/* --- columns --------------------------------------------------------------------------------- */

struct cn_value cn_eval_column_time(struct cn_row *row, const struct cn_expr *expr)
{
    (void)expr;
    const int64_t *times = row->batch->columns[CN_POINTS_TIME].values;
    int64_t ms = times ? times[row->index] : 0;
    return (struct cn_value){.integer = ms >= 0 ? ms / 1000 : (ms - 999) / 1000};
}

static struct cn_value eval_column_text(struct cn_row *row, const struct cn_expr *expr)
{
    const struct cn_points_values *column = &row->batch->columns[expr->column];
    if (!column->ends)
        return (struct cn_value){.text = "", .size = 0};
    uint32_t begin = row->index ? column->ends[row->index - 1] : 0;
    return (struct cn_value){.text = column->bytes + begin,
                             .size = column->ends[row->index] - begin};
}

static struct cn_value eval_column_double(struct cn_row *row, const struct cn_expr *expr)
{
    const double *values = row->batch->columns[expr->column].values;
    return (struct cn_value){.number = values ? values[row->index] : 0};
}

static struct cn_value eval_column_interval(struct cn_row *row, const struct cn_expr *expr)
{
    const int64_t *values = row->batch->columns[expr->column].values;
    return (struct cn_value){.integer = values ? values[row->index] : 1};
}

static struct cn_value eval_dataset(struct cn_row *row, const struct cn_expr *expr)
{
    (void)expr;
    return (struct cn_value){.text = row->dataset, .size = (uint32_t)strlen(row->dataset)};
}

static struct cn_value eval_value(struct cn_row *row, const struct cn_expr *expr)
{
    return row->values[expr->column];
}

static struct cn_value eval_key(struct cn_row *row, const struct cn_expr *expr)
{
    return row->keys[expr->column];
}

static struct cn_value eval_aggregate(struct cn_row *row, const struct cn_expr *expr)
{
    return row->aggregates[expr->column];
}

static struct cn_expr *new_expr(struct cn_plan *plan)
{
    plan->node_count++;
    return cn_arena_alloc(plan->arena, sizeof(struct cn_expr));
}

static struct cn_expr *compile_column(struct cn_plan *plan, unsigned index)
{
    struct cn_expr *expr = new_expr(plan);
    expr->column = index;
    expr->type = plan->columns[index].type;
    if (!plan->of_dataset) {
        expr->eval = eval_value;
        return expr;
    }
    if (index == CN_POINTS_COLUMN_COUNT) {
        expr->eval = eval_dataset;
        return expr;
    }
    plan->used |= (uint64_t)1 << index;
    expr->eval = index == CN_POINTS_TIME       ? cn_eval_column_time
                 : cn_points_is_text(index)    ? eval_column_text
                 : index == CN_POINTS_INTERVAL ? eval_column_interval
                                               : eval_column_double;
    return expr;
}

/* --- names ----------------------------------------------------------------------------------- */

/* The item of SELECT with this alias, unless it is being compiled: inside `x + 1 AS x`, x is the
 * column. */
static const struct cn_ast_item *find_alias(const struct cn_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct cn_ast_item *item = &plan->items[i];
        if (!item->has_alias || strcmp(item->name, name) != 0)
            continue;
        for (size_t k = 0; k < plan->open_count; k++) {
            if (plan->open[k] == item)
                return NULL;
        }
        return item;
    }
    return NULL;
}

static const struct cn_ast *behind_alias(const struct cn_plan *plan, const struct cn_ast *ast)
{
    const struct cn_ast_item *item = ast->kind == CN_AST_NAME ? find_alias(plan, ast->text) : NULL;
    return item ? item->expr : ast;
}

static bool same_list(struct cn_plan *plan, struct cn_ast **a, size_t a_count, struct cn_ast **b,
                      size_t b_count);

static bool same(struct cn_plan *plan, const struct cn_ast *a, const struct cn_ast *b)
{
    if (++plan->compared > COMPARED_MAX)
        return false; /* aliases that contain each other have no end */
    a = behind_alias(plan, a);
    b = behind_alias(plan, b);
    if (a == b)
        return true;
    if (a->kind != b->kind || a->size != b->size || a->distinct != b->distinct)
        return false;
    switch (a->kind) {
    case CN_AST_INT:
        return a->integer == b->integer;
    case CN_AST_NUMBER:
        return a->number == b->number;
    case CN_AST_INTERVAL:
        return a->integer == b->integer && a->unit == b->unit;
    case CN_AST_TEXT:
    case CN_AST_NAME:
        return memcmp(a->text, b->text, a->size) == 0;
    case CN_AST_CALL:
        break;
    }
    return strcasecmp(a->text, b->text) == 0 &&
           same_list(plan, a->args, a->arg_count, b->args, b->arg_count) &&
           same_list(plan, a->params, a->param_count, b->params, b->param_count);
}

static bool same_list(struct cn_plan *plan, struct cn_ast **a, size_t a_count, struct cn_ast **b,
                      size_t b_count)
{
    if (a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++) {
        if (!same(plan, a[i], b[i]))
            return false;
    }
    return true;
}

/* Whether the expression is that of GROUP BY, whose name may be an alias that is being compiled. */
static bool is_key(struct cn_plan *plan, const struct cn_ast *ast, const struct cn_ast *key)
{
    for (size_t i = 0; key->kind == CN_AST_NAME && i < plan->item_count; i++) {
        const struct cn_ast_item *item = &plan->items[i];
        if (item->has_alias && strcmp(item->name, key->text) == 0)
            return same(plan, ast, item->expr);
    }
    return same(plan, ast, key);
}

static struct cn_expr *compile_name(struct cn_plan *plan, const struct cn_ast *ast, bool in_group,
                                    unsigned depth, struct cn_err *err)
{
    const struct cn_ast_item *item = find_alias(plan, ast->text);
    if (item) {
        if (plan->open_count == 64) {
            cn_err_set(err, CN_EINVALID, "aliases are nested too deeply");
            return NULL;
        }
        plan->open[plan->open_count++] = item;
        struct cn_expr *expr = compile(plan, item->expr, in_group, depth + 1, err);
        plan->open_count--;
        return expr;
    }
    for (size_t i = 0; i < plan->column_count; i++) {
        if (strcmp(plan->columns[i].name, ast->text) != 0)
            continue;
        if (!in_group)
            return compile_column(plan, (unsigned)i);
        cn_err_set(err, CN_EINVALID,
                   "the column %.80s is neither in GROUP BY nor inside an aggregate function",
                   ast->text);
        return NULL;
    }
    cn_err_set(err, CN_EINVALID, "there is no column %.80s", ast->text);
    return NULL;
}

/* --- constants ------------------------------------------------------------------------------- */

static struct cn_type integer_type(int64_t value)
{
    uint64_t size = value < 0 ? ~(uint64_t)value * 2 : (uint64_t)value;
    return (struct cn_type){.kind = CN_KIND_INT,
                            .is_signed = value < 0,
                            .bits = size < 256        ? 8
                                    : size < 65536    ? 16
                                    : size >> 32 == 0 ? 32
                                                      : 64};
}

static struct cn_expr *compile_constant(struct cn_plan *plan, const struct cn_ast *ast)
{
    struct cn_expr *expr = new_expr(plan);
    expr->is_constant = true;
    switch (ast->kind) {
    case CN_AST_INT:
        expr->type = integer_type(ast->integer);
        expr->value.integer = ast->integer;
        break;
    case CN_AST_NUMBER:
        expr->type.kind = CN_KIND_NUMBER;
        expr->value.number = ast->number;
        break;
    case CN_AST_INTERVAL:
        expr->type.kind = CN_KIND_INTERVAL;
        expr->value = (struct cn_value){.integer = ast->integer, .size = ast->unit};
        break;
    default:
        expr->type.kind = CN_KIND_TEXT;
        expr->value = (struct cn_value){.text = ast->text, .size = (uint32_t)ast->size};
    }
    return expr;
}

/* A call whose arguments are constants is one. */
static int fold(struct cn_plan *plan, struct cn_expr *expr, struct cn_err *err)
{
    for (size_t i = 0; i < expr->arg_count; i++) {
        if (!expr->args[i]->is_constant)
            return 0;
    }
    struct cn_row row = {0};
    if (!expr->is_constant)
        expr->value = expr->eval(&row, expr);
    expr->value = cn_value_keep(plan->arena, expr->type.kind, expr->value);
    expr->is_constant = true;
    cn_arena_fini(&row.scratch);
    return row.too_large ? cn_err_set(err, CN_ELIMIT, "a text of the query becomes too long") : 0;
}

/* --- calls ----------------------------------------------------------------------------------- */

/* A value of the list of IN, as what it is compared with. */
static int list_value(const struct cn_expr *item, enum cn_kind kind, struct cn_value *value)
{
    enum cn_kind own = item->type.kind;
    *value = item->value;
    if (own == kind || (kind == CN_KIND_TIME && own == CN_KIND_INT))
        return 0;
    if (kind == CN_KIND_NUMBER && own == CN_KIND_INT) {
        value->number = (double)item->value.integer;
        return 0;
    }
    if (kind == CN_KIND_TIME && own == CN_KIND_TEXT &&
        cn_time_parse(item->value.text, item->value.size, &value->integer))
        return 0;
    return -1;
}

static struct cn_expr *compile_in(struct cn_plan *plan, const struct cn_ast *ast, bool in_group,
                                  unsigned depth, struct cn_err *err)
{
    struct cn_expr *expr = new_expr(plan);
    expr->args = cn_arena_alloc(plan->arena, sizeof(*expr->args));
    expr->args[expr->arg_count++] = compile(plan, ast->args[0], in_group, depth + 1, err);
    if (!expr->args[0])
        return NULL;
    expr->list_count = ast->arg_count - 1;
    expr->list = cn_arena_alloc(plan->arena, expr->list_count * sizeof(*expr->list));
    for (size_t i = 0; i < expr->list_count; i++) {
        struct cn_expr *item = compile(plan, ast->args[i + 1], false, depth + 1, err);
        if (!item)
            return NULL;
        if (!item->is_constant || list_value(item, expr->args[0]->type.kind, &expr->list[i]) < 0) {
            cn_err_set(err, CN_EINVALID,
                       "IN: value %zu of the list is no constant of a type that fits", i + 1);
            return NULL;
        }
    }
    return cn_asql_bind(expr, "in", plan->asql->now_ms, err) < 0 ? NULL : expr;
}

/* q of quantileWeighted(q)(v, w), or of quantileWeighted(q, v, w). */
static int take_param(struct cn_plan *plan, const struct cn_ast *ast,
                      struct cn_aggregate *aggregate, size_t *skipped, unsigned depth,
                      struct cn_err *err)
{
    bool inside = ast->param_count == 0 && ast->arg_count == 3 &&
                  (strcasecmp(ast->text, "quantileWeighted") == 0 ||
                   strcasecmp(ast->text, "quantileExactWeighted") == 0);
    *skipped = inside;
    aggregate->param = NAN;
    if (ast->param_count == 0 && !inside)
        return 0;
    struct cn_expr *param =
        compile(plan, inside ? ast->args[0] : ast->params[0], false, depth + 1, err);
    if (!param)
        return CN_EINVALID;
    if (ast->param_count > 1 || !param->is_constant || param->type.kind > CN_KIND_NUMBER)
        return cn_err_set(err, CN_EINVALID, "%s: the parameter must be one constant number",
                          ast->text);
    aggregate->param =
        param->type.kind == CN_KIND_NUMBER ? param->value.number : (double)param->value.integer;
    return 0;
}

static struct cn_expr *aggregate_result(struct cn_plan *plan, size_t index)
{
    struct cn_expr *expr = new_expr(plan);
    expr->eval = eval_aggregate;
    expr->column = (unsigned)index;
    expr->type = plan->aggregates[index].type;
    return expr;
}

static struct cn_expr *compile_aggregate(struct cn_plan *plan, const struct cn_ast *ast,
                                         bool in_group, unsigned depth, struct cn_err *err)
{
    struct cn_aggregate aggregate = {.distinct = ast->distinct, .ast = ast};
    size_t skipped;
    if (!in_group) {
        cn_err_set(err, CN_EINVALID, "the aggregate function %s() cannot be used here", ast->text);
        return NULL;
    }
    for (size_t i = 0; i < plan->aggregate_count; i++) {
        if (same(plan, plan->aggregates[i].ast, ast))
            return aggregate_result(plan, i);
    }
    if (plan->aggregate_count == CN_ASQL_AGGREGATE_MAX) {
        cn_err_set(err, CN_EINVALID, "more than %d aggregates", CN_ASQL_AGGREGATE_MAX);
        return NULL;
    }
    if (take_param(plan, ast, &aggregate, &skipped, depth, err) < 0)
        return NULL;
    for (size_t i = skipped; i < ast->arg_count; i++) {
        if (aggregate.arg_count == 3) {
            cn_err_set(err, CN_EINVALID, "%s: there are too many arguments", ast->text);
            return NULL;
        }
        const struct cn_expr *arg = compile(plan, ast->args[i], false, depth + 1, err);
        if (!arg)
            return NULL;
        aggregate.args[aggregate.arg_count++] = arg;
    }
    if (cn_aggregate_bind(&aggregate, ast->text, err) < 0)
        return NULL;
    plan->aggregates[plan->aggregate_count] = aggregate;
    return aggregate_result(plan, plan->aggregate_count++);
}

static struct cn_expr *compile_call(struct cn_plan *plan, const struct cn_ast *ast, bool in_group,
                                    unsigned depth, struct cn_err *err)
{
    if (cn_aggregate_known(ast->text))
        return compile_aggregate(plan, ast, in_group, depth, err);
    if (strcmp(ast->text, "in") == 0 && ast->arg_count > 1)
        return compile_in(plan, ast, in_group, depth, err);
    if (ast->param_count || ast->distinct) {
        cn_err_set(err, CN_EINVALID, "%.80s() is no aggregate function", ast->text);
        return NULL;
    }
    struct cn_expr *expr = new_expr(plan);
    expr->args = cn_arena_alloc(plan->arena, (ast->arg_count + 1) * sizeof(*expr->args));
    for (size_t i = 0; i < ast->arg_count; i++) {
        const struct cn_expr *arg = compile(plan, ast->args[i], in_group, depth + 1, err);
        if (!arg)
            return NULL;
        expr->args[expr->arg_count++] = arg;
    }
    if (cn_asql_bind(expr, ast->text, plan->asql->now_ms, err) < 0 || fold(plan, expr, err) < 0)
        return NULL;
    return expr;
}

static struct cn_expr *compile(struct cn_plan *plan, const struct cn_ast *ast, bool in_group,
                               unsigned depth, struct cn_err *err)
{
    if (depth > DEPTH_MAX || plan->node_count > NODE_MAX) {
        cn_err_set(err, CN_EINVALID, "the query is too complex");
        return NULL;
    }
    for (size_t i = 0; in_group && i < plan->query->group.count; i++) {
        if (!is_key(plan, ast, plan->query->group.items[i].expr))
            continue;
        struct cn_expr *expr = new_expr(plan);
        expr->eval = eval_key;
        expr->column = (unsigned)i;
        expr->type = plan->group[i]->type;
        return expr;
    }
    if (ast->kind == CN_AST_CALL)
        return compile_call(plan, ast, in_group, depth, err);
    if (ast->kind == CN_AST_NAME)
        return compile_name(plan, ast, in_group, depth, err);
    return compile_constant(plan, ast);
}

/* --- the plan -------------------------------------------------------------------------------- */

static bool has_aggregate(const struct cn_plan *plan, const struct cn_ast *ast, unsigned depth)
{
    if (ast->kind != CN_AST_CALL || depth > DEPTH_MAX)
        return false;
    if (cn_aggregate_known(ast->text))
        return true;
    for (size_t i = 0; i < ast->arg_count; i++) {
        if (has_aggregate(plan, ast->args[i], depth + 1))
            return true;
    }
    return false;
}

static struct cn_ast *new_name(struct cn_plan *plan, const char *text)
{
    struct cn_ast *name = cn_arena_alloc(plan->arena, sizeof(*name));
    name->kind = CN_AST_NAME;
    name->text = text;
    name->size = strlen(text);
    return name;
}

/* SELECT with * spelled out. */
static int expand_items(struct cn_plan *plan, struct cn_err *err)
{
    const struct cn_ast_items *select = &plan->query->select;
    size_t most = select->count;
    for (size_t i = 0; i < select->count; i++)
        most += select->items[i].expr ? 0 : plan->column_count;
    plan->items = cn_arena_alloc(plan->arena, most * sizeof(*plan->items));
    for (size_t i = 0; i < select->count; i++) {
        if (select->items[i].expr) {
            plan->items[plan->item_count++] = select->items[i];
            continue;
        }
        if (plan->column_count == 0)
            return cn_err_set(err, CN_EINVALID, "SELECT * needs FROM");
        for (size_t k = 0; k < plan->column_count; k++) {
            struct cn_ast *name = new_name(plan, plan->columns[k].name);
            plan->items[plan->item_count++] =
                (struct cn_ast_item){.expr = name, .name = name->text};
        }
    }
    return 0;
}

/* A number in GROUP BY and ORDER BY means the item of SELECT at that place. */
static int resolve_places(struct cn_plan *plan, const struct cn_ast_items *list, const char *clause,
                          struct cn_err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        struct cn_ast_item *item = &list->items[i];
        if (item->expr->kind != CN_AST_INT)
            continue;
        int64_t place = item->expr->integer;
        if (place < 1 || (size_t)place > plan->item_count)
            return cn_err_set(err, CN_EINVALID, "%s: SELECT has no item %lld", clause,
                              (long long)place);
        const struct cn_ast_item *meant = &plan->items[place - 1];
        item->expr = meant->expr;
        if (meant->has_alias)
            item->expr = new_name(plan, meant->name);
    }
    return 0;
}

static struct cn_expr **compile_list(struct cn_plan *plan, const struct cn_ast_item *items,
                                     size_t count, bool in_group, bool open, struct cn_err *err)
{
    struct cn_expr **list = cn_arena_alloc(plan->arena, (count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        plan->open_count = 0;
        if (open) /* inside its own expression an alias is the column */
            plan->open[plan->open_count++] = &items[i];
        list[i] = compile(plan, items[i].expr, in_group, 0, err);
        plan->open_count = 0;
        if (!list[i])
            return NULL;
    }
    return list;
}

/* Q1: what the comparisons of WHERE that are joined by AND say about the time. */
static void narrow(struct cn_plan *plan, const struct cn_expr *expr)
{
    if (expr->eval == cn_eval_and && !expr->is_constant) {
        narrow(plan, expr->args[0]);
        narrow(plan, expr->args[1]);
        return;
    }
    char how = expr->is_constant ? 0 : cn_expr_compares(expr);
    if (!how)
        return;
    const struct cn_expr *a = expr->args[0], *b = expr->args[1];
    if (b->eval == cn_eval_column_time && !b->is_constant) {
        const struct cn_expr *c = a;
        a = b;
        b = c;
        how = how == '<' ? '>' : how == '>' ? '<' : how == 'l' ? 'g' : how == 'g' ? 'l' : how;
    }
    if (a->is_constant || a->eval != cn_eval_column_time || !b->is_constant ||
        (b->type.kind != CN_KIND_TIME && b->type.kind != CN_KIND_INT))
        return;
    int64_t at = b->value.integer;
    if (at > INT64_MAX / 2000 || at < INT64_MIN / 2000)
        return;
    /* Times are compared in whole seconds. */
    int64_t first_ms = how == '>' ? (at + 1) * 1000 : at * 1000;
    int64_t last_ms = how == '<' ? at * 1000 - 1 : at * 1000 + 999;
    if ((how == '>' || how == 'g' || how == '=') && first_ms > plan->first_ms)
        plan->first_ms = first_ms;
    if ((how == '<' || how == 'l' || how == '=') && last_ms < plan->last_ms)
        plan->last_ms = last_ms;
}

static bool is_condition(const struct cn_expr *expr)
{
    return expr->type.kind == CN_KIND_INT || expr->type.kind == CN_KIND_NUMBER;
}

static int compile_condition(struct cn_plan *plan, const struct cn_ast *ast, bool in_group,
                             const char *clause, struct cn_expr **condition, struct cn_err *err)
{
    *condition = ast ? compile(plan, ast, in_group, 0, err) : NULL;
    if (ast && !*condition)
        return cn_err_context(err, "%s", clause);
    if (ast && !is_condition(*condition))
        return cn_err_set(err, CN_EINVALID, "%s is not followed by a condition", clause);
    return 0;
}

int cn_asql_plan(struct cn_plan *plan, struct cn_err *err)
{
    const struct cn_ast_query *query = plan->query;
    plan->first_ms = INT64_MIN;
    plan->last_ms = INT64_MAX;
    int rc = expand_items(plan, err);
    if (rc == 0)
        rc = resolve_places(plan, &query->group, "GROUP BY", err);
    if (rc == 0)
        rc = resolve_places(plan, &query->order, "ORDER BY", err);
    if (rc < 0)
        return rc;
    plan->aggregated = query->group.count > 0 || query->having != NULL;
    for (size_t i = 0; i < plan->item_count; i++)
        plan->aggregated = plan->aggregated || has_aggregate(plan, plan->items[i].expr, 0);
    for (size_t i = 0; i < query->order.count; i++)
        plan->aggregated = plan->aggregated || has_aggregate(plan, query->order.items[i].expr, 0);

    rc = compile_condition(plan, query->where, false, "WHERE", &plan->where, err);
    if (rc < 0)
        return rc;
    if (plan->where && plan->of_dataset)
        narrow(plan, plan->where);
    plan->group = compile_list(plan, query->group.items, query->group.count, false, false, err);
    if (!plan->group)
        return cn_err_context(err, "GROUP BY");
    plan->select = compile_list(plan, plan->items, plan->item_count, plan->aggregated, true, err);
    if (!plan->select)
        return err->code;
    rc = compile_condition(plan, query->having, true, "HAVING", &plan->having, err);
    if (rc < 0)
        return rc;
    /* One row has no order. */
    bool single = plan->aggregated && query->group.count == 0;
    plan->order = compile_list(plan, query->order.items, single ? 0 : query->order.count,
                               plan->aggregated, false, err);
    return plan->order ? 0 : cn_err_context(err, "ORDER BY");
}
