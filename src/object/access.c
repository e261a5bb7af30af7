/* SPDX-License-Identifier: Apache-2.0 */
#include "object/access.h"

#include <string.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/loop.h"
#include "object/alarm.h"
#include "object/internal.h"
#include "object/node.h"
#include "store/database.h"

static void finish(struct cn_access *access, int result)
{
    access->result = result;
    uv_sem_post(&access->done); /* the visitor may free it from here on */
}

/* Back from the output gate, on the object's own lane. */
static void on_done(struct cn_envelope *envelope)
{
    struct cn_access *access = envelope->data;
    if (envelope->err.code < 0)
        access->err = envelope->err;
    finish(access, envelope->err.code < 0 ? envelope->err.code : 1);
}

void cn_access_deliver(struct cn_object *object, struct cn_call *call)
{
    struct cn_access *access = call->envelope.data;
    struct cn_err err = {0};
    if (object->transactions) {
        /* Its writes would become part of a transaction that may yet be rolled back. */
        cn_call_fail(call, CN_FAULT_RETRYABLE, CN_EOVERLOADED,
                     "the object is inside a transaction; try again");
        return;
    }
    struct cn_database *db = cn_object_database(object, &err);
    int rc = db ? access->turn(object, db, access->data, &err) : err.code;
    if (rc == 0) {
        cn_call_reply(call, NULL);
        return;
    }
    if (db && cn_database_in_transaction(db))
        cn_database_rollback(db);
    cn_call_fail(call, 0, rc, "%s", err.text);
}

static void suspend(struct cn_access *access)
{
    struct cn_object *object = cn_object_new(access->lane, access->call.ns, &access->key);
    cn_object_suspend(object);
    access->suspended = true;
    finish(access, 0);
}

/* On the lane. */
static void deliver_begin(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_access *access = CN_CONTAINER_OF(mail, struct cn_access, mail);
    struct cn_object_lane *lane = access->lane;
    struct cn_object *object = cn_map_find(&lane->objects, &access->key, sizeof(access->key));
    if (lane->stopping) {
        finish(access, cn_err_set(&access->err, CN_ECLOSED, "the server is stopping"));
    } else if (!cn_lane_shard_of(lane, &access->key)->serves) {
        finish(access, cn_err_set(&access->err, CN_ECLOSED, "%s", CN_SHARD_AWAY));
    } else if (!object) {
        suspend(access);
    } else if (object->state == CN_OBJECT_SUSPENDED) { /* V1 */
        finish(access, cn_err_set(&access->err, CN_ELOCKED,
                                  "another administrative operation has the object"));
    } else if (object->state == CN_OBJECT_RESTORING) {
        finish(access, cn_err_set(&access->err, CN_ELOCKED, "the object is being restored"));
    } else if (access->exclusive) {
        cn_object_reset(object, CN_FAULT_RESET | CN_FAULT_RETRYABLE, CN_ECLOSED, "%s",
                        access->reason);
        suspend(access);
    } else if (object->inbox_count >= CN_OBJECT_INBOX_MAX) {
        finish(access, cn_err_set(&access->err, CN_EOVERLOADED, "the object is overloaded"));
    } else {
        access->call.ns = object->ns;
        cn_envelope_hand_in(&access->call.envelope);
        cn_object_receive(object, &access->call);
    }
    cn_object_lane_step(lane);
}

int cn_access_begin(struct cn_access *access, struct cn_err *err)
{
    CN_ASSERT(access->exclusive || access->turn);
    access->lane = cn_node_owner(access->node, &access->key);
    cn_loop_assert_other(access->lane->loop);
    access->suspended = false;
    access->call = (struct cn_call){
        .kind = CN_CALL_ACCESS,
        .key = access->key,
        .ns = cn_node_namespace_find(access->node, access->key.namespace_id), /* may be NULL */
        .envelope = {.from = cn_desk_place(access->lane->desk),
                     .to = cn_desk_place(access->lane->desk),
                     .on_done = on_done,
                     .data = access},
    };
    access->mail.deliver = deliver_begin;
    cn_may_block_here();
    uv_sem_init(&access->done, 0);
    int rc;
    if (!cn_mailbox_send(access->lane->mailbox, &access->mail)) {
        rc = cn_err_set(err, CN_ECLOSED, "the server is stopping");
    } else {
        uv_sem_wait(&access->done);
        rc = access->result;
        if (rc < 0 && err)
            *err = access->err;
    }
    uv_sem_destroy(&access->done);
    return rc;
}

static void deliver_end(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_access *access = CN_CONTAINER_OF(mail, struct cn_access, mail);
    struct cn_object_lane *lane = access->lane;
    struct cn_object *object = cn_map_find(&lane->objects, &access->key, sizeof(access->key));
    if (object && object->state == CN_OBJECT_SUSPENDED) {
        cn_alarm_look(lane, &access->key); /* the visitor may have changed it */
        cn_object_resume(object);
    }
    uv_sem_post(&access->done);
    cn_object_lane_step(lane);
}

void cn_access_end(struct cn_access *access)
{
    CN_ASSERT(access->suspended);
    cn_loop_assert_other(access->lane->loop);
    access->suspended = false;
    access->mail.deliver = deliver_end;
    cn_may_block_here();
    uv_sem_init(&access->done, 0);
    if (cn_mailbox_send(access->lane->mailbox, &access->mail))
        uv_sem_wait(&access->done);
    uv_sem_destroy(&access->done);
}

struct look {
    struct cn_mail mail;
    struct cn_object_lane *lane;
    const struct cn_object_key *key;
    void (*fn)(struct cn_object_lane *lane, const struct cn_object_key *key, void *data);
    void *data;
    uv_sem_t done;
};

static void deliver_look(struct cn_mail *mail, void *data)
{
    (void)data;
    struct look *look = CN_CONTAINER_OF(mail, struct look, mail);
    look->fn(look->lane, look->key, look->data);
    uv_sem_post(&look->done); /* the visitor may free it from here on */
}

int cn_access_lane(struct cn_node *node, const struct cn_object_key *key,
                   void (*fn)(struct cn_object_lane *lane, const struct cn_object_key *key,
                              void *data),
                   void *data, struct cn_err *err)
{
    struct look look = {.mail = {.deliver = deliver_look},
                        .lane = cn_node_owner(node, key),
                        .key = key,
                        .fn = fn,
                        .data = data};
    cn_loop_assert_other(look.lane->loop);
    cn_may_block_here();
    uv_sem_init(&look.done, 0);
    bool sent = cn_mailbox_send(look.lane->mailbox, &look.mail);
    if (sent)
        uv_sem_wait(&look.done);
    uv_sem_destroy(&look.done);
    return sent ? 0 : cn_err_set(err, CN_ECLOSED, "the server is stopping");
}
