/* SPDX-License-Identifier: Apache-2.0 */
/* admin/exchange.h - a call that asks back: who made it does something, and the call goes on.
 *
 *     the call        POST /api/backup/stream    its answer is a run of frames: a name, then
 *                                                questions, then how it ended
 *     each answer     PUT /api/backup/stream/NAME
 *
 *     a frame: its size behind the letter, 4 bytes, little-endian; a letter; so many bytes
 *       N  the name, for the path of the answers
 *       Q  a question (base/netdisk.h: a run of operations)
 *       E  the call has ended well: JSON, as the same call without questions would answer
 *       F  it has failed: {"error":{"code","message"}}
 *
 * A connection is read or written, never waited for in both directions: an answer is a request of
 * its own, so that no limit on bodies or their time is in the way.
 *
 *   X1  One question at a time; the answer to it counts once. An answer to nobody is refused (404).
 *   X2  Who asked is gone when the connection of the call is: then, and when there is no answer
 *       for CN_EXCHANGE_PATIENCE_MS, the question fails.
 *   X3  A call that ends without E has failed, whatever came before.
 *
 * Threads:   a call's own; answers come on theirs.
 * Ownership: the admin listener owns the table, a call its exchange. */
#ifndef CN_ADMIN_EXCHANGE_H
#define CN_ADMIN_EXCHANGE_H
#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

struct cn_control_call;

#define CN_EXCHANGE_PATIENCE_MS 120000
#define CN_EXCHANGE_NAME_SIZE 33
#define CN_EXCHANGE_VERSION "1" /* of frames and of base/netdisk.h: who asks has to know it */

enum cn_exchange_frame {
    CN_EXCHANGE_NAME = 'N',
    CN_EXCHANGE_QUESTION = 'Q',
    CN_EXCHANGE_END = 'E',
    CN_EXCHANGE_FAILED = 'F',
};

struct cn_exchanges {
    pthread_mutex_t lock; /* guards the list, and what exchanges say they guard with it */
    struct cn_list all;
};

struct cn_exchange {
    struct cn_list link;
    struct cn_exchanges *table;
    struct cn_control_call *call;
    char name[CN_EXCHANGE_NAME_SIZE];
    pthread_cond_t changed; /* with the table's lock, as the rest */
    bool asking, answered;
    struct cn_buf answer;
};

void cn_exchanges_init(struct cn_exchanges *table);
void cn_exchanges_fini(struct cn_exchanges *table); /* no call is left */

/* Begins the answer of the call: from now on it ends by cn_exchange_end(). */
int cn_exchange_begin(struct cn_exchange *exchange, struct cn_exchanges *table,
                      struct cn_control_call *call);
/* 0, or a negative errno value: X2. */
int cn_exchange_ask(struct cn_exchange *exchange, const struct cn_buf *question,
                    struct cn_buf *answer);
/* E with the JSON, or if `rc` is negative F with the error. */
void cn_exchange_end(struct cn_exchange *exchange, int rc, const struct cn_buf *json,
                     const struct cn_err *err);
/* X1 */
int cn_exchange_answer(struct cn_exchanges *table, const char *name, const void *bytes, size_t size,
                       struct cn_err *err);

#endif
