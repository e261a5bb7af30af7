/* SPDX-License-Identifier: Apache-2.0 */
/* worker/ws_far.c - letters between nodes. See ws_far.h.
 *
 * A question is a head and letters, each with its size before it (base/wire.h). An answer is a run
 * of numbers: for each letter that found nobody, the number of the end that sent it. */
#include "worker/ws_far.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/wire.h"
#include "net/ws_conn.h"
#include "net/ws_end.h"
#include "worker/lane.h"
#include "worker/websocket.h"

enum {
    WAIT_MAX = 1 << 20,
    ASKED_MAX = 4,
    TRUNKS_MAX = 4096,
    ERROR_MAX = 1024,
    PARK_MS = 15000,
};

/* All that this lane has with one lane of one life of another node. */
struct trunk {
    struct cn_list link; /* in lane->far_trunks */
    struct cn_lane *lane;
    uint64_t disk, life;
    unsigned to;
    struct cn_list fars;   /* of struct cn_ws_far */
    struct cn_buf waiting; /* a head and letters; empty: none */
    unsigned asked;        /* questions under way, */
    unsigned pins;         /* and functions here that use it: it stays until both are 0 */
    uint64_t keep_ms;      /* loop time of the last KEEP */
    bool full;             /* F5: somebody was told to wait */
    bool corked;           /* letters gather */
    bool orphan;           /* the lane has stopped: answers free it */
};

struct cn_ws_far {
    struct cn_lane *lane;
    struct trunk *trunk;   /* NULL: it is parked (F7) */
    struct cn_list link;   /* in trunk->fars, or lane->far_parked */
    struct cn_ws_end *end; /* ours; the script's or the object's is its peer */
    uint64_t target;       /* the end on the other side */
    bool near;             /* F4: it was claimed here */
    bool attached;
    bool waits;           /* F5 */
    bool told;            /* the other side asks to hold back */
    unsigned doomed;      /* F2: ticks since it was named in an answer; 0: it was not */
    uint64_t until_ms;    /* parked: loop time when it is lost, */
    struct cn_ws_site by; /* and who has asked for it; disk 0: this node's own */
    bool parks;           /* PARK goes out behind what the queue of the end has */
    void (*parked)(void *data, bool is_parked); /* somebody waits for it; NULL: nobody */
    void *parked_data;
};

/* --- as bytes -------------------------------------------------------------------------------- */

enum letter_kind { ATTACH = 1, MESSAGE, CLOSE, HOLD, GONE, KEEP, PARK, PARKED, RESUME };

struct head {
    uint64_t to_life, from_life;
    unsigned from_lane;
};

struct letter {
    unsigned kind;
    uint64_t from, to; /* numbers of ends */
    bool text, clean, hold;
    uint8_t *bytes; /* of a message, or the reason of a close */
    size_t size;
    unsigned code;
    char *error;
    char *protocol; /* of ATTACH: what the client's connection has agreed on */
    bool deflate;
};

static const struct cn_wire_field head_fields[] = {
    CN_WIRE_UINT(1, struct head, to_life, UINT64_MAX),
    CN_WIRE_UINT(2, struct head, from_life, UINT64_MAX),
    CN_WIRE_UINT(3, struct head, from_lane, UINT16_MAX), CN_WIRE_END};

static const struct cn_wire_field letter_fields[] = {
    CN_WIRE_UINT(1, struct letter, kind, UINT16_MAX),
    CN_WIRE_UINT(2, struct letter, from, UINT64_MAX),
    CN_WIRE_UINT(3, struct letter, to, UINT64_MAX),
    CN_WIRE_BOOL(4, struct letter, text),
    CN_WIRE_BOOL(5, struct letter, clean),
    CN_WIRE_BOOL(6, struct letter, hold),
    CN_WIRE_BYTES(7, struct letter, bytes, size, CN_WS_QUEUE_MAX),
    CN_WIRE_UINT(8, struct letter, code, UINT16_MAX),
    CN_WIRE_TEXT(9, struct letter, error, ERROR_MAX),
    CN_WIRE_TEXT(10, struct letter, protocol, ERROR_MAX),
    CN_WIRE_BOOL(11, struct letter, deflate),
    CN_WIRE_END};

