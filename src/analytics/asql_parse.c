/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_parse.c - from the text of a query to its tree: by recursive descent, a token
 * ahead.
 *
 * Keywords are not reserved but where they would end an expression. Names of functions are
 * looked up later; here a call is a call. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analytics/asql_private.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"

#define DEPTH_MAX 100
#define LIST_MAX 1000
#define NODE_MAX 5000

/* --- memory ---------------------------------------------------------------------------------- */

struct cn_arena_chunk {
    struct cn_arena_chunk *next;
    size_t used, capacity;
    uint64_t bytes[];
};

void *cn_arena_alloc(struct cn_arena *arena, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    struct cn_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->capacity - chunk->used < size) {
        size_t capacity = size > 4096 ? size : arena->size < 65536 ? 4096 : 65536;
        chunk = cn_alloc(sizeof(*chunk) + capacity);
        *chunk = (struct cn_arena_chunk){.next = arena->chunks, .capacity = capacity};
        arena->chunks = chunk;
        arena->size += capacity;
    }
    void *memory = (char *)chunk->bytes + chunk->used;
    chunk->used += size;
    memset(memory, 0, size);
    return memory;
}

char *cn_arena_text(struct cn_arena *arena, const char *text, size_t size)
{
    char *copy = cn_arena_alloc(arena, size + 1);
    if (size)
        memcpy(copy, text, size);
    return copy;
}

static void free_chunks(struct cn_arena_chunk *chunk)
{
    while (chunk) {
        struct cn_arena_chunk *next = chunk->next;
        cn_free(chunk);
        chunk = next;
    }
}

void cn_arena_clear(struct cn_arena *arena)
{
    if (!arena->chunks)
        return;
    free_chunks(arena->chunks->next);
    arena->chunks->next = NULL;
    arena->chunks->used = 0;
    arena->size = arena->chunks->capacity;
}

void cn_arena_fini(struct cn_arena *arena)
{
    free_chunks(arena->chunks);
    *arena = (struct cn_arena){0};
}

/* --- tokens ---------------------------------------------------------------------------------- */

enum token { END, NAME, QUOTED, TEXT, INTEGER, NUMBER, SIGN };

struct parser {
    struct cn_arena *arena;
    const char *text;
    size_t size, next; /* behind the token */
    struct cn_err *err;
    int rc; /* negative: failed, and every token is the END */
    unsigned depth, node_count;
    /* The token. */
    enum token token;
    size_t at, end;
    const char *name; /* of a name, a text or a sign, terminated */
    size_t name_size;
    int64_t integer;
    double number;
};

static void fail(struct parser *parser, size_t at, const char *what)
{
    if (parser->rc < 0)
        return;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < parser->size; i++) {
        column = parser->text[i] == '\n' ? 1 : column + 1;
        line += parser->text[i] == '\n';
    }
    parser->rc =
        cn_err_set(parser->err, CN_EINVALID, "SQL, line %zu, column %zu: %s", line, column, what);
    parser->token = END;
}

static void skip_space(struct parser *parser)
{
    const char *text = parser->text;
    while (parser->next < parser->size) {
        size_t left = parser->size - parser->next;
        const char *at = text + parser->next;
        if (isspace((unsigned char)*at)) {
            parser->next++;
        } else if (left >= 2 && at[0] == '-' && at[1] == '-') {
            const char *end = memchr(at, '\n', left);
            parser->next = end ? (size_t)(end - text) : parser->size;
        } else if (left >= 2 && at[0] == '/' && at[1] == '*') {
            const char *end = memmem(at + 2, left - 2, "*/", 2);
            if (!end)
                return fail(parser, parser->next, "this comment does not end");
            parser->next = (size_t)(end - text) + 2;
        } else {
            return;
        }
    }
}

static void read_quoted(struct parser *parser, char quote)
{
    struct cn_buf out = {0};
    size_t at = parser->next + 1;
    bool ended = false;
    for (; at < parser->size && !ended; at++) {
        char c = parser->text[at], after = at + 1 < parser->size ? parser->text[at + 1] : 0;
        if (c == quote && after == quote) {
            at++;
        } else if (c == quote) {
            ended = true;
            continue;
        } else if (c == '\\' && after) {
            static const char from[] = "ntr0b", to[] = "\n\t\r\0\b";
            const char *known = strchr(from, after);
            c = known ? to[known - from] : after;
            at++;
        }
        cn_buf_append_byte(&out, (uint8_t)c);
    }
    if (!ended)
        fail(parser, parser->next, "this text does not end");
    else if (!cn_utf8_valid((const char *)out.data, out.size))
        fail(parser, parser->next, "this text is not UTF-8");
    parser->name = cn_arena_text(parser->arena, (const char *)out.data, out.size);
    parser->name_size = out.size;
    parser->next = at;
    cn_buf_fini(&out);
}

