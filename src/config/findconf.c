/* SPDX-License-Identifier: Apache-2.0 */
#include "config/findconf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/confnode.h"
#include "config/files.h"

char *cn_findconf_in(const char *folder)
{
    static const char *const names[] = {"wrangler.json", "wrangler.jsonc", "wrangler.toml"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        char *path = cn_sprintf("%s/%s", folder, names[i]);
        if (access(path, F_OK) == 0)
            return path;
        cn_free(path);
    }
    return NULL;
}

char *cn_findconf_note(const char *folder)
{
    return cn_sprintf("%s/.wrangler/deploy/config.json", folder);
}

void cn_findconf_fini(struct cn_findconf *found)
{
    cn_free(found->path);
    cn_free(found->home);
    cn_free(found->own);
    cn_free(found->script);
    *found = (struct cn_findconf){0};
}

/* The folder that holds `path`. Owned. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash != path ? cn_strndup(path, (size_t)(slash - path)) : cn_strdup("/");
}

/* The file that a note names. Owned; NULL: failed. */
static char *read_note(const char *note, struct cn_err *err)
{
    struct cn_buf text = {0};
    char *path = NULL;
    struct cn_confnode *root = NULL;
    if (cn_files_read(note, CN_CONF_SIZE_MAX, &text, err) == 0)
        root = cn_jsonc_parse(note, (const char *)text.data, text.size, err);
    const struct cn_confnode *name =
        root && root->kind == CN_CONF_TABLE ? cn_confnode_find(root, "configPath") : NULL;
    if (root && (!name || name->kind != CN_CONF_STRING)) {
        cn_err_set(err, CN_EINVALID, "%s: \"configPath\" must name the generated configuration",
                   note);
    } else if (root) {
        char *folder = parent_of(note);
        char *joined =
            *name->text == '/' ? cn_strdup(name->text) : cn_sprintf("%s/%s", folder, name->text);
        char *full = realpath(joined, NULL);
        if (full)
            path = cn_strdup(full);
        else
            cn_err_errno(err, errno,
                         "%s names %s, which its build tool must write first (or remove the note)",
                         note, name->text);
        free(full);
        cn_free(joined);
        cn_free(folder);
    }
    cn_confnode_free(root);
    cn_buf_fini(&text);
    return path;
}

/* 1: found; 0: there is nothing in this folder. */
static int look_in(const char *folder, bool notes, struct cn_findconf *found, struct cn_err *err)
{
    char *note = cn_findconf_note(folder);
    char *own = cn_findconf_in(folder);
    int rc = 0;
    if (notes && access(note, F_OK) == 0) {
        found->path = read_note(note, err);
        found->own = own;
        own = NULL;
        rc = found->path ? 1 : err->code;
    } else if (own) {
        found->path = own;
        own = NULL;
        rc = 1;
    }
    if (rc > 0)
        found->home = cn_strdup(folder);
    cn_free(own);
    cn_free(note);
    return rc;
}

static int look_upwards(const char *from, bool above, bool notes, struct cn_findconf *found,
                        struct cn_err *err)
{
    char *folder = cn_strdup(from);
    int rc = look_in(folder, notes, found, err);
    while (rc == 0 && above && strcmp(folder, "/") != 0) {
        char *parent = parent_of(folder);
        cn_free(folder);
        folder = parent;
        rc = look_in(folder, notes, found, err);
    }
    cn_free(folder);
    return rc;
}

static bool is_source(const char *path)
{
    static const char *const endings[] = {".js", ".mjs", ".cjs", ".jsx",
                                          ".ts", ".mts", ".cts", ".tsx"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < CN_ARRAY_COUNT(endings); i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* F3: without any configuration, the project is the current folder. */
static int find_for_source(const char *script, struct cn_findconf *found, struct cn_err *err)
{
    char *folder = parent_of(script);
    int rc = look_upwards(folder, true, false, found, err);
    cn_free(folder);
    if (rc < 0)
        return rc;
    found->script = cn_strdup(script);
    if (rc == 0) {
        char *here = getcwd(NULL, 0);
        found->home = here ? cn_strdup(here) : parent_of(script);
        free(here);
    }
    return 0;
}

int cn_findconf(const char *project, struct cn_findconf *found, struct cn_err *err)
{
    struct stat info;
    char *full = realpath(project, NULL);
    int rc = 0;
    *found = (struct cn_findconf){0};
    if (!full || stat(full, &info) < 0) {
        rc = cn_err_errno(err, errno, "%s: no such project", project);
    } else if (!S_ISDIR(info.st_mode) && is_source(full)) {
        rc = find_for_source(full, found, err);
    } else if (!S_ISDIR(info.st_mode)) {
        found->path = cn_strdup(full);
        found->home = parent_of(full);
    } else {
        rc = look_upwards(full, strcmp(project, ".") == 0, true, found, err);
        if (rc == 0)
            rc = cn_err_set(err, CN_ENOTFOUND,
                            "%s: there is no wrangler.json, wrangler.jsonc or wrangler.toml here "
                            "(`cairn new DIR` writes a starter)",
                            project);
    }
    free(full);
    if (rc < 0)
        cn_findconf_fini(found);
    return rc < 0 ? rc : 0;
}
