/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MINUTE_MS 60000
#define DAY_MS 86400000ll
/* How far to look: between two leap days lie eight years at most. */
#define DAYS_MAX (8 * 366)

/* --- parsing --------------------------------------------------------------------------------- */

struct field {
    const char *name;
    int min, max;
    const char *names; /* three letters each, from `min` on; NULL: none */
};
static const struct field fields[5] = {
    {"minute", 0, 59, NULL},
    {"hour", 0, 23, NULL},
    {"day of month", 1, 31, NULL},
    {"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
    {"day of week", 1, 7, "SUNMONTUEWEDTHUFRISAT"},
};

/* A number or a name at *at; -1 if there is none within the field's range. */
static int parse_value(const struct field *field, const char **at)
{
    const char *text = *at;
    if (field->names && isalpha((unsigned char)*text)) {
        for (int i = 0; i <= field->max - field->min; i++) {
            if (strncasecmp(text, field->names + 3 * i, 3) == 0 &&
                (!isalnum((unsigned char)text[3]) || strcasecmp(text + 3, "L") == 0 ||
                 strncasecmp(text + 3, "L,", 2) == 0)) {
                *at = text + 3;
                return field->min + i;
            }
        }
        return -1;
    }
    int value = 0, digits = 0;
    for (; isdigit((unsigned char)*text) && digits < 3; digits++)
        value = value * 10 + (*text++ - '0');
    if (!digits || isdigit((unsigned char)*text) || value < field->min || value > field->max)
        return -1;
    *at = text;
    return value;
}

static int parse_number(const char **at)
{
    int value = 0, digits = 0;
    for (; isdigit((unsigned char)**at) && digits < 3; digits++)
        value = value * 10 + (*(*at)++ - '0');
    return digits ? value : -1;
}

/* L, L-n, LW, nW: false if it is none of them. */
static bool parse_day(struct cn_cron *cron, const char **at)
{
    const char *text = *at;
    if (toupper((unsigned char)*text) == 'L') {
        text++;
        int before = 0;
        if (toupper((unsigned char)*text) == 'W') {
            cron->last_working_day = true;
            *at = text + 1;
            return true;
        }
        if (*text == '-') {
            text++;
            before = parse_number(&text);
            if (before < 0 || before > 30)
                return false;
        }
        cron->days_before_last |= 1u << before;
        *at = text;
        return true;
    }
    int day = parse_value(&fields[2], &text);
    if (day < 0 || toupper((unsigned char)*text) != 'W')
        return false;
    cron->nearest_working |= 1u << day;
    *at = text + 1;
    return true;
}

/* L, nL, n#k: false if it is none of them. */
static bool parse_weekday(struct cn_cron *cron, const char **at)
{
    const char *text = *at;
    if (toupper((unsigned char)*text) == 'L' && !isalnum((unsigned char)text[1])) {
        cron->weekdays |= 1u << 7;
        *at = text + 1;
        return true;
    }
    int day = parse_value(&fields[4], &text);
    if (day < 0)
        return false;
    if (toupper((unsigned char)*text) == 'L') {
        cron->last_weekdays |= (uint8_t)(1u << day);
        *at = text + 1;
        return true;
    }
    if (*text != '#')
        return false;
    text++;
    int which = parse_number(&text);
    if (which < 1 || which > 5)
        return false;
    cron->nth_weekdays[which] |= (uint8_t)(1u << day);
    *at = text;
    return true;
}

/* "*", a, a-b, with a step or without; false if it is malformed. */
static bool parse_range(const struct field *field, const char **at, uint64_t *bits, bool *any)
{
    int first = field->min, last = field->max;
    bool all = **at == '*', single = false;
    if (all) {
        ++*at;
    } else {
        first = last = parse_value(field, at);
        single = true;
        if (first < 0)
            return false;
        if (**at == '-') {
            ++*at;
            last = parse_value(field, at);
            single = false;
            if (last < 0)
                return false;
        }
    }
    int step = 1;
    if (**at == '/') {
        ++*at;
        step = parse_number(at);
        if (step < 1 || step > field->max)
            return false;
        if (single)
            last = field->max; /* a/n: from a on */
    }
    if (last < first)
        return false;
    for (int i = first; i <= last; i += step)
        *bits |= 1ull << i;
    *any |= all;
    return true;
}

static int parse_field(struct cn_cron *cron, int index, const char *text, struct cn_err *err)
{
    const struct field *field = &fields[index];
    const char *at = text;
    uint64_t bits = 0;
    bool any = false;
    if (strchr(text, '?'))
        return cn_err_set(err, CN_EINVALID, "\"?\" is not supported: use \"*\"");
    for (;;) {
        bool special =
            (index == 2 && parse_day(cron, &at)) || (index == 4 && parse_weekday(cron, &at));
        if (!special && !parse_range(field, &at, &bits, &any))
            return cn_err_set(err, CN_EINVALID, "\"%s\" is not a %s (%d to %d)", text, field->name,
                              field->min, field->max);
        if (!*at)
            break;
        if (*at++ != ',')
            return cn_err_set(err, CN_EINVALID, "\"%s\" is not a %s (%d to %d)", text, field->name,
                              field->min, field->max);
    }
    switch (index) {
    case 0:
        cron->minutes = bits;
        break;
    case 1:
        cron->hours = (uint32_t)bits;
        break;
    case 2:
        cron->days = (uint32_t)bits;
        cron->any_day = any;
        break;
    case 3:
        cron->months = (uint32_t)bits;
        break;
    case 4:
        cron->weekdays |= (uint8_t)bits;
        cron->any_weekday = any;
        break;
    }
    return 0;
}

int cn_cron_parse(const char *text, struct cn_cron *cron, struct cn_err *err)
{
    char copy[256], *words[6] = {0}, *save = NULL;
    size_t size = strlen(text);
    *cron = (struct cn_cron){0};
    if (size >= sizeof(copy))
        return cn_err_set(err, CN_EINVALID, "the cron expression is too long");
    memcpy(copy, text, size + 1);
    int count = 0;
    for (char *word = strtok_r(copy, " \t", &save); word && count < 6;
         word = strtok_r(NULL, " \t", &save))
        words[count++] = word;
    if (count != 5)
        return cn_err_set(err, CN_EINVALID,
                          "the cron expression \"%.100s\" must have five fields: minute, hour, day "
                          "of month, month, day of week",
                          text);
    for (int i = 0; i < 5; i++) {
        int rc = parse_field(cron, i, words[i], err);
        if (rc < 0) {
            cn_err_context(err, "the cron expression \"%.100s\"", text);
            return rc;
        }
    }
    return 0;
}

/* --- occurrences ----------------------------------------------------------------------------- */

struct date {
    int year, month, day; /* month and day from 1 */
    int weekday;          /* Sunday is 1 */
    int days_in_month;
};

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* The date of a day since 1970-01-01, by the Gregorian calendar. */
static struct date date_of(int64_t number)
{
    int64_t shifted = number + 719468; /* days since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t in_era = shifted - era * 146097;
    int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * in_year + 2) / 153;
    struct date date;
    date.day = (int)(in_year - (153 * march_month + 2) / 5 + 1);
    date.month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    date.year = (int)(year_of_era + era * 400 + (date.month <= 2));
    int64_t since_thursday = ((number % 7) + 7) % 7; /* 1970-01-01 was a Thursday */
    date.weekday = (int)((since_thursday + 4) % 7) + 1;
    date.days_in_month = month_days(date.year, date.month);
    return date;
}

static int weekday_on(const struct date *date, int day)
{
    return ((date->weekday - 1 + day - date->day) % 7 + 35) % 7 + 1;
}

static bool is_working(int weekday)
{
    return weekday > 1 && weekday < 7;
}

/* The working day nearest to the n-th, without leaving the month. */
static int nearest_working(const struct date *date, int day)
{
    if (day > date->days_in_month)
        return 0;
    int weekday = weekday_on(date, day);
    if (is_working(weekday))
        return day;
    if (weekday == 7)
        return day > 1 ? day - 1 : day + 2;
    return day < date->days_in_month ? day + 1 : day - 2;
}

static bool fits_day(const struct cn_cron *cron, const struct date *date)
{
    if (cron->days >> date->day & 1)
        return true;
    int before_last = date->days_in_month - date->day;
    if (cron->days_before_last >> before_last & 1)
        return true;
    if (cron->last_working_day) {
        int last = date->days_in_month;
        while (!is_working(weekday_on(date, last)))
            last--;
        if (last == date->day)
            return true;
    }
    for (int day = 1; cron->nearest_working && day <= 31; day++) {
        if (cron->nearest_working >> day & 1 && nearest_working(date, day) == date->day)
            return true;
    }
    return false;
}

static bool fits_weekday(const struct cn_cron *cron, const struct date *date)
{
    unsigned bit = 1u << date->weekday;
    if (cron->weekdays & bit)
        return true;
    if (cron->last_weekdays & bit && date->day + 7 > date->days_in_month)
        return true;
    return (cron->nth_weekdays[(date->day - 1) / 7 + 1] & bit) != 0;
}

static bool fits_date(const struct cn_cron *cron, int64_t number)
{
    struct date date = date_of(number);
    if (!(cron->months >> date.month & 1))
        return false;
    bool day = fits_day(cron, &date), weekday = fits_weekday(cron, &date);
    if (cron->any_day || cron->any_weekday)
        return day && weekday;
    return day || weekday;
}

static bool fits_minute(const struct cn_cron *cron, int minute)
{
    return cron->hours >> (minute / 60) & 1 && cron->minutes >> (minute % 60) & 1;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

int64_t cn_cron_next(const struct cn_cron *cron, int64_t ms)
{
    int64_t minute = floor_div(ms, MINUTE_MS) + 1;
    int64_t day = floor_div(minute, 1440);
    for (int i = 0; i <= DAYS_MAX; i++, day++) {
        if (!fits_date(cron, day))
            continue;
        for (int m = i == 0 ? (int)(minute - day * 1440) : 0; m < 1440; m++) {
            if (fits_minute(cron, m))
                return (day * 1440 + m) * MINUTE_MS;
        }
    }
    return -1;
}

int64_t cn_cron_previous(const struct cn_cron *cron, int64_t ms)
{
    int64_t minute = floor_div(ms, MINUTE_MS);
    int64_t day = floor_div(minute, 1440);
    for (int i = 0; i <= DAYS_MAX; i++, day--) {
        if (!fits_date(cron, day))
            continue;
        for (int m = i == 0 ? (int)(minute - day * 1440) : 1439; m >= 0; m--) {
            if (fits_minute(cron, m))
                return (day * 1440 + m) * MINUTE_MS;
        }
    }
    return -1;
}
