/* SPDX-License-Identifier: Apache-2.0 */
/* What commands do with a project before it runs: its configuration, where its data is and who can
 * look into it, what the operator is told, its bundle. */
#include "project/project.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "store/history.h"
#include "test/lib/fake_bundler.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

#define HEAD "name = \"w\"\nmain = \"i.js\"\ncompatibility_date = \"2026-01-01\"\n"

static struct cn_project project;
static struct cn_err err;
static char dir[512];

static void plant(const char *more)
{
    char *real = realpath(test_dir(), NULL), *toml = cn_sprintf(HEAD "%s", more);
    snprintf(dir, sizeof(dir), "%s", real);
    free(real);
    tree_write(dir, "wrangler.toml", toml);
    tree_write(dir, "i.js", "(function(){})");
    cn_free(toml);
}

static void open_project(struct cn_project_options options)
{
    err = (struct cn_err){0};
    if (cn_project_open(&project, dir, &options, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

TEST(project, data_lie_in_the_project_unless_somebody_says_otherwise)
{
    char here[512];
    plant("");
    open_project((struct cn_project_options){0});
    CHECK_STR("w", project.config->name);
    CHECK_STR(tree_path(dir, ".cairn"), project.data);
    cn_project_close(&project);
    cn_project_close(&project); /* again is nothing */
    CHECK(getcwd(here, sizeof(here)));
    open_project((struct cn_project_options){.data = "some/where"}); /* from the current folder */
    CHECK_STR(tree_path(here, "some/where"), project.data);
    cn_project_close(&project);
    open_project((struct cn_project_options){.data = "/some/where"});
    CHECK_STR("/some/where", project.data);
    cn_project_close(&project);
    plant("[cairn]\ndata = \"data\"\n"); /* from the project */
    open_project((struct cn_project_options){0});
    CHECK_STR(tree_path(dir, "data"), project.data);
    cn_project_close(&project);
}

TEST(project, what_cannot_be_read_is_no_project)
{
    plant("nonsense = [");
    CHECK(cn_project_open(&project, dir, &(struct cn_project_options){0}, &err) < 0);
    CHECK(err.text[0] && !project.config && !project.data);
    CHECK(cn_project_open(&project, "/nowhere/at/all", &(struct cn_project_options){0}, &err) < 0);
    const char *vars[] = {"A=1", "B=x=y"};
    plant("[vars]\nA = \"0\"\n");
    open_project((struct cn_project_options){.vars = vars, .var_count = 2});
    CHECK_INT(2, project.config->vars.count);
    CHECK_STR("1", project.config->vars.items[0].text);
    CHECK_STR("x=y", project.config->vars.items[1].text);
    cn_project_close(&project);
}

TEST(project, only_its_user_looks_into_its_data)
{
    struct stat info;
    plant("[cairn]\ndata = \"a/b/data\"\n");
    open_project((struct cn_project_options){0});
    mode_t before = umask(0);
    CHECK_INT(0, cn_project_make_data(&project, &err));
    umask(before);
    CHECK_INT(0, stat(project.data, &info));
    CHECK_INT(0700, info.st_mode & 0777);
    CHECK_INT(0, stat(tree_path(dir, "a"), &info)); /* those above are like any other */
    CHECK(info.st_mode & 0055);
    CHECK_STR(tree_path(dir, "a/b/data"), project.data); /* what was cut for it is whole again */
    CHECK_INT(0, cn_project_make_data(&project, &err));
    cn_project_close(&project);
    plant("[cairn]\ndata = \"file/data\"\n");
    tree_write(dir, "file", "");
    open_project((struct cn_project_options){0});
    CHECK(cn_project_make_data(&project, &err) < 0 && err.text[0]);
    CHECK_STR(tree_path(dir, "file/data"), project.data);
    cn_project_close(&project);
}

struct tap {
    struct cn_diag_tap base;
    char text[1024];
};

static void on_note(struct cn_diag_tap *base, const struct cn_diag_note *note)
{
    struct tap *tap = (struct tap *)base;
    size_t used = strlen(tap->text);
    snprintf(tap->text + used, sizeof(tap->text) - used, "%s%.*s\n",
             note->level == CN_DIAG_WARN ? "W " : "I ", (int)note->length, note->text);
}

TEST(project, the_operator_is_told_a_line_for_each_warning_and_one_for_the_hosted_keys)
{
    struct cn_buf lines = {0};
    struct tap tap = {.base.note = on_note};
    plant("");
    open_project((struct cn_project_options){0});
    cn_project_tell(&project, &lines);
    CHECK_INT(0, lines.size);
    cn_diag_tap_add(&tap.base);
    cn_project_log(&lines);
    CHECK_STR("", tap.text);
    char *warnings[] = {"one", "", "three"};
    struct cn_config told = {
        .path = "/p/w.toml", .hosted = "placement", .warnings = {.items = warnings, .count = 3}};
    cn_project_tell(&(struct cn_project){.config = &told}, &lines);
    cn_project_log(&lines);
    cn_diag_tap_remove(&tap.base);
    CHECK_STR("W one\nW \nW three\nI /p/w.toml: only the hosted platform uses placement\n",
              tap.text);
    cn_buf_fini(&lines);
    cn_project_close(&project);
}

TEST(project, a_bundle_goes_to_the_data_or_where_it_is_asked_for)
{
    struct cn_bundler bundler;
    struct cn_buf messages = {0};
    fake_bundler_install();
    CHECK_INT(0, cn_bundler_init(&bundler, &err));
    plant("");
    open_project((struct cn_project_options){0});
    CHECK_INT(0, cn_project_bundle(&project, &bundler, NULL, false, &messages, &err));
    CHECK_STR("(function(){})", (char *)project.bundle.source.data);
    CHECK(tree_has(dir, ".cairn/bundle/w/manifest.json"));
    CHECK_INT(0, cn_project_bundle(&project, &bundler, NULL, false, &messages, &err));
    CHECK(project.bundle.cached);
    CHECK_INT(0, cn_project_take_bundle(&project, &bundler, &err));
    CHECK_INT(1, fake_bundler_jobs());
    /* Into a folder of somebody's: always anew, and without a data directory. */
    CHECK_INT(0, cn_project_bundle(&project, &bundler, tree_path(dir, "out"), false, NULL, &err));
    CHECK(!project.bundle.cached && tree_has(dir, "out/bundle.js"));
    CHECK_INT(2, fake_bundler_jobs());
    fake_bundler_mode("fail");
    tree_write(dir, "i.js", "changed");
    CHECK_INT(CN_EINVALID, cn_project_bundle(&project, &bundler, NULL, false, &messages, &err));
    CHECK_STR("w: the project does not build", err.text);
    CHECK_STR("broken: <line> 7", cn_buf_text(&messages));
    CHECK(!project.bundle.source.data);
    cn_project_close(&project);
    cn_bundler_fini(&bundler);
    cn_buf_fini(&messages);
}

TEST(project, the_past_is_kept_as_long_as_the_configuration_says)
{
    struct cn_config config = {0};
    struct cn_project bare = {.config = &config};
    CHECK_INT(CN_HISTORY_RETENTION_MS_DEFAULT, cn_project_history_ms(&bare));
    config.server.history.days = 365;
    CHECK_INT(31536000000, cn_project_history_ms(&bare));
}

TEST(project, the_form_of_messages)
{
    CHECK_INT(CN_EINVALID, cn_project_setup_log("xml", &err));
    CHECK(strstr(err.text, "\"xml\""));
    CHECK_INT(0, cn_project_setup_log("json", &err));
    CHECK_INT(CN_DIAG_JSON, cn_diag_format());
    CHECK_INT(0, cn_project_setup_log(NULL, &err));
    CHECK_INT(CN_DIAG_PRETTY, cn_diag_format());
}
