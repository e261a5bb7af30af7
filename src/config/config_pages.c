/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_pages.c - Pages projects and Workers Sites, of which a worker with assets is made.
 * See config_private.h. */
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config_private.h"
#include "config/confnode.h"
#include "config/files.h"

/* ---- Pages ------------------------------------------------------------- */

/* The folder's own file, if there is one. Owned. */
static char *existing(const char *folder, const char *name, bool is_folder)
{
    char *path = cn_sprintf("%s/%s", folder, name);
    struct stat info;
    if (stat(path, &info) == 0 && (is_folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)))
        return path;
    cn_free(path);
    return NULL;
}

static void push_text(struct cn_confnode *list, const char *mark, const char *text)
{
    char *whole = cn_sprintf("%s%s", mark, text);
    cn_confnode_push(list, cn_confnode_new_text(CN_CONF_STRING, whole, strlen(whole), 1, 1));
    cn_free(whole);
}

static void push_routes(struct cn_confnode *list, const char *mark, const struct cn_confnode *from)
{
    for (size_t i = 0; from && from->kind == CN_CONF_ARRAY && i < from->count; i++)
        if (from->items[i]->kind == CN_CONF_STRING)
            push_text(list, mark, from->items[i]->text);
}

/* Which requests the worker gets: _routes.json says it, or all of them. */
static int read_pages_routes(struct cn_config *config, const char *folder, struct cn_err *err)
{
    struct cn_confnode *first = cn_confnode_new(CN_CONF_ARRAY, 1, 1);
    struct cn_buf text = {0};
    char *path = existing(folder, "_routes.json", false);
    config->pages_node = first;
    config->assets.run_worker_first = first;
    int rc = path ? cn_files_read(path, CN_CONF_SIZE_MAX, &text, err) : 0;
    struct cn_confnode *root =
        path && rc == 0 ? cn_jsonc_parse(path, (const char *)text.data, text.size, err) : NULL;
    if (path && rc == 0 && (!root || root->kind != CN_CONF_TABLE)) {
        rc = root ? cn_err_set(err, CN_EINVALID, "%s: the file must hold an object", path)
                  : CN_EINVALID;
    } else if (root) {
        push_routes(first, "", cn_confnode_find(root, "include"));
        push_routes(first, "!", cn_confnode_find(root, "exclude"));
    } else if (rc == 0) {
        push_text(first, "", "/*");
    }
    cn_confnode_free(root);
    cn_buf_fini(&text);
    cn_free(path);
    return rc;
}

/* A Pages project is assets with a worker before them: _worker.js among the assets (a file, or a
 * folder with index.js), else `functions` beside the configuration, else none. */
int cn_config_read_pages(struct cn_config *config, struct cn_err *err)
{
    const char *name = config->pages_build_output_dir;
    if (!name || !*config->dir)
        return 0;
    char *folder = *name == '/' ? cn_strdup(name) : cn_sprintf("%s/%s", config->dir, name);
    char *script = existing(folder, "_worker.js", false);
    char *page = existing(folder, "404.html", false);
    if (!script)
        script = existing(folder, "_worker.js/index.js", false);
    char *functions = script ? NULL : existing(config->dir, "functions", true);
    if (functions)
        config->functions = cn_config_keep_text(config, cn_strdup(functions));
    config->main = script || functions
                       ? cn_config_keep_text(config, cn_strdup(script ? script : functions))
                       : NULL;
    config->assets = (struct cn_config_assets){
        .directory = name,
        .binding = "ASSETS",
        .not_found_handling = page ? "404-page" : "single-page-application",
    };
    config->assets_set = true;
    int rc = config->main ? read_pages_routes(config, folder, err) : 0;
    cn_free(functions);
    cn_free(script);
    cn_free(page);
    cn_free(folder);
    return rc;
}

/* ---- sites ------------------------------------------------------------- */

/* A site is a worker that reads its files as if they were in a KV namespace: they are assets that
 * no request reaches by itself. */
int cn_config_read_site(struct cn_config_loader *loader, struct cn_err *err)
{
    struct cn_config *config = loader->config;
    if (!config->site.bucket)
        return 0;
    if (config->assets_set)
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "site"), err,
                              "\"site\" and \"%s\" exclude each other",
                              config->pages_build_output_dir ? "pages_build_output_dir" : "assets");
    if (!config->main && config->site.entry_point)
        config->main =
            cn_config_keep_text(config, cn_sprintf("%s/index.js", config->site.entry_point));
    struct cn_confnode *first = cn_confnode_new(CN_CONF_BOOL, 1, 1);
    first->boolean = true;
    config->pages_node = first;
    config->assets = (struct cn_config_assets){.directory = config->site.bucket,
                                               .html_handling = "none",
                                               .not_found_handling = "none",
                                               .run_worker_first = first};
    config->assets_set = true;
    if (!config->main)
        return cn_schema_fail(&loader->reader, cn_config_node_of(loader, "site"), err,
                              "\"site\" needs a worker: the key \"main\" is missing");
    return 0;
}
