/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/crypto.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "base/mem.h"

int cn_crypto_fail(struct cn_err *err, int code, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    cn_err_set(err, code, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
    ERR_clear_error();
    return code;
}

uint8_t *cn_crypto_room(struct cn_buf *out, size_t size)
{
    if (size > out->capacity - out->size) {
        uint8_t *grown =
            out->data ? cn_try_realloc(out->data, out->size + size) : cn_try_alloc_large(size);
        if (!grown)
            return NULL;
        out->data = grown;
        out->capacity = out->size + size;
    }
    return out->data + out->size;
}

int cn_crypto_no_room(struct cn_err *err)
{
    return cn_err_set(err, CN_ENOMEM, "not enough memory for the result");
}

void cn_crypto_wipe(void *bytes, size_t size)
{
    OPENSSL_cleanse(bytes, size);
}
