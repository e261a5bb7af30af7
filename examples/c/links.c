/* SPDX-License-Identifier: Apache-2.0 */
/* Short links: a worker in C, with KV behind it.
 *
 *     PUT /NAME      the body is the address; 201
 *     GET /NAME      302 to the address
 *     DELETE /NAME   204
 *
 * wrangler.toml:
 *
 *     name = "links"
 *     compatibility_date = "2026-01-01"
 *     [[kv_namespaces]]
 *     binding = "LINKS"
 *     id = "links"
 *     [cairn]
 *     worker = "links:Links"
 *     [cairn.modules]
 *     links = "links.so"
 *
 * Nothing here waits. A request asks KV, returns CAIRN_LATER, and is answered in the function that
 * KV's answer calls; meanwhile the same instance takes other requests. What the two functions share
 * is the event itself. */
#include <cairn.h>
#include <string.h>

static int answer(cairn_event *event, int status, const char *text)
{
    cairn->response_status(event, status);
    cairn->response_header(event, "content-type", "text/plain;charset=UTF-8");
    return cairn->response_write(event, text, strlen(text));
}

/* The part of the URL behind the host, without its first slash. */
static const char *name_of(cairn_event *event)
{
    const char *host = strstr(cairn->request_url(event), "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;
    return path ? path + 1 : "";
}

static void on_found(cairn_object *worker, void *instance, const struct cairn_reply *reply,
                     void *data)
{
    cairn_event *event = data;
    const char *address = cairn->value_text(reply->value, NULL);
    (void)instance;
    if (reply->error) {
        cairn->error(worker, NULL, "%s", reply->error);
        cairn->event_fail(event);
        return;
    }
    if (address)
        cairn->response_header(event, "location", address);
    answer(event, address ? 302 : 404, address ? "" : "there is no such link\n");
    cairn->event_answer(event);
}

static void on_changed(cairn_object *worker, void *instance, const struct cairn_reply *reply,
                       void *data)
{
    cairn_event *event = data;
    (void)instance;
    if (reply->error) {
        cairn->error(worker, NULL, "%s", reply->error);
        cairn->event_fail(event);
        return;
    }
    if (strcmp(cairn->request_method(event), "PUT") == 0)
        answer(event, 201, "stored\n");
    else
        cairn->response_status(event, 204);
    cairn->event_answer(event);
}

/* An address that a browser may be sent to: of the web, and one line. */
static int is_address(const char *text, size_t size)
{
    if (size < 9 || size > 2000 || memchr(text, '\r', size) || memchr(text, '\n', size))
        return 0;
    return memcmp(text, "http://", 7) == 0 || memcmp(text, "https://", 8) == 0;
}

static int fetch(cairn_object *worker, void *instance, cairn_event *event)
{
    const char *name = name_of(event), *method = cairn->request_method(event);
    cairn_builder *arguments = cairn->builder(worker);
    size_t size = 0;
    const void *body = cairn->request_body(event, &size);
    int rc;
    (void)instance;
    if (!*name)
        return answer(event, 404, "a link has a name\n");
    cairn->build_array(arguments);
    cairn->build_text(arguments, name, strlen(name));
    if (strcmp(method, "PUT") == 0) {
        if (!body || !is_address(body, size))
            return answer(event, 400, "the body is an address\n");
        cairn->build_text(arguments, body, size);
        cairn->build_end(arguments);
        rc = cairn->service_call(worker, "LINKS", "put", arguments, on_changed, event);
    } else if (strcmp(method, "DELETE") == 0) {
        cairn->build_end(arguments);
        rc = cairn->service_call(worker, "LINKS", "delete", arguments, on_changed, event);
    } else {
        cairn->build_end(arguments);
        rc = cairn->service_call(worker, "LINKS", "get", arguments, on_found, event);
    }
    return rc < 0 ? rc : CAIRN_LATER;
}

static const struct cairn_class classes[] = {{.name = "Links", .fetch = fetch}};
CAIRN_MODULE(classes)
