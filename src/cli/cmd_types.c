/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_types.c - `cairn types`: the bindings of a project as TypeScript declarations, in the
 * form that `wrangler types` gives them. The types themselves (KVNamespace and the others) are
 * those of the package @cloudflare/workers-types. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/print.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"
#include "v4/depot.h"

struct options {
    const char *config, *env, *allow_missing;
    bool check, loose;
};

/* The type of a binding, by its type in an upload. */
static const struct {
    const char *type, *name;
} names[] = {
    {"kv_namespace", "KVNamespace"},
    {"r2_bucket", "R2Bucket"},
    {"d1", "D1Database"},
    {"queue", "Queue"},
    {"service", "Fetcher"},
    {"analytics_engine", "AnalyticsEngineDataset"},
    {"ratelimit", "RateLimit"},
    {"send_email", "SendEmail"},
    {"hyperdrive", "Hyperdrive"},
    {"dispatch_namespace", "DispatchNamespace"},
    {"workflow", "Workflow"},
    {"vectorize", "VectorizeIndex"},
    {"worker_loader", "WorkerLoader"},
    {"version_metadata", "WorkerVersionMetadata"},
    {"ai", "Ai"},
    {"browser", "Fetcher"},
    {"images", "ImagesBinding"},
};

static const char *name_of(const char *type)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (strcmp(names[i].type, type) == 0)
            return names[i].name;
    }
    return "unknown";
}

/* What is written so far: a name is declared once. */
struct writer {
    const struct cn_config *config;
    const struct options *options;
    char *module; /* owned: how the main module is imported, or NULL: there is none */
    struct cn_buf members;
    struct cn_buf objects; /* "A" | "B": classes of its own */
};

static bool is_identifier(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$";
    return *name && strchr(first, *name) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$0123456789") ==
               strlen(name);
}

static void put_name(struct cn_buf *out, const char *name)
{
    if (is_identifier(name))
        cn_buf_append_str(out, name);
    else
        cn_buf_append_json(out, name, strlen(name));
}

static bool is_declared(struct writer *writer, const char *name)
{
    struct cn_buf line = {0};
    cn_buf_append_str(&line, "\n\t\t");
    put_name(&line, name);
    cn_buf_append_str(&line, ": ");
    bool found = memmem(writer->members.data, writer->members.size, line.data, line.size);
    cn_buf_fini(&line);
    return found;
}

static void declare(struct writer *writer, const char *name, const char *type)
{
    if (is_declared(writer, name))
        return;
    cn_buf_append_str(&writer->members, "\n\t\t");
    put_name(&writer->members, name);
    cn_buf_printf(&writer->members, ": %s;", type);
}

static const char *text_of(const struct cn_confnode *entry, const char *key)
{
    const struct cn_confnode *node = cn_confnode_find(entry, key);
    return node && node->kind == CN_CONF_STRING ? node->text : NULL;
}

/* A class of this worker's is named by its type; another worker's is not known here. */
static void put_object(struct writer *writer, const struct cn_confnode *entry)
{
    const char *name = text_of(entry, "name"), *class = text_of(entry, "class_name");
    bool own = writer->module && !text_of(entry, "script_name") && class && is_identifier(class);
    char *type = own ? cn_sprintf("DurableObjectNamespace<import(%s).%s>", writer->module, class)
                     : cn_strdup("DurableObjectNamespace");
    declare(writer, name ? name : "", type);
    cn_free(type);
    if (!own)
        return;
    char *quoted = cn_sprintf("\"%s\"", class);
    if (!writer->objects.size || !strstr(cn_buf_text(&writer->objects), quoted))
        cn_buf_printf(&writer->objects, "%s%s", writer->objects.size ? " | " : "", quoted);
    cn_free(quoted);
}

static void put_entry(struct writer *writer, const struct cn_depot_kind *kind,
                      const struct cn_confnode *entry)
{
    if (entry->kind != CN_CONF_TABLE)
        return;
    if (strcmp(kind->type, "durable_object_namespace") == 0) {
        put_object(writer, entry);
        return;
    }
    for (size_t i = 0; i < CN_DEPOT_FIELD_MAX && kind->fields[i].from; i++) {
        const char *name =
            strcmp(kind->fields[i].from, "name") == 0 ? text_of(entry, kind->fields[i].to) : NULL;
        if (name)
            declare(writer, name, name_of(kind->type));
    }
}

