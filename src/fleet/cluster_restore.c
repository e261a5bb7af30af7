/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/cluster_restore.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/overlay.h"
#include "base/subdisk.h"
#include "fleet/backup_manifest.h"
#include "fleet/backup_shard.h"
#include "fleet/cluster.h"
#include "fleet/fleet.h"
#include "fleet/version_files.h"
#include "membership/engine.h"
#include "membership/registry.h"
#include "object/secret.h"
#include "project/classes.h"
#include "store/blob.h"
#include "store/catalog.h"
#include "store/check.h"
#include "store/history.h"
#include "store/replica.h"
#include "store/store.h"
#include "text/hex.h"
#include "v4/depot.h"

enum { CHUNK_PAGES = 2048, OVERLOAD_TRIES = 100 };
#define CLUSTER_JSON_MAX ((int64_t)256 << 20)
#define NODE_SPACE "$cairn" /* object/node_db.h: each store has one of its own */
#define TOKENS_FILE "tokens.json"
#define USED                                                                                    \
    "this cluster is not empty: a backup is restored into one that no node has ever been part " \
    "of; give it a database of its own, or DROP SCHEMA cairn CASCADE if nobody needs what is "  \
    "there"

struct restoring {
    struct cn_restore *asked;
    struct cn_disk *from, *to;
    struct cn_manifest *manifest;
    struct cn_json *state; /* cluster.json */
    struct cn_buf text;    /* the same as it is */
    uint8_t secret[CN_CLUSTER_SECRET_SIZE];
    struct cn_store *store; /* of a single server */
    struct cn_map listed;   /* of paths below shards/, for it: V1 */
    struct cn_err *err;
};

/* --- files ------------------------------------------------------------------------------------ */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t size = strlen(text), tail = strlen(with);
    return size >= tail && strcmp(text + size - tail, with) == 0;
}

/* Where a file of the backup goes; owned. NULL: it is only compared. */
static char *place_of(const struct restoring *run, const char *path)
{
    if (begins(path, "deployed/"))
        return cn_strdup(path);
    if (begins(path, "blobs/")) /* a single server has no folders for shards */
        return run->asked->url ? cn_strdup(path)
                               : cn_sprintf("blobs/%s", strchr(path + strlen("blobs/"), '/') + 1);
    return begins(path, "shards/") && run->asked->url && !ends(path, "/LOCK") ? cn_strdup(path)
                                                                              : NULL;
}

static int take_file(void *data, const struct cn_manifest_entry *entry)
{
    struct restoring *run = data;
    char *place = place_of(run, entry->path);
    int rc = cn_manifest_take(run->from, entry, place ? run->to : NULL, place, run->err);
    if (rc == 0 && place && begins(place, "blobs/"))
        run->asked->body_count++;
    if (!run->asked->url && begins(entry->path, "shards/"))
        (void)cn_map_set(&run->listed, entry->path, strlen(entry->path), run);
    run->asked->bytes += entry->size;
    cn_free(place);
    return rc;
}

/* V1: stores are opened where they are. */
static int is_listed(void *data, const char *path)
{
    struct restoring *run = data;
    return cn_map_find(&run->listed, path, strlen(path))
               ? 0
               : cn_err_set(run->err, CN_EINVALID, "%s is not in the list of files", path);
}

static int take_files(struct restoring *run)
{
    int rc = cn_manifest_each(run->from, run->manifest, take_file, run, run->err); /* V1 */
    if (rc < 0 || run->asked->url)
        return rc;
    rc = cn_disk_walk(run->from, "shards", is_listed, run);
    return rc < 0 && rc != CN_EINVALID ? cn_err_errno(run->err, -rc, "cannot list the backup") : rc;
}

