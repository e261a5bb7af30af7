/* SPDX-License-Identifier: Apache-2.0 */
/* A changed file becomes a reload, with real files and a program in the place of node. The server
 * is this file's: it has a loop and counts reloads. */
#include "server/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/loop.h"
#include "deploy/deploy.h"
#include "server/serve.h"
#include "test/lib/fake_bundler.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"
#include "worker/script.h"

#define SOURCE "(function(){return{}})"
#define TOML                                                                             \
    "name = \"a\"\nmain = \"src/i.js\"\ncompatibility_date = \"2026-01-01\"\n[assets]\n" \
    "directory = \"public\"\n"

struct cn_serve {
    uv_loop_t loop;
    unsigned reloads;
    bool loading;
    uint64_t released; /* the last ticket */
    char problem[200]; /* with it */
};

bool cn_serve_is_loading(const struct cn_serve *serve)
{
    return serve->loading;
}

void cn_serve_release(struct cn_serve *serve, uint64_t last, const char *problem)
{
    serve->released = last;
    snprintf(serve->problem, sizeof(serve->problem), "%s", problem ? problem : "");
}

struct uv_loop_s *cn_serve_loop(struct cn_serve *serve)
{
    return &serve->loop;
}

void cn_serve_reload(struct cn_serve *serve)
{
    serve->reloads++;
}

struct world {
    struct cn_serve serve;
    struct cn_deployer deployer;
    struct cn_watch watch;
    char dir[256], path[300];
    const char *list[1];
};

static int load(struct world *world)
{
    struct cn_deployment *deployment = NULL;
    struct cn_err err = {0};
    int rc = cn_watch_load(&world->watch, true, &deployment, &err);
    if (deployment)
        cn_deployment_unref(deployment);
    return rc;
}

static void open_world(struct world *world)
{
    struct cn_err err = {0};
    memset(world, 0, sizeof(*world));
    fake_bundler_install();
    char *real = realpath(test_dir(), NULL);
    snprintf(world->dir, sizeof(world->dir), "%s", real);
    free(real);
    snprintf(world->path, sizeof(world->path), "%s/a", world->dir);
    world->list[0] = world->path;
    tree_write(world->dir, "a/wrangler.toml", TOML);
    tree_write(world->dir, "a/src/i.js", SOURCE);
    tree_write(world->dir, "a/public/x", "1");
    struct cn_deploy_options options = {.paths = world->list, .path_count = 1, .development = true};
    CHECK_INT(0, cn_deployer_init(&world->deployer, &options, &err));
    CHECK_INT(0, cn_deployer_open(&world->deployer, &err));
    CHECK_INT(0, cn_loop_init(&world->serve.loop, NULL));
    cn_watch_init(&world->watch, &world->deployer);
    for (int i = 0; i < 2; i++) /* stamps are of the projects before */
        CHECK_INT(0, load(world));
    CHECK(!cn_deployer_changed(&world->deployer, NULL));
}

static void on_limit(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Runs the loop until it holds; fails after thirty seconds. */
static void run_until(struct world *world, bool (*holds)(struct world *world))
{
    bool late = false;
    uv_timer_t limit = {.data = &late};
    uv_timer_init(&world->serve.loop, &limit);
    uv_timer_start(&limit, on_limit, 30000, 0);
    while (!holds(world) && !late)
        uv_run(&world->serve.loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&limit, NULL);
    uv_run(&world->serve.loop, UV_RUN_NOWAIT);
    CHECK(!late);
}

static bool is_stirred(struct world *world)
{
    return uv_is_active((uv_handle_t *)&world->watch.timer);
}

static bool is_settled(struct world *world)
{
    return !is_stirred(world);
}

/* Something was seen, and what came of it is there. */
static void settle(struct world *world)
{
    run_until(world, is_stirred);
    run_until(world, is_settled);
}

static void close_world(struct world *world)
{
    cn_watch_stop(&world->serve, &world->watch);
    uv_run(&world->serve.loop, UV_RUN_DEFAULT);
    CHECK_INT(0, uv_loop_close(&world->serve.loop)); /* no handle is left */
    cn_deployer_fini(&world->deployer);
}

TEST(watch, a_burst_of_writes_is_one_reload)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    for (int i = 0; i < 5; i++) {
        tree_write(world.dir, "a/src/i.js", SOURCE "//1");
        tree_write(world.dir, "a/public/x", "22");
    }
    settle(&world);
    CHECK_INT(1, world.serve.reloads);
    close_world(&world);
}

TEST(watch, what_went_into_nothing_reloads_nothing)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    tree_write(world.dir, "a/src/other.js", "not imported");
    settle(&world);
    CHECK_INT(0, world.serve.reloads);
    tree_write(world.dir, "a/src/i.js", SOURCE "//1"); /* it goes on watching */
    settle(&world);
    CHECK_INT(1, world.serve.reloads);
    close_world(&world);
}

static bool has_more(struct world *world)
{
    return world->watch.watcher_count > 3;
}

