/* SPDX-License-Identifier: Apache-2.0 */
/* base/buf.h - a growable run of bytes.
 *
 * Ownership: the struct owns `data`; cn_buf_take() moves it to the caller.
 * A zeroed struct is an empty buffer. Growth aborts on out-of-memory: check
 * sizes that come from outside against a limit before appending. */
#ifndef CN_BASE_BUF_H
#define CN_BASE_BUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf {
    uint8_t *data;
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
};

void cn_buf_fini(struct cn_buf *buf);
void cn_buf_reserve(struct cn_buf *buf, size_t extra); /* room for `extra` more bytes */
void cn_buf_append(struct cn_buf *buf, const void *bytes, size_t size);
/* For sizes chosen by others: false, and nothing is appended, if there is no memory. */
bool cn_buf_try_append(struct cn_buf *buf, const void *bytes, size_t size);
void cn_buf_append_str(struct cn_buf *buf, const char *text);
void cn_buf_append_byte(struct cn_buf *buf, uint8_t byte);
void cn_buf_append_uint(struct cn_buf *buf, uint64_t value); /* in decimal */
void cn_buf_append_int(struct cn_buf *buf, int64_t value);
void cn_buf_printf(struct cn_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void cn_buf_append_json(struct cn_buf *buf, const char *text, size_t length);
/* As text between tags: with < > & escaped. */
void cn_buf_append_html(struct cn_buf *buf, const char *text, size_t length);
/* Makes data[size] a NUL (not counted) and returns data as text. */
char *cn_buf_text(struct cn_buf *buf);
/* Drops the first `size` bytes. */
void cn_buf_consume(struct cn_buf *buf, size_t size);
/* The bytes (NULL if none were ever reserved); the buffer becomes empty. */
uint8_t *cn_buf_take(struct cn_buf *buf);

static inline void cn_buf_clear(struct cn_buf *buf)
{
    buf->size = 0;
}

#endif
