/* SPDX-License-Identifier: Apache-2.0 */
#include "store/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/sqlite.h"
#include "store/store.h"

#define PIECE_SIZE ((size_t)1 << 20)
#define PART_PAGES 8192 /* of one commit: a quarter of what a store takes */
#define PROGRESS_STEPS 10000
#define STATEMENT_NS (60ull * 1000000000)
#define REWRITE_BATCH 64 /* values that are read before they are written */

struct cn_plain {
    sqlite3 *connection; /* owned */
    char *path;          /* owned */
    sqlite3_stmt *last;  /* owned: of cn_plain_run(); NULL: none */
    uint64_t until_ns;   /* when a statement of others ends */
};

struct cn_plain_row {
    sqlite3_stmt *statement;
};

/* --- copying --------------------------------------------------------------------------------- */

/* One that is not there: *fd is -1. */
static int open_source(const char *path, int *fd, struct stat *info, struct cn_err *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *info = (struct stat){0};
    if (*fd < 0)
        return errno == ENOENT ? 0 : cn_err_errno(err, errno, "cannot read %s", path);
    if (fstat(*fd, info) < 0 || !S_ISREG(info->st_mode)) {
        close(*fd);
        *fd = -1;
        return cn_err_set(err, CN_EINVALID, "%s is no file", path);
    }
    return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int copy_bytes(int from, const char *from_path, int to, const char *to_path,
                      struct cn_err *err)
{
    char *bytes = cn_alloc(PIECE_SIZE);
    ssize_t count;
    int rc = 0;
    while (rc == 0 && (count = read(from, bytes, PIECE_SIZE)) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            rc = cn_err_errno(err, errno, "cannot read %s", from_path);
        for (ssize_t done = 0, wrote; rc == 0 && done < count; done += wrote) {
            wrote = write(to, bytes + done, (size_t)(count - done));
            if (wrote < 0)
                rc = cn_err_errno(err, errno, "cannot write %s", to_path);
        }
    }
    cn_free(bytes);
    return rc;
}

static int copy_open(int from, const char *from_path, const char *to_path, struct cn_err *err)
{
    if (unlink(to_path) < 0 && errno != ENOENT)
        return cn_err_errno(err, errno, "cannot replace %s", to_path);
    if (from < 0)
        return 0;
    int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return cn_err_errno(err, errno, "cannot create %s", to_path);
    int rc = copy_bytes(from, from_path, to, to_path, err);
    if (close(to) < 0 && rc == 0)
        rc = cn_err_errno(err, errno, "cannot write %s", to_path);
    return rc;
}

int cn_plain_copy(const char *from, const char *to, struct cn_err *err)
{
    char *names[4] = {cn_strdup(from), cn_sprintf("%s-wal", from), cn_strdup(to),
                      cn_sprintf("%s-wal", to)};
    struct stat before[2], after[2];
    int fds[2] = {-1, -1};
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = open_source(names[i], &fds[i], &before[i], err);
    if (rc == 0 && fds[0] < 0)
        rc = cn_err_set(err, CN_ENOTFOUND, "there is no %s", from);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = copy_open(fds[i], names[i], names[2 + i], err);
    for (int i = 0; i < 2 && rc == 0; i++) {
        bool there = lstat(names[i], &after[i]) == 0;
        if (there != (fds[i] >= 0) || (there && !is_same(&before[i], &after[i])))
            rc = cn_err_set(err, CN_ELOCKED, "%s changes: stop who writes to it", names[i]);
    }
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (int i = 0; i < 4; i++)
        cn_free(names[i]);
    return rc;
}

/* --- opening --------------------------------------------------------------------------------- */

/* A database that is damaged, whatever SQLite calls it. */
static int plain_error(struct cn_plain *plain, int code, struct cn_err *err)
{
    int primary = code & 0xff;
    int rc = cn_sqlite_error(plain->connection, code, err);
    if (primary == SQLITE_FULL || primary == SQLITE_IOERR || rc == CN_ENOMEM)
        return rc;
    if (err)
        err->code = CN_ECORRUPT;
    return CN_ECORRUPT;
}

static int run(struct cn_plain *plain, const char *sql, struct cn_err *err)
{
    int code = sqlite3_exec(plain->connection, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : plain_error(plain, code, err);
}

bool cn_plain_null(const struct cn_plain_row *row, int column)
{
    return sqlite3_column_type(row->statement, column) == SQLITE_NULL;
}

int64_t cn_plain_int(const struct cn_plain_row *row, int column)
{
    return sqlite3_column_int64(row->statement, column);
}

const char *cn_plain_text(const struct cn_plain_row *row, int column, size_t *size)
{
    bool blob = sqlite3_column_type(row->statement, column) == SQLITE_BLOB;
    const char *bytes = blob ? sqlite3_column_blob(row->statement, column)
                             : (const char *)sqlite3_column_text(row->statement, column);
    if (size)
        *size = bytes ? (size_t)sqlite3_column_bytes(row->statement, column) : 0;
    return bytes ? bytes : "";
}

int cn_plain_query(struct cn_plain *plain, const char *sql, const char *text, cn_plain_each each,
                   void *data, struct cn_err *err)
{
    struct cn_plain_row row;
    int code = sqlite3_prepare_v2(plain->connection, sql, -1, &row.statement, NULL);
    if (code != SQLITE_OK)
        return plain_error(plain, code, err);
    if (text)
        (void)sqlite3_bind_text(row.statement, 1, text, -1, SQLITE_STATIC);
    int rc = 0;
    while (rc >= 0 && (code = sqlite3_step(row.statement)) == SQLITE_ROW)
        rc = each(data, &row, err);
    if (rc >= 0)
        rc = code == SQLITE_DONE ? 0 : plain_error(plain, code, err);
    (void)sqlite3_finalize(row.statement); /* repeats an error that was reported */
    return rc;
}

static int check_row(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)data;
    const char *text = cn_plain_text(row, 0, NULL);
    return strcmp(text, "ok") == 0 ? 0
                                   : cn_err_set(err, CN_ECORRUPT, "it is damaged: %.200s", text);
}

static int check_encoding(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)data;
    return strcmp(cn_plain_text(row, 0, NULL), "UTF-8") == 0
               ? 0
               : cn_err_set(err, CN_EUNSUPPORTED, "its texts are not UTF-8");
}

