/* SPDX-License-Identifier: Apache-2.0 */
/* service/hyperdrive/config.c - `hyperdrive`: bindings that lead to databases elsewhere, whose
 * connection strings come by variables, as wrangler has them, by the id of the database, or by the
 * configuration. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/def.h"

struct entry {
    const char *binding, *id, *local_connection_string;
};
struct entries {
    struct entry *items;
    size_t count;
};

/* clang-format off */
SCHEMA(schema, struct entry,
    STRING(entry, binding, .flags = REQUIRED),
    STRING(entry, id),
    {.name = "localConnectionString", .kind = CN_FIELD_STRING, AT(entry, local_connection_string)},
    SUB_HOSTED("remote"));
/* clang-format on */

#define ID_SIZE 32 /* hexadecimal digits, as the platform's are */

/* The variable with which the operator gives a database to whoever may deploy. */
static const char *find_by_id(const char *id)
{
    if (!id || strlen(id) != ID_SIZE || strspn(id, "0123456789abcdef") != ID_SIZE)
        return NULL;
    char *name = cn_sprintf("CAIRN_HYPERDRIVE_ID_%s", id);
    const char *text = getenv(name);
    cn_free(name);
    return text;
}

/* By the name of the binding it is a project's of this server's disk only: H6 of deploy/hosted.h.
 */
static const char *find_database(const struct cn_config *config, const struct entry *entry)
{
    static const char *const prefixes[] = {"CAIRN_HYPERDRIVE_",
                                           "CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_",
                                           "WRANGLER_HYPERDRIVE_LOCAL_CONNECTION_STRING_"};
    const char *text = NULL;
    for (size_t i = 0; i < CN_ARRAY_COUNT(prefixes) && !text; i++) {
        char *name = cn_sprintf("%s%s", prefixes[i], entry->binding);
        text = cn_config_process_variable(config, name);
        cn_free(name);
    }
    if (!text)
        text = find_by_id(entry->id);
    return text ? text : entry->local_connection_string;
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct entries *all = entries;
    for (size_t i = 0; i < all->count; i++) {
        const char *text = find_database(list->config, &all->items[i]);
        if (text && strncmp(text, "postgres://", 11) != 0 &&
            strncmp(text, "postgresql://", 13) != 0 && strncmp(text, "mysql://", 8) != 0)
            return cn_err_set(err, CN_EINVALID,
                              "hyperdrive: the connection string of %s must begin with "
                              "postgres://, postgresql:// or mysql://",
                              all->items[i].binding);
        cn_binding_begin(list, all->items[i].binding, "hyperdrive");
        if (text)
            cn_binding_member(list, "url", text);
        if (!text && list->config->uploaded)
            cn_binding_member(list, "id", all->items[i].id ? all->items[i].id : "");
        cn_binding_end(list);
    }
    return 0;
}

static const struct cn_service_config config = {
    .key = {.name = "hyperdrive", .kind = CN_FIELD_LIST, .sub = &schema, .flags = OWN},
    .name = "binding",
    .bind = bind_all,
};

const struct cn_service_def cn_service_hyperdrive = {
    .name = "hyperdrive",
    .title = "Hyperdrive",
    .about = "PostgreSQL or MySQL servers elsewhere",
    .page = "reference/ai.md",
    .config = &config,
};
