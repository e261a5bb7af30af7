/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_build.c - `cairn build`: bundle a project and say what came out. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "config/config.h"
#include "project/project.h"

struct options {
    struct cn_project_options project;
    const char *log, *outdir;
};

static int build(const struct cn_args *args, struct cn_project *project, struct cn_bundler *bundler,
                 struct cn_err *err)
{
    const struct options *options = args->options;
    int rc = cn_project_setup_log(options->log, err);
    if (rc == 0)
        rc = cn_bundler_init(bundler, err);
    if (rc == 0)
        rc = cn_project_open(project, args->rest_count ? args->rest[0] : ".", &options->project,
                             err);
    if (rc < 0)
        return rc;
    struct cn_buf lines = {0};
    cn_project_tell(project, &lines);
    cn_project_log(&lines);
    cn_buf_fini(&lines);
    char *here = getcwd(NULL, 0);
    char *out = !options->outdir ? NULL
                : options->outdir[0] == '/'
                    ? cn_strdup(options->outdir)
                    : cn_sprintf("%s/%s", here ? here : ".", options->outdir);
    rc = cn_project_bundle(project, bundler, out, false, NULL, err);
    if (rc == 0)
        printf("%s: %zu bytes%s, source map %s\n", project->config->name,
               project->bundle.source.size, project->bundle.cached ? " (nothing changed)" : "",
               project->bundle.map_path);
    for (size_t i = 0; rc == 0 && i < project->bundle.file_count; i++)
        printf("  %s: %zu bytes\n", project->bundle.files[i].name, project->bundle.files[i].size);
    free(here);
    cn_free(out);
    return rc;
}

static int run(const struct cn_args *args)
{
    struct cn_err err = {0};
    struct cn_project project = {0};
    struct cn_bundler bundler = {0};
    int rc = build(args, &project, &bundler, &err);
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    cn_project_close(&project);
    cn_bundler_fini(&bundler);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(project.data)),
    CN_OPTION_ENV(AT(project.env)),
    CN_OPTION_VAR(AT(project.vars), AT(project.var_count)),
    CN_OPTION_LOG(AT(log)),
    CN_OPTION_ALLOW_MISSING(AT(project.allow_missing)),
    {"outdir", 0, "DIR", NULL, "where the bundle goes (DATA/bundle/NAME)", AT(outdir), 0},
};

const struct cn_command cn_cmd_build = {
    .name = "build",
    .usage = "[PROJECT] [OPTIONS]",
    .summary = "bundle a project",
    .text = "Bundles the project (a folder, or its wrangler.toml, .json or .jsonc; default: the "
            "current\n"
            "folder) and writes the script, its source map and the files it imports.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
