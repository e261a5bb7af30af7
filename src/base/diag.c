/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

/* Written once by main() before threads start, then only read. */
static struct {
    enum cn_diag_format format;
    enum cn_diag_level least;
    bool coloured;
} diag = {CN_DIAG_PRETTY, CN_DIAG_INFO, false};

static struct {
    pthread_mutex_t lock; /* guards the list, and is held while its functions run */
    struct cn_diag_tap *first;
    atomic_int all, requests; /* how many there are, and with `requests` */
} taps = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void cn_diag_setup(enum cn_diag_format format, enum cn_diag_level least)
{
    diag.format = format;
    diag.least = least;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    diag.coloured = format == CN_DIAG_PRETTY && !(no && *no) && isatty(STDERR_FILENO) && term &&
                    strcmp(term, "dumb") != 0;
}

bool cn_diag_coloured(void)
{
    return diag.coloured;
}

enum cn_diag_format cn_diag_format(void)
{
    return diag.format;
}

int cn_diag_enabled(enum cn_diag_level level)
{
    return level >= diag.least;
}

static size_t field_length(const struct cn_diag_field *field)
{
    return field->length ? field->length : strlen(field->text);
}

static void append_time(struct cn_buf *line, const char *date_format, int64_t now)
{
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    char text[40];
    strftime(text, sizeof(text), date_format, &tm);
    cn_buf_printf(line, "%s.%03dZ", text, (int)(now % 1000));
}

void cn_diag_append_note(struct cn_buf *line, const struct cn_diag_note *note)
{
    cn_buf_append_str(line, "{\"time\":\"");
    append_time(line, "%Y-%m-%dT%H:%M:%S", note->time_ms);
    cn_buf_printf(line, "\",\"level\":\"%s\"", level_names[note->level]);
    for (size_t i = 0; i < note->count; i++) {
        if (!note->fields[i].text)
            continue;
        cn_buf_printf(line, ",\"%s\":", note->fields[i].name);
        if (note->fields[i].is_number)
            cn_buf_append(line, note->fields[i].text, field_length(&note->fields[i]));
        else
            cn_buf_append_json(line, note->fields[i].text, field_length(&note->fields[i]));
    }
    cn_buf_append_str(line, ",\"message\":");
    cn_buf_append_json(line, note->text, note->length);
    cn_buf_append_str(line, "}\n");
}

static void append_pretty(struct cn_buf *line, const struct cn_diag_note *note)
{
    static const char *const colours[] = {"2", "32", "33", "31"}; /* of the levels */
    if (diag.coloured)
        cn_buf_append_str(line, "\033[2m");
    append_time(line, "%H:%M:%S", note->time_ms);
    if (diag.coloured)
        cn_buf_printf(line, "\033[0;%sm", colours[note->level]);
    cn_buf_printf(line, " %-5s ", level_names[note->level]);
    if (diag.coloured)
        cn_buf_append_str(line, "\033[0;2m");
    for (size_t i = 0; i < note->count; i++) {
        if (!note->fields[i].text)
            continue;
        cn_buf_printf(line, "%s=%.*s ", note->fields[i].name, (int)field_length(&note->fields[i]),
                      note->fields[i].text);
    }
    if (diag.coloured)
        cn_buf_append_str(line, "\033[0m");
    cn_buf_append(line, note->text, note->length);
    cn_buf_append_byte(line, '\n');
}

void cn_diag_tap_add(struct cn_diag_tap *tap)
{
    pthread_mutex_lock(&taps.lock);
    tap->next = taps.first;
    taps.first = tap;
    atomic_fetch_add(&taps.all, 1);
    atomic_fetch_add(&taps.requests, tap->requests);
    pthread_mutex_unlock(&taps.lock);
}

void cn_diag_tap_remove(struct cn_diag_tap *tap)
{
    pthread_mutex_lock(&taps.lock);
    struct cn_diag_tap **at = &taps.first;
    while (*at != tap)
        at = &(*at)->next;
    *at = tap->next;
    atomic_fetch_sub(&taps.all, 1);
    atomic_fetch_sub(&taps.requests, tap->requests);
    pthread_mutex_unlock(&taps.lock);
}

int cn_diag_tapped(void)
{
    return atomic_load_explicit(&taps.requests, memory_order_relaxed) > 0;
}

static int anybody(void)
{
    return atomic_load_explicit(&taps.all, memory_order_relaxed) > 0;
}

static void tell_taps(const struct cn_diag_note *note, bool request)
{
    pthread_mutex_lock(&taps.lock);
    for (struct cn_diag_tap *tap = taps.first; tap; tap = tap->next) {
        if (tap->requests || !request)
            tap->note(tap, note);
    }
    pthread_mutex_unlock(&taps.lock);
}

static struct cn_diag_note make_note(enum cn_diag_level level, const struct cn_diag_field *fields,
                                     size_t count, const char *text, size_t length)
{
    int64_t now = cn_clock_wall_ms(cn_clock_system());
    return (struct cn_diag_note){now, level, fields, count, text, length};
}

void cn_diag_tap_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                        const char *text, size_t length)
{
    struct cn_diag_note note = make_note(level, fields, count, text, length);
    tell_taps(&note, true);
}

void cn_diag_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                    const char *text, size_t length)
{
    if (!cn_diag_enabled(level) && !anybody())
        return;
    struct cn_diag_note note = make_note(level, fields, count, text, length);
    if (anybody())
        tell_taps(&note, false);
    if (!cn_diag_enabled(level))
        return;
    struct cn_buf line = {0};
    if (diag.format == CN_DIAG_JSON)
        cn_diag_append_note(&line, &note);
    else
        append_pretty(&line, &note);
    ssize_t written = write(STDERR_FILENO, line.data, line.size);
    (void)written; /* nobody is left to tell */
    cn_buf_fini(&line);
}

void cn_diag(enum cn_diag_level level, const char *format, ...)
{
    if (!cn_diag_enabled(level) && !anybody())
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (length < 0)
        return;
    size_t used = (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
    cn_diag_fields(level, NULL, 0, text, used);
}
