/* SPDX-License-Identifier: Apache-2.0 */
/* service/node_calls.h - what a service asks of other nodes, and not of an object: to forget what they
 * have kept, to read what lies on their disks.
 *
 *     this node                                          another one
 *     cn_node_calls_ask() ── name of the service, bytes ───► def->asked(), on a thread of the pool
 *     done()         ◄── bytes, or an error ────────────
 *
 * What carries it is given by who has the transport (struct cn_node_calls in struct cn_services); a
 * single server has none, and no others.
 *
 * E1  A question ends once, on the lane that asked, never from inside the function that asks. If
 *     the other node is lost it ends with an error; whether it was carried out is not known then.
 * E2  What is asked and what is answered is input: who reads it checks it. Either has at most
 *     CN_OTHERS_SIZE_MAX bytes.
 * E3  Others are those that are part of the cluster at the moment of asking. One that comes later
 *     has a memory that is empty; what is on its disk is not seen while it is away.
 *
 * Beside services there is one more who asks and is asked, administration (admin/relay.h): its
 * questions have no service, go to the *door* of the other node, and are answered when somebody has
 * an answer, by any thread.
 *
 * E4  When cn_node_calls.serve() has taken a door back, nobody is in it. A ticket is answered once; if
 *     its lane has ended, or who asked is gone, nobody hears it.
 *
 * Threads:   as each function says.
 * Ownership: a question is the asker's; it stays until `done`. */
#ifndef CN_SERVICE_NODE_CALLS_H
#define CN_SERVICE_NODE_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mailbox.h"

struct cn_node;
struct cn_object_lane;
struct cn_service_def;
struct cn_services;

#define CN_OTHERS_MAX 256 /* nodes */
#define CN_OTHERS_SIZE_MAX (8u << 20)
#define CN_OTHERS_NAME_MAX 64

struct cn_other {
    uint64_t disk;
    char name[CN_OTHERS_NAME_MAX + 1];
};

struct cn_node_calls_question {
    uint64_t disk;                    /* whose */
    const struct cn_service_def *def; /* NULL: its door */
    struct cn_buf asked, answer;
    struct cn_err err; /* code 0: it was answered */
    bool lost;         /* with an error: it may have been heard all the same */
    void (*done)(struct cn_node_calls_question *question);
    void *data;
};

/* A question that came to the door: who asked, and the way back. */
struct cn_node_calls_ticket {
    struct cn_mail mail;
    void *lane; /* of the transport, as the three that follow */
    struct cn_mailbox *mailbox;
    uint64_t number;
    void (*deliver)(struct cn_mail *mail, void *data);
    uint64_t disk, life; /* of who asks */
    struct cn_buf answer;
    struct cn_err err; /* code 0: `answer` */
};

/* Who is asked. On a lane; must not block. */
struct cn_node_calls_door {
    void *data;
    /* The ticket becomes the callee's until cn_node_calls_answer(). */
    void (*asked)(void *data, struct cn_node_calls_ticket *ticket, const uint8_t *bytes,
                  size_t size);
    /* One who has asked is gone, or his connection is. */
    void (*gone)(void *data, uint64_t disk, uint64_t life);
};

/* The transport. */
struct cn_node_calls {
    void *data;
    /* Any thread: how many, at most `max`. */
    size_t (*list)(void *data, struct cn_other items[], size_t max);
    /* On the lane. */
    void (*ask)(void *data, struct cn_object_lane *lane, struct cn_node_calls_question *question);
    /* Any thread, E4. NULL: there is none any more. */
    void (*serve)(void *data, const struct cn_node_calls_door *door);
};

/* Any thread. */
size_t cn_node_calls_list(const struct cn_services *services, struct cn_other items[], size_t max);
/* On the lane. */
void cn_node_calls_ask(struct cn_object_lane *lane, struct cn_node_calls_question *question);
/* From a thread that is no lane's and may block: lane 0 asks, and the answer is awaited. `done` and
 * `data` are its own. */
int cn_node_calls_wait(struct cn_node *node, struct cn_node_calls_question *question,
                       struct cn_err *err);
/* From any thread that is no lane's: lane 0 asks, and `done` is called there. False: the server
 * starts or stops, and nothing was asked. */
bool cn_node_calls_post(struct cn_node *node, struct cn_node_calls_question *question);
/* Any thread: fill in `answer` or `err` before. */
void cn_node_calls_answer(struct cn_node_calls_ticket *ticket);
void cn_node_calls_ticket_free(struct cn_node_calls_ticket *ticket);
/* On the lane: asks all of them the same. `done` gets how many did not answer, and of one of them
 * its name and why. Returns false if there are none: `done` is not called. */
bool cn_node_calls_tell(struct cn_object_lane *lane, const struct cn_service_def *def,
                        const void *bytes, size_t size,
                        void (*done)(void *data, unsigned failed, const struct cn_err *err),
                        void *data);

#endif
