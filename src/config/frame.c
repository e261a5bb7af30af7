/* SPDX-License-Identifier: Apache-2.0 */
#include "config/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define WIDTH_MAX 160

static void append_line(FILE *file, unsigned long line, unsigned long column, struct cn_buf *out)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t size = -1;
    for (unsigned long i = 0; i < line && (size = getline(&text, &room, file)) >= 0; i++)
        continue;
    if (size >= 0) {
        size_t shown = strcspn(text, "\r\n");
        shown = shown < WIDTH_MAX ? shown : WIDTH_MAX;
        cn_buf_printf(out, "> %4lu | %.*s\n", line, (int)shown, text);
        if (column >= 1 && column <= shown + 1) {
            cn_buf_append_str(out, "       | ");
            for (unsigned long i = 1; i < column; i++)
                cn_buf_append_byte(out, text[i - 1] == '\t' ? '\t' : ' ');
            cn_buf_append_str(out, "^\n");
        }
    }
    free(text);
}

void cn_config_frame(const char *error, struct cn_buf *out)
{
    for (const char *at = error; (at = strchr(at, ':')); at++) {
        char *end;
        unsigned long line = strtoul(at + 1, &end, 10);
        unsigned long column = line && *end == ':' ? strtoul(end + 1, &end, 10) : 0;
        if (!column || *end != ':')
            continue;
        char *path = cn_strndup(error, (size_t)(at - error));
        FILE *file = *path == '/' ? fopen(path, "re") : NULL;
        cn_free(path);
        if (file) {
            append_line(file, line, column, out);
            fclose(file);
        }
        return;
    }
}
