/* SPDX-License-Identifier: Apache-2.0 */
/* store/catalog.c - which objects exist, in an SQLite file of its own.
 *
 * Changes arrive from images (cn_images_drain) whenever somebody asks and at
 * every checkpoint. They are entered into a transaction that stays open and is
 * committed by cn_catalog_flush(): readers on the same connection see them at once.
 *
 * C1  The file on disk never holds a change that is not durable in the log: flush
 *     waits for the log before it commits.
 * C2  A checkpoint flushes before it moves the point from which recovery starts, so
 *     whatever the file lacks is found in the log and entered again.
 * C3  An entry knows the LSN of its last change, and older changes do not touch
 *     it; so entering a change twice, or out of date, does no harm.
 * C4  After a failure other than a full disk nothing is flushed until restart: a
 *     checkpoint would let the log forget what the catalog may have lost. After a full
 *     disk the transaction is rolled back and all its changes come again.
 * C5  Every page of the file carries its own checksum (diskvfs.c), and rows of `sums` those of the
 *     pages of databases (sums.h). They say what the files hold, not which commit an entry is of:
 *     they are entered whatever the LSN (image.c, I7, says why that is right).
 * C6  The file changes by a flush and by nothing else: whoever copies it holds those back. */
#include "store/catalog.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/disk.h"
#include "base/mem.h"
#include "store/image.h"
#include "store/log.h"
#include "store/sqlite.h"
#include "store/sums.h"

enum {
    CATALOG_VERSION = 2, /* 1 had no checksums */
    FLUSH_SLICE = 512,   /* changes made durable at a time */
};

static const char schema[] =
    "CREATE TABLE objects(namespace INTEGER NOT NULL, id BLOB NOT NULL, name BLOB, alarm INTEGER,"
    " created INTEGER NOT NULL, changed INTEGER NOT NULL, pages INTEGER NOT NULL,"
    " lsn INTEGER NOT NULL, PRIMARY KEY(namespace, id)) WITHOUT ROWID;"
    "CREATE INDEX objects_name ON objects(namespace, name) WHERE name IS NOT NULL;"
    "CREATE INDEX objects_alarm ON objects(alarm, namespace, id) WHERE alarm IS NOT NULL;"
    "CREATE TABLE namespaces(id INTEGER PRIMARY KEY, name BLOB NOT NULL,"
    " lsn INTEGER NOT NULL);"
    "CREATE INDEX namespaces_name ON namespaces(name);"
    "CREATE TABLE sums(namespace INTEGER NOT NULL, id BLOB NOT NULL, part INTEGER NOT NULL,"
    " list BLOB NOT NULL, PRIMARY KEY(namespace, id, part)) WITHOUT ROWID;"
    "PRAGMA user_version = 2;";

/* Made at every opening if they are not there: a directory of an older version has none. */
static const char orders[] =
    "CREATE INDEX IF NOT EXISTS objects_size ON objects(namespace, pages, id);"
    "CREATE INDEX IF NOT EXISTS objects_changed ON objects(namespace, changed, id);";

#define COLUMNS "namespace, id, name, alarm, created, changed, pages, lsn"

enum query {
    BEGIN,
    COMMIT,
    ROLLBACK,
    UPSERT,
    REMOVE,
    FIND,
    LIST,
    LIST_NAMES,
    LIST_ALARMS,
    LIST_SMALLEST, /* in the order of enum cn_catalog_order */
    LIST_LARGEST,
    LIST_OLDEST,
    LIST_LATEST,
    LIST_NEXT_ALARM,
    COUNT,
    COUNT_ALL,
    NAMESPACE_FIND,
    NAMESPACE_NAME,
    NAMESPACE_LAST,
    NAMESPACE_SET,
    SUMS,
    SUMS_SET,
    SUMS_CUT,
    QUERY_COUNT
};

/* ?2 and ?3 are where the page before ended; for the first page they lie outside. */
#define SORTED(column, side, order)                                                   \
    "SELECT " COLUMNS " FROM objects WHERE namespace = ?1 AND (" column ", id) " side \
    " (?2, ?3) ORDER BY " column " " order ", id " order " LIMIT ?4"

