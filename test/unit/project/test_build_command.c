/* SPDX-License-Identifier: Apache-2.0 */
/* `build.command`: with the project's own programs (B1), only when something has changed (B2), and
 * when that cannot be told (B3). */
#include "project/build_command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "project/bundler.h"
#include "test/lib/fake_bundler.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

struct world {
    struct cn_bundler bundler;
    struct cn_config config;
    struct cn_err err;
    char dir[256], memory[256]; /* .data of the project, as its data directory is */
};

/* A command that writes a line into `ran` (which does not count) and its product. */
#define COMMAND "echo x >> .ran; mkdir -p dist; cat src/*.js > dist/out.js"

static void open_world(struct world *world, const char *command)
{
    memset(world, 0, sizeof(*world));
    fake_bundler_install();
    CHECK_INT(0, cn_bundler_init(&world->bundler, &world->err));
    snprintf(world->dir, sizeof(world->dir), "%s", test_dir());
    snprintf(world->memory, sizeof(world->memory), "%s", tree_path(world->dir, ".data/w"));
    tree_write(world->dir, "src/a.js", "a");
    world->config.dir = world->dir;
    world->config.build.command = command;
}

static int run(struct world *world, bool always)
{
    world->err = (struct cn_err){0};
    int rc =
        cn_build_command_run(&world->bundler, &world->config, world->memory, always, &world->err);
    CHECK_INT(rc, world->err.code);
    return rc;
}

static size_t runs(struct world *world)
{
    char *text = tree_read(world->dir, ".ran");
    size_t count = text ? strlen(text) / 2 : 0;
    cn_free(text);
    return count;
}

static void close_world(struct world *world)
{
    cn_bundler_fini(&world->bundler);
}

TEST(build_command, none_is_done)
{
    struct world world;
    open_world(&world, NULL);
    CHECK_INT(0, run(&world, true));
    CHECK(!tree_has(world.dir, ".data"));
    close_world(&world);
}

/* B2 */
TEST(build_command, it_runs_again_only_when_something_has_changed)
{
    struct world world;
    open_world(&world, COMMAND);
    CHECK_INT(0, run(&world, false));
    CHECK_INT(1, runs(&world));
    CHECK_INT(0, run(&world, false)); /* what it wrote itself is no change */
    CHECK_INT(1, runs(&world));
    CHECK_INT(0, run(&world, true));
    CHECK_INT(2, runs(&world));
    CHECK_INT(0, run(&world, false));
    CHECK_INT(2, runs(&world));
    struct {
        const char *name, *text;
        bool counts;
    } rows[] = {
        {"src/a.js", "b2", true},
        {"src/deep/new.js", "", true},
        {"dist/out.js", "by hand", true}, /* its product, changed after it */
        {"package.json", "{}", true},
        {".env", "A=1", true},
        {"node_modules/.package-lock.json", "{}", true},
        {"node_modules/x/i.js", "", false},
        {".git/HEAD", "x", false},
        {"target/debug/x", "", false},
        {".data/other", "", false},
    };
    size_t before = 2;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tree_write(world.dir, rows[i].name, rows[i].text);
        CHECK_INT(0, run(&world, false));
        before += rows[i].counts;
        if (runs(&world) != before)
            test_fail(__FILE__, __LINE__, "%s: %zu runs", rows[i].name, runs(&world));
    }
    /* A time alone counts as well, and so do removal, another command and another folder. */
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK(utimensat(AT_FDCWD, tree_path(world.dir, "src/a.js"), times, 0) == 0);
    CHECK_INT(0, run(&world, false));
    CHECK_INT(++before, runs(&world));
    CHECK(unlink(tree_path(world.dir, "src/deep/new.js")) == 0);
    CHECK(rmdir(tree_path(world.dir, "src/deep")) == 0);
    CHECK_INT(0, run(&world, false));
    CHECK_INT(++before, runs(&world));
    world.config.build.command = COMMAND " ";
    CHECK_INT(0, run(&world, false));
    CHECK_INT(++before, runs(&world));
    CHECK_INT(0, run(&world, false));
    CHECK_INT(before, runs(&world));
    close_world(&world);
}

