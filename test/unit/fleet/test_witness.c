/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that die, leave, execute themselves anew or lose their witness, on a real engine. */
#include "fleet/witness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "membership/engine.h"
#include "membership/report_dead.h"
#include "server/first.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

static struct test_postgres postgres;
static char conninfo[200];
static unsigned bury_ms;

#define CLUSTER "SELECT id FROM cairn.cluster"
#define IS_LIVE "SELECT live FROM cairn.session WHERE disk = 7"

/* An engine with a session of disk 7, life 5. */
static void make_engine(void)
{
    struct cn_err err = {0};
    test_postgres_need();
    test_postgres_make(&postgres, "");
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn dbname=postgres", postgres.dir);
    struct cn_report_dead nobody = {conninfo, "maker", NULL, 1, 1, CN_ENGINE_NO_STANDBY};
    CHECK_INT(0, cn_report_dead(&nobody, 20000, &err)); /* makes the tables */
    test_postgres_ask(&postgres, "INSERT INTO cairn.session(id, disk, life, live, link, head, "
                                 "beat) VALUES (1, 7, 5, true, 1, 0, 1)");
}

/* A process that is a server with a witness; `then` is what it does afterwards. */
struct served {
    pid_t pid;
    int output; /* standard error of both: at its end when both have ended */
    char text[4096];
};

static struct served serve(void (*then)(struct cn_witness *witness), bool first)
{
    struct served served = {0};
    char cluster[64];
    int pipes[2], ready[2];
    char byte;
    snprintf(cluster, sizeof(cluster), "%s", test_postgres_ask(&postgres, CLUSTER));
    CHECK(pipe2(pipes, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
    if (first)
        CHECK(unshare(CLONE_NEWPID) == 0);
    served.pid = fork();
    if (served.pid == 0) {
        struct cn_witness witness;
        struct cn_err err = {0};
        struct cn_witness_options options = {conninfo, "node", CN_ENGINE_NO_STANDBY, bury_ms};
        dup2(pipes[1], STDERR_FILENO);
        if (first && cn_first_step_down(&err) < 0)
            _exit(8);
        if (cn_witness_start(&witness, &options, &err) < 0)
            _exit(9);
        cn_witness_tell(&witness, 7, 5, cluster);
        (void)!write(ready[1], "r", 1);
        then(&witness);
        _exit(3);
    }
    close(pipes[1]);
    close(ready[1]);
    CHECK_INT(1, read(ready[0], &byte, 1));
    close(ready[0]);
    served.output = pipes[0];
    return served;
}

/* Until server and witness have ended; how the server, or process 1 in its place, has. */
static int await_end(struct served *served)
{
    size_t size = 0;
    ssize_t got;
    int status;
    while ((got = read(served->output, served->text + size, sizeof(served->text) - 1 - size)) > 0)
        size += (size_t)got;
    close(served->output);
    CHECK_INT(served->pid, waitpid(served->pid, &status, 0));
    return status;
}

static void be_still(struct cn_witness *witness)
{
    for (;;)
        pause();
}

static void leave(struct cn_witness *witness)
{
    cn_witness_left(witness);
    cn_witness_close(witness);
    _exit(0);
}

static void leave_and_crash(struct cn_witness *witness)
{
    cn_witness_left(witness);
    raise(SIGKILL);
}

static void become_another(struct cn_witness *witness)
{
    execl("/bin/sleep", "sleep", "30", NULL);
}

/* W4: serves on until it has seen that. */
static void lose_it(struct cn_witness *witness)
{
    while (cn_witness_lives(witness))
        usleep(1000);
    cn_witness_left(witness); /* nobody hears it, and no signal comes */
    _exit(0);
}

static void read_name(const char *pid, char name[64])
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, name, 63);
    name[size > 0 ? size - 1 : 0] = 0;
    if (fd >= 0)
        close(fd);
}

