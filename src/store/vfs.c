/* SPDX-License-Identifier: Apache-2.0 */
/* store/vfs.c - captures the pages of a commit.
 *
 * Connections run with journal_mode=MEMORY, locking_mode=EXCLUSIVE and
 * synchronous=OFF. SQLite's pager then writes to the file in three cases only:
 *
 *   commit     the changed pages, then SQLITE_FCNTL_SYNC, before it forgets its
 *              journal: the moment at which the commit may still fail
 *   spill      some changed pages in the middle of a transaction, when its cache is full
 *   roll-back  the old content of pages that were spilled, or whose commit
 *              failed, then SQLITE_FCNTL_SYNC too
 *
 * F1  Whatever is written lands in `pending`; reads look there first.
 * F2  SQLITE_FCNTL_SYNC is a commit exactly if the commit hook ran since the
 *     last one. Then `pending` goes to the log; otherwise it is a roll-back,
 *     after which the database equals the image, and `pending` is dropped.
 * F3  If the log refuses, `pending` is dropped and SQLite told so; its roll-back follows.
 *
 * SQLite asks for the journal and for temporary files of a transaction only with
 * other settings; the VFS refuses them. */
#include "store/vfs.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "store/image.h"

enum { HEADER_SIZE = 100 }; /* of an SQLite database */

static const char vfs_name[] = "cairn";

struct cn_vfs_file {
    sqlite3_file base;
    struct cn_image *image;           /* borrowed */
    struct cn_pagemap pending;        /* F1; owns the bytes */
    uint32_t page_count;              /* as SQLite sees it */
    bool reset;                       /* the image's pages are not ours: the database starts anew */
    bool committing;                  /* F2 */
    bool logged;                      /* the last commit wrote a record */
    uint64_t lsn;                     /* of that record */
    const struct cn_image_meta *meta; /* borrowed during COMMIT */
    struct cn_err *refusal;           /* owned; NULL unless the log refused */
    struct cn_err *damage;            /* owned; NULL unless a page did not match its checksum */
};

static struct cn_vfs_file *file_of(sqlite3_file *base)
{
    return (struct cn_vfs_file *)base;
}

static void pending_drop(struct cn_vfs_file *file)
{
    uint32_t cursor = 0;
    for (struct cn_page *page; (page = cn_pagemap_next(&file->pending, &cursor));)
        cn_image_page_free(page->bytes);
    cn_pagemap_clear(&file->pending);
    file->page_count = file->reset || !file->image ? 0 : cn_image_page_count(file->image);
}

/* ---- File methods ---- */

static int on_close(sqlite3_file *base)
{
    struct cn_vfs_file *file = file_of(base);
    pending_drop(file);
    cn_free(file->refusal);
    cn_free(file->damage);
    return SQLITE_OK;
}

static int on_read(sqlite3_file *base, void *bytes, int size, sqlite3_int64 offset)
{
    struct cn_vfs_file *file = file_of(base);
    uint32_t page_no = (uint32_t)(offset / CN_PAGE_SIZE) + 1;
    uint32_t in_page = (uint32_t)(offset % CN_PAGE_SIZE);
    if (in_page + (uint32_t)size > CN_PAGE_SIZE)
        return SQLITE_IOERR_READ; /* SQLite reads page by page */
    if (page_no > file->page_count) {
        memset(bytes, 0, (size_t)size);
        return SQLITE_IOERR_SHORT_READ;
    }
    struct cn_page *page = cn_pagemap_find(&file->pending, page_no);
    if (page) {
        memcpy(bytes, page->bytes + in_page, (size_t)size);
        return SQLITE_OK;
    }
    if (file->reset) {
        memset(bytes, 0, (size_t)size);
        return SQLITE_OK;
    }
    struct cn_err err;
    int rc = cn_image_read(file->image, page_no, in_page, (uint32_t)size, bytes, &err);
    if (rc == CN_ECORRUPT) {
        if (!file->damage)
            file->damage = CN_NEW(struct cn_err);
        *file->damage = err;
        if (offset == 0 && size == HEADER_SIZE) {
            /* When it opens a database SQLite only guesses the size of its pages from this; whoever
             * reads the page then is told. */
            memset(bytes, 0, (size_t)size);
            return SQLITE_OK;
        }
    }
    return rc == 0 ? SQLITE_OK : rc == CN_ECORRUPT ? SQLITE_CORRUPT : SQLITE_IOERR_READ;
}

static int on_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 offset)
{
    struct cn_vfs_file *file = file_of(base);
    if (size != CN_PAGE_SIZE || offset % CN_PAGE_SIZE != 0)
        return SQLITE_IOERR_WRITE; /* another page size: not a database of ours */
    if (file->pending.count >= cn_image_commit_pages_max(file->image))
        return SQLITE_FULL;
    uint32_t page_no = (uint32_t)(offset / CN_PAGE_SIZE) + 1;
    struct cn_page *page = cn_pagemap_add(&file->pending, page_no);
    if (!page->bytes)
        page->bytes = cn_image_page_new();
    memcpy(page->bytes, bytes, CN_PAGE_SIZE);
    if (page_no > file->page_count)
        file->page_count = page_no;
    return SQLITE_OK;
}

static void page_drop(void *data, const struct cn_page *page)
{
    cn_image_page_free(page->bytes);
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct cn_vfs_file *file = file_of(base);
    if (size % CN_PAGE_SIZE != 0)
        return SQLITE_IOERR_TRUNCATE;
    uint32_t page_count = (uint32_t)(size / CN_PAGE_SIZE);
    if (page_count < file->page_count)
        cn_pagemap_cut(&file->pending, page_count, page_drop, NULL);
    file->page_count = page_count;
    return SQLITE_OK;
}

