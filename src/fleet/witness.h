/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/witness.h - a small process that reports the end of its server to the engine.
 *
 * Other nodes take over when the session of a node is over. A process that was killed cannot end
 * its session, and without a report the others wait until it has been silent for long enough
 * (membership/member.h, C2). So a server that is a node forks a witness before it starts a thread.
 * The witness has a descriptor of the server's process (pidfd_open(2)), which becomes readable when
 * that process, with all its threads, has ended, and at no other time. It then ends the sessions of
 * the disk's life (membership/report_dead.h).
 *
 *     server                                  witness
 *     cn_witness_start()  ──── fork, twice ─► waits
 *     the cluster is known ─── disk, life ──► remembers
 *     has left             ─── left ────────► ends
 *     dies                 ─── (pidfd) ─────► BURY, for bury_ms at the most; ends
 *
 * The server stays the process that was started: its number, signals, exit code, terminal, service
 * manager and sockets are as without a witness.
 *
 * W1  Nothing but the descriptor of the process proves a death. That the socket between the two was
 *     closed does not: a process may close what it likes and live on.
 * W2  A witness that knows no life yet, or that was told that the node has left, says nothing.
 * W3  It holds nothing of the server's: no descriptor but standard error, no folder, no terminal,
 *     no group of processes. It outlives the server by bury_ms at the most.
 * W4  Signals that a service manager or a terminal send to all are not for it: it ends with its
 *     server. One that is killed is not replaced: the server warns, serves on, and if it dies then,
 *     others wait for its silence, as they do when both die with their machine.
 * W5  A server that executes itself anew (server/serve.h) is not dead, and has a new witness: the
 *     old one finds its socket closed and the process alive, and ends. The old session is ended by
 *     the JOIN of the new life.
 * W6  The kernel ends all others with process 1, so the server is not that one in a container:
 *     server/first.h.
 *
 * Threads:   start while there is one; told from any; the rest as fleet/cluster.h uses them.
 * Ownership: the caller's struct. */
#ifndef CN_FLEET_WITNESS_H
#define CN_FLEET_WITNESS_H
#include <stdbool.h>
#include <stdint.h>

struct cn_err;

struct cn_witness {
    int fd; /* of the socket; -1: there is none */
};

/* Of the engine; texts are borrowed, by the witness for ever. */
struct cn_witness_options {
    const char *conninfo, *node;
    unsigned allow_flaws;
    unsigned bury_ms; /* W3; 0: 10 s */
};

/* CN_EUNSUPPORTED: this system has no such descriptors. */
int cn_witness_start(struct cn_witness *witness, const struct cn_witness_options *options,
                     struct cn_err *err);
/* From now on its death is the end of this life of the disk, in the cluster of that id. */
void cn_witness_tell(struct cn_witness *witness, uint64_t disk, uint64_t life, const char *cluster);
/* The engine knows that the session is over. */
void cn_witness_left(struct cn_witness *witness);
/* W4: whether it is there. */
bool cn_witness_lives(const struct cn_witness *witness);
/* The server's side; the witness ends when the process does. One without is fine. */
void cn_witness_close(struct cn_witness *witness);

#endif