static int read_state(struct restoring *run)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(run->from, CN_MANIFEST_CLUSTER, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(run->err, -rc, "cannot read " CN_MANIFEST_CLUSTER);
    int64_t size = cn_disk_size(file), got = 0;
    if (size < 0 || size > CLUSTER_JSON_MAX) {
        rc = cn_err_set(run->err, CN_EINVALID, CN_MANIFEST_CLUSTER " is too large");
    } else {
        cn_buf_reserve(&run->text, (size_t)size + 1);
        got = cn_disk_read(file, run->text.data, (size_t)size, 0);
        run->text.size = got > 0 ? (size_t)got : 0;
    }
    cn_disk_close(file);
    if (rc == 0 && got != size)
        rc = cn_err_errno(run->err, got < 0 ? (int)-got : EIO, "cannot read " CN_MANIFEST_CLUSTER);
    if (rc < 0)
        return rc;
    run->state = cn_json_parse(cn_buf_text(&run->text), run->text.size, run->err);
    if (!run->state)
        return cn_err_context(run->err, CN_MANIFEST_CLUSTER);
    const char *secret = cn_json_text(run->state, "secret");
    if (!secret || strlen(secret) != 2 * sizeof(run->secret) ||
        !cn_hex_decode(secret, sizeof(run->secret), run->secret))
        return cn_err_set(run->err, CN_EINVALID, CN_MANIFEST_CLUSTER " has no secret");
    return 0;
}

static void note_entry(void *data, const char *name, bool is_dir)
{
    (void)name, (void)is_dir;
    *(bool *)data = true;
}

/* V2 */
static int open_target(struct restoring *run)
{
    static const char why[] = "A backup is being restored into this directory.\n";
    const char *to = run->asked->to;
    bool occupied = false;
    if (mkdir(to, 0700) < 0 && errno != EEXIST)
        return cn_err_errno(run->err, errno, "cannot make %s", to);
    run->to = cn_disk_system_new(to);
    if (!run->to)
        return cn_err_errno(run->err, errno, "cannot open %s", to);
    int rc = cn_disk_list(run->to, "", note_entry, &occupied);
    if (rc < 0)
        return cn_err_errno(run->err, -rc, "cannot list %s", to);
    if (occupied)
        return cn_err_set(run->err, CN_EEXISTS,
                          "%s is not empty: a backup is restored into a new directory", to);
    rc = cn_disk_replace(run->to, CN_CLUSTER_RESTORING, why, sizeof(why) - 1);
    return rc < 0 ? cn_err_errno(run->err, -rc, "cannot write to %s", to) : 0;
}

static int sync_target(struct restoring *run)
{
    int rc = cn_disk_sync_all(run->to);
    return rc < 0 ? cn_err_errno(run->err, -rc, "cannot sync %s", run->asked->to) : 0;
}

static int finish_target(struct restoring *run)
{
    int rc = sync_target(run);
    if (rc < 0)
        return rc;
    rc = cn_disk_unlink(run->to, CN_CLUSTER_RESTORING);
    if (rc == 0)
        rc = cn_disk_sync_dir(run->to, "");
    return rc < 0 ? cn_err_errno(run->err, -rc, "cannot end the restore of %s", run->asked->to) : 0;
}

/* --- to a single server ----------------------------------------------------------------------- */

struct pouring {
    struct restoring *run;
    const struct cn_catalog_entry *entry;
    uint8_t *pages; /* owned: CHUNK_PAGES */
    uint32_t count;
    struct cn_err *err;
};

/* What is there so far becomes part of the object; a log that is full is waited for. */
static int pour(struct pouring *pouring)
{
    const struct cn_catalog_entry *entry = pouring->entry;
    struct cn_replace_meta meta = {.has_alarm = true,
                                   .alarm_ms = entry->alarm_ms,
                                   .name = entry->name,
                                   .name_size = entry->name_size};
    uint64_t lsn;
    int rc = CN_EOVERLOADED;
    for (unsigned i = 0; rc == CN_EOVERLOADED && i < OVERLOAD_TRIES; i++) {
        rc = cn_store_extend(pouring->run->store, &entry->key, pouring->pages, pouring->count,
                             &meta, &lsn, pouring->err);
        if (rc == CN_EOVERLOADED && cn_store_checkpoint(pouring->run->store, pouring->err) < 0)
            break;
    }
    pouring->count = 0;
    return rc;
}

