/* SPDX-License-Identifier: Apache-2.0 */
/* project/bundler.h - the child process that bundles: cairn-bundler (src/bundler/main.c).
 *
 * Started by the first job and kept until stop, because a second build in the
 * same process is much faster than the first. It ends by itself when its
 * standard input closes, so it never outlives cairn, whatever ends cairn.
 *
 *   U1  A job reaches the child by its standard input and by nothing else: no file that another
 *       process could write says what is read and where the output goes. (A server in a sandbox
 *       can write all of its data directory, and the child runs outside: monitor.h.)
 *   U2  A job with a time limit ends by it: the child is killed, and the next job starts another.
 *
 * Threads:   one job at a time; the caller sees to that. cn_bundler_cancel()
 *            from any.
 * Ownership: the caller's memory. */
#ifndef CN_PROJECT_BUNDLER_H
#define CN_PROJECT_BUNDLER_H
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct cn_buf;
struct cn_err;

struct cn_bundler {
    char *program; /* owned: its path */
    int in, out;
    pthread_mutex_t lock; /* guards what follows */
    pid_t pid;            /* 0: not running */
    pid_t shell;          /* a build command under way, or 0 */
    bool cancelled;
};

/* Finds the bundler beside the executable: PREFIX/lib/cairn, or build/bundler of a checkout. What
 * CAIRN_BUNDLER names is started in its place. */
int cn_bundler_init(struct cn_bundler *bundler, struct cn_err *err);
void cn_bundler_fini(struct cn_bundler *bundler); /* stops it */

/* Runs a job, a JSON object on one line; appends the answer (a JSON object) to `answer`. U2:
 * fails after `limit_ms`; 0: waits for as long as it takes. */
int cn_bundler_run(struct cn_bundler *bundler, const struct cn_buf *job, unsigned limit_ms,
                   struct cn_buf *answer, struct cn_err *err);

/* Runs a shell command in `dir` and waits; what `programs` lists ("DIR:DIR:", or "") is searched
 * before PATH. Output goes to standard error. Fails unless it exits with 0. */
int cn_bundler_shell(struct cn_bundler *bundler, const char *command, const char *dir,
                     const char *programs, struct cn_err *err);

/* Stops the child until the next job; it ends when its input closes. */
void cn_bundler_rest(struct cn_bundler *bundler);
/* Kills what runs, so that a waiting call returns with an error; later ones fail at once. */
void cn_bundler_cancel(struct cn_bundler *bundler);

#endif
