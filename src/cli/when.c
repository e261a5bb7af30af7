/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/when.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"

/* Exactly `count` digits at *at. */
static bool take_number(const char **at, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        *value = *value * 10 + (c - '0');
    }
    *at += count;
    return true;
}

static bool take_char(const char **at, char wanted)
{
    if (**at != wanted)
        return false;
    (*at)++;
    return true;
}

/* YYYY-MM-DD or YYYYMMDD. */
static bool take_date(const char **at, struct tm *tm)
{
    const char *from = *at;
    int year, month, day;
    if (!take_number(&from, 4, &year))
        return false;
    bool dashes = take_char(&from, '-');
    if (!take_number(&from, 2, &month) || (dashes && !take_char(&from, '-')) ||
        !take_number(&from, 2, &day) || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    *at = from;
    return true;
}

/* HH:MM, HH:MM:SS, with a fraction; or HHMM, HHMMSS. */
static bool take_time(const char **at, struct tm *tm, int *ms)
{
    int second = 0;
    if (!take_number(at, 2, &tm->tm_hour))
        return false;
    bool colons = take_char(at, ':');
    if (!take_number(at, 2, &tm->tm_min))
        return false;
    bool seconds = colons ? take_char(at, ':') : isdigit((unsigned char)**at);
    if (seconds && !take_number(at, 2, &second))
        return false;
    tm->tm_sec = second;
    if (seconds && (take_char(at, '.') || take_char(at, ','))) {
        int weight = 100;
        if (!isdigit((unsigned char)**at))
            return false;
        for (; isdigit((unsigned char)**at); (*at)++, weight /= 10)
            *ms += weight * (**at - '0');
    }
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* Z, +HH, +HH:MM, +HHMM; else the time is local. False: it is none of these. */
static bool take_zone(const char **at, bool *zoned, int *offset_s)
{
    int hours = 0, minutes = 0;
    char sign = **at;
    *zoned = true;
    if (take_char(at, 'Z') || take_char(at, 'z'))
        return true;
    if (sign != '+' && sign != '-') {
        *zoned = false;
        return true;
    }
    (*at)++;
    if (!take_number(at, 2, &hours))
        return false;
    if (take_char(at, ':') || isdigit((unsigned char)**at)) {
        if (!take_number(at, 2, &minutes))
            return false;
    }
    *offset_s = (hours * 60 + minutes) * (sign == '-' ? -60 : 60);
    return hours < 24 && minutes < 60;
}

static bool take_word(const char **at, const char *word)
{
    size_t size = strlen(word);
    if (strncasecmp(*at, word, size) != 0 || isalpha((unsigned char)(*at)[size]))
        return false;
    *at += size;
    *at += strspn(*at, " ");
    return true;
}

/* "90 minutes ago", "2h ago" */
static bool parse_ago(const char *text, int64_t now_ms, int64_t *time_ms)
{
    static const struct {
        const char *names[4];
        int64_t seconds;
    } units[] = {{{"s", "sec", "second", "seconds"}, 1},
                 {{"m", "min", "minute", "minutes"}, 60},
                 {{"h", "hr", "hour", "hours"}, 3600},
                 {{"d", "day", "days", "days"}, 86400},
                 {{"w", "week", "weeks", "weeks"}, 604800}};
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    if (end == text || errno || count < 0 || count > 100000000)
        return false;
    const char *at = end + strspn(end, " ");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        for (size_t k = 0; k < 4; k++) {
            const char *rest = at;
            if (take_word(&rest, units[i].names[k]) && take_word(&rest, "ago") && !*rest) {
                *time_ms = now_ms - count * units[i].seconds * 1000;
                return true;
            }
        }
    }
    return false;
}

/* A day, a time of it, both. */
static bool parse_calendar(const char *text, int64_t now_ms, int64_t *time_ms)
{
    const char *at = text;
    time_t now = (time_t)(now_ms / 1000);
    struct tm tm;
    localtime_r(&now, &tm);
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    bool zoned = false, day = true;
    int ms = 0, offset_s = 0;
    if (take_word(&at, "yesterday"))
        tm.tm_mday--;
    else if (take_date(&at, &tm))
        day = !take_char(&at, 'T') && !take_char(&at, 't') && !take_char(&at, ' ');
    else
        day = take_word(&at, "today");
    if ((*at || !day) && !take_time(&at, &tm, &ms)) /* a day may stand alone */
        return false;
    if (*at == ' ')
        at++;
    if (!take_zone(&at, &zoned, &offset_s) || *at)
        return false;
    struct tm wanted = tm;
    time_t seconds = zoned ? timegm(&tm) - offset_s : mktime(&tm);
    /* A day that is in no month (the 31st of June) becomes another. */
    if (wanted.tm_mday > 0 && tm.tm_mday != wanted.tm_mday)
        return false;
    *time_ms = (int64_t)seconds * 1000 + ms;
    return true;
}

int cn_when_parse(const char *text, int64_t now_ms, int64_t *time_ms, struct cn_err *err)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*text && !isspace((unsigned char)*text) && !*end && !errno) {
        *time_ms = number;
        return 0;
    }
    if (strcasecmp(text, "now") == 0) {
        *time_ms = now_ms;
        return 0;
    }
    if (parse_ago(text, now_ms, time_ms) || parse_calendar(text, now_ms, time_ms))
        return 0;
    return cn_err_set(
        err, CN_EINVALID,
        "\"%.40s\" is no time: write 2026-01-31T12:00:00Z, in local time \"2026-01-31 "
        "12:00\", \"yesterday 10:00\" or \"2 hours ago\", or milliseconds since 1970",
        text);
}

int cn_when_text(const char *text, char digits[24], struct cn_err *err)
{
    int64_t time_ms;
    int rc = cn_when_parse(text, cn_clock_wall_ms(cn_clock_system()), &time_ms, err);
    if (rc == 0)
        snprintf(digits, 24, "%" PRId64, time_ms);
    return rc;
}
