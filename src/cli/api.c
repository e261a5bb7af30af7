/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/admin.h"
#include "admin/control.h"
#include "base/mem.h"
#include "cli/args.h"
#include "server/offline_lane.h"
#include "text/percent.h"
#include "v4/tokens.h"
#include "v4/v4.h"

#define HEAD_SIZE_MAX (16u << 10)
#define ANSWER_SIZE_MAX ((size_t)64 << 20)
#define PIECE_SIZE ((size_t)64 << 10)

struct call {
    const char *method, *target;
    const struct cn_api_body *body; /* NULL: none */
    bool is_json;                   /* the body, if there is one */
};

/* Where the body of an answer goes. Of an error (status 400 and up) it is kept and parsed. */
struct sink {
    int status;
    int64_t length; /* announced; -1: not */
    uint64_t received;
    struct cn_buf kept;
    int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err); /* NULL: keep */
    void *data;
    struct cn_err err;
};

static int sink_take(struct sink *sink, const void *bytes, size_t size)
{
    sink->received += size;
    if (sink->write && sink->status < 400)
        return sink->write(sink->data, bytes, size, &sink->err);
    if (sink->kept.size + size > ANSWER_SIZE_MAX)
        return cn_err_set(&sink->err, CN_ELIMIT, "the answer is too large");
    cn_buf_append(&sink->kept, bytes, size);
    return 0;
}

/* --- to a server ----------------------------------------------------------------------------- */

static int send_all(int fd, const void *bytes, size_t size, struct cn_err *err)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t count = send(fd, at, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return cn_err_errno(err, errno, "the server cannot be reached");
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

/* Status and Content-Length of a complete head. */
static int parse_head(struct sink *sink, const char *head, struct cn_err *err)
{
    if (strncmp(head, "HTTP/1.", 7) != 0 || strlen(head) < 12)
        return cn_err_set(err, CN_EPROTOCOL, "the control socket does not speak HTTP");
    sink->status = (int)strtol(head + 9, NULL, 10);
    sink->length = -1;
    const char *field = strcasestr(head, "\r\ncontent-length:");
    if (field)
        sink->length = strtoll(field + 17, NULL, 10);
    return 0;
}

/* HTTP/1.0: the body ends with the connection, and with its length if that was said. */
static int receive(int fd, struct sink *sink, struct cn_err *err)
{
    struct cn_buf head = {0};
    char bytes[64 << 10];
    bool in_body = false;
    int rc = 0;
    while (rc == 0) {
        ssize_t count = read(fd, bytes, sizeof(bytes));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            rc = cn_err_errno(err, errno, "the server's answer is cut");
        if (count <= 0)
            break;
        if (in_body) {
            rc = sink_take(sink, bytes, (size_t)count);
            continue;
        }
        cn_buf_append(&head, bytes, (size_t)count);
        char *end = strstr(cn_buf_text(&head), "\r\n\r\n");
        if (!end) {
            if (head.size > HEAD_SIZE_MAX)
                rc = cn_err_set(err, CN_EPROTOCOL, "the server's answer has no end to its head");
            continue;
        }
        size_t head_size = (size_t)(end - (char *)head.data);
        *end = 0;
        in_body = true;
        rc = parse_head(sink, (char *)head.data, err);
        if (rc == 0 && head.size > head_size + 4)
            rc = sink_take(sink, head.data + head_size + 4, head.size - head_size - 4);
    }
    cn_buf_fini(&head);
    if (rc < 0 && sink->err.code)
        *err = sink->err;
    if (rc == 0 && (!in_body || (sink->length >= 0 && sink->received != (uint64_t)sink->length)))
        rc = cn_err_set(err, CN_EPROTOCOL, "the server's answer is cut");
    return rc;
}

/* Sends a body, in chunks if its size is not known. */
static int send_body(int fd, const struct cn_api_body *body, struct cn_err *err)
{
    char *bytes = cn_alloc(PIECE_SIZE);
    char head[16];
    int64_t count, sent = 0;
    int rc = 0;
    while (rc == 0 && (count = body->read(body->data, bytes, PIECE_SIZE, err)) != 0) {
        if (count < 0) {
            rc = (int)count;
            break;
        }
        sent += count;
        int head_size = body->size < 0 ? snprintf(head, sizeof(head), "%zx\r\n", (size_t)count) : 0;
        rc = send_all(fd, head, (size_t)head_size, err);
        if (rc == 0)
            rc = send_all(fd, bytes, (size_t)count, err);
        if (rc == 0 && body->size < 0)
            rc = send_all(fd, "\r\n", 2, err);
    }
    cn_free(bytes);
    if (rc == 0 && body->size < 0)
        rc = send_all(fd, "0\r\n\r\n", 5, err);
    if (rc == 0 && body->size >= 0 && sent != body->size)
        rc = cn_err_set(err, CN_EINVALID, "the file changed while it was read");
    return rc;
}

static int call_server(struct cn_api *api, const struct call *call, struct sink *sink,
                       struct cn_err *err)
{
    struct cn_buf request = {0};
    const struct cn_api_body *body = call->body;
    int fd = cn_admin_socket(api->path, "control.sock", false);
    if (fd < 0)
        return cn_err_errno(err, -fd, "the server cannot be reached");
    /* HTTP/1.0 has no chunks; with 1.1 the end of the connection is asked for. */
    cn_buf_printf(&request, "%s %s HTTP/1.%d\r\nHost: localhost\r\nConnection: close\r\n",
                  call->method, call->target, body && body->size < 0);
    if (call->is_json)
        cn_buf_append_str(&request, "Content-Type: application/json\r\n");
    if (body && body->size >= 0)
        cn_buf_printf(&request, "Content-Length: %" PRId64 "\r\n", body->size);
    else if (body)
        cn_buf_append_str(&request, "Transfer-Encoding: chunked\r\n");
    cn_buf_append_str(&request, "\r\n");
    int rc = send_all(fd, request.data, request.size, err);
    int send_rc = rc == 0 && body ? send_body(fd, body, err) : rc;
    /* A server that refuses may close before it has taken the body: what it says counts. */
    struct cn_err ignored;
    if (rc == 0)
        rc = receive(fd, sink, send_rc < 0 ? &ignored : err);
    if (send_rc < 0 && (rc < 0 || sink->status < 400))
        rc = send_rc;
    cn_buf_fini(&request);
    close(fd);
    return rc;
}

/* --- in this process ------------------------------------------------------------------------- */

struct local_call {
    struct cn_control_call call; /* first */
    struct cn_control control;
    struct cn_api *api;
    struct sink *sink;
    const struct cn_api_body *body;
};

static int64_t on_local_read(struct cn_control_call *call, void *bytes, size_t size)
{
    struct local_call *local = (struct local_call *)call;
    return local->body->read(local->body->data, bytes, size, &local->sink->err);
}

/* From then on every call goes through its lane: a database has one owner. */
static struct cn_node *on_services(void *data, struct cn_err *err)
{
    struct local_call *local = data;
    struct cn_api *api = local->api;
    if (!api->lane &&
        cn_offline_lane_new(cn_offline_disk(&api->dir), api->dir.shards, &api->lane, err) < 0)
        return NULL;
    local->control.node = cn_offline_lane_node(api->lane);
    return local->control.node;
}

static int on_local_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    struct local_call *local = (struct local_call *)call;
    local->sink->status = call->status;
    local->sink->length = call->length;
    return sink_take(local->sink, bytes, size);
}

