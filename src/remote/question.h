/* SPDX-License-Identifier: Apache-2.0 */
/* remote/question.h - calls to objects and workers of other nodes as bytes, and their answers.
 *
 * What a pipe (peer/pipe.h) carries: the size of the fields in 4 bytes, the lowest first; the
 * fields (base/wire.h), by the tables of question.c; and behind them the body, as it is.
 *
 *     type      asks for                                              body            answer's body
 *     CALL      an event of an object of a class (object/message.h)   message.bytes   its result
 *     SERVICE   an operation of a service's object (service/wire.h)   what is asked   answered
 *     TARGET    something that an instance of a worker has lent       its bytes       its result
 *     SOCKETS   letters between ends of WebSockets (worker/ws_far.h)  letters         unknown ones
 *     NODE      something of a service on a node (service/node_calls.h)   its bytes       its answer
 *     EVENT     a handler of a script to run (worker/background.h)    its bytes       its result
 *
 *     answer    means
 *     DONE      it was carried out
 *     FAILED    it was delivered, or could not be, and ends with this error
 *     REFUSED   nothing has happened: the shard is not here, at the moment; who may have it. Of an
 *               EVENT: the script does not run here
 *
 * Q1  Kinds, types and numbers of fields are for ever; new ones are added (W2).
 * Q2  What is read is checked: kinds are those that a peer may send, sizes are bounded, texts have
 *     no NUL, and the code of an error is negative: others assert that (base/err.h).
 * Q3  Other nodes run one handler, "queue", and are asked for it by the word "batch". Releases
 *     before knew the word "queue" alone, and answered nothing if all messages were acknowledged,
 *     which is no answer (N4 of background/consumers.h): they refuse the new word, and the batch
 *     runs where the queue is. Their own batches are run here, and answered in full, which they
 *     understand.
 *
 * Threads:   none of its own.
 * Ownership: cn_question_get() and cn_reply_get() fill structs that own their texts; the body is
 *            borrowed from the bytes. */
#ifndef CN_REMOTE_QUESTION_H
#define CN_REMOTE_QUESTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/origin.h"
#include "store/record.h"

enum cn_question_type {
    CN_QUESTION_CALL = 1,
    CN_QUESTION_SERVICE,
    CN_QUESTION_TARGET,
    CN_QUESTION_SOCKETS,
    CN_QUESTION_NODE,
    CN_QUESTION_EVENT
};

#define CN_QUESTION_TEXT_MAX (1u << 20) /* of a name, a method */

struct cn_question {
    uint32_t type; /* enum cn_question_type */
    /* CALL, SERVICE: the object. */
    uint32_t kind; /* enum cn_call_kind: FETCH, RPC, OTHER or ADOPT */
    uint32_t namespace_id;
    uint8_t id[CN_OBJECT_ID_SIZE];
    uint8_t *name; /* owned; NULL: none. EVENT: the handler */
    size_t name_size;
    uint32_t turn; /* of its shard on the asking lane: remote/remote.h, O3 */
    uint32_t op;   /* SERVICE */
    /* TARGET: the instance. SOCKETS: the lane. */
    uint64_t life;
    uint32_t lane, serial;
    char *method; /* owned; NULL: none. SERVICE: its namespace; NODE: the service; EVENT: the script
                   */
    struct cn_origin origin;
};

enum cn_reply_type { CN_REPLY_DONE = 1, CN_REPLY_FAILED, CN_REPLY_REFUSED };

struct cn_reply {
    uint32_t type; /* enum cn_reply_type */
    int32_t code;  /* of FAILED */
    uint32_t faults;
    char *text;     /* owned */
    bool has_bytes; /* of the body: a result, or what was thrown, even if it is empty */
    uint64_t owner; /* of REFUSED: the disk that has the shard; 0: not known */
};

/* Appends all but the body. */
void cn_question_put(const struct cn_question *question, struct cn_buf *out);
void cn_reply_put(const struct cn_reply *reply, struct cn_buf *out);
/* 0, CN_EPROTOCOL, CN_EVERSION, CN_ENOMEM. The struct is cleared first, and may be cleared after
 * a failure too. */
int cn_question_get(struct cn_question *question, const uint8_t *bytes, size_t size,
                    const uint8_t **body, size_t *body_size);
int cn_reply_get(struct cn_reply *reply, const uint8_t *bytes, size_t size, const uint8_t **body,
                 size_t *body_size);
void cn_question_clear(struct cn_question *question);
void cn_reply_clear(struct cn_reply *reply);

/* Q3: the word for a handler, which is the handler itself if others do not run it; and the handler
 * that a word asks for. NULL: none. */
const char *cn_event_word(const char *handler);
const char *cn_event_handler(const uint8_t *word, size_t size);

#endif
