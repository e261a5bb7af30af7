/* SPDX-License-Identifier: Apache-2.0 */
#include "project/build_command.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/files.h"
#include "project/bundler.h"

#define DEPTH_MAX 32
#define FILE_COUNT_MAX 50000
#define MEMORY_NAME "command.txt"
#define MEMORY_SIZE_MAX 200

/* A sum over files: their names, sizes and times, in no order. */
struct stamp {
    uint64_t sum;
    unsigned count;
    bool incomplete; /* B3 */
};

static void add_file(struct stamp *stamp, const char *path, const struct stat *info)
{
    uint64_t parts[3] = {(uint64_t)info->st_size, (uint64_t)info->st_mtim.tv_sec,
                         (uint64_t)info->st_mtim.tv_nsec};
    stamp->sum += cn_hash_bytes(cn_hash_bytes(1, parts, sizeof(parts)), path, strlen(path));
    if (++stamp->count > FILE_COUNT_MAX)
        stamp->incomplete = true;
}

static bool counts(const char *name)
{
    return name[0] != '.' && strcmp(name, "node_modules") != 0 && strcmp(name, "target") != 0;
}

static void add_tree(struct stamp *stamp, const char *folder, int depth)
{
    DIR *dir = opendir(folder);
    if (dir && depth >= DEPTH_MAX)
        stamp->incomplete = true;
    for (struct dirent *entry;
         dir && depth < DEPTH_MAX && !stamp->incomplete && (entry = readdir(dir));) {
        if (!counts(entry->d_name))
            continue;
        char *path = cn_sprintf("%s/%s", folder, entry->d_name);
        struct stat info;
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            add_tree(stamp, path, depth + 1);
        else if (stat(path, &info) == 0)
            add_file(stamp, path, &info);
        cn_free(path);
    }
    if (dir)
        closedir(dir);
}

/* `name` from the project's folder. Owned. */
static char *from_project(const struct cn_config *config, const char *name)
{
    return *name == '/' ? cn_strdup(name) : cn_sprintf("%s/%s", config->dir, name);
}

/* What the command says it reads. */
static struct stamp stamp_inputs(const struct cn_config *config)
{
    static const char *const fallback[] = {"src"};
    struct stamp stamp = {0};
    const char *const *names = config->build.watch_dir.items;
    size_t count = config->build.watch_dir.count;
    if (count == 0) {
        names = fallback;
        count = CN_ARRAY_COUNT(fallback);
    }
    for (size_t i = 0; i < count; i++) {
        char *path = from_project(config, names[i]);
        add_tree(&stamp, path, 0);
        cn_free(path);
    }
    return stamp;
}

/* The project, what was written into it among the rest. */
static struct stamp stamp_project(const struct cn_config *config, const char *cwd)
{
    struct stamp stamp = {0};
    struct stat info;
    char *packages = cn_sprintf("%s/node_modules/.package-lock.json", config->dir);
    char *secrets = cn_sprintf("%s/.env", config->dir);
    if (stat(packages, &info) == 0)
        add_file(&stamp, packages, &info);
    if (stat(secrets, &info) == 0)
        add_file(&stamp, secrets, &info);
    add_tree(&stamp, config->dir, 0);
    if (strncmp(cwd, config->dir, strlen(config->dir)) != 0)
        add_tree(&stamp, cwd, 0);
    cn_free(packages);
    cn_free(secrets);
    return stamp;
}

/* One line that is the same as long as B2 holds. */
static void describe(const struct cn_config *config, const char *cwd, struct stamp before,
                     struct cn_buf *line)
{
    struct stamp after = stamp_project(config, cwd);
    const char *command = config->build.command;
    cn_buf_printf(line, "%016" PRIx64 " %016" PRIx64 " %016" PRIx64 "%s\n",
                  cn_hash_bytes(cn_hash_bytes(3, cwd, strlen(cwd)), command, strlen(command)),
                  before.sum, after.sum, before.incomplete || after.incomplete ? " ?" : "");
    cn_buf_text(line);
}

static bool is_unchanged(const struct cn_config *config, const char *cwd, struct stamp before,
                         const char *file)
{
    struct cn_buf last = {0}, now = {0};
    bool same = false;
    if (cn_files_read(file, MEMORY_SIZE_MAX, &last, NULL) == 0) {
        describe(config, cwd, before, &now);
        same =
            strcmp(cn_buf_text(&last), cn_buf_text(&now)) == 0 && !strchr(cn_buf_text(&now), '?');
    }
    cn_buf_fini(&last);
    cn_buf_fini(&now);
    return same;
}

/* B1: "DIR/node_modules/.bin:PARENT/node_modules/.bin..."; may be empty. */
static void list_programs(const char *cwd, struct cn_buf *list)
{
    char *folder = cn_strdup(cwd);
    for (;;) {
        char *bin = cn_sprintf("%s/node_modules/.bin", folder);
        if (access(bin, X_OK) == 0)
            cn_buf_printf(list, "%s:", bin);
        cn_free(bin);
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            break;
        *slash = 0;
    }
    cn_free(folder);
    cn_buf_text(list);
}

int cn_build_command_run(struct cn_bundler *bundler, const struct cn_config *config,
                         const char *memory, bool always, struct cn_err *err)
{
    if (!config->build.command)
        return 0;
    char *cwd =
        config->build.cwd ? from_project(config, config->build.cwd) : cn_strdup(config->dir);
    char *file = cn_sprintf("%s/" MEMORY_NAME, memory);
    struct stamp before = stamp_inputs(config);
    int rc = 0;
    if (always || !is_unchanged(config, cwd, before, file)) {
        struct cn_buf programs = {0};
        unlink(file); /* a run that fails is not remembered */
        list_programs(cwd, &programs);
        rc = cn_bundler_shell(bundler, config->build.command, cwd, cn_buf_text(&programs), err);
        cn_buf_fini(&programs);
        if (rc == 0)
            rc = cn_files_make_dirs(memory, err);
        if (rc == 0) {
            struct cn_buf line = {0};
            describe(config, cwd, before, &line);
            rc = cn_files_write(file, line.data, line.size, err);
            cn_buf_fini(&line);
        }
    }
    cn_free(file);
    cn_free(cwd);
    return rc;
}
