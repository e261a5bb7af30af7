/* SPDX-License-Identifier: Apache-2.0 */
/* server/first.h - the server as the first process of a container.
 *
 * The kernel gives process 1 the children of others that ended, ignores signals to it that have no
 * handler, and ends all other processes with it. So there the server becomes its child:
 *
 *     process 1, cairn-first ── fork ──► the server ──► what builds, watches, reports its end
 *          signals, but for those of a terminal, which have reached all ──► the server
 *          the server's exit code, 128 + N for signal N ◄──
 *
 * I1  Process 1 ends with the server's exit code, when no child is left.
 * I2  No process stays behind as a zombie.
 *
 * Threads: before there is a second one. */
#ifndef CN_SERVER_FIRST_H
#define CN_SERVER_FIRST_H

struct cn_err;

/* Returns in the child alone, or with an error. */
int cn_first_step_down(struct cn_err *err);

#endif
