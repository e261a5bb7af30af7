/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/http_rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "base/mem.h"

#define GUARD_MS 30000

static uv_timer_t guard; /* one rig at a time */
static bool guard_fired;
static rig_handler handler_now;

/* --- the server ------------------------------------------------------------------------- */

static void on_request(struct cn_http_server *server, struct cn_http_request *req)
{
    struct rig *rig = cn_http_server_data(server);
    rig->request_count++;
    if (handler_now) {
        handler_now(rig, req);
        return;
    }
    struct cn_http_head head = {.status = 200};
    CHECK_INT(0, cn_http_respond(req, &head, req->target.data, req->target.size, NULL, NULL));
    cn_http_request_release(req);
}

static void on_abort(struct cn_http_server *server, struct cn_http_request *req, int status)
{
    struct rig *rig = cn_http_server_data(server);
    rig->abort_count++;
    rig->abort_status = status;
    if (rig->on_abort)
        rig->on_abort(server, req, status);
}

static void on_drained(void *data)
{
    ((struct rig *)data)->drained = true;
}

static void on_server_closed(void *data)
{
    ((struct rig *)data)->closed = true;
}

void rig_drain(struct rig *rig)
{
    cn_http_server_drain(rig->server, on_drained, rig);
}

void rig_open(struct rig *rig, rig_handler handler, const struct cn_http_server_options *options)
{
    memset(rig, 0, sizeof(*rig));
    rig->read_status = 99;
    handler_now = handler;
    CHECK_INT(0, cn_loop_init(&rig->loop, NULL));
    uv_timer_init(&rig->loop, &guard);
    uv_unref((uv_handle_t *)&guard);
    struct cn_http_server_options all = {0};
    if (options)
        all = *options;
    all.callbacks = (struct cn_http_callbacks){.on_request = on_request, .on_abort = on_abort};
    all.data = rig;
    struct cn_err err = {0};
    int fd;
    CHECK_INT(0, cn_http_bind("127.0.0.1", 0, &fd, 1, &rig->port, &err));
    CHECK_INT(0, cn_http_server_new(&rig->loop, &all, &rig->server, &err));
    CHECK_INT(0, cn_http_server_listen(rig->server, fd, &err));
}

void rig_close(struct rig *rig)
{
    if (!rig->closed) {
        cn_http_server_close(rig->server, on_server_closed, rig);
        RIG_UNTIL(rig, rig->closed);
    }
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&rig->loop)); /* UV_EBUSY: a handle was left behind */
    cn_buf_fini(&rig->body);
}

void rig_hold(struct rig *rig, struct cn_http_request *req)
{
    rig->held = req;
}

int rig_answer(struct cn_http_request *req, int status, const char *body)
{
    struct cn_http_head head = {.status = status};
    int rc = cn_http_respond(req, &head, body, strlen(body), NULL, NULL);
    cn_http_request_release(req);
    return rc;
}

static void on_body(struct cn_http_request *req, int status, const uint8_t *bytes, size_t size);

static struct rig *rig_of(struct cn_http_request *req)
{
    return cn_http_server_data(req->server);
}

void rig_read_all(struct cn_http_request *req)
{
    struct rig *rig = rig_of(req);
    for (;;) {
        const uint8_t *bytes;
        size_t size;
        int rc = cn_http_request_read(req, &bytes, &size, on_body);
        if (rc == CN_HTTP_READ_PENDING)
            return;
        rig->read_count++;
        rig->read_status = rc;
        if (rc != CN_HTTP_READ_DATA)
            break;
        cn_buf_append(&rig->body, bytes, size);
    }
    if (rig->read_status == CN_HTTP_READ_END && req->data)
        ((rig_handler)req->data)(rig, req);
}

static void on_body(struct cn_http_request *req, int status, const uint8_t *bytes, size_t size)
{
    struct rig *rig = rig_of(req);
    rig->read_count++;
    rig->read_status = status;
    if (status == CN_HTTP_READ_DATA) {
        cn_buf_append(&rig->body, bytes, size);
        rig_read_all(req);
    } else if (status == CN_HTTP_READ_END && req->data)
        ((rig_handler)req->data)(rig, req);
}

static void answer_with_body(struct rig *rig, struct cn_http_request *req)
{
    struct cn_http_head head = {.status = 200};
    CHECK_INT(0, cn_http_respond(req, &head, rig->body.data, rig->body.size, NULL, NULL));
    cn_buf_clear(&rig->body);
    cn_http_request_release(req);
}

