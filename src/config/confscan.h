/* SPDX-License-Identifier: Apache-2.0 */
/* config/confscan.h - what the TOML and the JSONC parser share: a cursor over the
 * text that knows its line and column, counts nodes and depth against the
 * bounds, and words errors as "file:line:column: sentence". */
#ifndef CN_CONFIG_CONFSCAN_H
#define CN_CONFIG_CONFSCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/confnode.h"

struct cn_buf;
struct cn_err;

struct cn_confscan {
    const char *name; /* of the file, for errors */
    const char *text;
    size_t length;
    size_t pos;
    size_t line_start; /* offset of the current line's first byte */
    int line;          /* from 1 */
    unsigned depth;    /* of open arrays and tables */
    size_t node_count;
    struct cn_err *err;
    bool failed; /* `err` is set; the parser unwinds */
};

/* Checks size and encoding, skips a byte order mark. False: failed. */
bool cn_confscan_init(struct cn_confscan *scan, const char *name, const char *text, size_t length,
                      struct cn_err *err);

/* The byte at the cursor plus `ahead`, or -1 past the end. */
static inline int cn_confscan_peek(const struct cn_confscan *scan, size_t ahead)
{
    return scan->length - scan->pos > ahead ? (unsigned char)scan->text[scan->pos + ahead] : -1;
}

/* Moves over one byte, counting lines. Must not be at the end. */
static inline void cn_confscan_skip(struct cn_confscan *scan)
{
    if (scan->text[scan->pos++] == '\n') {
        scan->line++;
        scan->line_start = scan->pos;
    }
}

static inline int cn_confscan_column(const struct cn_confscan *scan)
{
    return (int)(scan->pos - scan->line_start) + 1;
}

/* Sets the error at the cursor, or at a place seen before; returns NULL. Only
 * the first error counts. */
void *cn_confscan_fail(struct cn_confscan *scan, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *cn_confscan_fail_at(struct cn_confscan *scan, int line, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A node at the cursor, counted against the bound; NULL past it. */
struct cn_confnode *cn_confscan_node(struct cn_confscan *scan, enum cn_confnode_kind kind);

/* A string at the cursor, which `parse` reads; NULL: it has failed. */
struct cn_confnode *cn_confscan_text(struct cn_confscan *scan,
                                     bool (*parse)(struct cn_confscan *scan, struct cn_buf *out));

/* Reads `digits` hexadecimal digits at the cursor; -1 if they are not there. */
int64_t cn_confscan_hex(struct cn_confscan *scan, int digits);
/* Appends a Unicode scalar value as UTF-8. */
void cn_confscan_append_utf8(struct cn_buf *buf, uint32_t code);

#endif
