/* SPDX-License-Identifier: Apache-2.0 */
/* module/sockets.c - WebSockets of objects of modules: they hibernate (object/socket.h).
 *
 * A cairn_socket is no pointer: it is the number of the socket's end (worker/websocket.h), which
 * finds nothing once that is gone (K2), whatever a module does with it. */
#include "module/http.h"
#include "module/api.h"
#include "module/sockets.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "module/crash.h"
#include "module/guard.h"
#include "module/internal.h"
#include "module/tracer.h"
#include "object/node.h"
#include "object/socket.h"

#define TAG_SIZE_MAX 256
#define ATTACHMENT_SIZE_MAX 16384
#define RESPONSE_SIZE_MAX 2048

_Static_assert(sizeof(cairn_socket *) >= sizeof(uint64_t), "a number is a pointer");

/* NULL: it is no socket of the object, or no more, and that is the last error. */
static struct cn_object_socket *socket_of(cairn_object *self, const cairn_socket *socket,
                                          const char *function)
{
    uint64_t number = (uint64_t)(uintptr_t)socket;
    struct cn_ws_end *end =
        self->object && self->host ? self->host->find_socket(self->host->data, number) : NULL;
    struct cn_object_socket *own = end ? cn_object_socket_of(end) : NULL;
    if (own &&
        (own->holder == self->object || (own->set && own->set == cn_object_sockets(self->object))))
        return own;
    cn_guard_tell(function, NULL, "the socket is gone, or another object's, or none");
    cn_compiled_refuse(self, CAIRN_EMISUSE, "the socket is gone, or another object's");
    return NULL;
}

static cairn_socket *shown(struct cn_object_socket *socket)
{
    return (cairn_socket *)(uintptr_t)socket->end->handle;
}

/* --- events ---------------------------------------------------------------------------------- */

static int run_event(cairn_object *self, const struct cn_socket_event *event)
{
    const struct cairn_class *table = &self->class_->table;
    cairn_socket *socket = shown(event->socket);
    const struct cn_ws_item *item = event->item;
    char text[CN_WS_REASON_MAX + 1];
    switch (event->kind) {
    case CN_SOCKET_MESSAGE:
        return table->socket_message
                   ? table->socket_message(cn_guard_show(self), self->instance, socket,
                                           item->message->text, item->message->bytes,
                                           item->message->size)
                   : 0;
    case CN_SOCKET_ERROR:
        return table->socket_error
                   ? table->socket_error(cn_guard_show(self), self->instance, socket,
                                         item->close.error ? item->close.error : "")
                   : 0;
    case CN_SOCKET_CLOSE:
        snprintf(text, sizeof(text), "%.*s", (int)item->close.reason_size,
                 item->close.reason ? item->close.reason : "");
        return table->socket_close
                   ? table->socket_close(cn_guard_show(self), self->instance, socket,
                                         item->close.code, text, item->close.clean)
                   : 0;
    }
    return 0;
}

static void note_event(cairn_object *self, const struct cn_socket_event *event)
{
    if (event->kind == CN_SOCKET_CLOSE)
        cn_compiled_trace_socket(self, "close", &(int){event->item->close.code},
                                 event->item->close.clean);
    else
        cn_compiled_trace_socket(self, event->kind == CN_SOCKET_ERROR ? "error" : "message", NULL,
                                 false);
}

/* Whatever the function says, the socket stays open, and the event is over. */
void cn_compiled_deliver_socket(cairn_object *self, struct cn_call *call)
{
    const struct cn_socket_event *event = call->payload;
    struct cn_object *object = self->object;
    uint64_t trace = call->trace;
    const char *outcome = NULL;
    if (event->socket) { /* it may have gone meanwhile */
        note_event(self, event);
        cn_compiled_enter(self);
        const struct cn_module_class *before = cn_module_crash_note(self->class_);
        int rc = run_event(self, event);
        cn_module_crash_note(before);
        int left = cn_compiled_leave(self);
        if (rc < 0 || left < 0) {
            const char *text = cn_api_error_text(self);
            cn_api_log(self, CAIRN_FAILURE, "an event of a WebSocket failed: %s", text);
            cn_compiled_trace_failed(self, trace, self->error ? self->error->type : "Error", text);
            outcome = "exception";
        }
    }
    if (!cn_object_is_broken(object)) { /* else the core has taken the call */
        cn_compiled_trace_end(self, trace, outcome);
        cn_call_reply(call, NULL);
    }
}

/* --- accepting ------------------------------------------------------------------------------- */

