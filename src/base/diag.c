/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

/* Written once by main() before threads start, then only read. */
static struct {
    enum cn_diag_format format;
    enum cn_diag_level least;
} diag = {CN_DIAG_PRETTY, CN_DIAG_INFO};

static struct {
    pthread_mutex_t lock; /* guards line and data, and is held while the function runs */
    atomic_int active;
    void (*line)(void *data, const char *json, size_t size);
    void *data;
} tap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void cn_diag_setup(enum cn_diag_format format, enum cn_diag_level least)
{
    diag.format = format;
    diag.least = least;
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

static void append_time(struct cn_buf *line, const char *date_format)
{
    int64_t now = cn_clock_wall_ms(cn_clock_system());
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    char text[40];
    strftime(text, sizeof(text), date_format, &tm);
    cn_buf_printf(line, "%s.%03dZ", text, (int)(now % 1000));
}

static void append_json(struct cn_buf *line, enum cn_diag_level level,
                        const struct cn_diag_field *fields, size_t count, const char *text,
                        size_t length)
{
    cn_buf_append_str(line, "{\"time\":\"");
    append_time(line, "%Y-%m-%dT%H:%M:%S");
    cn_buf_printf(line, "\",\"level\":\"%s\"", level_names[level]);
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].text)
            continue;
        cn_buf_printf(line, ",\"%s\":", fields[i].name);
        cn_buf_append_json(line, fields[i].text, field_length(&fields[i]));
    }
    cn_buf_append_str(line, ",\"message\":");
    cn_buf_append_json(line, text, length);
    cn_buf_append_str(line, "}\n");
}

static void append_pretty(struct cn_buf *line, enum cn_diag_level level,
                          const struct cn_diag_field *fields, size_t count, const char *text,
                          size_t length)
{
    append_time(line, "%H:%M:%S");
    cn_buf_printf(line, " %-5s ", level_names[level]);
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].text)
            continue;
        cn_buf_printf(line, "%s=%.*s ", fields[i].name, (int)field_length(&fields[i]),
                      fields[i].text);
    }
    cn_buf_append(line, text, length);
    cn_buf_append_byte(line, '\n');
}

void cn_diag_tap(void (*line)(void *data, const char *json, size_t size), void *data)
{
    pthread_mutex_lock(&tap.lock);
    tap.line = line;
    tap.data = data;
    atomic_store(&tap.active, line != NULL);
    pthread_mutex_unlock(&tap.lock);
}

int cn_diag_tapped(void)
{
    return atomic_load_explicit(&tap.active, memory_order_relaxed);
}

void cn_diag_tap_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                        const char *text, size_t length)
{
    struct cn_buf line = {0};
    append_json(&line, level, fields, count, text, length);
    pthread_mutex_lock(&tap.lock);
    if (tap.line)
        tap.line(tap.data, (const char *)line.data, line.size);
    pthread_mutex_unlock(&tap.lock);
    cn_buf_fini(&line);
}

void cn_diag_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                    const char *text, size_t length)
{
    if (cn_diag_tapped())
        cn_diag_tap_fields(level, fields, count, text, length);
    if (!cn_diag_enabled(level))
        return;
    struct cn_buf line = {0};
    if (diag.format == CN_DIAG_JSON)
        append_json(&line, level, fields, count, text, length);
    else
        append_pretty(&line, level, fields, count, text, length);
    ssize_t written = write(STDERR_FILENO, line.data, line.size);
    (void)written; /* nobody is left to tell */
    cn_buf_fini(&line);
}

void cn_diag(enum cn_diag_level level, const char *format, ...)
{
    if (!cn_diag_enabled(level) && !cn_diag_tapped())
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
