/* SPDX-License-Identifier: Apache-2.0 */
/* store/database.c - open, close, transactions and metadata of a database.
 *
 *                 first write            commit
 *      [clean] ------------------> [open] ------> log record, [clean]
 *         ^                          |
 *         +---- rollback ------------+--- SQLite rolls back by itself ---> [broken]
 *                                                  commit refuses, rollback cleans
 *
 * Metadata set in the turn waits in db->meta and goes into the same record as the
 * pages; a turn that changed metadata only writes a record without pages.
 *
 * delete_all outside savepoints opens the connection anew on an empty database
 * (CN_COMMIT_RESET at commit). A roll-back opens it anew on the old one. */
#include "store/database.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/database_private.h"
#include "store/sqlite/engine.h"
#include "store/store_private.h"
#include "store/template.h"
#include "store/vfs.h"

enum {
    CACHE_KIB = 256,       /* SQLite's page cache of one database, at most */
    PROGRESS_STEPS = 1000, /* virtual machine steps between two looks at the clock */
};

static const char *const own_sql[CN_OWN_COUNT] = {
    [CN_OWN_BEGIN] = "BEGIN",
    [CN_OWN_COMMIT] = "COMMIT",
    [CN_OWN_ROLLBACK] = "ROLLBACK",
    [CN_OWN_KV_GET] = "SELECT value FROM _cf_KV WHERE key = ?1",
    [CN_OWN_KV_PUT] = "INSERT INTO _cf_KV(key, value) VALUES(?1, ?2)"
                      " ON CONFLICT DO UPDATE SET value = excluded.value",
    [CN_OWN_KV_DELETE] = "DELETE FROM _cf_KV WHERE key = ?1",
    [CN_OWN_KV_LIST] = "SELECT key, value FROM _cf_KV WHERE key >= ?1 AND (?2 IS NULL OR key < ?2)"
                       " ORDER BY key LIMIT ?3",
    [CN_OWN_KV_LIST_REVERSE] = "SELECT key, value FROM _cf_KV WHERE key >= ?1"
                               " AND (?2 IS NULL OR key < ?2) ORDER BY key DESC LIMIT ?3",
};

/* ---- Errors ---- */

/* Says which page is damaged, and what can be done; once in the log, too. */
static bool damage_error(struct cn_database *db, struct cn_err *err)
{
    struct cn_err damage;
    if (!db->file || !cn_vfs_damage_take(db->file, &damage))
        return false;
    cn_warn("%s", damage.text);
    if (err)
        (void)cn_err_set(err, CN_ECORRUPT, "%s: SQLITE_CORRUPT", damage.text);
    return true;
}

/* One that scripts get as it is: the platform has the same. */
static bool is_sentence(const char *denial)
{
    return denial[strlen(denial) - 1] == '.';
}

int cn_database_error(struct cn_database *db, int code, struct cn_err *err)
{
    int primary = code & 0xff;
    int rc;
    if (primary == SQLITE_AUTH && db->denial)
        rc = cn_err_set(err, CN_ESQL,
                        is_sentence(db->denial) ? "%s" : "not authorized: SQLITE_AUTH (%s)",
                        db->denial);
    else if (primary == SQLITE_INTERRUPT && db->timed_out)
        rc = cn_err_set(err, CN_ETIMEOUT, "the statement ran too long: SQLITE_INTERRUPT");
    else if (primary == SQLITE_INTERRUPT)
        rc = cn_err_set(err, CN_EABORTED, "the statement was interrupted: SQLITE_INTERRUPT");
    else if (primary == SQLITE_CORRUPT && damage_error(db, err))
        rc = CN_ECORRUPT;
    else
        rc = cn_sqlite_error(db->connection, code, err);
    if (db->in_transaction && sqlite3_get_autocommit(db->connection)) {
        cn_template_drop(db);
        db->in_transaction = false;
        db->has_kv = false; /* its creation may have been undone */
        db->broken = true;
        cn_free(db->broken_reason);
        db->broken_reason = cn_strdup(sqlite3_errmsg(db->connection));
    }
    return rc;
}

int cn_database_own(struct cn_database *db, enum cn_own_sql which, sqlite3_stmt **stmt,
                    struct cn_err *err)
{
    bool of_transaction = which < CN_OWN_KV_GET; /* else T6 of template.h */
    int ready = of_transaction ? cn_database_connect(db, err) : cn_database_require(db, err);
    if (ready < 0)
        return ready;
    if (!db->own[which]) {
        bool guest = db->guest;
        db->guest = false;
        int rc = sqlite3_prepare_v3(db->connection, own_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                    &db->own[which], NULL);
        db->guest = guest;
        if (rc != SQLITE_OK)
            return cn_database_error(db, rc, err);
    }
    *stmt = db->own[which];
    return 0;
}

