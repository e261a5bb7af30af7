/* SPDX-License-Identifier: Apache-2.0 */
/* The process outside of a sandbox: builds when asked, hands errors back, keeps what it is given,
 * and ends with the server or when it is cancelled. */
#include "project/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

/* Seen by both processes. */
struct shared {
    atomic_uint builds, cancels;
    atomic_int result;
    atomic_bool waits, cancelled;
    atomic_int pid;
};

static struct shared *shared;

static int build(void *data, struct cn_err *err)
{
    struct shared *seen = data;
    atomic_store(&seen->pid, (int)getpid());
    atomic_fetch_add(&seen->builds, 1);
    while (atomic_load(&seen->waits) && !atomic_load(&seen->cancelled))
        usleep(1000);
    int rc = atomic_load(&seen->result);
    return rc < 0 ? cn_err_set(err, rc, "the project of %d does not build", 7) : 0;
}

static void cancel(void *data)
{
    struct shared *seen = data;
    atomic_fetch_add(&seen->cancels, 1);
    atomic_store(&seen->cancelled, true);
}

static void start(struct cn_monitor *monitor)
{
    static struct cn_monitor_builder builder;
    struct cn_err err = {0};
    if (!shared)
        shared =
            mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    memset((void *)shared, 0, sizeof(*shared));
    builder = (struct cn_monitor_builder){build, cancel, shared};
    fflush(stdout);
    CHECK_INT(0, cn_monitor_start(monitor, &builder, &err));
    CHECK(monitor->fd >= 0 && monitor->pid > 0);
}

TEST(monitor, it_builds_outside_of_this_process_and_says_how_it_went)
{
    struct cn_monitor monitor;
    struct cn_err err = {.code = 1, .text = "as it was"};
    int files = tree_open_files();
    start(&monitor);
    CHECK_INT(0, cn_monitor_build(&monitor, &err));
    CHECK_STR("as it was", err.text); /* nothing is written without an error */
    CHECK_INT(monitor.pid, shared->pid);
    atomic_store(&shared->result, CN_EINVALID);
    CHECK_INT(CN_EINVALID, cn_monitor_build(&monitor, &err));
    CHECK_INT(CN_EINVALID, err.code);
    CHECK_STR("the project of 7 does not build", err.text);
    atomic_store(&shared->result, 0);
    for (int i = 0; i < 20; i++)
        CHECK_INT(0, cn_monitor_build(&monitor, &err));
    CHECK_INT(22, shared->builds);
    pid_t pid = monitor.pid;
    cn_monitor_stop(&monitor);
    CHECK_INT(-1, monitor.fd);
    CHECK(kill(pid, 0) < 0 && errno == ESRCH); /* ended and reaped */
    CHECK_INT(files, tree_open_files());
    cn_monitor_stop(&monitor); /* one that is not there */
}

static void *cancel_when_it_builds(void *data)
{
    while (!atomic_load(&shared->builds))
        usleep(1000);
    cn_monitor_cancel(data);
    return NULL;
}

TEST(monitor, cancel_ends_a_build_under_way_and_later_ones)
{
    struct cn_monitor monitor;
    struct cn_err err = {0};
    pthread_t thread;
    start(&monitor);
    atomic_store(&shared->waits, true);
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_when_it_builds, &monitor));
    CHECK_INT(CN_ECLOSED, cn_monitor_build(&monitor, &err));
    CHECK(strstr(err.text, "nothing can be built"));
    pthread_join(thread, NULL);
    CHECK_INT(CN_ECLOSED, cn_monitor_build(&monitor, &err));
    cn_monitor_stop(&monitor); /* waits for the process, which waits for its build */
    CHECK_INT(1, shared->cancels);
    CHECK_INT(1, shared->builds);
}

TEST(monitor, a_process_that_was_killed_is_told_from_a_build_that_failed)
{
    struct cn_monitor monitor;
    struct cn_err err = {0};
    signal(SIGPIPE, SIG_DFL); /* not even then is there a signal */
    start(&monitor);
    kill(monitor.pid, SIGKILL);
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)monitor.pid, &info, WEXITED | WNOWAIT) == 0);
    CHECK_INT(CN_ECLOSED, cn_monitor_build(&monitor, &err));
    int listener = dup(0);
    CHECK(cn_monitor_watch(&monitor, listener, &err) < 0);
    CHECK(fcntl(listener, F_GETFD) < 0); /* closed all the same */
    cn_monitor_stop(&monitor);
}

TEST(monitor, it_keeps_the_listener_and_ends_with_the_server)
{
    struct cn_monitor monitor;
    struct cn_err err = {0};
    int pipes[2];
    char byte;
    start(&monitor);
    CHECK(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0);
    CHECK_INT(0, cn_monitor_watch(&monitor, pipes[1], &err));
    CHECK(fcntl(pipes[1], F_GETFD) < 0); /* it is the other's now */
    CHECK_INT(0, cn_monitor_build(&monitor, &err));
    CHECK(read(pipes[0], &byte, 1) < 0 && errno == EAGAIN); /* and open there */
    cn_monitor_stop(&monitor);
    CHECK_INT(0, read(pipes[0], &byte, 1));
    CHECK_INT(1, shared->cancels);
    close(pipes[0]);
}