static int pour_page(void *data, uint32_t page_no, const uint8_t *page)
{
    struct pouring *pouring = data;
    (void)page_no; /* rising */
    memcpy(pouring->pages + (size_t)pouring->count++ * CN_PAGE_SIZE, page, CN_PAGE_SIZE);
    return pouring->count == CHUNK_PAGES ? pour(pouring) : 0;
}

struct shard_run {
    struct restoring *run;
    struct cn_backup_shard view;
    uint8_t *pages; /* owned */
};

static int restore_object(void *data, const struct cn_catalog_entry *entry,
                          const char *namespace_name, struct cn_err *err)
{
    struct shard_run *shard = data;
    struct pouring pouring = {.run = shard->run, .entry = entry, .pages = shard->pages, .err = err};
    uint32_t page_count;
    uint64_t lsn;
    int rc = 0;
    if (strcmp(namespace_name, NODE_SPACE) == 0)
        return 0;
    if (entry->size)
        rc = cn_store_snapshot(shard->view.store, &entry->key, pour_page, &pouring, &page_count,
                               &lsn, err);
    if (rc == 0 && (pouring.count || !entry->size))
        rc = pour(&pouring);
    shard->run->asked->object_count += rc == 0;
    return rc;
}

static int restore_shard(struct restoring *run, uint32_t index)
{
    struct shard_run shard = {.run = run};
    int rc = cn_backup_shard_open(&shard.view, run->from, index, run->manifest->shards[index].lsn,
                                  run->err);
    if (rc < 0)
        return rc;
    shard.pages = cn_alloc((size_t)CHUNK_PAGES * CN_PAGE_SIZE);
    rc = cn_backup_shard_objects(&shard.view, restore_object, &shard, run->err);
    cn_free(shard.pages);
    cn_backup_shard_close(&shard.view);
    return rc < 0 ? cn_err_context(run->err, "shard %" PRIu32, index) : 0;
}

/* A number that the engine gives out, which has no larger ones: there is one after it. */
static bool is_namespace(const struct cn_json *id, const struct cn_json *name)
{
    return id && name && id->kind == CN_JSON_INT && id->integer > 0 && id->integer <= INT32_MAX &&
           name->kind == CN_JSON_STRING && name->size <= CN_OBJECT_NAME_MAX &&
           strlen(name->text) == name->size;
}

/* Numbers stay what they are: ids are made with them. */
static int restore_namespaces(struct restoring *run)
{
    const struct cn_json *list = cn_json_find(run->state, "namespaces");
    int rc = 0;
    for (const struct cn_json *one = list ? list->first : NULL; one && rc == 0; one = one->next) {
        const struct cn_json *id = one->first, *name = id ? id->next : NULL;
        if (!is_namespace(id, name))
            return cn_err_set(run->err, CN_EINVALID,
                              CN_MANIFEST_CLUSTER ": the list of namespaces is none");
        rc = cn_store_namespace_learn(run->store, (uint32_t)id->integer, name->text, run->err);
    }
    return rc;
}

static int restore_objects(struct restoring *run)
{
    struct cn_history_config past = {.disk = run->to};
    struct cn_history *history;
    int rc = cn_history_open(&past, &history, run->err);
    if (rc < 0)
        return rc;
    struct cn_store_config config = {.disk = run->to, .history = cn_history_callbacks(history)};
    rc = cn_store_open(&config, &run->store, run->err);
    if (rc == 0) {
        rc = restore_namespaces(run);
        for (uint32_t i = 0; rc == 0 && i < run->manifest->shard_count; i++)
            rc = restore_shard(run, i);
        if (rc == 0)
            rc = cn_store_checkpoint(run->store, run->err);
        cn_store_close(run->store);
    }
    cn_history_close(history);
    return rc;
}

