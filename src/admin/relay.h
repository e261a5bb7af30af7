/* SPDX-License-Identifier: Apache-2.0 */
/* admin/relay.h - control calls about what another node has, carried out there.
 *
 * An operator asks any node. What the call needs (an object's database, the history of a shard) is
 * where its shard is open. A handler that wants to hold a shard which is not here fails before it
 * has done anything (cn_control_hold()); then the whole request goes to the owner by the map, is
 * run there as if it had been asked there, and its answer comes back piece by piece:
 *
 *     the node asked                                       the owner
 *     cn_control_run() ── not here ──► cn_relay_call()
 *                OPEN: request, first piece of its body ──► a session: a thread, cn_control_run()
 *     write()  ◄── status and head, first piece of the answer
 *                STEP: the next piece of the body ────────►
 *     write()  ◄── the next piece, or the end
 *                CLOSE: nobody wants more ────────────────► the thread is told to hurry
 *
 * Each is a question to the door of the other node (service/node_calls.h), asked when the one before
 * was answered. STEP is answered when there is something: bytes, the end, or room for more of the
 * body. So a reader that is slow on one node holds a thread and CN_RELAY_READY_MAX bytes on the
 * other, and no more.
 *
 *     a session      what it does                            goes on to
 *     RUNNING        its thread runs the call                ENDED, GONE
 *     ENDED          what is ready waits to be fetched       freed with the last piece, or GONE
 *     GONE           nobody wants it: CLOSE, the node that   freed when its thread has ended
 *                    asked is gone, IDLE_MS without STEP,
 *                    this node stops
 *
 * R1  One hop. A call that came from another node is never passed on: if the shard is not here it
 *     is refused, and nothing has happened. Who was refused, or could not reach the owner, looks at
 *     the map again and tries again, or runs the call itself if the shard has come here, for
 *     wait_ms (that of calls); then it is an error that says so (503).
 * R2  At most once. After a connection is lost only a GET is tried again, and only while nothing of
 *     its answer was passed on; of others it is said that it is not known whether they happened.
 * R3  An answer that breaks off in its middle is cut (cn_control_call.cut): nobody takes a part for
 *     the whole.
 * R4  Who may is decided on the node that was asked; who that was goes with the request, and the
 *     routes' own rules are checked again. Only nodes have the key of the pipes (peer/pipe.h).
 *     Routes below /node are for nodes: whoever else asks is refused.
 * R5  What another node sends is input: cn_relay_ask_get() and cn_relay_answer_get() check it, a
 *     session belongs to the life of the node that opened it, and there are at most
 *     CN_RELAY_SESSIONS_MAX.
 *
 * Threads:   cn_relay_call() on a thread that may block. The host's functions on the admin's
 *            owner; its door on lanes.
 * Ownership: as each function says. */
#ifndef CN_ADMIN_RELAY_H
#define CN_ADMIN_RELAY_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/control.h"
#include "base/buf.h"
#include "base/err.h"
#include "service/node_calls.h"

struct cn_node;

#define CN_RELAY_READY_MAX ((size_t)256 << 10)
#define CN_RELAY_SESSIONS_MAX 64u
#define CN_RELAY_TARGET_MAX (64u << 10)

/* The cluster, as administration needs it. */
struct cn_relay_net {
    const struct cn_node_calls *others;
    struct cn_node *node; /* whose lane 0 asks */
    const char *name;     /* of this node */
    uint64_t disk;        /* of this node */
    unsigned wait_ms;     /* R1 */
    void *data;           /* for the following; any thread */
    /* The disk that has the shard, 0: nobody; *here: this one. */
    uint64_t (*owner)(void *data, unsigned shard, bool *here);
};

/* --- messages (relay_wire.c) ----------------------------------------------------------------- */

enum cn_relay_step { CN_RELAY_OPEN = 1, CN_RELAY_STEP, CN_RELAY_CLOSE };

struct cn_relay_ask {
    uint32_t step;
    uint64_t session; /* chosen by who asks, from 1 */
    bool body_ends;   /* with this piece; OPEN, STEP */
    /* OPEN */
    char *method, *target, *content_type, *host; /* owned; the last two may be NULL */
    bool https;
    struct cn_buf sent; /* as in cn_control_call */
    uint32_t scopes;    /* of who asks, */
    char *who, *name;   /* the id of his token and his name; owned, may be NULL */
};