/* With its size before it. */
static void put_sized(const struct cn_wire_field *fields, const void *from, struct cn_buf *out)
{
    struct cn_buf bytes = {0};
    cn_wire_put(fields, from, &bytes);
    cn_wire_put_varint(out, bytes.size);
    cn_buf_append(out, bytes.data, bytes.size);
    cn_buf_fini(&bytes);
}

static bool get_sized(const struct cn_wire_field *fields, void *to, const uint8_t **at,
                      const uint8_t *end)
{
    uint64_t size;
    if (!cn_wire_get_varint(at, end, &size) || size > (size_t)(end - *at))
        return false;
    const uint8_t *bytes = *at;
    *at += size;
    return cn_wire_get(fields, to, bytes, size, NULL) == 0;
}

/* --- trunks ---------------------------------------------------------------------------------- */

static void flush(struct trunk *trunk);
static void take_items(struct cn_ws_far *far);
static void lose(struct cn_ws_far *far);
static void on_answer(struct cn_lane *lane, void *asked, const uint8_t *answer, size_t size);

static struct trunk *trunk_find(struct cn_lane *lane, uint64_t disk, uint64_t life, unsigned to)
{
    CN_LIST_FOREACH(&lane->far_trunks, node)
    {
        struct trunk *trunk = CN_CONTAINER_OF(node, struct trunk, link);
        if (trunk->disk == disk && trunk->life == life && trunk->to == to)
            return trunk;
    }
    return NULL;
}

/* Found or made; NULL: there are too many. */
static struct trunk *trunk_get(struct cn_lane *lane, uint64_t disk, uint64_t life, unsigned to)
{
    struct trunk *trunk = trunk_find(lane, disk, life, to);
    if (trunk)
        return trunk;
    if (cn_list_length(&lane->far_trunks) >= TRUNKS_MAX)
        return NULL;
    trunk = CN_NEW(struct trunk);
    *trunk = (struct trunk){.lane = lane, .disk = disk, .life = life, .to = to};
    trunk->keep_ms = uv_now(&lane->loop);
    cn_list_init(&trunk->fars);
    cn_list_push_back(&lane->far_trunks, &trunk->link);
    return trunk;
}

static void trunk_free_if_unused(struct trunk *trunk)
{
    if (trunk->asked || trunk->pins || trunk->waiting.size || !cn_list_empty(&trunk->fars))
        return;
    cn_list_remove(&trunk->link);
    cn_buf_fini(&trunk->waiting);
    cn_free(trunk);
}

/* The functions here that run code of owners, by which it might go. */
static void pin(struct trunk *trunk)
{
    trunk->pins++;
}

static void unpin(struct trunk *trunk)
{
    CN_ASSERT(trunk->pins > 0);
    trunk->pins--;
    trunk_free_if_unused(trunk);
}

/* F1, F2: all of its conversations are lost, one after the other; code of their owners runs. */
static void trunk_lose(struct trunk *trunk)
{
    cn_buf_clear(&trunk->waiting);
    while (!cn_list_empty(&trunk->fars))
        lose(CN_CONTAINER_OF(trunk->fars.next, struct cn_ws_far, link));
    cn_buf_clear(&trunk->waiting); /* what they said on their way out */
}

/* Room again: those who were told to wait go on, until it is full again. */
static void refill(struct trunk *trunk)
{
    struct cn_list later;
    if (!trunk->full)
        return;
    trunk->full = false;
    cn_list_init(&later);
    cn_list_splice(&later, &trunk->fars);
    while (!cn_list_empty(&later)) {
        struct cn_list *node = cn_list_take_front(&later);
        struct cn_ws_far *far = CN_CONTAINER_OF(node, struct cn_ws_far, link);
        cn_list_push_back(&trunk->fars, node);
        if (!far->waits)
            continue;
        far->waits = false;
        take_items(far);
    }
}

/* The numbers in an answer. How the other side has ended may be on its way still: an answer can
 * overtake it. */
static void doom_named(struct trunk *trunk, const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    uint64_t handle;
    while (cn_wire_get_varint(&at, end, &handle)) {
        struct cn_ws_end *own = cn_websocket_find(trunk->lane, (double)handle);
        struct cn_ws_far *far = own ? cn_ws_far_of(own) : NULL;
        if (far && far->trunk == trunk && !far->doomed)
            far->doomed = 1;
    }
}