/* What the engine had for all nodes is in files of a single server. */
static int restore_documents(struct restoring *run)
{
    static const char *const files[][2] = {{"classes", CN_CLASSES_FILE}, {"tokens", TOKENS_FILE}};
    const struct cn_json *list = cn_json_find(run->state, "documents");
    int rc = 0;
    for (const struct cn_json *one = list ? list->first : NULL; one && rc == 0; one = one->next) {
        const struct cn_json *name = one->first, *version = name ? name->next : NULL;
        const struct cn_json *body = version ? version->next : NULL;
        if (!body || name->kind != CN_JSON_STRING || body->kind != CN_JSON_STRING)
            return cn_err_set(run->err, CN_EINVALID,
                              CN_MANIFEST_CLUSTER ": the list of documents is none");
        for (size_t i = 0; i < CN_ARRAY_COUNT(files) && rc == 0; i++)
            if (strcmp(name->text, files[i][0]) == 0) {
                rc = cn_disk_replace(run->to, files[i][1], body->text, body->size);
                if (rc < 0)
                    cn_err_errno(run->err, -rc, "cannot write %s", files[i][1]);
            }
    }
    return rc;
}

static const char *deployed_text(const struct restoring *run)
{
    return cn_json_text(cn_json_find(run->state, "depot"), "state");
}

/* NULL with an error; or without: nothing was ever deployed. */
static struct cn_depot_state *deployed_state(struct restoring *run)
{
    const char *text = deployed_text(run);
    return text ? cn_depot_state_read(text, strlen(text), run->err) : NULL;
}

static int restore_deployed(struct restoring *run)
{
    uint8_t key[CN_DEPOT_KEY_SIZE];
    if (!deployed_text(run))
        return 0;
    struct cn_depot_state *state = deployed_state(run);
    if (!state)
        return cn_err_context(run->err, CN_MANIFEST_CLUSTER);
    cn_fleet_key(run->secret, key);
    int rc = cn_depot_restore(run->to, state, key, run->err);
    OPENSSL_cleanse(key, sizeof(key));
    cn_depot_state_unref(state);
    return rc;
}

static int restore_server(struct restoring *run)
{
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    cn_cluster_secret_of(run->secret, secret);
    int rc = cn_secret_keep(run->to, secret, run->err);
    if (rc == 0)
        rc = restore_documents(run);
    if (rc == 0)
        rc = restore_deployed(run);
    return rc < 0 ? rc : restore_objects(run);
}

/* --- to a cluster ----------------------------------------------------------------------------- */

static struct cn_registry registry_of(const struct restoring *run)
{
    const struct cn_restore *asked = run->asked;
    struct cn_cluster_options options = {.allow_async = asked->allow_async};
    return (struct cn_registry){.conninfo = asked->url,
                                .node = "restore",
                                .shard_count = run->manifest->shard_count,
                                .replicas =
                                    asked->replicas ? asked->replicas : run->manifest->replicas,
                                .timeout_ms = 60000,
                                .allow_flaws = cn_cluster_allowed(&options)};
}

