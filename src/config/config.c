/* SPDX-License-Identifier: Apache-2.0 */
/* config/config.c - a configuration, from its file to the struct. See config.h. */
#include "config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config_private.h"
#include "config/confnode.h"
#include "config/files.h"
#include "config/findconf.h"

void cn_config_warn(struct cn_config *config, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *sentence = cn_vsprintf(format, args);
    va_end(args);
    config->warnings.items =
        cn_realloc(config->warnings.items, (config->warnings.count + 1) * sizeof(char *));
    config->warnings.items[config->warnings.count++] = sentence;
}

static int load_with(struct cn_config_loader *loader, const struct cn_config_options *options,
                     struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (config->root->kind != CN_CONF_TABLE)
        return cn_err_set(err, CN_EINVALID, "%s: the file must hold an object", config->path);
    const struct cn_confnode *origin = cn_confnode_find(config->root, "userConfigPath");
    config->generated = origin && origin->kind == CN_CONF_STRING;
    int rc = cn_config_read_keys(loader, options ? options->env : NULL, err);
    if (rc == 0)
        rc = cn_config_read_unsafe(loader, err);
    if (rc == 0)
        rc = cn_config_check_refused(loader, options ? options->allow_missing : NULL, err);
    if (rc < 0)
        return rc;
    if (options && options->main)
        config->main = cn_config_keep_text(config, cn_strdup(options->main));
    if (config->generated) { /* its defaults are nobody's wish */
        cn_free(config->hosted);
        config->hosted = NULL;
    }
    if (config->pages_build_output_dir && (config->main || config->assets_set))
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "pages_build_output_dir"),
                              err, "\"pages_build_output_dir\" and \"%s\" exclude each other",
                              config->main ? "main" : "assets");
    rc = cn_config_read_pages(config, err);
    if (rc == 0)
        rc = cn_config_read_site(loader, err);
    if (rc < 0)
        return rc;
    config->env = loader->env ? loader->env->key : NULL;
    int (*const steps[])(struct cn_config_loader *, struct cn_err *) = {
        cn_config_check_name,         cn_config_check_compatibility, cn_config_read_routes,
        cn_config_check_bindings,     cn_config_check_exports,       cn_config_read_vars,
        cn_config_check_binding_names};
    for (size_t i = 0; i < CN_ARRAY_COUNT(steps); i++) {
        rc = steps[i](loader, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int load(struct cn_config *config, const struct cn_config_options *options,
                struct cn_err *err)
{
    struct cn_config_loader loader;
    cn_config_loader_init(&loader, config);
    int rc = load_with(&loader, options, err);
    cn_config_loader_fini(&loader);
    return rc;
}

/* What the server is told stands in the project's own file, which tools do not copy. */
static void adopt_server(struct cn_config *config, const char *own)
{
    struct cn_buf text = {0};
    if (cn_confnode_find(config->root, "cairn") ||
        cn_files_read(own, CN_CONF_SIZE_MAX, &text, NULL) < 0)
        return;
    bool is_toml = strlen(own) > 5 && strcmp(own + strlen(own) - 5, ".toml") == 0;
    struct cn_confnode *root = is_toml
                                   ? cn_toml_parse(own, (const char *)text.data, text.size, NULL)
                                   : cn_jsonc_parse(own, (const char *)text.data, text.size, NULL);
    for (size_t i = 0; root && root->kind == CN_CONF_TABLE && i < root->count; i++) {
        if (strcmp(root->items[i]->key, "cairn") != 0)
            continue;
        struct cn_confnode *server = root->items[i];
        root->items[i] = cn_confnode_new(CN_CONF_NULL, 1, 1);
        cn_free(server->key);
        server->key = NULL;
        cn_confnode_add(config->root, "cairn", server);
    }
    cn_confnode_free(root);
    cn_buf_fini(&text);
}

int cn_config_load_text(const char *path, bool is_toml, const char *text, size_t length,
                        const struct cn_config_options *options, struct cn_config **out,
                        struct cn_err *err)
{
    struct cn_config *config = CN_NEW(struct cn_config);
    const char *slash = strrchr(path, '/');
    config->path = cn_strdup(path);
    config->dir = !slash          ? cn_strdup(".")
                  : slash == path ? cn_strdup("/")
                                  : cn_strndup(path, (size_t)(slash - path));
    config->home = cn_strdup(config->dir);
    config->keep_names = true;
    cn_config_make_entries(config);
    config->root =
        is_toml ? cn_toml_parse(path, text, length, err) : cn_jsonc_parse(path, text, length, err);
    if (config->root && config->root->kind == CN_CONF_TABLE && options && options->own)
        adopt_server(config, options->own);
    int rc = config->root ? load(config, options, err) : CN_EINVALID;
    if (rc == 0)
        rc = cn_config_read_var_options(config, options, err);
    if (rc < 0) {
        cn_config_free(config);
        return rc;
    }
    *out = config;
    return 0;
}

/* A source file without a configuration: what wrangler takes for granted. */
static void write_plain(struct cn_buf *text)
{
    char today[16];
    struct tm tm;
    time_t now = time(NULL);
    strftime(today, sizeof(today), "%Y-%m-%d", gmtime_r(&now, &tm));
    cn_buf_printf(text, "{\"compatibility_date\":\"%s\"}", today);
}

static int read_text(const struct cn_findconf *found, struct cn_buf *text, bool *is_toml,
                     struct cn_err *err)
{
    *is_toml = false;
    if (!found->path) {
        write_plain(text);
        return 0;
    }
    const char *dot = strrchr(found->path, '.');
    *is_toml = dot && strcmp(dot, ".toml") == 0;
    if (!dot || (!*is_toml && strcmp(dot, ".json") != 0 && strcmp(dot, ".jsonc") != 0))
        return cn_err_set(err, CN_EINVALID,
                          "%s: a configuration is a .toml, .json or .jsonc file, a source file is "
                          ".js or .ts",
                          found->path);
    return cn_files_read(found->path, CN_CONF_SIZE_MAX, text, err);
}

int cn_config_load(const char *project, const struct cn_config_options *options,
                   struct cn_config **out, struct cn_err *err)
{
    struct cn_buf text = {0};
    struct cn_config *config = NULL;
    struct cn_findconf found;
    bool is_toml;
    int rc = cn_findconf(project, &found, err);
    if (rc < 0)
        return rc;
    struct cn_config_options all = options ? *options : (struct cn_config_options){0};
    all.main = found.script;
    all.own = found.own;
    rc = read_text(&found, &text, &is_toml, err);
    char *path = found.path ? cn_strdup(found.path) : cn_sprintf("%s/wrangler.json", found.home);
    if (rc == 0)
        rc = cn_config_load_text(path, is_toml, (const char *)text.data, text.size, &all, &config,
                                 err);
    if (rc == 0) {
        cn_free(config->home);
        config->home = cn_strdup(found.home);
        config->note = found.own || config->generated ? cn_findconf_note(found.home) : NULL;
        rc = cn_config_read_secrets(config, config->home, err);
    }
    if (rc == 0 && !config->secrets_node && strcmp(config->home, config->dir) != 0)
        rc = cn_config_read_secrets(config, config->dir, err); /* what the build tool has copied */
    if (rc == 0) {
        cn_config_apply_secrets(config);
        rc = cn_config_read_var_options(config, options,
                                        err); /* again: --var wins over secrets too */
    }
    if (rc == 0)
        *out = config;
    else
        cn_config_free(config);
    cn_buf_fini(&text);
    cn_free(path);
    cn_findconf_fini(&found);
    return rc;
}

const char *cn_config_process_variable(const struct cn_config *config, const char *name)
{
    return config->uploaded ? NULL : getenv(name);
}

void cn_config_free(struct cn_config *config)
{
    if (!config)
        return;
    cn_schema_fini(&cn_config_schema, config);
    cn_config_free_entries(config);
    for (size_t i = 0; i < config->warnings.count; i++)
        cn_free(config->warnings.items[i]);
    cn_free(config->warnings.items);
    for (size_t i = 0; i < config->var_text_count; i++)
        cn_free(config->var_texts[i]);
    cn_free(config->var_texts);
    cn_free(config->vars.items);
    cn_free(config->routes.items);
    cn_free(config->hosted);
    cn_free(config->name_owned);
    cn_free(config->secrets_path);
    cn_free(config->path);
    cn_free(config->dir);
    cn_free(config->home);
    cn_free(config->note);
    for (size_t i = 0; i < config->missing.count; i++) {
        cn_free(config->missing.items[i].key);
        cn_free(config->missing.items[i].binding);
    }
    cn_free(config->missing.items);
    cn_confnode_free(config->root);
    cn_confnode_free(config->secrets_node);
    cn_confnode_free(config->pages_node);
    cn_free(config);
}