static int check_tags(cairn_object *self, const char *const tags[], size_t count,
                      struct cn_text texts[CN_SOCKET_TAGS_MAX])
{
    if (count > CN_SOCKET_TAGS_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "a WebSocket has 10 tags at most");
    for (size_t i = 0; i < count; i++) {
        if (!tags[i])
            return cn_compiled_refuse(self, CAIRN_EMISUSE, "a tag is NULL");
        texts[i] = (struct cn_text){tags[i], strlen(tags[i])};
        if (texts[i].size > TAG_SIZE_MAX)
            return cn_compiled_refuse(self, CAIRN_ELIMIT, "a tag has 256 bytes at most");
        for (size_t k = 0; k < i; k++) {
            if (strcmp(tags[k], tags[i]) == 0)
                return cn_compiled_refuse(self, CAIRN_EMISUSE, "a tag is given twice");
        }
    }
    return 0;
}

cairn_socket *cn_api_socket_accept(cairn_event *event, const char *const tags[], size_t count)
{
    cairn_object *self = event->object;
    struct cn_object_lane *lane = self->object ? self->object->lane : NULL;
    struct cn_text texts[CN_SOCKET_TAGS_MAX];
    const char *upgrade = cn_api_request_header(event, "upgrade");
    if (event->kind != CN_COMPILED_FETCH || event->socket[0] || !upgrade ||
        strcasecmp(upgrade, "websocket") != 0) {
        cn_compiled_refuse(self, CAIRN_EMISUSE, "the event is no request for a WebSocket");
        return NULL;
    }
    if (!lane) {
        cn_compiled_refuse(self, CAIRN_EMISUSE,
                           "a worker in C accepts no WebSocket: object_forward() gives it to an "
                           "object");
        return NULL;
    }
    if (!event->call || !lane->offer_socket) {
        cn_compiled_refuse(self, CAIRN_ECLOSED, "the object was reset");
        return NULL;
    }
    if (check_tags(self, tags, count, texts) < 0)
        return NULL;
    struct cn_ws_end *own, *other;
    cn_ws_pair_new(&own, &other);
    if (!lane->offer_socket(lane, own, other, event->socket)) {
        cn_compiled_refuse(self, CAIRN_ELIMIT, "Too many WebSockets are open.");
        return NULL;
    }
    return shown(cn_object_socket_accept(self->object, own, true, true, texts, count));
}

/* --- speaking -------------------------------------------------------------------------------- */

static int check_alive(cairn_object *self)
{
    if (!self->object)
        return cn_compiled_refuse(self, CAIRN_EMISUSE, "a worker has no WebSockets");
    return cn_object_is_broken(self->object)
               ? cn_compiled_refuse(self, CAIRN_ECLOSED, "the object was reset")
           : self->running ? 0
                           : cn_compiled_refuse(self, CAIRN_EMISUSE,
                                                "WebSockets are used from within functions of the "
                                                "class");
}

static struct cn_ws_message *message_new(cairn_object *self, int is_text, const void *bytes,
                                         size_t size)
{
    if (is_text && !cn_utf8_valid(bytes, size)) {
        cn_compiled_refuse(self, CAIRN_EMISMATCH, "a text message is UTF-8");
        return NULL;
    }
    struct cn_ws_message *message = cn_ws_message_new(is_text != 0, bytes, size);
    if (!message)
        cn_compiled_refuse(self, CAIRN_ELIMIT, "The message is too large.");
    return message;
}

/* 1: it is on its way; 0: the socket is closed. */
static int send_message(cairn_object *self, struct cn_object_socket *socket,
                        struct cn_ws_message *message)
{
    if (cn_ws_end_close_asked(socket->end))
        return 0;
    if (cn_object_socket_send(self->object, socket->end, message) == CN_EOVERLOADED)
        return cn_compiled_refuse(self, CAIRN_ELIMIT,
                                  "More was sent in one go than can be kept until it leaves.");
    return 1;
}

int cn_api_socket_send(cairn_object *self, cairn_socket *socket, int is_text, const void *bytes,
                       size_t size)
{
    int rc = check_alive(self);
    if (rc < 0)
        return rc;
    struct cn_object_socket *own = socket_of(self, socket, "socket_send");
    if (!own)
        return CAIRN_EMISUSE;
    struct cn_ws_message *message = message_new(self, is_text, bytes, size);
    if (!message)
        return CAIRN_EMISMATCH;
    rc = send_message(self, own, message);
    cn_ws_message_unref(message);
    return rc;
}

struct broadcast {
    cairn_object *self;
    struct cn_ws_message *message;
    int64_t result;
};

static void send_to(struct cn_object_socket *socket, void *data)
{
    struct broadcast *broadcast = data;
    if (broadcast->result < 0)
        return;
    int rc = send_message(broadcast->self, socket, broadcast->message);
    broadcast->result = rc < 0 ? rc : broadcast->result + rc;
}

/* The sockets with a tag; NULL: all. */
static void each_socket(cairn_object *self, const char *tag,
                        void (*each)(struct cn_object_socket *socket, void *data), void *data)
{
    struct cn_text text = {tag, tag ? strlen(tag) : 0};
    if (self->object)
        cn_object_socket_each(self->object, tag ? &text : NULL, each, data);
}

