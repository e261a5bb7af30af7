/* SPDX-License-Identifier: Apache-2.0 */
/* admin/spread.h - lists and sums over all nodes of a cluster.
 *
 * The same GET is asked of every node (admin/relay.h), of this one too; each answers for the shards
 * that are open there, and says which ("shards": a bit for each, as hexadecimal digits, the lowest
 * first). Who asked puts the answers together.
 *
 * P1  Nothing is left out: the answers together have to be about every shard. While one is missing,
 *     because its owner died or it moves, all are asked again, for wait_ms; then it is an error
 *     that says how many are missing (503).
 * P2  A shard counts as answered for only if it was open from the beginning to the end of the
 *     answer. One that moved in between may be in two answers: who puts them together drops what
 *     comes twice.
 * P3  A part is at most CN_SPREAD_PART_MAX bytes; a node that does not answer within wait_ms is as
 *     one that is missing.
 *
 * Threads:   that of the call, which blocks.
 * Ownership: answers are borrowed for the time of a callback. */
#ifndef CN_ADMIN_SPREAD_H
#define CN_ADMIN_SPREAD_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/record.h"

struct cn_buf;
struct cn_control_call;
struct cn_json;

#define CN_SPREAD_PART_MAX ((size_t)32 << 20)

/* Whether the call is for all nodes. */
bool cn_spread_is(const struct cn_control_call *call);

/* An answer, and the name of its node. Not 0: that is returned. */
typedef int (*cn_spread_each)(void *data, const char *node, const struct cn_json *answer,
                              struct cn_err *err);
/* Asks all for the target; `each` is called for all of them when all have answered. The answers
 * stay until `after` has run, which may be NULL. */
int cn_spread_get(struct cn_control_call *call, const char *target, cn_spread_each each,
                  int (*after)(void *data, struct cn_err *err), void *data, struct cn_err *err);

/* 1, and the number of the namespace; 0: no node knows it. */
int cn_spread_namespace(struct cn_control_call *call, const char *name, uint32_t *id,
                        struct cn_err *err);
/* 1, and the id of the object with this name; 0: there is none. */
int cn_spread_name(struct cn_control_call *call, const char *namespace_name, const char *name,
                   uint8_t id[CN_OBJECT_ID_SIZE], struct cn_err *err);

/* What a relayed answer says of its shards: P2. */
struct cn_spread_marks {
    uint64_t *marks; /* NULL: the call is not relayed */
};
void cn_spread_marks_take(struct cn_spread_marks *marks, const struct cn_control_call *call);
/* Appends ,"shards":"..."; and frees. */
void cn_spread_marks_append(struct cn_spread_marks *marks, const struct cn_control_call *call,
                            struct cn_buf *out);
void cn_spread_marks_fini(struct cn_spread_marks *marks);

#endif
