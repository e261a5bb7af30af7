/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_private.h - what the parts of the SQL of Analytics Engine share. */
#ifndef CN_ANALYTICS_ASQL_PRIVATE_H
#define CN_ANALYTICS_ASQL_PRIVATE_H
#include "analytics/asql.h"
#include "analytics/points_scan.h"
#include "base/buf.h"
#include "base/map.h"

/* --- memory: freed all at once --------------------------------------------------------------- */

struct cn_arena {
    struct cn_arena_chunk *chunks; /* newest first */
    size_t size;                   /* of all of them */
};
void *cn_arena_alloc(struct cn_arena *arena, size_t size); /* zeroed, aligned to 8 */
char *cn_arena_text(struct cn_arena *arena, const char *text, size_t size);
void cn_arena_clear(struct cn_arena *arena); /* keeps the newest chunk */
void cn_arena_fini(struct cn_arena *arena);

/* --- the tree of the text -------------------------------------------------------------------- */

enum cn_ast_kind {
    CN_AST_INT,
    CN_AST_NUMBER,
    CN_AST_TEXT,
    CN_AST_NAME,
    CN_AST_INTERVAL,
    CN_AST_CALL
};

/* Units of intervals. */
enum cn_unit { CN_SECOND, CN_MINUTE, CN_HOUR, CN_DAY, CN_WEEK, CN_MONTH, CN_QUARTER, CN_YEAR };

/* Operators are calls too: "+", "=", "and", "in" (the value, then the list) and so on. */
struct cn_ast {
    enum cn_ast_kind kind;
    int64_t integer; /* of an interval too */
    double number;
    enum cn_unit unit;
    const char *text; /* of a text, a name, a call; terminated */
    size_t size;
    struct cn_ast **args;
    size_t arg_count;
    struct cn_ast **params; /* f(params)(args) */
    size_t param_count;
    bool distinct; /* f(DISTINCT ...) */
    size_t at;     /* in the text */
};

struct cn_ast_item {
    struct cn_ast *expr;
    const char *name; /* alias, or the text of the expression */
    bool has_alias;
    bool descending; /* of ORDER BY */
};

struct cn_ast_items {
    struct cn_ast_item *items;
    size_t count;
};

enum cn_statement { CN_SELECT, CN_SHOW_TABLES, CN_SHOW_TIMEZONES, CN_SHOW_TIMEZONE };
enum cn_format { CN_FORMAT_JSON, CN_FORMAT_JSON_ROWS, CN_FORMAT_TABS };

struct cn_ast_query {
    enum cn_statement statement;
    struct cn_ast_items select; /* "*" is an item with a NULL expr */
    bool distinct;
    const char *dataset;         /* NULL: a subquery, or one row */
    struct cn_ast_query *source; /* the subquery */
    struct cn_ast *where, *having;
    struct cn_ast_items group, order;
    int64_t limit; /* -1: all */
    int64_t offset;
    enum cn_format format;
};

int cn_asql_parse(struct cn_arena *arena, const char *text, size_t size,
                  struct cn_ast_query **query, struct cn_err *err);

/* --- values ---------------------------------------------------------------------------------- */

enum cn_kind {
    CN_KIND_INT,
    CN_KIND_NUMBER,
    CN_KIND_TEXT,
    CN_KIND_TIME,
    CN_KIND_INTERVAL,
    CN_KIND_LIST
};

/* What a value is follows from the type of its expression. */
struct cn_value {
    union {
        int64_t integer; /* a time: seconds since 1970 */
        double number;
        const char *text; /* not terminated */
        const struct cn_value *items;
    };
    uint32_t size; /* of a text or list; the unit of an interval */
};

struct cn_type {
    enum cn_kind kind;
    uint8_t bits; /* of an integer: 8, 16, 32, 64 */
    bool is_signed;
    bool is_date;           /* of a time */
    enum cn_kind item_kind; /* of a list; its texts or numbers */
};

void cn_type_name(const struct cn_type *type, struct cn_buf *out);
/* < 0, 0, > 0. Both are of the same kind. */
int cn_value_compare(enum cn_kind kind, const struct cn_value *a, const struct cn_value *b);
struct cn_value cn_value_keep(struct cn_arena *arena, enum cn_kind kind, struct cn_value value);
/* As bytes that are equal if and only if the values are. */
void cn_value_append_key(struct cn_buf *out, enum cn_kind kind, const struct cn_value *value);
/* As text, the way TabSeparated and format() print it. */
void cn_value_print(struct cn_buf *out, const struct cn_type *type, const struct cn_value *value);
void cn_number_print(struct cn_buf *out, double number);

/* --- compiled expressions -------------------------------------------------------------------- */

struct cn_row;
struct cn_expr;
typedef struct cn_value (*cn_eval)(struct cn_row *row, const struct cn_expr *expr);

struct cn_expr {
    cn_eval eval;
    struct cn_type type;
    struct cn_value value;       /* of a constant */
    unsigned column;             /* of a column, key or aggregate: its index */
    const struct cn_expr **args; /* those of "in" but the first are in `list` */
    size_t arg_count;
    struct cn_value *list;
    size_t list_count;
    bool is_constant;
};

