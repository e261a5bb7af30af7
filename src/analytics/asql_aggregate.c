/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_aggregate.c - functions of a group of rows.
 *
 * Each has an update, once per row, and a finish. DISTINCT and the suffix -If are the same for
 * all: they decide whether update runs. What states allocate is counted in the arena's size, so
 * that the limit of a query covers it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analytics/asql_private.h"
#include "base/assert.h"
#include "base/mem.h"

#define UPDATE(name)                                                               \
    static void name(struct cn_state *state, const struct cn_aggregate *aggregate, \
                     struct cn_row *row, struct cn_arena *arena)
#define FINISH(name)                                                                          \
    static struct cn_value name(struct cn_state *state, const struct cn_aggregate *aggregate, \
                                struct cn_arena *arena)
#define TOP_DEFAULT 10
#define TOP_MAX 10000

/* A value that was seen, and how often. */
struct cn_top {
    struct cn_value value;
    double weight;
};

static enum cn_kind kind_of(const struct cn_aggregate *aggregate)
{
    return aggregate->args[0]->type.kind;
}

/* --- counting and adding --------------------------------------------------------------------- */

UPDATE(update_count)
{
    (void)aggregate;
    (void)row;
    (void)arena;
    state->count++;
}
FINISH(finish_count)
{
    (void)aggregate;
    (void)arena;
    return (struct cn_value){.integer = (int64_t)state->count};
}
UPDATE(update_sum)
{
    (void)arena;
    struct cn_value value = cn_expr_eval(row, aggregate->args[0]);
    state->count++;
    if (kind_of(aggregate) == CN_KIND_NUMBER) {
        state->sum += value.number;
    } else {
        state->sum += (double)value.integer;
        state->integer_sum = (int64_t)((uint64_t)state->integer_sum + (uint64_t)value.integer);
    }
}
FINISH(finish_sum)
{
    (void)arena;
    if (kind_of(aggregate) == CN_KIND_NUMBER)
        return (struct cn_value){.number = state->sum};
    return (struct cn_value){.integer = state->integer_sum};
}
FINISH(finish_average)
{
    (void)aggregate;
    (void)arena;
    return (struct cn_value){.number = state->count ? state->sum / (double)state->count : NAN};
}

/* --- one of the values ----------------------------------------------------------------------- */

UPDATE(update_first)
{
    if (state->count++ == 0)
        state->best =
            cn_value_keep(arena, kind_of(aggregate), cn_expr_eval(row, aggregate->args[0]));
}
UPDATE(update_last)
{
    state->count++;
    state->best = cn_value_keep(arena, kind_of(aggregate), cn_expr_eval(row, aggregate->args[0]));
}

/* Keeps the smallest (sign 1) or largest (-1) value of the last argument, and what the first is
 * then. */
static void keep_best(struct cn_state *state, const struct cn_aggregate *aggregate,
                      struct cn_row *row, struct cn_arena *arena, int sign)
{
    const struct cn_expr *by = aggregate->args[aggregate->arg_count - 1];
    struct cn_value value = cn_expr_eval(row, by);
    if (by->type.kind == CN_KIND_NUMBER && isnan(value.number))
        return;
    if (state->count++ > 0 && sign * cn_value_compare(by->type.kind, &value, &state->best) >= 0)
        return;
    state->best = cn_value_keep(arena, by->type.kind, value);
    if (aggregate->arg_count > 1)
        state->of_best =
            cn_value_keep(arena, kind_of(aggregate), cn_expr_eval(row, aggregate->args[0]));
}
UPDATE(update_min)
{
    keep_best(state, aggregate, row, arena, 1);
}
UPDATE(update_max)
{
    keep_best(state, aggregate, row, arena, -1);
}

static struct cn_value or_empty(const struct cn_state *state, struct cn_value value,
                                enum cn_kind kind)
{
    if (state->count == 0 && kind == CN_KIND_TEXT)
        return (struct cn_value){.text = "", .size = 0};
    return value;
}
FINISH(finish_best)
{
    (void)arena;
    return or_empty(state, state->best, kind_of(aggregate));
}
FINISH(finish_of_best)
{
    (void)arena;
    return or_empty(state, state->of_best, kind_of(aggregate));
}

/* --- quantiles ------------------------------------------------------------------------------- */

UPDATE(update_quantile)
{
    double value = cn_expr_number(row, aggregate->args[0]);
    double weight = aggregate->arg_count > 1 ? cn_expr_number(row, aggregate->args[1]) : 1;
    if (isnan(value) || !(weight > 0))
        return;
    if (state->pair_count == state->pair_capacity) {
        size_t capacity = state->pair_capacity ? state->pair_capacity * 2 : 16;
        arena->size += (capacity - state->pair_capacity) * sizeof(*state->pairs);
        state->pairs = cn_realloc(state->pairs, capacity * sizeof(*state->pairs));
        state->pair_capacity = capacity;
    }
    state->pairs[state->pair_count++] = (struct cn_pair){value, weight};
    state->sum += weight;
    state->count++;
}