static const char *const queries[QUERY_COUNT] = {
    [BEGIN] = "BEGIN",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [UPSERT] = "INSERT INTO objects(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)"
               " ON CONFLICT DO UPDATE SET name = coalesce(excluded.name, name),"
               " alarm = iif(?8, excluded.alarm, alarm), changed = excluded.changed,"
               " pages = excluded.pages, lsn = excluded.lsn WHERE excluded.lsn >= lsn",
    [REMOVE] = "DELETE FROM objects WHERE namespace = ?1 AND id = ?2 AND lsn <= ?3",
    [FIND] = "SELECT " COLUMNS " FROM objects WHERE namespace = ?1 AND id = ?2",
    [LIST] = "SELECT " COLUMNS " FROM objects WHERE namespace = ?1 AND id > ?2"
             " ORDER BY id LIMIT ?3",
    [LIST_NAMES] = "SELECT " COLUMNS " FROM objects WHERE namespace = ?1 AND name IS NOT NULL"
                   " AND name >= ?2 AND name < ?3 ORDER BY name LIMIT ?4",
    [LIST_ALARMS] = "SELECT " COLUMNS " FROM objects WHERE alarm IS NOT NULL AND alarm <= ?1"
                    " AND (alarm, namespace, id) > (?2, ?3, ?4)"
                    " ORDER BY alarm, namespace, id LIMIT ?5",
    [LIST_SMALLEST] = SORTED("pages", ">", ""),
    [LIST_LARGEST] = SORTED("pages", "<", "DESC"),
    [LIST_OLDEST] = SORTED("changed", ">", ""),
    [LIST_LATEST] = SORTED("changed", "<", "DESC"),
    /* Alarms of other namespaces are passed over in the index, without a look at their entries. */
    [LIST_NEXT_ALARM] = "SELECT " COLUMNS " FROM (SELECT alarm AS due, id AS found FROM objects"
                        " INDEXED BY objects_alarm WHERE alarm IS NOT NULL AND namespace = ?1"
                        " AND (alarm, id) > (?2, ?3) ORDER BY alarm, id LIMIT ?4)"
                        " JOIN objects ON namespace = ?1 AND id = found ORDER BY due, found",
    /* From the smallest index that has both. */
    [COUNT] = "SELECT count(*), coalesce(sum(pages), 0) FROM objects INDEXED BY objects_size"
              " WHERE namespace = ?1",
    [COUNT_ALL] = "SELECT count(*), coalesce(sum(pages), 0) FROM objects",
    [NAMESPACE_FIND] = "SELECT id FROM namespaces WHERE name = ?1",
    [NAMESPACE_NAME] = "SELECT name FROM namespaces WHERE id = ?1",
    [NAMESPACE_LAST] = "SELECT coalesce(max(id), 0) FROM namespaces",
    [NAMESPACE_SET] = "INSERT INTO namespaces(id, name, lsn) VALUES(?1, ?2, ?3)"
                      " ON CONFLICT(id) DO UPDATE SET name = excluded.name, lsn = excluded.lsn"
                      " WHERE excluded.lsn >= lsn",
    [SUMS] = "SELECT part, list FROM sums WHERE namespace = ?1 AND id = ?2 ORDER BY part",
    [SUMS_SET] = "INSERT OR REPLACE INTO sums(namespace, id, part, list) VALUES(?1, ?2, ?3, ?4)",
    [SUMS_CUT] = "DELETE FROM sums WHERE namespace = ?1 AND id = ?2 AND part >= ?3",
};

struct cn_catalog {
    pthread_mutex_t lock;   /* guards everything; taken before an image's lock */
    struct cn_diskvfs *vfs; /* owned */
    char vfs_name[40];
    sqlite3 *connection;                   /* owned */
    sqlite3_stmt *statements[QUERY_COUNT]; /* owned; NULL until first used */
    struct cn_images *images;              /* borrowed; NULL during recovery */
    uint64_t lsn_max;                      /* of the changes entered */
    bool in_transaction;
    bool failed;         /* C4 */
    atomic_uint changes; /* of the file; odd while one is under way */
};

/* ---- Statements ---- */

static int statement_get(struct cn_catalog *catalog, enum query query, sqlite3_stmt **statement,
                         struct cn_err *err)
{
    if (!catalog->statements[query]) {
        int rc = cn_sqlite_prepare(catalog->connection, queries[query], &catalog->statements[query],
                                   err);
        if (rc < 0)
            return rc;
    }
    *statement = catalog->statements[query];
    return 0;
}

/* Steps a statement that returns no row, and resets it. -ENOSPC if the disk is full. */
static int statement_run(struct cn_catalog *catalog, sqlite3_stmt *statement, struct cn_err *err)
{
    int rc = sqlite3_step(statement);
    int result = rc == SQLITE_DONE ? 0 : cn_sqlite_error(catalog->connection, rc, err);
    if ((rc & 0xff) == SQLITE_FULL)
        result = -ENOSPC;
    (void)sqlite3_reset(statement); /* repeats the error of the step */
    (void)sqlite3_clear_bindings(statement);
    if (result < 0 && err)
        cn_err_context(err, "catalog");
    return result;
}

static int query_run(struct cn_catalog *catalog, enum query query, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = statement_get(catalog, query, &statement, err);
    return rc < 0 ? rc : statement_run(catalog, statement, err);
}

static int transaction_begin(struct cn_catalog *catalog, struct cn_err *err)
{
    if (catalog->in_transaction)
        return 0;
    int rc = query_run(catalog, BEGIN, err);
    catalog->in_transaction = rc == 0;
    return rc;
}

