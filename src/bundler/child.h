/* SPDX-License-Identifier: Apache-2.0 */
/* bundler/child.h - esbuild as a child process, and what is on its way to it.
 *
 * What is sent waits in a buffer until the child reads it, so that a child which itself waits until
 * its answers are read is no deadlock. It ends when its standard input closes, whatever ends us.
 *
 *   B1  What the system refuses (a pipe, a process) is an error with a sentence: the job fails, and
 *       the next one tries again.
 *
 * Threads:   one.
 * Ownership: the caller's memory. */
#ifndef CN_BUNDLER_CHILD_H
#define CN_BUNDLER_CHILD_H
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct cn_err;

struct cn_child {
    int in, out; /* -1: not running */
    pid_t pid;
    struct cn_buf waiting; /* what it has not read yet */
    bool deaf;             /* it reads no more */
};

/* Starts `argv[0]`, which is a path. Its standard error is ours. */
int cn_child_start(struct cn_child *child, char *const argv[], struct cn_err *err);
/* Sends as much as it takes now; the rest waits for cn_child_flush(). */
void cn_child_send(struct cn_child *child, const void *bytes, size_t size);
void cn_child_flush(struct cn_child *child);
/* Appends what it has written. 0: it ended. */
int cn_child_receive(struct cn_child *child, struct cn_buf *out);
/* Ends it. */
void cn_child_stop(struct cn_child *child);

#endif
