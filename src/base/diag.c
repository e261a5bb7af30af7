/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <stdarg.h>
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

void cn_diag_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                    const char *text, size_t length)
{
    if (!cn_diag_enabled(level))
        return;
    struct cn_buf line = {0};
    if (diag.format == CN_DIAG_JSON) {
        cn_buf_append_str(&line, "{\"time\":\"");
        append_time(&line, "%Y-%m-%dT%H:%M:%S");
        cn_buf_printf(&line, "\",\"level\":\"%s\"", level_names[level]);
        for (size_t i = 0; i < count; i++) {
            if (!fields[i].text)
                continue;
            cn_buf_printf(&line, ",\"%s\":", fields[i].name);
            cn_buf_append_json(&line, fields[i].text, field_length(&fields[i]));
        }
        cn_buf_append_str(&line, ",\"message\":");
        cn_buf_append_json(&line, text, length);
        cn_buf_append_str(&line, "}\n");
    } else {
        append_time(&line, "%H:%M:%S");
        cn_buf_printf(&line, " %-5s ", level_names[level]);
        for (size_t i = 0; i < count; i++) {
            if (!fields[i].text)
                continue;
            cn_buf_printf(&line, "%s=%.*s ", fields[i].name, (int)field_length(&fields[i]),
                          fields[i].text);
        }
        cn_buf_append(&line, text, length);
        cn_buf_append_byte(&line, '\n');
    }
    ssize_t written = write(STDERR_FILENO, line.data, line.size);
    (void)written; /* nobody is left to tell */
    cn_buf_fini(&line);
}

void cn_diag(enum cn_diag_level level, const char *format, ...)
{
    if (!cn_diag_enabled(level))
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