static void bind_key(sqlite3_stmt *statement, const struct cn_object_key *key)
{
    sqlite3_bind_int64(statement, 1, key->namespace_id);
    sqlite3_bind_blob(statement, 2, key->id, sizeof(key->id), SQLITE_STATIC);
}

/* ---- Changes ---- */

/* C5 */
static int apply_sums(struct cn_catalog *catalog, const struct cn_catalog_change *change,
                      struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = 0;
    if (change->sums_cut) {
        rc = statement_get(catalog, SUMS_CUT, &statement, err);
        if (rc < 0)
            return rc;
        bind_key(statement, &change->key);
        sqlite3_bind_int64(statement, 3, cn_sums_part_count(change->sums_pages));
        rc = statement_run(catalog, statement, err);
    }
    for (size_t i = 0; i < change->part_count && rc == 0; i++) {
        const struct cn_sums_part *part = &change->parts[i];
        rc = statement_get(catalog, SUMS_SET, &statement, err);
        if (rc < 0)
            return rc;
        bind_key(statement, &change->key);
        sqlite3_bind_int64(statement, 3, part->number);
        sqlite3_bind_blob(statement, 4, part->list, (int)(part->count * sizeof(uint32_t)),
                          SQLITE_STATIC);
        rc = statement_run(catalog, statement, err);
    }
    return rc;
}

static int apply_locked(void *data, const struct cn_catalog_change *change, struct cn_err *err)
{
    struct cn_catalog *catalog = data;
    sqlite3_stmt *statement;
    int rc = transaction_begin(catalog, err);
    if (rc == 0)
        rc = apply_sums(catalog, change, err);
    if (rc < 0)
        return rc;
    if (change->lsn > catalog->lsn_max)
        catalog->lsn_max = change->lsn;
    if (change->deleted || change->reborn_lsn) {
        rc = statement_get(catalog, REMOVE, &statement, err);
        if (rc < 0)
            return rc;
        bind_key(statement, &change->key);
        sqlite3_bind_int64(statement, 3,
                           (sqlite3_int64)(change->deleted ? change->lsn : change->reborn_lsn));
        rc = statement_run(catalog, statement, err);
        if (rc < 0 || change->deleted)
            return rc;
    }
    rc = statement_get(catalog, UPSERT, &statement, err);
    if (rc < 0)
        return rc;
    bind_key(statement, &change->key);
    if (change->name)
        sqlite3_bind_blob(statement, 3, change->name, change->name_size, SQLITE_STATIC);
    if (change->has_alarm && change->alarm_ms != CN_ALARM_NONE)
        sqlite3_bind_int64(statement, 4, change->alarm_ms);
    sqlite3_bind_int64(statement, 5, change->time_ms);
    sqlite3_bind_int64(statement, 6, change->page_count);
    sqlite3_bind_int64(statement, 7, (sqlite3_int64)change->lsn);
    sqlite3_bind_int(statement, 8, change->has_alarm);
    return statement_run(catalog, statement, err);
}

/* The transaction cannot go on: its changes must come again. */
static void transaction_lost(struct cn_catalog *catalog, int rc)
{
    if (!sqlite3_get_autocommit(catalog->connection))
        (void)query_run(catalog, ROLLBACK, NULL); /* if it fails too, so will the next BEGIN */
    catalog->in_transaction = false;
    catalog->failed |= rc != -ENOSPC;
    if (catalog->images)
        cn_images_entered(catalog->images, false);
}

/* Locks the catalog and takes over at most `max` changes (negative: all). Returns how many;
 * on failure it is not locked. */
static int catalog_enter_some(struct cn_catalog *catalog, int max, struct cn_err *err)
{
    pthread_mutex_lock(&catalog->lock);
    int rc =
        catalog->images ? cn_images_drain(catalog->images, max, apply_locked, catalog, err) : 0;
    if (rc < 0) {
        transaction_lost(catalog, rc);
        pthread_mutex_unlock(&catalog->lock);
    }
    return rc;
}

/* Locks the catalog and brings it up to date. On failure it is not locked. */
static int catalog_enter(struct cn_catalog *catalog, struct cn_err *err)
{
    int rc = catalog_enter_some(catalog, -1, err);
    return rc < 0 ? rc : 0;
}

static void catalog_leave(struct cn_catalog *catalog)
{
    pthread_mutex_unlock(&catalog->lock);
}

int cn_catalog_apply(struct cn_catalog *catalog, const struct cn_catalog_change *change,
                     struct cn_err *err)
{
    pthread_mutex_lock(&catalog->lock);
    int rc = apply_locked(catalog, change, err);
    pthread_mutex_unlock(&catalog->lock);
    return rc;
}

