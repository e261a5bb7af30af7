/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/rsa.h"

#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "base/assert.h"

int cn_crypto_rsa_oaep(bool encrypt, enum cn_crypto_hash hash, struct cn_bytes key_der,
                       struct cn_bytes label, struct cn_bytes data, struct cn_buf *out,
                       struct cn_err *err)
{
    const EVP_MD *md = cn_crypto_md(hash);
    if (!md)
        return cn_crypto_no_hash(err);
    EVP_PKEY *key = cn_crypto_key(CN_KEY_RSA, !encrypt, key_der, err);
    if (!key)
        return CN_EINVALID;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
    CN_ASSERT(ctx);
    bool ok = (encrypt ? EVP_PKEY_encrypt_init(ctx) : EVP_PKEY_decrypt_init(ctx)) > 0 &&
              EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING) > 0 &&
              EVP_PKEY_CTX_set_rsa_oaep_md(ctx, md) > 0 &&
              EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, md) > 0;
    if (ok && label.size > 0) {
        void *copy = OPENSSL_memdup(label.data, label.size); /* the context's own */
        ok = copy && EVP_PKEY_CTX_set0_rsa_oaep_label(ctx, copy, (int)label.size) > 0;
        if (!ok)
            OPENSSL_free(copy);
    }
    size_t size = (size_t)EVP_PKEY_get_size(key);
    cn_buf_reserve(out, size);
    if (ok)
        ok = (encrypt
                  ? EVP_PKEY_encrypt(ctx, out->data + out->size, &size, data.data, data.size)
                  : EVP_PKEY_decrypt(ctx, out->data + out->size, &size, data.data, data.size)) > 0;
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(key);
    if (!ok)
        return cn_crypto_fail(err, CN_EPROTOCOL,
                              encrypt ? "encryption failed" : "decryption failed");
    out->size += size;
    return 0;
}
