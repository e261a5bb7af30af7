/* SPDX-License-Identifier: Apache-2.0 */
/* net/client.c - libcurl's multi interface driven by a libuv loop.
 *
 * curl tells us which sockets to watch (on_curl_socket) and when to call it
 * (on_curl_timer); we tell it what happened (on_poll, on_timeout) and collect what
 * is finished (collect_done).
 *
 * curl calls our callbacks, and through them the owner's, from inside its own
 * functions, where it allows neither adding nor removing a transfer. So everything
 * an owner asks for is only noted (request_later) and done in on_later, which the
 * loop runs before it next waits:
 *
 *     queued --START--> running --curl is done, or END--> over --> freed
 *
 * R1  Transfers are added, removed and resumed in on_later and collect_done only,
 *     never inside a curl callback.
 * R2  A failure of our own (abort, time-out, limit, bad coding) is written to
 *     request->error first; whatever curl says afterwards does not replace it.
 * R3  A request is finished once, by request_finish(); its memory goes when its
 *     timer has closed.
 * R4  Coded bytes are copied before they are decoded. When the owner pauses half
 *     way, the rest waits coded, and curl is stopped until it is used up. */
#include "net/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/holding.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/client_head.h"
#include "net/client_params.h"
#include "net/decode.h"
#include "net/trust.h"

#define UPLOAD_BUFFER_MAX (1u << 20)
#define UPLOAD_BUFFER_KEEP (256u << 10) /* a larger one is given back when empty */
#define DISCARD_MAX (64u << 10)

enum later {
    LATER_START = 1,
    LATER_RESUME = 2, /* download or upload: the flags say which */
    LATER_END = 4,    /* request->error says why */
};

enum state { STATE_QUEUED, STATE_RUNNING, STATE_OVER };

struct cn_client {
    uv_loop_t *loop;
    struct cn_client_options options;
    CURLM *multi; /* NULL until the first request */
    bool torn_down;
    uv_timer_t timer;        /* when curl wants to be called */
    uv_idle_t idle;          /* active while `later` is not empty, or to close */
    struct cn_list requests; /* of struct cn_client_request, not over */
    struct cn_list later;    /* those of them with something noted */
    unsigned request_count;  /* in `requests` */
    unsigned handle_count;   /* libuv handles not yet closed */
    bool closing;
    void (*close_cb)(void *data);
    void *close_data;
    struct cn_client_stats stats;
};

/* A socket of curl's, watched. */
struct watch {
    uv_poll_t poll;
    struct cn_client *client;
};

struct cn_client_request {
    struct cn_client *client;
    const struct cn_client_callbacks *callbacks;
    void *data;
    struct cn_list link;       /* in client->requests */
    struct cn_list later_link; /* in client->later */
    unsigned later;            /* of enum later */
    enum state state;

    CURL *easy;
    CURLU *url;
    struct curl_slist *header_list;
    char *origin; /* "https://host:port" for messages */
    char curl_text[CURL_ERROR_SIZE];
    struct cn_err error; /* code 0 while nothing failed on our side (R2) */
    bool address_denied;

    uv_timer_t timer;
    unsigned head_timeout_ms, idle_timeout_ms;
    uint64_t total_deadline_ms; /* loop time; 0: none */
    uint64_t progress_ms;       /* loop time of the last byte either way */

    struct cn_buf upload; /* bytes to send; those before upload_taken are gone */
    size_t upload_taken;
    uint64_t upload_length; /* announced, or CN_CLIENT_LENGTH_UNKNOWN */
    uint64_t upload_given;  /* by cn_client_write() */
    bool upload_stream, upload_ended;
    bool upload_wanted; /* on_want was called and nothing came since */
    bool upload_paused; /* curl waits for us */

    struct cn_client_head_reader head;
    bool head_done;

