/* SPDX-License-Identifier: Apache-2.0 */
/* Enters many objects into the catalog of a data directory that no server uses, without databases
 * of their own, so that lists are as long as those of a large installation:
 *
 *     build/large/fill_catalog DATA NAMESPACE COUNT
 *
 * They are written into the catalog's file in order and indexed afterwards, which takes seconds
 * where a million separate commits would take many minutes. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/disk.h"
#include "base/mem.h"
#include "object/id.h"
#include "object/secret.h"
#include "server/offline.h"
#include "store/sqlite.h"
#include "store/store.h"

#define DAY_MS (86400 * INT64_C(1000))

struct entry {
    uint8_t id[CN_OBJECT_ID_SIZE];
    unsigned number;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "fill_catalog: %s: %s\n", what, why);
    exit(1);
}

/* Evenly spread, and the same in every run. */
static uint64_t spread(uint64_t i)
{
    i = (i ^ (i >> 31)) * 0x9e3779b97f4a7c15u;
    i = (i ^ (i >> 29)) * 0xbf58476d1ce4e5b9u;
    return i ^ (i >> 32);
}

static int name_of(unsigned i, char name[64])
{
    static const char *const kinds[] = {"customer", "order", "session", "device", "visitor"};
    return snprintf(name, 64, "%s-%07u", kinds[i % 5], i);
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, CN_OBJECT_ID_SIZE);
}

/* The namespace, and ids as a server would make them. */
static struct entry *make_entries(const char *data, const char *namespace_name, unsigned count,
                                  uint32_t *namespace_id)
{
    struct cn_err err = {0};
    struct cn_offline dir = {0};
    struct cn_id_keys keys;
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    char name[64];
    if (cn_offline_open(&dir, data, false, &err) < 0 ||
        cn_store_namespace(dir.store, namespace_name, namespace_id, &err) < 0 ||
        cn_secret_load(cn_offline_disk(&dir), secret, &err) < 0)
        die(data, err.text);
    cn_offline_close(&dir);
    cn_id_keys_init(&keys, secret, *namespace_id);
    struct entry *entries = cn_alloc(count * sizeof(*entries));
    for (unsigned i = 0; i < count; i++) {
        entries[i].number = i;
        cn_id_from_name(&keys, CN_JURISDICTION_NONE, name, (size_t)name_of(i, name), entries[i].id);
    }
    qsort(entries, count, sizeof(*entries), compare);
    return entries;
}

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
}

static void insert(sqlite3 *db, sqlite3_stmt *statement, const struct entry *entry, int64_t now_ms)
{
    char name[64];
    uint64_t chance = spread(entry->number);
    int64_t changed_ms = now_ms - (int64_t)(chance % (uint64_t)(90 * DAY_MS));
    sqlite3_bind_blob(statement, 1, entry->id, CN_OBJECT_ID_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, name, name_of(entry->number, name), SQLITE_STATIC);
    if (entry->number % 10 == 0)
        sqlite3_bind_int64(statement, 3,
                           now_ms + DAY_MS + (int64_t)(chance % (uint64_t)(300 * DAY_MS)));
    else
        sqlite3_bind_null(statement, 3);
    sqlite3_bind_int64(statement, 4, changed_ms - DAY_MS);
    sqlite3_bind_int64(statement, 5, changed_ms);
    sqlite3_bind_int64(statement, 6, 2 + (int64_t)((chance >> 20) % (chance % 97 ? 12 : 5000)));
    if (sqlite3_step(statement) != SQLITE_DONE)
        die("insert", sqlite3_errmsg(db));
    sqlite3_reset(statement);
}

int main(int argc, char **argv)
{
    uint32_t namespace_id;
    if (argc != 4) {
        fprintf(stderr, "usage: fill_catalog DATA NAMESPACE COUNT\n");
        return 2;
    }
    unsigned count = (unsigned)strtoul(argv[3], NULL, 10);
    struct entry *entries = make_entries(argv[1], argv[2], count, &namespace_id);
    const char *path =
        "catalog/catalog.db"; /* through the VFS that seals its pages (catalog.c C5) */
    struct cn_disk *disk = cn_disk_system_new(argv[1]);
    struct cn_diskvfs *vfs = disk ? cn_diskvfs_new(disk, "fill") : NULL;
    char *sql =
        cn_sprintf("INSERT INTO objects(namespace, id, name, alarm, created, changed, pages,"
                   " lsn) VALUES(%u, ?1, ?2, ?3, ?4, ?5, ?6, 1) ON CONFLICT DO NOTHING",
                   namespace_id);
    sqlite3 *db;
    sqlite3_stmt *statement;
    if (sqlite3_initialize() != SQLITE_OK || !vfs ||
        sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "fill") != SQLITE_OK)
        die(path, "cannot be opened");
    run(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000;"
            "BEGIN; DROP INDEX objects_size; DROP INDEX objects_changed;"
            "DROP INDEX objects_name; DROP INDEX objects_alarm");
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
    int64_t now_ms = cn_clock_wall_ms(cn_clock_system());
    for (unsigned i = 0; i < count; i++)
        insert(db, statement, &entries[i], now_ms);
    sqlite3_finalize(statement);
    /* As store/catalog.c has them; the other two it makes itself when it finds none. */
    run(db, "CREATE INDEX objects_name ON objects(namespace, name) WHERE name IS NOT NULL;"
            "CREATE INDEX objects_alarm ON objects(alarm, namespace, id) WHERE alarm IS NOT NULL;"
            "CREATE INDEX objects_size ON objects(namespace, pages, id);"
            "CREATE INDEX objects_changed ON objects(namespace, changed, id); COMMIT");
    if (sqlite3_close(db) != SQLITE_OK)
        die(path, "cannot be closed");
    printf("%u objects of %s\n", count, argv[2]);
    cn_diskvfs_free(vfs);
    cn_disk_system_free(disk);
    cn_free(entries);
    cn_free(sql);
    return 0;
}
