/* SPDX-License-Identifier: Apache-2.0 */
#include "project/bundler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#define ANSWER_SIZE_MAX (16u << 20)

extern char **environ;

/* The program beside `self`, the folder of the executable; to be freed, NULL if there is none. */
static char *find_program(const char *self)
{
    /* An installed tree, then a checkout, whose build/ has the executable, and those of tests
     * below. */
    static const char *const places[] = {"../lib/cairn", "bundler", "../bundler", "../../bundler"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(places); i++) {
        char *path = cn_sprintf("%s/%s/cairn-bundler", self, places[i]);
        char *found = realpath(path, NULL);
        cn_free(path);
        if (found)
            return found;
    }
    return NULL;
}

int cn_bundler_init(struct cn_bundler *bundler, struct cn_err *err)
{
    char self[PATH_MAX];
    *bundler = (struct cn_bundler){.in = -1, .out = -1};
    pthread_mutex_init(&bundler->lock, NULL);
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (size < 0)
        return cn_err_errno(err, errno, "/proc/self/exe: cannot be read");
    self[size] = 0;
    char *slash = strrchr(self, '/');
    CN_ASSERT(slash);
    *slash = 0;
    bundler->program = find_program(self);
    if (bundler->program)
        return 0;
    return cn_err_set(
        err, CN_ENOTFOUND,
        "the bundler is missing: neither ../lib/cairn beside %s nor bundler in it has "
        "cairn-bundler",
        self);
}

/* Waits for a child and forgets it. Only after `*pid` is 0 may the number belong to another
 * process, and then cancel does not see it any more. Returns the wait status. */
