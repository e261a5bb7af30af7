/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "store/functions.h"
#include "store/sqlite_memory.h"

static int setup_result; /* written by setup() alone, which pthread_once() orders */

/* sqlite3_config() may run once, and beside nothing else of SQLite. */
static void setup(void)
{
    (void)cn_sqlite_memory_setup(); /* refused if SQLite has started already, with it */
    setup_result = sqlite3_initialize();
    if (setup_result == SQLITE_OK)
        cn_functions_setup();
}

int cn_sqlite_setup(struct cn_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, setup);
    int rc = setup_result;
    return rc == SQLITE_OK ? 0 : cn_err_set(err, CN_ESQL, "SQLite does not start: error %d", rc);
}

const char *cn_sqlite_code_name(int code)
{
    static const char *const names[] = {
        [SQLITE_OK] = "SQLITE_OK",
        [SQLITE_ERROR] = "SQLITE_ERROR",
        [SQLITE_INTERNAL] = "SQLITE_INTERNAL",
        [SQLITE_PERM] = "SQLITE_PERM",
        [SQLITE_ABORT] = "SQLITE_ABORT",
        [SQLITE_BUSY] = "SQLITE_BUSY",
        [SQLITE_LOCKED] = "SQLITE_LOCKED",
        [SQLITE_NOMEM] = "SQLITE_NOMEM",
        [SQLITE_READONLY] = "SQLITE_READONLY",
        [SQLITE_INTERRUPT] = "SQLITE_INTERRUPT",
        [SQLITE_IOERR] = "SQLITE_IOERR",
        [SQLITE_CORRUPT] = "SQLITE_CORRUPT",
        [SQLITE_NOTFOUND] = "SQLITE_NOTFOUND",
        [SQLITE_FULL] = "SQLITE_FULL",
        [SQLITE_CANTOPEN] = "SQLITE_CANTOPEN",
        [SQLITE_PROTOCOL] = "SQLITE_PROTOCOL",
        [SQLITE_EMPTY] = "SQLITE_EMPTY",
        [SQLITE_SCHEMA] = "SQLITE_SCHEMA",
        [SQLITE_TOOBIG] = "SQLITE_TOOBIG",
        [SQLITE_CONSTRAINT] = "SQLITE_CONSTRAINT",
        [SQLITE_MISMATCH] = "SQLITE_MISMATCH",
        [SQLITE_MISUSE] = "SQLITE_MISUSE",
        [SQLITE_NOLFS] = "SQLITE_NOLFS",
        [SQLITE_AUTH] = "SQLITE_AUTH",
        [SQLITE_FORMAT] = "SQLITE_FORMAT",
        [SQLITE_RANGE] = "SQLITE_RANGE",
        [SQLITE_NOTADB] = "SQLITE_NOTADB",
    };
    unsigned primary = (unsigned)code & 0xff;
    const char *name = primary < CN_ARRAY_COUNT(names) ? names[primary] : NULL;
    return name ? name : "SQLITE_UNKNOWN";
}

