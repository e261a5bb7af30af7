/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/ciphering.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>

#include "base/assert.h"
#include "base/mem.h"
#include "crypto/hashing.h"

struct cn_ciphering {
    EVP_CIPHER_CTX *ctx;
};

static int fail(struct cn_err *err)
{
    unsigned long code = ERR_get_error();
    const char *known = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return cn_err_set(err, CN_EPROTOCOL, "%s", known ? known : "the operation failed");
}

static const EVP_CIPHER *cipher_of(const char *name)
{
    const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
    if (!cipher)
        return NULL;
    int mode = EVP_CIPHER_get_mode(cipher);
    bool needs_more = mode == EVP_CIPH_WRAP_MODE || mode == EVP_CIPH_XTS_MODE ||
                      mode == EVP_CIPH_CCM_MODE || mode == EVP_CIPH_SIV_MODE ||
                      mode == EVP_CIPH_OCB_MODE;
    return needs_more ? NULL : cipher;
}

static bool is_aead(const EVP_CIPHER *cipher)
{
    return (EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0;
}

bool cn_ciphering_find(const char *name, struct cn_ciphering_info *info)
{
    const EVP_CIPHER *cipher = cipher_of(name);
    if (!cipher)
        return false;
    *info = (struct cn_ciphering_info){
        .key_size = (size_t)EVP_CIPHER_get_key_length(cipher),
        .iv_size = (size_t)EVP_CIPHER_get_iv_length(cipher),
        .block_size = (size_t)EVP_CIPHER_get_block_size(cipher),
        .is_aead = is_aead(cipher),
    };
    return true;
}

int cn_ciphering_new(const struct cn_ciphering_params *params, struct cn_ciphering **ciphering,
                     struct cn_err *err)
{
    const EVP_CIPHER *cipher = cipher_of(params->name);
    if (!cipher)
        return cn_err_set(err, CN_EUNSUPPORTED, "Unknown cipher");
    if (params->key.size != (size_t)EVP_CIPHER_get_key_length(cipher))
        return cn_err_set(err, CN_EINVALID, "Invalid key length");
    bool aead = is_aead(cipher);
    size_t iv_size = params->iv.size;
    if (aead ? iv_size == 0 || iv_size > CN_CIPHERING_IV_MAX
             : iv_size != (size_t)EVP_CIPHER_get_iv_length(cipher))
        return cn_err_set(err, CN_EINVALID, "Invalid initialization vector");
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    CN_ASSERT(ctx);
    int encrypts = params->encrypts;
    bool good =
        EVP_CipherInit_ex(ctx, cipher, NULL, NULL, NULL, encrypts) == 1 &&
        (!aead || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, (int)iv_size, NULL) == 1) &&
        EVP_CipherInit_ex(ctx, NULL, NULL, params->key.data, params->iv.data, encrypts) == 1;
    if (!good) {
        EVP_CIPHER_CTX_free(ctx);
        return fail(err);
    }
    EVP_CIPHER_CTX_set_padding(ctx, params->pads);
    *ciphering = CN_NEW(struct cn_ciphering);
    (*ciphering)->ctx = ctx;
    return 0;
}

void cn_ciphering_free(struct cn_ciphering *ciphering)
{
    if (!ciphering)
        return;
    EVP_CIPHER_CTX_free(ciphering->ctx);
    cn_free(ciphering);
}

int cn_ciphering_update(struct cn_ciphering *ciphering, struct cn_bytes bytes, struct cn_buf *out,
                        struct cn_err *err)
{
    if (bytes.size > CN_CIPHERING_PIECE_MAX)
        return cn_err_set(err, CN_EINVALID, "the data are too long");
    uint8_t *at = cn_crypto_room(out, bytes.size + EVP_MAX_BLOCK_LENGTH);
    if (!at)
        return cn_crypto_no_room(err);
    int made = 0;
    if (EVP_CipherUpdate(ciphering->ctx, at, &made, bytes.data, (int)bytes.size) != 1)
        return fail(err);
    out->size += (size_t)made;
    return 0;
}

int cn_ciphering_cover(struct cn_ciphering *ciphering, struct cn_bytes bytes, struct cn_err *err)
{
    int made = 0;
    if (bytes.size > CN_CIPHERING_PIECE_MAX)
        return cn_err_set(err, CN_EINVALID, "the data are too long");
    return EVP_CipherUpdate(ciphering->ctx, NULL, &made, bytes.data, (int)bytes.size) == 1
               ? 0
               : fail(err);
}

int cn_ciphering_finish(struct cn_ciphering *ciphering, struct cn_buf *out, struct cn_err *err)
{
    uint8_t bytes[EVP_MAX_BLOCK_LENGTH];
    int made = 0;
    if (EVP_CipherFinal_ex(ciphering->ctx, bytes, &made) != 1)
        return fail(err);
    cn_buf_append(out, bytes, (size_t)made);
    return 0;
}

int cn_ciphering_set_tag(struct cn_ciphering *ciphering, struct cn_bytes tag, struct cn_err *err)
{
    if (tag.size < CN_CIPHERING_TAG_MIN || tag.size > CN_CIPHERING_TAG_MAX)
        return cn_err_set(err, CN_EINVALID, "a tag cannot have %zu bytes", tag.size);
    return EVP_CIPHER_CTX_ctrl(ciphering->ctx, EVP_CTRL_AEAD_SET_TAG, (int)tag.size,
                               (void *)tag.data) == 1
               ? 0
               : fail(err);
}

int cn_ciphering_get_tag(struct cn_ciphering *ciphering, size_t size, struct cn_buf *out,
                         struct cn_err *err)
{
    uint8_t tag[CN_CIPHERING_TAG_MAX];
    if (size < CN_CIPHERING_TAG_MIN || size > CN_CIPHERING_TAG_MAX)
        return cn_err_set(err, CN_EINVALID, "a tag cannot have %zu bytes", size);
    if (EVP_CIPHER_CTX_ctrl(ciphering->ctx, EVP_CTRL_AEAD_GET_TAG, (int)size, tag) != 1)
        return fail(err);
    cn_buf_append(out, tag, size);
    return 0;
}

void cn_ciphering_names(struct cn_buf *out)
{
    cn_crypto_names(OBJ_NAME_TYPE_CIPHER_METH, out);
}