/* A load may find folders that were not there before; those it knows are not watched twice. */
TEST(watch, a_load_brings_new_folders)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    CHECK_INT(3, world.watch.watcher_count); /* a, src, public */
    tree_write(world.dir, "a/public/new/y", "1");
    settle(&world);
    CHECK_INT(1, world.serve.reloads);
    CHECK_INT(0, load(&world));
    CHECK_INT(0, load(&world));
    run_until(&world, has_more);
    run_until(&world, is_settled);
    CHECK_INT(4, world.watch.watcher_count);
    unsigned before = world.serve.reloads;
    tree_write(world.dir, "a/public/new/y", "22");
    settle(&world);
    CHECK(world.serve.reloads > before);
    close_world(&world);
}

/* One that fails is over as well: the next change may mend it. */
TEST(watch, a_load_that_fails_leaves_the_watch)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    fake_bundler_mode("fail");
    tree_write(world.dir, "a/src/i.js", "broken");
    settle(&world);
    CHECK_INT(CN_EINVALID, load(&world));
    run_until(&world, is_settled);
    unsigned before = world.serve.reloads;
    fake_bundler_mode("build");
    tree_write(world.dir, "a/src/i.js", SOURCE "//mended");
    settle(&world);
    CHECK(world.serve.reloads > before);
    CHECK_INT(0, load(&world));
    close_world(&world);
}

TEST(watch, nothing_reloads_once_it_stops_or_before_it_starts)
{
    struct world world;
    open_world(&world);
    tree_write(world.dir, "a/src/i.js", SOURCE "//1");
    uv_run(&world.serve.loop, UV_RUN_DEFAULT); /* there is nothing to wait for */
    CHECK_INT(0, world.serve.reloads);
    close_world(&world); /* a server that only serves: never started */
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    tree_write(world.dir, "a/src/i.js", SOURCE "//2");
    run_until(&world, is_stirred);
    unsigned before = world.serve.reloads;
    close_world(&world); /* the timer was about to end */
    CHECK_INT(before, world.serve.reloads);
}

/* What a lane does. */
static void ask(struct world *world)
{
    atomic_fetch_add(&world->watch.hold.drawn, 1);
    world->watch.hold.ask(&world->watch.hold);
}

static bool is_released(struct world *world)
{
    return world->serve.released == atomic_load(&world->watch.hold.drawn);
}

static bool is_reloading(struct world *world)
{
    return world->serve.reloads > 0;
}

static void end_load(struct world *world, int rc)
{
    struct cn_err err = {0};
    CHECK_INT(rc, load(world));
    world->serve.loading = false;
    if (rc < 0)
        cn_err_set(&err, rc, "it does not build");
    cn_watch_settled(&world->serve, rc < 0 ? &err : NULL, &world->watch);
}

TEST(watch, a_request_goes_on_when_nothing_has_changed_and_waits_for_what_was_saved_before_it)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    ask(&world);
    run_until(&world, is_released);
    CHECK_INT(0, world.serve.reloads);
    tree_write(world.dir, "a/src/i.js", SOURCE "//1");
    ask(&world);
    run_until(&world, is_reloading);
    CHECK(!is_released(&world));
    world.serve.loading = true;
    ask(&world); /* while it loads: it looks when that is over */
    uv_run(&world.serve.loop, UV_RUN_NOWAIT);
    CHECK(!is_released(&world));
    end_load(&world, 0);
    run_until(&world, is_released);
    CHECK_STR("", world.serve.problem);
    close_world(&world);
}

TEST(watch, a_request_of_before_a_load_goes_on_after_it_although_files_change_on)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    tree_write(world.dir, "a/src/i.js", SOURCE "//1");
    ask(&world);
    run_until(&world, is_reloading);
    CHECK_INT(0, load(&world));
    tree_write(world.dir, "a/src/i.js", SOURCE "//22");
    ask(&world);
    cn_watch_settled(&world.serve, NULL, &world.watch);
    CHECK_INT(1, world.serve.released); /* W1; the other one came after that load began */
    run_until(&world, is_stirred);
    CHECK_INT(1, world.serve.released);
    close_world(&world);
}

TEST(watch, after_a_load_that_failed_requests_get_the_problem_and_nothing_is_built_again)
{
    struct world world;
    open_world(&world);
    cn_watch_start(&world.serve, &world.watch);
    fake_bundler_mode("fail");
    tree_write(world.dir, "a/src/i.js", "broken");
    ask(&world);
    run_until(&world, is_reloading);
    end_load(&world, CN_EINVALID);
    CHECK(is_released(&world));
    CHECK(strstr(world.serve.problem, "does not build"));
    run_until(&world, is_settled);
    unsigned before = world.serve.reloads;
    ask(&world);
    run_until(&world, is_released);
    CHECK_INT(before, world.serve.reloads); /* W3 */
    fake_bundler_mode("build");
    tree_write(world.dir, "a/src/i.js", SOURCE "//mended");
    ask(&world);
    settle(&world);
    end_load(&world, 0);
    run_until(&world, is_released);
    CHECK_STR("", world.serve.problem);
    close_world(&world);
}
