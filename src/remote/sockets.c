/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/sockets.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "object/node.h"
#include "remote/private.h"
#include "remote/question.h"
#include "worker/lane.h"
#include "worker/ws_far.h"
#include "worker/ws_move.h"

enum {
    KEEP_MS = 1000,
    ORDER = 2, /* even: those of calls are odd */
    AGAIN_MS = 3000,
    AGAIN_EVERY_MS = 20
};

/* What this lane asks of one lane of another node, as long as anything is under way: sockets.h. */
struct route {
    struct cn_list link; /* in lane->far_routes */
    uint64_t disk;
    unsigned to;
    uint64_t term;        /* W2: grows with every loss */
    uint64_t last_number; /* of a question */
    unsigned under_way;
    struct cn_list again; /* of struct asked, by number: W1 */
    uint64_t seen;        /* lane->far_pass: it has had its turn */
};

struct asked {
    struct cn_list link; /* in route->again */
    struct cn_lane *lane;
    struct route *route;
    uint64_t number, term, until_ms;
    void (*done)(struct cn_lane *lane, void *asked, const uint8_t *answer, size_t size);
    void *data;
    uint8_t *bytes; /* owned */
    size_t size;
    struct cn_buf head;
    struct cn_pipe_question question;
    uv_timer_t timer; /* of one that comes when all is over */
};

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                    size_t size);

static struct route *route_get(struct cn_remote_lane *lane, uint64_t disk, unsigned to)
{
    CN_LIST_FOREACH(&lane->far_routes, node)
    {
        struct route *route = CN_CONTAINER_OF(node, struct route, link);
        if (route->disk == disk && route->to == to)
            return route;
    }
    struct route *route = CN_NEW(struct route);
    route->disk = disk;
    route->to = to;
    route->seen = lane->far_pass;
    cn_list_init(&route->again);
    cn_list_push_back(&lane->far_routes, &route->link);
    return route;
}

static void route_free_if_unused(struct route *route)
{
    if (route->under_way || !cn_list_empty(&route->again))
        return;
    cn_list_remove(&route->link);
    cn_free(route);
}

/* One that has not had its turn in this pass, or NULL: code of others runs in between. */
static struct route *next_route(struct cn_remote_lane *lane)
{
    CN_LIST_FOREACH(&lane->far_routes, node)
    {
        struct route *route = CN_CONTAINER_OF(node, struct route, link);
        if (route->seen != lane->far_pass) {
            route->seen = lane->far_pass;
            return route;
        }
    }
    return NULL;
}

static void asked_free(struct asked *asked)
{
    cn_free(asked->bytes);
    cn_buf_fini(&asked->head);
    cn_free(asked);
}

/* Told once; the route may go with it. */
static void finish(struct asked *asked, const uint8_t *answer, size_t size)
{
    struct route *route = asked->route;
    route->under_way++; /* whoever is told may ask anew */
    asked->done(asked->lane, asked->data, answer, size);
    asked_free(asked);
    route->under_way--;
    route_free_if_unused(route);
}

/* W2: those that wait to be asked again, and those that are under way when they come back. */
static void route_break(struct route *route)
{
    struct cn_list failed;
    route->term++;
    cn_list_init(&failed);
    cn_list_splice(&failed, &route->again);
    while (!cn_list_empty(&failed))
        finish(CN_CONTAINER_OF(cn_list_take_front(&failed), struct asked, link), NULL, 0);
}

/* W1 */
static void ask_later(struct cn_remote_lane *lane, struct asked *asked)
{
    struct cn_list *at = asked->route->again.prev;
    while (at != &asked->route->again &&
           CN_CONTAINER_OF(at, struct asked, link)->number > asked->number)
        at = at->prev;
    cn_list_push_front(at, &asked->link);
    if (!uv_is_active((uv_handle_t *)&lane->far_timer))
        uv_timer_start(&lane->far_timer, cn_remote_sockets_on_time, AGAIN_EVERY_MS, AGAIN_EVERY_MS);
}

/* False: it cannot be asked now. */
static bool send_now(struct cn_remote_lane *lane, struct asked *asked)
{
    asked->question = (struct cn_pipe_question){.head = asked->head.data,
                                                .head_size = asked->head.size,
                                                .body = asked->bytes,
                                                .body_size = asked->size,
                                                .order = ORDER,
                                                .done = on_done};
    if (!lane->pipes ||
        cn_pipes_ask(lane->pipes, asked->route->disk, asked->route->to, &asked->question) < 0)
        return false;
    asked->route->under_way++;
    return true;
}

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                    size_t size)
{
    struct asked *asked = CN_CONTAINER_OF(question, struct asked, question);
    struct route *route = asked->route;
    struct cn_remote_lane *lane = cn_remote_lane_of(&asked->lane->object_lane);
    struct cn_reply reply = {0};
    const uint8_t *body = NULL;
    size_t body_size = 0;
    route->under_way--;
    if (end == CN_PIPE_UNSENT && lane->pipes && asked->term == route->term) {
        ask_later(lane, asked);
        return;
    }
    bool good = end == CN_PIPE_ANSWERED &&
                cn_reply_get(&reply, bytes, size, &body, &body_size) == 0 &&
                reply.type == CN_REPLY_DONE;
    route->under_way++; /* it stays until the end of this */
    finish(asked, good ? body : NULL, good ? body_size : 0);
    if (!good)
        route_break(route);
    route->under_way--;
    route_free_if_unused(route);
    cn_reply_clear(&reply);
    cn_free(bytes);
}