static void swap(struct cn_pair *a, struct cn_pair *b)
{
    struct cn_pair c = *a;
    *a = *b;
    *b = c;
}

static double middle(double a, double b, double c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

/* The smallest value at which the weights of it and all smaller ones reach `target`: quickselect,
 * for sorting them all takes five times as long. */
static double select_weighted(struct cn_pair *pairs, size_t count, double target)
{
    size_t low = 0, high = count;
    for (;;) {
        double pivot =
            middle(pairs[low].value, pairs[(low + high) / 2].value, pairs[high - 1].value);
        /* [low, less) < pivot, [less, at) == pivot, [greater, high) > pivot */
        size_t less = low, at = low, greater = high;
        double weight_less = 0, weight_equal = 0;
        while (at < greater) {
            if (pairs[at].value < pivot) {
                weight_less += pairs[at].weight;
                swap(&pairs[less++], &pairs[at++]);
            } else if (pairs[at].value > pivot) {
                swap(&pairs[at], &pairs[--greater]);
            } else {
                weight_equal += pairs[at++].weight;
            }
        }
        if (less > low && target <= weight_less) {
            high = less;
        } else if (greater == high || target <= weight_less + weight_equal) {
            return pivot;
        } else {
            target -= weight_less + weight_equal;
            low = greater;
        }
    }
}
FINISH(finish_quantile)
{
    (void)arena;
    double value = state->pair_count ? select_weighted(state->pairs, state->pair_count,
                                                       ceil(state->sum * aggregate->param))
                                     : NAN;
    if (kind_of(aggregate) == CN_KIND_NUMBER)
        return (struct cn_value){.number = value};
    return (struct cn_value){.integer = isnan(value) ? 0 : (int64_t)value};
}

/* --- the most common ------------------------------------------------------------------------- */

/* What is known of the value, which is new if its weight is 0. */
static struct cn_top *note(struct cn_state *state, enum cn_kind kind, struct cn_value value,
                           struct cn_arena *arena)
{
    struct cn_buf key = {0};
    if (!state->seen) {
        state->seen = CN_NEW(struct cn_map);
        cn_map_init(state->seen);
    }
    cn_value_append_key(&key, kind, &value);
    struct cn_top *top = cn_map_find(state->seen, key.data, key.size);
    if (!top) {
        top = cn_arena_alloc(arena, sizeof(*top));
        top->value = cn_value_keep(arena, kind, value);
        cn_map_set(state->seen, key.data, key.size, top);
        arena->size += key.size + 64; /* the map's share */
    }
    cn_buf_fini(&key);
    return top;
}
UPDATE(update_top)
{
    struct cn_top *top =
        note(state, kind_of(aggregate), cn_expr_eval(row, aggregate->args[0]), arena);
    top->weight += aggregate->arg_count > 1 ? cn_expr_number(row, aggregate->args[1]) : 1;
}

static int by_weight(const void *a, const void *b)
{
    const struct cn_top *left = *(const struct cn_top *const *)a,
                        *right = *(const struct cn_top *const *)b;
    return (left->weight < right->weight) - (left->weight > right->weight);
}
FINISH(finish_top)
{
    size_t count = state->seen ? state->seen->count : 0, filled = 0, cursor = 0;
    const struct cn_map_entry *entry;
    struct cn_top **tops = cn_alloc((count + 1) * sizeof(*tops));
    while (count && cn_map_next(state->seen, &cursor, &entry))
        tops[filled++] = entry->value;
    if (filled)
        qsort(tops, filled, sizeof(*tops), by_weight);
    if (filled > (size_t)aggregate->param)
        filled = (size_t)aggregate->param;
    struct cn_value *items = cn_arena_alloc(arena, (filled + 1) * sizeof(*items));
    for (size_t i = 0; i < filled; i++)
        items[i] = tops[i]->value;
    cn_free(tops);
    return (struct cn_value){.items = items, .size = (uint32_t)filled};
}

/* --- all of them ----------------------------------------------------------------------------- */

/* arguments: how many; n: a number is wanted as the first. */
static const struct known {
    const char *name;
    size_t least, most;
    bool numbers;
    enum { PLAIN, QUANTILE, TOP } parametric;
    __typeof__(update_count) *update;
    __typeof__(finish_count) *finish;
} known[] = {
    {"count", 0, 1, false, PLAIN, update_count, finish_count},
    {"uniq", 1, 1, false, PLAIN, update_count, finish_count},
    {"sum", 1, 1, true, PLAIN, update_sum, finish_sum},
    {"avg", 1, 1, true, PLAIN, update_sum, finish_average},
    {"min", 1, 1, false, PLAIN, update_min, finish_best},
    {"max", 1, 1, false, PLAIN, update_max, finish_best},
    {"any", 1, 1, false, PLAIN, update_first, finish_best},
    {"first_value", 1, 1, false, PLAIN, update_first, finish_best},
    {"last_value", 1, 1, false, PLAIN, update_last, finish_best},
    {"argmin", 2, 2, false, PLAIN, update_min, finish_of_best},
    {"argmax", 2, 2, false, PLAIN, update_max, finish_of_best},
    {"quantile", 1, 1, true, QUANTILE, update_quantile, finish_quantile},
    {"median", 1, 1, true, QUANTILE, update_quantile, finish_quantile},
    {"quantileweighted", 2, 2, true, QUANTILE, update_quantile, finish_quantile},
    {"quantileexactweighted", 2, 2, true, QUANTILE, update_quantile, finish_quantile},
    {"topk", 1, 1, false, TOP, update_top, finish_top},
    {"topkweighted", 2, 2, false, TOP, update_top, finish_top},
};

/* Sets `conditional` for the form that ends in -If. */
static const struct known *find(const char *name, bool *conditional)
{
    size_t size = strlen(name);
    *conditional = size > 2 && strcasecmp(name + size - 2, "if") == 0;
    size -= *conditional ? 2 : 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(known); i++) {
        if (strlen(known[i].name) == size && strncasecmp(known[i].name, name, size) == 0)
            return &known[i];
    }
    return NULL;
}

