/* SPDX-License-Identifier: Apache-2.0 */
/* membership/report_dead.h - reports to the engine that the process of a node has ended.
 *
 * Other nodes take over when the session of a node is over. If nothing reports that it ended, they
 * wait until its beat has not changed for `ttl_ms` (C2). A process that is certain of the end (its
 * parent after waitpid(), or the witness, fleet/witness.h) need not wait: it ends the sessions of
 * the disk up to the life that the process had (BURY, membership/engine.h). A process that was
 * started on the same disk since then has a later life and is not affected.
 *
 * A process that merely does not answer must not be reported: it may be stopped, and continue.
 *
 * Threads:   the caller's, which it blocks. */
#ifndef CN_MEMBERSHIP_REPORT_DEAD_H
#define CN_MEMBERSHIP_REPORT_DEAD_H
#include <stdint.h>

struct cn_err;

struct cn_report_dead {
    const char *conninfo;
    const char *node;    /* as the host has it */
    const char *cluster; /* G4: NULL: not known */
    uint64_t disk, life;
    unsigned allow_flaws;
};

/* Tries for `timeout_ms`. CN_ETIMEOUT: the engine did not answer; the others will find out. */
int cn_report_dead(const struct cn_report_dead *bury, unsigned timeout_ms, struct cn_err *err);

#endif