/* Makes the changes entered so far durable. */
static int commit_locked(struct cn_catalog *catalog, struct cn_log *log, struct cn_err *err)
{
    int rc = 0;
    if (catalog->failed) {
        rc = cn_err_set(err, CN_ESQL, "the catalog has failed before");
    } else if (catalog->in_transaction) {
        if (log)
            rc = cn_log_wait(log, catalog->lsn_max, err); /* C1 */
        atomic_fetch_add(&catalog->changes, 1);           /* C6 */
        if (rc == 0)
            rc = query_run(catalog, COMMIT, err);
        atomic_fetch_add(&catalog->changes, 1);
        if (rc < 0)
            transaction_lost(catalog, rc);
        else if (catalog->images)
            cn_images_entered(catalog->images, true);
        if (rc == 0)
            catalog->in_transaction = false;
    }
    return rc;
}

int cn_catalog_flush(struct cn_catalog *catalog, struct cn_log *log, struct cn_err *err)
{
    /* In slices, with a pause between: a lane that opens a database needs the lock, and
     * must not wait until a hundred thousand entries are on disk. What is changed
     * meanwhile comes behind what waits now, and is not this flush's. */
    const struct timespec pause = {.tv_nsec = 100000};
    uint64_t left = catalog->images ? cn_images_changed_count(catalog->images) : 0;
    for (;;) {
        /* Here, where nobody waits for the lock, and not in commit_locked(): what is appended now
         * may take long to be settled. */
        int rc = log ? cn_log_wait(log, cn_log_appended(log), err) : 0;
        if (rc < 0)
            return rc;
        int slice = left > FLUSH_SLICE ? FLUSH_SLICE : (int)left;
        int count = catalog_enter_some(catalog, slice, err);
        if (count < 0)
            return count;
        rc = commit_locked(catalog, log, err);
        catalog_leave(catalog);
        left -= (uint64_t)count;
        if (rc < 0 || left == 0 || count < slice)
            return rc;
        (void)nanosleep(&pause, NULL); /* a shorter one does no harm */
    }
}

unsigned cn_catalog_changes(const struct cn_catalog *catalog)
{
    return atomic_load(&catalog->changes);
}

void cn_catalog_keep_small(struct cn_catalog *catalog)
{
    (void)cn_sqlite_exec(catalog->connection, "PRAGMA cache_size = -512",
                         NULL); /* if it fails, it only takes more memory */
}

void cn_catalog_attach(struct cn_catalog *catalog, struct cn_images *images)
{
    pthread_mutex_lock(&catalog->lock);
    catalog->images = images;
    pthread_mutex_unlock(&catalog->lock);
}

/* ---- Reading ---- */

/* False if the row is not one that we wrote. */
static bool entry_read(sqlite3_stmt *row, struct cn_catalog_entry *entry)
{
    const void *id = sqlite3_column_blob(row, 1);
    if (!id || sqlite3_column_bytes(row, 1) != CN_OBJECT_ID_SIZE ||
        sqlite3_column_bytes(row, 2) > CN_OBJECT_NAME_MAX)
        return false;
    *entry = (struct cn_catalog_entry){
        .key.namespace_id = (uint32_t)sqlite3_column_int64(row, 0),
        .name = sqlite3_column_blob(row, 2),
        .name_size = (uint16_t)sqlite3_column_bytes(row, 2),
        .alarm_ms = sqlite3_column_type(row, 3) == SQLITE_NULL ? CN_ALARM_NONE
                                                               : sqlite3_column_int64(row, 3),
        .created_ms = sqlite3_column_int64(row, 4),
        .changed_ms = sqlite3_column_int64(row, 5),
        .size = (uint64_t)sqlite3_column_int64(row, 6) * CN_PAGE_SIZE,
        .lsn = (uint64_t)sqlite3_column_int64(row, 7),
    };
    memcpy(entry->key.id, sqlite3_column_blob(row, 1), CN_OBJECT_ID_SIZE);
    return true;
}

static int read_failed(struct cn_catalog *catalog, int code, struct cn_err *err)
{
    if ((code & 0xff) == SQLITE_CORRUPT)
        return cn_err_set(err, CN_ECORRUPT,
                          "the catalog is damaged: put the folder catalog back from a backup");
    return cn_sqlite_error(catalog->connection, code, err);
}