    bool paused;          /* by the owner */
    bool download_paused; /* curl waits for us */
    bool discard;
    size_t discard_size;
    bool decode;
    bool body_begun;
    char *coding;               /* the Content-Encoding, or NULL */
    struct cn_holding *holding; /* borrowed; NULL: none */
    size_t held;                /* of `upload` */
    struct cn_decode *decoder;
    struct cn_buf coded; /* what `decoder` is working on (R4) */
    bool decode_pending; /* it has more output for that */
    bool transfer_done;  /* curl is finished, decode_pending holds on_done back */
};

/* ---- noting things to do ---- */

static void on_later(uv_idle_t *idle);

static void wake(struct cn_client *client)
{
    uv_idle_start(&client->idle, on_later);
}

static void request_later(struct cn_client_request *request, enum later what)
{
    if (request->state == STATE_OVER)
        return;
    request->later |= what;
    if (cn_list_empty(&request->later_link)) {
        cn_list_push_back(&request->client->later, &request->later_link);
        wake(request->client);
    }
}

/* The request ends with this error, unless another came first. */
__attribute__((format(printf, 3, 4))) static void request_fail(struct cn_client_request *request,
                                                               int code, const char *format, ...)
{
    if (request->error.code != 0 || request->state == STATE_OVER)
        return;
    char text[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    cn_err_set(&request->error, code, "%s: %.400s", request->origin, text);
    request_later(request, LATER_END);
}

static void request_progress(struct cn_client_request *request)
{
    request->progress_ms = uv_now(request->client->loop);
}

/* ---- the end of a request ---- */

/* curl's verdict as ours, with a sentence. */
static void translate(struct cn_client_request *request, CURLcode code)
{
    struct cn_err *err = &request->error;
    const char *text = request->curl_text[0] ? request->curl_text : curl_easy_strerror(code);
    const char *origin = request->origin;
    long os_errno = 0;
    curl_easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &os_errno);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        cn_err_set(err, UV_EAI_NONAME, "%s: the host name cannot be resolved", origin);
        break;
    case CURLE_COULDNT_CONNECT:
        if (request->address_denied)
            cn_err_set(err, CN_EDENIED, "%s: connections to its address are not allowed", origin);
        else if (os_errno != 0)
            cn_err_errno(err, (int)os_errno, "%s: no connection", origin);
        else
            cn_err_set(err, UV_ECONNREFUSED, "%s: no connection: %s", origin, text);
        break;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_USE_SSL_FAILED:
        cn_err_set(err, CN_ETLS, "%s: TLS failed: %s", origin, text);
        break;
    case CURLE_OPERATION_TIMEDOUT:
        cn_err_set(err, CN_ETIMEOUT, "%s: timed out: %s", origin, text);
        break;
    case CURLE_GOT_NOTHING:
        cn_err_set(err, CN_EPROTOCOL, "%s: the connection was closed without an answer", origin);
        break;
    case CURLE_PARTIAL_FILE:
        cn_err_set(err, CN_EPROTOCOL, "%s: the answer was cut short: %s", origin, text);
        break;
    case CURLE_SEND_FAIL_REWIND:
        cn_err_set(err, CN_EPROTOCOL,
                   "%s: the connection was lost while a streamed body was sent, which cannot be "
                   "sent again",
                   origin);
        break;
    case CURLE_URL_MALFORMAT:
        cn_err_set(err, CN_EINVALID, "%s: not a usable URL: %s", origin, text);
        break;
    case CURLE_OUT_OF_MEMORY:
        cn_err_set(err, CN_ENOMEM, "%s: out of memory", origin);
        break;
    default:
        cn_err_set(err, CN_EPROTOCOL, "%s: %s", origin, text);
        break;
    }
}

static void client_check_closed(struct cn_client *client)
{
    if (client->handle_count > 0)
        return;
    void (*cb)(void *data) = client->close_cb;
    void *data = client->close_data;
    cn_free(client);
    cb(data);
}