static void on_answer(struct cn_lane *lane, void *asked, const uint8_t *answer, size_t size)
{
    struct trunk *trunk = asked;
    cn_loop_assert_owner(&lane->loop);
    CN_ASSERT(trunk->asked > 0);
    trunk->asked--;
    if (trunk->orphan) {
        trunk_free_if_unused(trunk);
        return;
    }
    pin(trunk);
    if (!answer)
        trunk_lose(trunk);
    else
        doom_named(trunk, answer, size);
    flush(trunk);
    refill(trunk);
    unpin(trunk);
}

/* --- questions to this node ------------------------------------------------------------------ */

struct errand {
    struct cn_mail mail;
    struct cn_lane *from;
    uint64_t disk;
    struct cn_buf bytes; /* the question; then the answer */
    bool good;
    void *asked;
};

static void errand_free(struct errand *errand)
{
    cn_buf_fini(&errand->bytes);
    cn_free(errand);
}

static void errand_back(struct cn_mail *mail, void *data)
{
    struct errand *errand = CN_CONTAINER_OF(mail, struct errand, mail);
    const uint8_t *answer = errand->bytes.data ? errand->bytes.data : (const uint8_t *)"";
    on_answer(data, errand->asked, errand->good ? answer : NULL, errand->bytes.size);
    errand_free(errand);
}

static void errand_out(struct cn_mail *mail, void *data)
{
    struct errand *errand = CN_CONTAINER_OF(mail, struct errand, mail);
    struct cn_buf answer = {0};
    errand->good =
        cn_ws_far_asked(data, errand->disk, errand->bytes.data, errand->bytes.size, &answer);
    cn_buf_fini(&errand->bytes);
    errand->bytes = answer;
    mail->deliver = errand_back;
    if (!cn_mailbox_send(&errand->from->mailbox, mail))
        errand_free(errand); /* that lane has ended, and its trunks with it */
}

/* By mail, also to the lane itself: `done` must come later. */
static void ask_here(struct trunk *trunk, struct cn_buf bytes)
{
    struct cn_lane *lane = trunk->lane;
    struct errand *errand = CN_NEW(struct errand);
    struct cn_object_lane *to = cn_node_lane(lane->options.node, trunk->to);
    *errand = (struct errand){.from = lane, .disk = trunk->disk, .bytes = bytes, .asked = trunk};
    errand->mail.deliver = errand_out;
    if (to && cn_mailbox_send(to->mailbox, &errand->mail))
        return;
    errand->mail.deliver = errand_back; /* not good: it fails */
    if (!cn_mailbox_send(&lane->mailbox, &errand->mail))
        errand_free(errand);
}

static void flush(struct trunk *trunk)
{
    const struct cn_ws_carrier *carrier = trunk->lane->carrier;
    if (!trunk->waiting.size || trunk->asked >= ASKED_MAX || trunk->corked)
        return;
    struct cn_buf bytes = trunk->waiting;
    trunk->waiting = (struct cn_buf){0};
    trunk->asked++;
    if (trunk->disk == carrier->disk) {
        ask_here(trunk, bytes);
        return;
    }
    struct cn_ws_asking asking = {trunk->disk, trunk->to, bytes.data, bytes.size, on_answer, trunk};
    carrier->ask(carrier->data, trunk->lane, &asking);
}

static void post(struct cn_ws_far *far, struct letter letter)
{
    struct trunk *trunk = far->trunk;
    struct cn_lane *lane = trunk->lane;
    letter.from = far->end->handle;
    letter.to = far->target;
    if (!trunk->waiting.size) {
        struct head head = {trunk->life, lane->carrier->life, lane->options.index};
        put_sized(head_fields, &head, &trunk->waiting);
    }
    put_sized(letter_fields, &letter, &trunk->waiting);
    flush(trunk);
}

/* --- far ends -------------------------------------------------------------------------------- */

static void end_ready(struct cn_ws_end *end);
static void end_hold(struct cn_ws_end *end, bool hold);
static void end_gone(struct cn_ws_end *end);
static const struct cn_ws_end_ops far_ops = {end_ready, end_hold, end_gone};

struct cn_ws_far *cn_ws_far_of(struct cn_ws_end *end)
{
    return end->ops == &far_ops ? end->owner : NULL;
}

