/* SPDX-License-Identifier: Apache-2.0 */
/* The child of the bundler, with other programs in esbuild's place: more than a pipe holds goes both ways,
 * what the system refuses is a sentence (B1), and its end is seen. */
#include "bundler/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

#define MUCH (5u << 20)

static struct cn_child child;
static struct cn_err err;

static int start(const char *program)
{
    char *argv[] = {(char *)program, NULL};
    child = (struct cn_child){.in = -1, .out = -1};
    err = (struct cn_err){0};
    return cn_child_start(&child, argv, &err);
}

TEST(child, more_than_a_pipe_holds_goes_to_it_and_comes_back)
{
    struct cn_buf got = {0};
    int files = tree_open_files();
    uint8_t *bytes = cn_alloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    CHECK_INT(0, start("/bin/cat"));
    cn_child_send(&child, bytes, MUCH);
    CHECK(child.waiting.size > 0); /* it waits: nobody reads what the child writes */
    while (got.size < MUCH) {
        struct pollfd fds[] = {{child.out, POLLIN, 0},
                               {child.waiting.size ? child.in : -1, POLLOUT, 0}};
        CHECK(poll(fds, 2, -1) > 0);
        cn_child_flush(&child);
        if (fds[0].revents)
            CHECK_INT(1, cn_child_receive(&child, &got));
    }
    CHECK_INT(MUCH, got.size);
    CHECK(memcmp(bytes, got.data, MUCH) == 0);
    cn_child_stop(&child);
    CHECK_INT(-1, child.in);
    cn_child_stop(&child); /* again is nothing */
    cn_buf_fini(&got);
    cn_free(bytes);
    CHECK_INT(files, tree_open_files());
}

TEST(child, its_end_is_seen_and_what_is_sent_then_is_dropped)
{
    struct cn_buf got = {0};
    signal(SIGPIPE, SIG_IGN);
    CHECK_INT(0, start("/bin/true"));
    CHECK_INT(0, cn_child_receive(&child, &got));
    struct pollfd nobody = {child.in, 0, 0};
    CHECK(poll(&nobody, 1, -1) == 1 && nobody.revents & POLLERR);
    cn_child_send(&child, "text", 4);
    CHECK(child.deaf);
    cn_child_send(&child, "text", 4);
    cn_child_stop(&child);
    cn_child_send(&child, "text", 4);
    CHECK_INT(0, child.waiting.size);
    cn_buf_fini(&got);
}

TEST(child, B1_what_the_system_refuses_is_a_sentence)
{
    struct rlimit before, few;
    CHECK_INT(-ENOENT, start("/nowhere/esbuild"));
    CHECK_STR("/nowhere/esbuild cannot be started: No such file or directory", err.text);
    CHECK_INT(-1, child.in);
    int files = tree_open_files();
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    int next = dup(0);
    close(next);
    for (rlim_t i = 0; i < 4; i++) { /* of the four ends of two pipes */
        few = (struct rlimit){(rlim_t)next + i, before.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        int rc = start("/bin/cat");
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
        CHECK_INT(-EMFILE, rc);
        CHECK_STR("/bin/cat cannot be started: no pipe: Too many open files", err.text);
        CHECK_INT(files, tree_open_files());
    }
}