static void on_request_closed(uv_handle_t *handle)
{
    struct cn_client_request *request = handle->data;
    struct cn_client *client = request->client;
    cn_buf_fini(&request->upload);
    cn_client_head_fini(&request->head);
    cn_buf_fini(&request->coded);
    cn_free(request->coding);
    cn_free(request->origin);
    cn_free(request);
    client->handle_count--;
    if (client->closing)
        client_check_closed(client);
}

/* `upload` is to grow by `size`: is there room? What it has had stays counted until it is freed. */
static bool upload_hold(struct cn_client_request *request, size_t size)
{
    size_t want = request->upload.size + size;
    size_t more = want > request->held ? want - request->held : 0;
    if (!request->holding || !more)
        return true;
    if (!request->holding->take(request->holding, more))
        return false;
    request->held += more;
    return true;
}

static void upload_free(struct cn_client_request *request)
{
    cn_buf_fini(&request->upload);
    if (request->held)
        request->holding->give(request->holding, request->held);
    request->held = 0;
}

/* Reports and takes the request apart. curl must have let go of it. */
static void request_finish(struct cn_client_request *request)
{
    struct cn_client *client = request->client;
    CN_ASSERT(request->state != STATE_OVER);
    if (request->decoder && request->error.code == 0) {
        struct cn_err err;
        if (cn_decode_finish(request->decoder, &err) < 0)
            cn_err_set(&request->error, err.code, "%s: %.400s", request->origin, err.text);
    }
    request->state = STATE_OVER;
    cn_list_remove(&request->later_link);
    cn_list_remove(&request->link);
    client->request_count--;
    cn_decode_free(request->decoder);
    upload_free(request);
    request->callbacks->on_done(request, request->error.code ? &request->error : NULL,
                                request->data);
    curl_easy_cleanup(request->easy);
    curl_url_cleanup(request->url);
    curl_slist_free_all(request->header_list);
    uv_close((uv_handle_t *)&request->timer, on_request_closed);
}

/* Takes out what curl has finished. */
static void collect_done(struct cn_client *client)
{
    int left;
    if (!client->multi)
        return;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        struct cn_client_request *request;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&request);
        if (code != CURLE_OK && request->error.code == 0)
            translate(request, code);
        curl_multi_remove_handle(client->multi, easy);
        request->transfer_done = true;
        if (request->error.code == 0 && request->decode_pending)
            continue; /* R4: on_later goes on when the owner resumes */
        request_finish(request);
    }
}

/* ---- time ---- */

static void on_request_timer(uv_timer_t *timer);

static void request_arm(struct cn_client_request *request)
{
    uint64_t now = uv_now(request->client->loop);
    unsigned limit = request->head_done ? request->idle_timeout_ms : request->head_timeout_ms;
    uint64_t deadline = request->progress_ms + limit;
    if (request->total_deadline_ms && request->total_deadline_ms < deadline)
        deadline = request->total_deadline_ms;
    uv_timer_start(&request->timer, on_request_timer, deadline > now ? deadline - now : 0, 0);
}

/* Deadlines move with every byte, so the timer is only moved when it goes off. */
static void on_request_timer(uv_timer_t *timer)
{
    struct cn_client_request *request = timer->data;
    uint64_t now = uv_now(request->client->loop);
    if (request->total_deadline_ms && now >= request->total_deadline_ms) {
        request_fail(request, CN_ETIMEOUT, "timed out: the whole exchange took too long");
        return;
    }
    bool owner_turn = request->upload_paused ||
                      (request->head_done && (request->paused || request->transfer_done));
    if (owner_turn)
        request_progress(request); /* time spent by the owner is not the origin's */
    unsigned limit = request->head_done ? request->idle_timeout_ms : request->head_timeout_ms;
    if (now - request->progress_ms >= limit && !owner_turn) {
        request_fail(request, CN_ETIMEOUT, "timed out: nothing came for %u ms while %s", limit,
                     request->head_done ? "the body was read" : "waiting for the answer");
        return;
    }
    request_arm(request);
}

/* ---- upload ---- */