static struct cn_ws_far *far_new(struct trunk *trunk, struct cn_ws_end *end, uint64_t target,
                                 bool near)
{
    struct cn_ws_far *far = CN_NEW(struct cn_ws_far);
    *far = (struct cn_ws_far){
        .lane = trunk->lane, .trunk = trunk, .end = end, .target = target, .near = near};
    cn_list_push_back(&trunk->fars, &far->link);
    return far;
}

static void tell_parked(struct cn_ws_far *far, bool is_parked)
{
    void (*parked)(void *data, bool is_parked) = far->parked;
    far->parked = NULL;
    if (parked)
        parked(far->parked_data, is_parked);
}

/* Nobody is told. */
static void forget(struct cn_ws_far *far)
{
    struct cn_ws_end *end = far->end;
    struct trunk *trunk = far->trunk;
    cn_list_remove(&far->link);
    tell_parked(far, false);
    cn_free(far);
    cn_ws_end_release(end);
    if (trunk)
        trunk_free_if_unused(trunk);
}

void cn_ws_far_free(struct cn_ws_far *far)
{
    if (far->attached)
        post(far, (struct letter){.kind = GONE});
    forget(far);
}

/* The other side is lost: F4. */
static void lose(struct cn_ws_far *far)
{
    struct cn_ws_close close = {far->near ? CN_WS_RESTART : CN_WS_ABNORMAL, far->near, "", 0, NULL};
    struct cn_lane *lane = far->lane;
    struct cn_ws_end *end = far->end;
    double handle = (double)end->handle;
    far->attached = false; /* nobody there is to be told */
    if (far->near)
        cn_ws_end_close(end, &close);
    else
        cn_ws_end_cut(end, &close);
    /* It may have gone with it. */
    end = cn_websocket_find(lane, handle);
    if (end && cn_ws_far_of(end) == far)
        forget(far);
}

struct cn_ws_end *cn_ws_far_new(struct cn_lane *lane, const struct cn_ws_site *site)
{
    struct cn_ws_end *ours, *theirs;
    cn_loop_assert_owner(&lane->loop);
    CN_ASSERT(lane->carrier);
    struct trunk *trunk = trunk_get(lane, site->disk, site->life, site->lane);
    if (!trunk)
        return NULL;
    cn_ws_pair_new(&theirs, &ours);
    if (!cn_websocket_number(lane, ours)) {
        cn_ws_end_release(theirs);
        trunk_free_if_unused(trunk);
        return NULL;
    }
    cn_ws_end_claim(ours, &far_ops, far_new(trunk, ours, site->handle, true));
    return theirs;
}

void cn_ws_far_attach(struct cn_ws_far *far)
{
    if (far->attached)
        return;
    far->attached = true;
    post(far, (struct letter){
                  .kind = ATTACH, .protocol = far->end->protocol, .deflate = far->end->deflate});
}

static void post_item(struct cn_ws_far *far, const struct cn_ws_item *item)
{
    const struct cn_ws_message *message = item->message;
    const struct cn_ws_close *close = &item->close;
    if (message)
        post(far, (struct letter){.kind = MESSAGE,
                                  .text = message->text,
                                  .bytes = (uint8_t *)message->bytes,
                                  .size = message->size});
    else
        post(far, (struct letter){.kind = CLOSE,
                                  .code = close->code,
                                  .clean = close->clean,
                                  .bytes = (uint8_t *)close->reason,
                                  .size = close->reason_size,
                                  .error = (char *)close->error});
}

/* What the queue of the end has, as far as the trunk has room (F5). The far end may go with it. */
static void take_items(struct cn_ws_far *far)
{
    struct trunk *trunk = far->trunk;
    struct cn_ws_item *item;
    if (!trunk) { /* F7 */
        cn_ws_end_hold(far->end, true);
        return;
    }
    while (trunk->waiting.size < WAIT_MAX && (item = cn_ws_end_take(far->end))) {
        post_item(far, item);
        cn_ws_item_free(item);
    }
    far->waits = !cn_list_empty(&far->end->queue);
    trunk->full = trunk->full || far->waits;
    if (cn_ws_end_over(far->end)) {
        cn_ws_far_free(far);
        return;
    }
    cn_ws_end_hold(far->end, far->waits || far->told);
    if (far->parks && !far->waits) {
        far->parks = false;
        post(far, (struct letter){.kind = PARK});
    }
}

