/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_vars.c - variables, and secrets, which are read from files beside the
 * configuration. See config_private.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config_private.h"
#include "config/confnode.h"
#include "config/files.h"

/* ---- variables --------------------------------------------------------- */

/* Sets a variable; a later one with the same name replaces the earlier. */
static void set_var(struct cn_config *config, const struct cn_config_var *var)
{
    for (size_t i = 0; i < config->vars.count; i++) {
        if (strcmp(config->vars.items[i].name, var->name) == 0) {
            config->vars.items[i] = *var;
            return;
        }
    }
    config->vars.items =
        cn_realloc(config->vars.items, (config->vars.count + 1) * sizeof(struct cn_config_var));
    config->vars.items[config->vars.count++] = *var;
}

char *cn_config_keep_text(struct cn_config *config, char *text)
{
    config->var_texts =
        cn_realloc(config->var_texts, (config->var_text_count + 1) * sizeof(char *));
    return config->var_texts[config->var_text_count++] = text;
}

int cn_config_read_vars(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    const struct cn_confnode *vars = config->vars_node;
    if (!vars)
        return 0;
    if (vars->kind != CN_CONF_TABLE)
        return cn_schema_fail(&loader->reader, vars, err, "\"vars\" must be a table");
    for (size_t i = 0; i < vars->count; i++) {
        const struct cn_confnode *node = vars->items[i];
        struct cn_config_var var = {.name = node->key, .kind = CN_VAR_TEXT};
        if (node->kind == CN_CONF_STRING) {
            var.text = node->text;
            var.length = node->length;
        } else {
            struct cn_buf json = {0};
            cn_confnode_write_json(node, &json);
            cn_buf_text(&json);
            var.kind = CN_VAR_JSON;
            var.length = json.size;
            var.text = cn_config_keep_text(config, (char *)cn_buf_take(&json));
        }
        set_var(config, &var);
    }
    return 0;
}

int cn_config_read_var_options(struct cn_config *config, const struct cn_config_options *options,
                               struct cn_err *err)
{
    for (size_t i = 0; options && i < options->var_count; i++) {
        const char *text = options->vars[i];
        size_t name_size = strcspn(text, "=:");
        if (name_size == 0 || !text[name_size])
            return cn_err_set(err, CN_EINVALID, "--var %s: must have the form NAME=VALUE", text);
        const char *value = text + name_size + 1;
        set_var(config, &(struct cn_config_var){
                            .name = cn_config_keep_text(config, cn_strndup(text, name_size)),
                            .kind = CN_VAR_TEXT,
                            .text = cn_config_keep_text(config, cn_strdup(value)),
                            .length = strlen(value)});
    }
    return 0;
}

/* ---- secrets ----------------------------------------------------------- */

/* Adds what the file `name` of the folder holds to secrets_node. 0: there is no such file. */
static int read_secret_file(struct cn_config *config, const char *folder, const char *name,
                            struct cn_err *err)
{
    struct cn_buf text = {0};
    char *path = cn_sprintf("%s/%s", folder, name);
    int rc = cn_files_read(path, CN_CONF_SIZE_MAX, &text, NULL);
    if (rc == -ENOENT) {
        cn_free(path);
        return 0;
    }
    struct cn_confnode *table = NULL;
    if (rc < 0) {
        cn_err_errno(err, -rc, "%s: cannot be read", path);
        goto out;
    }
    table = cn_dotenv_parse(path, (const char *)text.data, text.size, err);
    if (!table) {
        rc = CN_EINVALID;
        goto out;
    }
    if (!config->secrets_node) {
        config->secrets_node = cn_confnode_new(CN_CONF_TABLE, 1, 1);
        config->secrets_path = cn_strdup(path);
    }
    for (size_t i = 0; i < table->count; i++) {
        struct cn_confnode *from = table->items[i];
        struct cn_confnode *to = cn_confnode_find(config->secrets_node, from->key);
        if (to) {
            cn_free(to->text);
            to->text = cn_strndup(from->text, from->length);
            to->length = from->length;
        } else {
            cn_confnode_add(
                config->secrets_node, from->key,
                cn_confnode_new_text(CN_CONF_STRING, from->text, from->length, from->line, 1));
        }
    }
    rc = 1;
out:
    cn_confnode_free(table);
    cn_buf_fini(&text);
    cn_free(path);
    return rc;
}

/* As wrangler: .dev.vars.ENV, or else .dev.vars, or else the .env files, of
 * which the more special ones win. */
int cn_config_read_secrets(struct cn_config *config, const char *folder, struct cn_err *err)
{
    char name[4][160];
    const char *env = config->env ? config->env : "";
    snprintf(name[0], sizeof(name[0]), ".dev.vars.%s", env);
    int rc = *env ? read_secret_file(config, folder, name[0], err) : 0;
    if (rc == 0)
        rc = read_secret_file(config, folder, ".dev.vars", err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    size_t count = 2;
    snprintf(name[0], sizeof(name[0]), ".env");
    snprintf(name[1], sizeof(name[1]), ".env.local");
    if (*env) {
        snprintf(name[2], sizeof(name[2]), ".env.%s", env);
        snprintf(name[3], sizeof(name[3]), ".env.%s.local", env);
        count = 4;
    }
    for (size_t i = 0; i < count; i++) {
        rc = read_secret_file(config, folder, name[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool is_required_secret(const struct cn_config *config, const char *name)
{
    for (size_t i = 0; i < config->secrets.required.count; i++)
        if (strcmp(config->secrets.required.items[i], name) == 0)
            return true;
    return false;
}

void cn_config_apply_secrets(struct cn_config *config)
{
    const struct cn_strings *required = &config->secrets.required;
    for (size_t i = 0; config->secrets_node && i < config->secrets_node->count; i++) {
        const struct cn_confnode *node = config->secrets_node->items[i];
        if (required->count && !is_required_secret(config, node->key))
            continue; /* "secrets.required" says which ones there are */
        set_var(config, &(struct cn_config_var){.name = node->key,
                                                .kind = CN_VAR_SECRET,
                                                .text = node->text,
                                                .length = node->length});
    }
    for (size_t i = 0; i < required->count; i++)
        if (!config->secrets_node || !cn_confnode_find(config->secrets_node, required->items[i]))
            cn_config_warn(config, "%s: the required secret \"%s\" is in no .dev.vars or .env file",
                           config->path, required->items[i]);
}
