/* SPDX-License-Identifier: Apache-2.0 */
/* A worker in C, and an object, whose requests and responses flow: tests ask by the path. */
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct river {
    int64_t written, read, left, open; /* bytes, bytes, streams whose reader has gone, streams */
};

/* What is behind "/room/NAME" is for the object. */
static const char *path_of(cairn_object *object, const cairn_event *event)
{
    const char *path = strchr(strstr(cairn->request_url(event), "://") + 3, '/');
    const char *rest =
        *cairn->object_id(object) && strncmp(path, "/room/", 6) == 0 ? strchr(path + 6, '/') : NULL;
    return rest ? rest : path;
}

static int text(cairn_event *event, const char *bytes)
{
    cairn->response_header(event, "content-type", "text/plain;charset=UTF-8");
    return cairn->response_write(event, bytes, strlen(bytes));
}

/* ---- a body that is counted, piece by piece ---- */

struct counting {
    cairn_event *event;
    cairn_stream *stream;
    int64_t bytes, pieces, most;
};

static void on_counted(cairn_object *object, void *instance, const struct cairn_reply *reply,
                       void *data)
{
    struct counting *counting = data;
    struct river *river = instance;
    char line[200];
    size_t size = 0;
    if (reply->value && !reply->error) {
        cairn->value_bytes(reply->value, &size);
        counting->bytes += (int64_t)size;
        counting->pieces++;
        river->read += (int64_t)size;
        if ((int64_t)size > counting->most)
            counting->most = (int64_t)size;
        if (cairn->stream_read(counting->stream, on_counted, counting) >= 0)
            return;
    }
    river->open--;
    cairn->stream_end(counting->stream);
    snprintf(line, sizeof(line), "%lld %d", (long long)counting->bytes, counting->most <= 1 << 20);
    if (reply->error) {
        cairn->log(object, CAIRN_INFO, "reading failed: %s", reply->error);
        cairn->error(object, "Error", "reading failed: %s", reply->error);
        cairn->event_fail(counting->event);
    } else {
        text(counting->event, line);
        cairn->event_answer(counting->event);
    }
    free(counting);
}

static int count(cairn_object *object, struct river *river, cairn_event *event)
{
    struct counting *counting = calloc(1, sizeof(*counting));
    counting->event = event;
    counting->stream = cairn->request_stream(event);
    if (!counting->stream || cairn->request_stream(event))
        return CAIRN_ERROR;
    river->open++;
    int rc = cairn->stream_read(counting->stream, on_counted, counting);
    if (rc < 0 || cairn->stream_read(counting->stream, on_counted, counting) != CAIRN_EMISUSE)
        return rc < 0 ? rc : cairn->error(object, NULL, "two reads at a time");
    return CAIRN_LATER;
}

/* ---- a body that is written ---- */

struct writing {
    cairn_stream *stream;
    int64_t left; /* pieces; negative: no end */
    int fails;
};

static char piece[50000];

static void on_wanted(cairn_object *object, void *instance, void *data)
{
    struct writing *writing = data;
    struct river *river = instance;
    int rc = 1;
    (void)object;
    while (rc == 1 && writing->left != 0) {
        rc = cairn->stream_write(writing->stream, piece, sizeof(piece));
        if (rc >= 0) {
            river->written += sizeof(piece);
            writing->left--;
        }
    }
    if (rc >= 0 && writing->left != 0)
        return;
    if (rc == CAIRN_ECLOSED)
        river->left++;
    river->open--;
    if (writing->fails)
        cairn->stream_fail(writing->stream, "the writer fails");
    else
        cairn->stream_end(writing->stream);
    free(writing);
}

static int write_body(cairn_object *object, struct river *river, cairn_event *event, int64_t pieces,
                      int fails)
{
    struct writing *writing = calloc(1, sizeof(*writing));
    writing->left = pieces;
    writing->fails = fails;
    writing->stream = cairn->stream_new(object, on_wanted, writing);
    river->open++;
    cairn->response_header(event, "content-type", "application/octet-stream");
    return cairn->response_stream(event, writing->stream);
}

