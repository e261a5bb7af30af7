/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/err.h"
#include "membership/engine_pg.h"
#include "membership/report_dead.h"

enum {
    BURY_MS = 10000, /* W3 */
    CLOSED_MS = 2000 /* W5: how long a process takes to end once its files are closed */
};

/* Of the witness. */
enum { PROCESS_FD = STDERR_FILENO + 1, SOCKET_FD };

/* What is said, a message each. */
struct word {
    uint64_t disk, life; /* life 0: the node has left */
    char cluster[CN_ENGINE_PG_ID_SIZE];
};

/* --- the witness ------------------------------------------------------------------------------ */

/* Waits for one of the two, `timeout_ms` at the most (-1: for ever). */
static struct pollfd *await(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    int rc;
    while ((rc = poll(polled, count, timeout_ms)) < 0 && errno == EINTR)
        continue;
    for (nfds_t i = 0; i < count && rc > 0; i++)
        if (polled[i].revents)
            return &polled[i];
    return NULL;
}

/* Until the process has ended: true. False: it lives and has another image now (W5). */
static bool await_death(int process, int socket, struct word *last)
{
    struct pollfd polled[] = {{process, POLLIN, 0}, {socket, POLLIN, 0}};
    struct word word;
    for (;;) {
        struct pollfd *ready = await(polled, 2, -1);
        /* What it said last is still there when it is dead. */
        ssize_t size = recv(socket, &word, sizeof(word), MSG_DONTWAIT);
        if (size == sizeof(word))
            *last = word;
        else if (size == 0 || (ready && ready->fd == process))
            return await(polled, 1, size == 0 ? CLOSED_MS : 0) != NULL;
    }
}

static void bury(const struct cn_witness_options *options, const struct word *word)
{
    struct cn_err err = {0};
    struct cn_report_dead dead = {.conninfo = options->conninfo,
                                  .node = options->node,
                                  .cluster = word->cluster,
                                  .disk = word->disk,
                                  .life = word->life,
                                  .allow_flaws = options->allow_flaws};
    if (cn_report_dead(&dead, options->bury_ms ? options->bury_ms : BURY_MS, &err) == 0)
        cn_warn("cluster: the process of %s has ended without leaving; the engine was told, others "
                "take over",
                options->node);
    else
        cn_warn("cluster: the process of %s has ended without leaving: %s", options->node,
                err.text);
}

/* W3, W4. Whatever is not there need not be given up. */
static int let_go(int process, int socket)
{
    static const int for_others[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                     SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < CN_ARRAY_COUNT(for_others); i++)
        (void)signal(for_others[i], SIG_IGN);
    (void)prctl(PR_SET_NAME, "cairn-witness", 0, 0, 0);
    int nothing = open("/dev/null", O_RDWR);
    if (chdir("/") < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0)
        return -1;
    /* Those it keeps come after standard error, then all others go. */
    int first = fcntl(process, F_DUPFD, 100), second = fcntl(socket, F_DUPFD, 100);
    if (first < 0 || second < 0 || dup2(first, PROCESS_FD) < 0 || dup2(second, SOCKET_FD) < 0)
        return -1;
    return (int)syscall(SYS_close_range, SOCKET_FD + 1u, ~0u, 0u);
}

static void be_witness(const struct cn_witness_options *options, int process, int socket)
{
    struct word word = {0};
    if (let_go(process, socket) < 0)
        _exit(1);
    if (await_death(PROCESS_FD, SOCKET_FD, &word) && word.life)
        bury(options, &word);
    _exit(0);
}

/* --- the server's side ------------------------------------------------------------------------ */

/* Twice, so that it is no child of the server, who knows nothing of it after W5. */
static int start(const struct cn_witness_options *options, int process, const int *ends,
                 struct cn_err *err)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t second = setsid() < 0 ? -1 : fork();
        if (second == 0)
            be_witness(options, process, ends[0]);
        _exit(second < 0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid > 0 && status == 0)
        return 0;
    return cn_err_errno(err, pid < 0 ? errno : EAGAIN,
                        "the witness of this node cannot be started");
}

int cn_witness_start(struct cn_witness *witness, const struct cn_witness_options *options,
                     struct cn_err *err)
{
    int ends[2];
    witness->fd = -1;
    CN_ASSERT(getpid() != 1); /* W6 */
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0u);
    if (process < 0)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "no other process can watch this one (pidfd_open: %s)", strerror(errno));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        cn_err_errno(err, errno, "a socket to the witness of this node");
        close(process);
        return err->code;
    }
    int rc = start(options, process, ends, err);
    close(process);
    close(ends[0]);
    if (rc < 0) {
        close(ends[1]);
        return rc;
    }
    witness->fd = ends[1];
    return 0;
}

/* Waits for nobody: a witness that is stopped has room for more than is ever said. One that is gone
 * is found by cn_witness_lives(). */
static void say(struct cn_witness *witness, const struct word *word)
{
    if (witness->fd >= 0)
        (void)send(witness->fd, word, sizeof(*word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void cn_witness_tell(struct cn_witness *witness, uint64_t disk, uint64_t life, const char *cluster)
{
    struct word word = {.disk = disk, .life = life};
    CN_ASSERT(life);
    snprintf(word.cluster, sizeof(word.cluster), "%s", cluster);
    say(witness, &word);
}

void cn_witness_left(struct cn_witness *witness)
{
    struct word word = {0};
    say(witness, &word);
}

bool cn_witness_lives(const struct cn_witness *witness)
{
    struct pollfd polled = {witness->fd, 0, 0};
    return witness->fd >= 0 && !(poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP));
}

void cn_witness_close(struct cn_witness *witness)
{
    if (witness->fd >= 0)
        close(witness->fd);
    witness->fd = -1;
}