/* Calls back for each row of a bound statement; counts them. */
static int rows_walk(struct cn_catalog *catalog, sqlite3_stmt *statement, cn_catalog_each each,
                     void *data, struct cn_err *err)
{
    int count = 0, rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct cn_catalog_entry entry;
        if (!entry_read(statement, &entry)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        count++;
        if (each(data, &entry) != 0) {
            rc = SQLITE_DONE;
            break;
        }
    }
    int result = rc == SQLITE_DONE ? count : read_failed(catalog, rc, err);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

/* Enters the catalog with the statement of a query. */
static int query_enter(struct cn_catalog *catalog, enum query query, sqlite3_stmt **statement,
                       struct cn_err *err)
{
    int rc = catalog_enter(catalog, err);
    if (rc < 0)
        return rc;
    rc = statement_get(catalog, query, statement, err);
    if (rc < 0)
        catalog_leave(catalog);
    return rc;
}

struct found {
    struct cn_catalog_entry *entry;
    char *name;
};

static int on_found(void *data, const struct cn_catalog_entry *entry)
{
    struct found *found = data;
    *found->entry = *entry;
    if (entry->name) {
        memcpy(found->name, entry->name, entry->name_size);
        found->name[entry->name_size] = '\0';
        found->entry->name = found->name;
    }
    return 0;
}

static int find_locked(struct cn_catalog *catalog, const struct cn_object_key *key,
                       struct cn_catalog_entry *entry, char *name_buffer, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = statement_get(catalog, FIND, &statement, err);
    if (rc < 0)
        return rc;
    struct found found = {entry, name_buffer};
    bind_key(statement, key);
    return rows_walk(catalog, statement, on_found, &found, err);
}

int cn_catalog_find(struct cn_catalog *catalog, const struct cn_object_key *key,
                    struct cn_catalog_entry *entry, char name_buffer[CN_OBJECT_NAME_MAX + 1],
                    struct cn_err *err)
{
    int rc = catalog_enter(catalog, err);
    if (rc < 0)
        return rc;
    rc = find_locked(catalog, key, entry, name_buffer, err);
    catalog_leave(catalog);
    return rc;
}

static int sums_locked(struct cn_catalog *catalog, const struct cn_object_key *key,
                       struct cn_sums *sums, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = statement_get(catalog, SUMS, &statement, err);
    if (rc < 0)
        return rc;
    bind_key(statement, key);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        int64_t part = sqlite3_column_int64(statement, 0);
        if (part < 0 || part > UINT32_MAX ||
            !cn_sums_load(sums, (uint32_t)part, sqlite3_column_blob(statement, 1),
                          (size_t)sqlite3_column_bytes(statement, 1))) {
            rc = SQLITE_CORRUPT;
            break;
        }
    }
    int result = rc == SQLITE_DONE ? 0 : read_failed(catalog, rc, err);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return result;
}

int cn_catalog_sums(struct cn_catalog *catalog, const struct cn_object_key *key,
                    struct cn_sums *sums, struct cn_err *err)
{
    pthread_mutex_lock(&catalog->lock);
    int rc = sums_locked(catalog, key, sums, err);
    catalog_leave(catalog);
    return rc;
}

int cn_catalog_find_settled(struct cn_catalog *catalog, const struct cn_object_key *key,
                            struct cn_catalog_entry *entry,
                            char name_buffer[CN_OBJECT_NAME_MAX + 1], struct cn_sums *sums,
                            struct cn_err *err)
{
    pthread_mutex_lock(&catalog->lock);
    int found = find_locked(catalog, key, entry, name_buffer, err);
    int rc = found == 1 ? sums_locked(catalog, key, sums, err) : 0;
    catalog_leave(catalog);
    return rc < 0 ? rc : found;
}

int cn_catalog_list(struct cn_catalog *catalog, uint32_t namespace_id,
                    const uint8_t after[CN_OBJECT_ID_SIZE], int limit, cn_catalog_each each,
                    void *data, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, LIST, &statement, err);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(statement, 1, namespace_id);
    sqlite3_bind_blob(statement, 2, after ? (const void *)after : "", after ? CN_OBJECT_ID_SIZE : 0,
                      SQLITE_STATIC);
    sqlite3_bind_int(statement, 3, limit);
    rc = rows_walk(catalog, statement, each, data, err);
    catalog_leave(catalog);
    return rc;
}

/* The least string of bytes above all that begin with `prefix`; 0 if there is none. */
static size_t prefix_end(const char *prefix, size_t size, uint8_t *end)
{
    memcpy(end, prefix, size);
    while (size > 0 && end[size - 1] == 0xff)
        size--;
    if (size > 0)
        end[size - 1]++;
    return size;
}

/* Whether a name stands behind `other` in the list, or is the same. */
static bool is_above(const char *name, size_t size, const char *other, size_t other_size)
{
    size_t common = size < other_size ? size : other_size;
    int order = common ? memcmp(name, other, common) : 0;
    return order ? order > 0 : size >= other_size;
}