static size_t on_curl_read(char *buffer, size_t unit, size_t count, void *data)
{
    struct cn_client_request *request = data;
    if (request->error.code != 0)
        return CURL_READFUNC_ABORT;
    if (request->upload_taken == request->upload.size && !request->upload_ended) {
        if (request->upload.capacity > UPLOAD_BUFFER_KEEP)
            upload_free(request);
        cn_buf_clear(&request->upload);
        request->upload_taken = 0;
        if (!request->upload_wanted) {
            request->upload_wanted = true;
            request->callbacks->on_want(request, request->data);
            if (request->error.code != 0)
                return CURL_READFUNC_ABORT;
        }
    }
    size_t size = request->upload.size - request->upload_taken;
    if (size == 0) {
        if (!request->upload_ended) {
            request->upload_paused = true;
            return CURL_READFUNC_PAUSE;
        }
        return 0;
    }
    if (size > unit * count)
        size = unit * count;
    memcpy(buffer, request->upload.data + request->upload_taken, size);
    request->upload_taken += size;
    request->client->stats.bytes_out += size;
    request_progress(request);
    return size;
}

/* curl starts over on a fresh connection when a pooled one turns out to be dead. */
static int on_curl_seek(void *data, curl_off_t offset, int origin)
{
    struct cn_client_request *request = data;
    if (request->upload_stream || origin != SEEK_SET || offset < 0 ||
        (uint64_t)offset > request->upload.size)
        return CURL_SEEKFUNC_CANTSEEK;
    request->upload_taken = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

int cn_client_write(struct cn_client_request *request, const void *bytes, size_t size,
                    struct cn_err *err)
{
    cn_loop_assert_owner(request->client->loop);
    if (request->state == STATE_OVER || request->error.code != 0 || request->transfer_done)
        return cn_err_set(err, CN_ECLOSED, "the request is over");
    if (!request->upload_stream || request->upload_ended)
        return cn_err_set(err, CN_EINVALID, "the request's body has ended");
    if (request->upload_length != CN_CLIENT_LENGTH_UNKNOWN &&
        size > request->upload_length - request->upload_given)
        return cn_err_set(err, CN_EINVALID, "the body is longer than the %llu bytes announced",
                          (unsigned long long)request->upload_length);
    if (request->upload.size - request->upload_taken >= UPLOAD_BUFFER_MAX)
        return cn_err_set(err, CN_EOVERLOADED, "too much of the body waits to be sent");
    if (size == 0)
        return 0;
    cn_buf_consume(&request->upload, request->upload_taken);
    request->upload_taken = 0;
    if (!upload_hold(request, size) || !cn_buf_try_append(&request->upload, bytes, size))
        return cn_err_set(err, CN_ENOMEM, "no memory for %zu bytes of body", size);
    request->upload_given += size;
    request->upload_wanted = false;
    if (request->upload_paused)
        request_later(request, LATER_RESUME);
    return 0;
}

void cn_client_end(struct cn_client_request *request)
{
    cn_loop_assert_owner(request->client->loop);
    if (request->state == STATE_OVER || request->upload_ended)
        return;
    if (request->upload_length != CN_CLIENT_LENGTH_UNKNOWN &&
        request->upload_given < request->upload_length) {
        request_fail(request, CN_EINVALID, "the body ended after %llu of %llu bytes announced",
                     (unsigned long long)request->upload_given,
                     (unsigned long long)request->upload_length);
        return;
    }
    request->upload_ended = true;
    if (request->upload_paused)
        request_later(request, LATER_RESUME);
}

/* ---- download: the head ---- */

/* All Content-Encoding values as one list, or NULL. */
static char *head_coding(const struct cn_client_header *headers, size_t count)
{
    struct cn_buf list = {0};
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(headers[i].name, "content-encoding") != 0)
            continue;
        if (list.size > 0)
            cn_buf_append_str(&list, ", ");
        cn_buf_append_str(&list, headers[i].value);
    }
    return list.size > 0 ? cn_buf_text(&list) : NULL;
}

