/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/origin.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test/lib/test.h"

struct sent {
    uv_write_t write;
    struct origin_conn *conn;
    size_t size;
    char bytes[];
};

static void on_conn_closed(uv_handle_t *handle)
{
    struct origin_conn *conn = handle->data;
    conn->origin->open_count--;
    cn_list_remove(&conn->link);
    SSL_free(conn->ssl);
    cn_buf_fini(&conn->in);
    cn_free(conn);
}

void origin_close(struct origin_conn *conn)
{
    if (conn->closing)
        return;
    conn->closing = true;
    uv_close((uv_handle_t *)&conn->tcp, on_conn_closed);
}

void origin_reset(struct origin_conn *conn)
{
    if (conn->closing)
        return;
    conn->closing = true;
    uv_tcp_close_reset(&conn->tcp, on_conn_closed);
}

static void on_sent(uv_write_t *write, int status)
{
    struct sent *sent = write->data;
    sent->conn->unsent -= sent->size;
    cn_free(sent);
}

static void raw_write(struct origin_conn *conn, const void *bytes, size_t size)
{
    struct sent *sent = cn_alloc(sizeof(*sent) + size);
    sent->conn = conn;
    sent->size = size;
    memcpy(sent->bytes, bytes, size);
    sent->write.data = sent;
    conn->unsent += size;
    uv_buf_t buf = uv_buf_init(sent->bytes, (unsigned)size);
    if (uv_write(&sent->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_sent) < 0) {
        conn->unsent -= size;
        cn_free(sent);
    }
}

static void tls_flush(struct origin_conn *conn)
{
    char bytes[16384];
    for (int size; (size = BIO_read(SSL_get_wbio(conn->ssl), bytes, sizeof(bytes))) > 0;)
        raw_write(conn, bytes, (size_t)size);
}

void origin_write(struct origin_conn *conn, const void *bytes, size_t size)
{
    if (conn->closing || size == 0)
        return;
    if (!conn->ssl) {
        raw_write(conn, bytes, size);
        return;
    }
    if (SSL_write(conn->ssl, bytes, (int)size) != (int)size)
        test_fail(__FILE__, __LINE__, "origin: SSL_write failed");
    tls_flush(conn);
}

void origin_print(struct origin_conn *conn, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    origin_write(conn, text, (size_t)size);
    free(text);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    cn_free(shutdown);
}

void origin_shutdown_tcp(struct origin_conn *conn)
{
    if (conn->closing)
        return;
    uv_shutdown_t *shutdown = CN_NEW(uv_shutdown_t);
    if (uv_shutdown(shutdown, (uv_stream_t *)&conn->tcp, on_shutdown) < 0)
        cn_free(shutdown);
}

void origin_shutdown(struct origin_conn *conn)
{
    if (conn->ssl && !conn->closing) {
        SSL_shutdown(conn->ssl);
        tls_flush(conn);
    }
    origin_shutdown_tcp(conn);
}

void origin_starttls(struct origin_conn *conn)
{
    conn->ssl = SSL_new(conn->origin->tls);
    SSL_set_bio(conn->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(conn->ssl);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    *buf = uv_buf_init(cn_alloc(65536), 65536);
}

static void tls_feed(struct origin_conn *conn, const char *bytes, size_t size)
{
    BIO_write(SSL_get_rbio(conn->ssl), bytes, (int)size);
    if (!conn->handshake_done) {
        int rc = SSL_do_handshake(conn->ssl);
        tls_flush(conn);
        if (rc != 1) {
            if (SSL_get_error(conn->ssl, rc) == SSL_ERROR_SSL)
                origin_close(conn);
            return;
        }
        conn->handshake_done = true;
    }
    char plain[16384];
    int got;
    while ((got = SSL_read(conn->ssl, plain, sizeof(plain))) > 0)
        cn_buf_append(&conn->in, plain, (size_t)got);
    if (SSL_get_error(conn->ssl, got) == SSL_ERROR_ZERO_RETURN)
        conn->ended = true;
    tls_flush(conn);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct origin_conn *conn = stream->data;
    if (size > 0 && conn->ssl)
        tls_feed(conn, buf->base, (size_t)size);
    else if (size > 0)
        cn_buf_append(&conn->in, buf->base, (size_t)size);
    cn_free(buf->base);
    if (size == UV_EOF) {
        conn->ended = true;
    } else if (size < 0) {
        origin_close(conn);
        return;
    }
    if (conn->closing || (conn->in.size == 0 && !conn->ended))
        return;
    conn->origin->on_data(conn);
    if (size == UV_EOF && conn->in.size == 0)
        origin_close(conn);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct origin *origin = listener->data;
    struct origin_conn *conn = CN_NEW(struct origin_conn);
    conn->origin = origin;
    uv_tcp_init(origin->loop, &conn->tcp);
    conn->tcp.data = conn;
    cn_list_push_back(&origin->conns, &conn->link);
    origin->conn_count++;
    origin->open_count++;
    if (uv_accept(listener, (uv_stream_t *)&conn->tcp) < 0) {
        origin_close(conn);
        return;
    }
    uv_tcp_nodelay(&conn->tcp, 1);
    if (origin->tls && !origin->on_connect)
        origin_starttls(conn);
    uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
    if (origin->on_connect)
        origin->on_connect(conn);
}

void origin_start(struct origin *origin, uv_loop_t *loop, void (*on_data)(struct origin_conn *))
{
    origin->loop = loop;
    origin->on_data = on_data;
    cn_list_init(&origin->conns);
    uv_tcp_init(loop, &origin->listener);
    origin->listener.data = origin;
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    CHECK_INT(0, uv_tcp_bind(&origin->listener, (struct sockaddr *)&address, 0));
    CHECK_INT(0, uv_listen((uv_stream_t *)&origin->listener, 128, on_connection));
    int length = sizeof(address);
    CHECK_INT(0, uv_tcp_getsockname(&origin->listener, (struct sockaddr *)&address, &length));
    origin->port = ntohs(address.sin_port);
}

static void on_listener_closed(uv_handle_t *handle)
{
    ((struct origin *)handle->data)->listener_closed = true;
}

void origin_stop(struct origin *origin)
{
    uv_close((uv_handle_t *)&origin->listener, on_listener_closed);
    CN_LIST_FOREACH(&origin->conns, node)
    {
        origin_close(CN_CONTAINER_OF(node, struct origin_conn, link));
    }
    while (!origin->listener_closed || origin->open_count > 0)
        uv_run(origin->loop, UV_RUN_ONCE);
    SSL_CTX_free(origin->tls);
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                   const unsigned char *in, unsigned in_length, void *alpn)
{
    unsigned char ours[64];
    size_t length = strlen(alpn);
    ours[0] = (unsigned char)length;
    memcpy(ours + 1, alpn, length);
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_length, in, in_length, ours, (unsigned)length + 1) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = in; /* found in the client's list, where the memory lives on */
    for (const unsigned char *at = in; at < in + in_length; at += 1 + at[0]) {
        if (at[0] == length && memcmp(at + 1, alpn, length) == 0)
            *out = at + 1;
    }
    return SSL_TLSEXT_ERR_OK;
}