static void read_number(struct parser *parser)
{
    const char *text = parser->text + parser->next;
    size_t left = parser->size - parser->next, size = 0;
    bool whole = true;
    while (size < left && (isdigit((unsigned char)text[size]) || text[size] == '.')) {
        whole = whole && text[size] != '.';
        size++;
    }
    size_t exponent = size;
    if (exponent < left && (text[exponent] | 32) == 'e') {
        exponent++;
        if (exponent < left && (text[exponent] == '+' || text[exponent] == '-'))
            exponent++;
        if (exponent < left && isdigit((unsigned char)text[exponent])) {
            whole = false;
            for (size = exponent; size < left && isdigit((unsigned char)text[size]);)
                size++;
        }
    }
    char *copy = cn_arena_text(parser->arena, text, size), *end;
    errno = 0;
    parser->integer = strtoll(copy, &end, 10);
    parser->token = whole && errno == 0 ? INTEGER : NUMBER;
    parser->number = strtod(copy, &end);
    if (*end || (size < left && (isalnum((unsigned char)text[size]) || text[size] == '_')))
        fail(parser, parser->next, "this is not a number");
    parser->next += size;
}

static void advance(struct parser *parser)
{
    if (parser->rc < 0)
        return;
    parser->end = parser->next;
    skip_space(parser);
    if (parser->rc < 0)
        return;
    parser->at = parser->next;
    parser->name = "";
    parser->name_size = 0;
    if (parser->next >= parser->size) {
        parser->token = END;
        return;
    }
    const char *at = parser->text + parser->next;
    size_t left = parser->size - parser->next;
    if (isalpha((unsigned char)*at) || *at == '_') {
        size_t size = 1;
        while (size < left && (isalnum((unsigned char)at[size]) || at[size] == '_'))
            size++;
        parser->token = NAME;
        parser->name = cn_arena_text(parser->arena, at, size);
        parser->name_size = size;
        parser->next += size;
    } else if (isdigit((unsigned char)*at) ||
               (*at == '.' && left > 1 && isdigit((unsigned char)at[1]))) {
        read_number(parser);
    } else if (*at == '\'' || *at == '"' || *at == '`') {
        parser->token = *at == '\'' ? TEXT : QUOTED;
        read_quoted(parser, *at);
    } else {
        static const char *const doubled[] = {"<=", ">=", "<>", "!=", "==", "||"};
        size_t size = 1;
        for (size_t i = 0; i < CN_ARRAY_COUNT(doubled); i++) {
            if (left >= 2 && memcmp(at, doubled[i], 2) == 0)
                size = 2;
        }
        if (!strchr("+-*/%=<>(),;", *at) && size == 1)
            return fail(parser, parser->next, "this character has no meaning here");
        parser->token = SIGN;
        parser->name = cn_arena_text(parser->arena, at, size);
        parser->name_size = size;
        parser->next += size;
    }
}

static bool is_word(const struct parser *parser, const char *word)
{
    return parser->token == NAME && strcasecmp(parser->name, word) == 0;
}

static bool is_sign(const struct parser *parser, const char *sign)
{
    return parser->token == SIGN && strcmp(parser->name, sign) == 0;
}

static bool take_word(struct parser *parser, const char *word)
{
    bool taken = is_word(parser, word);
    if (taken)
        advance(parser);
    return taken;
}

static bool take_sign(struct parser *parser, const char *sign)
{
    bool taken = is_sign(parser, sign);
    if (taken)
        advance(parser);
    return taken;
}

static void want(struct parser *parser, bool taken, const char *what)
{
    if (!taken)
        fail(parser, parser->at, what);
}

/* --- expressions ----------------------------------------------------------------------------- */

static struct cn_ast *parse_expr(struct parser *parser);
static struct cn_ast *parse_sum(struct parser *parser);

static struct cn_ast *new_node(struct parser *parser, enum cn_ast_kind kind)
{
    struct cn_ast *node = cn_arena_alloc(parser->arena, sizeof(*node));
    if (++parser->node_count > NODE_MAX)
        fail(parser, parser->at, "the query has too many parts");
    node->kind = kind;
    node->text = "";
    node->at = parser->at;
    return node;
}