/* One word at a time, by the clock. */
static void on_tick(cairn_object *object, void *instance, void *data)
{
    struct writing *writing = data;
    struct river *river = instance;
    char line[50];
    int size = snprintf(line, sizeof(line), "data: %lld\n\n", (long long)writing->left);
    if (writing->left-- > 0 && cairn->stream_write(writing->stream, line, (size_t)size) >= 0) {
        cairn->timer_start(object, 5, on_tick, writing);
        return;
    }
    cairn->stream_end(writing->stream);
    river->open--;
    free(writing);
}

static int tick(cairn_object *object, struct river *river, cairn_event *event)
{
    struct writing *writing = calloc(1, sizeof(*writing));
    writing->left = 3;
    writing->stream = cairn->stream_new(object, NULL, NULL);
    river->open++;
    cairn->timer_start(object, 5, on_tick, writing);
    cairn->response_header(event, "content-type", "text/event-stream");
    return cairn->response_stream(event, writing->stream);
}

/* The request's body is the response's. */
static int echo(cairn_object *object, cairn_event *event)
{
    cairn_stream *from = cairn->request_stream(event);
    cairn_stream *to = cairn->stream_new(object, NULL, NULL);
    int rc = from && to ? cairn->stream_pipe(from, to) : CAIRN_ERROR;
    return rc < 0 ? rc : cairn->response_stream(event, to);
}

/* ---- requests of its own ---- */

static void on_response(cairn_object *object, void *instance, const struct cairn_reply *reply,
                        void *data)
{
    cairn_event *event = data;
    int redirected = cairn->value_bool(cairn->value_get(reply->value, "redirected"));
    const char *url = cairn->value_text(cairn->value_get(reply->value, "url"), NULL);
    (void)instance;
    if (reply->error) {
        cairn->error(object, "Error", "asked: %s", reply->error);
        cairn->event_fail(event);
        return;
    }
    cairn->response_header(event, "x-redirected", redirected ? "yes" : "no");
    cairn->response_header(event, "x-at", url ? url : "(none)");
    if (cairn->response_from(event, reply->value, reply->stream) < 0)
        cairn->event_fail(event);
    else
        cairn->event_answer(event);
}

/* To x-url, a path says how: /ask/world, /ask/object/NAME, /ask/BINDING; with the request's body,
 * as a stream if x-stream is there. */
