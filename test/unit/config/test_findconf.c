/* SPDX-License-Identifier: Apache-2.0 */
/* Where a project's configuration is, however the project is named: F1 to F4. */
#include "config/findconf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

static struct cn_findconf found;
static struct cn_err err;
static char root[256]; /* of the test's tree, links resolved */

static const char *plant(void)
{
    CHECK(realpath(test_dir(), root));
    return root;
}

static int find(const char *project)
{
    err = (struct cn_err){0};
    int rc = cn_findconf(project, &found, &err);
    CHECK(rc == 0 || (rc < 0 && rc == err.code && err.text[0]));
    if (rc < 0)
        CHECK(!found.path && !found.home && !found.own && !found.script);
    return rc;
}

/* A path of the tree ("": its root), or "-" for none. */
static void is(const char *want, const char *got)
{
    if (strcmp(want, "-") == 0)
        CHECK(!got);
    else
        CHECK_STR(*want ? tree_path(root, want) : root, got);
}

static void check(const char *project, const char *path, const char *home, const char *own,
                  const char *script)
{
    if (find(project) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", project, err.text);
    is(path, found.path);
    is(home, found.home);
    is(own, found.own);
    is(script, found.script);
    cn_findconf_fini(&found);
    CHECK(!found.path && !found.home);
}

/* F1 */
TEST(findconf, a_folder_means_its_file_in_wranglers_order)
{
    const char *dir = plant();
    tree_write(dir, "p/wrangler.toml", "");
    check(tree_path(dir, "p"), "p/wrangler.toml", "p", "-", "-");
    tree_write(dir, "p/wrangler.jsonc", "");
    check(tree_path(dir, "p/"), "p/wrangler.jsonc", "p", "-", "-");
    tree_write(dir, "p/wrangler.json", "");
    check(tree_path(dir, "p/../p"), "p/wrangler.json", "p", "-", "-");
    char *in = cn_findconf_in(tree_path(dir, "p"));
    CHECK_STR(tree_path(dir, "p/wrangler.json"), in);
    cn_free(in);
    CHECK(!cn_findconf_in(dir));
}

/* F1, F4 */
TEST(findconf, a_note_of_a_build_tool_names_another_file_and_home_stays)
{
    const char *dir = plant();
    tree_write(dir, "p/wrangler.jsonc", "");
    tree_write(dir, "p/dist/w/wrangler.json", "");
    tree_write(dir, "p/.wrangler/deploy/config.json",
               "{\"configPath\": \"../../dist/w/wrangler.json\", \"other\": 1}");
    check(tree_path(dir, "p"), "p/dist/w/wrangler.json", "p", "p/wrangler.jsonc", "-");
    char absolute[600];
    snprintf(absolute, sizeof(absolute), "{\"configPath\": \"%s/p/dist/w/wrangler.json\"}", dir);
    tree_write(dir, "p/.wrangler/deploy/config.json", absolute);
    CHECK(unlink(tree_path(dir, "p/wrangler.jsonc")) == 0);
    check(tree_path(dir, "p"), "p/dist/w/wrangler.json", "p", "-", "-");
    /* A file that is named is that file. */
    tree_write(dir, "p/wrangler.jsonc", "");
    check(tree_path(dir, "p/wrangler.jsonc"), "p/wrangler.jsonc", "p", "-", "-");
}

/* F1: what the note says must be there. */
TEST(findconf, a_note_that_leads_nowhere_is_an_error)
{
    const char *dir = plant();
    static const char *const notes[] = {"{\"configPath\": \"../../none.json\"}",
                                        "{\"configPath\": 7}",
                                        "{}",
                                        "[]",
                                        "",
                                        "{\"configPath\": "};
    tree_write(dir, "p/wrangler.toml", "");
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        tree_write(dir, "p/.wrangler/deploy/config.json", notes[i]);
        CHECK(find(tree_path(dir, "p")) < 0);
        CHECK(strstr(err.text, "config.json"));
    }
}

/* F2 */
TEST(findconf, only_here_and_source_files_look_above)
{
    const char *dir = plant();
    char before[512];
    tree_write(dir, "p/wrangler.toml", "");
    tree_write(dir, "p/a/b/index.ts", "");
    CHECK_INT(CN_ENOTFOUND, find(tree_path(dir, "p/a/b")));
    CHECK(strstr(err.text, "cairn new"));
    CHECK(getcwd(before, sizeof(before)) && chdir(tree_path(dir, "p/a/b")) == 0);
    int rc = find(".");
    CHECK(chdir(before) == 0);
    CHECK_INT(0, rc);
    is("p/wrangler.toml", found.path);
    is("p", found.home);
    cn_findconf_fini(&found);
    check(tree_path(dir, "p/a/b/index.ts"), "p/wrangler.toml", "p", "-", "p/a/b/index.ts");
    /* The nearest one. */
    tree_write(dir, "p/a/wrangler.json", "");
    check(tree_path(dir, "p/a/b/index.ts"), "p/a/wrangler.json", "p/a", "-", "p/a/b/index.ts");
}

/* F3 */
TEST(findconf, a_source_file_is_the_script_of_what_is_found_for_it_or_of_nothing)
{
    const char *dir = plant();
    static const char *const endings[] = {"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"};
    char before[512], name[32];
    CHECK(getcwd(before, sizeof(before)) && chdir(dir) == 0);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        snprintf(name, sizeof(name), "src/a.%s", endings[i]);
        tree_write(dir, name, "");
        /* Without any configuration: home is the current folder. */
        check(tree_path(dir, name), "-", "", "-", name);
    }
    CHECK(chdir(before) == 0);
    /* A note is of what was built, not of this source. */
    tree_write(dir, "wrangler.toml", "");
    tree_write(dir, "dist/wrangler.json", "");
    tree_write(dir, ".wrangler/deploy/config.json",
               "{\"configPath\": \"../../dist/wrangler.json\"}");
    check(tree_path(dir, "src/a.ts"), "wrangler.toml", "", "-", "src/a.ts");
    /* Any other file is a configuration. */
    tree_write(dir, "my.conf", "");
    check(tree_path(dir, "my.conf"), "my.conf", "", "-", "-");
}

TEST(findconf, what_is_not_there_is_no_project)
{
    const char *dir = plant();
    CHECK(find(tree_path(dir, "none")) < 0);
    CHECK(strstr(err.text, "no such project"));
    CHECK(find("") < 0);
    tree_link(dir, "loop", "loop");
    CHECK(find(tree_path(dir, "loop")) < 0);
    CHECK_INT(CN_ENOTFOUND, find(dir));
    char *note = cn_findconf_note("/x");
    CHECK_STR("/x/.wrangler/deploy/config.json", note);
    cn_free(note);
}