bool cn_aggregate_known(const char *name)
{
    bool conditional;
    return find(name, &conditional) != NULL;
}

static struct cn_type type_of(const struct known *which, const struct cn_aggregate *aggregate)
{
    if (which->finish == finish_count)
        return (struct cn_type){.kind = CN_KIND_INT, .bits = 64};
    if (which->finish == finish_average)
        return (struct cn_type){.kind = CN_KIND_NUMBER};
    struct cn_type type = aggregate->args[0]->type;
    if (which->finish == finish_top)
        return (struct cn_type){.kind = CN_KIND_LIST, .item_kind = type.kind};
    if (which->finish == finish_sum && type.kind == CN_KIND_INT)
        type.bits = 64;
    return type;
}

static int check_param(const struct known *which, struct cn_aggregate *aggregate, const char *name,
                       struct cn_err *err)
{
    bool given = !isnan(aggregate->param);
    if (which->parametric == PLAIN)
        return given ? cn_err_set(err, CN_EINVALID, "%s has no parameter", name) : 0;
    if (!given)
        aggregate->param = which->parametric == TOP ? TOP_DEFAULT : 0.5;
    if (which->parametric == QUANTILE && !(aggregate->param >= 0 && aggregate->param <= 1))
        return cn_err_set(err, CN_EINVALID, "%s: the quantile is a number from 0 to 1", name);
    if (which->parametric == TOP && !(aggregate->param >= 1 && aggregate->param <= TOP_MAX))
        return cn_err_set(err, CN_EINVALID, "%s: the parameter is a number from 1 to %d", name,
                          TOP_MAX);
    return 0;
}

int cn_aggregate_bind(struct cn_aggregate *aggregate, const char *name, struct cn_err *err)
{
    bool conditional;
    const struct known *which = find(name, &conditional);
    CN_ASSERT(which);
    if (conditional && aggregate->arg_count > 0) {
        aggregate->when = aggregate->args[--aggregate->arg_count];
        if (aggregate->when->type.kind > CN_KIND_NUMBER)
            return cn_err_set(err, CN_EINVALID, "%s: the last argument is a condition", name);
    } else if (conditional) {
        return cn_err_set(err, CN_EINVALID, "%s: the condition is missing", name);
    }
    size_t count = aggregate->arg_count;
    if (count < which->least || count > which->most)
        return cn_err_set(err, CN_EINVALID, "%s: the number of arguments is wrong", name);
    for (size_t i = 0; i < count; i++) {
        enum cn_kind kind = aggregate->args[i]->type.kind;
        bool number = kind == CN_KIND_INT || kind == CN_KIND_NUMBER;
        bool weight = i == 1 && which->parametric != PLAIN;
        if (kind >= CN_KIND_INTERVAL || (!number && (weight || (i == 0 && which->numbers))))
            return cn_err_set(err, CN_EINVALID, "%s: argument %zu does not have a type that fits",
                              name, i + 1);
    }
    int rc = check_param(which, aggregate, name, err);
    if (rc < 0)
        return rc;
    if (which->least == 1 && which->finish == finish_count)
        aggregate->distinct = true; /* uniq */
    if (aggregate->distinct && count != 1)
        return cn_err_set(err, CN_EINVALID, "%s: DISTINCT wants one argument", name);
    aggregate->update = which->update;
    aggregate->finish = which->finish;
    aggregate->type = type_of(which, aggregate);
    return 0;
}

void cn_aggregate_add(struct cn_state *state, const struct cn_aggregate *aggregate,
                      struct cn_row *row, struct cn_arena *arena)
{
    if (aggregate->when && !cn_expr_is_true(row, aggregate->when))
        return;
    if (aggregate->distinct) {
        struct cn_top *top =
            note(state, kind_of(aggregate), cn_expr_eval(row, aggregate->args[0]), arena);
        if (top->weight++ > 0)
            return;
    }
    aggregate->update(state, aggregate, row, arena);
}

void cn_state_fini(struct cn_state *state)
{
    cn_free(state->pairs);
    if (state->seen) {
        cn_map_fini(state->seen);
        cn_free(state->seen);
    }
}
