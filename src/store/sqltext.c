/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqltext.c - texts of SQL: where a statement ends, whether there is one. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "store/database.h"

/* Skips white space and comments from `at`. */
static size_t skip_space(const char *sql, size_t size, size_t at)
{
    while (at < size) {
        const char *close;
        if (sql[at] == ' ' || (sql[at] >= '\t' && sql[at] <= '\r')) {
            at++;
        } else if (size - at >= 2 && sql[at] == '-' && sql[at + 1] == '-') {
            close = memchr(sql + at, '\n', size - at);
            at = close ? (size_t)(close - sql) : size;
        } else if (size - at >= 2 && sql[at] == '/' && sql[at + 1] == '*') {
            close = memmem(sql + at + 2, size - at - 2, "*/", 2);
            at = close ? (size_t)(close - sql) + 2 : size;
        } else {
            break;
        }
    }
    return at;
}

size_t cn_sql_skip_space(const char *sql, size_t size)
{
    return skip_space(sql, size, 0);
}

bool cn_sql_blank(const char *sql, size_t size)
{
    size_t at = skip_space(sql, size, 0);
    while (at < size && sql[at] == ';')
        at = skip_space(sql, size, at + 1);
    return at == size;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The end of the token at `at`: a word, a quoted thing, or one character. */
static size_t token_end(const char *sql, size_t size, size_t at)
{
    char open = sql[at];
    if (open == '\'' || open == '"' || open == '`' || open == '[') {
        const char *close = memchr(sql + at + 1, open == '[' ? ']' : open, size - at - 1);
        return close ? (size_t)(close - sql) + 1 : size; /* a doubled quote begins another token */
    }
    if (!is_word(open))
        return at + 1;
    while (at < size && is_word(sql[at]))
        at++;
    return at;
}

/* A trigger's body has semicolons of its own; it ends with "; END;". Elsewhere the first ends the
 * statement. */
enum place { START, EXPLAINED, CREATED, IN_TRIGGER, AFTER_STEP, AFTER_END, ELSEWHERE };

static bool is(const char *token, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(token, word, size) == 0;
}

static enum place next_place(enum place place, const char *token, size_t size)
{
    switch (place) {
    case START:
    case EXPLAINED:
        if (is(token, size, "EXPLAIN") ||
            (place == EXPLAINED && (is(token, size, "QUERY") || is(token, size, "PLAN"))))
            return EXPLAINED;
        return is(token, size, "CREATE") ? CREATED : ELSEWHERE;
    case CREATED:
        if (is(token, size, "TEMP") || is(token, size, "TEMPORARY"))
            return CREATED;
        return is(token, size, "TRIGGER") ? IN_TRIGGER : ELSEWHERE;
    case IN_TRIGGER:
        return *token == ';' ? AFTER_STEP : IN_TRIGGER;
    case AFTER_STEP:
        if (*token == ';')
            return AFTER_STEP;
        return is(token, size, "END") ? AFTER_END : IN_TRIGGER;
    case AFTER_END:
        return IN_TRIGGER;
    default:
        return ELSEWHERE;
    }
}

size_t cn_sql_first(const char *sql, size_t size)
{
    enum place place = START;
    for (size_t at = skip_space(sql, size, 0); at < size; at = skip_space(sql, size, at)) {
        size_t end = token_end(sql, size, at);
        if (sql[at] == ';' && place != IN_TRIGGER && place != AFTER_STEP)
            return end;
        place = next_place(place, sql + at, end - at);
        at = end;
    }
    return size;
}