/* One line of the head with its line end. */
static size_t on_curl_header(char *line, size_t unit, size_t count, void *data)
{
    struct cn_client_request *request = data;
    size_t size = unit * count;
    if (request->error.code != 0)
        return 0;
    request_progress(request);
    if (request->head_done)
        return size; /* trailers: fetch does not show them */
    struct cn_err err;
    int rc = cn_client_head_line(&request->head, line, size, request->client->options.head_size_max,
                                 &err);
    if (rc < 0)
        request_fail(request, err.code, "%s", err.text);
    if (rc > 0) {
        struct cn_client_header *headers;
        struct cn_client_head head = cn_client_head_take(&request->head, &headers);
        request->head_done = true;
        request_arm(request); /* another limit holds from here on */
        request->coding = head_coding(headers, head.header_count);
        request->callbacks->on_head(request, &head, request->data);
        cn_free(headers);
        cn_client_head_fini(&request->head);
    }
    return request->error.code == 0 ? size : 0;
}

/* ---- download: the body ---- */

static void body_deliver(struct cn_client_request *request, const void *bytes, size_t size)
{
    request->client->stats.bytes_in += size;
    request->callbacks->on_body(request, bytes, size, request->data);
}

/* Delivers decoded pieces until the input is used up or the owner stops it. */
static void body_decode(struct cn_client_request *request)
{
    while (request->error.code == 0 && !request->paused && !request->discard) {
        const uint8_t *bytes;
        struct cn_err err;
        int size = cn_decode_next(request->decoder, &bytes, &err);
        if (size < 0) {
            request_fail(request, err.code, "%s", err.text);
            return;
        }
        if (size == 0) {
            request->decode_pending = false;
            return;
        }
        body_deliver(request, bytes, (size_t)size);
    }
}