/* V3, before anything is copied. The tables are made if they are not there. */
static int check_cluster(struct restoring *run, char id[CN_ENGINE_PG_ID_SIZE])
{
    struct cn_registry registry = registry_of(run);
    struct cn_buf text = {0};
    int rc =
        cn_registry_ask(&registry,
                        "SELECT concat_ws(' ', shards, cairn.used()::int, id) FROM cairn.cluster, "
                        "LATERAL (SELECT cairn.recall('classes')) waited",
                        NULL, 0, &text, run->err);
    if (rc == CN_EDENIED)
        cn_err_context(run->err, "no cluster is restored on it (--allow-async does)");
    if (rc >= 0) {
        char *end;
        unsigned long shards = strtoul(cn_buf_text(&text), &end, 10), used = strtoul(end, &end, 10);
        rc = 0;
        snprintf(id, CN_ENGINE_PG_ID_SIZE, "%s", *end == ' ' ? end + 1 : "");
        if (strlen(id) != CN_ENGINE_PG_ID_SIZE - 1)
            rc = cn_err_set(run->err, CN_EPROTOCOL, "the engine does not know its cluster");
        else if (used)
            rc = cn_err_set(run->err, CN_EEXISTS, USED);
        else if (shards != run->manifest->shard_count)
            rc = cn_err_set(run->err, CN_EEXISTS,
                            "the cluster was made with %lu shards, and the backup has %u: that "
                            "cannot be changed; make it with --shards %u",
                            shards, run->manifest->shard_count, run->manifest->shard_count);
    }
    cn_buf_fini(&text);
    return rc;
}

/* The stores are replicas of this disk, and have what the manifest says. */
static int check_replicas(struct restoring *run, uint64_t *disk)
{
    struct cn_replicas_config config = {
        .disk = run->to, .manual = true, .retention_ms = INT64_MAX / 2};
    struct cn_replicas *replicas;
    int rc = cn_replicas_open(&config, &replicas, run->err);
    if (rc < 0)
        return rc;
    *disk = cn_replicas_disk(replicas);
    for (uint32_t i = 0; rc == 0 && i < run->manifest->shard_count; i++) {
        struct cn_replica *replica = cn_replicas_find(replicas, i);
        struct cn_replica_state state = {0};
        if (replica)
            cn_replica_state(replica, &state);
        if (!replica || state.have != run->manifest->shards[i].lsn)
            rc = cn_err_set(run->err, CN_ECORRUPT,
                            "shard %" PRIu32 " has commits up to %" PRIu64 ", not %" PRIu64, i,
                            state.have, run->manifest->shards[i].lsn);
    }
    cn_replicas_close(replicas);
    return rc;
}

static int put_versions(struct restoring *run, const struct cn_registry *registry)
{
    struct cn_version_files version_files = {registry, run->to};
    if (!deployed_text(run))
        return 0;
    struct cn_depot_state *state = deployed_state(run);
    int rc = state ? 0 : cn_err_context(run->err, CN_MANIFEST_CLUSTER);
    for (size_t i = 0; rc == 0 && i < state->script_count; i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; rc == 0 && k < script->version_count; k++) {
            const struct cn_depot_version *version = &script->versions[k];
            rc = cn_version_files_put(&version_files, "restore", version->id, run->err);
            if (rc == 0 && *version->code && strcmp(version->code, version->id) != 0)
                rc = cn_version_files_put(&version_files, "restore", version->code, run->err);
        }
    }
    cn_depot_state_unref(state);
    return rc;
}

/* V3: the moment at which the backup is the cluster's. */
static int commit_cluster(struct restoring *run, const struct cn_registry *registry, uint64_t disk)
{
    struct cn_buf lsns = {0}, epochs = {0}, told = {0};
    char id[24];
    for (unsigned i = 0; i < run->manifest->shard_count; i++) {
        cn_buf_printf(&lsns, "%c%" PRIu64, i ? ',' : '{', run->manifest->shards[i].lsn);
        cn_buf_printf(&epochs, "%c%" PRIu64, i ? ',' : '{', run->manifest->shards[i].epoch);
    }
    cn_buf_append_byte(&lsns, '}');
    cn_buf_append_byte(&epochs, '}');
    snprintf(id, sizeof(id), "%" PRId64, (int64_t)disk);
    const char *values[] = {cn_buf_text(&run->text), id, cn_buf_text(&lsns), cn_buf_text(&epochs)};
    int rc =
        cn_registry_ask(registry, "cairn.restore($1::json, $2::bigint, $3::bigint[], $4::bigint[])",
                        values, 4, &told, run->err);
    if (rc == CN_ETIMEOUT)
        cn_err_context(run->err, "it is not known whether the cluster has the backup");
    if (rc >= 0)
        rc = strcmp(cn_buf_text(&told), "done") == 0 ? 0 : cn_err_set(run->err, CN_EEXISTS, USED);
    cn_buf_fini(&lsns);
    cn_buf_fini(&epochs);
    cn_buf_fini(&told);
    return rc;
}

