/* SPDX-License-Identifier: Apache-2.0 */
#include "project/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/compat.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"
#include "project/build_command.h"
#include "project/bundler.h"

/* ---- the job: what the bundler is told ---------------------------------------- */

static void put_key(struct cn_buf *job, const char *key)
{
    cn_buf_append_byte(job, job->size ? ',' : '{');
    cn_buf_append_json(job, key, strlen(key));
    cn_buf_append_byte(job, ':');
}

static void put_text(struct cn_buf *job, const char *key, const char *text)
{
    put_key(job, key);
    if (text)
        cn_buf_append_json(job, text, strlen(text));
    else
        cn_buf_append_str(job, "null");
}

static void put_bool(struct cn_buf *job, const char *key, bool value)
{
    put_key(job, key);
    cn_buf_append_str(job, value ? "true" : "false");
}

static void put_table(struct cn_buf *job, const char *key, const struct cn_confnode *table)
{
    put_key(job, key);
    if (table)
        cn_confnode_write_json(table, job);
    else
        cn_buf_append_str(job, "{}");
}

static void put_rules(struct cn_buf *job, const struct cn_config *config)
{
    put_key(job, "rules");
    cn_buf_append_byte(job, '[');
    for (size_t i = 0; i < config->rules.count; i++) {
        const struct cn_config_rule *rule = &config->rules.items[i];
        cn_buf_printf(job, "%s{\"type\":\"%s\",\"fallthrough\":%s,\"globs\":[", i ? "," : "",
                      rule->type, rule->fallthrough ? "true" : "false");
        for (size_t j = 0; j < rule->globs.count; j++) {
            if (j)
                cn_buf_append_byte(job, ',');
            cn_buf_append_json(job, rule->globs.items[j], strlen(rule->globs.items[j]));
        }
        cn_buf_append_str(job, "]}");
    }
    cn_buf_append_byte(job, ']');
}

static void put_strings(struct cn_buf *job, const char *key, const struct cn_strings *strings)
{
    put_key(job, key);
    for (size_t i = 0; i < strings->count; i++) {
        cn_buf_append_byte(job, i ? ',' : '[');
        cn_buf_append_json(job, strings->items[i], strlen(strings->items[i]));
    }
    cn_buf_append_str(job, strings->count ? "]" : "[]");
}

static void put_site(struct cn_buf *job, const struct cn_config *config)
{
    const struct cn_config_site *site = &config->site;
    char *bucket = !site->bucket          ? NULL
                   : *site->bucket == '/' ? cn_strdup(site->bucket)
                                          : cn_sprintf("%s/%s", config->dir, site->bucket);
    put_text(job, "site", bucket);
    put_strings(job, "siteInclude", &site->include);
    put_strings(job, "siteExclude", &site->exclude);
    cn_free(bucket);
}

static bool has_flag(const struct cn_config *config, const char *flag)
{
    return cn_compat_is_on(flag, config->compatibility_date, config->compatibility_flags.items,
                           config->compatibility_flags.count);
}

/* Everything that decides what comes out, besides the inputs' bytes. */
static void write_job(const struct cn_bundler *bundler, const struct cn_config *config,
                      const struct cn_bundle_options *options, const char *entry,
                      struct cn_buf *job)
{
    char version[80];
    struct stat info = {0};
    (void)stat(bundler->program, &info); /* a checkout's bundler changes without the version */
    snprintf(version, sizeof(version), "%s-%" PRId64, CN_VERSION, (int64_t)info.st_mtim.tv_sec);
    put_text(job, "version", version);
    put_text(job, "dir", config->dir);
    put_text(job, "entry", entry);
    put_text(job, "functions", config->functions);
    put_site(job, config);
    put_text(job, "inside", options->inside);
    put_text(job, "out", options->dir);
    put_text(job, "mode", options->development ? "development" : "production");
    put_bool(job, "minify", config->minify && !config->no_bundle);
    put_bool(job, "keepNames", config->keep_names);
    put_bool(job, "nodejsCompat",
             has_flag(config, "nodejs_compat") || has_flag(config, "nodejs_compat_v2"));
    put_bool(job, "nodejsAls", has_flag(config, "nodejs_als"));
    if (options->upload)
        put_bool(job, "upload", true);
    put_bool(job, "objects",
             config->durable_objects.bindings.count || config->migrations.count ||
                 config->exports.count);
    put_table(job, "define", config->define);
    put_table(job, "alias", config->alias);
    put_text(job, "tsconfig", config->tsconfig);
    put_text(job, "jsxFactory", config->jsx_factory);
    put_text(job, "jsxFragment", config->jsx_fragment);
    put_rules(job, config);
}

/* ---- the manifest: what was built from what ------------------------------------ */