static int call_locally(struct cn_api *api, const struct call *call, struct sink *sink,
                        struct cn_err *err)
{
    struct local_call local = {
        .call = {.method = call->method,
                 .target = call->target,
                 .body_size = call->body ? call->body->size : 0,
                 .read = call->body ? on_local_read : NULL,
                 .write = on_local_write},
        .control = {.disk = cn_offline_disk(&api->dir),
                    .data_path = api->path,
                    .shards = api->dir.shards,
                    .node = api->lane ? cn_offline_lane_node(api->lane) : NULL,
                    .services = on_services},
        .api = api,
        .sink = sink,
        .body = call->body,
    };
    local.control.services_data = &local;
    local.call.control = &local.control;
    cn_guard_operator(&local.call.who);
    struct cn_v4 v4;
    cn_v4_init(&v4);
    v4.no_depot = "no server runs here";
    int rc = cn_tokens_open(local.control.disk, &v4.tokens, err);
    if (rc < 0) {
        cn_v4_fini(&v4);
        return rc;
    }
    local.control.more = cn_v4_routes;
    local.control.check = cn_v4_check;
    local.control.more_data = &v4;
    cn_control_run(&local.call);
    cn_tokens_close(v4.tokens);
    cn_v4_fini(&v4);
    cn_buf_fini(&local.call.fields);
    sink->status = local.call.status;
    if (sink->err.code) {
        *err = sink->err;
        return err->code;
    }
    return sink->length >= 0 && sink->received != (uint64_t)sink->length
               ? cn_err_set(err, CN_ECORRUPT, "the copy could not be read to its end")
               : 0;
}

/* --- calls ----------------------------------------------------------------------------------- */

