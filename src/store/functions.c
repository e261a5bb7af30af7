/* SPDX-License-Identifier: Apache-2.0 */
#include "store/functions.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "store/sqlite/engine.h"

static bool continues(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* ---- instr() ---- */

/* How many characters begin in `text`. */
static int count_characters(const uint8_t *text, size_t size)
{
    int count = 0;
    for (size_t i = 0; i < size; i++)
        count += !continues(text[i]);
    return count;
}

/* The number of the character, from 1, where `needle` begins; 0: nowhere. */
static int find_text(const uint8_t *text, size_t size, const uint8_t *needle, size_t needle_size)
{
    /* A character is looked for at the beginning of one. */
    if (continues(*needle))
        return size >= needle_size && memcmp(text, needle, needle_size) == 0;
    const uint8_t *found = memmem(text, size, needle, needle_size);
    if (!found)
        return 0;
    if (found == text)
        return 1;
    return count_characters(text + 1, (size_t)(found - text)) + 1;
}

static void instr_values(sqlite3_context *context, sqlite3_value *where, sqlite3_value *what,
                         bool bytes)
{
    const uint8_t *text = bytes ? sqlite3_value_blob(where) : sqlite3_value_text(where);
    size_t size = (size_t)sqlite3_value_bytes(where);
    const uint8_t *needle = bytes ? sqlite3_value_blob(what) : sqlite3_value_text(what);
    size_t needle_size = (size_t)sqlite3_value_bytes(what);
    if (!needle || (size && !text)) {
        sqlite3_result_error_nomem(context);
    } else if (size < needle_size) {
        sqlite3_result_int(context, 0);
    } else if (bytes) {
        const uint8_t *found = memmem(text, size, needle, needle_size);
        sqlite3_result_int(context, found ? (int)(found - text) + 1 : 0);
    } else {
        sqlite3_result_int(context, find_text(text, size, needle, needle_size));
    }
}

static void sql_instr(sqlite3_context *context, int count, sqlite3_value **values)
{
    CN_ASSERT(count == 2);
    int where = sqlite3_value_type(values[0]), what = sqlite3_value_type(values[1]);
    if (where == SQLITE_NULL || what == SQLITE_NULL)
        return;
    if (sqlite3_value_bytes(values[1]) == 0) {
        sqlite3_result_int(context, 1);
    } else if ((where == SQLITE_BLOB) == (what == SQLITE_BLOB)) {
        instr_values(context, values[0], values[1], where == SQLITE_BLOB);
    } else { /* as texts, without changing what others have */
        sqlite3_value *first = sqlite3_value_dup(values[0]);
        sqlite3_value *second = sqlite3_value_dup(values[1]);
        if (first && second)
            instr_values(context, first, second, false);
        else
            sqlite3_result_error_nomem(context);
        sqlite3_value_free(first);
        sqlite3_value_free(second);
    }
}

/* ---- replace() ---- */

struct replacement {
    const char *text, *what, *with;
    size_t size, what_size, with_size;
};

static size_t replace_count(const struct replacement *job)
{
    size_t count = 0;
    const char *end = job->text + job->size;
    for (const char *at = job->text;
         (at = memmem(at, (size_t)(end - at), job->what, job->what_size)); at += job->what_size)
        count++;
    return count;
}

static void replace_all(const struct replacement *job, char *out)
{
    const char *end = job->text + job->size, *at = job->text, *found;
    while ((found = memmem(at, (size_t)(end - at), job->what, job->what_size))) {
        memcpy(out, at, (size_t)(found - at));
        out += found - at;
        memcpy(out, job->with, job->with_size);
        out += job->with_size;
        at = found + job->what_size;
    }
    memcpy(out, at, (size_t)(end - at));
}

static void sql_replace(sqlite3_context *context, int count, sqlite3_value **values)
{
    CN_ASSERT(count == 3);
    struct replacement job;
    if (!(job.text = (const char *)sqlite3_value_text(values[0])))
        return;
    job.size = (size_t)sqlite3_value_bytes(values[0]);
    if (!(job.what = (const char *)sqlite3_value_text(values[1])))
        return;
    job.what_size = (size_t)sqlite3_value_bytes(values[1]);
    if (job.what[0] == 0) {
        sqlite3_result_text64(context, job.text, job.size, SQLITE_TRANSIENT, SQLITE_UTF8);
        return;
    }
    if (!(job.with = (const char *)sqlite3_value_text(values[2])))
        return;
    job.with_size = (size_t)sqlite3_value_bytes(values[2]);
    size_t times = replace_count(&job);
    size_t size = job.size - times * job.what_size + times * job.with_size;
    sqlite3 *connection = sqlite3_context_db_handle(context);
    if (size > (size_t)sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, -1)) {
        sqlite3_result_error_toobig(context);
        return;
    }
    char *out = sqlite3_malloc64(size + 1);
    if (!out) {
        sqlite3_result_error_nomem(context);
        return;
    }
    replace_all(&job, out);
    out[size] = 0;
    sqlite3_result_text64(context, out, size, sqlite3_free, SQLITE_UTF8);
}

