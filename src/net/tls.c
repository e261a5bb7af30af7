/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/mem.h"
#include "net/trust.h"

struct cn_tls_context {
    pthread_mutex_t lock; /* guards ssl */
    SSL_CTX *ssl;
    char *cert_path, *key_path; /* owned; NULL: keyed */
    uint8_t key[CN_TLS_KEY_SIZE];
    int ref_count; /* atomic */
};

struct cn_tls {
    SSL *ssl;
    BIO *input, *output;          /* owned by ssl */
    struct cn_tls_context *keyed; /* a reference of its own; NULL: certificates */
    bool failed;
    const char *reason; /* why, static storage */
};

/* The first, most precise reason in this thread's OpenSSL error queue, which is emptied. */
static const char *reason_take(void)
{
    unsigned long error = ERR_peek_error();
    const char *reason =
        ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error)) : ERR_reason_error_string(error);
    ERR_clear_error();
    return reason ? reason : "unknown reason";
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                       const unsigned char *in, unsigned in_size, void *data)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl;
    (void)data;
    /* No overlap: go on without ALPN, as clients that offer only h2 by habit still speak 1.1. */
    if (SSL_select_next_proto((unsigned char **)out, out_size, ours, sizeof(ours) - 1, in,
                              in_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    return SSL_TLSEXT_ERR_OK;
}

static int ssl_load(const char *cert_path, const char *key_path, SSL_CTX **result,
                    struct cn_err *err)
{
    ERR_clear_error();
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
    if (!ssl)
        return cn_err_set(err, CN_ENOMEM, "TLS: %s", reason_take());
    int rc;
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_alpn_select_cb(ssl, choose_alpn, NULL);
    if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1) {
        rc = cn_err_set(err, CN_EUNSUPPORTED, "TLS 1.2: %s", reason_take());
        goto free_ssl;
    }
    if (SSL_CTX_use_certificate_chain_file(ssl, cert_path) != 1) {
        rc = cn_err_set(err, CN_EINVALID, "certificate %s: %s", cert_path, reason_take());
        goto free_ssl;
    }
    if (SSL_CTX_use_PrivateKey_file(ssl, key_path, SSL_FILETYPE_PEM) != 1) {
        rc = cn_err_set(err, CN_EINVALID, "private key %s: %s", key_path, reason_take());
        goto free_ssl;
    }
    if (SSL_CTX_check_private_key(ssl) != 1) {
        rc = cn_err_set(err, CN_EINVALID, "private key %s does not belong to certificate %s: %s",
                        key_path, cert_path, reason_take());
        goto free_ssl;
    }
    *result = ssl;
    return 0;
free_ssl:
    SSL_CTX_free(ssl);
    return rc;
}

int cn_tls_context_new(const char *cert_path, const char *key_path, struct cn_tls_context **context,
                       struct cn_err *err)
{
    SSL_CTX *ssl;
    int rc = ssl_load(cert_path, key_path, &ssl, err);
    if (rc < 0)
        return rc;
    *context = CN_NEW(struct cn_tls_context);
    pthread_mutex_init(&(*context)->lock, NULL);
    (*context)->ssl = ssl;
    (*context)->cert_path = cn_strdup(cert_path);
    (*context)->key_path = cn_strdup(key_path);
    (*context)->ref_count = 1;
    return 0;
}

/* --- a shared key ----------------------------------------------------------------------- */

static const unsigned char key_name[] = "cairn";
static const unsigned char key_cipher[] = {0x13, 0x02}; /* TLS_AES_256_GCM_SHA384 */

/* A session that nobody has had: what OpenSSL takes a key of ours by. */
static SSL_SESSION *session_of_key(SSL *ssl)
{
    const struct cn_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, key_cipher);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session && cipher &&
        SSL_SESSION_set1_master_key(session, context->key, CN_TLS_KEY_SIZE) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **name, size_t *name_size,
                     SSL_SESSION **session)
{
    *session = NULL;
    if (digest && EVP_MD_get_type(digest) != NID_sha384)
        return 1; /* goes on without, and fails: there is no certificate */
    *session = session_of_key(ssl);
    *name = key_name;
    *name_size = sizeof(key_name) - 1;
    return *session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *name, size_t name_size, SSL_SESSION **session)
{
    bool ours = name_size == sizeof(key_name) - 1 && memcmp(name, key_name, name_size) == 0;
    *session = ours ? session_of_key(ssl) : NULL;
    return !ours || *session;
}

