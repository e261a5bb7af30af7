/* SPDX-License-Identifier: Apache-2.0 */
/* From projects on disk to a deployment, with a program in the place of node: what is taken, what
 * is refused and leaves the last good one, what a change is, and which folders are watched for one.
 */
#include "deploy/deploy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "test/lib/fake_bundler.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"
#include "worker/script.h"

#define SOURCE "(function(){return{}})"

struct world {
    struct cn_deployer deployer;
    struct cn_deployment *deployment;
    struct cn_err err;
    char dir[256];
    char paths[2][300];
    const char *list[2];
};

static void plant(struct world *world, const char *name, const char *more)
{
    char *toml = cn_sprintf(
        "name = \"%s\"\nmain = \"src/i.js\"\ncompatibility_date = \"2026-01-01\"\n%s", name, more);
    char file[64];
    snprintf(file, sizeof(file), "%s/wrangler.toml", name);
    tree_write(world->dir, file, toml);
    snprintf(file, sizeof(file), "%s/src/i.js", name);
    tree_write(world->dir, file, SOURCE);
    cn_free(toml);
}

/* Projects named a and b, of which `count` are deployed. */
static void open_world(struct world *world, size_t count, bool development)
{
    memset(world, 0, sizeof(*world));
    fake_bundler_install();
    char *real = realpath(test_dir(), NULL);
    snprintf(world->dir, sizeof(world->dir), "%s", real);
    free(real);
    for (int i = 0; i < 2; i++) {
        snprintf(world->paths[i], sizeof(world->paths[i]), "%s/%c", world->dir, 'a' + i);
        world->list[i] = world->paths[i];
    }
    plant(world, "a", "");
    plant(world, "b", "");
    struct cn_deploy_options options = {
        .paths = world->list, .path_count = count, .development = development};
    if (cn_deployer_init(&world->deployer, &options, &world->err) != 0)
        test_fail(__FILE__, __LINE__, "%s", world->err.text);
}

static int load(struct world *world)
{
    if (world->deployment)
        cn_deployment_unref(world->deployment);
    world->deployment = NULL;
    world->err = (struct cn_err){0};
    int rc = cn_deployer_load(&world->deployer, true, &world->deployment, &world->err);
    CHECK_INT(rc, world->err.code);
    CHECK((rc == 0) == (world->deployment != NULL));
    return rc;
}

static void close_world(struct world *world)
{
    if (world->deployment)
        cn_deployment_unref(world->deployment);
    cn_deployer_fini(&world->deployer);
}

TEST(deploy, a_project_alone_gets_every_request)
{
    struct world world;
    open_world(&world, 1, false);
    plant(&world, "a", "routes = [\"x.com/*\"]\n[limits]\ncpu_ms = 77\n");
    CHECK_INT(0, cn_deployer_open(&world.deployer, &world.err));
    CHECK(!cn_deployer_wants_node(&world.deployer));
    CHECK_INT(0, fake_bundler_starts()); /* read, not built */
    CHECK_INT(0, load(&world));
    CHECK_INT(1, world.deployment->script_count);
    const struct cn_script *script = world.deployment->scripts[0];
    CHECK_STR("a", script->name);
    CHECK_STR(SOURCE, script->source);
    CHECK_INT(0, script->route_count);
    CHECK_INT(77, script->cpu_limit_ms);
    CHECK_INT(1, script->file_count);
    CHECK(script->has_source && script->env_json && script->options_json && script->about_json);
    CHECK(!script->email_dir);
    CHECK_INT(0, world.deployer.bundler.pid); /* nobody builds again */
    close_world(&world);
}

TEST(deploy, of_several_projects_each_has_its_routes_and_a_name)
{
    struct world world;
    open_world(&world, 2, false);
    plant(&world, "a", "routes = [\"x.com/*\", \"y.com\"]\n");
    plant(&world, "b",
          "[cairn]\nhosts = [\"z.com\"]\n[[services]]\nbinding = \"A\"\nservice = \"a\"\n");
    CHECK_INT(0, load(&world));
    CHECK_INT(2, world.deployment->script_count);
    CHECK_INT(2, world.deployment->scripts[0]->route_count);
    CHECK_INT(1, world.deployment->scripts[1]->route_count);
    tree_write(world.dir, "b/wrangler.toml", "name = \"a\"\nmain = \"src/i.js\"\n");
    CHECK_INT(CN_EEXISTS, load(&world));
    CHECK(strstr(world.err.text, "both named \"a\""));
    plant(&world, "b", "[[services]]\nbinding = \"A\"\nservice = \"none\"\n");
    CHECK_INT(0, load(&world)); /* with a warning: its calls fail */
    plant(&world, "b", "[[tail_consumers]]\nservice = \"b\"\n");
    CHECK_INT(CN_EINVALID, load(&world));
    close_world(&world);
}