static int run_call(struct cn_api *api, const struct call *call, struct sink *sink,
                    struct cn_err *err)
{
    int rc = api->online ? call_server(api, call, sink, err) : call_locally(api, call, sink, err);
    if (rc < 0 || sink->status < 400)
        return rc;
    struct cn_json *json = cn_json_parse((char *)sink->kept.data, sink->kept.size, err);
    const char *message = cn_json_text(cn_json_find(json, "error"), "message");
    rc = sink->status == 404 ? CN_ENOTFOUND : sink->status == 409 ? CN_ELOCKED : CN_EINVALID;
    cn_err_set(err, rc, "%s", message ? message : "the server refused");
    cn_json_free(json);
    return rc;
}

int64_t cn_api_read_bytes(void *data, void *bytes, size_t size, struct cn_err *err)
{
    (void)err;
    struct cn_api_bytes *body = data;
    size_t count = size < body->left ? size : body->left;
    memcpy(bytes, body->at, count);
    body->at += count;
    body->left -= count;
    return (int64_t)count;
}

static int call_for_json(struct cn_api *api, const struct call *call, struct cn_json **answer,
                         struct cn_err *err)
{
    struct sink sink = {.length = -1};
    int rc = run_call(api, call, &sink, err);
    if (rc == 0) {
        *answer = cn_json_parse((char *)sink.kept.data, sink.kept.size, err);
        if (!*answer)
            rc = CN_EPROTOCOL;
    }
    cn_buf_fini(&sink.kept);
    return rc;
}

int cn_api_call(struct cn_api *api, const char *method, const char *target, const char *body,
                struct cn_json **answer, struct cn_err *err)
{
    struct cn_api_bytes text = {body, body ? strlen(body) : 0};
    struct cn_api_body piece = {(int64_t)text.left, cn_api_read_bytes, &text};
    struct call call = {method, target, body ? &piece : NULL, true};
    return call_for_json(api, &call, answer, err);
}

int cn_api_put(struct cn_api *api, const char *target, const struct cn_api_body *body,
               struct cn_json **answer, struct cn_err *err)
{
    struct call call = {"PUT", target, body, false};
    return call_for_json(api, &call, answer, err);
}

int cn_api_fetch(struct cn_api *api, const char *target,
                 int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err),
                 void *data, struct cn_err *err)
{
    return cn_api_stream(api, "GET", target, write, data, err);
}

int cn_api_stream(struct cn_api *api, const char *method, const char *target,
                  int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err),
                  void *data, struct cn_err *err)
{
    struct sink sink = {.length = -1, .write = write, .data = data};
    struct call call = {method, target, NULL, false};
    int rc = run_call(api, &call, &sink, err);
    cn_buf_fini(&sink.kept);
    return rc;
}

/* Whether a server answers. */
static bool find_server(struct cn_api *api, const char *data)
{
    *api = (struct cn_api){.path = cn_strdup(cn_args_data(data))};
    int fd = cn_admin_socket(api->path, "control.sock", false);
    if (fd >= 0)
        close(fd);
    api->online = fd >= 0;
    return api->online;
}

/* Whether it is there, and not for this user. */
static bool is_anothers(const struct cn_api *api, struct cn_err *err)
{
    if (access(api->path, R_OK | X_OK) == 0 || errno != EACCES)
        return false;
    cn_err_set(err, CN_EDENIED, "the data directory %s belongs to another user: try it with sudo",
               api->path);
    return true;
}

int cn_api_connect(struct cn_api *api, const char *data, struct cn_err *err)
{
    if (find_server(api, data))
        return 0;
    if (!is_anothers(api, err))
        cn_err_set(err, CN_ENOTFOUND, "no server runs on the data directory %s", api->path);
    cn_api_close(api);
    return err->code;
}

int cn_api_open(struct cn_api *api, const char *data, bool readonly, struct cn_err *err)
{
    if (find_server(api, data))
        return 0;
    int rc =
        is_anothers(api, err) ? err->code : cn_offline_open(&api->dir, api->path, readonly, err);
    if (rc < 0)
        cn_api_close(api);
    return rc;
}

void cn_api_close(struct cn_api *api)
{
    cn_offline_lane_free(api->lane);
    cn_offline_close(&api->dir);
    cn_free(api->path);
    *api = (struct cn_api){0};
}

void cn_api_append_param(struct cn_buf *target, const char *name, const char *value)
{
    if (name)
        cn_buf_printf(target, "%s=", name);
    cn_api_append_bytes(target, value, strlen(value));
}

void cn_api_append_bytes(struct cn_buf *target, const void *bytes, size_t size)
{
    cn_percent_encode(target, bytes, size, CN_PERCENT_UNRESERVED);
}