static struct cn_confnode *field(const struct cn_confnode *table, const char *key,
                                 enum cn_confnode_kind kind)
{
    struct cn_confnode *node = table->kind == CN_CONF_TABLE ? cn_confnode_find(table, key) : NULL;
    return node && node->kind == kind ? node : NULL;
}

static bool input_unchanged(const struct cn_confnode *input)
{
    const struct cn_confnode *path = field(input, "path", CN_CONF_STRING);
    const struct cn_confnode *size = field(input, "size", CN_CONF_INTEGER);
    const struct cn_confnode *mtime = field(input, "mtime", CN_CONF_STRING);
    struct stat info;
    char time[40];
    if (!path || !size || !mtime)
        return false;
    if (stat(path->text, &info) < 0)
        return errno == ENOENT && size->integer < 0;
    snprintf(time, sizeof(time), "%" PRId64,
             (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec);
    return info.st_size == size->integer && strcmp(time, mtime->text) == 0;
}

const char *cn_bundle_changed_input(const struct cn_confnode *manifest)
{
    const struct cn_confnode *inputs = field(manifest, "inputs", CN_CONF_ARRAY);
    if (!inputs || inputs->count == 0)
        return "a file";
    for (size_t i = 0; i < inputs->count; i++) {
        if (input_unchanged(inputs->items[i]))
            continue;
        const struct cn_confnode *path = field(inputs->items[i], "path", CN_CONF_STRING);
        return path ? path->text : "a file";
    }
    return NULL;
}

/* The manifest in the folder if it was made by the job with this key (NULL: by any); else NULL. */
static struct cn_confnode *read_manifest(const char *dir, const char *key)
{
    struct cn_buf text = {0};
    struct cn_confnode *manifest = NULL;
    char *path = cn_sprintf("%s/manifest.json", dir);
    if (cn_files_read(path, CN_CONF_SIZE_MAX, &text, NULL) == 0)
        manifest = cn_jsonc_parse(path, (const char *)text.data, text.size, NULL);
    cn_buf_fini(&text);
    cn_free(path);
    const struct cn_confnode *made_by = manifest ? field(manifest, "key", CN_CONF_STRING) : NULL;
    if (made_by && (!key || strcmp(made_by->text, key) == 0))
        return manifest;
    cn_confnode_free(manifest);
    return NULL;
}

static int read_output(const char *dir, const struct cn_confnode *name, struct cn_buf *out,
                       struct cn_err *err)
{
    /* Names from the manifest stay inside the folder. */
    if (!name || name->kind != CN_CONF_STRING || strchr(name->text, '/'))
        return cn_err_set(err, CN_ECORRUPT, "%s/manifest.json: a file name is missing", dir);
    char *path = cn_sprintf("%s/%s", dir, name->text);
    int rc = cn_files_read(path, CN_BUNDLE_SIZE_MAX, out, err);
    cn_free(path);
    return rc;
}

/* Takes over `manifest`, also on failure. */
static int load_outputs(const char *dir, struct cn_confnode *manifest, struct cn_bundle *bundle,
                        struct cn_err *err)
{
    *bundle = (struct cn_bundle){.manifest = manifest};
    int rc = read_output(dir, field(manifest, "script", CN_CONF_STRING), &bundle->source, err);
    const struct cn_confnode *map = field(manifest, "map", CN_CONF_STRING);
    const struct cn_confnode *files = field(manifest, "files", CN_CONF_ARRAY);
    if (rc == 0 && (!map || !files))
        rc = cn_err_set(err, CN_ECORRUPT, "%s/manifest.json: not complete", dir);
    if (rc < 0)
        goto fail;
    cn_buf_text(&bundle->source);
    bundle->map_path = cn_sprintf("%s/%s", dir, map->text);
    bundle->files = cn_alloc_zero((files->count + 1) * sizeof(struct cn_bundle_file));
    for (size_t i = 0; i < files->count; i++) {
        struct cn_buf bytes = {0};
        rc = read_output(dir, files->items[i], &bytes, err);
        if (rc < 0) {
            cn_buf_fini(&bytes);
            goto fail;
        }
        struct cn_bundle_file *file = &bundle->files[bundle->file_count++];
        file->name = cn_strdup(files->items[i]->text);
        file->size = bytes.size;
        file->bytes = cn_buf_take(&bytes);
    }
    return 0;
fail:
    cn_bundle_fini(bundle);
    return rc;
}

void cn_bundle_fini(struct cn_bundle *bundle)
{
    for (size_t i = 0; i < bundle->file_count; i++) {
        cn_free(bundle->files[i].name);
        cn_free(bundle->files[i].bytes);
    }
    cn_free(bundle->files);
    cn_free(bundle->map_path);
    cn_buf_fini(&bundle->source);
    cn_confnode_free(bundle->manifest);
    *bundle = (struct cn_bundle){0};
}

/* ---- building ------------------------------------------------------------------- */

/* `cairn dev` says when it begins, and how long it took. */
static int run_job(struct cn_bundler *bundler, const struct cn_config *config,
                   const struct cn_bundle_options *options, const struct cn_buf *job,
                   struct cn_buf *messages, struct cn_err *err)
{
    uint64_t began_ns = cn_clock_mono_ns(cn_clock_system());
    if (options->development)
        cn_info("%s: building", config->name);
    struct cn_buf text = {0};
    struct cn_confnode *answer = NULL;
    char *path = cn_sprintf("%s/job.json", options->dir); /* for people: nothing reads it (U1) */
    int rc = cn_files_make_dirs(options->dir, err);
    if (rc == 0)
        rc = cn_files_write(path, job->data, job->size, err);
    cn_free(path);
    if (rc == 0)
        rc = cn_bundler_run(bundler, job, options->limit_ms, &text, err);
    if (rc == 0) {
        answer = cn_jsonc_parse("the bundler's answer", (const char *)text.data, text.size, err);
        rc = answer ? 0 : CN_EINVALID;
    }
    if (rc == 0) {
        const struct cn_confnode *ok = field(answer, "ok", CN_CONF_BOOL);
        const struct cn_confnode *said = field(answer, "text", CN_CONF_STRING);
        if (said)
            cn_buf_append(messages, said->text, said->length);
        if (!ok || !ok->boolean)
            rc = cn_err_set(err, CN_EINVALID, "the project does not build");
    }
    if (rc == 0 && options->development)
        cn_info("%s: built in %u ms", config->name,
                (unsigned)((cn_clock_mono_ns(cn_clock_system()) - began_ns) / 1000000));
    cn_confnode_free(answer);
    cn_buf_fini(&text);
    return rc;
}

int cn_bundle_make(struct cn_bundler *bundler, const struct cn_config *config,
                   const struct cn_bundle_options *options, struct cn_bundle *bundle,
                   struct cn_buf *messages, struct cn_err *err)
{
    struct cn_buf job = {0};
    struct cn_confnode *manifest = NULL;
    char key[40];
    if (!config->main) { /* assets alone */
        cn_buf_append_str(&bundle->source, "(function(){return{}})");
        cn_buf_text(&bundle->source);
        return options->built
                   ? 0
                   : cn_build_command_run(bundler, config, options->dir, options->rebuild, err);
    }
    char *entry = *config->main == '/' ? cn_strdup(config->main)
                                       : cn_sprintf("%s/%s", config->dir, config->main);
    int rc = options->built
                 ? 0
                 : cn_build_command_run(bundler, config, options->dir, options->rebuild, err);
    if (rc == 0 && access(entry, R_OK) < 0)
        rc = cn_err_set(err, CN_ENOTFOUND, "%s: \"main\" names %s, which is not there",
                        config->path, config->main);
    if (rc < 0)
        goto out;
    write_job(bundler, config, options, entry, &job);
    snprintf(key, sizeof(key), "%016" PRIx64 "%016" PRIx64, cn_hash_bytes(1, job.data, job.size),
             cn_hash_bytes(2, job.data, job.size));
    put_text(&job, "key", key);
    put_bool(&job, "color", cn_diag_coloured());
    cn_buf_append_byte(&job, '}');

    manifest = options->rebuild ? NULL : read_manifest(options->dir, key);
    if (manifest && (options->built || options->stored || !cn_bundle_changed_input(manifest))) {
        rc = load_outputs(options->dir, manifest, bundle, NULL);
        bundle->cached = rc == 0;
        if (rc == 0)
            goto out;
        manifest = NULL; /* damaged output: build it again */
    }
    cn_confnode_free(manifest);
    rc = options->built
             ? cn_err_set(err, CN_ENOTFOUND, "%s changed while it was built", config->path)
         : options->as_is ? cn_err_set(err, CN_EUNSUPPORTED, "nothing can be built here")
                          : run_job(bundler, config, options, &job, messages, err);
    if (rc < 0 && options->stored && (manifest = read_manifest(options->dir, NULL))) {
        cn_warn("%s: the version was built by another cairn and cannot be built again (%s); it is "
                "served as it is",
                config->name, err ? err->text : "");
        rc = load_outputs(options->dir, manifest, bundle, err);
        goto out;
    }
    if (rc < 0)
        goto out;
    manifest = read_manifest(options->dir, key);
    rc = manifest ? load_outputs(options->dir, manifest, bundle, err)
                  : cn_err_set(err, CN_ECORRUPT, "%s: the bundler left no manifest", options->dir);
out:
    cn_buf_fini(&job);
    cn_free(entry);
    return rc;
}
