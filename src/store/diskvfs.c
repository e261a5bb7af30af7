/* SPDX-License-Identifier: Apache-2.0 */
/* store/diskvfs.c - SQLite on a struct cn_disk as it is: its own journal, its own syncs.
 *
 * One connection per file, so locks do nothing. A file that is made is synced
 * into its folder at once: SQLite relies on the name of a journal being durable. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/sqlite.h"

struct cn_diskvfs {
    sqlite3_vfs base;
    struct cn_disk *disk;
};

struct disk_file {
    sqlite3_file base;
    struct cn_disk_file *file; /* owned */
};

static struct cn_disk_file *file_of(sqlite3_file *file)
{
    return ((struct disk_file *)file)->file;
}

static struct cn_disk *disk_of(sqlite3_vfs *vfs)
{
    return ((struct cn_diskvfs *)vfs->pAppData)->disk;
}

static int on_close(sqlite3_file *file)
{
    cn_disk_close(file_of(file));
    return SQLITE_OK;
}

static int on_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
    int64_t got = cn_disk_read(file_of(file), bytes, (size_t)size, (uint64_t)offset);
    if (got < 0)
        return SQLITE_IOERR_READ;
    if (got < size) {
        memset((char *)bytes + got, 0, (size_t)(size - got));
        return SQLITE_IOERR_SHORT_READ;
    }
    return SQLITE_OK;
}

static int on_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    int rc = cn_disk_write_all(file_of(file), bytes, (size_t)size, (uint64_t)offset);
    return rc == 0 ? SQLITE_OK : rc == -ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return cn_disk_truncate(file_of(file), (uint64_t)size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int on_sync(sqlite3_file *file, int flags)
{
    return cn_disk_sync_data(file_of(file)) == 0 ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = cn_disk_size(file_of(file));
    return *size < 0 ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

static int on_control(sqlite3_file *file, int op, void *arg)
{
    return SQLITE_NOTFOUND;
}

static int on_sector_size(sqlite3_file *file)
{
    return 4096;
}

static int on_characteristics(sqlite3_file *file)
{
    return 0;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = cn_sqlite_lock_none,
    .xUnlock = cn_sqlite_lock_none,
    .xCheckReservedLock = cn_sqlite_lock_check,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
};

static int on_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags,
                   int *out_flags)
{
    struct disk_file *file = (struct disk_file *)base;
    file->base.pMethods = NULL;
    if (!path || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL)))
        return SQLITE_CANTOPEN; /* temporary files stay in memory */
    struct cn_disk *disk = disk_of(vfs);
    int mode = flags & SQLITE_OPEN_READONLY ? CN_DISK_READONLY : 0;
    int rc = cn_disk_open(disk, path, mode, &file->file);
    if (rc == -ENOENT && (flags & SQLITE_OPEN_CREATE)) {
        rc = cn_disk_open(disk, path, CN_DISK_CREATE, &file->file);
        if (rc == 0 && cn_disk_sync_parent(disk, path) < 0) {
            cn_disk_close(file->file);
            rc = -EIO;
        }
    }
    if (rc < 0)
        return SQLITE_CANTOPEN;
    if (out_flags)
        *out_flags = flags;
    file->base.pMethods = &file_methods;
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    int rc = cn_disk_unlink(disk_of(vfs), path);
    if (rc == -ENOENT)
        return SQLITE_IOERR_DELETE_NOENT;
    if (rc == 0 && sync_dir)
        rc = cn_disk_sync_parent(disk_of(vfs), path);
    return rc == 0 ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

static int on_access(sqlite3_vfs *vfs, const char *path, int flags, int *answer)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk_of(vfs), path, CN_DISK_READONLY, &file);
    *answer = rc == 0;
    if (rc == 0)
        cn_disk_close(file);
    return rc == 0 || rc == -ENOENT ? SQLITE_OK : SQLITE_IOERR_ACCESS;
}

struct cn_diskvfs *cn_diskvfs_new(struct cn_disk *disk, const char *name)
{
    struct cn_diskvfs *vfs = CN_NEW(struct cn_diskvfs);
    vfs->disk = disk;
    cn_sqlite_vfs_init(&vfs->base, name, sizeof(struct disk_file), vfs);
    vfs->base.xOpen = on_open;
    vfs->base.xDelete = on_delete;
    vfs->base.xAccess = on_access;
    (void)sqlite3_vfs_register(&vfs->base, 0); /* fails only before cn_sqlite_setup() */
    return vfs;
}

void cn_diskvfs_free(struct cn_diskvfs *vfs)
{
    if (!vfs)
        return;
    (void)sqlite3_vfs_unregister(&vfs->base);
    cn_free(vfs);
}
