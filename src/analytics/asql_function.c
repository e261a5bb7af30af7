/* SPDX-License-Identifier: Apache-2.0 */
/* analytics/asql_function.c - functions and operators of a row.
 *
 * A function has a signature: a letter per argument, '?' before those that may be left out, and
 * behind '>' what comes of it:
 *
 *     n  a number, whole or not        b  UInt8 (true or false)
 *     i  a whole number                h  UInt16, w  UInt32, l  UInt64, z  Int64
 *     s  a text                        f  Float64
 *     t  a time                        s  String, t  DateTime, d  Date
 *     v  an interval, a  anything      =  what the first argument is
 *     *  any number of anything
 *
 * Operators whose result depends on more than that have a `bind` of their own. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "analytics/asql_private.h"
#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"

#define TEXT_MAX ((size_t)1 << 20) /* that a function makes */
#define EVAL(name) static struct cn_value name(struct cn_row *row, const struct cn_expr *expr)
#define INT(x) ((struct cn_value){.integer = (x)})
#define NUMBER(x) ((struct cn_value){.number = (x)})
#define ARG(i) (expr->args[i])

double cn_expr_number(struct cn_row *row, const struct cn_expr *expr)
{
    struct cn_value value = cn_expr_eval(row, expr);
    return expr->type.kind == CN_KIND_NUMBER ? value.number : (double)value.integer;
}

static int64_t to_integer(double number)
{
    return number >= 9.2e18 ? INT64_MAX : number <= -9.2e18 ? INT64_MIN : (int64_t)number;
}

int64_t cn_expr_integer(struct cn_row *row, const struct cn_expr *expr)
{
    struct cn_value value = cn_expr_eval(row, expr);
    if (expr->type.kind != CN_KIND_NUMBER)
        return value.integer;
    return isnan(value.number) ? 0 : to_integer(value.number);
}

bool cn_expr_is_true(struct cn_row *row, const struct cn_expr *expr)
{
    return cn_expr_number(row, expr) != 0;
}

/* Moves a text to where it stays until the next row. */
static struct cn_value take_text(struct cn_row *row, struct cn_buf *text)
{
    struct cn_value value = {.text = "", .size = 0};
    if (text->size + row->scratch.size > 16 * TEXT_MAX || text->size > TEXT_MAX) {
        row->too_large = true;
    } else {
        value.text = cn_arena_text(&row->scratch, (const char *)text->data, text->size);
        value.size = (uint32_t)text->size;
    }
    cn_buf_fini(text);
    return value;
}

/* --- arithmetic ------------------------------------------------------------------------------ */

/* Whole numbers wrap around, as everywhere in this dialect. */
#define WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))
EVAL(add_int)
{
    return INT(WRAP(cn_expr_integer(row, ARG(0)), +, cn_expr_integer(row, ARG(1))));
}
EVAL(sub_int)
{
    return INT(WRAP(cn_expr_integer(row, ARG(0)), -, cn_expr_integer(row, ARG(1))));
}
EVAL(mul_int)
{
    return INT(WRAP(cn_expr_integer(row, ARG(0)), *, cn_expr_integer(row, ARG(1))));
}
EVAL(add_num)
{
    return NUMBER(cn_expr_number(row, ARG(0)) + cn_expr_number(row, ARG(1)));
}
EVAL(sub_num)
{
    return NUMBER(cn_expr_number(row, ARG(0)) - cn_expr_number(row, ARG(1)));
}
EVAL(mul_num)
{
    return NUMBER(cn_expr_number(row, ARG(0)) * cn_expr_number(row, ARG(1)));
}
EVAL(divide)
{
    return NUMBER(cn_expr_number(row, ARG(0)) / cn_expr_number(row, ARG(1)));
}
EVAL(neg_int)
{
    return INT(WRAP(0, -, cn_expr_integer(row, ARG(0))));
}
EVAL(neg_num)
{
    return NUMBER(-cn_expr_number(row, ARG(0)));
}
EVAL(mod_num)
{
    return NUMBER(fmod(cn_expr_number(row, ARG(0)), cn_expr_number(row, ARG(1))));
}
EVAL(mod_int)
{
    int64_t by = cn_expr_integer(row, ARG(1));
    return INT(by == 0 || by == -1 ? 0 : cn_expr_integer(row, ARG(0)) % by);
}
EVAL(int_div)
{
    double by = cn_expr_number(row, ARG(1));
    if (by == 0)
        return INT(0);
    if (ARG(0)->type.kind == CN_KIND_NUMBER || ARG(1)->type.kind == CN_KIND_NUMBER)
        return INT(to_integer(floor(cn_expr_number(row, ARG(0)) / by)));
    int64_t a = cn_expr_integer(row, ARG(0)), b = cn_expr_integer(row, ARG(1));
    if (b == -1)
        return INT(WRAP(0, -, a));
    return INT(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

/* --- times and intervals --------------------------------------------------------------------- */

static int64_t floor_to(int64_t value, int64_t step)
{
    int64_t rest = value % step;
    return value - (rest < 0 ? rest + step : rest);
}

static struct tm fields_of(int64_t seconds)
{
    time_t time = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&time, &tm))
        tm = (struct tm){.tm_year = 70, .tm_mday = 1};
    return tm;
}

