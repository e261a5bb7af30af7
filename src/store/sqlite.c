/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include <string.h>

#include "base/assert.h"
#include "store/sqlite_memory.h"

int cn_sqlite_setup(struct cn_err *err)
{
    (void)cn_sqlite_memory_setup(); /* refused if SQLite has started already, with it */
    int rc = sqlite3_initialize();
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

int cn_sqlite_error(sqlite3 *connection, int code, struct cn_err *err)
{
    const char *text = connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    return cn_err_set(err, (code & 0xff) == SQLITE_NOMEM ? CN_ENOMEM : CN_ESQL, "%.400s: %s", text,
                      cn_sqlite_code_name(code));
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
