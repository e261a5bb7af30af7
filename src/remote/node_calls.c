/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/node_calls.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "object/node.h"
#include "remote/private.h"
#include "remote/question.h"
#include "service/def.h"
#include "service/node_calls.h"
#include "service/pool.h"
#include "service/service.h"

/* --- from here ------------------------------------------------------------------------------- */

struct sent {
    struct cn_remote_lane *lane;
    struct cn_node_calls_question *of;
    struct cn_buf head;
    struct cn_pipe_question question;
    struct cn_mail mail; /* of one that could not be sent: E1 of service/node_calls.h */
};

static void end(struct sent *sent)
{
    struct cn_node_calls_question *of = sent->of;
    cn_buf_fini(&sent->head);
    cn_free(sent);
    of->done(of);
}

static void deliver_end(struct cn_mail *mail, void *data)
{
    (void)data;
    end(CN_CONTAINER_OF(mail, struct sent, mail));
}

static void take_reply(struct cn_node_calls_question *of, const uint8_t *bytes, size_t size)
{
    struct cn_reply reply;
    const uint8_t *body;
    size_t body_size;
    memset(&reply, 0, sizeof(reply));
    if (cn_reply_get(&reply, bytes, size, &body, &body_size) < 0)
        cn_err_set(&of->err, CN_EPROTOCOL, "its answer cannot be read");
    else if (reply.type != CN_REPLY_DONE)
        cn_err_set(&of->err, reply.code ? reply.code : CN_ECLOSED, "%s",
                   reply.text ? reply.text : "it refuses");
    else if (body_size > CN_OTHERS_SIZE_MAX)
        cn_err_set(&of->err, CN_EPROTOCOL, "its answer is too large");
    else
        cn_buf_append(&of->answer, body, body_size);
    cn_reply_clear(&reply);
}

static void on_done(struct cn_pipe_question *question, enum cn_pipe_end how, uint8_t *bytes,
                    size_t size)
{
    struct sent *sent = CN_CONTAINER_OF(question, struct sent, question);
    if (how == CN_PIPE_ANSWERED)
        take_reply(sent->of, bytes, size);
    else
        cn_err_set(&sent->of->err, CN_ECLOSED,
                   how == CN_PIPE_LOST ? "the connection to it was lost"
                                       : "it cannot be reached at the moment");
    sent->of->lost = how == CN_PIPE_LOST;
    cn_free(bytes);
    end(sent);
}

void cn_remote_others_ask(void *data, struct cn_object_lane *objects,
                          struct cn_node_calls_question *of)
{
    struct cn_remote_lane *lane = cn_remote_lane_of(objects);
    struct cn_question question = {.type = CN_QUESTION_NODE,
                                   .method = (char *)(of->def ? of->def->name : CN_REMOTE_DOOR)};
    struct sent *sent = CN_NEW(struct sent);
    (void)data;
    sent->lane = lane;
    sent->of = of;
    of->err = (struct cn_err){0};
    of->lost = false;
    cn_question_put(&question, &sent->head);
    sent->question = (struct cn_pipe_question){.head = sent->head.data,
                                               .head_size = sent->head.size,
                                               .body = of->asked.data,
                                               .body_size = of->asked.size,
                                               .done = on_done};
    int rc = lane->pipes ? cn_pipes_ask(lane->pipes, of->disk, objects->index, &sent->question)
                         : CN_ECLOSED;
    if (rc == 0)
        return;
    cn_err_set(&of->err, rc,
               rc == CN_EOVERLOADED ? "too much is under way to it"
                                    : "it cannot be reached at the moment");
    sent->mail.deliver = deliver_end;
    if (!cn_mailbox_send(objects->mailbox, &sent->mail))
        end(sent); /* the lane ends: nothing comes later */
}

/* --- to here --------------------------------------------------------------------------------- */

struct job {
    struct cn_pool_job base;
    struct cn_remote_lane *lane;
    uint64_t ticket;
    const struct cn_service_def *def;
    struct cn_services *services;
    struct cn_buf asked, answer;
    int rc;
    struct cn_err err;
};

static void free_job(struct job *job)
{
    cn_buf_fini(&job->asked);
    cn_buf_fini(&job->answer);
    cn_free(job);
}

static void on_run(struct cn_pool_job *base)
{
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    job->rc =
        job->def->asked(job->services, job->asked.data, job->asked.size, &job->answer, &job->err);
}

static void on_lost(struct cn_pool_job *base)
{
    free_job(CN_CONTAINER_OF(base, struct job, base));
}