static const int32_t unit_seconds[] = {1, 60, 3600, 86400, 604800, 0, 0, 0};
static const int32_t unit_months[] = {0, 0, 0, 0, 0, 1, 3, 12};

static int64_t add_months(int64_t seconds, int64_t months)
{
    struct tm tm = fields_of(seconds);
    int64_t month = tm.tm_year * (int64_t)12 + tm.tm_mon + months;
    tm.tm_year = (int)(floor_to(month, 12) / 12);
    tm.tm_mon = (int)(month - floor_to(month, 12));
    int day = tm.tm_mday;
    int64_t result = (int64_t)timegm(&tm);
    if (tm.tm_mday != day) /* the 31st of a shorter month is its last day */
        result -= (int64_t)tm.tm_mday * 86400;
    return result;
}

static struct cn_value shift(struct cn_row *row, const struct cn_expr *time,
                             const struct cn_expr *interval, int64_t sign)
{
    int64_t seconds = cn_expr_integer(row, time);
    struct cn_value by = cn_expr_eval(row, interval);
    if (unit_months[by.size])
        return INT(add_months(seconds, sign * by.integer * unit_months[by.size]));
    return INT(WRAP(seconds, +, sign * by.integer * unit_seconds[by.size]));
}
EVAL(add_interval)
{
    bool first = ARG(0)->type.kind == CN_KIND_INTERVAL;
    return shift(row, ARG(first), ARG(!first), 1);
}
EVAL(sub_interval)
{
    return shift(row, ARG(0), ARG(1), -1);
}

static int64_t start_of(int64_t seconds, int64_t count, enum cn_unit unit)
{
    if (count < 1)
        count = 1;
    if (unit == CN_WEEK) /* from Monday on; 1970 began with a Thursday */
        return floor_to(seconds + 3 * 86400, count * 604800) - 3 * 86400;
    if (unit_seconds[unit])
        return floor_to(seconds, count * unit_seconds[unit]);
    struct tm tm = fields_of(seconds);
    int64_t month =
        floor_to((tm.tm_year - 70) * (int64_t)12 + tm.tm_mon, count * unit_months[unit]);
    int64_t year = floor_to(month, 12) / 12;
    struct tm start = {.tm_year = (int)year + 70, .tm_mon = (int)(month - year * 12), .tm_mday = 1};
    return (int64_t)timegm(&start);
}
EVAL(start_of_interval)
{
    struct cn_value step = cn_expr_eval(row, ARG(1));
    return INT(start_of(cn_expr_integer(row, ARG(0)), step.integer, (enum cn_unit)step.size));
}
#define START(name, count, unit)                                         \
    EVAL(name)                                                           \
    {                                                                    \
        return INT(start_of(cn_expr_integer(row, ARG(0)), count, unit)); \
    }
START(start_of_year, 1, CN_YEAR)
START(start_of_month, 1, CN_MONTH)
START(start_of_week, 1, CN_WEEK)
START(start_of_day, 1, CN_DAY)
START(start_of_hour, 1, CN_HOUR)
START(start_of_fifteen, 15, CN_MINUTE)
START(start_of_ten, 10, CN_MINUTE)
START(start_of_five, 5, CN_MINUTE)
START(start_of_minute, 1, CN_MINUTE)

#define FIELD(name, expression)                                 \
    EVAL(name)                                                  \
    {                                                           \
        struct tm tm = fields_of(cn_expr_integer(row, ARG(0))); \
        return INT(expression);                                 \
    }
FIELD(year_of, tm.tm_year + 1900)
FIELD(quarter_of, tm.tm_mon / 3 + 1)
FIELD(month_of, tm.tm_mon + 1)
FIELD(day_of_month, tm.tm_mday)
FIELD(day_of_week, tm.tm_wday == 0 ? 7 : tm.tm_wday)
FIELD(day_of_year, tm.tm_yday + 1)
FIELD(hour_of, tm.tm_hour)
FIELD(minute_of, tm.tm_min)
FIELD(second_of, tm.tm_sec)
FIELD(yyyymm, (tm.tm_year + 1900) * 100 + tm.tm_mon + 1)
FIELD(yyyymmdd, ((tm.tm_year + 1900) * 100 + tm.tm_mon + 1) * 100 + tm.tm_mday)

EVAL(to_time)
{
    if (ARG(0)->type.kind != CN_KIND_TEXT)
        return INT(cn_expr_integer(row, ARG(0)));
    struct cn_value text = cn_expr_eval(row, ARG(0));
    int64_t seconds;
    return INT(cn_time_parse(text.text, text.size, &seconds) ? seconds : 0);
}
EVAL(to_date)
{
    return INT(floor_to(to_time(row, expr).integer, 86400));
}