static void put_kind(struct writer *writer, const struct cn_depot_kind *kind)
{
    size_t size = strcspn(kind->key, ".!");
    char *key = cn_strndup(kind->key, size);
    const struct cn_confnode *node = cn_config_key(writer->config, key);
    cn_free(key);
    if (node && kind->key[size] == '.')
        node = node->kind == CN_CONF_TABLE ? cn_confnode_find(node, kind->key + size + 1) : NULL;
    if (node && node->kind == CN_CONF_TABLE)
        put_entry(writer, kind, node);
    for (size_t i = 0; node && node->kind == CN_CONF_ARRAY && i < node->count; i++)
        put_entry(writer, kind, node->items[i]);
}

/* --- variables ------------------------------------------------------------------------------- */

/* A value is its own type: JSON is TypeScript here. */
static void add_value(struct cn_buf *type, const struct cn_confnode *vars, const char *name)
{
    const struct cn_confnode *node =
        vars && vars->kind == CN_CONF_TABLE ? cn_confnode_find(vars, name) : NULL;
    struct cn_buf text = {0};
    if (!node)
        return;
    cn_confnode_write_json(node, &text);
    if (!type->size || !strstr(cn_buf_text(type), cn_buf_text(&text)))
        cn_buf_printf(type, "%s%s", type->size ? " | " : "", cn_buf_text(&text));
    cn_buf_fini(&text);
}

/* Of every environment, for the same code runs in each. */
static void put_var(struct writer *writer, const char *name)
{
    const struct cn_confnode *root = writer->config->root;
    const struct cn_confnode *envs = cn_confnode_find(root, "env");
    struct cn_buf type = {0};
    add_value(&type, cn_confnode_find(root, "vars"), name);
    for (size_t i = 0; envs && envs->kind == CN_CONF_TABLE && i < envs->count; i++) {
        if (envs->items[i]->kind == CN_CONF_TABLE)
            add_value(&type, cn_confnode_find(envs->items[i], "vars"), name);
    }
    declare(writer, name, type.size ? cn_buf_text(&type) : "string");
    cn_buf_fini(&type);
}

static void put_vars(struct writer *writer)
{
    const struct cn_config *config = writer->config;
    for (size_t i = 0; i < config->vars.count; i++) {
        const struct cn_config_var *var = &config->vars.items[i];
        if (var->kind == CN_VAR_SECRET)
            declare(writer, var->name, "string");
        else if (writer->options->loose)
            declare(writer, var->name, var->kind == CN_VAR_TEXT ? "string" : "unknown");
        else
            put_var(writer, var->name);
    }
    for (size_t i = 0; i < config->secrets.required.count; i++)
        declare(writer, config->secrets.required.items[i], "string");
}

/* --- the file -------------------------------------------------------------------------------- */

/* How the main module is imported from the file's folder: quoted, without its extension. */
static char *module_from(const struct cn_config *config, const char *out)
{
    const char *slash = strrchr(out, '/');
    char *dir = slash ? cn_strndup(out, (size_t)(slash - out)) : cn_strdup(".");
    char *folder = realpath(*dir ? dir : "/", NULL), *home = realpath(config->dir, NULL);
    size_t size = home ? strlen(home) : 0;
    struct cn_buf path = {0};
    const char *entry = config->main;
    if (entry && folder && home && *entry != '/' && strncmp(folder, home, size) == 0 &&
        (folder[size] == '/' || !folder[size])) {
        cn_buf_append_str(&path, folder[size] ? "" : "./");
        for (const char *c = folder + size; *c; c++)
            cn_buf_append_str(&path, *c == '/' ? "../" : "");
    } else if (entry && *entry != '/') {
        cn_buf_printf(&path, "%s/", config->dir);
    }
    char *quoted = NULL;
    if (entry) {
        const char *plain = strncmp(entry, "./", 2) == 0 ? entry + 2 : entry;
        const char *dot = strrchr(plain, '.');
        struct cn_buf text = {0};
        cn_buf_append(&path, plain, dot ? (size_t)(dot - plain) : strlen(plain));
        cn_buf_append_json(&text, (char *)path.data, path.size);
        cn_buf_text(&text);
        quoted = (char *)cn_buf_take(&text);
    }
    free(folder);
    free(home);
    cn_free(dir);
    cn_buf_fini(&path);
    return quoted;
}