static struct cn_ast *new_call(struct parser *parser, const char *name, struct cn_ast *a,
                               struct cn_ast *b)
{
    struct cn_ast *node = new_node(parser, CN_AST_CALL);
    node->text = name;
    node->size = strlen(name);
    node->args = cn_arena_alloc(parser->arena, 2 * sizeof(*node->args));
    node->args[node->arg_count++] = a;
    if (b)
        node->args[node->arg_count++] = b;
    return node;
}

static void append_arg(struct parser *parser, struct cn_ast *call, struct cn_ast *arg)
{
    if (call->arg_count == LIST_MAX)
        return fail(parser, parser->at, "this list is too long");
    if ((call->arg_count & (call->arg_count - 1)) == 0 || !call->args) {
        size_t capacity = call->arg_count ? call->arg_count * 2 : 1;
        struct cn_ast **args = cn_arena_alloc(parser->arena, capacity * sizeof(*args));
        if (call->arg_count)
            memcpy(args, call->args, call->arg_count * sizeof(*args));
        call->args = args;
    }
    call->args[call->arg_count++] = arg;
}

static bool parse_unit(struct parser *parser, enum cn_unit *unit)
{
    static const char *const names[] = {"SECOND", "MINUTE", "HOUR",    "DAY",
                                        "WEEK",   "MONTH",  "QUARTER", "YEAR"};
    size_t size = parser->name_size;
    if (size > 1 && (parser->name[size - 1] | 32) == 's')
        size--; /* DAYS */
    for (size_t i = 0; parser->token == NAME && i < CN_ARRAY_COUNT(names); i++) {
        if (strlen(names[i]) == size && strncasecmp(parser->name, names[i], size) == 0) {
            *unit = (enum cn_unit)i;
            advance(parser);
            return true;
        }
    }
    fail(parser, parser->at, "a unit of time is expected here: SECOND, MINUTE, HOUR, DAY, ...");
    return false;
}

static struct cn_ast *parse_interval(struct parser *parser)
{
    struct cn_ast *node = new_node(parser, CN_AST_INTERVAL);
    advance(parser);
    char *end = NULL;
    if (parser->token == INTEGER)
        node->integer = parser->integer;
    else if (parser->token == TEXT)
        node->integer = strtoll(parser->name, &end, 10);
    if (parser->token != INTEGER && (parser->token != TEXT || end == parser->name || *end))
        fail(parser, parser->at, "INTERVAL is followed by a whole number, as in INTERVAL '1' DAY");
    if (node->integer > 1000000000 || node->integer < -1000000000)
        fail(parser, parser->at, "this interval is too long");
    advance(parser);
    parse_unit(parser, &node->unit);
    return node;
}

/* Behind the '('. */
static void parse_args(struct parser *parser, struct cn_ast *call)
{
    if (take_sign(parser, ")"))
        return;
    if (is_sign(parser, "*") && strcasecmp(call->text, "count") == 0) {
        advance(parser);
        return want(parser, take_sign(parser, ")"), "')' is expected here");
    }
    call->distinct = take_word(parser, "DISTINCT");
    do {
        append_arg(parser, call, parse_expr(parser));
    } while (parser->rc == 0 && take_sign(parser, ","));
    want(parser, take_sign(parser, ")"), "',' or ')' is expected here");
}

static void parse_extract(struct parser *parser, struct cn_ast *call)
{
    static const char *const names[] = {"tosecond",  "tominute", "tohour",    "todayofmonth",
                                        "toisoweek", "tomonth",  "toquarter", "toyear"};
    enum cn_unit unit = CN_SECOND;
    parse_unit(parser, &unit);
    call->text = names[unit];
    want(parser, take_word(parser, "FROM"), "FROM is expected here");
    append_arg(parser, call, parse_expr(parser));
    want(parser, take_sign(parser, ")"), "')' is expected here");
}

/* position(needle IN haystack): as position(haystack, needle). */
static void parse_position(struct parser *parser, struct cn_ast *call)
{
    struct cn_ast *first = parse_sum(parser);
    bool swapped = take_word(parser, "IN");
    want(parser, swapped || take_sign(parser, ","), "IN is expected here");
    struct cn_ast *second = parse_sum(parser);
    append_arg(parser, call, swapped ? second : first);
    append_arg(parser, call, swapped ? first : second);
    want(parser, take_sign(parser, ")"), "')' is expected here");
}

