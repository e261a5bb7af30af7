/* SPDX-License-Identifier: Apache-2.0 */
/* admin/relay_host.c - calls that other nodes ask for. See relay.h. */
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "admin/relay.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/list.h"
#include "base/mem.h"

enum { IDLE_MS = 300000, LOOK_MS = 1000 };

struct session {
    struct cn_control_call call; /* first: its functions find the session */
    struct cn_list link;
    struct cn_relay_host *host;
    struct cn_relay_ask ask; /* what the call borrows from */
    uint64_t disk, life;     /* whose it is: R5 */
    uv_thread_t thread;
    pthread_cond_t changed; /* with the host's lock, as what follows */
    struct cn_buf incoming, ready;
    bool body_whole, begun, head_sent, ended, gone;
    struct cn_node_calls_ticket *ticket; /* of the question that waits; NULL: none */
    int64_t asked_ms;                    /* when there was one last */
};

struct cn_relay_host {
    const struct cn_control *control;
    struct cn_node_calls_door door;
    pthread_mutex_t lock; /* guards what follows, and sessions */
    pthread_cond_t ended; /* a thread has */
    struct cn_list sessions;
    unsigned count, running;
};

static int64_t now_ms(void)
{
    return (int64_t)(cn_clock_mono_ns(cn_clock_system()) / 1000000);
}

/* --- the thread ------------------------------------------------------------------------------ */

/* Out of the list; nobody has it any more. */
static void session_free(struct session *session)
{
    CN_ASSERT(session->ended && !session->ticket);
    session->host->count--;
    cn_list_remove(&session->link);
    cn_relay_ask_clear(&session->ask);
    cn_buf_fini(&session->incoming);
    cn_buf_fini(&session->ready);
    cn_buf_fini(&session->call.fields);
    pthread_cond_destroy(&session->changed);
    cn_free(session);
}

/* Answers the question that waits, if there is something to say. The session may be gone after.
 * With the lock held. */
static void answer(struct session *session)
{
    struct cn_node_calls_ticket *ticket = session->ticket;
    bool room = !session->body_whole && session->incoming.size < CN_RELAY_READY_MAX;
    if (!ticket || (!session->ready.size && !session->ended && !session->gone && !room))
        return;
    struct cn_control_call *call = &session->call;
    struct cn_relay_answer said = {.ended = session->ended || session->gone,
                                   .cut = session->ended ? call->cut : session->gone,
                                   .refused = session->ended && call->refused,
                                   .more = room};
    if (!session->head_sent && !said.refused && (session->begun || session->ended)) {
        said.head = session->head_sent = true;
        said.status = (uint32_t)call->status;
        said.type = (char *)call->type;
        said.length = (uint64_t)(call->length + 1);
        said.fields = call->fields;
    }
    cn_relay_answer_put(&said, &ticket->answer);
    cn_buf_append(&ticket->answer, session->ready.data, session->ready.size);
    cn_buf_clear(&session->ready);
    session->ticket = NULL;
    cn_node_calls_answer(ticket);
    pthread_cond_signal(&session->changed); /* there is room */
    if (session->ended)
        session_free(session);
}

/* With the lock held: waits for a change, and looks whether anybody still asks. */
static void wait(struct session *session)
{
    (void)cn_cond_wait_ms(&session->changed, &session->host->lock, LOOK_MS); /* or look */
    if (!session->ticket && now_ms() - session->asked_ms > IDLE_MS)
        session->gone = true;
}

static int on_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    struct session *session = (struct session *)call;
    const uint8_t *at = bytes;
    pthread_mutex_lock(&session->host->lock);
    session->begun = true;
    while (size && !session->gone) {
        size_t room =
            session->ready.size < CN_RELAY_READY_MAX ? CN_RELAY_READY_MAX - session->ready.size : 0;
        size_t count = room < size ? room : size;
        if (!count) {
            wait(session);
            continue;
        }
        cn_buf_append(&session->ready, at, count);
        at += count;
        size -= count;
        answer(session);
    }
    bool gone = session->gone;
    pthread_mutex_unlock(&session->host->lock);
    return gone ? CN_ECLOSED : 0;
}

