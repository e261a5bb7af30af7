/* SPDX-License-Identifier: Apache-2.0 */
/* peer/pipe.h - questions that a lane asks lanes of other nodes, and their answers.
 *
 * A *pipe* is a connection from a lane of one node to a lane of another. The lane that asks dials;
 * a pipe carries questions one way and answers the other. (Two lanes that ask each other have two
 * pipes: no tie has to be broken when both dial at once, and a question never changes its
 * connection.) Questions and answers are opaque bytes here. Terms: docs/understand/glossary.md.
 *
 *     lane i of A                                    lane j of B
 *     cn_pipes_ask() ── WHOLE, or LARGE, PIECE … ──► hooks.asked()
 *     done()        ◄── WHOLE, or LARGE, PIECE … ─── cn_pipes_answer()
 *
 * Pipes are accepted on the port of links (peer/link.h), with TLS by the same key of the cluster.
 * The first frame, PIPE, distinguishes them; the connection is then handed to its lane.
 *
 *     state       what is there                        goes on to
 *     NONE        nothing: the first question dials    DIALING
 *     DIALING     the name, TCP                        GREETING, PAUSE
 *     GREETING    TLS, PIPE is sent                    UP, PAUSE
 *     UP          frames                               PAUSE
 *     PAUSE       until retry_ms are over, doubled up  DIALING, by the next question
 *                 to retry_max_ms, it is not dialed
 *
 * T1  Who does not have the key never completes a handshake, and is not answered. PIPE and WELCOME
 *     have the cluster, disks and lives, and a range of versions; what does not match is closed.
 *     Fields that a side does not know it skips (base/wire.h, W2), so releases may differ.
 * T2  A question ends once: ANSWERED; UNSENT, the other side cannot have had it whole, so it has
 *     not happened; or LOST, it may have happened. Nothing is sent twice here.
 * T3  Questions with the same `order` (not 0) that are asked one after the other of one lane arrive
 *     in that order, whatever their sizes; others may overtake each other, and so may answers.
 * T4  A message above CN_PIPE_PIECE_MAX is announced, and sent when the other side has room for
 *     all of it, in pieces, by turns with whatever else is to be sent: it holds up nobody.
 * T5  Bounded: what is being received in pieces, by a budget that the lanes of a node share (each
 *     lane always has room for one); questions under way by count and bytes, of one pipe and of a
 *     lane, beyond which they are refused; answers that wait to be sent by bytes of the lane, half
 *     of them of one pipe, beyond which cn_pipes_answer() refuses (but one of CN_PIPE_SMALL_MAX is
 *     never refused: there are no more of them than channels, and who asks waits for something);
 *     pipes that come in by CN_PIPES_IN_MAX. Who asks is believed none of this: one that has twice
 *     the bytes under way that it may, or leaves more to be sent to it than a frame for every
 *     channel, breaks a rule.
 * T6  A frame that is malformed, of an unknown kind or out of place closes its pipe and nothing
 *     else.
 * T7  Both sides beat every beat_ms; one that is silent for silent_ms is closed, and so is one that
 *     takes nothing of what is sent to it for as long, or sends nothing though it has room for a
 *     message: it would keep what others need. That is long: a lane may be busy with a script.
 *     Whether a node is alive is known sooner by its link, whose owner calls cn_pipes_break().
 * T8  Another pipe of the same lane of the same disk takes the place of the one before, which is
 *     closed before anything is read from the new one: what was lost does not come later.
 * T9  `done`, `asked` and `gone` are called by the loop, and never from inside cn_pipes_ask(),
 *     cn_pipes_answer() or cn_pipes_cancel(). Who ends pipes is told while he does it:
 *     cn_pipes_break(), cn_pipes_session() and cn_pipes_free() call `done`, and `gone` but for free;
 *     cn_pipes_accept() calls `gone` for the pipe that it replaces (T8). `address` is asked by
 *     cn_pipes_ask() and by the loop.
 * T10 A pipe is asked by one session of the asker's node (membership/member.h), which PIPE tells: when
 *     that becomes another (cn_pipes_session()) the pipes that were dialed are closed, and the next
 *     question dials anew. 0: the node has none, or is of a release that does not tell.
 *
 * Threads:   that of the loop; a budget is shared.
 * Ownership: cn_pipes_new() allocates; cn_pipes_free() ends every question as UNSENT or LOST while
 *            it runs (T9), closes, and frees when the loop is through with it. The bytes of a
 *            question are the asker's, and stay until `done`. */
#ifndef CN_PEER_PIPE_H
#define CN_PEER_PIPE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "peer/link.h"

struct cn_err;
struct cn_pipes;
struct cn_stream_moved;
struct cn_tls_context;

#define CN_PIPE_VERSION_MIN 1
#define CN_PIPE_VERSION_MAX 1
#define CN_PIPE_PIECE_MAX (64u << 10)
#define CN_PIPE_MESSAGE_MAX (34u << 20)
#define CN_PIPE_SMALL_MAX 1024u     /* T5: of an answer that always fits */
#define CN_PIPE_CHANNELS_MAX 65536u /* questions under way of one pipe */
#define CN_PIPES_IN_MAX 4096u