static struct cn_ast *parse_call(struct parser *parser, struct cn_ast *node)
{
    node->kind = CN_AST_CALL;
    if (strcasecmp(node->text, "extract") == 0) {
        parse_extract(parser, node);
    } else if (strcasecmp(node->text, "position") == 0) {
        parse_position(parser, node);
    } else {
        parse_args(parser, node);
        if (take_sign(parser, "(")) { /* f(params)(args) */
            node->params = node->args;
            node->param_count = node->arg_count;
            node->args = NULL;
            node->arg_count = 0;
            parse_args(parser, node);
        }
    }
    return node;
}

static struct cn_ast *parse_name(struct parser *parser)
{
    static const char *const reserved[] = {"SELECT", "FROM",   "WHERE", "GROUP",  "HAVING", "ORDER",
                                           "LIMIT",  "OFFSET", "BY",    "FORMAT", "AS",     "AND",
                                           "OR",     "IN",     "ASC",   "DESC"};
    bool quoted = parser->token == QUOTED;
    struct cn_ast *node = new_node(parser, CN_AST_NAME);
    if (!quoted && is_word(parser, "INTERVAL"))
        return parse_interval(parser);
    node->text = parser->name;
    node->size = parser->name_size;
    size_t at = parser->at;
    advance(parser);
    if (!quoted && take_sign(parser, "("))
        return parse_call(parser, node);
    for (size_t i = 0; !quoted && i < CN_ARRAY_COUNT(reserved); i++) {
        if (strcasecmp(node->text, reserved[i]) == 0)
            fail(parser, at, "an expression is expected here");
    }
    if (!quoted && (strcasecmp(node->text, "true") == 0 || strcasecmp(node->text, "false") == 0)) {
        node->kind = CN_AST_INT;
        node->integer = (node->text[0] | 32) == 't';
    }
    return node;
}

static struct cn_ast *parse_primary(struct parser *parser)
{
    struct cn_ast *node;
    switch (parser->token) {
    case INTEGER:
    case NUMBER:
        node = new_node(parser, parser->token == INTEGER ? CN_AST_INT : CN_AST_NUMBER);
        node->integer = parser->integer;
        node->number = parser->number;
        advance(parser);
        return node;
    case TEXT:
        node = new_node(parser, CN_AST_TEXT);
        node->text = parser->name;
        node->size = parser->name_size;
        advance(parser);
        return node;
    case NAME:
    case QUOTED:
        return parse_name(parser);
    default:
        break;
    }
    if (take_sign(parser, "(")) {
        node = parse_expr(parser);
        want(parser, take_sign(parser, ")"), "')' is expected here");
        return node;
    }
    fail(parser, parser->at, "an expression is expected here");
    return new_node(parser, CN_AST_INT);
}

static struct cn_ast *parse_unary(struct parser *parser)
{
    if (++parser->depth > DEPTH_MAX)
        fail(parser, parser->at, "the expression is nested too deeply");
    struct cn_ast *node;
    if (is_sign(parser, "-")) {
        size_t at = parser->at;
        advance(parser);
        node = new_call(parser, "negate", parse_unary(parser), NULL);
        node->at = at;
    } else {
        node = parse_primary(parser);
    }
    parser->depth--;
    return node;
}

static struct cn_ast *parse_product(struct parser *parser)
{
    struct cn_ast *node = parse_unary(parser);
    while (is_sign(parser, "*") || is_sign(parser, "/") || is_sign(parser, "%")) {
        const char *sign = parser->name;
        advance(parser);
        node = new_call(parser, sign, node, parse_unary(parser));
    }
    return node;
}

static struct cn_ast *parse_sum(struct parser *parser)
{
    struct cn_ast *node = parse_product(parser);
    while (is_sign(parser, "+") || is_sign(parser, "-") || is_sign(parser, "||")) {
        const char *sign = is_sign(parser, "||") ? "concat" : parser->name;
        advance(parser);
        node = new_call(parser, sign, node, parse_product(parser));
    }
    return node;
}

static struct cn_ast *parse_in(struct parser *parser, struct cn_ast *value)
{
    struct cn_ast *node = new_node(parser, CN_AST_CALL);
    node->text = "in";
    append_arg(parser, node, value);
    want(parser, take_sign(parser, "("), "'(' is expected here");
    do {
        append_arg(parser, node, parse_expr(parser));
    } while (parser->rc == 0 && take_sign(parser, ","));
    want(parser, take_sign(parser, ")"), "',' or ')' is expected here");
    return node;
}