/* B2: what it reads may lie outside of the project; and what changed while it ran is not lost. */
TEST(build_command, watched_folders_count_from_before_the_run)
{
    struct world world;
    const char *outside = test_dir();
    char other[256];
    snprintf(other, sizeof(other), "%s", outside);
    const char *folders[] = {"src", other};
    open_world(&world, COMMAND);
    world.config.build.watch_dir = (struct cn_strings){.items = folders, .count = 2};
    tree_write(other, "in", "1");
    CHECK_INT(0, run(&world, false));
    CHECK_INT(0, run(&world, false));
    CHECK_INT(1, runs(&world));
    tree_write(other, "in", "22");
    CHECK_INT(0, run(&world, false));
    CHECK_INT(2, runs(&world));
    /* The command itself changes what it reads: it would read something else now. */
    world.config.build.command = COMMAND "; echo more >> src/a.js";
    CHECK_INT(0, run(&world, false));
    CHECK_INT(0, run(&world, false));
    CHECK_INT(4, runs(&world));
    close_world(&world);
}

/* B3 */
TEST(build_command, a_run_that_failed_is_not_remembered)
{
    struct world world;
    open_world(&world, COMMAND);
    CHECK_INT(0, run(&world, false));
    world.config.build.command = "echo x >> .ran; exit 1";
    CHECK_INT(CN_EINVALID, run(&world, false));
    CHECK(strstr(world.err.text, "exit code 1"));
    CHECK(!tree_has(world.memory, "command.txt"));
    CHECK_INT(CN_EINVALID, run(&world, false));
    CHECK_INT(3, runs(&world));
    world.config.build.command = COMMAND;
    CHECK_INT(0, run(&world, false)); /* though it is what ran first */
    CHECK_INT(4, runs(&world));
    /* What cannot be read of the last run is no last run. */
    tree_write(world.memory, "command.txt", "nonsense");
    CHECK_INT(0, run(&world, false));
    CHECK_INT(5, runs(&world));
    close_world(&world);
}

/* B3 */
TEST(build_command, folders_too_deep_to_look_at_make_it_run)
{
    struct world world;
    char name[256] = "";
    open_world(&world, COMMAND);
    for (int i = 0; i < 34; i++)
        strcat(name, "d/");
    strcat(name, "f");
    tree_write(world.dir, name, "");
    CHECK_INT(0, run(&world, false));
    CHECK_INT(0, run(&world, false));
    CHECK_INT(2, runs(&world));
    close_world(&world);
}

/* B1 */
TEST(build_command, programs_of_packages_come_first_the_nearest_before_all)
{
    struct world world;
    open_world(&world, "tool");
    tree_write(world.dir, "node_modules/.bin/tool", "#!/bin/sh\necho near > .from\n");
    CHECK(chmod(tree_path(world.dir, "node_modules/.bin/tool"), 0755) == 0);
    char inner[300];
    snprintf(inner, sizeof(inner), "%s", tree_path(world.dir, "packages/p"));
    tree_write(world.dir, "packages/p/src/a.js", "");
    world.config.dir = inner;
    CHECK_INT(0, run(&world, false)); /* from a folder above */
    char *from = tree_read(inner, ".from");
    CHECK_STR("near\n", from);
    cn_free(from);
    tree_write(inner, "node_modules/.bin/tool", "#!/bin/sh\necho nearer > .from\n");
    CHECK(chmod(tree_path(inner, "node_modules/.bin/tool"), 0755) == 0);
    CHECK_INT(0, run(&world, true));
    from = tree_read(inner, ".from");
    CHECK_STR("nearer\n", from);
    cn_free(from);
    /* In another folder, by a name relative to the project. */
    world.config.build.cwd = "../..";
    CHECK_INT(0, run(&world, true));
    from = tree_read(world.dir, ".from");
    CHECK_STR("near\n", from);
    cn_free(from);
    close_world(&world);
}
