/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

static const struct cn_crypto_kind_info kinds[] = {
    [CN_KEY_RSA] = {"RSA", NULL, EVP_PKEY_RSA, 0},
    [CN_KEY_P256] = {"P-256", "P-256", EVP_PKEY_EC, 32},
    [CN_KEY_P384] = {"P-384", "P-384", EVP_PKEY_EC, 48},
    [CN_KEY_P521] = {"P-521", "P-521", EVP_PKEY_EC, 66},
    [CN_KEY_ED25519] = {"Ed25519", NULL, EVP_PKEY_ED25519, 32},
    [CN_KEY_X25519] = {"X25519", NULL, EVP_PKEY_X25519, 32},
};

bool cn_crypto_kind_known(uint32_t kind)
{
    return kind >= CN_KEY_RSA && kind < CN_ARRAY_COUNT(kinds);
}

const struct cn_crypto_kind_info *cn_crypto_kind_info(enum cn_crypto_kind kind)
{
    CN_ASSERT(kind >= CN_KEY_RSA && kind < CN_ARRAY_COUNT(kinds));
    return &kinds[kind];
}

bool cn_crypto_is_curve(enum cn_crypto_kind kind)
{
    return cn_crypto_kind_info(kind)->group != NULL;
}

/* ---- reading and writing DER ---- */

static EVP_PKEY *pkcs8_parse(struct cn_bytes der)
{
    const uint8_t *at = der.data;
    PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &at, (long)der.size);
    EVP_PKEY *key = NULL;
    if (info && at == der.data + der.size)
        key = EVP_PKCS82PKEY(info);
    PKCS8_PRIV_KEY_INFO_free(info);
    return key;
}

static EVP_PKEY *spki_parse(struct cn_bytes der)
{
    const uint8_t *at = der.data;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)der.size);
    if (key && at != der.data + der.size) {
        EVP_PKEY_free(key);
        return NULL;
    }
    return key;
}

static bool kind_fits(EVP_PKEY *key, enum cn_crypto_kind kind)
{
    const struct cn_crypto_kind_info *info = cn_crypto_kind_info(kind);
    if (EVP_PKEY_get_base_id(key) != info->base_id)
        return false;
    if (kind == CN_KEY_RSA)
        return EVP_PKEY_get_bits(key) >= CN_CRYPTO_RSA_BITS_MIN &&
               EVP_PKEY_get_bits(key) <= CN_CRYPTO_RSA_BITS_MAX;
    if (!cn_crypto_is_curve(kind))
        return true;
    char group[64];
    size_t size;
    return EVP_PKEY_get_group_name(key, group, sizeof(group), &size) &&
           EC_curve_nist2nid(info->group) == OBJ_sn2nid(group);
}

/* Reads and checks, without a look at the cache. */
static EVP_PKEY *key_read(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der,
                          struct cn_err *err)
{
    ERR_clear_error();
    EVP_PKEY *key = is_private ? pkcs8_parse(der) : spki_parse(der);
    if (!key) {
        cn_crypto_fail(err, CN_EINVALID, is_private ? "not a PKCS #8 key" : "not an SPKI key");
        return NULL;
    }
    if (!kind_fits(key, kind)) {
        EVP_PKEY_free(key);
        cn_err_set(err, CN_EINVALID, "not a usable %s key", cn_crypto_kind_info(kind)->name);
        return NULL;
    }
    return key;
}

/* ---- keys read lately ----
 *
 * Reading DER takes OpenSSL up to a millisecond, twenty times as long as a signature with it. So
 * each thread keeps the last few keys it has read, found again by their whole DER. */

#define CACHE_COUNT 16

struct cached {
    enum cn_crypto_kind kind;
    bool is_private;
    uint8_t *der; /* owned; NULL: free */
    size_t size;
    EVP_PKEY *key; /* one reference */
};

struct cache {
    struct cached entries[CACHE_COUNT];
    unsigned next; /* the one to replace */
};

static pthread_key_t cache_key; /* this thread's struct cache */

static void cached_clear(struct cached *cached)
{
    EVP_PKEY_free(cached->key);
    if (cached->der)
        OPENSSL_cleanse(cached->der, cached->size);
    cn_free(cached->der);
    *cached = (struct cached){0};
}

static void cache_free(void *data)
{
    struct cache *cache = data;
    for (size_t i = 0; i < CACHE_COUNT; i++)
        cached_clear(&cache->entries[i]);
    cn_free(cache);
}

static void cache_setup(void)
{
    CN_ASSERT(pthread_key_create(&cache_key, cache_free) == 0);
}

static struct cache *cache_of_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, cache_setup);
    struct cache *cache = pthread_getspecific(cache_key);
    if (!cache) {
        cache = CN_NEW(struct cache);
        CN_ASSERT(pthread_setspecific(cache_key, cache) == 0);
    }
    return cache;
}