/* The name of an extended code that scripts meet; NULL: another, or a primary one. */
static const char *extended_name(int code)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        {SQLITE_CONSTRAINT_CHECK, "SQLITE_CONSTRAINT_CHECK"},
        {SQLITE_CONSTRAINT_COMMITHOOK, "SQLITE_CONSTRAINT_COMMITHOOK"},
        {SQLITE_CONSTRAINT_DATATYPE, "SQLITE_CONSTRAINT_DATATYPE"},
        {SQLITE_CONSTRAINT_FOREIGNKEY, "SQLITE_CONSTRAINT_FOREIGNKEY"},
        {SQLITE_CONSTRAINT_FUNCTION, "SQLITE_CONSTRAINT_FUNCTION"},
        {SQLITE_CONSTRAINT_NOTNULL, "SQLITE_CONSTRAINT_NOTNULL"},
        {SQLITE_CONSTRAINT_PINNED, "SQLITE_CONSTRAINT_PINNED"},
        {SQLITE_CONSTRAINT_PRIMARYKEY, "SQLITE_CONSTRAINT_PRIMARYKEY"},
        {SQLITE_CONSTRAINT_ROWID, "SQLITE_CONSTRAINT_ROWID"},
        {SQLITE_CONSTRAINT_TRIGGER, "SQLITE_CONSTRAINT_TRIGGER"},
        {SQLITE_CONSTRAINT_UNIQUE, "SQLITE_CONSTRAINT_UNIQUE"},
        {SQLITE_CONSTRAINT_VTAB, "SQLITE_CONSTRAINT_VTAB"},
        {SQLITE_ABORT_ROLLBACK, "SQLITE_ABORT_ROLLBACK"},
        {SQLITE_CORRUPT_INDEX, "SQLITE_CORRUPT_INDEX"},
        {SQLITE_CORRUPT_VTAB, "SQLITE_CORRUPT_VTAB"},
        {SQLITE_ERROR_MISSING_COLLSEQ, "SQLITE_ERROR_MISSING_COLLSEQ"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++)
        if (names[i].code == code)
            return names[i].name;
    return NULL;
}

int cn_sqlite_error(sqlite3 *connection, int code, struct cn_err *err)
{
    char offset_text[32] = "", extended_text[64] = "";
    const char *text = connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    /* What the connection says beyond its message belongs to the error it had last. */
    if (connection && (sqlite3_errcode(connection) & 0xff) == (code & 0xff)) {
        int offset = sqlite3_error_offset(connection);
        const char *extended = extended_name(sqlite3_extended_errcode(connection));
        if (offset >= 0)
            snprintf(offset_text, sizeof(offset_text), " at offset %d", offset);
        if (extended)
            snprintf(extended_text, sizeof(extended_text), " (extended: %s)", extended);
    }
    return cn_err_set(err, (code & 0xff) == SQLITE_NOMEM ? CN_ENOMEM : CN_ESQL, "%.400s%s: %s%s",
                      text, offset_text, cn_sqlite_code_name(code), extended_text);
}

int cn_sqlite_prepare(sqlite3 *connection, const char *sql, sqlite3_stmt **statement,
                      struct cn_err *err)
{
    int rc = sqlite3_prepare_v3(connection, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return rc == SQLITE_OK ? 0 : cn_sqlite_error(connection, rc, err);
}

int cn_sqlite_exec(sqlite3 *connection, const char *sql, struct cn_err *err)
{
    int rc = sqlite3_exec(connection, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : cn_sqlite_error(connection, rc, err);
}

/* ---- Methods that are the same for every VFS of ours ---- */

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *bytes)
{
    sqlite3_vfs *base = sqlite3_vfs_find("unix");
    return base->xRandomness(base, size, bytes);
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *base = sqlite3_vfs_find("unix");
    return base->xSleep(base, microseconds);
}

static int vfs_current_time(sqlite3_vfs *vfs, sqlite3_int64 *now)
{
    sqlite3_vfs *base = sqlite3_vfs_find("unix");
    return base->xCurrentTimeInt64(base, now);
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *text)
{
    if (size > 0)
        text[0] = '\0';
    return 0;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int size, char *path)
{
    size_t length = strlen(name);
    if (length >= (size_t)size)
        return SQLITE_CANTOPEN;
    memcpy(path, name, length + 1);
    return SQLITE_OK;
}

void cn_sqlite_vfs_init(sqlite3_vfs *vfs, const char *name, int file_size, void *data)
{
    *vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = file_size,
        .mxPathname = 128,
        .zName = name,
        .pAppData = data,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_current_time,
    };
}

int cn_sqlite_lock_none(sqlite3_file *file, int level)
{
    return SQLITE_OK;
}

int cn_sqlite_lock_check(sqlite3_file *file, int *held)
{
    *held = 0;
    return SQLITE_OK;
}
