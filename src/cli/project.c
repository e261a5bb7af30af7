/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/config.h"

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
static char *data_dir(const struct cn_config *config, const struct cn_args *args)
{
    if (!args->data)
        return absolute(config->dir, config->server.data ? config->server.data : ".cairn");
    char *here = getcwd(NULL, 0);
    char *dir = absolute(here ? here : ".", args->data);
    free(here);
    return dir;
}

int cn_project_open(struct cn_project *project, const char *path, const struct cn_args *args,
                    bool quiet, struct cn_err *err)
{
    struct cn_config_options options = {
        .env = args->env, .vars = args->vars, .var_count = args->var_count};
    *project = (struct cn_project){0};
    int rc = cn_config_load(path, &options, &project->config, err);
    if (rc < 0)
        return rc;
    struct cn_config *config = project->config;
    project->data = data_dir(config, args);
    if (quiet)
        return 0;
    for (size_t i = 0; i < config->warnings.count; i++)
        cn_warn("%s", config->warnings.items[i]);
    if (config->hosted)
        cn_info("%s: only the hosted platform uses %s", config->path, config->hosted);
    return 0;
}

int cn_project_bundle(struct cn_project *project, struct cn_bundler *bundler, const char *out,
                      bool development, struct cn_buf *messages, struct cn_err *err)
{
    struct cn_buf said = {0};
    char *dir =
        out ? cn_strdup(out) : cn_sprintf("%s/bundle/%s", project->data, project->config->name);
    struct cn_bundle_options options = {
        .dir = dir, .development = development, .rebuild = out != NULL};
    cn_bundle_fini(&project->bundle);
    int rc = cn_bundle_make(bundler, project->config, &options, &project->bundle, &said, err);
    if (said.size) {
        fprintf(stderr, "%s\n", cn_buf_text(&said));
        if (messages && rc < 0)
            cn_buf_append(messages, said.data, said.size);
    }
    if (rc < 0 && err->code)
        cn_err_context(err, "%s", project->config->name);
    cn_buf_fini(&said);
    cn_free(dir);
    return rc;
}

void cn_project_close(struct cn_project *project)
{
    cn_bundle_fini(&project->bundle);
    cn_config_free(project->config);
    cn_free(project->data);
    *project = (struct cn_project){0};
}
