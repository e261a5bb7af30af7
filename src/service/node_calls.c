/* SPDX-License-Identifier: Apache-2.0 */
#include "service/node_calls.h"

#include <string.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/def.h"
#include "service/service.h"

size_t cn_node_calls_list(const struct cn_services *services, struct cn_other items[], size_t max)
{
    const struct cn_node_calls *others = services->others;
    return others ? others->list(others->data, items, max) : 0;
}

void cn_node_calls_ask(struct cn_object_lane *lane, struct cn_node_calls_question *question)
{
    const struct cn_node_calls *others = ((struct cn_services *)cn_node_data(lane->node))->others;
    CN_ASSERT(others && question->asked.size <= CN_OTHERS_SIZE_MAX);
    cn_loop_assert_owner(lane->loop);
    others->ask(others->data, lane, question);
}

/* --- waiting --------------------------------------------------------------------------------- */

struct waiter {
    struct cn_mail mail;
    struct cn_object_lane *lane;
    struct cn_node_calls_question *question;
    uv_sem_t done;
};

static void on_waited(struct cn_node_calls_question *question)
{
    uv_sem_post(&((struct waiter *)question->data)->done);
}

static void deliver_waiter(struct cn_mail *mail, void *data)
{
    (void)data;
    struct waiter *waiter = CN_CONTAINER_OF(mail, struct waiter, mail);
    cn_node_calls_ask(waiter->lane, waiter->question);
}

int cn_node_calls_wait(struct cn_node *node, struct cn_node_calls_question *question,
                       struct cn_err *err)
{
    struct waiter waiter = {
        .mail.deliver = deliver_waiter, .lane = cn_node_lane(node, 0), .question = question};
    if (!waiter.lane)
        return cn_err_set(err, CN_ECLOSED, "the server is starting");
    cn_loop_assert_other(waiter.lane->loop);
    question->done = on_waited;
    question->data = &waiter;
    cn_may_block_here();
    uv_sem_init(&waiter.done, 0);
    bool sent = cn_mailbox_send(waiter.lane->mailbox, &waiter.mail);
    if (sent)
        uv_sem_wait(&waiter.done);
    uv_sem_destroy(&waiter.done);
    if (!sent)
        return cn_err_set(err, CN_ECLOSED, "the server is stopping");
    if (question->err.code)
        *err = question->err;
    return question->err.code;
}

/* --- the door -------------------------------------------------------------------------------- */

struct posted {
    struct cn_mail mail;
    struct cn_object_lane *lane;
    struct cn_node_calls_question *question;
};

static void deliver_posted(struct cn_mail *mail, void *data)
{
    (void)data;
    struct posted *posted = CN_CONTAINER_OF(mail, struct posted, mail);
    cn_node_calls_ask(posted->lane, posted->question);
    cn_free(posted);
}

bool cn_node_calls_post(struct cn_node *node, struct cn_node_calls_question *question)
{
    struct cn_object_lane *lane = cn_node_lane(node, 0);
    if (!lane)
        return false;
    struct posted *posted = CN_NEW(struct posted);
    *posted = (struct posted){.mail.deliver = deliver_posted, .lane = lane, .question = question};
    if (cn_mailbox_send(lane->mailbox, &posted->mail))
        return true;
    cn_free(posted);
    return false;
}

void cn_node_calls_ticket_free(struct cn_node_calls_ticket *ticket)
{
    cn_buf_fini(&ticket->answer);
    cn_free(ticket);
}

void cn_node_calls_answer(struct cn_node_calls_ticket *ticket)
{
    ticket->mail.deliver = ticket->deliver;
    if (!cn_mailbox_send(ticket->mailbox, &ticket->mail))
        cn_node_calls_ticket_free(ticket); /* E4 */
}

/* --- all of them ------------------------------------------------------------------------------ */

struct telling {
    size_t left;
    unsigned failed;
    struct cn_err err; /* of one that failed */
    void (*done)(void *data, unsigned failed, const struct cn_err *err);
    void *data;
    size_t count;
    struct told {
        struct cn_node_calls_question question;
        struct cn_other other;
    } items[];
};

static void on_told(struct cn_node_calls_question *question)
{
    struct telling *telling = question->data;
    const struct told *told = CN_CONTAINER_OF(question, struct told, question);
    if (question->err.code) {
        telling->failed++;
        cn_err_set(&telling->err, question->err.code, "node %s: %s", told->other.name,
                   question->err.text);
    }
    if (--telling->left)
        return;
    telling->done(telling->data, telling->failed, &telling->err);
    for (size_t i = 0; i < telling->count; i++) {
        cn_buf_fini(&telling->items[i].question.asked);
        cn_buf_fini(&telling->items[i].question.answer);
    }
    cn_free(telling);
}

bool cn_node_calls_tell(struct cn_object_lane *lane, const struct cn_service_def *def,
                        const void *bytes, size_t size,
                        void (*done)(void *data, unsigned failed, const struct cn_err *err),
                        void *data)
{
    struct cn_other others[CN_OTHERS_MAX];
    size_t count = cn_node_calls_list(cn_node_data(lane->node), others, CN_OTHERS_MAX);
    if (!count)
        return false;
    struct telling *telling = cn_alloc_zero(sizeof(*telling) + count * sizeof(struct told));
    telling->left = telling->count = count;
    telling->done = done;
    telling->data = data;
    for (size_t i = 0; i < count; i++) {
        struct told *told = &telling->items[i];
        told->other = others[i];
        told->question = (struct cn_node_calls_question){
            .disk = others[i].disk, .def = def, .done = on_told, .data = telling};
        cn_buf_append(&told->question.asked, bytes, size);
    }
    for (size_t i = 0; i < count; i++) /* E1: none ends inside */
        cn_node_calls_ask(lane, &telling->items[i].question);
    return true;
}