static struct cn_ast *parse_comparison(struct parser *parser)
{
    static const char *const signs[][2] = {{"=", "="}, {"==", "="},  {"!=", "!="}, {"<>", "!="},
                                           {"<", "<"}, {"<=", "<="}, {">", ">"},   {">=", ">="}};
    struct cn_ast *node = parse_sum(parser);
    while (parser->rc == 0) {
        const char *sign = NULL;
        for (size_t i = 0; i < CN_ARRAY_COUNT(signs); i++) {
            if (is_sign(parser, signs[i][0]))
                sign = signs[i][1];
        }
        if (sign) {
            advance(parser);
            node = new_call(parser, sign, node, parse_sum(parser));
            continue;
        }
        bool negated = take_word(parser, "NOT");
        if (take_word(parser, "IN")) {
            node = parse_in(parser, node);
        } else if (take_word(parser, "BETWEEN")) {
            struct cn_ast *low = new_call(parser, ">=", node, parse_sum(parser));
            want(parser, take_word(parser, "AND"), "AND is expected here");
            node = new_call(parser, "and", low, new_call(parser, "<=", node, parse_sum(parser)));
        } else if (is_word(parser, "LIKE") || is_word(parser, "ILIKE")) {
            const char *name = is_word(parser, "LIKE") ? "like" : "ilike";
            advance(parser);
            node = new_call(parser, name, node, parse_sum(parser));
        } else {
            want(parser, !negated, "IN, BETWEEN, LIKE or ILIKE is expected here");
            return node;
        }
        if (negated)
            node = new_call(parser, "not", node, NULL);
    }
    return node;
}

static struct cn_ast *parse_not(struct parser *parser)
{
    unsigned count = 0;
    while (take_word(parser, "NOT"))
        count++;
    struct cn_ast *node = parse_comparison(parser);
    return count % 2 ? new_call(parser, "not", node, NULL) : node;
}

static struct cn_ast *parse_and(struct parser *parser)
{
    struct cn_ast *node = parse_not(parser);
    while (take_word(parser, "AND"))
        node = new_call(parser, "and", node, parse_not(parser));
    return node;
}

static struct cn_ast *parse_expr(struct parser *parser)
{
    if (++parser->depth > DEPTH_MAX)
        fail(parser, parser->at, "the expression is nested too deeply");
    struct cn_ast *node = parse_and(parser);
    while (take_word(parser, "OR"))
        node = new_call(parser, "or", node, parse_and(parser));
    parser->depth--;
    return node;
}

/* --- statements ------------------------------------------------------------------------------ */

static struct cn_ast_item *add_item(struct parser *parser, struct cn_ast_items *list)
{
    if (list->count == LIST_MAX)
        fail(parser, parser->at, "this list is too long");
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count ? list->count * 2 : 1;
        struct cn_ast_item *items = cn_arena_alloc(parser->arena, capacity * sizeof(*items));
        if (list->count)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
    }
    return &list->items[list->count++];
}

static bool ends_item(const struct parser *parser)
{
    static const char *const words[] = {"FROM",  "WHERE", "GROUP",  "HAVING",
                                        "ORDER", "LIMIT", "OFFSET", "FORMAT"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(words); i++) {
        if (is_word(parser, words[i]))
            return true;
    }
    return parser->token != NAME && parser->token != QUOTED;
}

static void parse_select_item(struct parser *parser, struct cn_ast_items *list)
{
    struct cn_ast_item item = {0};
    size_t at = parser->at;
    if (!take_sign(parser, "*")) {
        item.expr = parse_expr(parser);
        if (parser->rc < 0)
            return;
        item.name = cn_arena_text(parser->arena, parser->text + at, parser->end - at);
        if (item.expr->kind == CN_AST_NAME)
            item.name = item.expr->text;
        bool as = take_word(parser, "AS");
        if (as || !ends_item(parser)) {
            want(parser, parser->token == NAME || parser->token == QUOTED,
                 "a name is expected behind AS");
            item.name = parser->name;
            item.has_alias = true;
            advance(parser);
        }
    }
    *add_item(parser, list) = item;
}

