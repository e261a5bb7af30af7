/* SPDX-License-Identifier: Apache-2.0 */
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
#include "config/confnode.h"
#include "config/files.h"
#include "module/module.h"
#include "store/history.h"

/* How a line of cn_project_tell() begins. */
#define WARNING 'w'
#define NOTICE 'n'

int cn_project_setup_log(const char *log, struct cn_err *err)
{
    if (log && strcmp(log, "json") != 0 && strcmp(log, "pretty") != 0)
        return cn_err_set(err, CN_EINVALID, "--log must be json or pretty, not \"%.40s\"", log);
    cn_diag_setup(log && strcmp(log, "json") == 0 ? CN_DIAG_JSON : CN_DIAG_PRETTY, CN_DIAG_INFO);
    return 0;
}

/* `path` as an absolute one, relative to `base`. Owned. */
static char *absolute(const char *base, const char *path)
{
    return *path == '/' ? cn_strdup(path) : cn_sprintf("%s/%s", base, path);
}

/* --data counts from the current folder, [cairn] data from the project. */
char *cn_project_data(const struct cn_config *config, const char *given)
{
    if (!given)
        return absolute(config->home, config->server.data ? config->server.data : ".cairn");
    char *here = getcwd(NULL, 0);
    char *dir = absolute(here ? here : ".", given);
    free(here);
    return dir;
}

int cn_project_open(struct cn_project *project, const char *path,
                    const struct cn_project_options *options, struct cn_err *err)
{
    struct cn_config_options reading = {
        .env = options->env,
        .vars = options->vars,
        .var_count = options->var_count,
        .allow_missing = options->allow_missing,
    };
    *project = (struct cn_project){0};
    int rc = cn_config_load(path, &reading, &project->config, err);
    if (rc < 0)
        return rc;
    project->data = cn_project_data(project->config, options->data);
    return 0;
}

int cn_project_make_data(const struct cn_project *project, struct cn_err *err)
{
    int rc = mkdir(project->data, 0700);
    char *slash = strrchr(project->data, '/');
    if (rc < 0 && errno == ENOENT && slash != project->data) {
        *slash = 0; /* the folders above are like any other */
        rc = cn_files_make_dirs(project->data, err);
        *slash = '/';
        if (rc < 0)
            return rc;
        rc = mkdir(project->data, 0700);
    }
    return rc == 0 || errno == EEXIST ? 0
                                      : cn_err_errno(err, errno, "cannot make %s", project->data);
}

void cn_project_tell(const struct cn_project *project, struct cn_buf *lines)
{
    const struct cn_config *config = project->config;
    for (size_t i = 0; i < config->warnings.count; i++)
        cn_buf_printf(lines, "%c%s\n", WARNING, config->warnings.items[i]);
    if (config->hosted)
        cn_buf_printf(lines, "%c%s: only the hosted platform uses %s\n", NOTICE, config->path,
                      config->hosted);
}

void cn_project_log(const struct cn_buf *lines)
{
    const char *at = (const char *)lines->data, *end = at + lines->size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        cn_diag_fields(*at == WARNING ? CN_DIAG_WARN : CN_DIAG_INFO, NULL, 0, at + 1,
                       (size_t)(newline - at) - 1);
        at = newline + 1;
    }
}

/* In JSON every line is an object; for people esbuild's own layout is best left alone. */
static void print_messages(const char *worker, struct cn_buf *said, bool failed)
{
    if (cn_diag_format() == CN_DIAG_JSON) {
        struct cn_diag_field fields[] = {{"worker", worker, 0, false}};
        cn_diag_fields(failed ? CN_DIAG_ERROR : CN_DIAG_WARN, fields, 1, (const char *)said->data,
                       said->size);
    } else {
        fprintf(stderr, "%s\n", cn_buf_text(said));
    }
}

static int make_bundle(struct cn_project *project, struct cn_bundler *bundler,
                       const struct cn_bundle_options *options, struct cn_buf *messages,
                       struct cn_err *err)
{
    struct cn_buf said = {0};
    cn_bundle_fini(&project->bundle);
    int rc = cn_bundle_make(bundler, project->config, options, &project->bundle, &said, err);
    if (said.size) {
        print_messages(project->config->name, &said, rc < 0);
        if (messages && rc < 0)
            cn_buf_append(messages, said.data, said.size);
    }
    if (rc < 0 && err->code)
        cn_err_context(err, "%s", project->config->name);
    cn_buf_fini(&said);
    return rc;
}