static void cert_make(EVP_PKEY **key_out, X509 **cert_out)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *names =
        X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    X509_add_ext(cert, names, -1);
    X509_EXTENSION_free(names);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    *key_out = key;
    *cert_out = cert;
}

static void cert_write(X509 *cert, const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file && PEM_write_X509(file, cert));
    fclose(file);
}

void origin_write_cert(const char *cert_path, const char *key_path)
{
    EVP_PKEY *key;
    X509 *cert;
    cert_make(&key, &cert);
    cert_write(cert, cert_path);
    FILE *file = fopen(key_path, "w");
    CHECK(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
}

void origin_use_tls(struct origin *origin, const char *pem_path, const char *alpn)
{
    EVP_PKEY *key;
    X509 *cert;
    cert_make(&key, &cert);
    cert_write(cert, pem_path);
    origin->tls = SSL_CTX_new(TLS_server_method());
    CHECK(SSL_CTX_use_certificate(origin->tls, cert) == 1);
    CHECK(SSL_CTX_use_PrivateKey(origin->tls, key) == 1);
    if (alpn)
        SSL_CTX_set_alpn_select_cb(origin->tls, on_alpn, (void *)alpn);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* Joins the chunks at `at`; the end of the last one, or NULL if it is not there yet. */
static const char *chunks_join(const char *at, const char *end, struct cn_buf *body)
{
    for (;;) {
        const char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!line)
            return NULL;
        size_t size = strtoul(at, NULL, 16);
        if ((size_t)(end - line) < size + 4)
            return NULL;
        cn_buf_append(body, line + 2, size);
        at = line + 2 + size + 2;
        if (size == 0)
            return at;
    }
}

bool origin_take_request(struct origin_conn *conn, struct cn_buf *head, struct cn_buf *body)
{
    cn_buf_clear(head);
    cn_buf_clear(body);
    const char *text = cn_buf_text(&conn->in), *end = text + conn->in.size;
    const char *blank = strstr(text, "\r\n\r\n");
    if (!blank)
        return false;
    const char *rest = blank + 4;
    cn_buf_append(head, text, (size_t)(rest - text));
    const char *length = strcasestr(cn_buf_text(head), "\r\ncontent-length:");
    if (strcasestr(cn_buf_text(head), "\r\ntransfer-encoding: chunked")) {
        rest = chunks_join(rest, end, body);
        if (!rest)
            return false;
    } else if (length) {
        size_t size = strtoul(length + 17, NULL, 10);
        if ((size_t)(end - rest) < size)
            return false;
        cn_buf_append(body, rest, size);
        rest += size;
    }
    cn_buf_text(body);
    cn_buf_consume(&conn->in, (size_t)(rest - text));
    return true;
}

static void on_tick(uv_timer_t *timer)
{
    --*(int *)timer->data;
}

static void on_tick_closed(uv_handle_t *handle)
{
    cn_free(handle);
}

void loop_until(uv_loop_t *loop, const bool *flag, unsigned timeout_ms, const char *file, int line)
{
    /* Ticks, because a timer may set the flag just before uv_run() goes to sleep. */
    enum { TICK_MS = 5 };
    int ticks_left = (int)timeout_ms / TICK_MS;
    uv_timer_t *tick = CN_NEW(uv_timer_t);
    uv_timer_init(loop, tick);
    tick->data = &ticks_left;
    uv_update_time(loop);
    uv_timer_start(tick, on_tick, TICK_MS, TICK_MS);
    while (!*flag && ticks_left > 0)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)tick, on_tick_closed);
    uv_run(loop, UV_RUN_NOWAIT);
    if (!*flag)
        test_fail(file, line, "not within %u ms", timeout_ms);
}

static void on_linger(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

void loop_linger(uv_loop_t *loop, unsigned ms)
{
    bool up = false;
    uv_timer_t timer;
    uv_timer_init(loop, &timer);
    timer.data = &up;
    uv_update_time(loop);
    uv_timer_start(&timer, on_linger, ms, 0);
    LOOP_UNTIL(loop, &up);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
}