EVAL(format_time)
{
    struct tm tm = fields_of(cn_expr_integer(row, ARG(0)));
    struct cn_value format = cn_expr_eval(row, ARG(1));
    struct cn_buf out = {0};
    for (uint32_t i = 0; i < format.size; i++) {
        char piece[64], one[3] = {'%', i + 1 < format.size ? format.text[i + 1] : 0, 0};
        if (format.text[i] != '%' || !one[1]) {
            cn_buf_append_byte(&out, (uint8_t)format.text[i]);
            continue;
        }
        i++;
        if (one[1] == 'i') /* the minute, as %M */
            one[1] = 'M';
        size_t size = strchr("aAbBCdDeFgGhHIjklmMnpRrSTtuVwyY%", one[1])
                          ? strftime(piece, sizeof(piece), one, &tm)
                          : 0;
        cn_buf_append(&out, piece, size);
    }
    return take_text(row, &out);
}

/* --- comparisons ----------------------------------------------------------------------------- */

static int compare(struct cn_row *row, const struct cn_expr *expr)
{
    enum cn_kind a = ARG(0)->type.kind, b = ARG(1)->type.kind;
    if (a == b || (a != CN_KIND_NUMBER && b != CN_KIND_NUMBER)) {
        struct cn_value left = cn_expr_eval(row, ARG(0)), right = cn_expr_eval(row, ARG(1));
        return cn_value_compare(a, &left, &right);
    }
    struct cn_value left = NUMBER(cn_expr_number(row, ARG(0))),
                    right = NUMBER(cn_expr_number(row, ARG(1)));
    return cn_value_compare(CN_KIND_NUMBER, &left, &right);
}
EVAL(equal)
{
    return INT(compare(row, expr) == 0);
}
EVAL(unequal)
{
    return INT(compare(row, expr) != 0);
}
EVAL(less)
{
    return INT(compare(row, expr) < 0);
}
EVAL(less_equal)
{
    return INT(compare(row, expr) <= 0);
}
EVAL(greater)
{
    return INT(compare(row, expr) > 0);
}
EVAL(greater_equal)
{
    return INT(compare(row, expr) >= 0);
}

char cn_expr_compares(const struct cn_expr *expr)
{
    return expr->eval == less            ? '<'
           : expr->eval == less_equal    ? 'l'
           : expr->eval == greater       ? '>'
           : expr->eval == greater_equal ? 'g'
           : expr->eval == equal         ? '='
                                         : 0;
}

struct cn_value cn_eval_and(struct cn_row *row, const struct cn_expr *expr)
{
    return INT(cn_expr_is_true(row, ARG(0)) && cn_expr_is_true(row, ARG(1)));
}
EVAL(either)
{
    return INT(cn_expr_is_true(row, ARG(0)) || cn_expr_is_true(row, ARG(1)));
}
EVAL(negation)
{
    return INT(!cn_expr_is_true(row, ARG(0)));
}
EVAL(among)
{
    struct cn_value value = cn_expr_eval(row, ARG(0));
    for (size_t i = 0; i < expr->list_count; i++) {
        if (cn_value_compare(ARG(0)->type.kind, &value, &expr->list[i]) == 0)
            return INT(1);
    }
    return INT(0);
}
EVAL(choose)
{
    return cn_expr_eval(row, cn_expr_is_true(row, ARG(0)) ? ARG(1) : ARG(2));
}
EVAL(choose_num)
{
    return NUMBER(cn_expr_number(row, cn_expr_is_true(row, ARG(0)) ? ARG(1) : ARG(2)));
}

/* --- texts ----------------------------------------------------------------------------------- */