static int64_t on_read(struct cn_control_call *call, void *bytes, size_t size)
{
    struct session *session = (struct session *)call;
    pthread_mutex_lock(&session->host->lock);
    while (!session->incoming.size && !session->body_whole && !session->gone)
        wait(session);
    int64_t count = session->gone ? CN_ECLOSED : 0;
    if (session->incoming.size && !session->gone) {
        count = (int64_t)(size < session->incoming.size ? size : session->incoming.size);
        memcpy(bytes, session->incoming.data, (size_t)count);
        cn_buf_consume(&session->incoming, (size_t)count);
        answer(session); /* there is room again */
    }
    pthread_mutex_unlock(&session->host->lock);
    return count;
}

static bool is_cancelled(struct cn_control_call *call)
{
    struct session *session = (struct session *)call;
    pthread_mutex_lock(&session->host->lock);
    if (!session->ticket && now_ms() - session->asked_ms > IDLE_MS)
        session->gone = true;
    bool gone = session->gone;
    pthread_mutex_unlock(&session->host->lock);
    return gone;
}

static void session_main(void *arg)
{
    struct session *session = arg;
    struct cn_relay_host *host = session->host;
    cn_control_run(&session->call);
    pthread_mutex_lock(&host->lock);
    session->ended = true;
    if (session->gone && !session->ticket)
        session_free(session);
    else
        answer(session);
    host->running--;
    pthread_cond_broadcast(&host->ended);
    pthread_mutex_unlock(&host->lock);
}

/* --- the door -------------------------------------------------------------------------------- */

static struct session *find(struct cn_relay_host *host, const struct cn_node_calls_ticket *ticket,
                            uint64_t number)
{
    CN_LIST_FOREACH(&host->sessions, node)
    {
        struct session *each = CN_CONTAINER_OF(node, struct session, link);
        if (each->ask.session == number && each->disk == ticket->disk &&
            each->life == ticket->life && !each->gone)
            return each;
    }
    return NULL;
}

/* Nobody wants it. With the lock held; it may be freed. */
static void abandon(struct session *session)
{
    session->gone = true;
    pthread_cond_signal(&session->changed);
    if (session->ticket)
        answer(session);
    else if (session->ended)
        session_free(session);
}

static void abandon_idle(struct cn_relay_host *host)
{
    CN_LIST_FOREACH(&host->sessions, node)
    {
        struct session *each = CN_CONTAINER_OF(node, struct session, link);
        if (!each->ticket && now_ms() - each->asked_ms > IDLE_MS)
            abandon(each);
    }
}

static void refuse(struct cn_node_calls_ticket *ticket, int code, const char *text)
{
    cn_err_set(&ticket->err, code, "%s", text);
    cn_node_calls_answer(ticket);
}

/* The question waits in the session from here on. */
static void take(struct session *session, struct cn_node_calls_ticket *ticket, bool body_ends,
                 const uint8_t *piece, size_t size)
{
    if (size && !session->body_whole)
        cn_buf_append(&session->incoming, piece, size);
    session->body_whole |= body_ends;
    session->asked_ms = now_ms();
    session->ticket = ticket;
    pthread_cond_signal(&session->changed);
}

static void prepare_call(struct session *session)
{
    const struct cn_relay_ask *ask = &session->ask;
    session->call = (struct cn_control_call){.control = session->host->control,
                                             .method = ask->method,
                                             .target = ask->target,
                                             .content_type = ask->content_type,
                                             .host = ask->host,
                                             .https = ask->https,
                                             .sent = &ask->sent,
                                             .body_size = -1,
                                             .relayed = true,
                                             .who = {.scopes = ask->scopes},
                                             .read = on_read,
                                             .write = on_write,
                                             .cancelled = is_cancelled};
    struct cn_guard_who *who = &session->call.who;
    snprintf(who->id, sizeof(who->id), "%s", ask->who ? ask->who : "");
    snprintf(who->name, sizeof(who->name), "%s", ask->name ? ask->name : "");
}