/* Runs one of the transaction statements. */
static int run_own(struct cn_database *db, enum cn_own_sql which, struct cn_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = cn_database_own(db, which, &stmt, err);
    if (rc < 0)
        return rc;
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_DONE) {
        (void)sqlite3_reset(stmt); /* a statement that is done has no error to repeat */
        return 0;
    }
    int result = cn_database_error(db, rc, err);
    (void)sqlite3_reset(stmt);
    return result;
}

/* ---- The connection ---- */

static int on_progress(void *data)
{
    struct cn_database *db = data;
    if (atomic_load_explicit(&db->interrupted, memory_order_relaxed))
        return 1;
    if (db->deadline_ns && cn_clock_mono_ns(cn_clock_system()) > db->deadline_ns) {
        db->timed_out = true;
        return 1;
    }
    return 0;
}

static void limits_apply(struct cn_database *db)
{
    const struct cn_database_limits *limits = &db->limits;
    const struct {
        int which, value;
    } list[] = {
        {SQLITE_LIMIT_LENGTH, limits->value_size ? limits->value_size : 4 << 20},
        {SQLITE_LIMIT_SQL_LENGTH, limits->sql_size ? limits->sql_size : 100000},
        {SQLITE_LIMIT_COLUMN, limits->column_count ? limits->column_count : 100},
        {SQLITE_LIMIT_VARIABLE_NUMBER, limits->parameter_count ? limits->parameter_count : 100},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits->pattern_size ? limits->pattern_size : 50},
        {SQLITE_LIMIT_COMPOUND_SELECT, limits->compound_count ? limits->compound_count : 5},
        {SQLITE_LIMIT_EXPR_DEPTH, 100},
        {SQLITE_LIMIT_VDBE_OP, 25000},
        {SQLITE_LIMIT_FUNCTION_ARG, 127},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 10},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(list); i++)
        (void)sqlite3_limit(db->connection, list[i].which, list[i].value);
}