bool cn_like(const char *text, size_t size, const char *pattern, size_t pattern_size, bool fold)
{
    /* Where to go on when what follows the last % does not fit: one character further. */
    size_t at = 0, p = 0, star = SIZE_MAX, mark = 0;
    while (at < size) {
        bool escaped = p + 1 < pattern_size && pattern[p] == '\\';
        char want = p < pattern_size ? pattern[p + escaped] : 0;
        if (p < pattern_size && !escaped && want == '%') {
            star = ++p;
            mark = at;
            continue;
        }
        bool any = p < pattern_size && !escaped && want == '_';
        size_t step = any ? cn_utf8_sequence(text + at, size - at) : 1;
        if (any || (p < pattern_size &&
                    (fold ? tolower((unsigned char)want) == tolower((unsigned char)text[at])
                          : want == text[at]))) {
            p += 1 + escaped;
            at += step ? step : 1;
        } else if (star != SIZE_MAX) {
            p = star;
            at = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern_size && pattern[p] == '%')
        p++;
    return p == pattern_size;
}

static struct cn_value match(struct cn_row *row, const struct cn_expr *expr, bool fold)
{
    struct cn_value text = cn_expr_eval(row, ARG(0)), pattern = cn_expr_eval(row, ARG(1));
    return INT(cn_like(text.text, text.size, pattern.text, pattern.size, fold));
}
EVAL(like)
{
    return match(row, expr, false);
}
EVAL(ilike)
{
    return match(row, expr, true);
}

static size_t code_points(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}
EVAL(length)
{
    struct cn_value text = cn_expr_eval(row, ARG(0));
    return INT((int64_t)code_points(text.text, text.size));
}
EVAL(is_empty)
{
    return INT(cn_expr_eval(row, ARG(0)).size == 0);
}
EVAL(is_not_empty)
{
    return INT(cn_expr_eval(row, ARG(0)).size != 0);
}

static struct cn_value map_bytes(struct cn_row *row, const struct cn_expr *expr, int (*to)(int))
{
    struct cn_value text = cn_expr_eval(row, ARG(0));
    struct cn_buf out = {0};
    cn_buf_append(&out, text.text, text.size);
    for (size_t i = 0; i < out.size; i++) {
        if (out.data[i] < 0x80)
            out.data[i] = (uint8_t)to(out.data[i]);
    }
    return take_text(row, &out);
}
EVAL(lower)
{
    return map_bytes(row, expr, tolower);
}
EVAL(upper)
{
    return map_bytes(row, expr, toupper);
}
EVAL(starts_with)
{
    struct cn_value text = cn_expr_eval(row, ARG(0)), part = cn_expr_eval(row, ARG(1));
    return INT(text.size >= part.size && memcmp(text.text, part.text, part.size) == 0);
}
EVAL(ends_with)
{
    struct cn_value text = cn_expr_eval(row, ARG(0)), part = cn_expr_eval(row, ARG(1));
    return INT(text.size >= part.size &&
               memcmp(text.text + text.size - part.size, part.text, part.size) == 0);
}
EVAL(position)
{
    struct cn_value text = cn_expr_eval(row, ARG(0)), part = cn_expr_eval(row, ARG(1));
    const char *found = memmem(text.text, text.size, part.text, part.size);
    return INT(found ? (int64_t)code_points(text.text, (size_t)(found - text.text)) + 1 : 0);
}
/* Counts characters from 1; from the end if the offset is negative. */
EVAL(substring)
{
    struct cn_value text = cn_expr_eval(row, ARG(0));
    int64_t count = (int64_t)code_points(text.text, text.size);
    int64_t first = cn_expr_integer(row, ARG(1));
    int64_t length = expr->arg_count > 2 ? cn_expr_integer(row, ARG(2)) : INT64_MAX;
    first = first > 0 ? first - 1 : first < 0 ? count + first : 0;
    if (first < 0)
        first = 0;
    int64_t at = -1;
    size_t begin = text.size, end = text.size;
    for (size_t i = 0; i < text.size; i++) {
        if (((unsigned char)text.text[i] & 0xc0) == 0x80)
            continue;
        at++;
        if (at == first)
            begin = i;
        if (length <= 0 || (at >= first && at - first >= length)) {
            end = i;
            break;
        }
    }
    if (end < begin)
        begin = end;
    return (struct cn_value){.text = text.text + begin, .size = (uint32_t)(end - begin)};
}
EVAL(concat)
{
    struct cn_buf out = {0};
    for (size_t i = 0; i < expr->arg_count; i++) {
        struct cn_value value = cn_expr_eval(row, ARG(i));
        cn_value_print(&out, &ARG(i)->type, &value);
    }
    return take_text(row, &out);
}
EVAL(format)
{
    struct cn_value text = cn_expr_eval(row, ARG(0));
    struct cn_buf out = {0};
    size_t next = 1;
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.text[i] == '{' && i + 1 < text.size && text.text[i + 1] == '}' &&
            next < expr->arg_count) {
            struct cn_value value = cn_expr_eval(row, ARG(next));
            cn_value_print(&out, &ARG(next++)->type, &value);
            i++;
        } else {
            cn_buf_append_byte(&out, (uint8_t)text.text[i]);
        }
    }
    return take_text(row, &out);
}
EVAL(to_text)
{
    return concat(row, expr);
}
EVAL(hex)
{
    struct cn_value value = cn_expr_eval(row, ARG(0));
    struct cn_buf out = {0};
    if (ARG(0)->type.kind == CN_KIND_TEXT) {
        for (uint32_t i = 0; i < value.size && out.size <= TEXT_MAX; i++)
            cn_buf_printf(&out, "%02X", (unsigned char)value.text[i]);
    } else {
        int64_t number = cn_expr_integer(row, ARG(0));
        cn_buf_printf(&out, "%02llX", (unsigned long long)number);
        if (out.size % 2) {
            cn_buf_clear(&out);
            cn_buf_printf(&out, "0%llX", (unsigned long long)number);
        }
    }
    return take_text(row, &out);
}
EVAL(bin)
{
    struct cn_buf out = {0};
    if (ARG(0)->type.kind == CN_KIND_TEXT) {
        struct cn_value value = cn_expr_eval(row, ARG(0));
        for (uint32_t i = 0; i < value.size && out.size <= TEXT_MAX; i++) {
            for (int bit = 7; bit >= 0; bit--)
                cn_buf_append_byte(&out, (uint8_t)('0' + (value.text[i] >> bit & 1)));
        }
    } else {
        uint64_t number = (uint64_t)cn_expr_integer(row, ARG(0));
        int bits = 8;
        while (bits < 64 && number >> bits)
            bits += 8;
        for (int bit = bits - 1; bit >= 0; bit--)
            cn_buf_append_byte(&out, (uint8_t)('0' + (number >> bit & 1)));
    }
    return take_text(row, &out);
}

/* --- numbers --------------------------------------------------------------------------------- */

