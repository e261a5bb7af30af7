/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_agree.c - what nodes agree on, by way of the engine (N3): numbers of namespaces,
 * the table of classes, secrets. See cluster_private.h. */
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/mem.h"
#include "fleet/cluster_private.h"
#include "project/classes.h"

#define CLASSES_DOCUMENT "classes"

bool cn_cluster_is_away(struct cn_cluster *cluster, int rc, struct cn_err *err)
{
    cn_cluster_lock(cluster);
    bool again = rc == CN_ETIMEOUT && !cluster->served && cluster->state != CN_CLUSTER_FAILED;
    cn_cluster_unlock(cluster);
    if (again)
        cn_warn("cluster: %s; trying again", err->text);
    return again;
}

/* --- numbers of namespaces ------------------------------------------------------------------- */

/* With the lock held. */
static struct cn_cluster_name *find_name(struct cn_cluster *cluster, uint32_t number)
{
    for (size_t i = 0; i < cluster->name_count; i++)
        if (cluster->names[i].number == number)
            return &cluster->names[i];
    return NULL;
}

static void remember(struct cn_cluster *cluster, uint32_t number, const char *text)
{
    cn_cluster_lock(cluster);
    struct cn_cluster_name *name = find_name(cluster, number);
    if (!name) {
        cluster->names =
            cn_realloc(cluster->names, (cluster->name_count + 1) * sizeof(*cluster->names));
        name = &cluster->names[cluster->name_count++];
        *name = (struct cn_cluster_name){.number = number};
    }
    cn_free(name->text);
    name->text = cn_strdup(text);
    cn_cluster_unlock(cluster);
}

/* Names of services never become those of other numbers, so what was told once stays true. */
static bool recall_service(struct cn_cluster *cluster, const char *text, uint32_t *number)
{
    bool found = false;
    cn_cluster_lock(cluster);
    for (size_t i = 0; i < cluster->name_count && *text == '$' && !found; i++) {
        found = strcmp(cluster->names[i].text, text) == 0;
        if (found)
            *number = cluster->names[i].number;
    }
    cn_cluster_unlock(cluster);
    return found;
}

int cn_cluster_number(void *data, const char *name, uint32_t *number, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    if (recall_service(cluster, name, number))
        return 0;
    int rc;
    do
        rc = cn_registry_number(&cluster->registry, name, number, err);
    while (cn_cluster_is_away(cluster, rc, err));
    if (rc == 0)
        remember(cluster, *number, name);
    return rc;
}

int cn_cluster_named(void *data, uint32_t number, const char *text, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    cn_cluster_lock(cluster);
    const struct cn_cluster_name *name = find_name(cluster, number);
    bool known = name && strcmp(name->text, text) == 0;
    cn_cluster_unlock(cluster);
    if (known)
        return 0;
    int rc;
    do
        rc = cn_registry_rename(&cluster->registry, number, text, err);
    while (cn_cluster_is_away(cluster, rc, err));
    if (rc == 0)
        remember(cluster, number, text);
    return rc;
}

/* --- the table of classes -------------------------------------------------------------------- */

/* The table of classes: the engine's becomes the file's. */
static int ledger_fetch(void *data, struct cn_disk *disk, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_buf text = {0};
    int rc;
    do
        rc = cn_registry_recall(&cluster->registry, CLASSES_DOCUMENT, &text,
                                &cluster->ledger_version, err);
    while (cn_cluster_is_away(cluster, rc, err));
    if (rc == 1) {
        rc = cn_disk_replace(disk, CN_CLASSES_FILE, text.data, text.size);
        if (rc < 0)
            rc = cn_err_errno(err, -rc, "cannot write " CN_CLASSES_FILE);
    } else if (rc == 0) {
        (void)cn_disk_unlink(disk, CN_CLASSES_FILE); /* of a deployment that was never agreed on */
    }
    cn_buf_fini(&text);
    return rc < 0 ? rc : 0;
}

static int ledger_keep(void *data, const struct cn_buf *json, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_buf text = {0};
    cn_buf_append(&text, json->data, json->size);
    int rc;
    do
        rc = cn_registry_keep(&cluster->registry, CLASSES_DOCUMENT, cn_buf_text(&text),
                              &cluster->ledger_version, err);
    while (cn_cluster_is_away(cluster, rc, err));
    cn_buf_fini(&text);
    return rc;
}

static void ledger_served(void *data)
{
    struct cn_cluster *cluster = data;
    cn_cluster_lock(cluster);
    cluster->served = true;
    cn_cluster_unlock(cluster);
}

void cn_cluster_agree_init(struct cn_cluster *cluster)
{
    cluster->ledger = (struct cn_ledger){cluster, ledger_fetch, ledger_keep, ledger_served};
}

const struct cn_ledger *cn_cluster_ledger(struct cn_cluster *cluster)
{
    return &cluster->ledger;
}

uint64_t cn_cluster_ledger_version(const struct cn_cluster *cluster)
{
    return cluster->ledger_version;
}

/* --- secrets --------------------------------------------------------------------------------- */

void cn_cluster_secret_of(const uint8_t whole[CN_CLUSTER_SECRET_SIZE],
                          uint8_t secret[CN_SIPHASH_KEY_SIZE])
{
    static const char purpose[] = "ids of objects";
    _Static_assert(CN_ENGINE_PG_SECRET_SIZE == 2 * CN_SIPHASH_KEY_SIZE, "two keys");
    for (unsigned i = 0; i < 2; i++) {
        uint8_t half[CN_SIPHASH_SIZE];
        cn_siphash(whole + i * CN_SIPHASH_KEY_SIZE, purpose, sizeof(purpose) - 1, half);
        memcpy(secret + i * CN_SIPHASH_KEY_SIZE / 2, half, CN_SIPHASH_KEY_SIZE / 2);
    }
}

void cn_cluster_secret(const struct cn_cluster *cluster, uint8_t secret[CN_SIPHASH_KEY_SIZE])
{
    cn_cluster_secret_of(cluster->info.secret, secret);
}

void cn_cluster_whole_secret(const struct cn_cluster *cluster,
                             uint8_t secret[CN_CLUSTER_SECRET_SIZE])
{
    _Static_assert(CN_ENGINE_PG_SECRET_SIZE == CN_CLUSTER_SECRET_SIZE, "all of it");
    memcpy(secret, cluster->info.secret, CN_CLUSTER_SECRET_SIZE);
}