TEST(deploy, a_load_that_fails_leaves_the_last_good_one_and_is_tried_again)
{
    struct world world;
    open_world(&world, 1, true);
    CHECK_INT(0, cn_deployer_open(&world.deployer, &world.err));
    CHECK_INT(0, load(&world));
    CHECK(!cn_deployer_changed(&world.deployer, NULL));
    struct cn_project *good = world.deployer.projects;
    tree_write(world.dir, "a/wrangler.toml", "nonsense = [");
    CHECK(cn_deployer_changed(&world.deployer, NULL));
    CHECK(load(&world) < 0);
    CHECK(world.deployer.projects == good && world.deployer.project_count == 1);
    CHECK(!cn_deployer_changed(&world.deployer, NULL)); /* it would fail again */
    plant(&world, "a", "");
    fake_bundler_mode("fail");
    tree_write(world.dir, "a/src/i.js", "broken");
    CHECK_INT(CN_EINVALID, load(&world));
    CHECK(world.deployer.projects == good);
    fake_bundler_mode("build");
    CHECK_INT(0, load(&world));
    CHECK(!cn_deployer_changed(&world.deployer, NULL));
    close_world(&world);
}

TEST(deploy, a_failure_says_why_until_a_load_succeeds)
{
    struct world world;
    open_world(&world, 1, true);
    CHECK_INT(0, cn_deployer_open(&world.deployer, &world.err));
    fake_bundler_mode("fail");
    CHECK_INT(CN_EINVALID, load(&world));
    char *problem = cn_deployer_problem(&world.deployer);
    CHECK(strstr(problem, "the project does not build\n\n") && strstr(problem, "broken: <line> 7"));
    cn_free(problem);
    CHECK(!cn_deployer_changed(&world.deployer, NULL));
    tree_write(world.dir, "a/src/deep/what-was-missing.js", "");
    CHECK(cn_deployer_changed(&world.deployer, NULL)); /* it may be what the build looked for */
    fake_bundler_mode("build");
    CHECK_INT(0, load(&world));
    CHECK(!cn_deployer_problem(&world.deployer));
    CHECK_STR(SOURCE, world.deployment->scripts[0]->source);
    CHECK(world.deployment->scripts[0]->email_dir);
    CHECK(world.deployer.bundler.pid > 0); /* kept for the next build */
    close_world(&world);
}

