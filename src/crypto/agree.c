/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/agree.h"

#include <openssl/evp.h>

#include "base/assert.h"

int cn_crypto_agree(enum cn_crypto_kind kind, struct cn_bytes pkcs8, struct cn_bytes spki,
                    struct cn_buf *out, struct cn_err *err)
{
    int rc = CN_EINVALID;
    EVP_PKEY *ours = NULL, *theirs = NULL;
    EVP_PKEY_CTX *ctx = NULL;
    if (kind < CN_KEY_P256 || kind > CN_KEY_X25519 || kind == CN_KEY_ED25519)
        return cn_err_set(err, CN_EINVALID, "keys of this kind cannot agree on a secret");
    ours = cn_crypto_key(kind, true, pkcs8, err);
    if (!ours)
        goto free_all;
    theirs = cn_crypto_key(kind, false, spki, err);
    if (!theirs)
        goto free_all;
    ctx = EVP_PKEY_CTX_new(ours, NULL);
    CN_ASSERT(ctx);
    size_t size = 0;
    if (EVP_PKEY_derive_init(ctx) <= 0 || EVP_PKEY_derive_set_peer(ctx, theirs) <= 0 ||
        EVP_PKEY_derive(ctx, NULL, &size) <= 0) {
        rc = cn_crypto_fail(err, CN_EPROTOCOL, "the keys agree on no secret");
        goto free_all;
    }
    cn_buf_reserve(out, size);
    /* For X25519 this fails if the secret is all zeros, as RFC 7748 (6.1) asks for. */
    if (EVP_PKEY_derive(ctx, out->data + out->size, &size) <= 0) {
        rc = cn_crypto_fail(err, CN_EPROTOCOL, "the keys agree on no secret");
        goto free_all;
    }
    out->size += size;
    rc = 0;
free_all:
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(ours);
    EVP_PKEY_free(theirs);
    return rc;
}