int cn_catalog_list_names(struct cn_catalog *catalog, const struct cn_catalog_listing *listing,
                          const char *prefix, size_t prefix_size, const char *after,
                          size_t after_size, struct cn_err *err)
{
    uint8_t start[CN_OBJECT_NAME_MAX + 1], end[CN_OBJECT_NAME_MAX + 1];
    if (prefix_size > CN_OBJECT_NAME_MAX || after_size > CN_OBJECT_NAME_MAX)
        return 0; /* no name is that long */
    /* Both ends are in the index, so that nothing is read that is not listed. */
    size_t start_size = prefix_size, end_size = prefix_end(prefix, prefix_size, end);
    if (prefix_size)
        memcpy(start, prefix, prefix_size);
    if (end_size == 0) {
        end_size = sizeof(end);
        memset(end, 0xff, end_size); /* is above every name */
    }
    if (after && is_above(after, after_size, prefix, prefix_size)) {
        if (after_size)
            memcpy(start, after, after_size);
        start[after_size] = 0; /* the least that is above it */
        start_size = after_size + 1;
    }
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, LIST_NAMES, &statement, err);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(statement, 1, listing->namespace_id);
    sqlite3_bind_blob(statement, 2, start, (int)start_size, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 3, end, (int)end_size, SQLITE_STATIC);
    sqlite3_bind_int(statement, 4, listing->limit);
    rc = rows_walk(catalog, statement, listing->each, listing->data, err);
    catalog_leave(catalog);
    return rc;
}

int cn_catalog_list_alarms(struct cn_catalog *catalog, int64_t until_ms,
                           const struct cn_alarm_cursor *after, int limit, cn_catalog_each each,
                           void *data, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, LIST_ALARMS, &statement, err);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(statement, 1, until_ms);
    sqlite3_bind_int64(statement, 2, after ? after->alarm_ms : INT64_MIN);
    sqlite3_bind_int64(statement, 3, after ? after->key.namespace_id : 0);
    sqlite3_bind_blob(statement, 4, after ? (const void *)after->key.id : "",
                      after ? CN_OBJECT_ID_SIZE : 0, SQLITE_STATIC);
    sqlite3_bind_int(statement, 5, limit);
    rc = rows_walk(catalog, statement, each, data, err);
    catalog_leave(catalog);
    return rc;
}

int cn_catalog_list_sorted(struct cn_catalog *catalog, const struct cn_catalog_listing *listing,
                           enum cn_catalog_order order, const struct cn_catalog_cursor *after,
                           struct cn_err *err)
{
    bool descending = order == CN_CATALOG_LARGEST || order == CN_CATALOG_LATEST;
    bool by_size = order == CN_CATALOG_SMALLEST || order == CN_CATALOG_LARGEST;
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, (enum query)(LIST_SMALLEST + order), &statement, err);
    if (rc < 0)
        return rc;
    int64_t value = after ? after->value : descending ? INT64_MAX : INT64_MIN; /* nobody's */
    if (after && by_size)
        value /= CN_PAGE_SIZE;
    sqlite3_bind_int64(statement, 1, listing->namespace_id);
    sqlite3_bind_int64(statement, 2, value);
    sqlite3_bind_blob(statement, 3, after ? (const void *)after->id : "",
                      after ? CN_OBJECT_ID_SIZE : 0, SQLITE_STATIC);
    sqlite3_bind_int(statement, 4, listing->limit);
    rc = rows_walk(catalog, statement, listing->each, listing->data, err);
    catalog_leave(catalog);
    return rc;
}

int cn_catalog_count(struct cn_catalog *catalog, uint32_t namespace_id, uint64_t *count,
                     uint64_t *size, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, namespace_id ? COUNT : COUNT_ALL, &statement, err);
    if (rc < 0)
        return rc;
    if (namespace_id)
        sqlite3_bind_int64(statement, 1, namespace_id);
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        *count = (uint64_t)sqlite3_column_int64(statement, 0);
        *size = (uint64_t)sqlite3_column_int64(statement, 1) * CN_PAGE_SIZE;
        rc = 0;
    } else {
        rc = cn_sqlite_error(catalog->connection, rc, err);
    }
    (void)sqlite3_reset(statement);
    catalog_leave(catalog);
    return rc;
}

/* ---- Namespaces ---- */

/* Steps to the one row of a bound statement: 1, 0 or an error; the caller resets it. */
static int one_row(struct cn_catalog *catalog, sqlite3_stmt *statement, struct cn_err *err)
{
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : read_failed(catalog, rc, err);
}

int cn_catalog_namespace_find(struct cn_catalog *catalog, const char *name, size_t name_size,
                              uint32_t *namespace_id, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, NAMESPACE_FIND, &statement, err);
    if (rc < 0)
        return rc;
    sqlite3_bind_blob(statement, 1, name, (int)name_size, SQLITE_STATIC);
    rc = one_row(catalog, statement, err);
    if (rc == 1)
        *namespace_id = (uint32_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    catalog_leave(catalog);
    return rc;
}

int cn_catalog_namespace_name(struct cn_catalog *catalog, uint32_t namespace_id,
                              char name[CN_OBJECT_NAME_MAX + 1], struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, NAMESPACE_NAME, &statement, err);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(statement, 1, namespace_id);
    rc = one_row(catalog, statement, err);
    if (rc == 1)
        snprintf(name, CN_OBJECT_NAME_MAX + 1, "%.*s", sqlite3_column_bytes(statement, 0),
                 (const char *)sqlite3_column_blob(statement, 0));
    (void)sqlite3_reset(statement);
    catalog_leave(catalog);
    return rc;
}

