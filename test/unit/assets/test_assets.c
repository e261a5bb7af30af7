/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a deployment's assets: which files of it are served (A1), whose bytes an ETag
 * stands for (A2), that a copy does not depend on the folder (A3), and what a folder is refused
 * for. */
#include "assets/assets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

static struct cn_assets *load(const char *dir, const char *project, int copy_fd)
{
    struct cn_assets *assets = NULL;
    struct cn_err err = {0};
    struct cn_assets_options options = {.directory = dir, .project = project, .copy_fd = copy_fd};
    if (cn_assets_load(&options, &assets, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return assets;
}

static int refused(const char *dir, struct cn_err *err)
{
    struct cn_assets *assets = NULL;
    struct cn_assets_options options = {.directory = dir, .copy_fd = -1};
    *err = (struct cn_err){0};
    int rc = cn_assets_load(&options, &assets, err);
    CHECK(!assets);
    CHECK_INT(rc, err->code);
    return rc;
}

static const struct cn_asset *find(const struct cn_assets *assets, const char *path)
{
    return cn_assets_find(assets, path, strlen(path));
}

/* What an asset's descriptor gives, from the place that was named. */
static char *bytes_of(const struct cn_assets *assets, const struct cn_asset *asset, bool *same)
{
    uint64_t begin, size;
    int fd = cn_asset_open(assets, asset, same, &begin, &size);
    CHECK(fd >= 0);
    char *text = cn_alloc(size + 1);
    CHECK_INT(size, pread(fd, text, size, (off_t)begin));
    text[size] = 0;
    close(fd);
    return text;
}

static int copy_file(void)
{
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0);
    return fd;
}

TEST(assets, a_folder_is_its_files_with_sizes_types_and_bytes)
{
    const char *dir = test_dir();
    tree_write(dir, "index.html", "<p>");
    tree_write(dir, "a/b/c.css", "p{}");
    tree_write(dir, "a/empty.bin", "");
    tree_write(dir, ".well-known/x", "y");
    tree_write(dir, "a/_headers", "an asset: only the one at the top is rules");
    tree_write(dir, "_headers", "/*\n  x: y\n");
    tree_write(dir, "_redirects", "");
    tree_write(dir, ".assetsignore", "*.map\nsecret\n");
    tree_write(dir, "a/c.map", "{}");
    tree_write(dir, "secret/key", "k");
    struct cn_assets *assets = load(dir, NULL, -1);
    CHECK_INT(5, cn_assets_count(assets));
    const struct cn_asset *css = find(assets, "/a/b/c.css");
    CHECK(css && css->size == 3 && !memcmp(css->bytes, "p{}", 3));
    CHECK_STR("text/css; charset=utf-8", css->type);
    CHECK_STR("/a/b/c.css", css->path);
    CHECK_INT(34, strlen(css->etag));
    const struct cn_asset *empty = find(assets, "/a/empty.bin");
    CHECK(empty && empty->size == 0 && empty->bytes);
    CHECK(find(assets, "/.well-known/x") && !find(assets, "/.well-known/x")->type);
    CHECK(find(assets, "/a/_headers"));
    CHECK(!find(assets, "/_headers") && !find(assets, "/_redirects"));
    CHECK(!find(assets, "/.assetsignore") && !find(assets, "/a/c.map"));
    CHECK(!find(assets, "/secret/key") && !find(assets, "/a") && !find(assets, ""));
    cn_assets_unref(assets);
}

/* A1 */
TEST(assets, only_links_into_the_folder_or_the_project_are_followed)
{
    const char *project = test_dir(), *outside = test_dir();
    const char *dir = tree_path(project, "public");
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", dir);
    tree_write(outside, "passwd", "root");
    tree_write(outside, "deep/file", "root");
    tree_write(project, "shared/logo.svg", "<svg/>");
    tree_write(project, ".env", "SECRET=1");
    tree_write(project, "a/.git/config", "[core]");
    tree_write(project, "public/own.txt", "own");
    tree_link(folder, "inside", "own.txt");
    tree_link(folder, "logo", "../shared/logo.svg");
    tree_link(folder, "shared", "../shared");
    tree_link(folder, "env", "../.env");
    tree_link(folder, "git", "../a/.git");
    tree_link(folder, "passwd", tree_path(outside, "passwd"));
    tree_link(folder, "deep", tree_path(outside, "deep"));
    tree_link(folder, "nowhere", "../missing");
    tree_link(folder, "loop", ".");
    tree_link(folder, "sub/up", "..");
    struct cn_assets *assets = load(folder, project, -1);
    CHECK(find(assets, "/own.txt") && find(assets, "/inside"));
    CHECK(find(assets, "/logo") && find(assets, "/shared/logo.svg"));
    CHECK_INT(4, cn_assets_count(assets));
    cn_assets_unref(assets);
    assets = load(folder, NULL, -1); /* without a project nothing leads out */
    CHECK(find(assets, "/own.txt") && find(assets, "/inside"));
    CHECK_INT(2, cn_assets_count(assets));
    cn_assets_unref(assets);
}

/* A1: a folder whose name begins with the folder's is not the folder. */
TEST(assets, a_neighbour_with_a_longer_name_is_outside)
{
    const char *dir = test_dir();
    char folder[512];
    snprintf(folder, sizeof(folder), "%s/public", dir);
    tree_write(dir, "public/a", "a");
    tree_write(dir, "public-keys/k", "k");
    tree_link(folder, "k", "../public-keys/k");
    struct cn_assets *assets = load(folder, NULL, -1);
    CHECK_INT(1, cn_assets_count(assets));
    cn_assets_unref(assets);
}

TEST(assets, what_is_no_file_is_left_out_and_nobody_waits_for_it)
{
    const char *dir = test_dir();
    tree_write(dir, "a", "a");
    CHECK(mkfifo(tree_path(dir, "pipe"), 0600) == 0);
    struct cn_assets *assets = load(dir, NULL, -1);
    CHECK_INT(1, cn_assets_count(assets));
    cn_assets_unref(assets);
}

TEST(assets, small_files_are_kept_in_memory_and_large_ones_are_not)
{
    const char *dir = test_dir();
    tree_write_long(dir, "kept", CN_ASSET_MEMORY_FILE_MAX);
    tree_write_long(dir, "left", CN_ASSET_MEMORY_FILE_MAX + 1);
    struct cn_assets *assets = load(dir, NULL, -1);
    CHECK(find(assets, "/kept")->bytes && !find(assets, "/left")->bytes);
    CHECK(strcmp(find(assets, "/kept")->etag, find(assets, "/left")->etag) != 0);
    cn_assets_unref(assets);
}

TEST(assets, what_memory_holds_has_a_bound_and_past_it_files_stay_on_disk)
{
    const char *dir = test_dir();
    unsigned fits = CN_ASSET_MEMORY_MAX / CN_ASSET_MEMORY_FILE_MAX, kept = 0;
    for (unsigned i = 0; i < fits + 2; i++) { /* holes: nothing is written */
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        int fd = open(tree_path(dir, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        CHECK(fd >= 0 && ftruncate(fd, CN_ASSET_MEMORY_FILE_MAX) == 0 && close(fd) == 0);
    }
    struct cn_assets *assets = load(dir, NULL, -1);
    for (unsigned i = 0; i < fits + 2; i++) {
        char name[16];
        snprintf(name, sizeof(name), "/%u", i);
        kept += find(assets, name)->bytes != NULL;
    }
    CHECK_INT(fits, kept);
    cn_assets_unref(assets);
}

/* A2 */
TEST(assets, an_etag_follows_from_the_bytes_alone)
{
    const char *dir = test_dir();
    char first[40];
    tree_write(dir, "a", "same");
    tree_write(dir, "b", "same");
    tree_write(dir, "c", "sane");
    struct cn_assets *assets = load(dir, NULL, -1);
    snprintf(first, sizeof(first), "%s", find(assets, "/a")->etag);
    CHECK_STR(first, find(assets, "/b")->etag);
    CHECK(strcmp(first, find(assets, "/c")->etag) != 0);
    cn_assets_unref(assets);
    tree_write(dir, "a", "other");
    tree_write(dir, "a", "same");
    assets = load(dir, NULL, -1);
    CHECK_STR(first, find(assets, "/a")->etag);
    cn_assets_unref(assets);
}

/* A2 */
TEST(assets, a_file_that_was_changed_or_is_gone_says_so_when_it_is_opened)
{
    const char *dir = test_dir();
    bool same;
    uint64_t begin, size;
    tree_write_long(dir, "big", 200000);
    struct cn_assets *assets = load(dir, NULL, -1);
    const struct cn_asset *big = find(assets, "/big");
    char *text = bytes_of(assets, big, &same);
    CHECK(same && text[35] == '0' && strlen(text) == 200000);
    cn_free(text);
    tree_write(dir, "big", "short now");
    text = bytes_of(assets, big, &same);
    CHECK(!same);
    CHECK_STR("short now", text);
    cn_free(text);
    /* Of the same size, at another time. */
    tree_write_long(dir, "big", 200000);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK(utimensat(AT_FDCWD, tree_path(dir, "big"), times, 0) == 0);
    int fd = cn_asset_open(assets, big, &same, &begin, &size);
    CHECK(fd >= 0 && !same && size == 200000);
    close(fd);
    CHECK(unlink(tree_path(dir, "big")) == 0);
    CHECK_INT(-ENOENT, cn_asset_open(assets, big, &same, &begin, &size));
    /* A1: what stands there now leads out. */
    tree_link(dir, "big", "/etc/passwd");
    CHECK_INT(-ENOENT, cn_asset_open(assets, big, &same, &begin, &size));
    CHECK(unlink(tree_path(dir, "big")) == 0);
    tree_folder(dir, "big");
    CHECK_INT(-ENOENT, cn_asset_open(assets, big, &same, &begin, &size));
    cn_assets_unref(assets);
}

/* A3 */
TEST(assets, a_copy_keeps_every_large_file_whatever_becomes_of_the_folder)
{
    const char *dir = test_dir();
    int files = tree_open_files();
    bool same;
    tree_write_long(dir, "one", 150001);
    tree_write_long(dir, "two", 300002);
    tree_write(dir, "small", "small");
    struct cn_assets *assets = load(dir, NULL, copy_file());
    char *one = tree_read(dir, "one"), *two = tree_read(dir, "two");
    tree_write(dir, "one", "other");
    CHECK(unlink(tree_path(dir, "two")) == 0);
    char *text = bytes_of(assets, find(assets, "/one"), &same);
    CHECK(same && strcmp(one, text) == 0);
    cn_free(text);
    text = bytes_of(assets, find(assets, "/two"), &same);
    CHECK(same && strcmp(two, text) == 0);
    cn_free(text);
    cn_free(one);
    cn_free(two);
    CHECK_INT(5, find(assets, "/small")->size);
    CHECK(cn_assets_ref(assets) == assets);
    cn_assets_unref(assets);
    CHECK_INT(files + 1, tree_open_files());
    cn_assets_unref(assets);
    CHECK_INT(files, tree_open_files()); /* the copy is the assets' */
}

TEST(assets, a_copy_that_cannot_be_written_fails_the_deployment_and_is_closed)
{
    const char *dir = test_dir();
    struct cn_assets *assets = NULL;
    struct cn_err err = {0};
    int files = tree_open_files();
    tree_write_long(dir, "big", 200000);
    int fd = copy_file();
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0);
    struct cn_assets_options options = {.directory = dir, .copy_fd = fd};
    CHECK_INT(-EPERM, cn_assets_load(&options, &assets, &err));
    CHECK(strstr(err.text, "cannot read") && strstr(err.text, "/big"));
    CHECK_INT(files, tree_open_files());
    options = (struct cn_assets_options){.directory = "/nowhere/at/all", .copy_fd = copy_file()};
    CHECK_INT(-ENOENT, cn_assets_load(&options, &assets, &err));
    CHECK_INT(files, tree_open_files());
    CHECK(!assets);
}

TEST(assets, a_file_past_the_limit_and_a_worker_among_the_files_are_refused)
{
    const char *dir = test_dir();
    struct cn_err err;
    int fd = open(tree_path(dir, "huge"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && ftruncate(fd, CN_ASSET_SIZE_MAX + 1) == 0);
    CHECK_INT(CN_ELIMIT, refused(dir, &err));
    CHECK(strstr(err.text, "/huge") && strstr(err.text, "25 MiB"));
    CHECK(ftruncate(fd, 0) == 0 && close(fd) == 0);
    tree_write(dir, "_worker.js", "export default {}");
    CHECK_INT(CN_EINVALID, refused(dir, &err));
    CHECK(strstr(err.text, ".assetsignore"));
    tree_write(dir, ".assetsignore", "_worker.js\n");
    struct cn_assets *assets = load(dir, NULL, -1);
    CHECK(!find(assets, "/_worker.js"));
    CHECK_INT(1, cn_assets_count(assets));
    cn_assets_unref(assets);
}

TEST(assets, a_pages_project_keeps_its_own_parts_to_itself)
{
    const char *dir = test_dir();
    struct cn_assets *assets = NULL;
    struct cn_err err = {0};
    static const char *const own[] = {"_worker.js/index.js", "_routes.json", "functions/api.js",
                                      "a/node_modules/x",    ".git/config",  "a/.DS_Store"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        tree_write(dir, own[i], "x");
    tree_write(dir, "a/functions/public", "x");
    struct cn_assets_options options = {.directory = dir, .pages = true, .copy_fd = -1};
    CHECK_INT(0, cn_assets_load(&options, &assets, &err));
    CHECK_INT(1, cn_assets_count(assets));
    CHECK(find(assets, "/a/functions/public"));
    cn_assets_unref(assets);
}

TEST(assets, folders_without_end_are_refused)
{
    const char *dir = test_dir();
    struct cn_err err;
    char name[512] = "";
    for (int i = 0; i < 70; i++)
        snprintf(name + strlen(name), sizeof(name) - strlen(name), "d/");
    snprintf(name + strlen(name), sizeof(name) - strlen(name), "file");
    tree_write(dir, name, "x");
    CHECK_INT(-ELOOP, refused(dir, &err));
    CHECK_INT(-ENOTDIR, refused(tree_path(dir, name), &err));
}

TEST(assets, a_stamp_changes_with_names_sizes_and_times_below_the_folder)
{
    const char *dir = test_dir();
    tree_write(dir, "a/b", "1");
    uint64_t first = cn_assets_stamp(dir, NULL);
    CHECK(first == cn_assets_stamp(dir, NULL));
    tree_write(dir, "a/c", "");
    uint64_t more = cn_assets_stamp(dir, NULL);
    CHECK(more != first);
    CHECK(rename(tree_path(dir, "a/c"), tree_path(dir, "a/d")) == 0);
    uint64_t renamed = cn_assets_stamp(dir, NULL);
    CHECK(renamed != more);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK(utimensat(AT_FDCWD, tree_path(dir, "a/b"), times, 0) == 0);
    CHECK(cn_assets_stamp(dir, NULL) != renamed);
    CHECK(cn_assets_stamp("/nowhere/at/all", NULL) == cn_assets_stamp("/nowhere/else", NULL));
}