int cn_tls_context_new_keyed(const uint8_t key[CN_TLS_KEY_SIZE], struct cn_tls_context **result,
                             struct cn_err *err)
{
    ERR_clear_error();
    SSL_CTX *ssl = SSL_CTX_new(TLS_method());
    if (!ssl || SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(ssl, "TLS_AES_256_GCM_SHA384") != 1 ||
        SSL_CTX_set_num_tickets(ssl, 0) != 1) {
        SSL_CTX_free(ssl);
        return cn_err_set(err, CN_EUNSUPPORTED, "TLS 1.3: %s", reason_take());
    }
    struct cn_tls_context *context = CN_NEW(struct cn_tls_context);
    pthread_mutex_init(&context->lock, NULL);
    memcpy(context->key, key, CN_TLS_KEY_SIZE);
    context->ssl = ssl;
    context->ref_count = 1;
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_app_data(ssl, context);
    SSL_CTX_set_psk_use_session_callback(ssl, offer_key);
    SSL_CTX_set_psk_find_session_callback(ssl, find_key);
    *result = context;
    return 0;
}

int cn_tls_context_reload(struct cn_tls_context *context, struct cn_err *err)
{
    SSL_CTX *ssl;
    CN_ASSERT(context->cert_path);
    int rc = ssl_load(context->cert_path, context->key_path, &ssl, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&context->lock);
    SSL_CTX *old = context->ssl;
    context->ssl = ssl;
    pthread_mutex_unlock(&context->lock);
    SSL_CTX_free(old); /* connections hold references of their own */
    return 0;
}

struct cn_tls_context *cn_tls_context_ref(struct cn_tls_context *context)
{
    __atomic_add_fetch(&context->ref_count, 1, __ATOMIC_RELAXED);
    return context;
}

