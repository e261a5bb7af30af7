/* SPDX-License-Identifier: Apache-2.0 */
/* cli/upload_site.c - the files of a Workers Site (`site`), as wrangler sends them: values of a
 * namespace of KV that is named after the worker and bound as __STATIC_CONTENT. Their keys have a
 * hash of their contents in them (tools/bundler/site.mjs), so that what is there already stays, and
 * an earlier version finds its own: nothing is deleted. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/resource.h"
#include "cli/upload.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"
#include "text/base64.h"
#include "v4/depot.h"

#define REQUEST_MAX ((size_t)16 << 20) /* bytes of one request */
#define ENTRIES_MAX 1000               /* files of one request */
#define FILE_MAX (25u << 20)           /* a value of KV */

struct sending {
    struct cn_upload *upload;
    struct cn_buf body; /* the list so far, without its end */
    size_t count;       /* entries in it */
};

static bool has_key(const struct cn_depot_texts *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->items[i], key) == 0)
            return true;
    }
    return false;
}

/* The keys that the namespace has. */
static int list_keys(struct cn_upload *upload, struct cn_depot_texts *keys, struct cn_err *err)
{
    char *cursor = cn_strdup("");
    int rc = 0;
    do {
        const struct cn_json *result = NULL;
        struct cn_buf target = {0};
        cn_buf_printf(&target, "storage/kv/namespaces/%s/keys?limit=1000", upload->site_id);
        if (*cursor) {
            cn_buf_append_str(&target, "&cursor=");
            cn_api_append_param(&target, NULL, cursor);
        }
        rc = cn_remote_ask(upload->remote, "GET", cn_buf_text(&target), &result, err);
        cn_buf_fini(&target);
        for (const struct cn_json *each = rc == 0 && result ? result->first : NULL; each;
             each = each->next) {
            const char *name = cn_json_text(each, "name");
            if (name)
                cn_depot_texts_add(keys, name);
        }
        const char *next =
            cn_json_text(cn_json_find(upload->remote->last, "result_info"), "cursor");
        char *copy = cn_strdup(rc == 0 && next ? next : "");
        cn_free(cursor);
        cursor = copy;
    } while (rc == 0 && *cursor);
    cn_free(cursor);
    return rc;
}

static int flush(struct sending *sending, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    if (!sending->count)
        return 0;
    char *target = cn_sprintf("storage/kv/namespaces/%s/bulk", sending->upload->site_id);
    cn_buf_append_byte(&sending->body, ']');
    int rc = cn_remote_send(sending->upload->remote, "PUT", target, &sending->body, &result, err);
    cn_buf_clear(&sending->body);
    sending->count = 0;
    cn_free(target);
    return rc;
}

static int add_file(struct sending *sending, const struct cn_confnode *entry, struct cn_err *err)
{
    const struct cn_config *config = sending->upload->project.config;
    struct cn_buf bytes = {0};
    const char *bucket = config->site.bucket;
    char *path = *bucket == '/' ? cn_sprintf("%s/%s", bucket, entry->key)
                                : cn_sprintf("%s/%s/%s", config->dir, bucket, entry->key);
    int rc = cn_files_read(path, FILE_MAX, &bytes, err);
    cn_free(path);
    if (rc == 0 && sending->count &&
        (sending->count == ENTRIES_MAX || sending->body.size + bytes.size * 4 / 3 > REQUEST_MAX))
        rc = flush(sending, err);
    if (rc == 0) {
        cn_buf_append_str(&sending->body, sending->count++ ? ",{\"key\":" : "[{\"key\":");
        cn_buf_append_json(&sending->body, entry->text, entry->length);
        cn_buf_append_str(&sending->body, ",\"base64\":true,\"value\":\"");
        cn_base64_encode(&sending->body, bytes.data, bytes.size);
        cn_buf_append_str(&sending->body, "\"}");
        sending->upload->new_assets++;
    }
    cn_buf_fini(&bytes);
    return rc;
}

int cn_upload_site(struct cn_upload *upload, struct cn_err *err)
{
    const struct cn_confnode *manifest = upload->project.bundle.manifest;
    const struct cn_confnode *files = manifest ? cn_confnode_find(manifest, "site") : NULL;
    struct sending sending = {.upload = upload};
    struct cn_depot_texts keys = {0};
    char *name = cn_sprintf("__%s-workers_sites_assets", upload->project.config->name);
    upload->site_id = cn_resource_provide(upload->remote, "kv", name, err);
    cn_free(name);
    if (!upload->site_id)
        return err->code;
    int rc = list_keys(upload, &keys, err);
    for (size_t i = 0; files && files->kind == CN_CONF_TABLE && i < files->count && rc == 0; i++) {
        const struct cn_confnode *entry = files->items[i];
        if (entry->kind == CN_CONF_STRING && !has_key(&keys, entry->text))
            rc = add_file(&sending, entry, err);
    }
    if (rc == 0)
        rc = flush(&sending, err);
    cn_depot_texts_clear(&keys);
    cn_buf_fini(&sending.body);
    return rc;
}
