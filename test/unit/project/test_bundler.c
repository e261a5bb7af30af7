/* SPDX-License-Identifier: Apache-2.0 */
/* The child that bundles, with another program in its place: started once and kept, started again
 * if it has died, and ended by whoever cancels. Build commands likewise. */
#include "project/bundler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "test/lib/fake_bundler.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

static struct cn_bundler bundler;
static struct cn_err err;

static void open_bundler(void)
{
    fake_bundler_install();
    if (cn_bundler_init(&bundler, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* A job whose output folder is `dir`. */
static struct cn_buf make_job(const char *dir)
{
    struct cn_buf job = {0};
    tree_write(dir, "entry.js", "(function(){})");
    cn_buf_printf(&job, "{\"entry\":\"%s\",\"out\":\"%s\",\"key\":\"77\"}",
                  tree_path(dir, "entry.js"), dir);
    return job;
}

static int run_for(struct cn_buf job, unsigned limit_ms, struct cn_buf *answer)
{
    err = (struct cn_err){0};
    int rc = cn_bundler_run(&bundler, &job, limit_ms, answer, &err);
    CHECK_INT(rc, err.code);
    return rc;
}

static int run(struct cn_buf job, struct cn_buf *answer)
{
    return run_for(job, 0, answer);
}

TEST(bundler, it_is_found_beside_the_executable)
{
    unsetenv("CAIRN_BUNDLER");
    CHECK_INT(0, cn_bundler_init(&bundler, &err));
    CHECK(access(bundler.program, X_OK) == 0);
    CHECK_INT(0, bundler.pid); /* nothing runs before a job */
    cn_bundler_fini(&bundler);
    cn_bundler_fini(&bundler); /* again is nothing */
}

TEST(bundler, one_child_does_all_jobs_until_it_rests)
{
    struct cn_buf answer = {0};
    int files = tree_open_files();
    open_bundler();
    struct cn_buf job = make_job(test_dir());
    cn_buf_append_str(&answer, "before ");
    CHECK_INT(0, run(job, &answer));
    CHECK_STR("before {\"ok\":true,\"text\":\"\"}", cn_buf_text(&answer));
    CHECK_INT(0, run(job, &answer));
    CHECK_INT(1, fake_bundler_starts());
    cn_bundler_rest(&bundler);
    CHECK_INT(0, bundler.pid);
    cn_bundler_rest(&bundler);
    CHECK_INT(0, run(job, &answer));
    CHECK_INT(2, fake_bundler_starts());
    CHECK_INT(3, fake_bundler_jobs());
    cn_bundler_fini(&bundler);
    cn_buf_fini(&answer);
    cn_buf_fini(&job);
    CHECK_INT(files, tree_open_files());
}

/* What half an answer there was is not in the next. */
TEST(bundler, a_child_that_died_is_started_once_more_and_no_oftener)
{
    struct cn_buf answer = {0};
    open_bundler();
    struct cn_buf job = make_job(test_dir());
    fake_bundler_mode("die-once");
    CHECK_INT(0, run(job, &answer));
    CHECK_STR("{\"ok\":true,\"text\":\"\"}", cn_buf_text(&answer));
    CHECK_INT(2, fake_bundler_starts());
    cn_buf_clear(&answer);
    fake_bundler_mode("half-once");
    CHECK_INT(0, run(job, &answer));
    CHECK_STR("{\"ok\":true,\"text\":\"\"}", cn_buf_text(&answer));
    CHECK_INT(3, fake_bundler_starts());
    cn_buf_clear(&answer);
    fake_bundler_mode("die");
    CHECK_INT(CN_ECLOSED, run(job, &answer));
    CHECK_INT(4, fake_bundler_starts()); /* the one that was there, and another */
    CHECK_INT(0, bundler.pid);
    /* One that was killed between two jobs is not noticed before the next. */
    fake_bundler_mode("build");
    CHECK_INT(0, run(job, &answer));
    kill(bundler.pid, SIGKILL);
    cn_buf_clear(&answer);
    CHECK_INT(0, run(job, &answer));
    CHECK_STR("{\"ok\":true,\"text\":\"\"}", cn_buf_text(&answer));
    cn_bundler_fini(&bundler);
    cn_buf_fini(&answer);
    cn_buf_fini(&job);
}

TEST(bundler, one_that_is_not_there_is_a_sentence)
{
    struct cn_buf answer = {0};
    CHECK(setenv("CAIRN_BUNDLER", "/nowhere/bundler", 1) == 0);
    CHECK_INT(0, cn_bundler_init(&bundler, &err));
    struct cn_buf job = make_job(test_dir());
    int files = tree_open_files();
    CHECK_INT(-ENOENT, run(job, &answer));
    CHECK_STR("the bundler /nowhere/bundler cannot be started: No such file or directory",
              err.text);
    CHECK_INT(0, bundler.pid);
    CHECK_INT(files, tree_open_files());
    cn_bundler_fini(&bundler);
    cn_buf_fini(&answer);
    cn_buf_fini(&job);
}

static void *cancel_when_it_runs(void *data)
{
    bool (*runs)(void) = (bool (*)(void))data;
    while (!runs())
        usleep(1000);
    cn_bundler_cancel(&bundler);
    return NULL;
}

static bool had_a_job(void)
{
    return fake_bundler_jobs() > 0;
}

static char shell_folder[256];

static bool had_begun(void)
{
    return tree_has(shell_folder, "begun");
}

TEST(bundler, cancel_ends_a_job_under_way_and_later_ones_at_once)
{
    struct cn_buf answer = {0};
    pthread_t thread;
    open_bundler();
    struct cn_buf job = make_job(test_dir());
    fake_bundler_mode("hang");
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_when_it_runs, (void *)had_a_job));
    CHECK(run(job, &answer) < 0);
    pthread_join(thread, NULL);
    unsigned starts = fake_bundler_starts();
    CHECK_INT(-ECANCELED, run(job, &answer));
    CHECK_INT(-ECANCELED, cn_bundler_shell(&bundler, "true", "/", "", &err));
    CHECK_INT(starts, fake_bundler_starts());
    cn_bundler_fini(&bundler);
    cn_buf_fini(&answer);
    cn_buf_fini(&job);
}

/* U2 */
TEST(bundler, a_job_ends_by_its_limit_and_the_next_is_built)
{
    struct cn_buf answer = {0};
    open_bundler();
    struct cn_buf job = make_job(test_dir());
    fake_bundler_mode("hang");
    CHECK_INT(CN_ETIMEOUT, run_for(job, 50, &answer));
    CHECK_INT(1, fake_bundler_starts()); /* it is not tried again */
    CHECK_INT(0, bundler.pid);
    fake_bundler_mode("build");
    CHECK_INT(0, run_for(job, 600000, &answer));
    CHECK_STR("{\"ok\":true,\"text\":\"\"}", cn_buf_text(&answer));
    cn_bundler_fini(&bundler);
    cn_buf_fini(&answer);
    cn_buf_fini(&job);
}

TEST(bundler, a_command_runs_in_its_folder_with_its_programs_first)
{
    const char *dir = test_dir();
    char programs[600];
    open_bundler();
    tree_write(dir, "bin/tool", "#!/bin/sh\necho mine > out\n");
    CHECK_INT(0, cn_bundler_shell(&bundler, "chmod +x bin/tool && pwd > here", dir, "", &err));
    snprintf(programs, sizeof(programs), "%s:", tree_path(dir, "bin"));
    CHECK_INT(0, cn_bundler_shell(&bundler, "tool; echo \"$0 'quoted' $((1+1))\" > args", dir,
                                  programs, &err));
    char *out = tree_read(dir, "out"), *args = tree_read(dir, "args");
    CHECK_STR("mine\n", out);
    CHECK_STR("sh 'quoted' 2\n", args);
    cn_free(out);
    cn_free(args);
    CHECK(tree_has(dir, "here"));
    CHECK_INT(0, bundler.shell);
    cn_bundler_fini(&bundler);
}

TEST(bundler, a_command_that_fails_says_how)
{
    const char *dir = test_dir();
    open_bundler();
    CHECK_INT(CN_EINVALID, cn_bundler_shell(&bundler, "exit 3", dir, "", &err));
    CHECK(strstr(err.text, "exit code 3"));
    CHECK_INT(CN_EINVALID, cn_bundler_shell(&bundler, "kill -9 $$", dir, "", &err));
    CHECK(strstr(err.text, "signal 9"));
    CHECK(cn_bundler_shell(&bundler, "true", tree_path(dir, "none"), "", &err) < 0);
    cn_bundler_fini(&bundler);
}

/* With all that it has started. */
TEST(bundler, cancel_ends_a_command_and_its_children)
{
    pthread_t thread;
    open_bundler();
    snprintf(shell_folder, sizeof(shell_folder), "%s", test_dir());
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_when_it_runs, (void *)had_begun));
    CHECK_INT(CN_EINVALID,
              cn_bundler_shell(&bundler, "sleep 1000 & echo $! > child; touch begun; wait",
                               shell_folder, "", &err));
    CHECK(strstr(err.text, "signal 9"));
    pthread_join(thread, NULL);
    char *child = tree_read(shell_folder, "child");
    pid_t pid = (pid_t)atol(child);
    char state[64], stat_path[64];
    /* Whoever reaps orphans may be slow: dead is enough. */
    snprintf(stat_path, sizeof(stat_path), "/proc/%ld/stat", (long)pid);
    for (int i = 0;; i++) {
        FILE *file = fopen(stat_path, "r");
        bool gone = !file || !fgets(state, sizeof(state), file) || strstr(state, ") Z ");
        if (file)
            fclose(file);
        if (gone)
            break;
        CHECK(i < 30000);
        usleep(1000);
    }
    cn_free(child);
    cn_bundler_fini(&bundler);
}
