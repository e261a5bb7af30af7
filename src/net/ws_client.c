/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ws_client.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/client_head.h"
#include "net/http.h"
#include "net/http_parser.h"
#include "net/socket.h"
#include "net/ws_conn.h"
#include "net/ws_end.h"
#include "net/ws_handshake.h"

#define HEAD_SIZE_MAX (64 << 10)

struct cn_ws_client {
    struct cn_ws_lane *lane;
    struct cn_socket *socket;
    void (*on_done)(const struct cn_ws_client_result *result,
                    void *data); /* NULL: told, or nobody */
    void *data;
    char key[CN_WS_KEY_SIZE + 1];
    bool offered;
    struct cn_buf request; /* to be sent when the socket is open */
    struct cn_buf input;   /* an incomplete line of the head */
    struct cn_client_head_reader head;
    bool head_done; /* the answer is no 101: its body follows */
    struct cn_buf body;
    int64_t body_left; /* -1: until the end; -2: chunked */
    struct cn_http_chunked chunked;
};

static void client_free(struct cn_ws_client *client)
{
    cn_buf_fini(&client->request);
    cn_buf_fini(&client->input);
    cn_buf_fini(&client->body);
    cn_client_head_fini(&client->head);
    cn_free(client);
}

/* Tells, once. The memory goes with the socket, unless that is handed on. */
static void done(struct cn_ws_client *client, struct cn_ws_client_result *result)
{
    void (*on_done)(const struct cn_ws_client_result *, void *) = client->on_done;
    client->on_done = NULL;
    if (on_done)
        on_done(result, client->data);
}

static void fail(struct cn_ws_client *client, const struct cn_err *error)
{
    struct cn_ws_client_result result = {.error = error};
    done(client, &result);
    cn_socket_close(client->socket);
}

static void fail_text(struct cn_ws_client *client, const char *text)
{
    struct cn_err err;
    cn_err_set(&err, CN_EPROTOCOL, "%s", text);
    fail(client, &err);
}

static const struct cn_client_header *find(const struct cn_client_head *head, const char *lower)
{
    for (size_t i = 0; i < head->header_count; i++)
        if (cn_http_name_equal(head->headers[i].name, head->headers[i].name_length, lower,
                               strlen(lower)))
            return &head->headers[i];
    return NULL;
}

/* --- a 101 -------------------------------------------------------------------------------- */

/* NULL, or what is wrong with it (RFC 6455, 4.1). */
static const char *check_101(const struct cn_ws_client *client, const struct cn_client_head *head,
                             struct cn_ws_terms *terms)
{
    char accept[CN_WS_ACCEPT_SIZE + 1];
    cn_ws_accept_of(client->key, CN_WS_KEY_SIZE, accept);
    const struct cn_client_header *upgrade = find(head, "upgrade");
    const struct cn_client_header *connection = find(head, "connection");
    const struct cn_client_header *given = find(head, "sec-websocket-accept");
    const struct cn_client_header *extensions = find(head, "sec-websocket-extensions");
    if (!upgrade || !cn_http_name_equal(upgrade->value, upgrade->value_length, "websocket", 9))
        return "the server's 101 does not say Upgrade: websocket";
    if (!connection || !cn_http_list_has(connection->value, connection->value_length, "upgrade"))
        return "the server's 101 does not say Connection: Upgrade";
    if (!given || given->value_length != CN_WS_ACCEPT_SIZE ||
        memcmp(given->value, accept, CN_WS_ACCEPT_SIZE) != 0)
        return "the server's Sec-WebSocket-Accept does not answer our key";
    if (extensions && (!client->offered ||
                       !cn_ws_answer_check(extensions->value, extensions->value_length, terms)))
        return "the server chose an extension that was not offered";
    return NULL;
}

static void opened(struct cn_ws_client *client, const struct cn_client_head *head,
                   const uint8_t *rest, size_t rest_size)
{
    struct cn_ws_terms terms = {0};
    const char *problem = check_101(client, head, &terms);
    if (problem) {
        fail_text(client, problem);
        return;
    }
    struct cn_ws_end *ours, *theirs;
    cn_ws_pair_new(&theirs, &ours);
    const struct cn_client_header *protocol = find(head, "sec-websocket-protocol");
    if (protocol)
        theirs->protocol = cn_strndup(protocol->value, protocol->value_length);
    theirs->deflate = terms.deflate;
    struct cn_socket *socket = client->socket;
    struct cn_ws_client_result result = {.head = *head, .end = theirs};
    struct cn_ws_lane *lane = client->lane;
    if (client->on_done)
        done(client, &result);
    else
        cn_ws_end_release(theirs);
    cn_ws_adopt(lane, socket, &terms, ours, rest, rest_size);
    client->socket = NULL;
}

/* --- another answer ----------------------------------------------------------------------- */

static void answered(struct cn_ws_client *client)
{
    struct cn_client_header *headers;
    struct cn_ws_client_result result = {.head = cn_client_head_take(&client->head, &headers),
                                         .body = client->body.data,
                                         .body_size = client->body.size};
    done(client, &result);
    cn_free(headers);
    cn_socket_close(client->socket);
}