static size_t on_curl_body(char *bytes, size_t unit, size_t count, void *data)
{
    struct cn_client_request *request = data;
    size_t size = unit * count;
    if (request->error.code != 0)
        return 0;
    if (!request->head_done) {
        request_fail(request, CN_EPROTOCOL, "the answer has no head");
        return 0;
    }
    request_progress(request);
    if (request->discard) {
        request->discard_size += size;
        if (request->discard_size > DISCARD_MAX)
            cn_client_abort(request);
        return request->error.code == 0 ? size : 0;
    }
    if (request->paused || request->decode_pending) {
        request->download_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (!request->body_begun) {
        request->body_begun = true;
        if (request->decode && request->coding)
            request->decoder = cn_decode_new(request->coding, request->holding);
    }
    if (!request->decoder) {
        body_deliver(request, bytes, size);
    } else {
        cn_buf_clear(&request->coded);
        cn_buf_append(&request->coded, bytes, size);
        cn_decode_feed(request->decoder, request->coded.data, size);
        request->decode_pending = true;
        body_decode(request);
    }
    return request->error.code == 0 ? size : 0;
}

void cn_client_pause(struct cn_client_request *request)
{
    cn_loop_assert_owner(request->client->loop);
    request->paused = true;
}

void cn_client_resume(struct cn_client_request *request)
{
    cn_loop_assert_owner(request->client->loop);
    if (!request->paused)
        return;
    request->paused = false;
    if (request->download_paused || request->decode_pending)
        request_later(request, LATER_RESUME);
}

void cn_client_set_decode(struct cn_client_request *request, bool decode)
{
    CN_ASSERT(!request->body_begun);
    request->decode = decode;
}

void cn_client_abort(struct cn_client_request *request)
{
    cn_loop_assert_owner(request->client->loop);
    request_fail(request, CN_EABORTED, "the request was aborted");
}

void cn_client_discard(struct cn_client_request *request)
{
    cn_loop_assert_owner(request->client->loop);
    CN_ASSERT(request->head_done);
    if (!request->upload_ended) {
        cn_client_abort(request);
        return;
    }
    request->discard = true;
    request->paused = false;
    if (request->download_paused || request->decode_pending)
        request_later(request, LATER_RESUME);
}

/* ---- doing what was noted ---- */

static void request_resume(struct cn_client_request *request)
{
    if (request->decode_pending) {
        if (request->discard) {
            cn_decode_free(request->decoder);
            request->decoder = NULL;
            request->decode_pending = false;
        } else {
            body_decode(request);
        }
        if (request->error.code != 0)
            return; /* LATER_END is noted */
    }
    if (request->transfer_done) {
        if (!request->decode_pending)
            request_finish(request);
        return;
    }
    if (request->download_paused && !request->paused && !request->decode_pending)
        request->download_paused = false;
    if (request->upload_paused &&
        (request->upload.size > request->upload_taken || request->upload_ended))
        request->upload_paused = false;
    int still = (request->download_paused ? CURLPAUSE_RECV : 0) |
                (request->upload_paused ? CURLPAUSE_SEND : 0);
    CURLcode code = curl_easy_pause(request->easy, still); /* may call back */
    if (code != CURLE_OK)
        request_fail(request, CN_EPROTOCOL, "%s", curl_easy_strerror(code));
}

static void request_do(struct cn_client_request *request)
{
    struct cn_client *client = request->client;
    unsigned later = request->later;
    request->later = 0;
    if (request->error.code != 0) {
        if (request->state == STATE_RUNNING && !request->transfer_done)
            curl_multi_remove_handle(client->multi, request->easy);
        request_finish(request);
        return;
    }
    if (later & LATER_START) {
        CURLMcode code = curl_multi_add_handle(client->multi, request->easy);
        if (code != CURLM_OK) {
            request_fail(request, CN_ENOMEM, "%s", curl_multi_strerror(code));
            return;
        }
        request->state = STATE_RUNNING;
        request_progress(request);
        request_arm(request);
    } else if (later & LATER_RESUME) {
        request_resume(request);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cn_client *client = handle->data;
    client->handle_count--;
    client_check_closed(client);
}

static void client_teardown(struct cn_client *client)
{
    if (client->multi)
        curl_multi_cleanup(client->multi);
    client->multi = NULL;
    client->torn_down = true;
    uv_close((uv_handle_t *)&client->timer, on_handle_closed);
    uv_close((uv_handle_t *)&client->idle, on_handle_closed);
}

static void on_later(uv_idle_t *idle)
{
    struct cn_client *client = idle->data;
    struct cn_list batch;
    cn_list_init(&batch);
    cn_list_splice(&batch, &client->later);
    for (struct cn_list *node; (node = cn_list_take_front(&batch));)
        request_do(CN_CONTAINER_OF(node, struct cn_client_request, later_link));
    collect_done(client);
    if (!cn_list_empty(&client->later))
        return; /* come again, after the loop has looked at its sockets */
    uv_idle_stop(&client->idle);
    if (client->closing && client->request_count == 0 && !client->torn_down)
        client_teardown(client);
}

/* ---- curl on the loop ---- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    struct cn_client *client = watch->client;
    uv_os_fd_t fd;
    int flags = 0, running;
    if (uv_fileno((uv_handle_t *)poll, &fd) < 0)
        return;
    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    curl_multi_socket_action(client->multi, fd, flags, &running);
    collect_done(client);
}

static void on_timeout(uv_timer_t *timer)
{
    struct cn_client *client = timer->data;
    int running;
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect_done(client);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *data)
{
    struct cn_client *client = data;
    if (timeout_ms < 0)
        uv_timer_stop(&client->timer);
    else
        uv_timer_start(&client->timer, on_timeout, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct cn_client *client = watch->client;
    cn_free(watch);
    client->handle_count--;
    if (client->closing)
        client_check_closed(client);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    struct cn_client *client = data;
    struct watch *watch = socket_data;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
            curl_multi_assign(client->multi, fd, NULL);
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        }
        return 0;
    }
    if (!watch) {
        watch = CN_NEW(struct watch);
        watch->client = client;
        if (uv_poll_init_socket(client->loop, &watch->poll, fd) < 0) {
            cn_free(watch);
            return -1; /* curl ends the transfer */
        }
        watch->poll.data = watch;
        client->handle_count++;
        curl_multi_assign(client->multi, fd, watch);
    }
    int events = 0;
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, on_poll) < 0 ? -1 : 0;
}