/* Bytes of messages that come in pieces, of all lanes of a node. */
struct cn_pipe_budget {
    size_t max; /* 0: 128 MiB */
    atomic_size_t used;
};

enum cn_pipe_end { CN_PIPE_ANSWERED, CN_PIPE_UNSENT, CN_PIPE_LOST };

/* All zero before it is asked. */
struct cn_pipe_question {
    const uint8_t *head, *body; /* borrowed until `done`: one message, the one behind the other */
    size_t head_size, body_size;
    uint64_t order; /* T3 */
    /* The answer is `bytes`, which become the callee's (cn_free()); NULL unless ANSWERED. */
    void (*done)(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                 size_t size);
    struct cn_pipe_asked *asked; /* private; NULL: it is not under way */
};

/* Who asks. */
struct cn_pipe_asker {
    uint64_t disk, life;
    unsigned lane;    /* of his */
    uint64_t number;  /* of the pipe, on this lane: never given again */
    uint64_t session; /* T10 */
};

struct cn_pipes_hooks {
    void *data;
    /* Where the disk is reached. False: nowhere. */
    bool (*address)(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1]);
    /* A question. `bytes` are the callee's (cn_free()). Answered by its ticket, at most once. */
    void (*asked)(void *data, const struct cn_pipe_asker *asker, uint64_t ticket, uint8_t *bytes,
                  size_t size);
    /* A pipe that was UP, by which others asked, is gone: its tickets stand for nothing. May be
     * NULL. */
    void (*gone)(void *data, const struct cn_pipe_asker *asker);
};

/* Zero in a number means the default in brackets. */
struct cn_pipes_config {
    uint64_t disk, life;
    char cluster[CN_FRAME_CLUSTER_SIZE + 1];
    struct cn_tls_context *tls; /* keyed; a reference is taken */
    unsigned lane, lane_count;
    struct cn_pipe_budget *budget; /* borrowed */
    size_t asked_max;              /* T5: bytes of questions under way of a pipe [64 MiB] */
    size_t asked_total_max;        /* and of the lane [256 MiB] */
    size_t answers_max;            /* bytes of answers that wait, of the lane [256 MiB] */
    unsigned beat_ms;              /* 5000 */
    unsigned silent_ms;            /* 120000 */
    unsigned greet_ms;             /* 2000: of dialing, and of greeting */
    unsigned retry_ms;             /* 50 */
    unsigned retry_max_ms;         /* 1000 */
    struct cn_pipes_hooks hooks;
};

/* T10: of this node, from now on; 0 at first. Questions that are under way end, as UNSENT or LOST,
 * while it runs (T9). */
void cn_pipes_session(struct cn_pipes *pipes, uint64_t session);

struct cn_pipes *cn_pipes_new(uv_loop_t *loop, const struct cn_pipes_config *config);
void cn_pipes_free(struct cn_pipes *pipes, void (*closed)(void *data), void *data);

/* Asks the lane of `disk` that has objects whose number is `hash` (modulo its lanes). 0; or, and
 * then nothing was begun: CN_EOVERLOADED (T5), CN_ENOTFOUND (it has no address), CN_ECLOSED (it
 * cannot be reached at the moment: PAUSE). */
int cn_pipes_ask(struct cn_pipes *pipes, uint64_t disk, uint64_t hash,
                 struct cn_pipe_question *question);
/* The answer is not wanted: `done` is not called, the question's memory may go. */
void cn_pipes_cancel(struct cn_pipes *pipes, struct cn_pipe_question *question);

/* `head` is copied, `body` (may be NULL) taken over. A ticket that stands for nothing is fine:
 * nobody waits. False: T5, and nothing was sent nor taken: answer with less. */
bool cn_pipes_answer(struct cn_pipes *pipes, uint64_t ticket, const void *head, size_t head_size,
                     uint8_t *body, size_t body_size);
/* Whether a ticket stands for somebody who waits. */
bool cn_pipes_waits(const struct cn_pipes *pipes, uint64_t ticket);

/* --- coming in -------------------------------------------------------------------------------- */

/* A connection whose first frame is PIPE. On any thread: the lane that it is for, of `lane_count`.
 * Negative: it is for nobody. */
int cn_pipe_hello_lane(const uint8_t *body, size_t size, unsigned lane_count);
/* On the lane; takes the connection over. */
void cn_pipes_accept(struct cn_pipes *pipes, struct cn_stream_moved *moved, const uint8_t *body,
                     size_t size);

/* The node of the disk is silent, or gone: its pipes are closed, both ways. Questions that are under
 * way there end, as UNSENT or LOST, while it runs (T9). */
void cn_pipes_break(struct cn_pipes *pipes, uint64_t disk);

struct cn_pipes_stats {
    unsigned out_up, in_up;            /* pipes */
    uint64_t asked, answered;          /* questions that were asked here, and by others */
    uint64_t unsent, lost, refused;    /* of ours */
    uint64_t broken, malformed, large; /* pipes; messages in pieces */
    uint64_t sent_bytes, received_bytes;
    size_t asked_bytes, answer_bytes; /* under way */
};
void cn_pipes_stats(const struct cn_pipes *pipes, struct cn_pipes_stats *stats);

#endif
