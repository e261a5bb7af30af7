/* SPDX-License-Identifier: Apache-2.0 */
/* admin/relay.c - asking another node. See relay.h. */
#include "admin/relay.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "admin/handler.h"
#include "base/assert.h"
#include "base/cond.h"
#include "base/mem.h"

enum { LOOK_MS = 100 };

/* --- a line ---------------------------------------------------------------------------------- */

static void line_free(struct cn_relay_line *line)
{
    cn_relay_answer_clear(&line->answer);
    cn_buf_fini(&line->question.asked);
    cn_buf_fini(&line->question.answer);
    pthread_mutex_destroy(&line->lock);
    cn_free(line);
}

struct cn_relay_line *cn_relay_line_new(const struct cn_relay_net *net, uint64_t disk,
                                        void (*wake)(void *data), void *data)
{
    static atomic_uint_least64_t sessions;
    struct cn_relay_line *line = CN_NEW(struct cn_relay_line);
    line->net = net;
    line->disk = disk;
    line->wake = wake;
    line->wake_data = data;
    line->session = atomic_fetch_add(&sessions, 1) + 1;
    pthread_mutex_init(&line->lock, NULL);
    return line;
}

static void read_answer(struct cn_relay_line *line)
{
    struct cn_node_calls_question *question = &line->question;
    line->err = question->err;
    line->lost = question->lost;
    int rc = line->err.code
                 ? 0
                 : cn_relay_answer_get(&line->answer, question->answer.data, question->answer.size,
                                       &line->piece, &line->piece_size);
    if (rc < 0) {
        line->lost = true;
        cn_err_set(&line->err, rc, "its answer cannot be read");
    }
    if (line->err.code || line->answer.ended)
        line->open = false;
}

/* On lane 0. */
static void on_done(struct cn_node_calls_question *question)
{
    struct cn_relay_line *line = question->data;
    pthread_mutex_lock(&line->lock);
    bool dropped = line->dropped;
    line->asking = false;
    if (!dropped) {
        read_answer(line);
        line->wake(line->wake_data); /* whom drop() waits for by the lock */
    }
    pthread_mutex_unlock(&line->lock);
    if (dropped)
        line_free(line);
}

static void ask(struct cn_relay_line *line, const struct cn_relay_ask *what, const void *piece,
                size_t size)
{
    struct cn_node_calls_question *question = &line->question;
    CN_ASSERT(!line->asking);
    cn_relay_answer_clear(&line->answer);
    line->piece = NULL;
    line->piece_size = 0;
    cn_buf_clear(&question->asked);
    cn_buf_clear(&question->answer);
    cn_relay_ask_put(what, &question->asked);
    if (size)
        cn_buf_append(&question->asked, piece, size);
    question->disk = line->disk;
    question->done = on_done;
    question->data = line;
    line->asking = true;
    if (cn_node_calls_post(line->net->node, question))
        return;
    line->asking = false;
    line->lost = false;
    cn_err_set(&line->err, CN_ECLOSED, "the server is stopping");
}

void cn_relay_line_open(struct cn_relay_line *line, const struct cn_control_call *call,
                        const void *piece, size_t size, bool body_ends)
{
    struct cn_relay_ask what = {.step = CN_RELAY_OPEN,
                                .session = line->session,
                                .body_ends = body_ends,
                                .method = (char *)call->method,
                                .target = (char *)call->target,
                                .content_type = (char *)call->content_type,
                                .host = (char *)call->host,
                                .https = call->https,
                                .scopes = call->who.scopes,
                                .who = (char *)call->who.id,
                                .name = (char *)call->who.name};
    if (call->sent)
        what.sent = *call->sent;
    line->open = true;
    ask(line, &what, piece, size);
}

void cn_relay_line_step(struct cn_relay_line *line, const void *piece, size_t size, bool body_ends)
{
    struct cn_relay_ask what = {
        .step = CN_RELAY_STEP, .session = line->session, .body_ends = body_ends};
    ask(line, &what, piece, size);
}

bool cn_relay_line_waits(struct cn_relay_line *line)
{
    pthread_mutex_lock(&line->lock);
    bool waits = line->asking;
    pthread_mutex_unlock(&line->lock);
    return waits;
}

/* A question that nobody waits for. */
static void on_closed(struct cn_node_calls_question *question)
{
    cn_buf_fini(&question->asked);
    cn_buf_fini(&question->answer);
    cn_free(question);
}

static void send_close(const struct cn_relay_line *line)
{
    struct cn_node_calls_question *question = CN_NEW(struct cn_node_calls_question);
    struct cn_relay_ask what = {.step = CN_RELAY_CLOSE, .session = line->session};
    cn_relay_ask_put(&what, &question->asked);
    question->disk = line->disk;
    question->done = on_closed;
    if (!cn_node_calls_post(line->net->node, question))
        on_closed(question); /* the pipe goes, and with it the session */
}

void cn_relay_line_drop(struct cn_relay_line *line)
{
    pthread_mutex_lock(&line->lock);
    bool asking = line->asking, open = line->open;
    if (open)
        send_close(line);
    line->dropped = true;
    pthread_mutex_unlock(&line->lock);
    if (!asking)
        line_free(line);
}

/* --- waiting --------------------------------------------------------------------------------- */

void cn_relay_waiter_init(struct cn_relay_waiter *waiter)
{
    pthread_mutex_init(&waiter->lock, NULL);
    cn_cond_init(&waiter->cond);
}

