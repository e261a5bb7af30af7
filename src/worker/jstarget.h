/* SPDX-License-Identifier: Apache-2.0 */
/* worker/jstarget.h - objects that scripts call on their own lane, known to JavaScript by a number.
 *
 * A stub would otherwise say with every call whom it means: 64 hexadecimal digits
 * and a name. The table keeps the last CN_JSTARGETS_MAX; the number of one that
 * went finds nothing, and the stub then says it again.
 *
 * Threads:   the lane's.
 * Ownership: embedded in the lane; it owns the targets. */
#ifndef CN_WORKER_JSTARGET_H
#define CN_WORKER_JSTARGET_H
#include <stddef.h>
#include <stdint.h>

#include "base/handles.h"
#include "store/record.h"

#define CN_JSTARGETS_MAX 8192

struct cn_jstarget {
    struct cn_namespace *ns;
    struct cn_object_key key;
    char *name; /* owned; NULL: none */
    size_t name_size;
    /* The instance on this lane that runs the object's class: S2 of bindings/localcall.c. */
    uint32_t home_serial;
};

struct cn_jstargets {
    struct cn_handles table;
    uint64_t ring[CN_JSTARGETS_MAX]; /* numbers in the order they were given; 0: none yet */
    unsigned next;                   /* in the ring: the oldest */
};

/* Takes over `name`. Returns its number. */
uint64_t cn_jstarget_add(struct cn_jstargets *targets, struct cn_namespace *ns,
                         const struct cn_object_key *key, char *name, size_t name_size,
                         uint32_t home_serial);
struct cn_jstarget *cn_jstarget_find(const struct cn_jstargets *targets, double number);
void cn_jstargets_fini(struct cn_jstargets *targets);

#endif
