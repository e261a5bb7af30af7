/* SPDX-License-Identifier: Apache-2.0 */
/* base/sandbox.h - what this process gives up for good, by two means of Linux.
 *
 * Landlock: it opens files below the folders it names, and below those of the system that libraries
 * read (shared libraries, certificates, the resolver's files, parts of /proc), and no others; no
 * file can be executed, and no process outside gets a signal (kernels since 6.12).
 * seccomp: the system calls that serving does not need fail with EPERM: starting programs and
 * processes, tracing, signals to others, mounting, mode, owner and attributes of files, loading
 * modules, changing identity, the clock, UNIX sockets, odd socket families. A UNIX socket that is
 * needed later is made before.
 *
 * It holds against scripts that break out of the JavaScript engine, or requests that break a
 * parser: they keep what the server itself can do with its data, its sockets and the network
 * ([cairn.egress] is about that), and no more.
 *
 * Every refused call is reported on a descriptor, which another process reads: a listener can
 * also allow a call, so it must not stay where it could be abused.
 *
 * Threads: cn_sandbox_enter() before a second thread exists; they all inherit it. */
#ifndef CN_BASE_SANDBOX_H
#define CN_BASE_SANDBOX_H
#include <stdbool.h>
#include <stddef.h>

struct cn_err;

struct cn_sandbox_path {
    const char *path;
    bool write;    /* change, create and delete below it; else only read */
    bool optional; /* it may be missing */
};

/* 0 if this kernel has all that is needed; else a sentence. */
int cn_sandbox_check(struct cn_err *err);

/* Enters. Returns the descriptor that reports refused calls: give it to a process outside
 * (cn_sandbox_report) and close it. Without a reader such calls fail with ENOSYS. After an error
 * the process may be confined in part, and should end. */
int cn_sandbox_enter(const struct cn_sandbox_path *paths, size_t count, struct cn_err *err);

/* In the process outside: takes one report from `listener`, refuses the call with EPERM and
 * returns its name (static); NULL if there was none after all. `thread` becomes the caller's id. */
const char *cn_sandbox_report(int listener, int *thread);

#endif