void cn_relay_waiter_fini(struct cn_relay_waiter *waiter)
{
    pthread_cond_destroy(&waiter->cond);
    pthread_mutex_destroy(&waiter->lock);
}

void cn_relay_waiter_wake(void *data)
{
    struct cn_relay_waiter *waiter = data;
    pthread_mutex_lock(&waiter->lock);
    waiter->woken = true;
    pthread_cond_broadcast(&waiter->cond);
    pthread_mutex_unlock(&waiter->lock);
}

void cn_relay_waiter_wait(struct cn_relay_waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    if (!waiter->woken)
        (void)cn_cond_wait_ms(&waiter->cond, &waiter->lock, LOOK_MS); /* who calls looks */
    waiter->woken = false;
    pthread_mutex_unlock(&waiter->lock);
}

/* --- a call ---------------------------------------------------------------------------------- */

/* call->type is of static storage (control.h): what relayed routes answer with. */
static const char *known_type(const char *type)
{
    static const char *const types[] = {"application/json",         "application/vnd.sqlite3",
                                        "application/sql",          "application/x-ndjson",
                                        "application/octet-stream", "text/plain;charset=UTF-8"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(types); i++) {
        if (strcmp(types[i], type) == 0)
            return types[i];
    }
    return "application/octet-stream";
}

static void take_head(struct cn_control_call *call, const struct cn_relay_answer *answer)
{
    call->status = (int)answer->status;
    call->type = known_type(answer->type);
    call->length = (int64_t)answer->length - 1;
    cn_buf_clear(&call->fields);
    cn_buf_append(&call->fields, answer->fields.data, answer->fields.size);
}

struct transfer {
    struct cn_relay_line *line;
    struct cn_relay_waiter waiter;
    size_t sent; /* of the body */
    bool heard;  /* it was answered once: the call runs there */
    bool begun;  /* something of the answer was passed on */
};

/* The next piece of the body. */
static size_t next_piece(const struct cn_control_call *call, struct transfer *transfer,
                         const uint8_t **piece, bool *ends)
{
    size_t left = call->body.size - transfer->sent;
    size_t size = left < CN_RELAY_READY_MAX ? left : CN_RELAY_READY_MAX;
    *piece = size ? call->body.data + transfer->sent : NULL;
    transfer->sent += size;
    *ends = transfer->sent == call->body.size;
    return size;
}

/* False: the call was cancelled. */
static bool await(struct cn_control_call *call, struct transfer *transfer)
{
    while (cn_relay_line_waits(transfer->line)) {
        if (call->cancelled && call->cancelled(call))
            return false;
        cn_relay_waiter_wait(&transfer->waiter);
    }
    return true;
}

static enum cn_relay_end fail(struct cn_control_call *call, const struct transfer *transfer,
                              struct cn_err *err)
{
    const struct cn_relay_line *line = transfer->line;
    if (transfer->begun) { /* R3 */
        call->cut = true;
        return CN_RELAY_DONE;
    }
    cn_err_set(err, CN_ECLOSED, "the node that has it: %s", line->err.text);
    return line->lost || transfer->heard ? CN_RELAY_LOST : CN_RELAY_REFUSED;
}

/* Passes on what has come. False: nobody listens, or that was all. */
static bool pass_on(struct cn_control_call *call, struct transfer *transfer)
{
    const struct cn_relay_line *line = transfer->line;
    if (line->answer.head)
        take_head(call, &line->answer);
    transfer->begun |= line->answer.head;
    if (line->piece_size && call->write(call, line->piece, line->piece_size) < 0)
        return false;
    call->cut |= line->answer.cut;
    return !line->answer.ended;
}

enum cn_relay_end cn_relay_call(struct cn_control_call *call, const struct cn_relay_net *net,
                                uint64_t disk, struct cn_err *err)
{
    struct transfer transfer = {0};
    const uint8_t *piece;
    bool ends, goes_on = true;
    enum cn_relay_end end = CN_RELAY_DONE;
    cn_relay_waiter_init(&transfer.waiter);
    transfer.line = cn_relay_line_new(net, disk, cn_relay_waiter_wake, &transfer.waiter);
    size_t size = next_piece(call, &transfer, &piece, &ends);
    cn_relay_line_open(transfer.line, call, piece, size, ends);
    while (goes_on) {
        if (!await(call, &transfer)) {
            call->cut = transfer.begun;
            if (!transfer.begun) {
                cn_err_set(err, CN_ECLOSED, "the call was cancelled");
                end = CN_RELAY_LOST;
            }
            break;
        }
        if (transfer.line->err.code) {
            end = fail(call, &transfer, err);
            break;
        }
        if (transfer.line->answer.cut && !transfer.line->answer.head && !transfer.begun) {
            cn_err_set(err, CN_ECLOSED, "the node that has it has broken the call off");
            end = CN_RELAY_LOST;
            break;
        }
        if (transfer.line->answer.refused) {
            cn_err_set(err, CN_ECLOSED, "the node that had it does not any more");
            end = CN_RELAY_REFUSED;
            break;
        }
        transfer.heard = true;
        goes_on = pass_on(call, &transfer);
        if (!goes_on)
            break;
        size = transfer.line->answer.more ? next_piece(call, &transfer, &piece, &ends) : 0;
        cn_relay_line_step(transfer.line, piece, size, ends);
    }
    cn_relay_line_drop(transfer.line);
    cn_relay_waiter_fini(&transfer.waiter);
    return end;
}