int cn_plain_open(const char *path, struct cn_plain **result, struct cn_err *err)
{
    int rc = cn_sqlite_setup(err);
    if (rc < 0)
        return rc;
    struct cn_plain *plain = CN_NEW(struct cn_plain);
    plain->path = cn_strdup(path);
    int code = sqlite3_open_v2(path, &plain->connection,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code != SQLITE_OK) {
        rc = plain_error(plain, code, err);
        cn_plain_close(plain);
        return rc;
    }
    (void)sqlite3_db_config(plain->connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(plain->connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(plain->connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_limit(plain->connection, SQLITE_LIMIT_ATTACHED, 1); /* VACUUM takes one */
    rc = run(plain,
             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;"
             "PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF; PRAGMA cell_size_check = ON;",
             err);
    if (rc == 0)
        rc = cn_plain_query(plain, "PRAGMA encoding", NULL, check_encoding, NULL, err);
    if (rc == 0)
        rc = cn_plain_query(plain, "PRAGMA integrity_check(1)", NULL, check_row, NULL, err);
    if (rc == 0)
        *result = plain;
    else
        cn_plain_close(plain);
    return rc;
}

void cn_plain_close(struct cn_plain *plain)
{
    if (!plain)
        return;
    (void)sqlite3_finalize(plain->last);    /* repeats an error that was reported */
    (void)sqlite3_close(plain->connection); /* no other statement is open */
    cn_free(plain->path);
    cn_free(plain);
}

/* 1: a table; 2: something else. */
static int look_at_row(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)err;
    int *found = data;
    const char *type = cn_plain_text(row, 0, NULL), *sql = cn_plain_text(row, 2, NULL);
    bool is_table = strcmp(type, "table") == 0 && cn_plain_int(row, 1) &&
                    strncasecmp(sql, "CREATE TABLE", 12) == 0;
    /* Indexes that the table itself makes have no text; miniflare has one of a column. */
    bool is_index = strcmp(type, "index") == 0 && !strchr(sql, '+') && !strcasestr(sql, "where") &&
                    strlen(sql) < 200;
    if (is_table)
        *found |= 1;
    else if (!is_index)
        *found |= 2;
    return 0;
}

int cn_plain_has(struct cn_plain *plain, const char *table, struct cn_err *err)
{
    int found = 0;
    int rc = cn_plain_query(plain,
                            "SELECT type, name = tbl_name, sql FROM sqlite_schema"
                            " WHERE tbl_name = ?1 COLLATE NOCASE",
                            table, look_at_row, &found, err);
    if (rc == 0 && (found & 2))
        rc = cn_err_set(err, CN_ECORRUPT, "the table %s has what no such table has", table);
    return rc < 0 ? rc : found & 1;
}

/* --- changing -------------------------------------------------------------------------------- */

/* Values that were read, to be written: a statement must not change what another reads. */
struct batch {
    struct cn_buf keys[REWRITE_BATCH], values[REWRITE_BATCH];
    int count;
    int (*convert)(void *data, const void *bytes, size_t size, struct cn_buf *out,
                   struct cn_err *err);
    void *data;
};

static int take_pair(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    struct batch *batch = data;
    size_t key_size, size;
    const char *key = cn_plain_text(row, 0, &key_size);
    struct cn_buf *kept = &batch->keys[batch->count];
    cn_buf_clear(kept);
    cn_buf_append(kept, key, key_size);
    cn_buf_clear(&batch->values[batch->count]);
    const char *value = cn_plain_text(row, 1, &size);
    int rc = batch->convert(batch->data, value, size, &batch->values[batch->count], err);
    if (rc < 0)
        return cn_err_context(err, "the key \"%.100s\"", cn_buf_text(kept));
    batch->count++;
    return 0;
}

static int write_batch(struct cn_plain *plain, struct batch *batch, struct cn_err *err)
{
    sqlite3_stmt *statement;
    int code = sqlite3_prepare_v2(plain->connection, "UPDATE _cf_KV SET value = ?2 WHERE key = ?1",
                                  -1, &statement, NULL);
    for (int i = 0; i < batch->count && code == SQLITE_OK; i++) {
        struct cn_buf *key = &batch->keys[i], *value = &batch->values[i];
        (void)sqlite3_bind_text64(statement, 1, cn_buf_text(key), key->size, SQLITE_STATIC,
                                  SQLITE_UTF8);
        (void)sqlite3_bind_blob64(statement, 2, value->size ? value->data : (uint8_t *)"",
                                  value->size, SQLITE_STATIC);
        code =
            sqlite3_step(statement) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(plain->connection);
        (void)sqlite3_reset(statement);
    }
    (void)sqlite3_finalize(statement);
    return code == SQLITE_OK ? 0 : plain_error(plain, code, err);
}

int cn_plain_rewrite(struct cn_plain *plain,
                     int (*convert)(void *data, const void *bytes, size_t size, struct cn_buf *out,
                                    struct cn_err *err),
                     void *data, struct cn_err *err)
{
    struct batch *batch = CN_NEW(struct batch);
    struct cn_buf after = {0};
    batch->convert = convert;
    batch->data = data;
    int rc = cn_plain_has(plain, "_cf_KV", err);
    bool more = rc > 0;
    if (more)
        rc = run(plain, "BEGIN", err);
    for (bool first = true; rc == 0 && more; first = false) {
        char sql[128];
        snprintf(sql, sizeof(sql), "SELECT key, value FROM _cf_KV %s ORDER BY key LIMIT %d",
                 first ? "" : "WHERE key > CAST(?1 AS TEXT)", REWRITE_BATCH);
        batch->count = 0;
        rc = cn_plain_query(plain, sql, first ? NULL : cn_buf_text(&after), take_pair, batch, err);
        if (rc == 0)
            rc = write_batch(plain, batch, err);
        more = batch->count == REWRITE_BATCH;
        if (more) {
            const struct cn_buf *last = &batch->keys[batch->count - 1];
            cn_buf_clear(&after);
            cn_buf_append(&after, last->data, last->size);
            if (memchr(last->data, 0, last->size))
                rc = cn_err_set(err, CN_EUNSUPPORTED, "a key holds a NUL");
        }
    }
    if (rc == 0 && sqlite3_get_autocommit(plain->connection) == 0)
        rc = run(plain, "COMMIT", err);
    for (int i = 0; i < REWRITE_BATCH; i++) {
        cn_buf_fini(&batch->keys[i]);
        cn_buf_fini(&batch->values[i]);
    }
    cn_buf_fini(&after);
    cn_free(batch);
    return rc < 0 ? rc : 0;
}

static int take_drop(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)err;
    cn_buf_append_str(data, cn_plain_text(row, 0, NULL));
    return 0;
}

static int take_int(void *data, const struct cn_plain_row *row, struct cn_err *err)
{
    (void)err;
    *(int64_t *)data = cn_plain_int(row, 0);
    return 0;
}

static int ask_int(struct cn_plain *plain, const char *sql, int64_t *value, struct cn_err *err)
{
    *value = 0;
    return cn_plain_query(plain, sql, NULL, take_int, value, err);
}

/* Pages of 4096 bytes, nothing reserved, no vacuum of its own. */
static int bring_into_form(struct cn_plain *plain, struct cn_err *err)
{
    int64_t page_size, vacuum;
    int reserved = -1;
    int rc = ask_int(plain, "PRAGMA page_size", &page_size, err);
    if (rc == 0)
        rc = ask_int(plain, "PRAGMA auto_vacuum", &vacuum, err);
    (void)sqlite3_file_control(plain->connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    if (rc < 0 || (page_size == CN_PAGE_SIZE && vacuum == 0 && reserved <= 0))
        return rc;
    reserved = 0;
    (void)sqlite3_file_control(plain->connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
    return run(plain, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE; VACUUM;", err);
}

int cn_plain_settle(struct cn_plain *plain, uint32_t *page_count, struct cn_err *err)
{
    struct cn_buf drops = {0};
    int64_t pages = 0, tables = 0;
    (void)sqlite3_finalize(plain->last); /* repeats an error that was reported */
    plain->last = NULL;
    (void)sqlite3_set_authorizer(plain->connection, NULL, NULL);
    int rc = sqlite3_get_autocommit(plain->connection) ? 0 : run(plain, "COMMIT", err);
    if (rc == 0)
        rc = run(plain, "PRAGMA journal_mode = DELETE", err);
    if (rc == 0)
        rc = cn_plain_query(plain,
                            "SELECT printf('DROP TABLE \"%w\";', name) FROM sqlite_schema WHERE"
                            " type = 'table' AND (name = '__miniflare_do_name' OR"
                            " (substr(lower(name), 1, 4) = '_cf_' AND name <> '_cf_KV'))",
                            NULL, take_drop, &drops, err);
    if (rc == 0 && drops.size)
        rc = run(plain, cn_buf_text(&drops), err);
    if (rc == 0)
        rc = bring_into_form(plain, err);
    if (rc == 0)
        rc = ask_int(plain, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (rc == 0)
        rc = ask_int(plain, "PRAGMA page_count", &pages, err);
    cn_buf_fini(&drops);
    int code = sqlite3_close(plain->connection);
    plain->connection = NULL;
    if (rc == 0 && code != SQLITE_OK)
        rc = cn_err_set(err, CN_ESQL, "the copy cannot be written: %s", sqlite3_errstr(code));
    if (rc == 0)
        *page_count = tables ? (uint32_t)pages : 0;
    return rc;
}

/* --- statements of others ----------------------------------------------------------------------- */

static int authorize(void *data, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)data, (void)database, (void)trigger;
    switch (action) {
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ANALYZE:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW:
        return SQLITE_DENY;
    case SQLITE_PRAGMA: /* what FTS5 asks */
        return !second && first &&
                       (strcmp(first, "data_version") == 0 || strcmp(first, "page_size") == 0)
                   ? SQLITE_OK
                   : SQLITE_DENY;
    case SQLITE_FUNCTION:
        return second && (strcasecmp(second, "load_extension") == 0 ||
                          strcasecmp(second, "fts3_tokenizer") == 0)
                   ? SQLITE_DENY
                   : SQLITE_OK;
    default:
        return first && strncasecmp(first, "_cf_", 4) == 0 ? SQLITE_DENY : SQLITE_OK;
    }
}

static int on_progress(void *data)
{
    const struct cn_plain *plain = data;
    return plain->until_ns && cn_clock_mono_ns(cn_clock_system()) > plain->until_ns;
}

int cn_plain_make(const char *path, struct cn_plain **result, struct cn_err *err)
{
    int rc = cn_sqlite_setup(err);
    if (rc < 0)
        return rc;
    if (unlink(path) < 0 && errno != ENOENT)
        return cn_err_errno(err, errno, "cannot replace %s", path);
    struct cn_plain *plain = CN_NEW(struct cn_plain);
    plain->path = cn_strdup(path);
    int code =
        sqlite3_open_v2(path, &plain->connection,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_db_config(plain->connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        rc = run(
            plain,
            "PRAGMA page_size = 4096; PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;"
            "PRAGMA journal_mode = MEMORY; PRAGMA temp_store = MEMORY;"
            "PRAGMA foreign_keys = OFF; BEGIN",
            err);
    } else {
        rc = plain_error(plain, code, err);
    }
    sqlite3_progress_handler(plain->connection, PROGRESS_STEPS, on_progress, plain);
    if (rc == 0)
        *result = plain;
    else
        cn_plain_close(plain);
    return rc;
}

static int prepare_last(struct cn_plain *plain, const char *sql, struct cn_err *err)
{
    const char *tail = "";
    if (plain->last && strcmp(sqlite3_sql(plain->last), sql) == 0)
        return 0;
    (void)sqlite3_finalize(plain->last); /* repeats an error that was reported */
    plain->last = NULL;
    (void)sqlite3_set_authorizer(plain->connection, authorize, NULL);
    int code = sqlite3_prepare_v2(plain->connection, sql, -1, &plain->last, &tail);
    if (code != SQLITE_OK)
        return plain_error(plain, code, err);
    if (!plain->last || tail[strspn(tail, " \t\r\n;")])
        return cn_err_set(err, CN_EINVALID, "a line must have one statement");
    return 0;
}

static void bind_cell(sqlite3_stmt *statement, int index, const struct cn_plain_cell *cell)
{
    const void *bytes = cell->size ? cell->bytes : "";
    if (cell->type == CN_SQL_INT)
        (void)sqlite3_bind_int64(statement, index, cell->integer);
    else if (cell->type == CN_SQL_REAL)
        (void)sqlite3_bind_double(statement, index, cell->real);
    else if (cell->type == CN_SQL_TEXT)
        (void)sqlite3_bind_text64(statement, index, bytes, cell->size, SQLITE_STATIC, SQLITE_UTF8);
    else if (cell->type == CN_SQL_BLOB)
        (void)sqlite3_bind_blob64(statement, index, bytes, cell->size, SQLITE_STATIC);
    else
        (void)sqlite3_bind_null(statement, index);
}

int cn_plain_run(struct cn_plain *plain, const char *sql, const struct cn_plain_cell *cells,
                 size_t count, struct cn_err *err)
{
    int rc = prepare_last(plain, sql, err);
    if (rc < 0)
        return rc;
    if ((size_t)sqlite3_bind_parameter_count(plain->last) != count)
        return cn_err_set(err, CN_EINVALID, "a row has another number of cells than its table");
    for (size_t i = 0; i < count; i++)
        bind_cell(plain->last, (int)i + 1, &cells[i]);
    plain->until_ns = cn_clock_mono_ns(cn_clock_system()) + STATEMENT_NS;
    int code;
    while ((code = sqlite3_step(plain->last)) == SQLITE_ROW) {
    }
    plain->until_ns = 0;
    rc = code == SQLITE_DONE ? 0 : plain_error(plain, code, err);
    (void)sqlite3_reset(plain->last); /* repeats an error that was reported */
    (void)sqlite3_clear_bindings(plain->last);
    return rc;
}

int cn_plain_put(struct cn_plain *plain, const char *key, size_t key_size, const void *value,
                 size_t size, struct cn_err *err)
{
    sqlite3_stmt *statement;
    (void)sqlite3_set_authorizer(plain->connection, NULL, NULL);
    int rc = run(plain,
                 "CREATE TABLE IF NOT EXISTS _cf_KV(key TEXT PRIMARY KEY NOT NULL, value BLOB)"
                 " WITHOUT ROWID",
                 err);
    if (rc < 0)
        return rc;
    int code = sqlite3_prepare_v2(plain->connection, "INSERT INTO _cf_KV VALUES (?1, ?2)", -1,
                                  &statement, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_text64(statement, 1, key, key_size, SQLITE_STATIC, SQLITE_UTF8);
        (void)sqlite3_bind_blob64(statement, 2, value, size, SQLITE_STATIC);
        code = sqlite3_step(statement);
        rc = code == SQLITE_DONE ? 0 : plain_error(plain, code, err);
        (void)sqlite3_finalize(statement); /* repeats an error that was reported */
    } else {
        rc = plain_error(plain, code, err);
    }
    return rc;
}

/* --- the object ------------------------------------------------------------------------------ */

struct pages {
    int fd;
    const char *path;
    uint32_t count;
    bool differs;
    uint8_t page[CN_PAGE_SIZE];
};

static int read_pages(struct pages *pages, uint32_t page_no, uint32_t count, uint8_t *bytes,
                      struct cn_err *err)
{
    size_t size = (size_t)count * CN_PAGE_SIZE;
    off_t offset = (off_t)(page_no - 1) * CN_PAGE_SIZE;
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(pages->fd, bytes + done, size - done, offset + (off_t)done);
        if (got <= 0)
            return cn_err_errno(err, got < 0 ? errno : EIO, "cannot read %s", pages->path);
        done += (size_t)got;
    }
    return 0;
}

static int read_source(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE], struct cn_err *err)
{
    return read_pages(data, page_no, 1, page, err);
}

static int compare_page(void *data, uint32_t page_no, const uint8_t *page)
{
    struct pages *pages = data;
    struct cn_err err;
    if (page_no > pages->count || read_pages(pages, page_no, 1, pages->page, &err) < 0 ||
        memcmp(pages->page, page, CN_PAGE_SIZE) != 0) {
        pages->differs = true;
        return -1;
    }
    return 0;
}

static bool is_same_meta(const struct cn_catalog_entry *entry, const struct cn_replace_meta *meta)
{
    int64_t alarm_ms = meta && meta->has_alarm ? meta->alarm_ms : CN_ALARM_NONE;
    return entry->alarm_ms == alarm_ms;
}

/* How many pages of the source the object has; negative: it cannot be read. */
static int64_t count_there(struct cn_store *store, const struct cn_object_key *key,
                           struct pages *pages, struct cn_err *err)
{
    uint32_t count = 0;
    uint64_t lsn;
    int rc = cn_store_snapshot(store, key, compare_page, pages, &count, &lsn, err);
    return rc < 0 && !pages->differs ? rc : (int64_t)count;
}

static int write_parts(struct cn_store *store, const struct cn_object_key *key, struct pages *pages,
                       uint32_t done, const struct cn_replace_meta *meta, struct cn_err *err)
{
    uint8_t *bytes = cn_alloc((size_t)PART_PAGES * CN_PAGE_SIZE);
    uint64_t lsn = 0;
    int rc = 0;
    while (rc == 0 && done < pages->count) {
        uint32_t left = pages->count - done, part = left < PART_PAGES ? left : PART_PAGES;
        rc = read_pages(pages, done + 1, part, bytes, err);
        if (rc == 0)
            rc = cn_store_extend(store, key, bytes, part, part == left ? meta : NULL, &lsn, err);
        if (rc == 0)
            rc = cn_store_wait(store, lsn, err); /* or the log outgrows the disk's pace */
        done += part;
    }
    cn_free(bytes);
    return rc;
}

static int write_whole(struct cn_store *store, const struct cn_object_key *key, struct pages *pages,
                       const struct cn_replace_meta *meta, struct cn_err *err)
{
    struct cn_page_source source = {pages, read_source};
    uint64_t lsn;
    return cn_store_replace(store, key, pages->count, &source, meta, &lsn, err);
}

int cn_plain_store(struct cn_store *store, const struct cn_object_key *key,
                   const struct cn_plain_file *file, enum cn_plain_outcome *outcome,
                   struct cn_err *err)
{
    struct pages *pages = CN_NEW(struct pages);
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    pages->path = file->path;
    pages->count = file->page_count;
    pages->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    int rc = pages->fd < 0 ? cn_err_errno(err, errno, "cannot read %s", file->path)
                           : cn_catalog_find(cn_store_catalog(store), key, &entry, name, err);
    int64_t there = rc > 0 ? count_there(store, key, pages, err) : 0;
    *outcome = CN_PLAIN_OTHER;
    if (rc > 0 && there < 0)
        rc = (int)there;
    else if (rc > 0 && !pages->differs && there == pages->count && is_same_meta(&entry, file->meta))
        *outcome = CN_PLAIN_THERE;
    else if (rc > 0 && !file->look && !pages->differs && there > 0 && there < pages->count &&
             there % PART_PAGES == 0) { /* G4 */
        rc = write_parts(store, key, pages, (uint32_t)there, file->meta, err);
        *outcome = CN_PLAIN_CAME;
    } else if (rc == 0 && !file->look) {
        rc = pages->count > PART_PAGES ? write_parts(store, key, pages, 0, file->meta, err)
                                       : write_whole(store, key, pages, file->meta, err);
        *outcome = CN_PLAIN_CAME;
    }
    if (pages->fd >= 0)
        close(pages->fd);
    cn_free(pages);
    return rc < 0 ? rc : 0;
}