static int restore_cluster(struct restoring *run, const char id[CN_ENGINE_PG_ID_SIZE])
{
    struct cn_registry registry = registry_of(run);
    char line[CN_ENGINE_PG_ID_SIZE + 1];
    uint64_t disk = 0;
    int rc = sync_target(run);
    if (rc == 0)
        rc = check_replicas(run, &disk);
    if (rc < 0)
        return rc;
    snprintf(line, sizeof(line), "%s\n", id);
    rc = cn_disk_replace(run->to, "shards/CLUSTER", line, strlen(line));
    if (rc < 0)
        return cn_err_errno(run->err, -rc, "cannot write shards/CLUSTER");
    rc = sync_target(run);
    if (rc == 0)
        rc = put_versions(run, &registry);
    return rc < 0 ? rc : commit_cluster(run, &registry, disk);
}

/* ---------------------------------------------------------------------------------------------- */

static int run_restore(struct restoring *run)
{
    char id[CN_ENGINE_PG_ID_SIZE];
    int rc = cn_manifest_read(run->from, run->manifest, run->err);
    if (rc == CN_ENOTFOUND && cn_disk_has(run->from, "FORMAT"))
        return cn_err_set(run->err, rc,
                          "%s is a data directory, or the backup of a single server, which is one: "
                          "serve it, or copy it to where it is served",
                          run->asked->from);
    if (rc < 0)
        return cn_err_context(run->err, "%s", run->asked->from);
    run->asked->shard_count = run->manifest->shard_count;
    if (run->asked->url)
        rc = check_cluster(run, id);
    if (rc == 0)
        rc = open_target(run);
    if (rc == 0)
        rc = take_files(run);
    if (rc == 0)
        rc = read_state(run);
    if (rc == 0)
        rc = run->asked->url ? restore_cluster(run, id) : restore_server(run);
    return rc < 0 ? rc : finish_target(run);
}