static curl_socket_t on_curl_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct cn_client_request *request = data;
    struct cn_client *client = request->client;
    const struct cn_client_options *options = &client->options;
    if (options->address_allowed &&
        !options->address_allowed(&address->addr, options->address_data)) {
        request->address_denied = true;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    client->stats.connections_total++;
    return fd;
}

static CURLcode on_curl_tls(CURL *easy, void *ssl_ctx, void *data)
{
    struct cn_client *client = data;
    cn_trust_apply(client->options.trust, ssl_ctx);
    return CURLE_OK;
}

/* ---- making requests ---- */

static int body_set(struct cn_client_request *request, const struct cn_client_params *params,
                    struct cn_err *err)
{
    request->upload_length = 0;
    request->upload_ended = true;
    if (params->body_kind == CN_CLIENT_BODY_STREAM) {
        CN_ASSERT(request->callbacks->on_want);
        request->upload_stream = true;
        request->upload_ended = false;
        request->upload_length = params->body_length;
    } else if (params->body_kind == CN_CLIENT_BODY_BYTES && params->body_size > 0) {
        if (!upload_hold(request, params->body_size) ||
            !cn_buf_try_append(&request->upload, params->body, params->body_size))
            return cn_err_set(err, CN_ENOMEM, "no memory for %zu bytes of body", params->body_size);
        request->upload_length = params->body_size;
    }
    return 0;
}

static void easy_setup(struct cn_client_request *request, const struct cn_client_params *params)
{
    struct cn_client *client = request->client;
    CURL *easy = request->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl_easy_setopt(easy, CURLOPT_CURLU, request->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->header_list);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->curl_text);

    /* Nothing from the environment, nothing but HTTP. */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    /* Without this an aborted request waits, and the lane with it, for its name lookup. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);

    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL); /* net/trust.h has them */
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_curl_tls);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, client);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_curl_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
    unsigned connect_ms = params->connect_timeout_ms ? params->connect_timeout_ms
                                                     : client->options.connect_timeout_ms;
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);

    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_curl_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_curl_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);

    /* Fetch sends "Content-Length: 0" for POST and PUT without a body. */
    bool upload = params->body_kind != CN_CLIENT_BODY_NONE || strcmp(params->method, "POST") == 0 ||
                  strcmp(params->method, "PUT") == 0;
    if (upload) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_curl_read);
        curl_easy_setopt(easy, CURLOPT_READDATA, request);
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_curl_seek);
        curl_easy_setopt(easy, CURLOPT_SEEKDATA, request);
        curl_off_t length = request->upload_length == CN_CLIENT_LENGTH_UNKNOWN
                                ? -1
                                : (curl_off_t)request->upload_length;
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, length);
    }
    if (strcmp(params->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, params->method);
}

static void curl_global(void)
{
    CN_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

/* With the first request, which loads the library (curl_lazy.c). */
static void client_start(struct cn_client *client)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_global);
    const struct cn_client_options *options = &client->options;
    client->multi = curl_multi_init();
    CN_ASSERT(client->multi);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                      (long)options->connections_max);
    curl_multi_setopt(client->multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                      (long)options->connections_host_max);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)options->connections_max);
}