int cn_catalog_namespace_last(struct cn_catalog *catalog, uint32_t *namespace_id,
                              struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, NAMESPACE_LAST, &statement, err);
    if (rc < 0)
        return rc;
    rc = one_row(catalog, statement, err);
    if (rc == 1)
        *namespace_id = (uint32_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    catalog_leave(catalog);
    return rc < 0 ? rc : 0;
}

int cn_catalog_namespace_set(struct cn_catalog *catalog, uint32_t namespace_id, const char *name,
                             size_t name_size, uint64_t lsn, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = query_enter(catalog, NAMESPACE_SET, &statement, err);
    if (rc < 0)
        return rc;
    rc = transaction_begin(catalog, err);
    if (rc == 0) {
        if (lsn > catalog->lsn_max)
            catalog->lsn_max = lsn;
        sqlite3_bind_int64(statement, 1, namespace_id);
        sqlite3_bind_blob(statement, 2, name, (int)name_size, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 3, (sqlite3_int64)lsn);
        rc = statement_run(catalog, statement, err);
    }
    catalog->failed |= rc < 0;
    catalog_leave(catalog);
    return rc;
}

/* ---- Opening and closing ---- */

static const char path[] = "catalog/catalog.db";
static const char path_next[] = "catalog/catalog.db.tmp";
static const char path_journal[] = "catalog/catalog.db-journal";

static int version_of(struct cn_catalog *catalog, int *version, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int rc = cn_sqlite_prepare(catalog->connection, "PRAGMA user_version", &statement, err);
    if (rc < 0)
        return rc;
    rc = one_row(catalog, statement, err);
    *version = rc == 1 ? sqlite3_column_int(statement, 0) : 0;
    sqlite3_finalize(statement);
    return rc < 0 ? rc : 0;
}

/* Opens a file of the catalog; a new one gets room for checksums in its pages. */
static int connection_open(struct cn_catalog *catalog, const char *name, sqlite3 **connection,
                           struct cn_err *err)
{
    int room = CN_DISKVFS_SEAL;
    int rc = sqlite3_open_v2(name, connection,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             catalog->vfs_name);
    if (rc == SQLITE_OK) /* of no effect on a file that has pages */
        rc = sqlite3_file_control(*connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &room);
    return rc == SQLITE_OK ? 0 : cn_sqlite_error(*connection, rc, err);
}

static int schema_make(sqlite3 *connection, struct cn_err *err)
{
    int rc = cn_sqlite_exec(connection, "BEGIN", err);
    if (rc == 0)
        rc = cn_sqlite_exec(connection, schema, err);
    if (rc == 0)
        rc = cn_sqlite_exec(connection, "COMMIT", err);
    return rc;
}

/* Copies the rows of one table. */
static int table_copy(sqlite3 *from, sqlite3 *to, const char *select, const char *insert,
                      struct cn_err *err)
{
    sqlite3_stmt *in, *out = NULL;
    int rc = cn_sqlite_prepare(from, select, &in, err);
    if (rc < 0)
        return rc;
    rc = cn_sqlite_prepare(to, insert, &out, err);
    int code = SQLITE_DONE;
    while (rc == 0 && (code = sqlite3_step(in)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(in); i++)
            (void)sqlite3_bind_value(out, i + 1, sqlite3_column_value(in, i));
        if (sqlite3_step(out) != SQLITE_DONE)
            rc = cn_sqlite_error(to, sqlite3_errcode(to), err);
        (void)sqlite3_reset(out); /* repeats the error of the step */
    }
    if (rc == 0 && code != SQLITE_DONE)
        rc = cn_sqlite_error(from, code, err);
    (void)sqlite3_finalize(in);
    (void)sqlite3_finalize(out);
    return rc;
}

static int rows_copy(sqlite3 *from, sqlite3 *to, struct cn_err *err)
{
    int rc = cn_sqlite_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL", err);
    if (rc == 0)
        rc = schema_make(to, err);
    if (rc == 0)
        rc = cn_sqlite_exec(to, "BEGIN", err);
    if (rc == 0)
        rc = table_copy(from, to, "SELECT " COLUMNS " FROM objects",
                        "INSERT INTO objects(" COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                        err);
    if (rc == 0)
        rc = table_copy(from, to, "SELECT id, name, lsn FROM namespaces",
                        "INSERT INTO namespaces(id, name, lsn) VALUES(?1, ?2, ?3)", err);
    if (rc == 0)
        rc = cn_sqlite_exec(to, "COMMIT", err);
    return rc;
}

static int unlink_if_there(struct cn_disk *disk, const char *name)
{
    int rc = cn_disk_unlink(disk, name);
    return rc == -ENOENT ? 0 : rc;
}

