/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of a container, played by a process that takes in orphans. */
#include "server/first.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "test/lib/test.h"

static int told[2]; /* what an orphan says */

/* Ends after the server, and says so. */
static void leave_orphan(void)
{
    struct pollfd server = {(int)syscall(SYS_pidfd_open, getpid(), 0), POLLIN, 0};
    pid_t parent = fork();
    if (parent == 0 && fork() == 0)
        _exit(poll(&server, 1, -1) != 1 || write(told[1], "o", 1) != 1);
    if (parent == 0)
        _exit(0);
    CHECK_INT(parent, waitpid(parent, NULL, 0));
}

/* As a container's runtime would see process 1. */
static int run_first(void (*server)(void))
{
    int status;
    CHECK_INT(0, pipe(told));
    pid_t first = fork();
    if (first == 0) {
        struct cn_err err;
        if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || cn_first_step_down(&err) < 0)
            _exit(100);
        server();
        _exit(101);
    }
    close(told[1]);
    CHECK_INT(first, waitpid(first, &status, 0));
    return status;
}

static void serve_until_told(void)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    leave_orphan();
    /* Both are for the process that everybody knows. */
    kill(getppid(), SIGHUP);
    if (sigwait(&set, &number) != 0 || number != SIGHUP)
        _exit(102);
    kill(getppid(), SIGTERM);
    if (sigwait(&set, &number) != 0 || number != SIGTERM)
        _exit(103);
    _exit(4);
}

TEST(first, passes_signals_on_and_ends_last_with_the_servers_exit_code)
{
    char byte = 0;
    int status = run_first(serve_until_told);
    CHECK(WIFEXITED(status));
    CHECK_INT(4, WEXITSTATUS(status));
    CHECK_INT(1, read(told[0], &byte, 1)); /* the orphan had said it before process 1 ended */
    CHECK_INT(0, read(told[0], &byte, 1)); /* and nobody lives who could say more */
    close(told[0]);
}

static void die(void)
{
    raise(SIGKILL);
}

TEST(first, tells_of_a_signal_that_ended_the_server)
{
    int status = run_first(die);
    CHECK(WIFEXITED(status));
    CHECK_INT(128 + SIGKILL, WEXITSTATUS(status));
    close(told[0]);
}