static int on_sync(sqlite3_file *base, int flags)
{
    return SQLITE_OK; /* durability is the log's */
}

static int on_size(sqlite3_file *base, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)file_of(base)->page_count * CN_PAGE_SIZE;
    return SQLITE_OK;
}

/* F2, F3 */
static int commit_log(struct cn_vfs_file *file)
{
    struct cn_image_change change = {
        .pages = &file->pending,
        .pages_after = file->page_count,
        .flags = file->reset ? CN_COMMIT_RESET : 0,
        .meta = file->meta,
    };
    struct cn_err err = {0};
    file->committing = false;
    int rc = cn_image_commit(file->image, &change, &file->lsn, &err);
    if (rc == 0) {
        file->logged = true;
        file->reset = false;
        return SQLITE_OK;
    }
    if (!file->refusal)
        file->refusal = CN_NEW(struct cn_err);
    *file->refusal = err;
    pending_drop(file);
    return SQLITE_IOERR_FSYNC;
}

static int on_control(sqlite3_file *base, int op, void *arg)
{
    struct cn_vfs_file *file = file_of(base);
    if (op != SQLITE_FCNTL_SYNC)
        return SQLITE_NOTFOUND;
    if (file->committing)
        return commit_log(file);
    pending_drop(file);
    return SQLITE_OK;
}

static int on_sector_size(sqlite3_file *base)
{
    return CN_PAGE_SIZE;
}

static int on_characteristics(sqlite3_file *base)
{
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
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

/* ---- VFS methods ---- */

/* The name of a database is the address of its image and whether it is reset:
 * only cn_vfs_connect() makes such names, and no SQL can open a file. */
static const char name_format[] = "image-%p-%d";

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                   int *out_flags)
{
    struct cn_vfs_file *file = file_of(base);
    void *image;
    int reset;
    base->pMethods = NULL;
    if (!(flags & SQLITE_OPEN_MAIN_DB) || sscanf(name, name_format, &image, &reset) != 2)
        return SQLITE_CANTOPEN;
    *file = (struct cn_vfs_file){
        .base.pMethods = &file_methods,
        .image = image,
        .reset = reset != 0,
    };
    file->page_count = file->reset ? 0 : cn_image_page_count(image);
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    return SQLITE_IOERR_DELETE_NOENT;
}

static int on_access(sqlite3_vfs *vfs, const char *name, int flags, int *answer)
{
    *answer = 0; /* there are no journals */
    return SQLITE_OK;
}

static int on_commit_hook(void *data)
{
    ((struct cn_vfs_file *)data)->committing = true;
    return 0;
}

static void setup(void)
{
    static sqlite3_vfs vfs;
    cn_sqlite_vfs_init(&vfs, vfs_name, sizeof(struct cn_vfs_file), NULL);
    vfs.xOpen = on_open;
    vfs.xDelete = on_delete;
    vfs.xAccess = on_access;
    (void)sqlite3_vfs_register(&vfs, 0); /* fails only before cn_sqlite_setup() */
}

void cn_vfs_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, setup);
}

void cn_vfs_move(struct cn_vfs_file *file, struct cn_image *image)
{
    CN_ASSERT(file->pending.count == 0 && !file->reset && !file->committing);
    cn_free(file->refusal);
    cn_free(file->damage);
    file->refusal = file->damage = NULL;
    file->logged = false;
    file->lsn = 0;
    file->image = image;
    file->page_count = image ? cn_image_page_count(image) : 0;
}

int cn_vfs_connect(struct cn_image *image, bool reset, sqlite3 **connection,
                   struct cn_vfs_file **file, struct cn_err *err)
{
    char name[64];
    snprintf(name, sizeof(name), name_format, (void *)image, (int)reset);
    int rc =
        sqlite3_open_v2(name, connection,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs_name);
    if (rc == SQLITE_OK)
        rc = sqlite3_file_control(*connection, "main", SQLITE_FCNTL_FILE_POINTER, file);
    if (rc != SQLITE_OK) {
        int result = cn_sqlite_error(*connection, rc, err);
        (void)sqlite3_close(*connection); /* nothing is open in it */
        *connection = NULL;
        return result;
    }
    (void)sqlite3_commit_hook(*connection, on_commit_hook, *file);
    return 0;
}

void cn_vfs_commit_begin(struct cn_vfs_file *file, const struct cn_image_meta *meta)
{
    file->meta = meta;
    file->logged = false;
}

int cn_vfs_commit_end(struct cn_vfs_file *file, bool *logged, uint64_t *lsn, struct cn_err *err)
{
    file->meta = NULL;
    file->committing = false;
    *logged = file->logged;
    if (file->logged)
        *lsn = file->lsn;
    int rc = file->refusal ? file->refusal->code : 0;
    if (rc < 0 && err)
        *err = *file->refusal;
    cn_free(file->refusal);
    file->refusal = NULL;
    return rc;
}

bool cn_vfs_damage_take(struct cn_vfs_file *file, struct cn_err *err)
{
    if (!file->damage)
        return false;
    if (err)
        *err = *file->damage;
    cn_free(file->damage);
    file->damage = NULL;
    return true;
}

uint32_t cn_vfs_page_count(const struct cn_vfs_file *file)
{
    return file->page_count;
}
