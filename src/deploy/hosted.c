/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/hosted.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "project/bundle.h"
#include "project/project.h"
#include "v4/depot.h"

/* H3. Large uploads take seconds. */
#define BUILD_LIMIT_MS 60000

size_t cn_hosted_count(const struct cn_depot_state *state)
{
    size_t count = 0;
    for (size_t i = 0; i < state->script_count; i++)
        count += state->scripts[i].serving.count;
    return count;
}

/* --- what cannot be served (H5) -----------------------------------------------------------------
 */

static bool is_tolerated(const struct cn_hosted *hosted, const char *name, const char *version)
{
    const struct cn_depot_script *script = cn_depot_find(hosted->current, name);
    return script && cn_depot_serves(script, version);
}

static bool is_whole(struct cn_depot *depot, const struct cn_depot_script *script,
                     const char *version)
{
    struct cn_err err = {0};
    struct cn_buf json = {0};
    bool whole = cn_depot_find_version(script, version) &&
                 cn_depot_verify(depot, script, version, &err) == 0 &&
                 cn_depot_verify_built(depot, script, version, &err) == 0 &&
                 cn_depot_config(depot, script, version, &json, &err) == 0; /* its secrets */
    OPENSSL_cleanse(json.data, json.size);
    cn_buf_fini(&json);
    return whole;
}

/* The version that served last before those that serve now, and is whole; NULL: there is none. */
static const struct cn_depot_version *find_way_back(struct cn_depot *depot,
                                                    const struct cn_depot_script *script)
{
    for (size_t i = script->deployment_count; i-- > 0;) {
        const struct cn_depot_shares *shares = &script->deployments[i].shares;
        for (size_t k = 0; k < shares->count; k++) {
            const char *version = shares->items[k].version;
            if (!cn_depot_serves(script, version) && is_whole(depot, script, version))
                return cn_depot_find_version(script, version);
        }
    }
    return NULL;
}

static char *describe_way_back(struct cn_depot *depot, const struct cn_depot_script *script)
{
    const struct cn_depot_version *version = find_way_back(depot, script);
    return version ? cn_sprintf(
                         "version %" PRId64
                         " served before it and its files are whole: cairn rollback --name %s %s",
                         version->number, script->name, version->id)
                   : cn_sprintf("no earlier version is there to go back to: deploy it again");
}

int cn_hosted_tolerate(const struct cn_hosted *hosted, struct cn_project *project,
                       struct cn_err *err)
{
    if (!project->tolerated)
        return err->code ? err->code : CN_EINVALID;
    if (project->broken)
        return 0;
    project->broken = cn_strdup(err->text);
    if (project->code) {
        const struct cn_depot_script *script = cn_depot_find(hosted->state, project->config->name);
        cn_free(project->way_back);
        project->way_back = describe_way_back(hosted->depot, script);
    }
    *err = (struct cn_err){0};
    return 0;
}

static bool was_told(const struct cn_project *project, const struct cn_project *told, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *version = told[i].version ? told[i].version : "";
        if (told[i].broken && strcmp(told[i].config->name, project->config->name) == 0 &&
            strcmp(version, project->version ? project->version : "") == 0)
            return strcmp(told[i].broken, project->broken) == 0;
    }
    return false;
}

void cn_hosted_tell(const struct cn_project *projects, size_t count, const struct cn_project *told,
                    size_t told_count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cn_project *project = &projects[i];
        if (!project->broken || was_told(project, told, told_count))
            continue;
        struct cn_diag_field fields[] = {{"worker", project->config->name, 0, false},
                                         {"version", project->version, 0, false}};
        size_t field_count = project->version ? 2 : 1;
        char *line = cn_sprintf("worker %s cannot be served: %s; its data is untouched, the other "
                                "workers serve; %s",
                                project->config->name, project->broken, project->way_back);
        cn_diag_fields(CN_DIAG_ERROR, fields, field_count, line, strlen(line));
        cn_free(line);
    }
}

/* --- opening ------------------------------------------------------------------------------------
 */

static int load_config(struct cn_depot *depot, const char *path, const struct cn_buf *json,
                       struct cn_project *project, struct cn_err *err)
{
    int rc = cn_config_load_text(path, false, (const char *)json->data, json->size, NULL,
                                 &project->config, err);
    if (rc < 0) {
        cn_depot_hide_place(depot, err);
        return rc;
    }
    cn_free(project->config->hosted); /* nobody wrote it */
    project->config->hosted = NULL;
    project->config->uploaded = true;
    return 0;
}

static int open_version(struct cn_depot *depot, const struct cn_depot_script *script,
                        const char *version, const char *data, bool bare,
                        struct cn_project *project, struct cn_err *err)
{
    struct cn_buf json = {0};
    char *folder = cn_depot_code_folder(depot, script, version);
    char *path = cn_sprintf("%s/wrangler.json", folder);
    int rc = 0;
    *project = (struct cn_project){0};
    if (bare)
        cn_depot_bare_config(depot, script, &json);
    else
        rc = cn_depot_config(depot, script, version, &json, err);
    if (rc == 0)
        rc = load_config(depot, path, &json, project, err);
    if (rc == 0) {
        project->data = cn_strdup(data);
        project->code = cn_strdup(folder);
        project->version = cn_strdup(version);
    }
    OPENSSL_cleanse(json.data, json.size);
    cn_buf_fini(&json);
    cn_free(path);
    cn_free(folder);
    return rc;
}

