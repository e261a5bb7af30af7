/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/vector.h"

#include <openssl/err.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "text/base64.h"
#include "text/hex.h"

/* Keeps `bytes` where a look for leaks finds them. */
static struct cn_bytes keep(uint8_t *bytes, size_t size)
{
    static uint8_t *kept[1000];
    static size_t count;
    CN_ASSERT(count < CN_ARRAY_COUNT(kept));
    kept[count++] = bytes;
    return (struct cn_bytes){bytes, size};
}

struct cn_bytes test_hex(const char *digits)
{
    size_t size = strlen(digits) / 2;
    uint8_t *bytes = cn_alloc(size + 1);
    CN_ASSERT(cn_hex_decode(digits, size, bytes));
    return keep(bytes, size);
}

struct cn_bytes test_text(const char *text)
{
    return (struct cn_bytes){(const uint8_t *)text, strlen(text)};
}

struct cn_bytes test_b64url(const char *text)
{
    char *plain = cn_strdup(text);
    for (char *at = plain; *at; at++)
        *at = *at == '-' ? '+' : *at == '_' ? '/' : *at;
    struct cn_buf out = {0};
    CN_ASSERT(cn_base64_decode(&out, plain, strlen(plain)));
    cn_free(plain);
    size_t size = out.size;
    return keep(cn_buf_take(&out), size);
}

struct cn_bytes test_span(const struct cn_buf *buf)
{
    return (struct cn_bytes){buf->data, buf->size};
}

void test_check_hex(const char *file, int line, const char *want, struct cn_buf *got)
{
    struct cn_buf text = {0};
    cn_hex_append(&text, got->data, got->size);
    test_check_str(file, line, want, cn_buf_text(&text));
    cn_buf_fini(&text);
    cn_buf_fini(got);
}

void test_no_openssl_errors(const char *file, int line)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    if (ERR_peek_error())
        test_fail(file, line, "OpenSSL's queue has: %s", reason ? reason : "an error");
}
