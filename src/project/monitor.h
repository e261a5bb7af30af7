/* SPDX-License-Identifier: Apache-2.0 */
/* project/monitor.h - the small process outside of the sandbox of `cairn serve --sandbox`.
 *
 * A server in a sandbox can start no program, but a reload may have to bundle. So before it enters,
 * it forks this process, which does two things: it builds the projects that the command line names
 * when asked to (a byte; what is built and how is not the server's to say), and it logs which
 * system calls the sandbox refused. It ends when the server's end of the socket closes.
 *
 *     server, in the sandbox                         monitor
 *     cn_monitor_watch() ──── 'L' + descriptor ────► polls the listener, logs
 *     cn_monitor_build() ──── 'B' ─────────────────► build() on a thread
 *                        ◄─── struct cn_err ──────── its result
 *
 * Threads: start and stop on the main thread; one build at a time, on any; cancel from any. */
#ifndef CN_PROJECT_MONITOR_H
#define CN_PROJECT_MONITOR_H
#include <sys/types.h>

struct cn_err;

struct cn_monitor {
    int fd; /* -1: not started */
    pid_t pid;
};

struct cn_monitor_builder {
    int (*build)(void *data, struct cn_err *err);
    void (*cancel)(void *data); /* makes build() end soon; from another thread */
    void *data;
};

/* Forks. While there is only one thread. */
int cn_monitor_start(struct cn_monitor *monitor, const struct cn_monitor_builder *builder,
                     struct cn_err *err);
/* Hands over the listener of cn_sandbox_enter(), which is closed here. */
int cn_monitor_watch(struct cn_monitor *monitor, int listener, struct cn_err *err);
int cn_monitor_build(struct cn_monitor *monitor, struct cn_err *err);
/* A build under way fails at once, and so do later ones. */
void cn_monitor_cancel(struct cn_monitor *monitor);
void cn_monitor_stop(struct cn_monitor *monitor); /* one that was not started is fine */

#endif