/* ---- trim(), ltrim(), rtrim() ---- */

/* Characters as their bytes in UTF-8, one number each. */
struct characters {
    bool single[256]; /* of one byte */
    uint32_t *others; /* sorted */
    size_t count;
};

/* The size of the character at `at`: a byte, or one that leads and what continues it. */
static size_t character_size(const uint8_t *at, const uint8_t *end)
{
    size_t size = 1;
    while (*at >= 0xc0 && size < 4 && at + size < end && continues(at[size]))
        size++;
    return size;
}

/* The size of the one that ends at `end`. */
static size_t last_size(const uint8_t *begin, const uint8_t *end)
{
    size_t size = 1;
    while (size < 4 && end - size > begin && continues(*(end - size)))
        size++;
    return *(end - size) >= 0xc0 ? size : 1;
}

static uint32_t character_number(const uint8_t *at, size_t size)
{
    uint32_t number = 0;
    memcpy(&number, at, size);
    return number;
}

static int compare(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return first < second ? -1 : first > second;
}

/* False: no memory. */
static bool characters_init(struct characters *set, const uint8_t *text, size_t size)
{
    *set = (struct characters){0};
    const uint8_t *end = text + size;
    size_t others = 0;
    for (const uint8_t *at = text; at < end; at += character_size(at, end))
        others += character_size(at, end) > 1;
    if (others && !(set->others = sqlite3_malloc64(others * sizeof(*set->others))))
        return false;
    for (const uint8_t *at = text; at < end;) {
        size_t each = character_size(at, end);
        if (each == 1)
            set->single[*at] = true;
        else
            set->others[set->count++] = character_number(at, each);
        at += each;
    }
    if (others)
        qsort(set->others, set->count, sizeof(*set->others), compare);
    return true;
}

static bool has_character(const struct characters *set, const uint8_t *at, size_t size)
{
    if (size == 1)
        return set->single[*at];
    uint32_t number = character_number(at, size);
    return set->count && bsearch(&number, set->others, set->count, sizeof(number), compare);
}

static void sql_trim(sqlite3_context *context, int count, sqlite3_value **values)
{
    const uint8_t *set_text = (const uint8_t *)" ";
    size_t set_size = 1;
    const uint8_t *at = sqlite3_value_text(values[0]);
    if (!at)
        return;
    const uint8_t *end = at + sqlite3_value_bytes(values[0]);
    if (count == 2) {
        if (!(set_text = sqlite3_value_text(values[1])))
            return;
        set_size = strlen((const char *)set_text);
    }
    struct characters set;
    if (!characters_init(&set, set_text, set_size)) {
        sqlite3_result_error_nomem(context);
        return;
    }
    uintptr_t sides = (uintptr_t)sqlite3_user_data(context); /* 1: the beginning, 2: the end */
    while (sides & 1 && at < end && has_character(&set, at, character_size(at, end)))
        at += character_size(at, end);
    while (sides & 2 && at < end &&
           has_character(&set, end - last_size(at, end), last_size(at, end)))
        end -= last_size(at, end);
    sqlite3_result_text64(context, (const char *)at, (size_t)(end - at), SQLITE_TRANSIENT,
                          SQLITE_UTF8);
    sqlite3_free(set.others);
}

void cn_functions_setup(void)
{
    static const struct {
        const char *name;
        int count;
        void (*function)(sqlite3_context *context, int count, sqlite3_value **values);
    } list[] = {
        {"instr", 2, sql_instr}, {"replace", 3, sql_replace}, {"trim", 1, sql_trim},
        {"trim", 2, sql_trim},   {"ltrim", 1, sql_trim},      {"ltrim", 2, sql_trim},
        {"rtrim", 1, sql_trim},  {"rtrim", 2, sql_trim},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(list); i++)
        cn_sqlite_replace(list[i].name, list[i].count, list[i].function);
    cn_sqlite_bound();
}
