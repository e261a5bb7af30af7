/* SPDX-License-Identifier: Apache-2.0 */
#include "project/monitor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/sandbox.h"

#define REPORT_EVERY_MS 1000

/* In the process outside. */
struct outside {
    int fd;
    int listener; /* -1: not there yet */
    const struct cn_monitor_builder *builder;
    pthread_t thread;
    bool building; /* `thread` is to be joined */
    int64_t reported_ms;
    unsigned unreported; /* refused calls since then */
};

/* --- outside --------------------------------------------------------------------------------- */

static void *on_build(void *data)
{
    struct outside *outside = data;
    struct cn_err err = {0};
    err.code = outside->builder->build(outside->builder->data, &err);
    /* Fails if the server has ended, and then nobody waits. */
    (void)send(outside->fd, &err, sizeof(err), MSG_NOSIGNAL);
    return NULL;
}

static void start_build(struct outside *outside)
{
    if (outside->building)
        pthread_join(outside->thread, NULL);
    outside->building = pthread_create(&outside->thread, NULL, on_build, outside) == 0;
    if (!outside->building)
        (void)on_build(outside); /* no thread: it cannot be cancelled */
}

/* At most a line in a second: a script in a loop must not fill the log. */
static void report(struct outside *outside)
{
    int thread;
    const char *name = cn_sandbox_report(outside->listener, &thread);
    if (!name)
        return;
    outside->unreported++;
    int64_t now = (int64_t)(cn_clock_mono_ns(cn_clock_system()) / 1000000);
    if (outside->reported_ms && now - outside->reported_ms < REPORT_EVERY_MS)
        return;
    cn_error("the sandbox refused %s to thread %d of the server (%u refused so far): serving needs "
             "no such call, so something in it does what it should not",
             name, thread, outside->unreported);
    outside->reported_ms = now;
}

/* Returns the letter that came and the descriptor with it, or 0 at the end. */
static char receive(struct outside *outside, int *descriptor)
{
    char letter = 0, space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&letter, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    ssize_t size;
    while ((size = recvmsg(outside->fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        continue;
    struct cmsghdr *control = size == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (control && control->cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(control), sizeof(int));
    return size == 1 ? letter : 0;
}

static void run_outside(struct outside *outside)
{
    for (;;) {
        struct pollfd polled[] = {{outside->fd, POLLIN, 0}, {outside->listener, POLLIN, 0}};
        if (poll(polled, outside->listener < 0 ? 1 : 2, -1) < 0 && errno != EINTR)
            break;
        if (polled[1].revents & POLLIN)
            report(outside);
        if (!polled[0].revents)
            continue;
        int descriptor = -1;
        char letter = receive(outside, &descriptor);
        if (letter == 'L' && outside->listener < 0) /* E1: the first, before the sandbox */
            outside->listener = descriptor;
        else if (letter == 'B')
            start_build(outside);
        else
            break;
    }
    outside->builder->cancel(outside->builder->data);
    if (outside->building)
        pthread_join(outside->thread, NULL);
}

/* --- the server's side ----------------------------------------------------------------------- */

int cn_monitor_start(struct cn_monitor *monitor, const struct cn_monitor_builder *builder,
                     struct cn_err *err)
{
    int pair[2];
    *monitor = (struct cn_monitor){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return cn_err_errno(err, errno, "sandbox: no socket for its monitor");
    pid_t pid = fork();
    if (pid < 0) {
        int saved = errno;
        close(pair[0]);
        close(pair[1]);
        return cn_err_errno(err, saved, "sandbox: its monitor cannot be started");
    }
    if (pid == 0) {
        close(pair[0]);
        (void)prctl(PR_SET_NAME, "cairn-monitor", 0, 0, 0);
        (void)setpgid(0, 0);            /* Ctrl-C is for the server, which ends us, */
        (void)signal(SIGTERM, SIG_IGN); /* and so is what a service manager sends to all */
        struct outside outside = {.fd = pair[1], .listener = -1, .builder = builder};
        run_outside(&outside);
        _exit(0);
    }
    close(pair[1]);
    *monitor = (struct cn_monitor){pair[0], pid};
    return 0;
}

int cn_monitor_watch(struct cn_monitor *monitor, int listener, struct cn_err *err)
{
    char letter = 'L', space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&letter, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &listener, sizeof(int));
    int rc = 0;
    if (sendmsg(monitor->fd, &message, MSG_NOSIGNAL) != 1)
        rc = cn_err_errno(err, errno, "sandbox: its monitor does not answer");
    close(listener);
    return rc;
}

int cn_monitor_build(struct cn_monitor *monitor, struct cn_err *err)
{
    struct cn_err result;
    ssize_t size = send(monitor->fd, "B", 1, MSG_NOSIGNAL);
    while (size == 1 && (size = recv(monitor->fd, &result, sizeof(result), MSG_WAITALL)) < 0 &&
           errno == EINTR)
        size = 1;
    if (size != sizeof(result))
        return cn_err_set(err, CN_ECLOSED,
                          "nothing can be built: the process outside of the sandbox has ended");
    if (result.code < 0)
        *err = result;
    return result.code;
}

void cn_monitor_cancel(struct cn_monitor *monitor)
{
    (void)shutdown(monitor->fd, SHUT_RDWR); /* it may have ended already */
}

void cn_monitor_stop(struct cn_monitor *monitor)
{
    if (monitor->pid == 0)
        return;
    close(monitor->fd);
    while (waitpid(monitor->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *monitor = (struct cn_monitor){.fd = -1};
}