static double text_number(struct cn_row *row, const struct cn_expr *expr)
{
    if (expr->type.kind != CN_KIND_TEXT)
        return cn_expr_number(row, expr);
    struct cn_value text = cn_expr_eval(row, expr);
    char copy[64];
    size_t size = text.size < sizeof(copy) ? text.size : sizeof(copy) - 1;
    memcpy(copy, text.text, size);
    copy[size] = 0;
    return strtod(copy, NULL);
}
#define TO_INT(name, to)                                          \
    EVAL(name)                                                    \
    {                                                             \
        if (ARG(0)->type.kind == CN_KIND_TEXT)                    \
            return INT((to)to_integer(text_number(row, ARG(0)))); \
        return INT((to)cn_expr_integer(row, ARG(0)));             \
    }
TO_INT(to_u8, uint8_t)
TO_INT(to_u16, uint16_t)
TO_INT(to_u32, uint32_t)
TO_INT(to_i64, int64_t)
EVAL(to_number)
{
    return NUMBER(text_number(row, ARG(0)));
}

static struct cn_value rounded(struct cn_row *row, const struct cn_expr *expr,
                               double (*how)(double))
{
    double number = cn_expr_number(row, ARG(0));
    int64_t digits = expr->arg_count > 1 ? cn_expr_integer(row, ARG(1)) : 0;
    if (digits == 0)
        return NUMBER(how(number));
    double scale = pow(10, (double)(digits > 0 ? digits : -digits));
    if (!isfinite(scale))
        return NUMBER(digits > 0 ? number : 0);
    return NUMBER(digits > 0 ? how(number * scale) / scale : how(number / scale) * scale);
}
EVAL(round_to)
{
    return rounded(row, expr, round);
}
EVAL(floor_of)
{
    return rounded(row, expr, floor);
}
EVAL(ceil_of)
{
    return rounded(row, expr, ceil);
}
#define MATH(name, fn)                                  \
    EVAL(name)                                          \
    {                                                   \
        return NUMBER(fn(cn_expr_number(row, ARG(0)))); \
    }
MATH(natural_log, log)
MATH(binary_log, log2)
MATH(decimal_log, log10)
MATH(exponential, exp)
MATH(square_root, sqrt)
EVAL(power)
{
    return NUMBER(pow(cn_expr_number(row, ARG(0)), cn_expr_number(row, ARG(1))));
}
EVAL(abs_int)
{
    int64_t value = cn_expr_integer(row, ARG(0));
    return INT(value < 0 ? WRAP(0, -, value) : value);
}
EVAL(abs_num)
{
    return NUMBER(fabs(cn_expr_number(row, ARG(0))));
}

static uint64_t bits_of(struct cn_row *row, const struct cn_expr *expr)
{
    return (uint64_t)cn_expr_integer(row, expr);
}
/* The bits that the type of the first argument has. */
static unsigned width(const struct cn_expr *expr)
{
    return ARG(0)->type.kind == CN_KIND_INT ? ARG(0)->type.bits : 64;
}
static uint64_t cut(const struct cn_expr *expr, uint64_t value)
{
    return width(expr) == 64 ? value : value & (((uint64_t)1 << width(expr)) - 1);
}
EVAL(bit_and)
{
    return INT((int64_t)(bits_of(row, ARG(0)) & bits_of(row, ARG(1))));
}
EVAL(bit_or)
{
    return INT((int64_t)(bits_of(row, ARG(0)) | bits_of(row, ARG(1))));
}
EVAL(bit_xor)
{
    return INT((int64_t)(bits_of(row, ARG(0)) ^ bits_of(row, ARG(1))));
}
EVAL(bit_not)
{
    return INT((int64_t)cut(expr, ~bits_of(row, ARG(0))));
}
EVAL(bit_count)
{
    return INT(__builtin_popcountll(bits_of(row, ARG(0))));
}
EVAL(bit_distance)
{
    return INT(__builtin_popcountll(bits_of(row, ARG(0)) ^ bits_of(row, ARG(1))));
}
EVAL(bit_left)
{
    uint64_t by = bits_of(row, ARG(1));
    return INT(by > 63 ? 0 : (int64_t)(bits_of(row, ARG(0)) << by));
}
EVAL(bit_right)
{
    uint64_t by = bits_of(row, ARG(1));
    return INT(by > 63 ? 0 : (int64_t)(bits_of(row, ARG(0)) >> by));
}
static struct cn_value rotate(struct cn_row *row, const struct cn_expr *expr, bool left)
{
    uint64_t value = cut(expr, bits_of(row, ARG(0)));
    unsigned by = (unsigned)(bits_of(row, ARG(1)) % width(expr));
    if (by == 0)
        return INT((int64_t)value);
    unsigned other = width(expr) - by;
    return INT(
        (int64_t)cut(expr, left ? value << by | value >> other : value >> by | value << other));
}
EVAL(bit_rotate_left)
{
    return rotate(row, expr, true);
}
EVAL(bit_rotate_right)
{
    return rotate(row, expr, false);
}
EVAL(bit_test)
{
    uint64_t bit = bits_of(row, ARG(1));
    return INT(bit < 64 ? (int64_t)(bits_of(row, ARG(0)) >> bit & 1) : 0);
}

/* --- binding --------------------------------------------------------------------------------- */