/* The process of that name with the same standard error; 0: there is none. */
static pid_t find_process(const struct served *served, const char *want)
{
    char path[300], name[64], theirs[64] = "", ours[64] = "";
    pid_t found = 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", served->output);
    CHECK(readlink(path, ours, sizeof(ours) - 1) > 0);
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; !found && (entry = readdir(dir));) {
        read_name(entry->d_name, name);
        snprintf(path, sizeof(path), "/proc/%s/fd/2", entry->d_name);
        memset(theirs, 0, sizeof(theirs));
        if (strcmp(name, want) == 0 && readlink(path, theirs, sizeof(theirs) - 1) > 0 &&
            strcmp(ours, theirs) == 0)
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    closedir(dir);
    return found;
}

TEST(witness, a_server_that_is_killed_is_buried_whatever_signals_came_before)
{
    make_engine();
    struct served served = serve(be_still, false);
    pid_t witness;
    while (!(witness = find_process(&served, "cairn-witness")))
        usleep(1000);
    for (int i = 0; i < 3; i++) { /* W4 */
        kill(witness, SIGTERM);
        kill(witness, SIGINT);
        kill(witness, SIGHUP);
    }
    CHECK_STR("t", test_postgres_ask(&postgres, IS_LIVE));
    CHECK(getsid(witness) != getsid(0)); /* W3 */
    kill(served.pid, SIGKILL);
    CHECK_INT(SIGKILL, WTERMSIG(await_end(&served)));
    CHECK_STR("f", test_postgres_ask(&postgres, IS_LIVE));
    CHECK(
        strstr(served.text, "the process of node has ended without leaving; the engine was told"));
    test_postgres_end(&postgres);
}

TEST(witness, one_that_has_left_is_not)
{
    make_engine();
    struct served served = serve(leave, false);
    CHECK_INT(0, await_end(&served));
    CHECK_STR("", served.text);
    CHECK_STR("t", test_postgres_ask(&postgres, IS_LIVE));
    served = serve(leave_and_crash, false); /* what it said is heard, however it ends */
    CHECK_INT(SIGKILL, WTERMSIG(await_end(&served)));
    CHECK_STR("", served.text);
    CHECK_STR("t", test_postgres_ask(&postgres, IS_LIVE));
    test_postgres_end(&postgres);
}

TEST(witness, one_that_executes_another_image_is_not_dead_and_the_witness_ends)
{
    make_engine();
    struct served served = serve(become_another, false);
    while (!find_process(&served, "sleep") || find_process(&served, "cairn-witness"))
        usleep(1000);
    CHECK_STR("t", test_postgres_ask(&postgres, IS_LIVE));
    kill(served.pid, SIGKILL);
    await_end(&served);
    test_postgres_end(&postgres);
}

TEST(witness, an_engine_that_is_away_is_given_up)
{
    make_engine();
    bury_ms = 300;
    struct served served = serve(be_still, false);
    test_postgres_kill(&postgres);
    kill(served.pid, SIGKILL);
    CHECK_INT(SIGKILL, WTERMSIG(await_end(&served)));
    CHECK(strstr(served.text, "the engine was not told"));
    test_postgres_end(&postgres);
}

TEST(witness, a_server_notices_that_it_has_none_any_more)
{
    make_engine();
    struct served served = serve(lose_it, false);
    pid_t witness;
    while (!(witness = find_process(&served, "cairn-witness")))
        usleep(1000);
    kill(witness, SIGKILL);
    CHECK_INT(0, await_end(&served));
    CHECK_STR("t", test_postgres_ask(&postgres, IS_LIVE));
    test_postgres_end(&postgres);
}

/* W6, and server/first.h: process 1 of a container. */
TEST(witness, as_the_first_process_it_serves_in_a_child_and_passes_signals_and_codes_on)
{
    if (geteuid() != 0)
        test_skip("namespaces are made by root");
    make_engine();
    struct served served = serve(be_still, true);
    pid_t server;
    while (!(server = find_process(&served, "test_witness")))
        usleep(1000);
    CHECK(server != served.pid);     /* that one is called cairn-first */
    kill(served.pid, SIGTERM);       /* is passed on: it would not end process 1 */
    int status = await_end(&served); /* and so is the witness: it was not ended before */
    CHECK_INT(128 + SIGTERM, WEXITSTATUS(status));
    CHECK_STR("f", test_postgres_ask(&postgres, IS_LIVE));
    test_postgres_end(&postgres);
}
