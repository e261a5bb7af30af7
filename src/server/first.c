/* SPDX-License-Identifier: Apache-2.0 */
#include "server/first.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static void be_first(pid_t server, const sigset_t *all)
{
    int status = 0, code = -1;
    (void)prctl(PR_SET_NAME, "cairn-first", 0, 0, 0);
    for (;;) {
        siginfo_t info;
        if (sigwaitinfo(all, &info) < 0)
            continue;
        if (info.si_signo != SIGCHLD) {
            if (code < 0 && info.si_code != SI_KERNEL)
                (void)kill(server, info.si_signo);
            continue;
        }
        pid_t pid;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == server)
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (pid < 0 && code >= 0)
            _exit(code); /* nobody is left */
    }
}

int cn_first_step_down(struct cn_err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid > 0)
        be_first(pid, &all);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? cn_err_errno(err, saved, "a process of its own for the server") : 0;
}
