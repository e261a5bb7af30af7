/* SPDX-License-Identifier: Apache-2.0 */
/* A project as one script: built when an input, a setting or the output has changed, taken as it is
 * otherwise; whatever the bundler does wrong is an error. */
#include "project/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "project/bundler.h"
#include "test/lib/fake_bundler.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

#define SOURCE "(function(__cairn){return{}})"

struct world {
    struct cn_bundler bundler;
    struct cn_config config;
    struct cn_bundle bundle;
    struct cn_bundle_options options;
    struct cn_buf messages;
    struct cn_err err;
    char dir[256], out[256];
};

static void open_world(struct world *world)
{
    memset(world, 0, sizeof(*world));
    fake_bundler_install();
    CHECK_INT(0, cn_bundler_init(&world->bundler, &world->err));
    snprintf(world->dir, sizeof(world->dir), "%s", test_dir());
    snprintf(world->out, sizeof(world->out), "%s", tree_path(world->dir, ".data/bundle/w"));
    tree_write(world->dir, "src/index.js", SOURCE);
    world->config = (struct cn_config){
        .dir = world->dir, .path = "/p/wrangler.toml", .main = "src/index.js", .name = "w"};
    world->options.dir = world->out;
}

static int make(struct world *world)
{
    cn_bundle_fini(&world->bundle);
    cn_buf_clear(&world->messages);
    world->err = (struct cn_err){0};
    int rc = cn_bundle_make(&world->bundler, &world->config, &world->options, &world->bundle,
                            &world->messages, &world->err);
    CHECK_INT(rc, world->err.code);
    return rc;
}

static void close_world(struct world *world)
{
    cn_bundle_fini(&world->bundle);
    cn_buf_fini(&world->messages);
    cn_bundler_fini(&world->bundler);
}

/* Whether it was built, which must be so after what was done before. */
static void check_built(struct world *world, bool built)
{
    unsigned before = fake_bundler_jobs();
    CHECK_INT(0, make(world));
    CHECK_INT(built, fake_bundler_jobs() - before);
    CHECK_INT(!built, world->bundle.cached);
    CHECK(world->bundle.manifest && world->bundle.map_path);
}

TEST(bundle, it_is_built_once_and_then_taken_as_it_is)
{
    struct world world;
    open_world(&world);
    check_built(&world, true);
    CHECK_STR(SOURCE, (char *)world.bundle.source.data);
    CHECK_STR(tree_path(world.out, "bundle.js.map"), world.bundle.map_path);
    CHECK_INT(1, world.bundle.file_count);
    CHECK_STR("file.bin", world.bundle.files[0].name);
    CHECK(world.bundle.files[0].size == 5 && !memcmp(world.bundle.files[0].bytes, "data\n", 5));
    CHECK_INT(0, world.messages.size);
    check_built(&world, false);
    CHECK_STR(SOURCE, (char *)world.bundle.source.data);
    world.options.rebuild = true;
    check_built(&world, true);
    close_world(&world);
}

TEST(bundle, a_changed_input_builds_it_again)
{
    struct world world;
    open_world(&world);
    check_built(&world, true);
    tree_write(world.dir, "src/index.js", SOURCE " ");
    check_built(&world, true);
    check_built(&world, false);
    struct timespec times[2] = {{.tv_sec = 1000, .tv_nsec = 5}, {.tv_sec = 1000, .tv_nsec = 5}};
    CHECK(utimensat(AT_FDCWD, tree_path(world.dir, "src/index.js"), times, 0) == 0);
    check_built(&world, true);
    times[1].tv_nsec = 6;
    CHECK(utimensat(AT_FDCWD, tree_path(world.dir, "src/index.js"), times, 0) == 0);
    check_built(&world, true);
    CHECK(unlink(tree_path(world.dir, "src/index.js")) == 0);
    CHECK_INT(CN_ENOTFOUND, make(&world));
    CHECK(strstr(world.err.text, "src/index.js, which is not there"));
    close_world(&world);
}

/* Every setting that decides what comes out. */
TEST(bundle, a_changed_setting_builds_it_again)
{
    struct world world;
    open_world(&world);
    check_built(&world, true);
    static const char *const flags[] = {"nodejs_compat"};
    static const char *const globs[] = {"**/*.x\"y"};
    struct cn_config_rule rule = {.type = "Text",
                                  .globs = {.items = (const char **)globs, .count = 1}};
    for (int i = 0; i < 8; i++) { /* each beside those before it */
        struct cn_config *config = &world.config;
        switch (i) {
        case 0:
            config->minify = true;
            break;
        case 1:
            config->keep_names = true;
            break;
        case 2:
            config->compatibility_flags =
                (struct cn_strings){.items = (const char **)flags, .count = 1};
            break;
        case 3:
            config->tsconfig = "other.json";
            break;
        case 4:
            config->jsx_factory = "h";
            break;
        case 5:
            config->rules.items = &rule;
            config->rules.count = 1;
            break;
        case 6:
            config->site.bucket = "public";
            break;
        default:
            config->functions = "functions";
            break;
        }
        check_built(&world, true);
        check_built(&world, false);
    }
    world.options.development = true;
    check_built(&world, true);
    /* Minifying what is not bundled is no setting. */
    world.config.no_bundle = true;
    check_built(&world, true); /* it was minified until now */
    world.config.minify = false;
    check_built(&world, false);
    close_world(&world);
}