static void parse_list(struct parser *parser, struct cn_ast_items *list, bool ordered)
{
    want(parser, take_word(parser, "BY"), "BY is expected here");
    do {
        struct cn_ast_item item = {.expr = parse_expr(parser)};
        if (ordered && take_word(parser, "DESC"))
            item.descending = true;
        else if (ordered)
            (void)take_word(parser, "ASC");
        *add_item(parser, list) = item;
    } while (parser->rc == 0 && take_sign(parser, ","));
}

static int64_t parse_count(struct parser *parser)
{
    int64_t count = parser->integer;
    want(parser, parser->token == INTEGER, "a whole number is expected here");
    advance(parser);
    return count;
}

static struct cn_ast_query *parse_select(struct parser *parser);

static void parse_from(struct parser *parser, struct cn_ast_query *query)
{
    if (take_sign(parser, "(")) {
        query->source = parse_select(parser);
        want(parser, take_sign(parser, ")"), "')' is expected here");
        if (take_word(parser, "AS") || (parser->token == NAME && !ends_item(parser)))
            advance(parser); /* the name of a subquery is of no use */
        return;
    }
    want(parser, parser->token == NAME || parser->token == QUOTED || parser->token == TEXT,
         "the name of a dataset is expected here");
    query->dataset = parser->name;
    advance(parser);
}

static struct cn_ast_query *parse_select(struct parser *parser)
{
    struct cn_ast_query *query = cn_arena_alloc(parser->arena, sizeof(*query));
    query->limit = -1;
    if (++parser->depth > DEPTH_MAX / 4)
        fail(parser, parser->at, "queries are nested too deeply");
    want(parser, take_word(parser, "SELECT"), "SELECT or SHOW is expected here");
    query->distinct = take_word(parser, "DISTINCT");
    do {
        parse_select_item(parser, &query->select);
    } while (parser->rc == 0 && take_sign(parser, ","));
    if (take_word(parser, "FROM"))
        parse_from(parser, query);
    if (take_word(parser, "WHERE"))
        query->where = parse_expr(parser);
    if (take_word(parser, "GROUP"))
        parse_list(parser, &query->group, false);
    if (take_word(parser, "HAVING"))
        query->having = parse_expr(parser);
    if (take_word(parser, "ORDER"))
        parse_list(parser, &query->order, true);
    if (take_word(parser, "LIMIT") && !take_word(parser, "ALL")) {
        query->limit = parse_count(parser);
        if (take_sign(parser, ",")) { /* LIMIT offset, count */
            query->offset = query->limit;
            query->limit = parse_count(parser);
        }
    }
    if (take_word(parser, "OFFSET"))
        query->offset = parse_count(parser);
    parser->depth--;
    return query;
}

static struct cn_ast_query *parse_show(struct parser *parser)
{
    struct cn_ast_query *query = cn_arena_alloc(parser->arena, sizeof(*query));
    query->limit = -1;
    advance(parser);
    if (take_word(parser, "TABLES"))
        query->statement = CN_SHOW_TABLES;
    else if (take_word(parser, "TIMEZONES"))
        query->statement = CN_SHOW_TIMEZONES;
    else if (take_word(parser, "TIMEZONE"))
        query->statement = CN_SHOW_TIMEZONE;
    else
        fail(parser, parser->at, "TABLES, TIMEZONES or TIMEZONE is expected here");
    return query;
}

static void parse_format(struct parser *parser, struct cn_ast_query *query)
{
    static const char *const names[] = {"JSON", "JSONEachRow", "TabSeparated"};
    if (!take_word(parser, "FORMAT"))
        return;
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (take_word(parser, names[i])) {
            query->format = (enum cn_format)i;
            return;
        }
    }
    fail(parser, parser->at, "the format is one of JSON, JSONEachRow, TabSeparated");
}

int cn_asql_parse(struct cn_arena *arena, const char *text, size_t size,
                  struct cn_ast_query **query, struct cn_err *err)
{
    struct parser parser = {.arena = arena, .text = text, .size = size, .err = err};
    if (size > CN_ASQL_TEXT_MAX)
        return cn_err_set(err, CN_ELIMIT, "the SQL is longer than %zu bytes", CN_ASQL_TEXT_MAX);
    advance(&parser);
    *query = is_word(&parser, "SHOW") ? parse_show(&parser) : parse_select(&parser);
    parse_format(&parser, *query);
    (void)take_sign(&parser, ";");
    want(&parser, parser.token == END, "the query should end here");
    return parser.rc;
}
