/* SPDX-License-Identifier: Apache-2.0 */
#include "net/trust.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"

struct cn_trust {
    X509_STORE *store; /* one reference; every SSL_CTX has its own */
    SSL_CTX *context;
    pthread_mutex_t lock; /* guards `loaded` */
    bool loaded;          /* the system's authorities are in the store */
};

/* Where distributions other than Debian have them. An archive brings Debian's OpenSSL, whose default
 * file and folder are not there then. */
static const char *const elsewhere[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian without the package openssl, Arch */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora and its kin */
    "/etc/ssl/ca-bundle.pem",             /* SUSE */
    "/etc/ssl/cert.pem",                  /* Alpine */
};

static bool is_there(const char *variable, const char *path)
{
    const char *named = getenv(variable);
    return named || access(path, R_OK) == 0;
}

static int load_paths(X509_STORE *store)
{
    if (is_there(X509_get_default_cert_file_env(), X509_get_default_cert_file()) ||
        is_there(X509_get_default_cert_dir_env(), X509_get_default_cert_dir()))
        return X509_STORE_set_default_paths(store);
    for (size_t i = 0; i < CN_ARRAY_COUNT(elsewhere); i++) {
        if (access(elsewhere[i], R_OK) == 0)
            return X509_STORE_load_file(store, elsewhere[i]);
    }
    return 1; /* none: each peer is refused by name */
}

/* Where all authorities are in one file, OpenSSL reads it at once: about 10 ms, which a worker
 * that never connects out need not pay. */
static void load_system(struct cn_trust *trust)
{
    pthread_mutex_lock(&trust->lock);
    if (!trust->loaded) {
        trust->loaded = true;
        if (!load_paths(trust->store))
            cn_error("the system's certificate authorities cannot be used, so TLS connections "
                     "will be refused: %s",
                     ERR_reason_error_string(ERR_peek_last_error()));
        ERR_clear_error(); /* a missing default file is noted there, and harmless */
    }
    pthread_mutex_unlock(&trust->lock);
}

static void use_store(struct cn_trust *trust, SSL_CTX *ctx)
{
    SSL_CTX_set1_cert_store(ctx, trust->store);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
}

struct cn_trust *cn_trust_new(const char *extra_ca_file, struct cn_err *err)
{
    X509_STORE *store = X509_STORE_new();
    CN_ASSERT(store);
    ERR_clear_error();
    if (extra_ca_file && !X509_STORE_load_file(store, extra_ca_file)) {
        unsigned long code = ERR_peek_error();
        const char *reason =
            ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
        cn_err_set(err, CN_EINVALID, "%s: no certificates can be read from it: %s", extra_ca_file,
                   reason ? reason : "unknown reason");
        goto free_store;
    }
    /* A certificate in the file is believed whether or not it signed itself. */
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    struct cn_trust *trust = CN_NEW(struct cn_trust);
    trust->store = store;
    pthread_mutex_init(&trust->lock, NULL);
    trust->context = SSL_CTX_new(TLS_client_method());
    CN_ASSERT(trust->context && SSL_CTX_set_min_proto_version(trust->context, TLS1_2_VERSION));
    SSL_CTX_set_mode(trust->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                         SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                         SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(trust->context, SSL_OP_NO_RENEGOTIATION);
    use_store(trust, trust->context);
    return trust;
free_store:
    ERR_clear_error();
    X509_STORE_free(store);
    return NULL;
}

void cn_trust_free(struct cn_trust *trust)
{
    if (!trust)
        return;
    SSL_CTX_free(trust->context);
    X509_STORE_free(trust->store);
    pthread_mutex_destroy(&trust->lock);
    cn_free(trust);
}

void cn_trust_apply(struct cn_trust *trust, struct ssl_ctx_st *ctx)
{
    load_system(trust);
    use_store(trust, ctx);
}

struct ssl_ctx_st *cn_trust_context(struct cn_trust *trust)
{
    load_system(trust);
    return trust->context;
}