static const struct cn_type u8 = {.kind = CN_KIND_INT, .bits = 8};
static const struct cn_type time_type = {.kind = CN_KIND_TIME};
static const struct cn_type number_type = {.kind = CN_KIND_NUMBER};

static bool is_number(const struct cn_expr *expr)
{
    return expr->type.kind == CN_KIND_INT || expr->type.kind == CN_KIND_NUMBER;
}

static int mismatch(const char *name, struct cn_err *err)
{
    return cn_err_set(err, CN_EINVALID, "%s: the arguments do not have types that fit", name);
}

/* A text beside a time is one: timestamp > '2026-01-31 00:00:00'. */
static bool text_to_time(const struct cn_expr **arg)
{
    int64_t seconds;
    struct cn_expr *expr = (struct cn_expr *)*arg; /* a constant of this call alone */
    if (!expr->is_constant || expr->type.kind != CN_KIND_TEXT ||
        !cn_time_parse(expr->value.text, expr->value.size, &seconds))
        return false;
    expr->value = INT(seconds);
    expr->type = time_type;
    return true;
}

static int bind_compare(struct cn_expr *expr, const char *name, struct cn_err *err)
{
    enum cn_kind a = ARG(0)->type.kind, b = ARG(1)->type.kind;
    expr->type = u8;
    if (a == CN_KIND_TIME && b == CN_KIND_TEXT && text_to_time(&expr->args[1]))
        return 0;
    if (b == CN_KIND_TIME && a == CN_KIND_TEXT && text_to_time(&expr->args[0]))
        return 0;
    bool texts = a == CN_KIND_TEXT || b == CN_KIND_TEXT;
    bool odd = a >= CN_KIND_INTERVAL || b >= CN_KIND_INTERVAL;
    return odd || (texts && a != b) ? mismatch(name, err) : 0;
}

static struct cn_type wider(const struct cn_expr *expr, bool is_signed)
{
    uint8_t bits = ARG(0)->type.bits > ARG(1)->type.bits ? ARG(0)->type.bits : ARG(1)->type.bits;
    return (struct cn_type){.kind = CN_KIND_INT,
                            .bits = bits >= 32 ? 64 : (uint8_t)(bits * 2),
                            .is_signed =
                                is_signed || ARG(0)->type.is_signed || ARG(1)->type.is_signed};
}

static int bind_arithmetic(struct cn_expr *expr, const char *name, struct cn_err *err)
{
    enum cn_kind a = ARG(0)->type.kind, b = ARG(1)->type.kind;
    bool adds = *name == '+', subtracts = *name == '-';
    bool time_interval = a == CN_KIND_TIME && b == CN_KIND_INTERVAL;
    bool interval_time = a == CN_KIND_INTERVAL && b == CN_KIND_TIME && adds;
    if ((adds || subtracts) && (time_interval || interval_time)) {
        expr->type = time_type;
        expr->eval = adds ? add_interval : sub_interval;
    } else if (a == CN_KIND_TIME && (b == CN_KIND_INT || b == CN_KIND_TIME) &&
               (subtracts || (adds && b == CN_KIND_INT))) {
        expr->type = time_type; /* of seconds */
        if (b == CN_KIND_TIME)
            expr->type = (struct cn_type){.kind = CN_KIND_INT, .bits = 32, .is_signed = true};
        expr->eval = adds ? add_int : sub_int;
    } else if (!is_number(ARG(0)) || !is_number(ARG(1))) {
        return mismatch(name, err);
    } else if (a == CN_KIND_NUMBER || b == CN_KIND_NUMBER) {
        expr->type = number_type;
        expr->eval = adds ? add_num : subtracts ? sub_num : *name == '*' ? mul_num : mod_num;
    } else {
        expr->type = *name == '%' ? ARG(1)->type : wider(expr, subtracts);
        expr->eval = adds ? add_int : subtracts ? sub_int : *name == '*' ? mul_int : mod_int;
    }
    return 0;
}

/* negate and abs: of both kinds of numbers. */
static int bind_sign(struct cn_expr *expr, const char *name, struct cn_err *err)
{
    bool negates = *name == 'n', whole = ARG(0)->type.kind == CN_KIND_INT;
    if (!is_number(ARG(0)))
        return mismatch(name, err);
    expr->type = ARG(0)->type;
    if (whole && negates)
        expr->type.is_signed = true;
    expr->eval = negates ? whole ? neg_int : neg_num : whole ? abs_int : abs_num;
    return 0;
}

static int bind_if(struct cn_expr *expr, const char *name, struct cn_err *err)
{
    if (!is_number(ARG(0)))
        return mismatch(name, err);
    expr->type = ARG(1)->type;
    if (ARG(1)->type.kind == ARG(2)->type.kind) {
        if (ARG(2)->type.kind == CN_KIND_INT && ARG(2)->type.bits > expr->type.bits)
            expr->type.bits = ARG(2)->type.bits;
        expr->type.is_signed = expr->type.is_signed || ARG(2)->type.is_signed;
        return 0;
    }
    if (!is_number(ARG(1)) || !is_number(ARG(2)))
        return mismatch(name, err);
    expr->type = number_type;
    expr->eval = choose_num;
    return 0;
}