/* Where expressions find their values. */
struct cn_row {
    const struct cn_points_batch *batch;      /* of a dataset */
    uint32_t index;                           /* in the batch */
    const struct cn_value *values;            /* of a subquery's row */
    const struct cn_value *keys, *aggregates; /* of a group */
    struct cn_arena scratch;                  /* for texts, until the next row */
    const char *dataset;
    bool too_large; /* a text was; the query fails */
};

static inline struct cn_value cn_expr_eval(struct cn_row *row, const struct cn_expr *expr)
{
    return expr->is_constant ? expr->value : expr->eval(row, expr);
}
/* A value as a number, whatever kind of number it is. */
double cn_expr_number(struct cn_row *row, const struct cn_expr *expr);
int64_t cn_expr_integer(struct cn_row *row, const struct cn_expr *expr);
bool cn_expr_is_true(struct cn_row *row, const struct cn_expr *expr);

/* --- functions ------------------------------------------------------------------------------- */

/* Finds the function and checks its arguments (in expr->args): sets eval and type. */
int cn_asql_bind(struct cn_expr *expr, const char *name, int64_t now_ms, struct cn_err *err);
/* "2026-01-31 23:59:59", "2026-01-31", or seconds since 1970. */
bool cn_time_parse(const char *text, size_t size, int64_t *seconds);
void cn_time_print(struct cn_buf *out, int64_t seconds, bool is_date);
/* Operators on types and texts: asql_function.c. */
bool cn_like(const char *text, size_t size, const char *pattern, size_t pattern_size, bool fold);
/* eval functions that the planner looks at. */
struct cn_value cn_eval_and(struct cn_row *row, const struct cn_expr *expr);
struct cn_value cn_eval_column_time(struct cn_row *row, const struct cn_expr *expr);
/* '<', 'l' (<=), '>', 'g' (>=), '=' if the expression compares times that way, else 0. */
char cn_expr_compares(const struct cn_expr *expr);

/* --- aggregates ------------------------------------------------------------------------------ */

struct cn_state; /* of one aggregate in one group */
struct cn_aggregate {
    void (*update)(struct cn_state *state, const struct cn_aggregate *aggregate, struct cn_row *row,
                   struct cn_arena *arena);
    struct cn_value (*finish)(struct cn_state *state, const struct cn_aggregate *aggregate,
                              struct cn_arena *arena);
    const struct cn_expr *args[3];
    size_t arg_count;
    const struct cn_expr *when; /* of sumIf() and so on; NULL: always */
    bool distinct;
    double param; /* of quantiles and topK */
    struct cn_type type;
    const struct cn_ast *ast; /* to find it again */
};

struct cn_state {
    uint64_t count;
    double sum;
    int64_t integer_sum;
    struct cn_value best, of_best; /* min, max, first, last, argMin, argMax */
    struct cn_pair {
        double value, weight;
    } * pairs; /* of quantiles; malloc'ed */
    size_t pair_count, pair_capacity;
    struct cn_map *seen; /* of DISTINCT and topK: value -> struct cn_top, in the arena */
};

bool cn_aggregate_known(const char *name);
/* The arguments are in `aggregate`; sets the rest. */
int cn_aggregate_bind(struct cn_aggregate *aggregate, const char *name, struct cn_err *err);
void cn_aggregate_add(struct cn_state *state, const struct cn_aggregate *aggregate,
                      struct cn_row *row, struct cn_arena *arena);
void cn_state_fini(struct cn_state *state);

/* --- a query --------------------------------------------------------------------------------- */

struct cn_asql_column {
    const char *name;
    struct cn_type type;
};

struct cn_asql_table { /* a result */
    struct cn_asql_column *columns;
    size_t column_count;
    struct cn_value **rows;
    size_t row_count;
    size_t row_count_all; /* before LIMIT */
};

#define CN_ASQL_AGGREGATE_MAX 64

struct cn_plan {
    const struct cn_asql *asql;
    struct cn_arena *arena;
    const struct cn_ast_query *query;
    const struct cn_asql_column *columns; /* of the source */
    size_t column_count;
    bool of_dataset;
    uint64_t used; /* columns of the dataset that are read */
    struct cn_expr *where, *having;
    struct cn_expr **select, **group, **order;
    struct cn_ast_item *items; /* of SELECT, with * spelled out */
    size_t item_count;
    bool aggregated;
    struct cn_aggregate aggregates[CN_ASQL_AGGREGATE_MAX];
    size_t aggregate_count;
    int64_t first_ms, last_ms;          /* that WHERE asks for */
    size_t node_count;                  /* compiled so far */
    size_t compared;                    /* parts of trees */
    const struct cn_ast_item *open[64]; /* aliases that are being compiled */
    size_t open_count;
};

int cn_asql_plan(struct cn_plan *plan, struct cn_err *err);
int cn_asql_execute(const struct cn_asql *asql, struct cn_arena *arena,
                    const struct cn_ast_query *query, struct cn_asql_table *table,
                    struct cn_err *err);
int cn_asql_write(const struct cn_asql *asql, enum cn_format format,
                  const struct cn_asql_table *table);

#endif