/* A catalog of version 1 has no room for checksums: it is written anew beside itself and renamed. A
 * crash leaves the one or the other. */
static int catalog_upgrade(struct cn_catalog *catalog, struct cn_disk *disk, struct cn_err *err)
{
    sqlite3 *next = NULL;
    int rc = unlink_if_there(disk, path_next);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot remove %s", path_next);
    rc = connection_open(catalog, path_next, &next, err);
    if (rc == 0)
        rc = rows_copy(catalog->connection, next, err);
    (void)sqlite3_close(next);
    if (rc < 0)
        return rc;
    (void)sqlite3_close(catalog->connection);
    catalog->connection = NULL;
    rc = unlink_if_there(disk,
                         path_journal); /* the old file's; it is not hot, for we have it open */
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "catalog");
    if (rc == 0)
        rc = cn_disk_rename(disk, path_next, path);
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "catalog");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot replace %s", path);
    return connection_open(catalog, path, &catalog->connection, err);
}

static int pragmas_set(struct cn_catalog *catalog, struct cn_err *err)
{
    return cn_sqlite_exec(catalog->connection,
                          "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = PERSIST;"
                          "PRAGMA synchronous = FULL; PRAGMA cache_size = -8192;"
                          "PRAGMA cache_spill = OFF;" /* C6 */
                          "PRAGMA journal_size_limit = 1048576",
                          err);
}

/* Brings the file to the present version. */
static int version_settle(struct cn_catalog *catalog, struct cn_disk *disk, struct cn_err *err)
{
    int version = 0;
    int rc = version_of(catalog, &version, err);
    if (rc < 0)
        return rc;
    if (version > CATALOG_VERSION || version < 0)
        return cn_err_set(err, CN_EVERSION,
                          "catalog format %d is newer than the %d that this version reads", version,
                          CATALOG_VERSION);
    if (version == 0)
        return schema_make(catalog->connection, err);
    if (version == CATALOG_VERSION) /* C5: the byte that says so may be what is damaged */
        return cn_diskvfs_sealed(catalog->connection)
                   ? 0
                   : cn_err_set(err, CN_ECORRUPT, "its pages have no checksums");
    rc = catalog_upgrade(catalog, disk, err);
    return rc < 0 ? rc : pragmas_set(catalog, err);
}

int cn_catalog_open(struct cn_disk *disk, struct cn_catalog **result, struct cn_err *err)
{
    struct cn_catalog *catalog = CN_NEW(struct cn_catalog);
    pthread_mutex_init(&catalog->lock, NULL);
    snprintf(catalog->vfs_name, sizeof(catalog->vfs_name), "cairn-disk-%p", (void *)catalog);
    catalog->vfs = cn_diskvfs_new(disk, catalog->vfs_name);
    int rc = cn_disk_mkdirs(disk, "catalog");
    if (rc < 0) {
        rc = cn_err_errno(err, -rc, "cannot make the catalog folder");
        goto close_catalog;
    }
    rc = connection_open(catalog, path, &catalog->connection, err);
    if (rc == 0)
        rc = pragmas_set(catalog, err);
    if (rc == 0)
        rc = version_settle(catalog, disk, err);
    if (rc == 0)
        rc = cn_sqlite_exec(catalog->connection, orders, err);
    if (rc == 0) {
        *result = catalog;
        return 0;
    }
    if (err)
        cn_err_context(err, "cannot open the catalog");
close_catalog:
    cn_catalog_close(catalog);
    return rc;
}

void cn_catalog_close(struct cn_catalog *catalog)
{
    if (!catalog)
        return;
    for (int i = 0; i < QUERY_COUNT; i++)
        (void)sqlite3_finalize(catalog->statements[i]); /* repeats an error that was reported */
    (void)sqlite3_close(catalog->connection);           /* rolls back; nothing else is open */
    cn_diskvfs_free(catalog->vfs);
    pthread_mutex_destroy(&catalog->lock);
    cn_free(catalog);
}

/* ---- Checking ---- */

int cn_catalog_check(struct cn_disk *disk, void (*bad)(void *data, uint32_t page_no), void *data,
                     struct cn_err *err)
{
    struct cn_disk_file *file;
    uint8_t page[CN_PAGE_SIZE];
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot open %s", path);
    int64_t size = cn_disk_size(file), got = 0;
    for (uint32_t no = 1; (int64_t)no * CN_PAGE_SIZE <= size && got >= 0; no++) {
        got = cn_disk_read(file, page, CN_PAGE_SIZE, (uint64_t)(no - 1) * CN_PAGE_SIZE);
        if (got == CN_PAGE_SIZE && !cn_diskvfs_page_good(page, no))
            bad(data, no);
    }
    cn_disk_close(file);
    return got < 0 ? cn_err_errno(err, (int)-got, "cannot read %s", path) : 0;
}