struct cn_client_request *cn_client_fetch(struct cn_client *client,
                                          const struct cn_client_params *params,
                                          const struct cn_client_callbacks *callbacks, void *data,
                                          struct cn_err *err)
{
    cn_loop_assert_owner(client->loop);
    CN_ASSERT(!client->closing);
    if (!cn_client_is_token(params->method, strlen(params->method)) ||
        strcmp(params->method, "CONNECT") == 0) {
        cn_err_set(err, CN_EINVALID, "\"%.40s\" is not a method that can be sent", params->method);
        return NULL;
    }
    if (client->request_count >= client->options.requests_max) {
        cn_err_set(err, CN_EOVERLOADED, "too many requests are under way (%u)",
                   client->request_count);
        return NULL;
    }
    if (!client->multi)
        client_start(client);
    struct cn_client_request *request = CN_NEW(struct cn_client_request);
    request->client = client;
    request->callbacks = callbacks;
    request->data = data;
    request->decode = params->decode;
    request->holding = params->holding;
    cn_list_init(&request->later_link);
    if (cn_client_params_url(params->url, &request->url, &request->origin, err) < 0 ||
        cn_client_params_headers(params, &request->header_list, err) < 0 ||
        body_set(request, params, err) < 0)
        goto free_request;
    request->easy = curl_easy_init();
    CN_ASSERT(request->easy);
    easy_setup(request, params);

    request->head_timeout_ms =
        params->head_timeout_ms ? params->head_timeout_ms : client->options.head_timeout_ms;
    request->idle_timeout_ms =
        params->idle_timeout_ms ? params->idle_timeout_ms : client->options.idle_timeout_ms;
    if (params->total_timeout_ms)
        request->total_deadline_ms = uv_now(client->loop) + params->total_timeout_ms;
    uv_timer_init(client->loop, &request->timer);
    request->timer.data = request;
    client->handle_count++;

    cn_list_push_back(&client->requests, &request->link);
    client->request_count++;
    client->stats.requests_total++;
    request_later(request, LATER_START);
    return request;
free_request:
    curl_url_cleanup(request->url);
    curl_slist_free_all(request->header_list);
    upload_free(request);
    cn_free(request->origin);
    cn_free(request);
    return NULL;
}

/* ---- the client ---- */

static unsigned or_default(unsigned value, unsigned otherwise)
{
    return value ? value : otherwise;
}

struct cn_client *cn_client_new(uv_loop_t *loop, const struct cn_client_options *options)
{
    cn_loop_assert_owner(loop);
    CN_ASSERT(options->trust);
    struct cn_client *client = CN_NEW(struct cn_client);
    client->loop = loop;
    client->options = *options;
    struct cn_client_options *own = &client->options;
    own->connections_max = or_default(own->connections_max, 256);
    own->connections_host_max = or_default(own->connections_host_max, 64);
    own->requests_max = or_default(own->requests_max, 4096);
    own->head_size_max = own->head_size_max ? own->head_size_max : 128 << 10;
    own->connect_timeout_ms = or_default(own->connect_timeout_ms, 30000);
    own->head_timeout_ms = or_default(own->head_timeout_ms, 100000);
    own->idle_timeout_ms = or_default(own->idle_timeout_ms, 300000);
    cn_list_init(&client->requests);
    cn_list_init(&client->later);
    uv_timer_init(loop, &client->timer);
    uv_idle_init(loop, &client->idle);
    client->timer.data = client->idle.data = client;
    client->handle_count = 2;
    return client;
}

void cn_client_close(struct cn_client *client, void (*cb)(void *data), void *data)
{
    cn_loop_assert_owner(client->loop);
    CN_ASSERT(!client->closing);
    client->closing = true;
    client->close_cb = cb;
    client->close_data = data;
    CN_LIST_FOREACH(&client->requests, node)
    {
        struct cn_client_request *request = CN_CONTAINER_OF(node, struct cn_client_request, link);
        request_fail(request, CN_ECLOSED, "the server is stopping");
    }
    wake(client);
}

void cn_client_check(const struct cn_client *client)
{
    CN_ASSERT(client->request_count == cn_list_length(&client->requests));
}

struct cn_client_stats cn_client_stats(const struct cn_client *client)
{
    struct cn_client_stats stats = client->stats;
    stats.requests_running = client->request_count;
    return stats;
}