/* The version before, for one that turns out not to start; its files were not looked at. */
static char *describe_before(const struct cn_depot_script *script)
{
    for (size_t i = script->deployment_count; i-- > 0;) {
        const struct cn_depot_shares *shares = &script->deployments[i].shares;
        const char *version = shares->count ? shares->items[0].version : "";
        const struct cn_depot_version *found = cn_depot_find_version(script, version);
        if (found && !cn_depot_serves(script, version))
            return cn_sprintf("version %" PRId64 " served before it: cairn rollback --name %s %s",
                              found->number, script->name, found->id);
    }
    return NULL;
}

static int open_share(const struct cn_hosted *hosted, const struct cn_depot_script *script,
                      const struct cn_depot_share *share, const char *data,
                      struct cn_project *project, struct cn_err *err)
{
    bool tolerated = is_tolerated(hosted, script->name, share->version);
    int rc = open_version(hosted->depot, script, share->version, data, false, project, err);
    if (rc < 0 && tolerated) {
        struct cn_err bare_err = {0};
        rc = open_version(hosted->depot, script, share->version, data, true, project, &bare_err);
        if (rc < 0) {
            *err = bare_err;
            return rc;
        }
        project->tolerated = true;
        rc = cn_hosted_tolerate(hosted, project, err);
    }
    if (rc < 0)
        return rc;
    project->tolerated = tolerated;
    project->share = share->share;
    project->start_limit_ms = hosted->start_limit_ms;
    if (!project->way_back)
        project->way_back = describe_before(script);
    return 0;
}

int cn_hosted_open(const struct cn_hosted *hosted, const char *data, struct cn_project *projects,
                   struct cn_err *err)
{
    const struct cn_depot_state *state = hosted->state;
    size_t count = 0;
    int rc = 0;
    for (size_t place = 0; place < CN_DEPOT_ROLLOUT_MAX; place++) { /* H4 */
        for (size_t i = 0; i < state->script_count && rc == 0; i++) {
            const struct cn_depot_script *script = &state->scripts[i];
            if (place >= script->serving.count)
                continue;
            rc = open_share(hosted, script, &script->serving.items[place], data, &projects[count],
                            err);
            if (rc < 0)
                break;
            projects[count].beside = place > 0;
            count++;
        }
    }
    while (rc < 0 && count > 0)
        cn_project_close(&projects[--count]);
    return rc;
}

/* What is in code/ID/bundle, or is built there. `damaged`: what is there is of no use. */
static int make_bundle(const struct cn_hosted *hosted, struct cn_project *project, bool damaged,
                       struct cn_bundler *bundler, struct cn_buf *messages, struct cn_err *err)
{
    char *dir = cn_sprintf("%s/bundle", project->code);
    char *inside = cn_sprintf("%s/src", project->code); /* H3 */
    struct cn_bundle_options options = {.dir = dir,
                                        .inside = inside,
                                        .stored = !damaged,
                                        .rebuild = damaged,
                                        .limit_ms = BUILD_LIMIT_MS,
                                        .as_is = !hosted->builds};
    cn_bundle_fini(&project->bundle);
    int rc = cn_bundle_make(bundler, project->config, &options, &project->bundle, messages, err);
    if (rc < 0 && err->code)
        cn_err_context(err, "%s", project->config->name);
    cn_free(dir);
    cn_free(inside);
    return rc;
}

static int bundle(const struct cn_hosted *hosted, const struct cn_depot_script *script,
                  struct cn_project *project, bool in_change, struct cn_bundler *bundler,
                  struct cn_buf *messages, struct cn_err *err)
{
    struct cn_err damage = {0};
    int rc = cn_depot_verify(hosted->depot, script, project->version, err);
    if (rc < 0)
        return rc;
    bool damaged = cn_depot_verify_built(hosted->depot, script, project->version, &damage) < 0;
    rc = damaged && !hosted->builds ? cn_err_set(err, damage.code, "%s", damage.text)
                                    : make_bundle(hosted, project, damaged, bundler, messages, err);
    if (rc < 0 && damaged && hosted->builds)
        return cn_err_set(err, CN_ECORRUPT, "%s, and it cannot be built again: %s", damage.text,
                          err->text);
    if (rc < 0)
        return rc;
    if (damaged)
        cn_warn("%s; it was built again", damage.text);
    if (project->bundle.cached || !project->bundle.manifest || !hosted->builds)
        return 0;
    const struct cn_depot_version *version = cn_depot_find_version(script, project->version);
    return cn_depot_put_built(hosted->depot, version->code, in_change, err);
}

int cn_hosted_bundle(const struct cn_hosted *hosted, struct cn_project *project,
                     struct cn_bundler *bundler, struct cn_buf *messages, struct cn_err *err)
{
    const struct cn_depot_script *script = cn_depot_find(hosted->state, project->config->name);
    return bundle(hosted, script, project, false, bundler, messages, err);
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
    struct cn_hosted hosted = {.depot = depot, .builds = true};
    int rc = open_version(depot, script, version, data, false, &project, err);
    if (rc < 0)
        return rc;
    rc = bundle(&hosted, script, &project, true, bundler, &messages, err);
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