static void end_ready(struct cn_ws_end *end)
{
    struct cn_ws_far *far = end->owner;
    if (far->trunk)
        cn_ws_far_attach(far);
    take_items(far);
}

static void end_hold(struct cn_ws_end *end, bool hold)
{
    struct cn_ws_far *far = end->owner;
    if (far->attached)
        post(far, (struct letter){.kind = HOLD, .hold = hold});
}

static void end_gone(struct cn_ws_end *end)
{
    cn_ws_far_free(end->owner);
}

/* --- moves: F7 ------------------------------------------------------------------------------- */

/* From now on it belongs to no trunk, and nobody is told what it does. */
static void become_parked(struct cn_ws_far *far)
{
    cn_list_remove(&far->link);
    far->by = far->trunk ? cn_ws_far_site(far) : (struct cn_ws_site){0};
    far->trunk = NULL;
    far->attached = false;
    far->until_ms = uv_now(&far->lane->loop) + PARK_MS;
    cn_list_push_back(&far->lane->far_parked, &far->link);
}

void cn_ws_far_park(struct cn_lane *lane, struct cn_ws_end *end, struct cn_ws_site *site)
{
    struct cn_ws_far *far = CN_NEW(struct cn_ws_far);
    cn_loop_assert_owner(&lane->loop);
    CN_ASSERT(lane->carrier && end->handle);
    *far = (struct cn_ws_far){.lane = lane, .end = end, .near = true};
    cn_list_init(&far->link);
    become_parked(far);
    *site = (struct cn_ws_site){lane->carrier->disk, lane->carrier->life, lane->options.index,
                                end->handle};
    cn_ws_end_claim(end, &far_ops, far);
}

void cn_ws_far_ask_park(struct cn_ws_far *far, void (*parked)(void *data, bool is_parked),
                        void *data)
{
    CN_ASSERT(!far->near && far->attached && !far->parked);
    far->parked = parked;
    far->parked_data = data;
    if (cn_list_empty(&far->end->queue))
        post(far, (struct letter){.kind = PARK});
    else
        far->parks = true;
}

bool cn_ws_far_is_near(const struct cn_ws_far *far)
{
    return far->near;
}

struct cn_ws_site cn_ws_far_site(const struct cn_ws_far *far)
{
    return (struct cn_ws_site){far->trunk->disk, far->trunk->life, far->trunk->to, far->target};
}

void cn_ws_far_hand_over(struct cn_ws_far *far)
{
    far->attached = false;
    forget(far);
}

void cn_ws_far_unpark(struct cn_lane *lane, uint64_t handle)
{
    struct cn_ws_end *end = cn_websocket_find(lane, (double)handle);
    struct cn_ws_far *far = end ? cn_ws_far_of(end) : NULL;
    if (far && !far->trunk)
        lose(far);
}

struct cn_ws_end *cn_ws_far_resume(struct cn_lane *lane, const struct cn_ws_site *site)
{
    struct cn_ws_end *theirs = cn_ws_far_new(lane, site);
    if (!theirs)
        return NULL;
    struct cn_ws_far *far = cn_ws_far_of(theirs->peer);
    far->near = false;
    far->attached = true;
    post(far, (struct letter){.kind = RESUME});
    return theirs;
}

/* The side in front of a client goes on with another node. */
static void resume(struct cn_ws_far *far, struct trunk *trunk, uint64_t target)
{
    cn_list_remove(&far->link);
    cn_list_push_back(&trunk->fars, &far->link);
    far->trunk = trunk;
    far->target = target;
    far->attached = true;
    far->told = false; /* by the one before, */
    far->doomed = 0;   /* like this */
    if (far->end->peer->holding)
        post(far, (struct letter){.kind = HOLD, .hold = true});
    take_items(far);
}

/* --- what comes ------------------------------------------------------------------------------ */

static void deliver_message(struct cn_ws_end *end, const struct letter *letter)
{
    struct cn_ws_message *message = cn_ws_message_new(letter->text, letter->bytes, letter->size);
    struct cn_ws_close no_memory = {CN_WS_INTERNAL_ERROR, true, "", 0, NULL};
    if (!message) {
        cn_ws_end_cut(end, &no_memory);
        return;
    }
    (void)cn_ws_end_send(end, message); /* a full queue ends the pair by itself */
    cn_ws_message_unref(message);
}