static void on_answered(struct cn_mail *mail, void *data)
{
    struct cn_pool_job *base = CN_CONTAINER_OF(mail, struct cn_pool_job, mail);
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    struct cn_reply reply = {.type = CN_REPLY_DONE, .has_bytes = true};
    (void)data;
    if (job->rc < 0)
        reply = (struct cn_reply){.type = CN_REPLY_FAILED, .code = job->rc, .text = job->err.text};
    size_t size = job->rc < 0 ? 0 : job->answer.size;
    cn_incoming_reply(job->lane, job->ticket, &reply,
                      job->rc < 0 ? NULL : cn_buf_take(&job->answer), size);
    free_job(job);
}

/* --- the door -------------------------------------------------------------------------------- */

static void deliver_ticket(struct cn_mail *mail, void *data)
{
    struct cn_node_calls_ticket *ticket = CN_CONTAINER_OF(mail, struct cn_node_calls_ticket, mail);
    struct cn_reply reply = {.type = CN_REPLY_DONE, .has_bytes = true};
    bool failed = ticket->err.code < 0;
    (void)data;
    if (failed)
        reply = (struct cn_reply){
            .type = CN_REPLY_FAILED, .code = ticket->err.code, .text = ticket->err.text};
    size_t size = failed ? 0 : ticket->answer.size;
    cn_incoming_reply(ticket->lane, ticket->number, &reply,
                      failed ? NULL : cn_buf_take(&ticket->answer), size);
    cn_node_calls_ticket_free(ticket);
}

/* False: there is none. */
static bool knock(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker, uint64_t number,
                  const uint8_t *body, size_t size)
{
    struct cn_remote *remote = lane->remote;
    pthread_mutex_lock(&remote->door_lock);
    const struct cn_node_calls_door *door = remote->door;
    if (door) {
        struct cn_node_calls_ticket *ticket = CN_NEW(struct cn_node_calls_ticket);
        *ticket = (struct cn_node_calls_ticket){.lane = lane,
                                                .mailbox = lane->objects->mailbox,
                                                .number = number,
                                                .deliver = deliver_ticket,
                                                .disk = asker->disk,
                                                .life = asker->life};
        door->asked(door->data, ticket, body, size);
    }
    pthread_mutex_unlock(&remote->door_lock);
    return door != NULL;
}

void cn_node_calls_gone(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker)
{
    struct cn_remote *remote = lane->remote;
    pthread_mutex_lock(&remote->door_lock);
    if (remote->door && lane->objects->index == 0) /* by which all of them come */
        remote->door->gone(remote->door->data, asker->disk, asker->life);
    pthread_mutex_unlock(&remote->door_lock);
}

void cn_remote_others_serve(struct cn_remote *remote, const struct cn_node_calls_door *door)
{
    pthread_mutex_lock(&remote->door_lock);
    remote->door = door;
    pthread_mutex_unlock(&remote->door_lock);
}

/* --- questions ------------------------------------------------------------------------------- */

static void refuse(struct cn_remote_lane *lane, uint64_t ticket, int code, const char *text)
{
    struct cn_reply reply = {.type = CN_REPLY_FAILED, .code = code, .text = (char *)text};
    cn_incoming_reply(lane, ticket, &reply, NULL, 0);
}

void cn_node_calls_asked(struct cn_remote_lane *lane, const struct cn_pipe_asker *asker,
                         uint64_t ticket, const struct cn_question *question, const uint8_t *body,
                         size_t size)
{
    const char *name = question->method ? question->method : "";
    if (strcmp(name, CN_REMOTE_DOOR) == 0) {
        if (!knock(lane, asker, ticket, body, size))
            refuse(lane, ticket, CN_ECLOSED, "it starts, or stops");
        return;
    }
    const struct cn_service_def *def = cn_service_named(name, strlen(name));
    if (!def || !def->asked || size > CN_OTHERS_SIZE_MAX) {
        refuse(lane, ticket, CN_EVERSION, "it does not know what it is asked");
        return;
    }
    struct job *job = CN_NEW(struct job);
    job->base.run = on_run;
    job->base.lost = on_lost;
    job->base.mail.deliver = on_answered;
    job->base.mailbox = lane->objects->mailbox;
    job->lane = lane;
    job->ticket = ticket;
    job->def = def;
    job->services = cn_node_data(lane->objects->node);
    cn_buf_append(&job->asked, body, size);
    cn_pool_start(job->services->pool, &job->base);
}
