/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/bury.h - tells the engine that a process of a node is dead, by whoever has seen it end.
 *
 * Others take over from a node when its session is over. If nobody says so they wait until its beat
 * has stood still for `ttl_ms` (C2). The parent of a process knows better: once waitpid() has
 * returned it, it does nothing any more, whatever its state was. It then ends the sessions of the
 * disk, up to the life that it gave the process (BURY, cluster/engine.h); a later process of the
 * same disk has a later life, so one that was started meanwhile is not touched.
 *
 * Only for a process that this one has waited for: one that merely does not answer may be frozen.
 *
 * Threads:   the caller's, which it blocks. */
#ifndef CN_CLUSTER_BURY_H
#define CN_CLUSTER_BURY_H
#include <stdint.h>

struct cn_err;

struct cn_bury {
    const char *conninfo;
    const char *node;    /* as the host has it */
    const char *cluster; /* G4: NULL: not known */
    uint64_t disk, life;
    unsigned allow_flaws;
};

/* Tries for `timeout_ms`. CN_ETIMEOUT: the engine did not answer; the others will find out. */
int cn_bury(const struct cn_bury *bury, unsigned timeout_ms, struct cn_err *err);

#endif