int64_t cn_api_socket_broadcast(cairn_object *self, const char *tag, int is_text, const void *bytes,
                                size_t size)
{
    int rc = check_alive(self);
    if (rc < 0)
        return rc;
    struct broadcast broadcast = {self, message_new(self, is_text, bytes, size), 0};
    if (!broadcast.message)
        return CAIRN_EMISMATCH;
    each_socket(self, tag, send_to, &broadcast);
    cn_ws_message_unref(broadcast.message);
    return broadcast.result;
}

int cn_api_socket_end(cairn_object *self, cairn_socket *socket, int code, const char *reason)
{
    int rc = check_alive(self);
    if (rc < 0)
        return rc;
    struct cn_object_socket *own = socket_of(self, socket, "socket_end");
    if (!own)
        return CAIRN_EMISUSE;
    struct cn_ws_end *end = own->end;
    if (code != 1000 && (code < 3000 || code > 4999))
        return cn_compiled_refuse(self, CAIRN_EMISMATCH, "a close code is 1000, or 3000 to 4999");
    if (strlen(reason) > CN_WS_REASON_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "a close reason has 123 bytes at most");
    if (cn_ws_end_close_asked(end))
        return 0;
    struct cn_ws_close close = {
        .code = (uint16_t)code, .clean = true, .reason = reason, .reason_size = strlen(reason)};
    cn_ws_end_closing(end);
    cn_object_socket_close(self->object, end, &close);
    return 1;
}

/* --- looking --------------------------------------------------------------------------------- */

/* By number: what `each` does may end any of them. */
static void collect(struct cn_object_socket *socket, void *data)
{
    cairn_socket *number = shown(socket);
    cn_buf_append(data, &number, sizeof(cairn_socket *));
}

int cn_api_socket_list(cairn_object *self, const char *tag,
                       int (*each)(void *data, cairn_socket *socket), void *data)
{
    struct cn_buf found = {0};
    int rc = check_alive(self);
    if (rc == 0)
        each_socket(self, tag, collect, &found);
    for (size_t at = 0; at < found.size && rc == 0; at += sizeof(cairn_socket *)) {
        cairn_socket *socket;
        memcpy(&socket, found.data + at, sizeof(cairn_socket *));
        rc = each(data, socket);
    }
    cn_buf_fini(&found);
    return rc;
}

static void count_one(struct cn_object_socket *socket, void *data)
{
    ++*(size_t *)data;
}

size_t cn_api_socket_count(cairn_object *self, const char *tag)
{
    size_t count = 0;
    if (check_alive(self) == 0)
        each_socket(self, tag, count_one, &count);
    return count;
}

const char *cn_api_socket_tag(cairn_object *self, cairn_socket *socket, size_t index, size_t *size)
{
    const struct cn_object_socket *own = socket_of(self, socket, "socket_tag");
    struct cn_text text = {NULL, 0};
    if (own && index < own->tag_count)
        text = cn_object_socket_tag_name(own->tags[index].tag);
    if (size)
        *size = text.size;
    return text.data;
}

int cn_api_socket_attach(cairn_object *self, cairn_socket *socket, cairn_builder *value)
{
    struct cn_err err;
    int rc = check_alive(self);
    if (rc < 0)
        return rc;
    struct cn_object_socket *own = socket_of(self, socket, "socket_attach");
    if (!own)
        return CAIRN_EMISUSE;
    struct cn_ws_end *end = own->end;
    if (cn_builder_finish(value, &err) < 0)
        return cn_compiled_fault(self, &err);
    if (value->bytes.size > ATTACHMENT_SIZE_MAX) {
        cn_builder_clear(value);
        return cn_compiled_refuse(self, CAIRN_ELIMIT, "an attachment has 16384 bytes at most");
    }
    cn_free(end->attachment);
    end->attachment = cn_memdup(value->bytes.data, value->bytes.size);
    end->attachment_size = (uint32_t)value->bytes.size;
    cn_builder_clear(value);
    return 0;
}

const cairn_value *cn_api_socket_attachment(cairn_object *self, cairn_socket *socket)
{
    const struct cn_object_socket *own = socket_of(self, socket, "socket_attachment");
    const struct cn_ws_end *end = own ? own->end : NULL;
    return end && end->attachment
               ? cn_compiled_lend_value(self, end->attachment, end->attachment_size)
               : NULL;
}

int cn_api_socket_auto_response(cairn_object *self, const char *request, const char *response)
{
    int rc = check_alive(self);
    if (rc < 0)
        return rc;
    if (!request) {
        cn_object_socket_set_auto_response(self->object, NULL, NULL);
        return 0;
    }
    struct cn_text asked = {request, strlen(request)}, answer = {response, strlen(response)};
    if (asked.size > RESPONSE_SIZE_MAX || answer.size > RESPONSE_SIZE_MAX)
        return cn_compiled_refuse(self, CAIRN_ELIMIT,
                                  "an automatic response has 2048 bytes at most");
    cn_object_socket_set_auto_response(self->object, &asked, &answer);
    return 0;
}