int cn_project_bundle(struct cn_project *project, struct cn_bundler *bundler, const char *out,
                      bool development, struct cn_buf *messages, struct cn_err *err)
{
    char *dir =
        out ? cn_strdup(out) : cn_sprintf("%s/bundle/%s", project->data, project->config->name);
    struct cn_bundle_options options = {
        .dir = dir, .development = development, .rebuild = out != NULL};
    int rc = out ? 0 : cn_project_make_data(project, err);
    if (rc == 0)
        rc = make_bundle(project, bundler, &options, messages, err);
    cn_free(dir);
    return rc;
}

int cn_project_bundle_upload(struct cn_project *project, struct cn_bundler *bundler,
                             struct cn_err *err)
{
    char *dir = cn_sprintf("%s/upload/%s", project->data, project->config->name);
    struct cn_bundle_options options = {.dir = dir, .upload = true};
    int rc = cn_project_make_data(project, err);
    if (rc == 0)
        rc = make_bundle(project, bundler, &options, NULL, err);
    cn_free(dir);
    return rc;
}

int cn_project_take_bundle(struct cn_project *project, struct cn_bundler *bundler,
                           struct cn_err *err)
{
    struct cn_buf said = {0}; /* nothing is built, so nothing is said */
    char *dir = cn_sprintf("%s/bundle/%s", project->data, project->config->name);
    struct cn_bundle_options options = {.dir = dir, .built = true};
    cn_bundle_fini(&project->bundle);
    int rc = cn_bundle_make(bundler, project->config, &options, &project->bundle, &said, err);
    cn_buf_fini(&said);
    cn_free(dir);
    return rc;
}

int64_t cn_project_history_ms(const struct cn_project *project)
{
    int64_t days = project->config->server.history.days;
    return days ? days * 24 * 60 * 60 * 1000 : CN_HISTORY_RETENTION_MS_DEFAULT;
}

char *cn_project_module_path(const struct cn_config *config, const char *path)
{
    return *path == '/' ? cn_strdup(path) : cn_sprintf("%s/%s", config->home, path);
}

static int check_class(const struct cn_project *project, const char *name, struct cn_err *err)
{
    if (!cn_module_names(name) || cn_modules_class(project->modules, name, err))
        return 0;
    return err->code;
}

static int check_classes(const struct cn_project *project, const struct cn_strings *names,
                         struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < names->count && rc == 0; i++)
        rc = check_class(project, names->items[i], err);
    return rc;
}

/* That a module has what the configuration says of it. Classes of other workers are theirs to
 * check, and of a migration that was applied long ago the class may be gone. */
static int check_modules(const struct cn_project *project, struct cn_err *err)
{
    const struct cn_config *config = project->config;
    int rc = 0;
    for (size_t i = 0; i < config->durable_objects.bindings.count && rc == 0; i++) {
        const struct cn_config_object *object = &config->durable_objects.bindings.items[i];
        if (!object->script_name || strcmp(object->script_name, config->name) == 0)
            rc = check_class(project, object->class_name, err);
    }
    const char *worker = config->server.worker;
    if (worker && rc == 0 && !cn_module_names(worker))
        rc = cn_err_set(
            err, CN_EINVALID,
            "[cairn] worker is \"module:Class\", a class of [cairn.modules], not \"%s\"", worker);
    if (worker && rc == 0)
        rc = check_class(project, worker, err);
    size_t count = config->migrations.count;
    if (count && rc == 0)
        rc = check_classes(project, &config->migrations.items[count - 1].new_sqlite_classes, err);
    return rc;
}

int cn_project_load_modules(struct cn_project *project, struct cn_err *err)
{
    const struct cn_config *config = project->config;
    const struct cn_confnode *table = config->server.modules;
    int rc = 0;
    if (table)
        project->modules = cn_modules_new(config->name);
    for (size_t i = 0; table && i < table->count && rc == 0; i++) {
        char *path = cn_project_module_path(config, table->items[i]->text);
        rc = cn_modules_load(project->modules, table->items[i]->key, path, err);
        cn_free(path);
    }
    for (size_t i = 0; table && i < config->vars.count; i++)
        cn_modules_set_var(project->modules, config->vars.items[i].name,
                           config->vars.items[i].text);
    if (rc == 0)
        rc = check_modules(project, err);
    return rc < 0 ? cn_err_context(err, "%s", config->path) : 0;
}

void cn_project_close(struct cn_project *project)
{
    cn_modules_unref(project->modules);
    cn_bundle_fini(&project->bundle);
    cn_config_free(project->config);
    cn_free(project->data);
    cn_free(project->code);
    cn_free(project->version);
    cn_free(project->broken);
    cn_free(project->way_back);
    *project = (struct cn_project){0};
}