/* Those that wait, in order, when nothing that was asked before or behind them is under way. */
static void pump(struct cn_remote_lane *lane, struct route *route)
{
    if (route->under_way)
        return;
    route->under_way++;
    while (!cn_list_empty(&route->again)) {
        struct asked *asked = CN_CONTAINER_OF(route->again.next, struct asked, link);
        if (uv_now(lane->objects->loop) >= asked->until_ms) {
            route_break(route);
            break;
        }
        cn_list_remove(&asked->link);
        if (!send_now(lane, asked)) {
            ask_later(lane, asked);
            break;
        }
    }
    route->under_way--;
    route_free_if_unused(route);
}

void cn_remote_sockets_on_time(uv_timer_t *timer)
{
    struct cn_remote_lane *lane = CN_CONTAINER_OF(timer, struct cn_remote_lane, far_timer);
    struct route *route;
    bool waits = false;
    lane->far_pass++;
    while ((route = next_route(lane)))
        pump(lane, route);
    CN_LIST_FOREACH(&lane->far_routes, node)
    {
        waits = waits || !cn_list_empty(&CN_CONTAINER_OF(node, struct route, link)->again);
    }
    if (!waits)
        uv_timer_stop(timer);
}

static void on_timer_closed(uv_handle_t *handle)
{
    asked_free(CN_CONTAINER_OF(handle, struct asked, timer));
}

static void on_over(uv_timer_t *timer)
{
    struct asked *asked = CN_CONTAINER_OF(timer, struct asked, timer);
    asked->done(asked->lane, asked->data, NULL, 0);
    uv_close((uv_handle_t *)timer, on_timer_closed);
}

/* `done` must come later, whatever happens. */
static void ask(void *data, struct cn_lane *worker, const struct cn_ws_asking *asking)
{
    struct cn_remote_lane *lane = cn_remote_lane_of(&worker->object_lane);
    struct cn_question question = {.type = CN_QUESTION_SOCKETS, .lane = asking->to};
    struct asked *asked = CN_NEW(struct asked);
    (void)data;
    *asked = (struct asked){.lane = worker,
                            .until_ms = uv_now(&worker->loop) + AGAIN_MS,
                            .done = asking->done,
                            .data = asking->asked,
                            .bytes = asking->bytes,
                            .size = asking->size};
    if (!lane->pipes) {
        uv_timer_init(&worker->loop, &asked->timer);
        uv_timer_start(&asked->timer, on_over, 0, 0);
        return;
    }
    struct route *route = route_get(lane, asking->disk, asking->to);
    asked->route = route;
    asked->number = ++route->last_number;
    asked->term = route->term;
    cn_list_init(&asked->link);
    cn_question_put(&question, &asked->head);
    if (!cn_list_empty(&route->again) || !send_now(lane, asked))
        ask_later(lane, asked);
}

void cn_remote_sockets_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker,
                             uint64_t ticket, const struct cn_question *question,
                             const uint8_t *body, size_t size)
{
    struct cn_reply reply = {.type = CN_REPLY_DONE};
    struct cn_buf answer = {0};
    if (!lane->worker || question->lane != lane->objects->index ||
        !cn_ws_far_asked(lane->worker, asker->disk, body, size, &answer))
        reply = (struct cn_reply){.type = CN_REPLY_FAILED, .code = CN_EPROTOCOL};
    size_t answer_size = answer.size;
    cn_incoming_reply(lane, ticket, &reply, cn_buf_take(&answer), answer_size);
}

static void break_routes(struct cn_remote_lane *lane, uint64_t disk)
{
    struct route *route;
    lane->far_pass++;
    while ((route = next_route(lane))) {
        if (disk && route->disk != disk)
            continue;
        route->under_way++;
        route_break(route);
        route->under_way--;
        route_free_if_unused(route);
    }
}

void cn_remote_sockets_close(struct cn_remote_lane *lane)
{
    uv_timer_stop(&lane->far_timer);
    break_routes(lane, 0);
}

void cn_remote_sockets_break(struct cn_remote_lane *lane, uint64_t disk)
{
    break_routes(lane, disk);
    if (lane->worker)
        cn_ws_far_break(lane->worker, disk);
}

void cn_remote_sockets_open(struct cn_lane *worker)
{
    struct cn_remote_lane *lane = cn_remote_lane_of(&worker->object_lane);
    const struct cn_remote_options *options = &lane->remote->options;
    lane->worker = worker;
    lane->ws_carrier = (struct cn_ws_carrier){
        .disk = options->disk, .life = options->life, .keep_ms = KEEP_MS, .ask = ask};
    cn_ws_move_tie(worker, &lane->ws_carrier);
}