static int bind_in(struct cn_expr *expr, const char *name, struct cn_err *err)
{
    (void)name;
    (void)err; /* the compiler has converted the list */
    expr->type = u8;
    return 0;
}

static const struct function {
    const char *name; /* lower case */
    const char *signature;
    cn_eval eval;
    int (*bind)(struct cn_expr *expr, const char *name, struct cn_err *err);
} functions[] = {
    {"+", "aa>f", NULL, bind_arithmetic},
    {"-", "aa>f", NULL, bind_arithmetic},
    {"*", "aa>f", NULL, bind_arithmetic},
    {"%", "aa>f", NULL, bind_arithmetic},
    {"/", "nn>f", divide, NULL},
    {"negate", "a>f", NULL, bind_sign},
    {"abs", "a>f", NULL, bind_sign},
    {"=", "aa>b", equal, bind_compare},
    {"!=", "aa>b", unequal, bind_compare},
    {"<", "aa>b", less, bind_compare},
    {"<=", "aa>b", less_equal, bind_compare},
    {">", "aa>b", greater, bind_compare},
    {">=", "aa>b", greater_equal, bind_compare},
    {"and", "nn>b", cn_eval_and, NULL},
    {"or", "nn>b", either, NULL},
    {"not", "n>b", negation, NULL},
    {"in", "a>b", among, bind_in},
    {"like", "ss>b", like, NULL},
    {"ilike", "ss>b", ilike, NULL},
    {"if", "aaa>=", choose, bind_if},
    {"intdiv", "nn>z", int_div, NULL},
    {"log", "n>f", natural_log, NULL},
    {"ln", "n>f", natural_log, NULL},
    {"log2", "n>f", binary_log, NULL},
    {"log10", "n>f", decimal_log, NULL},
    {"exp", "n>f", exponential, NULL},
    {"sqrt", "n>f", square_root, NULL},
    {"pow", "nn>f", power, NULL},
    {"power", "nn>f", power, NULL},
    {"round", "n?i>f", round_to, NULL},
    {"floor", "n?i>f", floor_of, NULL},
    {"ceil", "n?i>f", ceil_of, NULL},
    {"ceiling", "n?i>f", ceil_of, NULL},
    {"bitand", "ii>=", bit_and, NULL},
    {"bitor", "ii>=", bit_or, NULL},
    {"bitxor", "ii>=", bit_xor, NULL},
    {"bitnot", "i>=", bit_not, NULL},
    {"bitcount", "i>b", bit_count, NULL},
    {"bithammingdistance", "ii>b", bit_distance, NULL},
    {"bitshiftleft", "ii>l", bit_left, NULL},
    {"bitshiftright", "ii>=", bit_right, NULL},
    {"bitrotateleft", "ii>=", bit_rotate_left, NULL},
    {"bitrotateright", "ii>=", bit_rotate_right, NULL},
    {"bittest", "ii>b", bit_test, NULL},
    {"hex", "a>s", hex, NULL},
    {"bin", "a>s", bin, NULL},
    {"length", "s>w", length, NULL},
    {"lengthutf8", "s>w", length, NULL},
    {"empty", "s>b", is_empty, NULL},
    {"notempty", "s>b", is_not_empty, NULL},
    {"lower", "s>s", lower, NULL},
    {"upper", "s>s", upper, NULL},
    {"startswith", "ss>b", starts_with, NULL},
    {"endswith", "ss>b", ends_with, NULL},
    {"position", "ss>w", position, NULL},
    {"substring", "si?i>s", substring, NULL},
    {"concat", "a*>s", concat, NULL},
    {"format", "s*>s", format, NULL},
    {"tostring", "a>s", to_text, NULL},
    {"touint8", "a>b", to_u8, NULL},
    {"touint16", "a>h", to_u16, NULL},
    {"touint32", "a>w", to_u32, NULL},
    {"touint64", "a>l", to_i64, NULL},
    {"toint64", "a>z", to_i64, NULL},
    {"tofloat64", "a>f", to_number, NULL},
    {"todatetime", "a?s>t", to_time, NULL},
    {"todate", "a?s>d", to_date, NULL},
    {"tounixtimestamp", "t>w", to_time, NULL},
    {"tostartofinterval", "tv?s>t", start_of_interval, NULL},
    {"tostartofyear", "t>t", start_of_year, NULL},
    {"tostartofmonth", "t>t", start_of_month, NULL},
    {"tostartofweek", "t>t", start_of_week, NULL},
    {"tostartofday", "t>t", start_of_day, NULL},
    {"tostartofhour", "t>t", start_of_hour, NULL},
    {"tostartoffifteenminutes", "t>t", start_of_fifteen, NULL},
    {"tostartoftenminutes", "t>t", start_of_ten, NULL},
    {"tostartoffiveminutes", "t>t", start_of_five, NULL},
    {"tostartofminute", "t>t", start_of_minute, NULL},
    {"toyear", "t>h", year_of, NULL},
    {"toquarter", "t>b", quarter_of, NULL},
    {"tomonth", "t>b", month_of, NULL},
    {"todayofmonth", "t>b", day_of_month, NULL},
    {"todayofweek", "t>b", day_of_week, NULL},
    {"todayofyear", "t>h", day_of_year, NULL},
    {"tohour", "t>b", hour_of, NULL},
    {"tominute", "t>b", minute_of, NULL},
    {"tosecond", "t>b", second_of, NULL},
    {"toyyyymm", "t>w", yyyymm, NULL},
    {"toyyyymmdd", "t>w", yyyymmdd, NULL},
    {"formatdatetime", "ts?s>s", format_time, NULL},
};

