/* SPDX-License-Identifier: Apache-2.0 */
#include "bundler/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static int spawn(pid_t *pid, char *const argv[], int in, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawnattr_init(&attributes);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE); /* which we ignore */
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn(pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

int cn_child_start(struct cn_child *child, char *const argv[], struct cn_err *err)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return cn_err_errno(err, errno, "%s cannot be started: no pipe", argv[0]);
    if (pipe2(out, O_CLOEXEC) < 0) {
        int saved = errno;
        close(in[0]);
        close(in[1]);
        return cn_err_errno(err, saved, "%s cannot be started: no pipe", argv[0]);
    }
    pid_t pid;
    int rc = spawn(&pid, argv, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    if (rc != 0) {
        close(in[1]);
        close(out[0]);
        return cn_err_errno(err, rc, "%s cannot be started", argv[0]);
    }
    (void)fcntl(in[1], F_SETFL, O_NONBLOCK); /* a pipe of ours: the flag is one that it has */
    *child = (struct cn_child){.in = in[1], .out = out[0], .pid = pid};
    return 0;
}

void cn_child_flush(struct cn_child *child)
{
    while (child->waiting.size && !child->deaf) {
        ssize_t size = write(child->in, child->waiting.data, child->waiting.size);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            return;
        child->deaf = size <= 0; /* then its output ends too, which is what is noticed */
        if (size > 0)
            cn_buf_consume(&child->waiting, (size_t)size);
    }
}

void cn_child_send(struct cn_child *child, const void *bytes, size_t size)
{
    if (child->in < 0 || child->deaf)
        return;
    cn_buf_append(&child->waiting, bytes, size);
    cn_child_flush(child);
}

int cn_child_receive(struct cn_child *child, struct cn_buf *out)
{
    for (;;) {
        cn_buf_reserve(out, 1 << 20);
        ssize_t size = read(child->out, out->data + out->size, out->capacity - out->size);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return 0;
        out->size += (size_t)size;
        return 1;
    }
}

void cn_child_stop(struct cn_child *child)
{
    if (child->in < 0)
        return;
    close(child->in);
    close(child->out);
    (void)kill(child->pid, SIGKILL); /* it has nothing to finish, and would look for a second */
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    cn_buf_fini(&child->waiting);
    *child = (struct cn_child){.in = -1, .out = -1};
}
