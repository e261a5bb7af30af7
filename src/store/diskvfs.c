/* SPDX-License-Identifier: Apache-2.0 */
/* store/diskvfs.c - SQLite on a struct cn_disk as it is: its own journal, its own syncs.
 *
 * One connection per file, so locks do nothing. A file that is made is synced
 * into its folder at once: SQLite relies on the name of a journal being durable.
 *
 * S1  A database whose header reserves CN_DISKVFS_SEAL bytes per page has in them 4 zeros and the
 *     CRC of the page's number and of all that stands before it. A page of zeros was never
 *     written, and is good.
 * S2  The seal is set in SQLite's own buffer (it never looks at reserved bytes), so the pages in
 *     its journal, which are those of its cache, have theirs; they are compared when a journal is
 *     played back.
 * S3  A page that does not match is SQLITE_CORRUPT, for whoever reads that page. */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "store/record.h"
#include "store/sqlite.h"

enum {
    HEADER_SIZE = 100,
    HEADER_RESERVED = 20, /* the byte of a database's header that says how many are reserved */
    CRC_AT = CN_PAGE_SIZE - 4,
};

struct cn_diskvfs {
    sqlite3_vfs base;
    struct cn_disk *disk;
};

struct disk_file {
    sqlite3_file base;
    struct cn_disk_file *file; /* owned */
    bool journal;
    bool sealed;          /* S1 */
    struct disk_file *of; /* a journal's database, which is open for longer */
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

/* ---- Seals ---- */

static uint32_t seal_of(const uint8_t *page, uint32_t page_no)
{
    uint8_t number[4] = {(uint8_t)page_no, (uint8_t)(page_no >> 8), (uint8_t)(page_no >> 16),
                         (uint8_t)(page_no >> 24)};
    return cn_crc32c(cn_crc32c(0, number, sizeof(number)), page, CRC_AT);
}

static bool is_zeros(const uint8_t *page)
{
    return page[0] == 0 && memcmp(page, page + 1, CN_PAGE_SIZE - 1) == 0;
}

bool cn_diskvfs_page_good(const uint8_t *page, uint32_t page_no)
{
    uint32_t crc;
    memcpy(&crc, page + CRC_AT, sizeof(crc));
    return crc == seal_of(page, page_no) || is_zeros(page);
}

void cn_diskvfs_page_seal(uint8_t *page, uint32_t page_no)
{
    memset(page + CRC_AT - 4, 0, 4);
    uint32_t crc = seal_of(page, page_no);
    memcpy(page + CRC_AT, &crc, sizeof(crc));
}

/* What the first page says: 1 or 0, which is said of a file that has none yet; negative if it
 * cannot be read: to go on without the seals would spoil those that are there. */
static int header_sealed(struct cn_disk_file *file)
{
    uint8_t header[HEADER_RESERVED + 1];
    int64_t got = cn_disk_read(file, header, sizeof(header), 0);
    if (got < 0)
        return (int)got;
    return got == sizeof(header) && header[HEADER_RESERVED] == CN_DISKVFS_SEAL;
}

/* The whole page around a read of a part of it, compared. */
static int read_page(struct disk_file *file, void *bytes, int size, sqlite3_int64 offset)
{
    uint8_t page[CN_PAGE_SIZE];
    uint32_t page_no = (uint32_t)(offset / CN_PAGE_SIZE) + 1;
    size_t at = (size_t)(offset % CN_PAGE_SIZE);
    int64_t got = cn_disk_read(file->file, page, CN_PAGE_SIZE, (uint64_t)offset - at);
    if (got < 0)
        return SQLITE_IOERR_READ;
    if (got < CN_PAGE_SIZE) { /* behind the end */
        memset(bytes, 0, (size_t)size);
        return SQLITE_IOERR_SHORT_READ;
    }
    if (!cn_diskvfs_page_good(page, page_no))
        return SQLITE_CORRUPT;
    memcpy(bytes, page + at, (size_t)size);
    return SQLITE_OK;
}

/* S2: a page in a journal follows its number. A number that cannot be read makes no page good. */
static int check_journal_page(struct disk_file *file, const uint8_t *page, sqlite3_int64 offset)
{
    uint8_t number[4];
    if (offset < 4)
        return SQLITE_OK; /* no page: the journal's header */
    if (cn_disk_read(file->file, number, 4, (uint64_t)offset - 4) != 4)
        return SQLITE_IOERR_READ; /* the page behind it has been read, so it is not too short */
    uint32_t page_no = (uint32_t)number[0] << 24 | (uint32_t)number[1] << 16 |
                       (uint32_t)number[2] << 8 | number[3];
    return cn_diskvfs_page_good(page, page_no) ? SQLITE_OK : SQLITE_CORRUPT;
}

/* ---- File methods ---- */

static int on_read(sqlite3_file *base, void *bytes, int size, sqlite3_int64 offset)
{
    struct disk_file *file = (struct disk_file *)base;
    /* Before it looks for a journal SQLite reads the header alone, to guess the size of a page; it
     * reads the page again when that has been played back. */
    bool guess = offset == 0 && size == HEADER_SIZE;
    if (file->sealed && !guess && offset % CN_PAGE_SIZE + size <= CN_PAGE_SIZE)
        return read_page(file, bytes, size, offset);
    int64_t got = cn_disk_read(file->file, bytes, (size_t)size, (uint64_t)offset);
    if (got < 0)
        return SQLITE_IOERR_READ;
    if (got < size) {
        memset((char *)bytes + got, 0, (size_t)(size - got));
        return SQLITE_IOERR_SHORT_READ;
    }
    if (file->of && file->of->sealed && size == CN_PAGE_SIZE)
        return check_journal_page(file, bytes, offset);
    return SQLITE_OK;
}

static int on_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 offset)
{
    struct disk_file *file = (struct disk_file *)base;
    if (!file->journal && size == CN_PAGE_SIZE) {
        uint8_t *page = (uint8_t *)bytes; /* SQLite's own: S2 */
        if (offset == 0)
            file->sealed = page[HEADER_RESERVED] == CN_DISKVFS_SEAL;
        if (file->sealed)
            cn_diskvfs_page_seal(page, (uint32_t)(offset / CN_PAGE_SIZE) + 1);
    }
    int rc = cn_disk_write_all(file->file, bytes, (size_t)size, (uint64_t)offset);
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
    file->journal = flags & SQLITE_OPEN_MAIN_JOURNAL;
    int sealed = file->journal ? 0 : header_sealed(file->file);
    if (sealed < 0) {
        cn_disk_close(file->file);
        return SQLITE_IOERR_READ;
    }
    if (out_flags)
        *out_flags = flags;
    file->base.pMethods = &file_methods;
    file->sealed = sealed;
    file->of = file->journal ? (struct disk_file *)sqlite3_database_file_object(path) : NULL;
    return SQLITE_OK;
}

bool cn_diskvfs_sealed(sqlite3 *connection)
{
    struct disk_file *file = NULL;
    return sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file) ==
               SQLITE_OK &&
           file->sealed;
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