static int reap(struct cn_bundler *bundler, pid_t *pid)
{
    siginfo_t info;
    int status = 0;
    while (waitid(P_PID, (id_t)*pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&bundler->lock);
    (void)waitpid(*pid, &status, 0); /* it has ended, so this does not wait */
    *pid = 0;
    pthread_mutex_unlock(&bundler->lock);
    return status;
}

void cn_bundler_rest(struct cn_bundler *bundler)
{
    if (bundler->pid == 0)
        return;
    close(bundler->in);
    close(bundler->out);
    (void)reap(bundler, &bundler->pid);
    bundler->in = bundler->out = -1;
}

void cn_bundler_cancel(struct cn_bundler *bundler)
{
    pthread_mutex_lock(&bundler->lock);
    bundler->cancelled = true;
    if (bundler->pid > 0)
        kill(bundler->pid, SIGKILL);
    if (bundler->shell > 0)
        kill(-bundler->shell, SIGKILL); /* with everything it started */
    pthread_mutex_unlock(&bundler->lock);
}

void cn_bundler_fini(struct cn_bundler *bundler)
{
    if (!bundler->program)
        return; /* never initialised */
    cn_bundler_rest(bundler);
    free(bundler->program);
    bundler->program = NULL;
    pthread_mutex_destroy(&bundler->lock);
}

/* Starts a child as *pid, which must be a field that cancel looks at. */
static int spawn(struct cn_bundler *bundler, char *const argv[],
                 const posix_spawn_file_actions_t *actions, bool own_group, pid_t *pid)
{
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE); /* cairn ignores it, */
    sigaddset(&defaults, SIGTERM); /* and this one outside of a sandbox */
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                  (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
    pthread_mutex_lock(&bundler->lock);
    int rc = bundler->cancelled ? ECANCELED
                                : posix_spawnp(pid, argv[0], actions, &attributes, argv, environ);
    if (rc != 0)
        *pid = 0;
    pthread_mutex_unlock(&bundler->lock);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

static int start(struct cn_bundler *bundler, struct cn_err *err)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return cn_err_errno(err, errno, "cannot start the bundler");
    if (pipe2(out, O_CLOEXEC) < 0) {
        int saved = errno;
        close(in[0]);
        close(in[1]);
        return cn_err_errno(err, saved, "cannot start the bundler");
    }
    char *named = getenv("CAIRN_BUNDLER");
    char *argv[] = {named && *named ? named : bundler->program, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    int rc = spawn(bundler, argv, &actions, false, &bundler->pid);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    bundler->in = in[1];
    bundler->out = out[0];
    if (rc == 0) {
        (void)fcntl(bundler->in, F_SETFL, O_NONBLOCK); /* a job is written as it is read (U2) */
        return 0;
    }
    close(bundler->in);
    close(bundler->out);
    return cn_err_errno(err, rc, "the bundler %s cannot be started", argv[0]);
}

/* Until when a job may run, on CLOCK_MONOTONIC; 0: for ever. */
static int64_t deadline_after(unsigned limit_ms)
{
    return limit_ms ? (int64_t)(cn_clock_mono_ns(cn_clock_system()) / 1000000) + limit_ms : 0;
}

/* Waits until `fd` is ready. 0: the deadline has passed. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t now_ms = (int64_t)(cn_clock_mono_ns(cn_clock_system()) / 1000000);
        int64_t left_ms = deadline_ms - now_ms;
        if (deadline_ms && left_ms <= 0)
            return 0;
        struct pollfd polled = {fd, events, 0};
        int rc = poll(&polled, 1, !deadline_ms ? -1 : left_ms > 60000 ? 60000 : (int)left_ms);
        if (rc > 0)
            return 1;
    }
}

/* 1: sent. 0: the child is gone. CN_ETIMEOUT: it does not read. */
static int send_job(struct cn_bundler *bundler, const struct cn_buf *job, int64_t deadline_ms)
{
    for (size_t at = 0; at < job->size;) {
        if (!wait_for(bundler->in, POLLOUT, deadline_ms))
            return CN_ETIMEOUT;
        ssize_t written = write(bundler->in, job->data + at, job->size - at);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return 0;
        at += written > 0 ? (size_t)written : 0;
    }
    return 1;
}

/* Appends one line, without its end. The results are those of send_job(). */
static int receive_line(struct cn_bundler *bundler, struct cn_buf *line, int64_t deadline_ms)
{
    for (;;) {
        if (!wait_for(bundler->out, POLLIN, deadline_ms))
            return CN_ETIMEOUT;
        cn_buf_reserve(line, 65536);
        ssize_t size = read(bundler->out, line->data + line->size, line->capacity - line->size);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0 || line->size + (size_t)size > ANSWER_SIZE_MAX)
            return 0;
        line->size += (size_t)size;
        if (line->data[line->size - 1] == '\n') {
            line->size--;
            return 1;
        }
    }
}

static void kill_child(struct cn_bundler *bundler)
{
    pthread_mutex_lock(&bundler->lock);
    if (bundler->pid > 0)
        kill(bundler->pid, SIGKILL);
    pthread_mutex_unlock(&bundler->lock);
}

/* One attempt; the results are those of send_job(). */
static int attempt(struct cn_bundler *bundler, const struct cn_buf *job, unsigned limit_ms,
                   struct cn_buf *answer)
{
    int64_t deadline_ms = deadline_after(limit_ms);
    int rc = send_job(bundler, job, deadline_ms);
    if (rc == 1)
        rc = receive_line(bundler, answer, deadline_ms);
    if (rc == CN_ETIMEOUT)
        kill_child(bundler);
    if (rc != 1)
        cn_bundler_rest(bundler);
    return rc;
}

int cn_bundler_run(struct cn_bundler *bundler, const struct cn_buf *job, unsigned limit_ms,
                   struct cn_buf *answer, struct cn_err *err)
{
    struct cn_buf line = {0};
    size_t before = answer->size;
    int rc = 0, done = 0;
    CN_ASSERT(!memchr(job->data, '\n', job->size));
    cn_buf_append(&line, job->data, job->size);
    cn_buf_append_byte(&line, '\n');
    /* A child that was kept may have died meanwhile: then once more, with a new one. */
    for (int i = 0; i < 2 && done == 0 && rc == 0; i++) {
        if (bundler->pid == 0)
            rc = start(bundler, err);
        if (rc < 0)
            break;
        answer->size = before;
        done = attempt(bundler, &line, limit_ms, answer);
    }
    cn_buf_fini(&line);
    if (rc == 0 && done == CN_ETIMEOUT)
        rc = cn_err_set(err, CN_ETIMEOUT, "building took longer than %u s and was ended",
                        limit_ms / 1000);
    else if (rc == 0 && done != 1)
        rc = cn_err_set(err, CN_ECLOSED,
                        "the bundler ended without an answer (its messages are above)");
    return rc;
}

int cn_bundler_shell(struct cn_bundler *bundler, const char *command, const char *dir,
                     const char *programs, struct cn_err *err)
{
    char *argv[] = {
        "sh", "-c", "PATH=\"$1$PATH\" exec sh -c \"$2\"", "sh", (char *)programs, (char *)command,
        NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
    posix_spawn_file_actions_addchdir_np(&actions, dir);
    int rc = spawn(bundler, argv, &actions, true, &bundler->shell);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return cn_err_errno(err, rc, "the build command cannot be started in %s", dir);
    int status = reap(bundler, &bundler->shell);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return cn_err_set(err, CN_EINVALID, "the build command \"%.200s\" failed with %s %d", command,
                      WIFEXITED(status) ? "exit code" : "signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}