static EVP_PKEY *cache_find(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der)
{
    struct cache *cache = cache_of_thread();
    for (size_t i = 0; i < CACHE_COUNT; i++) {
        struct cached *cached = &cache->entries[i];
        if (cached->der && cached->kind == kind && cached->is_private == is_private &&
            cached->size == der.size && memcmp(cached->der, der.data, der.size) == 0) {
            EVP_PKEY_up_ref(cached->key);
            return cached->key;
        }
    }
    return NULL;
}

static void cache_put(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der, EVP_PKEY *key)
{
    struct cache *cache = cache_of_thread();
    struct cached *cached = &cache->entries[cache->next++ % CACHE_COUNT];
    cached_clear(cached);
    EVP_PKEY_up_ref(key);
    *cached = (struct cached){.kind = kind,
                              .is_private = is_private,
                              .der = cn_memdup(der.data, der.size),
                              .size = der.size,
                              .key = key};
}

EVP_PKEY *cn_crypto_key(enum cn_crypto_kind kind, bool is_private, struct cn_bytes der,
                        struct cn_err *err)
{
    EVP_PKEY *key = cache_find(kind, is_private, der);
    if (key)
        return key;
    key = key_read(kind, is_private, der, err);
    if (key)
        cache_put(kind, is_private, der, key);
    return key;
}

static int pkcs8_write(EVP_PKEY *key, struct cn_buf *out, struct cn_err *err)
{
    PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(key);
    uint8_t *der = NULL;
    int size = info ? i2d_PKCS8_PRIV_KEY_INFO(info, &der) : -1;
    if (size > 0)
        cn_buf_append(out, der, (size_t)size);
    OPENSSL_clear_free(der, size > 0 ? (size_t)size : 0);
    PKCS8_PRIV_KEY_INFO_free(info);
    return size > 0 ? 0 : cn_crypto_fail(err, CN_EINVALID, "the private key cannot be written");
}

static int spki_write(EVP_PKEY *key, struct cn_buf *out, struct cn_err *err)
{
    uint8_t *der = NULL;
    int size = i2d_PUBKEY(key, &der);
    if (size > 0)
        cn_buf_append(out, der, (size_t)size);
    OPENSSL_free(der);
    return size > 0 ? 0 : cn_crypto_fail(err, CN_EINVALID, "the public key cannot be written");
}

/* Whether the parts of a key belong together, as far as that can be told quickly: a point is
 * on its curve, a public key is that of the private one. */
static bool key_is_sound(EVP_PKEY *key, bool is_private)
{
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key, NULL);
    CN_ASSERT(ctx);
    bool ok;
    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA)
        ok = EVP_PKEY_public_check_quick(ctx) == 1; /* primality of p and q takes too long */
    else if (is_private && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
        ok = EVP_PKEY_pairwise_check(ctx) == 1;
    else if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
        ok = EVP_PKEY_public_check(ctx) == 1;
    else
        ok = true; /* every 32 bytes are an OKP key */
    EVP_PKEY_CTX_free(ctx);
    return ok;
}

int cn_crypto_key_write(EVP_PKEY *key, enum cn_crypto_kind kind, bool is_private,
                        struct cn_buf *out, struct cn_err *err)
{
    if (!kind_fits(key, kind) || !key_is_sound(key, is_private)) {
        ERR_clear_error();
        return cn_err_set(err, CN_EINVALID, "not a usable %s key", cn_crypto_kind_info(kind)->name);
    }
    if (cn_crypto_is_curve(kind))
        EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                       OSSL_PKEY_EC_POINT_CONVERSION_FORMAT_UNCOMPRESSED);
    return is_private ? pkcs8_write(key, out, err) : spki_write(key, out, err);
}

int cn_crypto_import_pkcs8(enum cn_crypto_kind kind, struct cn_bytes der, struct cn_buf *pkcs8,
                           struct cn_err *err)
{
    EVP_PKEY *key = key_read(kind, true, der, err);
    if (!key)
        return CN_EINVALID;
    int rc = cn_crypto_key_write(key, kind, true, pkcs8, err);
    EVP_PKEY_free(key);
    return rc;
}

int cn_crypto_import_spki(enum cn_crypto_kind kind, struct cn_bytes der, struct cn_buf *spki,
                          struct cn_err *err)
{
    EVP_PKEY *key = key_read(kind, false, der, err);
    if (!key)
        return CN_EINVALID;
    int rc = cn_crypto_key_write(key, kind, false, spki, err);
    EVP_PKEY_free(key);
    return rc;
}

/* ---- making ---- */

BIGNUM *cn_crypto_number(struct cn_bytes bytes)
{
    if (bytes.size == 0 || bytes.size > CN_CRYPTO_RSA_BITS_MAX / 8 + 1)
        return NULL;
    return BN_bin2bn(bytes.data, (int)bytes.size, NULL);
}

static int on_keygen(EVP_PKEY_CTX *ctx)
{
    const atomic_bool *given_up = EVP_PKEY_CTX_get_app_data(ctx);
    return !given_up || !atomic_load_explicit(given_up, memory_order_relaxed);
}