static void deliver_close(struct cn_ws_end *end, const struct letter *letter)
{
    struct cn_ws_close close = {(uint16_t)letter->code, letter->clean,
                                letter->size ? (const char *)letter->bytes : "", letter->size,
                                letter->error};
    if (close.code == CN_WS_ABNORMAL)
        cn_ws_end_cut(end, &close);
    else
        cn_ws_end_close(end, &close);
}

/* Who asked it to park has given up. */
static bool ends_parked(const struct cn_ws_far *far, const struct trunk *trunk,
                        const struct letter *letter)
{
    const struct cn_ws_site *by = &far->by;
    return !far->trunk && (letter->kind == CLOSE || letter->kind == GONE) &&
           by->disk == trunk->disk && by->life == trunk->life && by->lane == trunk->to &&
           by->handle == letter->from;
}

/* Whether it has found somebody. */
static bool deliver(struct trunk *trunk, const struct letter *letter)
{
    struct cn_lane *lane = trunk->lane;
    struct cn_ws_end *end = cn_websocket_find(lane, (double)letter->to);
    struct cn_ws_far *far = end ? cn_ws_far_of(end) : NULL;
    if (letter->kind == ATTACH) {
        if (!end || end->state != CN_WS_END_TRANSIT)
            return false;
        far = far_new(trunk, end, letter->from, false);
        far->attached = true;
        cn_free(end->peer->protocol);
        end->peer->protocol = letter->protocol ? cn_strdup(letter->protocol) : NULL;
        end->peer->deflate = letter->deflate;
        cn_ws_end_claim(end, &far_ops, far);
        return true;
    }
    if (letter->kind == RESUME) {
        if (!far || far->trunk || !far->near)
            return false;
        resume(far, trunk, letter->from);
        return true;
    }
    if (far && ends_parked(far, trunk, letter)) {
        lose(far);
        return true;
    }
    if (!far || far->trunk != trunk || far->target != letter->from)
        return letter->kind == GONE;
    if (letter->kind == PARK && far->near) {
        post(far, (struct letter){.kind = PARKED});
        become_parked(far);
        return true;
    }
    if (letter->kind == PARKED) {
        tell_parked(far, true);
        return true;
    }
    if (letter->kind == GONE) {
        far->attached = false; /* it need not be told */
        cn_ws_far_free(far);
    } else if (letter->kind == HOLD) {
        far->told = letter->hold;
        cn_ws_end_hold(end, far->told || far->waits);
    } else if (letter->kind == MESSAGE) {
        deliver_message(end, letter);
    } else if (letter->kind == CLOSE) {
        deliver_close(end, letter);
    }
    /* The end may have gone with it. */
    end = cn_websocket_find(lane, (double)letter->to);
    if (end && cn_ws_far_of(end) == far && cn_ws_end_over(end))
        cn_ws_far_free(far);
    return true;
}

static bool close_is_good(const struct letter *letter)
{
    return letter->size <= CN_WS_REASON_MAX &&
           cn_utf8_valid((const char *)letter->bytes, letter->size) &&
           letter->code >= CN_WS_NORMAL && letter->code < 5000;
}

static bool letter_is_good(const struct letter *letter)
{
    if (letter->kind == CLOSE)
        return close_is_good(letter);
    return letter->kind != MESSAGE || !letter->text ||
           cn_utf8_valid((const char *)letter->bytes, letter->size);
}

/* F6: nothing is done before all of it has been looked at. */
static bool question_is_good(const uint8_t *at, const uint8_t *end)
{
    struct letter letter = {0};
    bool good = true;
    while (good && at < end)
        good = get_sized(letter_fields, &letter, &at, end) && letter_is_good(&letter);
    cn_wire_clear(letter_fields, &letter);
    return good;
}