int cn_restore(struct cn_restore *restore, struct cn_err *err)
{
    struct restoring run = {.asked = restore, .manifest = CN_NEW(struct cn_manifest), .err = err};
    cn_map_init(&run.listed);
    run.from = cn_disk_system_new(restore->from);
    int rc =
        run.from ? run_restore(&run) : cn_err_errno(err, errno, "cannot open %s", restore->from);
    OPENSSL_cleanse(run.secret, sizeof(run.secret));
    cn_map_fini(&run.listed);
    cn_json_free(run.state);
    cn_buf_fini(&run.text);
    cn_disk_system_free(run.to);
    cn_disk_system_free(run.from);
    cn_free(run.manifest);
    return rc;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct checking {
    struct cn_disk *disk;
    struct cn_check_report *report;
    struct cn_map listed; /* of paths */
    struct cn_blobs *blobs;
    char prefix[32];
};

static int check_file(void *data, const struct cn_manifest_entry *entry)
{
    struct checking *check = data;
    struct cn_err err = {0};
    (void)cn_map_set(&check->listed, entry->path, strlen(entry->path), check);
    if (cn_manifest_take(check->disk, entry, NULL, NULL, &err) < 0)
        cn_check_problem(check->report, "%s", err.text);
    return 0;
}

static int check_listed(void *data, const char *path)
{
    struct checking *check = data;
    if (strcmp(path, CN_MANIFEST_FILE) != 0 && strcmp(path, CN_MANIFEST_FILES) != 0 &&
        !cn_map_find(&check->listed, path, strlen(path)))
        cn_check_problem(check->report, "%s is not in the list of files", path);
    return 0;
}

static void pass_on(void *data, const char *text)
{
    struct checking *check = data;
    check->report->problem_count--; /* it is counted where it was found */
    cn_check_problem(check->report, "%s: %s", check->prefix, text);
}

static int check_body(void *data, const struct cn_blob_id *id)
{
    struct checking *check = data;
    char text[2 * CN_BLOB_ID_SIZE + 1];
    cn_hex_encode(id->bytes, CN_BLOB_ID_SIZE, text);
    if (!cn_blob_is_here(check->blobs, id))
        cn_check_problem(check->report, "%s refers to the body %s, which is missing", check->prefix,
                         text);
    return 0;
}

static void check_shard(struct checking *check, uint32_t shard, uint64_t lsn)
{
    char path[CN_BACKUP_SHARD_PATH_SIZE];
    struct cn_check_report part = {.problem = pass_on, .data = check};
    struct cn_backup_shard view;
    struct cn_err err = {0};
    cn_backup_shard_path(shard, path);
    snprintf(check->prefix, sizeof(check->prefix), "%s", path);
    struct cn_disk *folder = cn_disk_sub_new(check->disk, path);
    struct cn_disk *overlay = cn_disk_overlay_new(folder);
    struct cn_check_report *report = check->report;
    uint64_t before = report->problem_count;
    if (cn_check(overlay, &part, &err) < 0)
        cn_check_problem(check->report, "%s: %s", path, err.text);
    cn_disk_overlay_free(overlay);
    cn_disk_sub_free(folder);
    report->problem_count = before + part.problem_count + (err.code != 0);
    report->record_count += part.record_count;
    report->object_count += part.object_count;
    report->object_bytes += part.object_bytes;
    report->archive_count += part.archive_count;
    if (cn_backup_shard_open(&view, check->disk, shard, lsn, &err) < 0) {
        cn_check_problem(check->report, "%s", err.text);
        return;
    }
    if (cn_backup_shard_bodies(&view, check_body, check, &err) < 0)
        cn_check_problem(check->report, "%s: %s", path, err.text);
    cn_backup_shard_close(&view);
}

static int check_blob(void *data, const struct cn_blob_id *id)
{
    struct checking *check = data;
    struct cn_blob_reader *reader;
    struct cn_err err = {0};
    check->report->blob_count++;
    int rc = cn_blob_open(check->blobs, id, &reader, &err);
    if (rc == 0) {
        rc = cn_blob_verify(reader, &err);
        cn_blob_close(reader);
    }
    if (rc < 0)
        cn_check_problem(check->report, "%s", err.text);
    return 0;
}

int cn_restore_check(struct cn_disk *disk, struct cn_check_report *report, struct cn_err *err)
{
    struct cn_manifest *manifest = CN_NEW(struct cn_manifest);
    struct checking check = {.disk = disk, .report = report};
    struct cn_disk *overlay = cn_disk_overlay_new(disk); /* opening blobs makes folders */
    struct cn_err own = {0};
    cn_map_init(&check.listed);
    int rc = cn_manifest_read(disk, manifest, err);
    if (rc == 0) {
        if (cn_manifest_each(disk, manifest, check_file, &check, &own) < 0)
            cn_check_problem(check.report, "%s", own.text);
        else
            rc = cn_disk_walk(disk, "", check_listed, &check);
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot list the backup");
    }
    if (rc == 0)
        rc = cn_blobs_open_by_shard(overlay, "blobs", &check.blobs, err);
    if (rc == 0) {
        for (uint32_t i = 0; i < manifest->shard_count; i++)
            check_shard(&check, i, manifest->shards[i].lsn);
        if (cn_blobs_walk(check.blobs, check_blob, &check, &own) < 0)
            cn_check_problem(check.report, "%s", own.text);
        cn_blobs_close(check.blobs);
    }
    cn_map_fini(&check.listed);
    cn_disk_overlay_free(overlay);
    cn_free(manifest);
    return rc;
}