struct cn_relay_answer {
    bool head; /* the four that follow are said, once */
    uint32_t status;
    char *type;           /* owned */
    uint64_t length;      /* plus 1; 0: not known */
    struct cn_buf fields; /* as in cn_control_call */
    bool ended;
    bool cut;       /* R3 */
    bool refused;   /* R1 */
    uint64_t owner; /* who has it, as the other side knows; 0: it does not */
    bool more;      /* there is room for more of the body */
};

/* A piece of the body is behind each. */
void cn_relay_ask_put(const struct cn_relay_ask *ask, struct cn_buf *out);
void cn_relay_answer_put(const struct cn_relay_answer *answer, struct cn_buf *out);
/* 0, CN_EPROTOCOL, CN_EVERSION, CN_ENOMEM; the struct may be cleared whatever it is. The piece is
 * borrowed from the bytes. */
int cn_relay_ask_get(struct cn_relay_ask *ask, const uint8_t *bytes, size_t size,
                     const uint8_t **piece, size_t *piece_size);
int cn_relay_answer_get(struct cn_relay_answer *answer, const uint8_t *bytes, size_t size,
                        const uint8_t **piece, size_t *piece_size);
void cn_relay_ask_clear(struct cn_relay_ask *ask);
void cn_relay_answer_clear(struct cn_relay_answer *answer);

/* --- asking (relay.c) ------------------------------------------------------------------------ */

/* A session on another node, from here. One question at a time. */
struct cn_relay_line {
    const struct cn_relay_net *net;
    uint64_t disk;
    void (*wake)(void *data); /* it has been answered; any thread, with a lock held */
    void *wake_data;
    /* When it was answered: */
    struct cn_err err; /* code 0: `answer` and `piece` */
    bool lost;         /* R2 */
    struct cn_relay_answer answer;
    const uint8_t *piece;
    size_t piece_size;
    /* Private. */
    struct cn_node_calls_question question;
    pthread_mutex_t lock;
    uint64_t session;
    bool asking, dropped; /* behind `lock` */
    bool open;
};

struct cn_relay_line *cn_relay_line_new(const struct cn_relay_net *net, uint64_t disk,
                                        void (*wake)(void *data), void *data);
/* Asks for `call`, with the piece of its body. What it says is copied. */
void cn_relay_line_open(struct cn_relay_line *line, const struct cn_control_call *call,
                        const void *piece, size_t size, bool body_ends);
void cn_relay_line_step(struct cn_relay_line *line, const void *piece, size_t size, bool body_ends);
bool cn_relay_line_waits(struct cn_relay_line *line); /* for its answer */
/* Closes the session, and frees when the last answer has come. */
void cn_relay_line_drop(struct cn_relay_line *line);

/* Somebody who waits for lines. */
struct cn_relay_waiter {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t cond;
    bool woken;
};
void cn_relay_waiter_init(struct cn_relay_waiter *waiter);
void cn_relay_waiter_fini(struct cn_relay_waiter *waiter);
void cn_relay_waiter_wake(void *waiter); /* a `wake` */
/* For 100 ms at most; not at all if it was woken since the last time. */
void cn_relay_waiter_wait(struct cn_relay_waiter *waiter);

enum cn_relay_end {
    CN_RELAY_DONE,    /* answered, or cut */
    CN_RELAY_REFUSED, /* nothing has happened, `err` says why: look again */
    CN_RELAY_LOST     /* R2: it may have happened; nothing was written */
};
/* Runs the call on the node of a disk and writes its answer. Its body is call->body. */
enum cn_relay_end cn_relay_call(struct cn_control_call *call, const struct cn_relay_net *net,
                                uint64_t disk, struct cn_err *err);

/* --- answering (relay_host.c) ---------------------------------------------------------------- */

struct cn_relay_host;
/* Opens the door. `control` is borrowed until stop. */
struct cn_relay_host *cn_relay_host_start(const struct cn_control *control);
/* Closes it, tells every session to hurry, waits for their threads, frees. NULL is fine. */
void cn_relay_host_stop(struct cn_relay_host *host);

#endif