void rig_echo(struct rig *rig, struct cn_http_request *req)
{
    req->data = (void *)answer_with_body;
    rig->held = req;
    rig_read_all(req);
}

/* --- clients ---------------------------------------------------------------------------- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct rig_client *client = poll->data;
    for (int i = 0; i < 16 && !client->paused; i++) {
        cn_buf_reserve(&client->got, 65536);
        ssize_t count = recv(client->fd, client->got.data + client->got.size, 65536, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (count <= 0) {
            client->ended = true;
            client->reset = count < 0;
            uv_poll_stop(poll);
            return;
        }
        client->got.size += (size_t)count;
    }
}

void rig_connect_small(struct rig *rig, struct rig_client *client, int receive_bytes)
{
    memset(client, 0, sizeof(*client));
    client->rig = rig;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(client->fd >= 0);
    if (receive_bytes > 0)
        setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(rig->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int rc = connect(client->fd, (struct sockaddr *)&address, sizeof(address));
    CHECK(rc == 0 || errno == EINPROGRESS);
    CHECK_INT(0, uv_poll_init(&rig->loop, &client->poll, client->fd));
    client->poll.data = client;
    CHECK_INT(0, uv_poll_start(&client->poll, UV_READABLE, on_readable));
}

void rig_connect(struct rig *rig, struct rig_client *client)
{
    rig_connect_small(rig, client, 0);
}

void rig_pause(struct rig_client *client, bool paused)
{
    client->paused = paused;
    if (paused)
        uv_poll_stop(&client->poll);
    else
        uv_poll_start(&client->poll, UV_READABLE, on_readable);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct rig_client *client = handle->data;
    close(client->fd);
    client->closed = true;
}

void rig_disconnect(struct rig_client *client)
{
    uv_close((uv_handle_t *)&client->poll, on_poll_closed);
    RIG_UNTIL(client->rig, client->closed);
    cn_buf_fini(&client->got);
}

size_t rig_send_some(struct rig_client *client, const void *bytes, size_t size)
{
    ssize_t count = send(client->fd, bytes, size, MSG_NOSIGNAL);
    return count > 0 ? (size_t)count : 0;
}

void rig_send(struct rig_client *client, const char *text)
{
    size_t size = strlen(text);
    rig_guard_start(client->rig);
    while (size > 0) {
        size_t sent = rig_send_some(client, text, size);
        text += sent;
        size -= sent;
        if (size > 0 && client->ended)
            return; /* the server has gone: the caller looks at what it said */
        if (size > 0 && !rig_guard_wait(client->rig))
            test_fail(__FILE__, __LINE__, "timed out sending");
    }
}

const char *rig_got(struct rig_client *client)
{
    return cn_buf_text(&client->got);
}

unsigned rig_count(struct rig_client *client, const char *part)
{
    unsigned count = 0;
    for (const char *at = rig_got(client); (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

bool rig_has(struct rig_client *client, const char *part)
{
    return strstr(rig_got(client), part) != NULL;
}

const char *rig_exchange(struct rig *rig, struct rig_client *client, const char *text)
{
    rig_connect(rig, client);
    rig_send(client, text);
    /* End our side when an answer is there, as a client does: a lingering server then closes. */
    RIG_UNTIL(rig, client->got.size > 0 || client->ended);
    rig_turn(rig);
    shutdown(client->fd, SHUT_WR);
    RIG_UNTIL(rig, client->ended);
    return rig_got(client);
}

/* --- running the loop ------------------------------------------------------------------- */

static void on_guard(uv_timer_t *timer)
{
    guard_fired = true;
}

void rig_turn(struct rig *rig)
{
    uv_run(&rig->loop, UV_RUN_NOWAIT);
}

void rig_guard_start(struct rig *rig)
{
    guard_fired = false;
    uv_update_time(&rig->loop);
    uv_timer_start(&guard, on_guard, GUARD_MS, 0);
}

bool rig_guard_wait(struct rig *rig)
{
    /* The guard must keep the loop alive here: everything else may be unreferenced. */
    uv_ref((uv_handle_t *)&guard);
    uv_run(&rig->loop, UV_RUN_ONCE);
    uv_unref((uv_handle_t *)&guard);
    return !guard_fired;
}