int cn_connection_open(struct cn_database *db, bool reset, struct cn_err *err)
{
    int rc = cn_vfs_connect(db->image, reset, &db->connection, &db->file, err);
    if (rc < 0)
        return rc;
    cn_sqlite_configure(db->connection, CACHE_KIB,
                        (unsigned)(db->limits.database_size / CN_PAGE_SIZE));
    (void)sqlite3_db_config(db->connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    limits_apply(db);
    (void)sqlite3_set_authorizer(db->connection, cn_authorizer, db);
    sqlite3_progress_handler(db->connection, PROGRESS_STEPS, on_progress, db);
    cn_sqlite_fresh(db->connection, &db->fresh);
    return 0;
}

int cn_database_connect(struct cn_database *db, struct cn_err *err)
{
    if (!db->connection)
        return cn_pool_connect(db, db->reset, err);
    cn_pool_busy(db);
    return 0;
}

int cn_database_require(struct cn_database *db, struct cn_err *err)
{
    int rc = cn_template_end(db, err);
    return rc < 0 ? rc : cn_database_connect(db, err);
}

void cn_connection_close(struct cn_database *db)
{
    cn_template_drop(db);
    db->counts = cn_sqlite_counts_new;
    if (!db->connection)
        return;
    cn_statements_finalize(db);
    for (int i = 0; i < CN_OWN_COUNT; i++) {
        (void)sqlite3_finalize(db->own[i]); /* repeats an error that was reported */
        db->own[i] = NULL;
    }
    int rc = sqlite3_close(db->connection);
    CN_ASSERT(rc == SQLITE_OK); /* a statement was left open: our mistake */
    db->connection = NULL;
    db->file = NULL;
    db->has_kv = false;
    cn_free(db->schema);
    db->schema = NULL;
    cn_pool_closed(db);
}

int cn_database_open(struct cn_store *store, const struct cn_object_key *key,
                     const struct cn_database_options *options, struct cn_database **result,
                     struct cn_err *err)
{
    CN_ASSERT(key->namespace_id != 0);
    struct cn_database *db = CN_NEW(struct cn_database);
    db->store = store;
    if (options) {
        db->limits = options->limits;
        db->pool = options->pool;
    }
    cn_map_init(&db->cache);
    cn_list_init(&db->statements);
    cn_list_init(&db->resting_link);
    db->counts = cn_sqlite_counts_new;
    atomic_init(&db->interrupted, false);
    int rc = cn_image_open(&store->images, store->catalog, key, options && options->must_exist,
                           &db->image, err);
    if (rc < 0)
        goto free_db;
    if (!db->pool) /* else with the first use: many are asked for their metadata only */
        rc = cn_pool_connect(db, false, err);
    if (rc < 0)
        goto close_image;
    *result = db;
    return 0;
close_image:
    cn_image_close(db->image);
free_db:
    cn_map_fini(&db->cache);
    cn_free(db);
    return rc;
}

static void meta_clear(struct cn_database *db)
{
    cn_free(db->meta.name);
    db->meta = (struct cn_image_meta){0};
    for (int i = 0; i < db->savepoint_count; i++)
        cn_free(db->saved[i].name);
    cn_free(db->saved);
    db->saved = NULL;
    db->savepoint_count = 0;
}

void cn_database_close(struct cn_database *db)
{
    if (!db)
        return;
    if (!cn_pool_keep(db))
        cn_connection_close(db);
    meta_clear(db);
    cn_image_close(db->image);
    cn_map_fini(&db->cache);
    cn_free(db->broken_reason);
    while (!cn_list_empty(&db->statements)) /* in use, ended above; its user's mistake */
        cn_statement_release(CN_CONTAINER_OF(db->statements.next, struct cn_statement, link));
    cn_free(db);
}

const struct cn_object_key *cn_database_key(const struct cn_database *db)
{
    return cn_image_key(db->image);
}

uint64_t cn_database_size(struct cn_database *db)
{
    (void)cn_template_end(db, NULL); /* if it fails, the turn fails */
    /* Inside a transaction SQLite has grown pages that it has not written yet. */
    uint64_t pages = cn_image_page_count(db->image);
    if (db->connection)
        pages =
            db->in_transaction ? cn_sqlite_page_count(db->connection) : cn_vfs_page_count(db->file);
    return pages * CN_PAGE_SIZE;
}

void cn_database_shrink(struct cn_database *db)
{
    cn_statements_trim(db, 0);
    if (db->connection)
        (void)sqlite3_db_release_memory(db->connection);
}

/* ---- Transactions ---- */

int cn_database_begin(struct cn_database *db, struct cn_err *err)
{
    if (db->in_transaction)
        return 0;
    if (db->broken)
        return cn_err_set(err, CN_EABORTED, "the transaction was rolled back: %s",
                          db->broken_reason);
    int rc = run_own(db, CN_OWN_BEGIN, err);
    db->in_transaction = rc == 0;
    return rc;
}

bool cn_database_in_transaction(const struct cn_database *db)
{
    return db->in_transaction || db->broken || db->reset || db->meta.has_alarm || db->meta.has_name;
}

uint64_t cn_database_lsn(const struct cn_database *db)
{
    return cn_image_lsn(db->image);
}

void cn_database_undo(struct cn_database *db)
{
    cn_statements_end_writers(db);
    if (db->in_transaction)
        (void)run_own(db, CN_OWN_ROLLBACK, NULL); /* checked below */
    db->in_transaction = false;
    db->has_kv = false;
    if (db->connection && !sqlite3_get_autocommit(db->connection))
        cn_connection_close(db);
}

void cn_database_break(struct cn_database *db, const char *reason)
{
    cn_database_undo(db);
    db->broken = true;
    cn_free(db->broken_reason);
    db->broken_reason = cn_strdup(reason);
}

void cn_database_rollback(struct cn_database *db)
{
    cn_template_drop(db);
    cn_statements_end_writers(db);
    if (db->in_transaction)
        (void)run_own(db, CN_OWN_ROLLBACK, NULL); /* checked below */
    db->in_transaction = false;
    db->has_kv = false; /* its creation may have been undone */
    meta_clear(db);
    bool stuck = db->connection && !sqlite3_get_autocommit(db->connection);
    if (db->reset || stuck) {
        cn_connection_close(db);
        db->reset = false;
        (void)cn_pool_connect(db, false, NULL); /* if it fails, whoever comes next tries again */
    }
    db->broken = false;
    cn_free(db->broken_reason);
    db->broken_reason = NULL;
}

/* Metadata or a deletion without any page written: a record of its own. */
static int commit_without_pages(struct cn_database *db, uint64_t *lsn, struct cn_err *err)
{
    struct cn_pagemap none = {0};
    struct cn_image_change change = {
        .pages = &none,
        .pages_after = db->reset ? 0 : cn_image_page_count(db->image),
        .flags = db->reset ? CN_COMMIT_RESET : 0,
        .meta = &db->meta,
    };
    int rc = cn_image_commit(db->image, &change, lsn, err);
    if (rc == 0 && db->reset) {
        /* The connection was told to begin anew at its first commit, and it is done. */
        cn_connection_close(db);
        (void)cn_pool_connect(db, false, NULL); /* if it fails, whoever comes next tries again */
    }
    return rc;
}

int cn_database_commit(struct cn_database *db, uint64_t *lsn, struct cn_err *err)
{
    bool logged = false;
    uint64_t last = cn_image_lsn(db->image);
    int rc = cn_template_end(db, err);
    if (rc < 0)
        goto roll_back;
    if (db->broken)
        rc = cn_err_set(err, CN_EABORTED, "the transaction was rolled back: %s", db->broken_reason);
    else if (db->savepoint_count > 0)
        rc = cn_err_set(err, CN_EINVALID, "commit inside a savepoint");
    if (rc < 0)
        goto roll_back;
    if (db->in_transaction) {
        struct cn_err refusal = {0};
        bool has_meta = db->meta.has_alarm || db->meta.has_name;
        cn_statements_end_writers(db);
        cn_vfs_commit_begin(db->file, has_meta ? &db->meta : NULL);
        rc = run_own(db, CN_OWN_COMMIT, err);
        int refused = cn_vfs_commit_end(db->file, &logged, &last, &refusal);
        if (refused < 0) {
            rc = refused;
            if (err)
                *err = refusal;
        }
        if (rc < 0)
            goto roll_back;
        db->in_transaction = false;
        if (logged)
            db->reset = false;
    }
    if (!logged && (db->reset || db->meta.has_alarm || db->meta.has_name)) {
        rc = commit_without_pages(db, &last, err);
        if (rc < 0)
            goto roll_back;
        db->reset = false;
    }
    if (db->meta.has_alarm || db->meta.has_name)
        meta_clear(db);
    *lsn = last;
    return 0;
roll_back:
    cn_database_rollback(db);
    return rc;
}

/* ---- Savepoints ---- */

static struct cn_image_meta meta_copy(const struct cn_image_meta *meta)
{
    struct cn_image_meta copy = *meta;
    if (meta->name)
        copy.name = cn_strndup(meta->name, meta->name_size);
    return copy;
}

static int savepoint_exec(struct cn_database *db, const char *verb, int level, struct cn_err *err)
{
    char sql[48];
    snprintf(sql, sizeof(sql), "%s cairn_%d", verb, level);
    bool guest = db->guest;
    db->guest = false;
    int rc = sqlite3_exec(db->connection, sql, NULL, NULL, NULL);
    db->guest = guest;
    return rc == SQLITE_OK ? 0 : cn_database_error(db, rc, err);
}

int cn_database_savepoint(struct cn_database *db, struct cn_err *err)
{
    if (db->savepoint_count == CN_SAVEPOINT_MAX)
        return cn_err_set(err, CN_ELIMIT, "transactions are nested more than %d deep",
                          CN_SAVEPOINT_MAX);
    int rc = cn_template_end(db, err);
    if (rc == 0)
        rc = cn_database_begin(db, err);
    if (rc == 0)
        rc = savepoint_exec(db, "SAVEPOINT", db->savepoint_count + 1, err);
    if (rc < 0)
        return rc;
    db->saved = cn_realloc(db->saved, (size_t)(db->savepoint_count + 1) * sizeof(*db->saved));
    db->saved[db->savepoint_count++] = meta_copy(&db->meta);
    return db->savepoint_count;
}

/* Drops the saved metadata of `level` and above; `restore` puts that of `level` back. */
static void savepoints_pop(struct cn_database *db, int level, bool restore)
{
    while (db->savepoint_count >= level) {
        struct cn_image_meta *saved = &db->saved[--db->savepoint_count];
        if (restore && db->savepoint_count + 1 == level) {
            cn_free(db->meta.name);
            db->meta = *saved;
        } else {
            cn_free(saved->name);
        }
    }
}

int cn_database_savepoint_release(struct cn_database *db, int level, struct cn_err *err)
{
    CN_ASSERT(level > 0);
    if (db->broken || level > db->savepoint_count)
        return cn_err_set(err, CN_EABORTED, "the transaction was rolled back");
    int rc = savepoint_exec(db, "RELEASE", level, err);
    if (rc == 0)
        savepoints_pop(db, level, false);
    return rc;
}

int cn_database_savepoint_rollback(struct cn_database *db, int level, struct cn_err *err)
{
    CN_ASSERT(level > 0);
    if (db->broken || level > db->savepoint_count)
        return cn_err_set(err, CN_EABORTED, "the transaction was rolled back");
    cn_statements_end_writers(db);
    int rc = savepoint_exec(db, "ROLLBACK TO", level, err);
    if (rc == 0)
        rc = savepoint_exec(db, "RELEASE", level, err);
    if (rc == 0) {
        savepoints_pop(db, level, true);
        db->has_kv = false; /* its creation may have been undone */
    }
    return rc;
}

int cn_database_savepoint_level(const struct cn_database *db)
{
    return db->savepoint_count;
}

/* ---- Delete all ---- */

int cn_database_delete_all(struct cn_database *db, bool alarm_too, struct cn_err *err)
{
    if (db->savepoint_count > 0)
        return cn_err_set(err, CN_EINVALID, CN_DELETE_ALL_REFUSED);
    struct cn_image_meta meta = meta_copy(&db->meta); /* the alarm set in this turn stays */
    cn_connection_close(db);                          /* drops the turn's writes */
    db->in_transaction = false;
    db->reset = cn_image_page_count(db->image) > 0;
    int rc = cn_database_require(db, err);
    cn_free(db->meta.name);
    db->meta = meta;
    if (rc == 0 && alarm_too)
        rc = cn_database_set_alarm(db, CN_ALARM_NONE, err);
    return rc;
}

/* ---- Metadata ---- */

int64_t cn_database_alarm(struct cn_database *db)
{
    return db->meta.has_alarm ? db->meta.alarm_ms : cn_image_meta(db->image)->alarm_ms;
}

void cn_database_meta(struct cn_database *db, struct cn_database_meta *meta)
{
    const struct cn_image_meta *from = db->meta.has_name ? &db->meta : cn_image_meta(db->image);
    *meta = (struct cn_database_meta){
        .alarm_ms = cn_database_alarm(db),
        .has_name = from->name != NULL,
    };
    if (from->name)
        memcpy(meta->name, from->name, from->name_size);
}

int cn_database_set_alarm(struct cn_database *db, int64_t alarm_ms, struct cn_err *err)
{
    if (db->broken)
        return cn_database_begin(db, err);
    db->meta.has_alarm = true;
    db->meta.alarm_ms = alarm_ms;
    if (db->savepoint_count == 0 && alarm_ms == cn_image_meta(db->image)->alarm_ms)
        db->meta.has_alarm = false; /* what is committed already needs no record */
    return 0;
}

void cn_database_set_saved_alarm(struct cn_database *db, int level, int64_t alarm_ms)
{
    CN_ASSERT(level > 0 && level <= db->savepoint_count);
    db->saved[level - 1].has_alarm = true;
    db->saved[level - 1].alarm_ms = alarm_ms;
}

int cn_database_set_name(struct cn_database *db, const char *name, size_t size, struct cn_err *err)
{
    if (size == 0 || size > CN_OBJECT_NAME_MAX)
        return cn_err_set(err, CN_ELIMIT, "a name of %zu bytes; 1 to %d are kept", size,
                          CN_OBJECT_NAME_MAX);
    const struct cn_image_meta *present = cn_image_meta(db->image);
    cn_free(db->meta.name);
    db->meta.name = NULL;
    db->meta.has_name = false;
    if (present->name && present->name_size == size && memcmp(present->name, name, size) == 0)
        return 0;
    db->meta.name = cn_strndup(name, size);
    db->meta.name_size = (uint16_t)size;
    db->meta.has_name = true;
    return 0;
}

/* ---- Limits on time ---- */

void cn_database_set_deadline(struct cn_database *db, uint64_t deadline_ns)
{
    db->deadline_ns = deadline_ns;
    db->timed_out = false;
}

void cn_database_interrupt(struct cn_database *db)
{
    atomic_store_explicit(&db->interrupted, true, memory_order_relaxed);
}

int64_t cn_database_changes(struct cn_database *db)
{
    return db->connection ? sqlite3_changes64(db->connection) : db->counts.changes;
}

int64_t cn_database_last_rowid(struct cn_database *db)
{
    return db->connection ? sqlite3_last_insert_rowid(db->connection) : db->counts.last_rowid;
}