TEST(deploy, every_file_that_went_in_is_a_change_and_others_are_not)
{
    struct world world;
    open_world(&world, 1, true);
    plant(&world, "a", "[assets]\ndirectory = \"public\"\n[env.prod]\n");
    tree_write(world.dir, "a/public/x", "1");
    world.deployer.options.project.env = "prod";
    struct {
        const char *name;
        bool counts;
    } rows[] = {{"a/wrangler.toml", true}, {"a/.dev.vars", true},      {"a/.env", true},
                {"a/.env.local", true},    {"a/.dev.vars.prod", true}, {"a/.env.prod", true},
                {"a/src/i.js", true},      {"a/public/x", true},       {"a/public/new/y", true},
                {"a/src/other.js", false}, {"a/README.md", false},     {"b/wrangler.toml", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (load(&world) != 0 || load(&world) != 0) /* stamps are of the projects before */
            test_fail(__FILE__, __LINE__, "%s", world.err.text);
        CHECK(!cn_deployer_changed(&world.deployer, NULL));
        char *text = tree_read(world.dir, rows[i].name);
        char *more = cn_sprintf("%s\n", text ? text : "");
        tree_write(world.dir, rows[i].name, more);
        cn_free(text);
        cn_free(more);
        if (cn_deployer_changed(&world.deployer, NULL) != rows[i].counts)
            test_fail(__FILE__, __LINE__, "%s", rows[i].name);
    }
    close_world(&world);
}

struct visited {
    struct world *world;
    char text[2048];
};

static void on_folder(const char *folder, void *data)
{
    struct visited *visited = data;
    size_t used = strlen(visited->text), skip = strlen(visited->world->dir);
    CHECK(strncmp(folder, visited->world->dir, skip) == 0);
    snprintf(visited->text + used, sizeof(visited->text) - used, "%s ", folder + skip);
}

static bool watches(struct world *world, const char *folder)
{
    struct visited visited = {.world = world};
    char word[128];
    cn_deployer_each_folder(&world->deployer, on_folder, &visited);
    snprintf(word, sizeof(word), "%s ", folder);
    return strstr(visited.text, word) != NULL;
}

TEST(deploy, folders_are_watched_in_which_a_change_matters)
{
    struct world world;
    open_world(&world, 1, true);
    plant(&world, "a", "[assets]\ndirectory = \"public\"\n");
    tree_write(world.dir, "a/public/deep/er/x", "");
    tree_write(world.dir, "a/public/.hidden/x", "");
    tree_write(world.dir, "a/public/node_modules/p/x", "");
    tree_write(world.dir, "a/src/lib/x.js", "");
    CHECK_INT(0, cn_deployer_open(&world.deployer, &world.err));
    CHECK_INT(0, load(&world));
    CHECK(watches(&world, "/a") && watches(&world, "/a/src") && watches(&world, "/a/public"));
    CHECK(watches(&world, "/a/public/deep/er"));
    CHECK(!watches(&world, "/a/public/.hidden") && !watches(&world, "/a/public/node_modules"));
    CHECK(!watches(&world, "/a/src/lib"));
    /* After a failure nobody knows which file it was. */
    fake_bundler_mode("fail");
    tree_write(world.dir, "a/src/i.js", "broken");
    CHECK_INT(CN_EINVALID, load(&world));
    CHECK(watches(&world, "/a/src/lib"));
    close_world(&world);
}

TEST(deploy, only_bundles_are_built_for_somebody_else_and_cancel_ends_it)
{
    struct world world;
    open_world(&world, 2, false);
    CHECK_INT(0, cn_deployer_build(&world.deployer, &world.err));
    CHECK_INT(2, fake_bundler_jobs());
    CHECK(tree_has(world.dir, "a/.cairn/bundle/a/manifest.json"));
    CHECK(tree_has(world.dir, "b/.cairn/bundle/b/manifest.json"));
    CHECK(!world.deployer.projects);
    tree_write(world.dir, "a/src/i.js", "changed");
    cn_deployer_cancel(&world.deployer);
    CHECK(cn_deployer_build(&world.deployer, &world.err) < 0);
    CHECK(load(&world) < 0);
    CHECK_INT(2, fake_bundler_jobs());
    close_world(&world);
}

/* P3 */
TEST(deploy, at_the_start_a_project_that_does_not_build_takes_no_neighbour_with_it)
{
    struct world world;
    open_world(&world, 2, false);
    CHECK_INT(0, load(&world)); /* both are built */
    close_world(&world);
    fake_bundler_mode("fail");
    tree_write(world.dir, "a/src/i.js", "broken");
    struct cn_deploy_options options = {.paths = world.list, .path_count = 2};
    world.deployment = NULL;
    CHECK_INT(0, cn_deployer_init(&world.deployer, &options, &world.err));
    CHECK_INT(0, cn_deployer_open(&world.deployer, &world.err));
    CHECK_INT(0, load(&world));
    CHECK_INT(2, world.deployment->script_count);
    CHECK(strstr(world.deployment->scripts[0]->broken, "does not build"));
    CHECK(strstr(world.deployment->scripts[0]->way_back, "reload the server"));
    CHECK(!world.deployment->scripts[1]->broken);
    CHECK_STR(SOURCE, world.deployment->scripts[1]->source);
    /* Nobody is left, or it is alone. */
    tree_write(world.dir, "b/src/i.js", "broken");
    CHECK_INT(CN_EINVALID, load(&world));
    CHECK(strstr(world.err.text, "does not build"));
    close_world(&world);
    options.path_count = 1;
    world.deployment = NULL;
    CHECK_INT(0, cn_deployer_init(&world.deployer, &options, &world.err));
    CHECK_INT(CN_EINVALID, load(&world));
    close_world(&world);
}