/* The ask is the session's from here on, whatever comes of it. */
static void open_session(struct cn_relay_host *host, struct cn_node_calls_ticket *ticket,
                         struct cn_relay_ask *ask, const uint8_t *piece, size_t size)
{
    abandon_idle(host);
    if (host->count >= CN_RELAY_SESSIONS_MAX)
        return refuse(ticket, CN_EOVERLOADED, "too many operations of other nodes are under way");
    struct session *session = CN_NEW(struct session);
    session->host = host;
    session->ask = *ask;
    *ask = (struct cn_relay_ask){0};
    session->disk = ticket->disk;
    session->life = ticket->life;
    cn_cond_init(&session->changed);
    prepare_call(session);
    cn_list_push_back(&host->sessions, &session->link);
    host->count++;
    take(session, ticket, session->ask.body_ends, piece, size);
    host->running++;
    int rc = uv_thread_create(&session->thread, session_main, session);
    if (rc == 0) {
        (void)pthread_detach(session->thread); /* `running` counts it */
        answer(session);                       /* more of its body may come */
        return;
    }
    host->running--;
    session->ended = true;
    session->ticket = NULL;
    session_free(session);
    refuse(ticket, CN_EOVERLOADED, "cannot start a thread");
}

static void step_session(struct cn_relay_host *host, struct cn_node_calls_ticket *ticket,
                         const struct cn_relay_ask *ask, const uint8_t *piece, size_t size)
{
    struct session *session = find(host, ticket, ask->session);
    if (!session)
        return refuse(ticket, CN_ENOTFOUND, "the operation has ended there");
    if (session->ticket || (size && session->incoming.size >= CN_RELAY_READY_MAX))
        return refuse(ticket, CN_EPROTOCOL, "it was asked out of turn");
    take(session, ticket, ask->body_ends, piece, size);
    answer(session);
}

static void on_asked(void *data, struct cn_node_calls_ticket *ticket, const uint8_t *bytes,
                     size_t size)
{
    struct cn_relay_host *host = data;
    struct cn_relay_ask ask = {0};
    const uint8_t *piece;
    size_t piece_size;
    int rc = cn_relay_ask_get(&ask, bytes, size, &piece, &piece_size);
    if (rc == 0 && piece_size > CN_RELAY_READY_MAX)
        rc = CN_EPROTOCOL;
    pthread_mutex_lock(&host->lock);
    if (rc < 0) {
        refuse(ticket, rc, "it cannot read what it is asked");
    } else if (ask.step == CN_RELAY_OPEN && find(host, ticket, ask.session)) {
        refuse(ticket, CN_EPROTOCOL, "it was asked twice");
    } else if (ask.step == CN_RELAY_OPEN) {
        open_session(host, ticket, &ask, piece, piece_size);
    } else if (ask.step == CN_RELAY_STEP) {
        step_session(host, ticket, &ask, piece, piece_size);
    } else {
        struct session *session = find(host, ticket, ask.session);
        struct cn_relay_answer said = {.ended = true};
        cn_relay_answer_put(&said, &ticket->answer);
        cn_node_calls_answer(ticket);
        if (session)
            abandon(session);
    }
    pthread_mutex_unlock(&host->lock);
    cn_relay_ask_clear(&ask);
}

static void on_gone(void *data, uint64_t disk, uint64_t life)
{
    struct cn_relay_host *host = data;
    pthread_mutex_lock(&host->lock);
    CN_LIST_FOREACH(&host->sessions, node)
    {
        struct session *each = CN_CONTAINER_OF(node, struct session, link);
        if (each->disk == disk && each->life == life && !each->gone)
            abandon(each);
    }
    pthread_mutex_unlock(&host->lock);
}

struct cn_relay_host *cn_relay_host_start(const struct cn_control *control)
{
    struct cn_relay_host *host = CN_NEW(struct cn_relay_host);
    const struct cn_node_calls *others = control->relay->others;
    host->control = control;
    cn_list_init(&host->sessions);
    pthread_mutex_init(&host->lock, NULL);
    pthread_cond_init(&host->ended, NULL);
    host->door = (struct cn_node_calls_door){host, on_asked, on_gone};
    others->serve(others->data, &host->door);
    return host;
}

void cn_relay_host_stop(struct cn_relay_host *host)
{
    if (!host)
        return;
    const struct cn_node_calls *others = host->control->relay->others;
    others->serve(others->data, NULL); /* E4 */
    pthread_mutex_lock(&host->lock);
    CN_LIST_FOREACH(&host->sessions, node)
    abandon(CN_CONTAINER_OF(node, struct session, link));
    while (host->running)
        pthread_cond_wait(&host->ended, &host->lock);
    CN_ASSERT(cn_list_empty(&host->sessions));
    pthread_mutex_unlock(&host->lock);
    pthread_cond_destroy(&host->ended);
    pthread_mutex_destroy(&host->lock);
    cn_free(host);
}