static bool fits(char letter, const struct cn_expr *arg)
{
    enum cn_kind kind = arg->type.kind;
    switch (letter) {
    case 'n':
        return kind == CN_KIND_INT || kind == CN_KIND_NUMBER;
    case 'i':
        return kind == CN_KIND_INT;
    case 's':
        return kind == CN_KIND_TEXT;
    case 't':
        return kind == CN_KIND_TIME;
    case 'v':
        return kind == CN_KIND_INTERVAL;
    default:
        return kind != CN_KIND_INTERVAL && kind != CN_KIND_LIST;
    }
}

static struct cn_type type_of(char letter, const struct cn_expr *expr)
{
    switch (letter) {
    case 'b':
        return u8;
    case 'h':
        return (struct cn_type){.kind = CN_KIND_INT, .bits = 16};
    case 'w':
        return (struct cn_type){.kind = CN_KIND_INT, .bits = 32};
    case 'l':
        return (struct cn_type){.kind = CN_KIND_INT, .bits = 64};
    case 'z':
        return (struct cn_type){.kind = CN_KIND_INT, .bits = 64, .is_signed = true};
    case 's':
        return (struct cn_type){.kind = CN_KIND_TEXT};
    case 't':
        return time_type;
    case 'd':
        return (struct cn_type){.kind = CN_KIND_TIME, .is_date = true};
    case '=':
        return ARG(0)->type;
    default:
        return number_type;
    }
}

static int check_arguments(const struct function *function, const struct cn_expr *expr,
                           const char *name, struct cn_err *err)
{
    const char *letter = function->signature;
    size_t count = 0;
    bool optional = false;
    for (; *letter != '>'; letter++) {
        if (*letter == '?') {
            optional = true;
            continue;
        }
        if (*letter == '*') {
            for (; count < expr->arg_count; count++) {
                if (!fits('a', ARG(count)))
                    return mismatch(name, err);
            }
            return 0;
        }
        if (count == expr->arg_count && optional)
            return 0;
        if (count == expr->arg_count)
            return cn_err_set(err, CN_EINVALID, "%s: an argument is missing", name);
        /* Arithmetic on intervals is looked at by its own function. */
        if (!fits(*letter, ARG(count)) &&
            !(function->bind && ARG(count)->type.kind == CN_KIND_INTERVAL))
            return cn_err_set(err, CN_EINVALID, "%s: argument %zu does not have a type that fits",
                              name, count + 1);
        count++;
    }
    if (count < expr->arg_count)
        return cn_err_set(err, CN_EINVALID, "%s: there are too many arguments", name);
    return 0;
}

/* The last argument of these is a time zone. */
static int check_zone(const struct function *function, const struct cn_expr *expr,
                      struct cn_err *err)
{
    static const char *const known[] = {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z"};
    const char *mark = strstr(function->signature, "?s>");
    if (!mark || expr->arg_count != (size_t)(mark - function->signature) + 1)
        return 0;
    const struct cn_expr *zone = ARG(expr->arg_count - 1);
    for (size_t i = 0; zone->is_constant && i < CN_ARRAY_COUNT(known); i++) {
        if (zone->value.size == strlen(known[i]) &&
            memcmp(zone->value.text, known[i], zone->value.size) == 0)
            return 0;
    }
    return cn_err_set(err, CN_EUNSUPPORTED, "%s: the only time zone here is Etc/UTC",
                      function->name);
}

/* now() and today(): the moment the query began. */
static bool bind_now(struct cn_expr *expr, const char *name, int64_t now_ms)
{
    bool is_date = strcasecmp(name, "today") == 0;
    if (expr->arg_count || (!is_date && strcasecmp(name, "now") != 0))
        return false;
    expr->is_constant = true;
    expr->type = (struct cn_type){.kind = CN_KIND_TIME, .is_date = is_date};
    expr->value = INT(is_date ? floor_to(now_ms / 1000, 86400) : now_ms / 1000);
    return true;
}

int cn_asql_bind(struct cn_expr *expr, const char *name, int64_t now_ms, struct cn_err *err)
{
    if (bind_now(expr, name, now_ms))
        return 0;
    const struct function *function = NULL;
    for (size_t i = 0; i < CN_ARRAY_COUNT(functions); i++) {
        if (strcasecmp(functions[i].name, name) == 0)
            function = &functions[i];
    }
    if (!function)
        return cn_err_set(err, CN_EINVALID, "there is no function %.80s()", name);
    int rc = check_arguments(function, expr, name, err);
    if (rc == 0)
        rc = check_zone(function, expr, err);
    if (rc < 0)
        return rc;
    expr->eval = function->eval;
    expr->type = type_of(strchr(function->signature, '>')[1], expr);
    return function->bind ? function->bind(expr, function->name, err) : 0;
}
