/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/hashing.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>

#include "base/assert.h"
#include "base/mem.h"

struct cn_hashing {
    EVP_MD_CTX *ctx;
    EVP_PKEY *key; /* of an HMAC */
    bool finished; /* H1 */
};

static struct cn_hashing *hashing_alloc(void)
{
    struct cn_hashing *hashing = CN_NEW(struct cn_hashing);
    hashing->ctx = EVP_MD_CTX_new();
    CN_ASSERT(hashing->ctx);
    return hashing;
}

/* `hashing`, or NULL and it is gone. */
static struct cn_hashing *only_if(struct cn_hashing *hashing, bool good)
{
    ERR_clear_error();
    if (good)
        return hashing;
    cn_hashing_free(hashing);
    return NULL;
}

struct cn_hashing *cn_hashing_new(const char *name, const struct cn_bytes *hmac_key)
{
    const EVP_MD *md = EVP_get_digestbyname(name);
    if (!md)
        return NULL;
    struct cn_hashing *hashing = hashing_alloc();
    if (!hmac_key)
        return only_if(hashing, EVP_DigestInit_ex(hashing->ctx, md, NULL) == 1);
    hashing->key =
        EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, hmac_key->data, hmac_key->size);
    return only_if(hashing, hashing->key && EVP_DigestSignInit(hashing->ctx, NULL, md, NULL,
                                                               hashing->key) == 1);
}

void cn_hashing_free(struct cn_hashing *hashing)
{
    if (!hashing)
        return;
    EVP_MD_CTX_free(hashing->ctx);
    EVP_PKEY_free(hashing->key);
    cn_free(hashing);
}

struct cn_hashing *cn_hashing_copy(const struct cn_hashing *hashing)
{
    if (hashing->key || hashing->finished)
        return NULL;
    struct cn_hashing *copy = hashing_alloc();
    return only_if(copy, EVP_MD_CTX_copy_ex(copy->ctx, hashing->ctx) == 1);
}

static int is_finished(struct cn_err *err)
{
    return cn_err_set(err, CN_EPROTOCOL, "the hash has been finished");
}

int cn_hashing_update(struct cn_hashing *hashing, struct cn_bytes bytes, struct cn_err *err)
{
    if (hashing->finished)
        return is_finished(err);
    int rc = hashing->key ? EVP_DigestSignUpdate(hashing->ctx, bytes.data, bytes.size)
                          : EVP_DigestUpdate(hashing->ctx, bytes.data, bytes.size);
    return rc == 1 ? 0 : cn_crypto_fail(err, CN_EPROTOCOL, "the hash failed");
}

int cn_hashing_finish(struct cn_hashing *hashing, size_t size, struct cn_buf *out,
                      struct cn_err *err)
{
    if (hashing->finished)
        return is_finished(err);
    hashing->finished = true;
    if (size > 0 && !hashing->key) {
        uint8_t *at = cn_crypto_room(out, size);
        if (!at)
            return cn_crypto_no_room(err);
        if (EVP_DigestFinalXOF(hashing->ctx, at, size) != 1)
            return cn_crypto_fail(err, CN_EUNSUPPORTED, "the hash has no such length");
        out->size += size;
        return 0;
    }
    uint8_t bytes[EVP_MAX_MD_SIZE];
    size_t made = sizeof(bytes);
    unsigned made_32 = 0;
    int rc = hashing->key ? EVP_DigestSignFinal(hashing->ctx, bytes, &made)
                          : EVP_DigestFinal_ex(hashing->ctx, bytes, &made_32);
    if (rc != 1)
        return cn_crypto_fail(err, CN_EPROTOCOL, "the hash failed");
    cn_buf_append(out, bytes, hashing->key ? made : made_32);
    return 0;
}

static void add_name(const OBJ_NAME *name, void *data)
{
    struct cn_buf *names = data;
    if (names->size)
        cn_buf_append_byte(names, ' ');
    cn_buf_append_str(names, name->name);
}

void cn_crypto_names(int type, struct cn_buf *out)
{
    /* OpenSSL knows no names before somebody has asked for one. */
    OPENSSL_init_crypto(OPENSSL_INIT_ADD_ALL_CIPHERS | OPENSSL_INIT_ADD_ALL_DIGESTS, NULL);
    OBJ_NAME_do_all_sorted(type, add_name, out);
}

void cn_hashing_names(struct cn_buf *out)
{
    cn_crypto_names(OBJ_NAME_TYPE_MD_METH, out);
}
