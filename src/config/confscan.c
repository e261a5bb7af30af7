/* SPDX-License-Identifier: Apache-2.0 */
#include "config/confscan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

bool cn_confscan_init(struct cn_confscan *scan, const char *name, const char *text, size_t length,
                      struct cn_err *err)
{
    *scan =
        (struct cn_confscan){.name = name, .text = text, .length = length, .line = 1, .err = err};
    if (length > CN_CONF_SIZE_MAX) {
        cn_err_set(err, CN_ELIMIT, "%s: larger than %u bytes", name, CN_CONF_SIZE_MAX);
        return false;
    }
    size_t pos = 0;
    while (pos < length) {
        size_t size = cn_utf8_sequence(text + pos, length - pos);
        if (size == 0) {
            int line = 1;
            for (size_t i = 0; i < pos; i++)
                line += text[i] == '\n';
            cn_err_set(err, CN_EINVALID, "%s:%d: the file is not valid UTF-8", name, line);
            return false;
        }
        pos += size;
    }
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        scan->pos = scan->line_start = 3;
    return true;
}

static void fail_v(struct cn_confscan *scan, int line, int column, const char *format, va_list args)
{
    if (scan->failed)
        return;
    scan->failed = true;
    char sentence[CN_ERR_TEXT_MAX];
    vsnprintf(sentence, sizeof(sentence), format, args);
    cn_err_set(scan->err, CN_EINVALID, "%s:%d:%d: %s", scan->name, line, column, sentence);
}

void *cn_confscan_fail(struct cn_confscan *scan, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(scan, scan->line, cn_confscan_column(scan), format, args);
    va_end(args);
    return NULL;
}

void *cn_confscan_fail_at(struct cn_confscan *scan, int line, int column, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(scan, line, column, format, args);
    va_end(args);
    return NULL;
}

struct cn_confnode *cn_confscan_node(struct cn_confscan *scan, enum cn_confnode_kind kind)
{
    if (++scan->node_count > CN_CONF_NODE_MAX)
        return cn_confscan_fail(scan, "more than %d values in one file", CN_CONF_NODE_MAX);
    return cn_confnode_new(kind, scan->line, cn_confscan_column(scan));
}

struct cn_confnode *cn_confscan_text(struct cn_confscan *scan,
                                     bool (*parse)(struct cn_confscan *scan, struct cn_buf *out))
{
    struct cn_confnode *node = cn_confscan_node(scan, CN_CONF_STRING);
    if (!node)
        return NULL;
    struct cn_buf buf = {0};
    if (!parse(scan, &buf)) {
        cn_buf_fini(&buf);
        cn_confnode_free(node);
        return NULL;
    }
    node->length = buf.size;
    cn_buf_text(&buf);
    node->text = (char *)cn_buf_take(&buf);
    return node;
}

int64_t cn_confscan_hex(struct cn_confscan *scan, int digits)
{
    int64_t code = 0;
    for (int i = 0; i < digits; i++) {
        int c = cn_confscan_peek(scan, 0), digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            digit = (c | 32) - 'a' + 10;
        else
            return -1;
        code = code * 16 + digit;
        cn_confscan_skip(scan);
    }
    return code;
}

void cn_confscan_append_utf8(struct cn_buf *buf, uint32_t code)
{
    char bytes[4];
    cn_buf_append(buf, bytes, cn_utf8_encode(code, bytes));
}
