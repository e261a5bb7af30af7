/* SPDX-License-Identifier: Apache-2.0 */
#include "server/hosted.h"

#include <openssl/crypto.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "deploy/depot.h"
#include "server/bundle.h"
#include "server/config.h"
#include "server/project.h"

size_t cn_hosted_count(const struct cn_depot_state *state)
{
    size_t count = 0;
    for (size_t i = 0; i < state->script_count; i++)
        count += state->scripts[i].serving.count;
    return count;
}

static int open_version(struct cn_depot *depot, const struct cn_depot_script *script,
                        const char *version, const char *data, struct cn_project *project,
                        struct cn_err *err)
{
    struct cn_buf json = {0};
    char *folder = cn_depot_code_folder(depot, script, version);
    char *path = cn_sprintf("%s/wrangler.json", folder);
    *project = (struct cn_project){0};
    int rc = cn_depot_config(depot, script, version, &json, err);
    if (rc == 0)
        rc = cn_config_load_text(path, false, (const char *)json.data, json.size, NULL,
                                 &project->config, err);
    if (rc == 0) {
        project->data = cn_strdup(data);
        project->code = cn_strdup(folder);
        project->version = cn_strdup(version);
        cn_free(project->config->hosted); /* nobody wrote it */
        project->config->hosted = NULL;
    }
    OPENSSL_cleanse(json.data, json.size);
    cn_buf_fini(&json);
    cn_free(path);
    cn_free(folder);
    return rc;
}

int cn_hosted_open(struct cn_depot *depot, const struct cn_depot_state *state, const char *data,
                   struct cn_project *projects, struct cn_err *err)
{
    size_t count = 0;
    int rc = 0;
    for (size_t place = 0; place < CN_DEPOT_ROLLOUT_MAX; place++) { /* H4 */
        for (size_t i = 0; i < state->script_count && rc == 0; i++) {
            const struct cn_depot_script *script = &state->scripts[i];
            if (place >= script->serving.count)
                continue;
            const struct cn_depot_share *share = &script->serving.items[place];
            rc = open_version(depot, script, share->version, data, &projects[count], err);
            if (rc < 0)
                break;
            projects[count].share = share->share;
            projects[count].beside = place > 0;
            count++;
        }
    }
    while (rc < 0 && count > 0)
        cn_project_close(&projects[--count]);
    return rc;
}

int cn_hosted_bundle(struct cn_project *project, struct cn_bundler *bundler,
                     struct cn_buf *messages, struct cn_err *err)
{
    char *dir = cn_sprintf("%s/bundle", project->code);
    char *inside = cn_sprintf("%s/src", project->code); /* H3 */
    struct cn_bundle_options options = {.dir = dir, .inside = inside, .stored = true};
    cn_bundle_fini(&project->bundle);
    int rc = cn_bundle_make(bundler, project->config, &options, &project->bundle, messages, err);
    if (rc < 0 && err->code)
        cn_err_context(err, "%s", project->config->name);
    cn_free(dir);
    cn_free(inside);
    return rc;
}

/* The first line of what esbuild says, which names the place. */
static int tell_error(const struct cn_buf *messages, struct cn_err *err)
{
    size_t size = messages->size < 400 ? messages->size : 400;
    return size ? cn_err_set(err, CN_EINVALID, "the script cannot be built: %.*s", (int)size,
                             (const char *)messages->data)
                : err->code;
}

int cn_hosted_build(struct cn_depot *depot, const struct cn_depot_script *script,
                    const char *version, const char *data, struct cn_bundler *bundler,
                    struct cn_err *err)
{
    struct cn_project project;
    struct cn_buf messages = {0};
    int rc = open_version(depot, script, version, data, &project, err);
    if (rc < 0)
        return rc;
    rc = cn_hosted_bundle(&project, bundler, &messages, err);
    if (rc < 0)
        rc = tell_error(&messages, err);
    cn_buf_fini(&messages);
    cn_project_close(&project);
    return rc;
}

char *cn_hosted_allowed(const struct cn_project *projects, size_t count, const char *asked)
{
    struct cn_buf names = {0};
    cn_buf_append_str(&names, asked ? asked : "");
    for (size_t i = 0; i < count; i++) {
        const struct cn_config *config = projects[i].config;
        for (size_t k = 0; k < config->migrations.count; k++) {
            const struct cn_strings *deleted = &config->migrations.items[k].deleted_classes;
            for (size_t l = 0; l < deleted->count; l++)
                cn_buf_printf(&names, ",%s/%s", config->name, deleted->items[l]);
        }
    }
    cn_buf_text(&names);
    return (char *)cn_buf_take(&names);
}