void cn_tls_context_unref(struct cn_tls_context *context)
{
    if (!context || __atomic_sub_fetch(&context->ref_count, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    SSL_CTX_free(context->ssl);
    pthread_mutex_destroy(&context->lock);
    OPENSSL_cleanse(context->key, sizeof(context->key));
    cn_free(context->cert_path);
    cn_free(context->key_path);
    cn_free(context);
}

/* Neither a server nor a client yet; NULL if out of memory. */
static struct cn_tls *tls_new(SSL_CTX *context)
{
    SSL *ssl = SSL_new(context); /* keeps its own reference to the SSL_CTX */
    BIO *input = BIO_new(BIO_s_mem()), *output = BIO_new(BIO_s_mem());
    if (!ssl || !input || !output) {
        SSL_free(ssl);
        BIO_free(input);
        BIO_free(output);
        ERR_clear_error();
        return NULL;
    }
    /* An empty BIO means "not yet", not end of file. */
    BIO_set_mem_eof_return(input, -1);
    BIO_set_mem_eof_return(output, -1);
    SSL_set_bio(ssl, input, output);
    struct cn_tls *tls = CN_NEW(struct cn_tls);
    *tls = (struct cn_tls){.ssl = ssl, .input = input, .output = output, .reason = ""};
    return tls;
}

struct cn_tls *cn_tls_new(struct cn_tls_context *context)
{
    pthread_mutex_lock(&context->lock);
    struct cn_tls *tls = tls_new(context->ssl);
    pthread_mutex_unlock(&context->lock);
    if (!tls)
        return NULL;
    SSL_set_accept_state(tls->ssl);
    if (!context->cert_path)
        tls->keyed = cn_tls_context_ref(context);
    return tls;
}

struct cn_tls *cn_tls_new_keyed(struct cn_tls_context *context)
{
    CN_ASSERT(!context->cert_path);
    struct cn_tls *tls = tls_new(context->ssl);
    if (!tls)
        return NULL;
    SSL_set_connect_state(tls->ssl);
    SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, NULL); /* and there is none that it believes */
    tls->keyed = cn_tls_context_ref(context);
    return tls;
}

/* An address is checked against the certificate's addresses and is not sent as SNI. */
static bool expect_host(SSL *ssl, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static bool offer_alpn(SSL *ssl, const char *alpn)
{
    unsigned char list[256];
    size_t length = strlen(alpn);
    if (length == 0 || length > 255)
        return false;
    list[0] = (unsigned char)length;
    memcpy(list + 1, alpn, length);
    return SSL_set_alpn_protos(ssl, list, (unsigned)length + 1) == 0;
}

struct cn_tls *cn_tls_new_client(struct cn_trust *trust, const char *host, const char *alpn,
                                 struct cn_err *err)
{
    struct cn_tls *tls = tls_new(cn_trust_context(trust));
    if (!tls) {
        cn_err_set(err, CN_ENOMEM, "no memory for a TLS connection");
        return NULL;
    }
    SSL_set_connect_state(tls->ssl);
    if (!expect_host(tls->ssl, host) || (alpn && !offer_alpn(tls->ssl, alpn))) {
        cn_err_set(err, CN_EINVALID, "TLS cannot be set up for \"%.100s\": %s", host,
                   reason_take());
        cn_tls_free(tls);
        return NULL;
    }
    return tls;
}

void cn_tls_free(struct cn_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    cn_tls_context_unref(tls->keyed);
    cn_free(tls);
}

void cn_tls_feed(struct cn_tls *tls, const uint8_t *bytes, size_t size)
{
    /* A memory BIO takes everything or has no memory, which we do not survive. */
    CN_ASSERT(BIO_write(tls->input, bytes, (int)size) == (int)size);
}

/* Why a connection failed: for a certificate that is not believed, what is wrong with it. */
static const char *failure_take(const SSL *ssl)
{
    long verify = SSL_get_verify_result(ssl);
    const char *reason = reason_take();
    return verify == X509_V_OK ? reason : X509_verify_cert_error_string(verify);
}

/* The meaning of a failed SSL_read or SSL_write. */
static int result_of(struct cn_tls *tls, int rc)
{
    switch (SSL_get_error(tls->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return UV_EOF;
    default:
        tls->failed = true; /* OpenSSL forbids even SSL_shutdown() after this */
        tls->reason = failure_take(tls->ssl);
        return CN_EPROTOCOL;
    }
}

int cn_tls_handshake(struct cn_tls *tls)
{
    if (tls->failed)
        return CN_EPROTOCOL;
    ERR_clear_error();
    int rc = SSL_do_handshake(tls->ssl);
    return rc == 1 ? 1 : result_of(tls, rc);
}

/* A peer without the key cannot complete a handshake; if it could, it would come no farther. */
static bool lacks_key(struct cn_tls *tls)
{
    if (!tls->keyed || SSL_session_reused(tls->ssl))
        return false;
    tls->failed = true;
    tls->reason = "the peer does not have the key";
    return true;
}

int cn_tls_read(struct cn_tls *tls, uint8_t *bytes, size_t size)
{
    if (tls->failed)
        return CN_EPROTOCOL;
    ERR_clear_error();
    int rc = SSL_read(tls->ssl, bytes, (int)size);
    if (rc > 0 && lacks_key(tls))
        return CN_EPROTOCOL;
    return rc > 0 ? rc : result_of(tls, rc);
}

int cn_tls_write(struct cn_tls *tls, const uint8_t *bytes, size_t size)
{
    if (tls->failed)
        return CN_EPROTOCOL;
    if (!SSL_is_init_finished(tls->ssl))
        return 0;
    if (lacks_key(tls))
        return CN_EPROTOCOL;
    ERR_clear_error();
    int rc = SSL_write(tls->ssl, bytes, size > (1 << 20) ? 1 << 20 : (int)size);
    return rc > 0 ? rc : result_of(tls, rc);
}

size_t cn_tls_take_output(struct cn_tls *tls, uint8_t *bytes, size_t size)
{
    int rc = BIO_read(tls->output, bytes, (int)size);
    return rc > 0 ? (size_t)rc : 0;
}

void cn_tls_shutdown(struct cn_tls *tls)
{
    if (tls->failed || !SSL_is_init_finished(tls->ssl))
        return;
    ERR_clear_error();
    (void)SSL_shutdown(tls->ssl); /* 0 or 1: either way our close_notify is in the output */
}

bool cn_tls_is_secure(const struct cn_tls *tls)
{
    return SSL_is_init_finished(tls->ssl);
}

const char *cn_tls_reason(const struct cn_tls *tls)
{
    return tls->reason;
}

size_t cn_tls_alpn(const struct cn_tls *tls, const uint8_t **protocol)
{
    unsigned size = 0;
    SSL_get0_alpn_selected(tls->ssl, protocol, &size);
    return size;
}