TEST(bundle, damaged_output_is_built_again)
{
    static const char *const rows[][2] = {
        {"manifest.json", "{"},
        {"manifest.json", "[]"},
        {"manifest.json", "{\"key\":7}"},
        {"manifest.json", ""},
    };
    static const char *const lost[] = {"bundle.js", "file.bin", "manifest.json"};
    struct world world;
    open_world(&world);
    check_built(&world, true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tree_write(world.out, rows[i][0], rows[i][1]);
        check_built(&world, true);
    }
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        CHECK(unlink(tree_path(world.out, lost[i])) == 0);
        check_built(&world, true);
    }
    /* Of its own key, but without its parts, or with names that lead out of the folder. */
    static const char *const parts[][2] = {
        {"\"script\":\"bundle.js\"", "\"script\":\"../b/bundle.js\""},
        {"\"script\":\"bundle.js\"", "\"script\":7"},
        {"\"map\":", "\"nap\":"},
        {"\"files\":[\"file.bin\"]", "\"files\":[7]"},
        {"\"files\":[\"file.bin\"]", "\"files\":[\"../w/file.bin\"]"},
        {"\"inputs\":", "\"in\":"},
        {"\"size\":", "\"sice\":"}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *good = tree_read(world.out, "manifest.json"), *at = strstr(good, parts[i][0]);
        CHECK(at);
        struct cn_buf text = {0};
        cn_buf_append(&text, good, (size_t)(at - good));
        cn_buf_append_str(&text, parts[i][1]);
        cn_buf_append_str(&text, at + strlen(parts[i][0]));
        tree_write(world.out, "manifest.json", cn_buf_text(&text));
        cn_buf_fini(&text);
        cn_free(good);
        check_built(&world, true);
    }
    close_world(&world);
}

TEST(bundle, what_the_bundler_says_is_passed_on_and_what_it_does_wrong_is_an_error)
{
    struct world world;
    open_world(&world);
    world.options.rebuild = true;
    fake_bundler_mode("say");
    CHECK_INT(0, make(&world));
    CHECK_STR("a warning", cn_buf_text(&world.messages));
    fake_bundler_mode("fail");
    CHECK_INT(CN_EINVALID, make(&world));
    CHECK_STR("the project does not build", world.err.text);
    CHECK_STR("broken: <line> 7", cn_buf_text(&world.messages));
    CHECK(!world.bundle.manifest && !world.bundle.files && !world.bundle.source.data);
    fake_bundler_mode("garbage");
    CHECK_INT(CN_EINVALID, make(&world));
    CHECK(strstr(world.err.text, "the bundler's answer"));
    fake_bundler_mode("die");
    CHECK_INT(CN_ECLOSED, make(&world));
    CHECK(unlink(tree_path(world.out, "manifest.json")) == 0);
    fake_bundler_mode("forget");
    CHECK_INT(CN_ECORRUPT, make(&world));
    CHECK(strstr(world.err.text, "left no manifest"));
    close_world(&world);
}

/* A manifest of another job, left there, is not taken for that of this one. */
TEST(bundle, what_another_job_left_is_not_taken)
{
    struct world world;
    open_world(&world);
    check_built(&world, true);
    world.config.minify = true;
    fake_bundler_mode("forget");
    CHECK_INT(CN_ECORRUPT, make(&world));
    close_world(&world);
}

TEST(bundle, what_another_process_has_built_is_taken_whatever_its_inputs)
{
    struct world world;
    open_world(&world);
    check_built(&world, true);
    world.options.built = true;
    tree_write(world.dir, "src/index.js", SOURCE " changed");
    check_built(&world, false);
    CHECK_STR(SOURCE, (char *)world.bundle.source.data);
    world.config.minify = true; /* of other settings it is not what was built */
    unsigned jobs = fake_bundler_jobs();
    CHECK_INT(CN_ENOTFOUND, make(&world));
    CHECK(strstr(world.err.text, "changed while it was built"));
    CHECK_INT(jobs, fake_bundler_jobs());
    close_world(&world);
}

TEST(bundle, a_project_of_assets_alone_is_an_empty_script)
{
    struct world world;
    open_world(&world);
    world.config.main = NULL;
    CHECK_INT(0, make(&world));
    CHECK_STR("(function(){return{}})", (char *)world.bundle.source.data);
    CHECK_INT(0, fake_bundler_jobs());
    /* Its command runs all the same. */
    world.config.build.command = "exit 4";
    CHECK_INT(CN_EINVALID, make(&world));
    world.options.built = true;
    CHECK_INT(0, make(&world));
    close_world(&world);
}

TEST(bundle, a_command_that_fails_builds_nothing)
{
    struct world world;
    open_world(&world);
    world.config.build.command = "exit 4";
    CHECK_INT(CN_EINVALID, make(&world));
    CHECK_INT(0, fake_bundler_jobs());
    /* What it makes is there when it is looked for. */
    CHECK(unlink(tree_path(world.dir, "src/index.js")) == 0);
    world.config.build.command = "echo made > src/index.js";
    check_built(&world, true);
    CHECK_STR("made\n", (char *)world.bundle.source.data);
    close_world(&world);
}

/* An input that was not there when it was built must not be there now. */
TEST(bundle, inputs_that_were_absent_count_too)
{
    const char *dir = test_dir();
    char text[600];
    struct cn_err err;
    snprintf(text, sizeof(text), "{\"inputs\":[{\"path\":\"%s\",\"size\":-1,\"mtime\":\"0\"}]}",
             tree_path(dir, "tsconfig.json"));
    struct cn_confnode *manifest = cn_jsonc_parse("m", text, strlen(text), &err);
    CHECK(manifest && !cn_bundle_changed_input(manifest));
    tree_write(dir, "tsconfig.json", "");
    CHECK(cn_bundle_changed_input(manifest));
    cn_confnode_free(manifest);
    manifest = cn_jsonc_parse("m", "{\"inputs\":[]}", 13, &err);
    CHECK(cn_bundle_changed_input(manifest)); /* of nothing nothing was made */
    cn_confnode_free(manifest);
}