static int ask(cairn_object *object, cairn_event *event, const char *path)
{
    const char *mode = cairn->request_header(event, "x-redirect");
    const char *credentials[] = {"authorization", "secret",     "cookie", "a=b", "x-mine", "1",
                                 "content-type",  "text/plain", NULL};
    struct cairn_request request = {.size = sizeof(request),
                                    .url = cairn->request_header(event, "x-url"),
                                    .method = cairn->request_header(event, "x-method"),
                                    .headers = credentials,
                                    .streamed = cairn->request_header(event, "x-whole") == NULL};
    if (mode)
        request.redirect = strcmp(mode, "manual") == 0  ? CAIRN_REDIRECT_MANUAL
                           : strcmp(mode, "error") == 0 ? CAIRN_REDIRECT_ERROR
                                                        : CAIRN_REDIRECT_FOLLOW;
    if (cairn->request_header(event, "x-text")) {
        request.body = cairn->request_header(event, "x-text");
        request.body_size = strlen(request.body);
    } else if (cairn->request_header(event, "x-stream")) {
        cairn_stream *from = cairn->request_stream(event);
        request.stream = cairn->stream_new(object, NULL, NULL);
        if (!from || !request.stream || cairn->stream_pipe(from, request.stream) < 0)
            return CAIRN_ERROR;
    }
    int rc = strcmp(path, "/ask/world") == 0 ? cairn->fetch(object, &request, on_response, event)
             : strncmp(path, "/ask/object/", 12) == 0
                 ? cairn->object_fetch(object, "ROOM", path + 12, &request, on_response, event)
                 : cairn->service_fetch(object, path + 5, &request, on_response, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

/* ---- objects of R2, of any size ---- */

static void on_bucket(cairn_object *object, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    cairn_event *event = data;
    char size[32];
    int64_t number = -1;
    int rc = 0;
    (void)instance;
    if (reply->error) {
        cairn->log(object, CAIRN_WARN, "bucket: %s", reply->error);
        rc = cairn->error(object, "Error", "%s", reply->error);
    } else if (cairn->value_int(cairn->value_get(reply->value, "size"), &number) < 0)
        rc = cairn->response_status(event, 404);
    snprintf(size, sizeof(size), "%lld", (long long)number);
    if (rc >= 0)
        rc = cairn->response_header(event, "x-size", size);
    if (rc >= 0 && reply->stream) {
        cairn_stream *body = cairn->stream_new(object, NULL, NULL);
        rc = body ? cairn->stream_pipe(reply->stream, body) : CAIRN_ERROR;
        if (rc >= 0)
            rc = cairn->response_stream(event, body);
    }
    if (rc < 0)
        cairn->event_fail(event);
    else
        cairn->event_answer(event);
}

/* GET reads, PUT writes the object of a key as it comes, without ever having all of it. */
static int bucket(cairn_object *object, cairn_event *event, const char *key)
{
    int reads = strcmp(cairn->request_method(event), "PUT") != 0;
    const char *offset = cairn->request_header(event, "x-offset");
    cairn_builder *arguments = cairn->builder(object);
    cairn->build_array(arguments);
    cairn->build_text(arguments, key, strlen(key));
    if (reads) {
        cairn->build_object(arguments);
        cairn->build_name(arguments, "streamed");
        cairn->build_bool(arguments, 1);
        if (offset) {
            cairn->build_name(arguments, "range");
            cairn->build_object(arguments);
            cairn->build_name(arguments, "offset");
            cairn->build_int(arguments, atol(offset));
            cairn->build_name(arguments, "length");
            cairn->build_int(arguments, 5);
            cairn->build_end(arguments);
        }
        cairn->build_end(arguments);
    } else {
        cairn_stream *from = cairn->request_stream(event);
        cairn_stream *to = cairn->stream_new(object, NULL, NULL);
        int rc = from && to ? cairn->stream_pipe(from, to) : CAIRN_ERROR;
        if (rc < 0)
            return rc;
        cairn->build_stream(arguments, to);
    }
    cairn->build_end(arguments);
    int rc =
        cairn->service_call(object, "BUCKET", reads ? "get" : "put", arguments, on_bucket, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

static int counts(struct river *river, cairn_event *event)
{
    char line[200];
    snprintf(line, sizeof(line), "{\"written\":%lld,\"read\":%lld,\"left\":%lld,\"open\":%lld}",
             (long long)river->written, (long long)river->read, (long long)river->left,
             (long long)river->open);
    cairn->response_header(event, "content-type", "application/json");
    return cairn->response_write(event, line, strlen(line));
}

static int fetch_stream(cairn_object *object, void *instance, cairn_event *event)
{
    struct river *river = instance;
    const char *path = path_of(object, event);
    if (strcmp(path, "/count") == 0)
        return count(object, river, event);
    if (strncmp(path, "/write/", 7) == 0)
        return write_body(object, river, event, atol(path + 7), 0);
    if (strcmp(path, "/endless") == 0)
        return write_body(object, river, event, -1, 0);
    if (strcmp(path, "/breaks") == 0)
        return write_body(object, river, event, 3, 1);
    if (strncmp(path, "/length/", 8) == 0) {
        cairn->response_header(event, "content-length", path + 8);
        return write_body(object, river, event, 2, 0);
    }
    if (strcmp(path, "/tick") == 0)
        return tick(object, river, event);
    if (strcmp(path, "/echo") == 0)
        return echo(object, event);
    if (strcmp(path, "/ignore") == 0)
        return text(event, "ignored");
    if (strcmp(path, "/counts") == 0)
        return counts(river, event);
    if (strcmp(path, "/throw") == 0) {
        write_body(object, river, event, 1, 0);
        return cairn->error(object, "RangeError", "thrown with a stream");
    }
    if (strcmp(path, "/crash") == 0)
        abort();
    if (strncmp(path, "/ask/", 5) == 0)
        return ask(object, event, path);
    if (strncmp(path, "/bucket/", 8) == 0)
        return bucket(object, event, path + 8);
    if (strncmp(path, "/room/", 6) == 0) {
        char name[100];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(path + 6, "/?"), path + 6);
        return cairn->object_forward(event, "ROOM", name);
    }
    if (strncmp(path, "/service/", 9) == 0)
        return cairn->service_forward(event, path + 9);
    cairn->response_status(event, 404);
    return text(event, "there is nothing here\n");
}

/* ---- methods: streams as arguments and results ---- */

static void on_summed(cairn_object *object, void *instance, const struct cairn_reply *reply,
                      void *data)
{
    struct counting *counting = data;
    size_t size = 0;
    (void)instance;
    if (reply->value && !reply->error) {
        cairn->value_bytes(reply->value, &size);
        counting->bytes += (int64_t)size;
        if (cairn->stream_read(counting->stream, on_summed, counting) >= 0)
            return;
    }
    cairn->stream_end(counting->stream);
    if (reply->error) {
        cairn->error(object, "Error", "reading failed: %s", reply->error);
        cairn->event_fail(counting->event);
    } else {
        cairn->build_int(cairn->event_result(counting->event), counting->bytes);
        cairn->event_answer(counting->event);
    }
    free(counting);
}

static void on_function(cairn_object *object, void *instance, const struct cairn_reply *reply,
                        void *data)
{
    (void)instance;
    if (reply->error) {
        cairn->error(object, "Error", "%s", reply->error);
        cairn->event_fail(data);
        return;
    }
    cairn->build_value(cairn->event_result(data), reply->value);
    cairn->event_answer(data);
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    const cairn_value *first = cairn->value_at(cairn->event_arguments(event), 0);
    if (strcmp(method, "sum") == 0) {
        struct counting *counting = calloc(1, sizeof(*counting));
        counting->event = event;
        counting->stream = cairn->stream_open(object, first);
        if (!counting->stream) {
            free(counting);
            return CAIRN_ERROR;
        }
        int rc = cairn->stream_read(counting->stream, on_summed, counting);
        return rc < 0 ? rc : CAIRN_LATER;
    }
    if (strcmp(method, "make") == 0) {
        struct writing *writing = calloc(1, sizeof(*writing));
        struct river *river = instance;
        cairn->value_int(first, &writing->left);
        writing->stream = cairn->stream_new(object, on_wanted, writing);
        river->open++;
        cairn->build_stream(cairn->event_result(event), writing->stream);
        return 0;
    }
    if (strcmp(method, "twice") == 0) { /* calls the function that it is given */
        cairn_remote *function = cairn->remote_keep(object, first);
        cairn_builder *arguments = cairn->builder(object);
        if (!function)
            return CAIRN_ERROR;
        cairn->build_array(arguments);
        cairn->build_int(arguments, 21);
        cairn->build_end(arguments);
        int rc = cairn->remote_call(function, NULL, arguments, on_function, event);
        cairn->remote_release(function);
        return rc < 0 ? rc : CAIRN_LATER;
    }
    return cairn->error(object, "TypeError", "there is no method \"%s\"", method);
}

static int create(cairn_object *object, void **instance)
{
    (void)object;
    memset(piece, 'w', sizeof(piece));
    *instance = calloc(1, sizeof(struct river));
    return 0;
}

static void destroy(cairn_object *object, void *instance)
{
    (void)object;
    free(instance);
}

static const struct cairn_class classes[] = {{.name = "River",
                                              .create = create,
                                              .destroy = destroy,
                                              .fetch_stream = fetch_stream,
                                              .call = call},
                                             {.name = "Pool",
                                              .create = create,
                                              .destroy = destroy,
                                              .fetch_stream = fetch_stream,
                                              .call = call}};
CAIRN_MODULE(classes)
