/* SPDX-License-Identifier: Apache-2.0 */
/* module/letter.c - calls to what somebody has lent, by the address of its owner (object/lent.h): a
 * call of the kind CN_CALL_OTHER to an object, a letter to a worker. */
#include <string.h>

#include "base/mem.h"
#include "module/lent.h"
#include "module/pending.h"
#include "object/lent.h"
#include "object/message.h"
#include "object/node.h"

struct sent {
    struct cn_pending base;
    struct cn_message message; /* to an object */
    struct cn_lent_letter letter;
    char *method; /* owned: of the letter */
};

static void sent_free(struct sent *sent)
{
    cn_message_fini(&sent->message);
    cn_free(sent->letter.bytes);
    cn_free(sent->method);
    cn_free(sent);
}

static void sent_ended(struct sent *sent, const struct cn_envelope *envelope, const uint8_t *result,
                       size_t size)
{
    cairn_object *self = cn_pending_leave(&sent->base);
    if (self) {
        struct cn_pending_end end = {envelope->err.code ? envelope->err.text : NULL,
                                     envelope->faults, result, size, NULL};
        cn_pending_tell(self, &sent->base, &end);
    }
    sent_free(sent);
}

static void sent_dropped(struct sent *sent)
{
    cairn_object *self = cn_pending_leave(&sent->base);
    if (self)
        cn_pending_let_go(self);
    sent_free(sent);
}

static struct sent *sent_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(cn_message_of(envelope), struct sent, message);
}

static void call_done(struct cn_envelope *envelope)
{
    struct sent *sent = sent_of(envelope);
    cn_message_settle(&sent->message);
    sent_ended(sent, envelope, sent->message.result, sent->message.result_size);
}

static void call_dropped(struct cn_envelope *envelope)
{
    sent_dropped(sent_of(envelope));
}

static void letter_done(struct cn_lent_letter *letter, const struct cn_envelope *envelope,
                        const uint8_t *result, size_t size)
{
    sent_ended(CN_CONTAINER_OF(letter, struct sent, letter), envelope, result, size);
}

static void letter_dropped(struct cn_lent_letter *letter)
{
    sent_dropped(CN_CONTAINER_OF(letter, struct sent, letter));
}

/* Fills in a call to an object and sends it. */
static void post(struct cn_message *message, const struct cn_lent_address *to,
                 struct cn_object_lane *lane, struct cn_object *gate)
{
    struct cn_call *call = &message->call;
    call->kind = CN_CALL_OTHER;
    call->payload = message;
    call->size = message->size;
    call->ns = to->ns;
    call->key = to->key;
    call->envelope.from = cn_desk_place(lane->desk);
    cn_call_send(call, gate);
}

static const char gone[] = "what was lent is gone: its owner has ended";

int cn_compiled_call_lent(cairn_object *self, const struct cn_compiled_lent_call *call)
{
    struct cn_object_lane *lane = self->object ? self->object->lane : self->host->objects;
    struct cn_lent_address to = {.kind = CN_LENT_NOBODY};
    int rc = cn_pending_admit(self);
    if (lane)
        to = cn_lent_parse(lane->node, call->address);
    if (rc == 0)
        rc = cn_pending_depth(self);
    if (rc == 0 && (to.kind == CN_LENT_NOBODY || (to.kind == CN_LENT_WORKER && !lane->send_lent)))
        rc = cn_compiled_refuse(self, CAIRN_ECLOSED, gone);
    if (rc < 0) {
        cn_free(call->bytes);
        return rc;
    }
    struct sent *sent = CN_NEW(struct sent);
    cn_pending_start(&sent->base, self, call->done, call->data);
    sent->base.ended = call->ended;
    char *method = cn_sprintf("%.0f:%s", call->number, call->method);
    struct cn_origin origin = self->origin;
    origin.depth++;
    if (to.kind == CN_LENT_OBJECT) {
        sent->message.method = method;
        sent->message.bytes = call->bytes;
        sent->message.size = call->size;
        sent->message.call.envelope.origin = origin;
        sent->message.call.envelope.on_done = call_done;
        sent->message.call.envelope.drop = call_dropped;
        post(&sent->message, &to, lane, self->object);
        return 0;
    }
    sent->method = method;
    sent->letter = (struct cn_lent_letter){.lane = to.lane,
                                           .serial = to.serial,
                                           .disk = to.disk,
                                           .life = to.life,
                                           .method = method,
                                           .bytes = call->bytes,
                                           .size = call->size,
                                           .origin = origin,
                                           .done = letter_done,
                                           .dropped = letter_dropped};
    if (lane->send_lent(lane, &sent->letter, self->object))
        return 0;
    sent_dropped(sent);
    return cn_compiled_refuse(self, CAIRN_ECLOSED, gone);
}

/* --- what lasts how long --------------------------------------------------------------------- */

/* "~retain" and "~release": nobody waits for the answer, and an object that goes sends them too. */
struct note {
    struct cn_message message; /* of one to an object */
    struct cn_lent_letter letter;
};

static void note_free(struct cn_envelope *envelope)
{
    struct note *note = CN_CONTAINER_OF(cn_message_of(envelope), struct note, message);
    cn_message_fini(&note->message);
    cn_free(note);
}

static void note_dropped(struct cn_lent_letter *letter)
{
    struct note *note = CN_CONTAINER_OF(letter, struct note, letter);
    cn_free(letter->bytes);
    cn_free(note);
}

static void note_done(struct cn_lent_letter *letter, const struct cn_envelope *envelope,
                      const uint8_t *result, size_t size)
{
    note_dropped(letter);
}

static uint8_t *number_bytes(double number, size_t *size)
{
    cairn_builder builder;
    struct cn_err err;
    cn_builder_init(&builder, 64);
    cn_build_number(&builder, number);
    uint8_t *bytes = cn_builder_take(&builder, size, &err);
    cn_builder_fini(&builder);
    return bytes;
}

void cn_compiled_note_lent(cairn_object *self, const char *method, const char *address,
                           double number)
{
    struct cn_object_lane *lane = self->object ? self->object->lane : self->host->objects;
    struct cn_object *gate = cn_compiled_is_gone(self) || !self->running ? NULL : self->object;
    if (!lane || lane->stopping)
        return;
    struct cn_lent_address to = cn_lent_parse(lane->node, address);
    if (to.kind == CN_LENT_NOBODY || (to.kind == CN_LENT_WORKER && !lane->send_lent))
        return;
    struct note *note = CN_NEW(struct note);
    size_t size;
    uint8_t *bytes = number_bytes(number, &size);
    if (to.kind == CN_LENT_OBJECT) {
        note->message.method = cn_strdup(method);
        note->message.bytes = bytes;
        note->message.size = size;
        note->message.call.envelope.on_done = note_free;
        note->message.call.envelope.drop = note_free;
        post(&note->message, &to, lane, gate);
        return;
    }
    note->letter = (struct cn_lent_letter){.lane = to.lane,
                                           .serial = to.serial,
                                           .disk = to.disk,
                                           .life = to.life,
                                           .method = method,
                                           .bytes = bytes,
                                           .size = size,
                                           .done = note_done,
                                           .dropped = note_dropped};
    if (!lane->send_lent(lane, &note->letter, gate))
        note_dropped(&note->letter);
}
