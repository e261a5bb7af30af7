/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_build.c - `cairn build`: bundle a project and say what came out. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "server/config.h"
#include "server/project.h"

static int build(const struct cn_args *args, struct cn_project *project, struct cn_bundler *bundler,
                 struct cn_err *err)
{
    int rc = cn_project_setup_log(args->log, err);
    if (rc == 0)
        rc = cn_bundler_init(bundler, err);
    if (rc == 0)
        rc = cn_project_open(project, args->rest_count ? args->rest[0] : ".", args, err);
    if (rc < 0)
        return rc;
    struct cn_buf lines = {0};
    cn_project_tell(project, &lines);
    cn_project_log(&lines);
    cn_buf_fini(&lines);
    char *here = getcwd(NULL, 0);
    char *out = !args->outdir            ? NULL
                : args->outdir[0] == '/' ? cn_strdup(args->outdir)
                                         : cn_sprintf("%s/%s", here ? here : ".", args->outdir);
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

int cn_cmd_build(const struct cn_args *args)
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
