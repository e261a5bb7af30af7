/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/starter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "config/files.h"

struct starter_file {
    const char *path;
    const char *text; /* @NAME@ stands for the project's name */
};
struct template
{
    const char *name;
    const struct starter_file *files;
    size_t count;
};
#include "templates.h"

/* By its name; NULL: there is none. "typescript" is what hello was called first. */
static const struct template *find_template(const char *name)
{
    if (strcmp(name, "typescript") == 0)
        name = "hello";
    for (size_t i = 0; i < CN_ARRAY_COUNT(templates); i++) {
        if (strcmp(templates[i].name, name) == 0)
            return &templates[i];
    }
    return NULL;
}

bool cn_starter_has(const char *template)
{
    return find_template(template) != NULL;
}

void cn_starter_list(struct cn_buf *text)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(templates); i++)
        cn_buf_printf(text, "%s%s", i ? ", " : "", templates[i].name);
}

static char *path_of(const char *dir, const struct starter_file *file)
{
    return cn_sprintf("%s/%s", dir, file->path);
}

static int write_file(const char *dir, const struct starter_file *file, const char *name,
                      struct cn_err *err)
{
    struct cn_buf text = {0};
    const char *from = file->text, *mark;
    while ((mark = strstr(from, "@NAME@"))) {
        cn_buf_append(&text, from, (size_t)(mark - from));
        cn_buf_append_str(&text, name);
        from = mark + strlen("@NAME@");
    }
    cn_buf_append_str(&text, from);
    char *path = path_of(dir, file);
    char *folder = cn_strndup(path, (size_t)(strrchr(path, '/') - path));
    int rc = cn_files_make_dirs(folder, err);
    if (rc == 0)
        rc = cn_files_write(path, text.data, text.size, err);
    cn_free(folder);
    cn_free(path);
    cn_buf_fini(&text);
    return rc;
}

static bool is_there(const char *dir, const struct starter_file *file)
{
    char *path = path_of(dir, file);
    bool there = access(path, F_OK) == 0;
    cn_free(path);
    return there;
}

int cn_starter_write(const char *name_of_template, const char *dir, const char *name, bool keep,
                     struct cn_err *err)
{
    const struct template *template = find_template(name_of_template);
    CN_ASSERT(template);
    for (size_t i = 0; !keep && i < template->count; i++) {
        if (is_there(dir, &template->files[i]))
            return cn_err_set(err, CN_EEXISTS, "%s/%s is there already", dir,
                              template->files[i].path);
    }
    int rc = cn_files_make_dirs(dir, err);
    for (size_t i = 0; rc == 0 && i < template->count; i++) {
        if (!is_there(dir, &template->files[i]))
            rc = write_file(dir, &template->files[i], name, err);
    }
    return rc;
}