bool cn_ws_far_asked(struct cn_lane *lane, uint64_t disk, const uint8_t *bytes, size_t size,
                     struct cn_buf *answer)
{
    const uint8_t *at = bytes, *end = bytes + size;
    struct head head = {0};
    struct letter letter = {0};
    cn_loop_assert_owner(&lane->loop);
    if (!get_sized(head_fields, &head, &at, end) || !question_is_good(at, end))
        return false;
    bool ours = lane->carrier && head.to_life == lane->carrier->life; /* F3 */
    struct trunk *trunk = ours ? trunk_get(lane, disk, head.from_life, head.from_lane) : NULL;
    if (trunk)
        pin(trunk);
    while (at < end) {
        (void)get_sized(letter_fields, &letter, &at, end); /* it was good */
        if (!trunk || !deliver(trunk, &letter))
            cn_wire_put_varint(answer, letter.from);
    }
    cn_wire_clear(letter_fields, &letter);
    if (trunk)
        unpin(trunk);
    return true;
}

/* --- the lane -------------------------------------------------------------------------------- */

void cn_ws_far_break(struct cn_lane *lane, uint64_t disk)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_list rest;
    cn_list_init(&rest);
    cn_list_splice(&rest, &lane->far_trunks);
    while (!cn_list_empty(&rest)) {
        struct cn_list *node = cn_list_take_front(&rest);
        struct trunk *trunk = CN_CONTAINER_OF(node, struct trunk, link);
        cn_list_push_back(&lane->far_trunks, node);
        if (trunk->disk != disk)
            continue;
        pin(trunk);
        trunk_lose(trunk);
        unpin(trunk);
    }
}

/* The oldest that was named a tick ago, or NULL. */
static struct cn_ws_far *find_doomed(const struct trunk *trunk)
{
    CN_LIST_FOREACH(&trunk->fars, node)
    {
        struct cn_ws_far *far = CN_CONTAINER_OF(node, struct cn_ws_far, link);
        if (far->doomed > 1)
            return far;
    }
    return NULL;
}

static void lose_doomed(struct trunk *trunk)
{
    struct cn_ws_far *far;
    while ((far = find_doomed(trunk)))
        lose(far);
    CN_LIST_FOREACH(&trunk->fars, node)
    {
        far = CN_CONTAINER_OF(node, struct cn_ws_far, link);
        far->doomed += far->doomed > 0;
    }
}

/* F2 */
void cn_ws_far_lane_tick(struct cn_lane *lane)
{
    uint64_t now = uv_now(&lane->loop);
    struct cn_list rest;
    cn_loop_assert_owner(&lane->loop);
    cn_list_init(&rest);
    cn_list_splice(&rest, &lane->far_trunks);
    while (!cn_list_empty(&rest)) {
        struct cn_list *node = cn_list_take_front(&rest);
        struct trunk *trunk = CN_CONTAINER_OF(node, struct trunk, link);
        cn_list_push_back(&lane->far_trunks, node);
        pin(trunk);
        lose_doomed(trunk);
        unpin(trunk);
    }
    CN_LIST_FOREACH(&lane->far_trunks, node)
    {
        struct trunk *trunk = CN_CONTAINER_OF(node, struct trunk, link);
        if (now - trunk->keep_ms < lane->carrier->keep_ms || trunk->waiting.size >= WAIT_MAX)
            continue;
        trunk->keep_ms = now;
        trunk->corked = true; /* one question with all of them, not one each */
        CN_LIST_FOREACH(&trunk->fars, each)
        {
            struct cn_ws_far *far = CN_CONTAINER_OF(each, struct cn_ws_far, link);
            if (far->attached)
                post(far, (struct letter){.kind = KEEP});
        }
        trunk->corked = false;
        flush(trunk);
    }
    while (!cn_list_empty(&lane->far_parked)) { /* the oldest first */
        struct cn_ws_far *far = CN_CONTAINER_OF(lane->far_parked.next, struct cn_ws_far, link);
        if (far->until_ms > now)
            break;
        lose(far);
    }
}

void cn_ws_far_lane_stop(struct cn_lane *lane)
{
    cn_loop_assert_owner(&lane->loop);
    struct cn_list *node;
    while ((node = cn_list_take_front(&lane->far_trunks))) {
        struct trunk *trunk = CN_CONTAINER_OF(node, struct trunk, link);
        CN_ASSERT(cn_list_empty(&trunk->fars) && !trunk->pins);
        cn_buf_clear(&trunk->waiting);
        trunk->orphan = true;
        trunk_free_if_unused(trunk);
    }
}