static void write_types(struct writer *writer, struct cn_buf *out)
{
    const struct cn_depot_kind *kind;
    cn_buf_append_str(&writer->members, "\tinterface Env {");
    for (size_t i = 0; (kind = cn_depot_kind_at(i)); i++)
        put_kind(writer, kind);
    put_vars(writer);
    if (writer->config->assets.binding)
        declare(writer, writer->config->assets.binding, "Fetcher");
    cn_buf_append_str(&writer->members, "\n\t}\n");
    cn_buf_append_str(out, "/* eslint-disable */\n// Made by `cairn types` from the project's "
                           "configuration; run it again when that changes.\n"
                           "// The types of bindings are those of @cloudflare/workers-types.\n"
                           "declare namespace Cloudflare {\n");
    if (writer->module) {
        cn_buf_printf(out, "\tinterface GlobalProps {\n\t\tmainModule: typeof import(%s);\n",
                      writer->module);
        if (writer->objects.size)
            cn_buf_printf(out, "\t\tdurableNamespaces: %s;\n", cn_buf_text(&writer->objects));
        cn_buf_append_str(out, "\t}\n");
    }
    cn_buf_append(out, writer->members.data, writer->members.size);
    cn_buf_append_str(out, "}\ninterface Env extends Cloudflare.Env {}\n");
}

static int check_file(const char *path, const struct cn_buf *text, struct cn_err *err)
{
    struct cn_buf now = {0};
    int rc = cn_files_read(path, CN_CONF_SIZE_MAX, &now, err);
    if (rc == 0 && (now.size != text->size || memcmp(now.data, text->data, text->size) != 0))
        rc = cn_err_set(err, CN_EINVALID,
                        "%s is not what the configuration says: run `cairn types`", path);
    cn_buf_fini(&now);
    return rc;
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    struct cn_config *config = NULL;
    struct cn_buf text = {0};
    struct cn_config_options how = {.env = options->env, .allow_missing = options->allow_missing};
    int rc = cn_config_load(options->config ? options->config : ".", &how, &config, &err);
    if (rc < 0)
        return cn_print_outcome(rc, &err);
    char *path = args->rest_count ? cn_strdup(args->rest[0])
                                  : cn_sprintf("%s/worker-configuration.d.ts", config->dir);
    size_t size = strlen(path);
    struct writer writer = {.config = config, .options = options};
    if (size < 5 || strcmp(path + size - 5, ".d.ts") != 0)
        rc = cn_err_set(&err, CN_EINVALID,
                        "%s: declarations go into a file whose name ends in .d.ts", path);
    if (rc == 0) {
        writer.module = module_from(config, path);
        write_types(&writer, &text);
        rc = options->check ? check_file(path, &text, &err)
                            : cn_files_write(path, text.data, text.size, &err);
    }
    if (rc == 0)
        printf(options->check ? "%s is up to date\n" : "%s is written\n", path);
    cn_free(writer.module);
    cn_buf_fini(&writer.members);
    cn_buf_fini(&writer.objects);
    cn_buf_fini(&text);
    cn_free(path);
    cn_config_free(config);
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_CONFIG(AT(config)),
    CN_OPTION_ENV(AT(env)),
    CN_OPTION_ALLOW_MISSING(AT(allow_missing)),
    {"check", 0, NULL, NULL, "write nothing: is the file what the configuration says?", AT(check),
     0},
    {"loose-vars", 0, NULL, NULL, "variables are string, not their own values", AT(loose), 0},
};

const struct cn_command cn_cmd_types = {
    .name = "types",
    .usage = "[FILE] [OPTIONS]",
    .summary = "write the types of a project's bindings",
    .text =
        "Writes TypeScript declarations of the project's bindings, variables and secrets: the "
        "interface Env,\n"
        "with the types of @cloudflare/workers-types (default: worker-configuration.d.ts beside "
        "the\n"
        "configuration). Exit code 1 with --check: the file is out of date.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