void cn_crypto_keygen_watch(EVP_PKEY_CTX *ctx, const atomic_bool *given_up)
{
    EVP_PKEY_CTX_set_app_data(ctx, (void *)given_up);
    EVP_PKEY_CTX_set_cb(ctx, on_keygen);
}

int cn_crypto_generate(enum cn_crypto_kind kind, unsigned bits, struct cn_bytes exponent,
                       const atomic_bool *given_up, struct cn_buf *pkcs8, struct cn_buf *spki,
                       struct cn_err *err)
{
    const struct cn_crypto_kind_info *info = cn_crypto_kind_info(kind);
    EVP_PKEY *key = NULL;
    ERR_clear_error();
    if (cn_crypto_is_curve(kind)) {
        key = EVP_EC_gen(info->group);
    } else if (kind != CN_KEY_RSA) {
        key = EVP_PKEY_Q_keygen(NULL, NULL, info->name);
    } else {
        if (bits < 1024 || bits > CN_CRYPTO_RSA_BITS_MAX)
            return cn_err_set(err, CN_EPROTOCOL, "an RSA key cannot have %u bits here", bits);
        BIGNUM *e = cn_crypto_number(exponent);
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, NULL);
        CN_ASSERT(ctx);
        cn_crypto_keygen_watch(ctx, given_up);
        if (!e || !BN_is_odd(e) || BN_is_one(e) || BN_num_bits(e) > 64 ||
            EVP_PKEY_keygen_init(ctx) <= 0 ||
            EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, (int)bits) <= 0 ||
            EVP_PKEY_CTX_set1_rsa_keygen_pubexp(ctx, e) <= 0 || EVP_PKEY_generate(ctx, &key) <= 0)
            key = NULL;
        BN_free(e);
        EVP_PKEY_CTX_free(ctx);
    }
    if (!key)
        return cn_crypto_fail(err, CN_EPROTOCOL, "a key with these parameters cannot be made");
    int rc = pkcs8_write(key, pkcs8, err);
    if (rc == 0)
        rc = spki_write(key, spki, err);
    EVP_PKEY_free(key);
    return rc;
}

/* ---- raw public keys ---- */

EVP_PKEY *cn_crypto_key_from_params(const char *type, int selection, OSSL_PARAM_BLD *build)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    CN_ASSERT(ctx);
    if (!params || EVP_PKEY_fromdata_init(ctx) <= 0 ||
        EVP_PKEY_fromdata(ctx, &key, selection, params) <= 0)
        key = NULL;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return key;
}

EVP_PKEY *cn_crypto_curve_key(enum cn_crypto_kind kind, struct cn_bytes point,
                              struct cn_bytes secret)
{
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    CN_ASSERT(build);
    BIGNUM *d = secret.size ? cn_crypto_number(secret) : NULL;
    OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME,
                                    cn_crypto_kind_info(kind)->group, 0);
    OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point.data, point.size);
    if (d)
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, d);
    EVP_PKEY *key =
        cn_crypto_key_from_params("EC", d ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, build);
    BN_clear_free(d);
    OSSL_PARAM_BLD_free(build);
    return key;
}

int cn_crypto_import_raw(enum cn_crypto_kind kind, struct cn_bytes raw, struct cn_buf *spki,
                         struct cn_err *err)
{
    const struct cn_crypto_kind_info *info = cn_crypto_kind_info(kind);
    EVP_PKEY *key = NULL;
    ERR_clear_error();
    if (cn_crypto_is_curve(kind)) {
        bool whole = raw.size == 2 * info->width + 1 && raw.data[0] == 4;
        bool compressed = raw.size == info->width + 1 && (raw.data[0] & 0xfe) == 2;
        if (whole || compressed)
            key = cn_crypto_curve_key(kind, raw, (struct cn_bytes){0});
    } else if (kind != CN_KEY_RSA && raw.size == info->width) {
        key = EVP_PKEY_new_raw_public_key(info->base_id, NULL, raw.data, raw.size);
    }
    if (!key)
        return cn_crypto_fail(err, CN_EINVALID, "not the bytes of such a public key");
    int rc = cn_crypto_key_write(key, kind, false, spki, err);
    EVP_PKEY_free(key);
    return rc;
}

int cn_crypto_export_raw(enum cn_crypto_kind kind, struct cn_bytes spki, struct cn_buf *raw,
                         struct cn_err *err)
{
    EVP_PKEY *key = cn_crypto_key(kind, false, spki, err);
    if (!key)
        return CN_EINVALID;
    uint8_t bytes[2 * 66 + 1];
    size_t size = sizeof(bytes);
    bool ok = cn_crypto_is_curve(kind)
                  ? EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, bytes,
                                                    sizeof(bytes), &size)
              : kind == CN_KEY_RSA ? false
                                   : EVP_PKEY_get_raw_public_key(key, bytes, &size);
    EVP_PKEY_free(key);
    if (!ok)
        return cn_crypto_fail(err, CN_EUNSUPPORTED, "the key has no raw form");
    cn_buf_append(raw, bytes, size);
    return 0;
}
