/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_value.c - values: their types, order, and texts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analytics/asql_private.h"
#include "base/assert.h"

void cn_type_name(const struct cn_type *type, struct cn_buf *out)
{
    switch (type->kind) {
    case CN_KIND_INT:
        return cn_buf_printf(out, "%s%u", type->is_signed ? "Int" : "UInt", type->bits);
    case CN_KIND_NUMBER:
        return cn_buf_append_str(out, "Float64");
    case CN_KIND_TEXT:
        return cn_buf_append_str(out, "String");
    case CN_KIND_TIME:
        return cn_buf_append_str(out, type->is_date ? "Date" : "DateTime");
    case CN_KIND_INTERVAL:
        return cn_buf_append_str(out, "Interval");
    case CN_KIND_LIST:
        return cn_buf_append_str(out, type->item_kind == CN_KIND_TEXT   ? "Array(String)"
                                      : type->item_kind == CN_KIND_TIME ? "Array(DateTime)"
                                      : type->item_kind == CN_KIND_INT  ? "Array(Int64)"
                                                                        : "Array(Float64)");
    }
}

static int compare_text(const struct cn_value *a, const struct cn_value *b)
{
    uint32_t size = a->size < b->size ? a->size : b->size;
    int order = size ? memcmp(a->text, b->text, size) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

int cn_value_compare(enum cn_kind kind, const struct cn_value *a, const struct cn_value *b)
{
    switch (kind) {
    case CN_KIND_NUMBER: /* NaN comes last, and equals itself: an order must be total */
        if (isnan(a->number) || isnan(b->number))
            return isnan(a->number) - isnan(b->number);
        return (a->number > b->number) - (a->number < b->number);
    case CN_KIND_TEXT:
        return compare_text(a, b);
    case CN_KIND_LIST:
        return (a->size > b->size) - (a->size < b->size);
    default:
        return (a->integer > b->integer) - (a->integer < b->integer);
    }
}

struct cn_value cn_value_keep(struct cn_arena *arena, enum cn_kind kind, struct cn_value value)
{
    if (kind == CN_KIND_TEXT)
        value.text = cn_arena_text(arena, value.text, value.size);
    return value; /* lists are made in the arena of the results */
}

void cn_value_append_key(struct cn_buf *out, enum cn_kind kind, const struct cn_value *value)
{
    if (kind == CN_KIND_TEXT) {
        cn_buf_append(out, &value->size, sizeof(value->size));
        cn_buf_append(out, value->text, value->size);
    } else if (kind == CN_KIND_NUMBER) {
        double number = value->number == 0 ? 0 : value->number; /* -0 is 0 */
        cn_buf_append(out, &number, sizeof(number));
    } else {
        cn_buf_append(out, &value->integer, sizeof(value->integer));
    }
}

/* --- numbers --------------------------------------------------------------------------------- */

/* With as few digits as read back to the same number. */
void cn_number_print(struct cn_buf *out, double number)
{
    char text[40];
    if (isnan(number))
        return cn_buf_append_str(out, "nan");
    if (isinf(number))
        return cn_buf_append_str(out, number < 0 ? "-inf" : "inf");
    if (fabs(number) < 1e15 && number == (double)(int64_t)number)
        return cn_buf_printf(out, "%lld", (long long)number);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    cn_buf_append_str(out, text);
}

void cn_value_print(struct cn_buf *out, const struct cn_type *type, const struct cn_value *value)
{
    static const char *const units[] = {"second", "minute", "hour",    "day",
                                        "week",   "month",  "quarter", "year"};
    switch (type->kind) {
    case CN_KIND_INT:
        return cn_buf_printf(out, "%lld", (long long)value->integer);
    case CN_KIND_NUMBER:
        return cn_number_print(out, value->number);
    case CN_KIND_TEXT:
        return cn_buf_append(out, value->text, value->size);
    case CN_KIND_TIME:
        return cn_time_print(out, value->integer, type->is_date);
    case CN_KIND_INTERVAL:
        return cn_buf_printf(out, "%lld %s", (long long)value->integer, units[value->size]);
    case CN_KIND_LIST:
        break;
    }
    struct cn_type item = {.kind = type->item_kind};
    const char *quote = item.kind == CN_KIND_TEXT || item.kind == CN_KIND_TIME ? "'" : "";
    cn_buf_append_byte(out, '[');
    for (uint32_t i = 0; i < value->size; i++) {
        cn_buf_append_str(out, i ? "," : "");
        cn_buf_append_str(out, quote);
        cn_value_print(out, &item, &value->items[i]);
        cn_buf_append_str(out, quote);
    }
    cn_buf_append_byte(out, ']');
}

/* --- times ----------------------------------------------------------------------------------- */

void cn_time_print(struct cn_buf *out, int64_t seconds, bool is_date)
{
    char text[64];
    struct tm tm;
    time_t time = (time_t)seconds;
    if (!gmtime_r(&time, &tm))
        tm = (struct tm){.tm_mday = 1, .tm_year = 70};
    strftime(text, sizeof(text), is_date ? "%Y-%m-%d" : "%Y-%m-%d %H:%M:%S", &tm);
    cn_buf_append_str(out, text);
}

/* Exactly `count` digits. */
static bool take_digits(const char **at, int count, int *value)
{
    *value = 0;
    for (; count > 0; count--, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return true;
}

bool cn_time_parse(const char *text, size_t size, int64_t *seconds)
{
    char copy[32];
    if (size == 0 || size >= sizeof(copy))
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    char *end;
    *seconds = strtoll(copy, &end, 10);
    if (end == copy + size)
        return true;
    const char *at = copy;
    int year, month, day, hour = 0, minute = 0, second = 0;
    if (!take_digits(&at, 4, &year) || *at++ != '-' || !take_digits(&at, 2, &month) ||
        *at++ != '-' || !take_digits(&at, 2, &day))
        return false;
    if (*at == ' ' || *at == 'T') {
        at++;
        if (!take_digits(&at, 2, &hour) || *at++ != ':' || !take_digits(&at, 2, &minute) ||
            *at++ != ':' || !take_digits(&at, 2, &second))
            return false;
        if (*at == 'Z')
            at++;
    }
    if (at != copy + size || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
        minute > 59 || second > 59)
        return false;
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute,
                    .tm_sec = second};
    *seconds = (int64_t)timegm(&tm);
    return tm.tm_mday == day; /* no 31st of February */
}
