/* SPDX-License-Identifier: Apache-2.0 */
/* module/http.c - requests and responses of fetch(), as the values that they travel as
 * (prelude/workers/object/fetch-values.js). Bodies are whole, or streams (lent.h). */
#include "module/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "module/internal.h"
#include "module/lent.h"
#include "module/request.h"

static const cairn_value *part(const cairn_event *event, const char *name)
{
    return event->kind == CN_COMPILED_FETCH ? cn_value_get(event->document.root, name) : NULL;
}

int cn_compiled_check_request(cairn_event *event, struct cn_err *err)
{
    const cairn_value *headers = part(event, "headers");
    enum cairn_kind body = cn_value_kind(part(event, "body"));
    bool good = cn_value_text(part(event, "url"), NULL) &&
                cn_value_text(part(event, "method"), NULL) && cn_value_kind(headers) == CAIRN_ARRAY;
    for (size_t i = 0; good && i < cn_value_count(headers); i++) {
        const cairn_value *pair = cn_value_at(headers, i);
        good =
            cn_value_text(cn_value_at(pair, 0), NULL) && cn_value_text(cn_value_at(pair, 1), NULL);
    }
    if (!good)
        return cn_err_set(err, CN_EINVALID, "the request cannot be read in C");
    size_t size;
    (void)cn_value_bytes(part(event, "body"), &size);
    if (size > CN_MODULE_BODY_MAX && !event->object->class_->table.fetch_stream)
        return cn_err_set(err, CN_ELIMIT,
                          "The body of a request to an object of a module is limited to 16 MiB.");
    if (body > CAIRN_NULL && body != CAIRN_BYTES && body != CAIRN_TEXT && body != CAIRN_STREAM)
        return cn_err_set(err, CN_EINVALID, "the body of the request cannot be read in C");
    return 0;
}

const char *cn_api_request_method(const cairn_event *event)
{
    if (event->asked && event->asked->texts)
        return cn_outside_method(event->asked);
    return cn_value_text(part(event, "method"), NULL);
}

const char *cn_api_request_url(const cairn_event *event)
{
    if (event->asked && event->asked->texts)
        return cn_outside_url(event->asked);
    return cn_value_text(part(event, "url"), NULL);
}

size_t cn_api_request_header_count(const cairn_event *event)
{
    if (event->asked && event->asked->texts)
        return cn_outside_header_count(event->asked);
    return cn_value_count(part(event, "headers"));
}

const char *cn_api_request_header_at(const cairn_event *event, size_t index, const char **value)
{
    if (event->asked && event->asked->texts)
        return cn_outside_header_at(event->asked, index, value);
    const cairn_value *pair = cn_value_at(part(event, "headers"), index);
    if (value)
        *value = cn_value_text(cn_value_at(pair, 1), NULL);
    return cn_value_text(cn_value_at(pair, 0), NULL);
}

const char *cn_api_request_header(const cairn_event *event, const char *name)
{
    if (event->asked && event->asked->texts)
        return cn_outside_header(event->asked, name);
    const cairn_value *headers = part(event, "headers");
    for (size_t i = 0; i < cn_value_count(headers); i++) {
        const cairn_value *pair = cn_value_at(headers, i);
        if (strcasecmp(cn_value_text(cn_value_at(pair, 0), NULL), name) == 0)
            return cn_value_text(cn_value_at(pair, 1), NULL);
    }
    return NULL;
}

const void *cn_api_request_body(const cairn_event *event, size_t *size)
{
    if (event->asked && event->asked->texts) {
        if (size)
            *size = event->asked->body_size;
        return event->bytes;
    }
    const cairn_value *body = part(event, "body");
    if (event->collected) {
        if (size)
            *size = event->request.size;
        return event->request.size ? (const void *)event->request.data : "";
    }
    return cn_value_kind(body) == CAIRN_TEXT ? cn_value_text(body, size)
                                             : cn_value_bytes(body, size);
}

/* --- responses ------------------------------------------------------------------------------- */

static int misuse(cairn_event *event)
{
    return cn_compiled_refuse(event->object, CAIRN_EMISUSE, "the event is no request");
}

int cn_api_response_status(cairn_event *event, int status)
{
    if (event->kind != CN_COMPILED_FETCH)
        return misuse(event);
    if (status < 200 || status > 599)
        return cn_compiled_refuse(event->object, CAIRN_EMISMATCH,
                                  "the status of a response is from 200 to 599");
    event->status = status;
    return 0;
}

static bool is_token(const char *text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    size_t size = 0;
    for (; text[size]; size++) {
        char c = text[size];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(others, c)))
            return false;
    }
    return size > 0;
}

int cn_api_response_header(cairn_event *event, const char *name, const char *value)
{
    if (event->kind != CN_COMPILED_FETCH)
        return misuse(event);
    if (!is_token(name) || strpbrk(value, "\r\n"))
        return cn_compiled_refuse(event->object, CAIRN_EMISMATCH,
                                  "HTTP allows no such header name or value");
    size_t size = strlen(name) + strlen(value) + 2;
    if (size > CN_MODULE_BODY_MAX || event->headers.size > CN_MODULE_BODY_MAX - size)
        return cn_compiled_refuse(event->object, CAIRN_ELIMIT, "the headers are too large");
    cn_buf_append(&event->headers, name, strlen(name) + 1);
    cn_buf_append(&event->headers, value, strlen(value) + 1);
    return 0;
}

int cn_api_response_write(cairn_event *event, const void *bytes, size_t size)
{
    if (event->kind != CN_COMPILED_FETCH)
        return misuse(event);
    if (size > CN_MODULE_BODY_MAX || event->body.size > CN_MODULE_BODY_MAX - size)
        return cn_compiled_refuse(event->object, CAIRN_ELIMIT,
                                  "the body of a response has 16 MiB at most");
    if (event->stream)
        return cn_compiled_refuse(event->object, CAIRN_EMISUSE, "the response has a stream");
    cn_buf_append(&event->body, bytes, size);
    event->has_body = true;
    return 0;
}

static void build_headers(cairn_event *event)
{
    cairn_builder *result = &event->result;
    cn_build_array(result);
    for (size_t at = 0; at < event->headers.size;) {
        cn_build_array(result);
        for (int i = 0; i < 2; i++) {
            const char *text = (const char *)event->headers.data + at;
            cn_build_text(result, text, strlen(text));
            at += strlen(text) + 1;
        }
        cn_build_end(result);
    }
    cn_build_end(result);
}

void cn_compiled_build_response(cairn_event *event)
{
    cairn_builder *result = &event->result;
    cn_builder_clear(result);
    cn_build_object(result);
    cn_build_name(result, "status");
    cn_build_int(result, event->socket[0] ? 101 : event->status);
    cn_build_name(result, "headers");
    build_headers(event);
    cn_build_name(result, "body");
    if (event->stream && !event->socket[0])
        cn_compiled_build_stream(result, event->stream);
    else if (event->has_body && !event->socket[0])
        cn_build_bytes(result, event->body.data, event->body.size);
    else
        cn_build_null(result);
    if (event->socket[0]) {
        cn_build_name(result, "webSocket");
        cn_build_text(result, event->socket, strlen(event->socket));
    }
    cn_build_end(result);
}
