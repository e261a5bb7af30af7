/* SPDX-License-Identifier: Apache-2.0 */
/* HTTPS: handshakes good, slow and broken, bodies both ways, certificates replaced while serving.
 */
#include "net/tls.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "test/lib/http_rig.h"
#include "test/lib/tls_rig.h"

static struct cn_tls_context *make_context(long serial)
{
    char cert[512], key[512];
    rig_make_pair(serial, cert, key, sizeof(cert));
    struct cn_tls_context *context;
    struct cn_err err = {0};
    CHECK_INT(0, cn_tls_context_new(cert, key, &context, &err));
    return context;
}

static void expect_https(struct rig *rig, struct cn_http_request *req)
{
    CHECK(req->https);
    rig_echo(rig, req);
}

TEST(tls, serves_requests_and_names_its_protocol)
{
    struct rig rig;
    struct rig_tls client;
    struct cn_http_server_options options = {.tls = make_context(1)};
    rig_open(&rig, expect_https, &options);
    rig_tls_connect(&rig, &client, 0);
    rig_tls_handshake(&rig, &client);
    CHECK_STR("TLSv1.3", SSL_get_version(client.ssl));
    const unsigned char *protocol;
    unsigned protocol_size;
    SSL_get0_alpn_selected(client.ssl, &protocol, &protocol_size);
    CHECK(protocol_size == 8 && memcmp(protocol, "http/1.1", 8) == 0);
    const char *text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    for (const char *at = text; *at; at++) { /* one record for each byte */
        rig_tls_send(&client, at, 1);
        rig_turn(&rig);
    }
    RIG_UNTIL(&rig, rig_tls_has(&client, "\r\n\r\nhello"));
    text = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    rig_tls_send(&client, text, strlen(text));
    RIG_UNTIL(&rig, rig_tls_step(&client) && client.raw.ended);
    CHECK(rig_tls_has(&client, "\r\n\r\nhi"));
    CHECK(client.notified); /* a cut cannot be mistaken for this */
    rig_tls_disconnect(&client);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

TEST(tls, speaks_1_2_and_nothing_older)
{
    struct rig rig;
    struct rig_tls client;
    struct cn_http_server_options options = {.tls = make_context(1)};
    rig_open(&rig, rig_echo, &options);
    rig_tls_connect(&rig, &client, TLS1_2_VERSION);
    rig_tls_handshake(&rig, &client);
    CHECK_STR("TLSv1.2", SSL_get_version(client.ssl));
    rig_tls_disconnect(&client);
    rig_tls_connect(&rig, &client, TLS1_1_VERSION);
    RIG_UNTIL(&rig, rig_tls_step(&client) && client.raw.ended);
    CHECK(!SSL_is_init_finished(client.ssl));
    rig_tls_disconnect(&client);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

TEST(tls, carries_large_bodies_both_ways)
{
    enum { BODY = 6 << 20 };
    struct rig rig;
    struct rig_tls client;
    struct cn_http_server_options options = {.tls = make_context(1)};
    rig_open(&rig, rig_echo, &options);
    rig_tls_connect(&rig, &client, 0);
    rig_tls_handshake(&rig, &client);
    char head[100];
    snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", BODY);
    rig_tls_send(&client, head, strlen(head));
    uint8_t *body = cn_alloc(BODY);
    for (size_t i = 0; i < BODY; i++)
        body[i] = (uint8_t)(i * 7 + i / 1000);
    rig_tls_send(&client, body, BODY);
    RIG_UNTIL(&rig, rig_tls_step(&client) && client.got.size >= BODY);
    const char *end = memmem(client.got.data, client.got.size, "\r\n\r\n", 4);
    CHECK(end != NULL);
    size_t head_size = (size_t)((const uint8_t *)end + 4 - client.got.data);
    RIG_UNTIL(&rig, rig_tls_step(&client) && client.got.size == head_size + BODY);
    CHECK(memcmp(client.got.data + head_size, body, BODY) == 0);
    cn_free(body);
    rig_tls_disconnect(&client);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

TEST(tls, holds_a_client_back_and_forgets_nothing)
{
    enum { REQUESTS = 40, PADDING = 3000 };
    struct rig rig;
    struct rig_tls client;
    struct cn_http_server_options options = {.tls = make_context(1),
                                             .limits = {.input_high_bytes = 1000}};
    rig_open(&rig, rig_hold, &options);
    rig_tls_connect(&rig, &client, 0);
    rig_tls_handshake(&rig, &client);
    struct cn_buf text = {0};
    for (int i = 0; i < REQUESTS; i++)
        cn_buf_printf(&text, "GET /%d HTTP/1.1\r\nHost: a\r\nX: %0*d\r\n\r\n", i, PADDING, i);
    /* All in a few records: the server must stop between requests of one record, and go on
     * later although the socket has nothing new. */
    rig_tls_send(&client, text.data, text.size);
    cn_buf_fini(&text);
    for (unsigned i = 0; i < REQUESTS; i++) {
        RIG_UNTIL(&rig, rig_tls_step(&client) && rig.request_count == i + 1);
        char body[32], want[16];
        snprintf(want, sizeof(want), "/%u", i);
        CHECK(rig.held->target.size == strlen(want) &&
              memcmp(rig.held->target.data, want, strlen(want)) == 0);
        snprintf(body, sizeof(body), "answer %u.", i);
        CHECK_INT(0, rig_answer(rig.held, 200, body));
    }
    RIG_UNTIL(&rig, rig_tls_has(&client, "answer 39."));
    rig_tls_disconnect(&client);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

static struct cn_stream *taken;
static bool taken_gone;

static void taken_data(struct cn_stream *stream, const uint8_t *bytes, size_t size)
{
    cn_stream_write(stream, bytes, size);
}

static void taken_end(struct cn_stream *stream, int status)
{
    cn_stream_close(stream, false);
}

static void taken_closed(struct cn_stream *stream)
{
    taken_gone = true;
}

static void upgrade(struct rig *rig, struct cn_http_request *req)
{
    static const struct cn_stream_callbacks callbacks = {
        .on_data = taken_data, .on_end = taken_end, .on_closed = taken_closed};
    struct cn_http_head head = {.status = 101};
    CHECK_INT(0, cn_http_upgrade(req, &head, &callbacks, NULL, &taken));
    cn_stream_resume(taken);
    cn_http_request_release(req);
}

TEST(tls, hands_an_upgraded_connection_on)
{
    struct rig rig;
    struct rig_tls client;
    struct cn_http_server_options options = {.tls = make_context(1)};
    rig_open(&rig, upgrade, &options);
    taken_gone = false;
    rig_tls_connect(&rig, &client, 0);
    rig_tls_handshake(&rig, &client);
    const char *text =
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nearly ";
    rig_tls_send(&client, text, strlen(text));
    rig_tls_send(&client, "and ", 4);
    RIG_UNTIL(&rig, rig_tls_has(&client, "\r\n\r\nearly and "));
    rig_tls_send(&client, "later", 5);
    RIG_UNTIL(&rig, rig_tls_has(&client, "early and later"));
    rig_tls_disconnect(&client);
    RIG_UNTIL(&rig, taken_gone);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

TEST(tls, closes_on_a_slow_or_broken_handshake)
{
    struct rig rig;
    struct rig_client raw;
    struct cn_http_server_options options = {.tls = make_context(1)};
    rig_open(&rig, rig_echo, &options);
    rig_connect(&rig, &raw); /* plain HTTP */
    rig_send(&raw, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    RIG_UNTIL(&rig, raw.ended);
    CHECK(!rig_has(&raw, "HTTP/1.1"));
    rig_disconnect(&raw);

    rig_connect(&rig, &raw); /* silence */
    struct cn_http_stats stats = {0};
    RIG_UNTIL(&rig, (cn_http_server_stats(rig.server, &stats), stats.connection_count == 1));
    uv_update_time(&rig.loop);
    cn_http_server_tick(rig.server, uv_now(&rig.loop) + 9000);
    rig_turn(&rig);
    CHECK(!raw.ended);
    cn_http_server_tick(rig.server, uv_now(&rig.loop) + 10001);
    RIG_UNTIL(&rig, raw.ended);
    rig_disconnect(&raw);
    CHECK_INT(0, rig.request_count);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

static long peer_serial(struct rig_tls *client)
{
    X509 *cert = SSL_get1_peer_certificate(client->ssl);
    CHECK(cert != NULL);
    long serial = ASN1_INTEGER_get(X509_get_serialNumber(cert));
    X509_free(cert);
    return serial;
}

TEST(tls, takes_a_new_certificate_without_disturbing_connections)
{
    struct rig rig;
    struct rig_tls before, after;
    char cert[512], key[512], new_cert[512], new_key[512];
    rig_make_pair(11, cert, key, sizeof(cert));
    rig_make_pair(22, new_cert, new_key, sizeof(new_cert));
    struct cn_http_server_options options = {0};
    struct cn_err err = {0};
    CHECK_INT(0, cn_tls_context_new(cert, key, &options.tls, &err));
    rig_open(&rig, rig_echo, &options);
    rig_tls_connect(&rig, &before, 0);
    rig_tls_handshake(&rig, &before);
    CHECK_INT(11, peer_serial(&before));
    CHECK_INT(0, rename(new_cert, cert));
    CHECK_INT(CN_EINVALID, cn_tls_context_reload(options.tls, &err)); /* the key is the old one */
    rig_tls_connect(&rig, &after, 0);
    rig_tls_handshake(&rig, &after);
    CHECK_INT(11, peer_serial(&after));
    rig_tls_disconnect(&after);
    CHECK_INT(0, rename(new_key, key));
    CHECK_INT(0, cn_tls_context_reload(options.tls, &err));
    rig_tls_connect(&rig, &after, 0);
    rig_tls_handshake(&rig, &after);
    CHECK_INT(22, peer_serial(&after));
    const char *text = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nstill";
    rig_tls_send(&before, text, strlen(text));
    RIG_UNTIL(&rig, rig_tls_has(&before, "\r\n\r\nstill"));
    rig_tls_disconnect(&before);
    rig_tls_disconnect(&after);
    rig_close(&rig);
    cn_tls_context_unref(options.tls);
}

TEST(tls, says_what_is_wrong_with_certificate_files)
{
    char cert[512], key[512], other_cert[512], other_key[512];
    rig_make_pair(1, cert, key, sizeof(cert));
    rig_make_pair(2, other_cert, other_key, sizeof(other_cert));
    struct cn_tls_context *context = NULL;
    struct cn_err err = {0};
    CHECK_INT(CN_EINVALID, cn_tls_context_new("/nonexistent.pem", key, &context, &err));
    CHECK(strstr(err.text, "certificate /nonexistent.pem: No such file") != NULL);
    CHECK_INT(CN_EINVALID, cn_tls_context_new(cert, "/nonexistent.pem", &context, &err));
    CHECK(strstr(err.text, "private key /nonexistent.pem: No such file") != NULL);
    CHECK_INT(CN_EINVALID, cn_tls_context_new(cert, other_key, &context, &err));
    CHECK(strstr(err.text, "key values mismatch") != NULL);
    CHECK_INT(CN_EINVALID, cn_tls_context_new(key, key, &context, &err));
    CHECK(strstr(err.text, "no start line") != NULL);
    CHECK(context == NULL);
}

/* --- a shared key ----------------------------------------------------------------------- */

static struct cn_tls_context *keyed_context(uint8_t byte)
{
    uint8_t key[CN_TLS_KEY_SIZE];
    struct cn_tls_context *context;
    struct cn_err err = {0};
    memset(key, byte, sizeof(key));
    CHECK_INT(0, cn_tls_context_new_keyed(key, &context, &err));
    return context;
}

static void carry(struct cn_tls *from, struct cn_tls *to)
{
    uint8_t bytes[4096];
    size_t size;
    while ((size = cn_tls_take_output(from, bytes, sizeof(bytes))) > 0)
        cn_tls_feed(to, bytes, size);
}

/* What `to` reads of a text that `from` writes, after both have had their turns; negative: what
 * ended one of them. */
static int pass(struct cn_tls *from, struct cn_tls *to, const char *text)
{
    char got[100] = "";
    size_t sent = 0, size = 0;
    for (int turn = 0; turn < 20 && size < strlen(text); turn++) {
        if (sent < strlen(text)) {
            int rc = cn_tls_write(from, (const uint8_t *)text + sent, strlen(text) - sent);
            if (rc < 0)
                return rc;
            sent += (size_t)rc;
        }
        int rc = cn_tls_read(to, (uint8_t *)got + size, sizeof(got) - size);
        if (rc < 0)
            return rc;
        size += (size_t)rc;
        carry(to, from);
        rc = cn_tls_handshake(from);
        carry(from, to);
        if (rc < 0)
            return rc;
    }
    return size == strlen(text) && memcmp(got, text, size) == 0 ? 0 : 1;
}

TEST(tls_keyed, carries_bytes_both_ways_between_those_who_have_the_key)
{
    struct cn_tls_context *ours = keyed_context(7), *theirs = keyed_context(7);
    struct cn_tls *server = cn_tls_new(ours), *client = cn_tls_new_keyed(theirs);
    cn_tls_context_unref(ours); /* connections outlive their contexts */
    cn_tls_context_unref(theirs);
    CHECK_INT(0, pass(client, server, "from the client"));
    CHECK_INT(0, pass(server, client, "from the server"));
    cn_tls_free(server);
    cn_tls_free(client);
}

TEST(tls_keyed, completes_no_handshake_with_another_key)
{
    struct cn_tls_context *ours = keyed_context(7), *theirs = keyed_context(8);
    struct cn_tls *server = cn_tls_new(ours), *client = cn_tls_new_keyed(theirs);
    CHECK_INT(CN_EPROTOCOL, pass(client, server, "hello"));
    CHECK(!cn_tls_is_secure(server));
    cn_tls_free(server);
    cn_tls_free(client);
    cn_tls_context_unref(ours);
    cn_tls_context_unref(theirs);
}

/* Nor with a client that believes anybody, or a server that has a certificate. */
TEST(tls_keyed, completes_no_handshake_with_a_peer_that_has_none)
{
    struct cn_tls_context *keyed = keyed_context(7), *certificate = make_context(3);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *input = BIO_new(BIO_s_mem()), *output = BIO_new(BIO_s_mem());
    uint8_t bytes[4096];
    SSL_set_bio(ssl, input, output);
    SSL_set_connect_state(ssl);
    struct cn_tls *server = cn_tls_new(keyed);
    CHECK(SSL_do_handshake(ssl) != 1);
    int size = BIO_read(output, bytes, sizeof(bytes));
    CHECK(size > 0);
    cn_tls_feed(server, bytes, (size_t)size);
    CHECK_INT(CN_EPROTOCOL, cn_tls_handshake(server));
    cn_tls_free(server);
    SSL_free(ssl);
    SSL_CTX_free(context);
    struct cn_tls *client = cn_tls_new_keyed(keyed);
    server = cn_tls_new(certificate);
    CHECK_INT(CN_EPROTOCOL, pass(client, server, "hello"));
    CHECK(!cn_tls_is_secure(client));
    cn_tls_free(server);
    cn_tls_free(client);
    cn_tls_context_unref(keyed);
    cn_tls_context_unref(certificate);
}