static void take_body(struct cn_ws_client *client, const uint8_t *bytes, size_t size)
{
    while (size > 0 && client->on_done) {
        const uint8_t *piece = bytes;
        size_t used = size, piece_size = size;
        int state = CN_HTTP_CHUNKED_DATA;
        if (client->body_left == -2)
            state = cn_http_chunked_next(&client->chunked, bytes, size, &used, &piece, &piece_size);
        else if (client->body_left >= 0 && (uint64_t)client->body_left < size)
            piece_size = (size_t)client->body_left;
        if (state < 0 || client->body.size + piece_size > CN_WS_CLIENT_BODY_MAX) {
            fail_text(client, state < 0 ? "the answer's body is malformed"
                                        : "the answer to a WebSocket request is too large");
            return;
        }
        if (state == CN_HTTP_CHUNKED_DATA)
            cn_buf_append(&client->body, piece, piece_size);
        if (client->body_left >= 0)
            client->body_left -= (int64_t)piece_size;
        if (state == CN_HTTP_CHUNKED_END || client->body_left == 0)
            answered(client);
        bytes += used;
        size -= used;
    }
}

static void body_begin(struct cn_ws_client *client, const struct cn_client_head *head)
{
    const struct cn_client_header *length = find(head, "content-length");
    const struct cn_client_header *coding = find(head, "transfer-encoding");
    client->head_done = true;
    client->body_left = -1;
    if (coding && cn_http_list_has(coding->value, coding->value_length, "chunked"))
        client->body_left = -2;
    else if (length)
        client->body_left = strtoll(length->value, NULL, 10);
    if (head->status == 204 || head->status == 304 || client->body_left == 0)
        answered(client);
}

/* --- the head ------------------------------------------------------------------------------ */

/* Returns 1 when the head is complete; *used bytes belong to it. */
static int read_head(struct cn_ws_client *client, const uint8_t *bytes, size_t size, size_t *used,
                     struct cn_err *err)
{
    *used = 0;
    while (*used < size) {
        const uint8_t *newline = memchr(bytes + *used, '\n', size - *used);
        size_t taken = newline ? (size_t)(newline - bytes) + 1 - *used : size - *used;
        if (client->input.size + taken > HEAD_SIZE_MAX)
            return cn_err_set(err, CN_ELIMIT, "the answer's headers are too large");
        cn_buf_append(&client->input, bytes + *used, taken);
        *used += taken;
        if (!newline)
            return 0;
        int rc = cn_client_head_line(&client->head, (const char *)client->input.data,
                                     client->input.size, HEAD_SIZE_MAX, err);
        cn_buf_clear(&client->input);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void on_data(struct cn_socket *socket, const void *bytes, size_t size, void *data)
{
    (void)socket;
    struct cn_ws_client *client = data;
    if (!client->on_done)
        return;
    if (client->head_done) {
        take_body(client, bytes, size);
        return;
    }
    struct cn_err err;
    size_t used;
    int rc = read_head(client, bytes, size, &used, &err);
    if (rc < 0)
        fail(client, &err);
    if (rc != 1)
        return;
    struct cn_client_header *headers;
    struct cn_client_head head = cn_client_head_take(&client->head, &headers);
    const uint8_t *rest = (const uint8_t *)bytes + used;
    if (head.status == 101) {
        opened(client, &head, rest, size - used);
    } else {
        body_begin(client, &head);
        take_body(client, rest, size - used);
    }
    cn_free(headers);
    if (!client->socket)
        client_free(client); /* it was handed on */
}

static void on_open(struct cn_socket *socket, void *data)
{
    struct cn_ws_client *client = data;
    struct cn_err err;
    int rc = cn_socket_write(socket, client->request.data, client->request.size, &err);
    cn_buf_fini(&client->request);
    if (rc < 0)
        fail(client, &err);
}

static void on_end(struct cn_socket *socket, void *data)
{
    (void)socket;
    struct cn_ws_client *client = data;
    if (client->head_done && client->body_left == -1 && client->on_done)
        answered(client);
}

static void on_closed(struct cn_socket *socket, const struct cn_err *error, void *data)
{
    (void)socket;
    struct cn_ws_client *client = data;
    struct cn_err early;
    cn_err_set(&early, CN_ECLOSED, "the server closed the connection before it answered");
    struct cn_ws_client_result result = {.error = error ? error : &early};
    done(client, &result);
    client_free(client);
}

static void on_drain(struct cn_socket *socket, void *data)
{
    (void)socket, (void)data;
}

static const struct cn_socket_callbacks callbacks = {on_open, on_data, on_drain, on_end, on_closed};

struct cn_ws_client *cn_ws_client_start(struct cn_ws_lane *lane, struct cn_sockets *sockets,
                                        const struct cn_ws_client_params *params,
                                        void (*on_done)(const struct cn_ws_client_result *result,
                                                        void *data),
                                        void *data, struct cn_err *err)
{
    struct cn_ws_client *client = CN_NEW(struct cn_ws_client);
    client->lane = lane;
    client->on_done = on_done;
    client->data = data;
    client->head.upgrades = true;
    client->offered = params->offer_deflate;
    cn_ws_key_new(client->key);
    cn_buf_printf(&client->request,
                  "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s%s\r\n",
                  params->target, params->authority, client->key,
                  params->offer_deflate ? "Sec-WebSocket-Extensions: " CN_WS_OFFER "\r\n" : "",
                  params->headers);
    struct cn_socket_params socket = {
        .host = params->host,
        .port = params->port,
        .secure = params->secure ? CN_SOCKET_TLS : CN_SOCKET_PLAIN,
        .alpn = params->secure ? "http/1.1" : NULL,
    };
    client->socket = cn_socket_connect(sockets, &socket, &callbacks, client, err);
    if (!client->socket) {
        client_free(client);
        return NULL;
    }
    return client;
}

void cn_ws_client_cancel(struct cn_ws_client *client)
{
    client->on_done = NULL;
    cn_socket_close(client->socket);
}
