/* SPDX-License-Identifier: Apache-2.0 */
/* base/disk.h - files, behind a small interface so that tests can own the disk.
 *
 * Everything that must survive a crash goes through a struct cn_disk: the real
 * one (cn_disk_system) or a simulated one that forgets, tears and reorders
 * unsynced writes and fails the n-th operation (test/lib/simdisk.h).
 *
 * Paths are relative to the root given at creation, '/'-separated, without
 * "." or ".."; "" is the root itself. Every function returns 0 or a count on success and a negative
 * errno value (-ENOSPC, -EIO, ...) on failure; callers add the sentence.
 *
 * What survives a power loss is what POSIX and ext4 promise and no more:
 *   D1  written data after sync() or sync_data() of its file;
 *   D2  a file's name (create, rename, unlink) after sync_dir() of its folder;
 *   D3  anything not synced may survive whole, in part (by 512-byte sector),
 *       in any order, or not at all.
 *
 * Threads: all functions from any thread; one file from one thread at a time,
 * except that read() may run beside anything. */
#ifndef CN_BASE_DISK_H
#define CN_BASE_DISK_H
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct cn_disk;

/* An open file. Implementations put this first in their own struct. */
struct cn_disk_file {
    struct cn_disk *disk;
};

enum cn_disk_flags {
    CN_DISK_CREATE = 1,    /* create it if absent */
    CN_DISK_EXCLUSIVE = 2, /* with CREATE: fail with -EEXIST if present */
    CN_DISK_READONLY = 4,
    CN_DISK_TRUNCATE = 8,
};

struct cn_disk_ops {
    int (*open)(struct cn_disk *disk, const char *path, int flags, struct cn_disk_file **file);
    void (*close)(struct cn_disk_file *file);
    /* May return fewer bytes than asked only at the end of the file. */
    int64_t (*read)(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset);
    /* The same if memory has all of it; -EAGAIN: it would have to wait, or may not tell. May be
     * NULL. */
    int64_t (*read_now)(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset);
    /* May write fewer bytes than asked (a short write), as write(2) does. */
    int64_t (*write)(struct cn_disk_file *file, const struct iovec *parts, int part_count,
                     uint64_t offset);
    int (*sync_data)(struct cn_disk_file *file); /* fdatasync: data and size */
    int (*truncate)(struct cn_disk_file *file, uint64_t size);
    /* Reserves space. Afterwards the file has at least offset + size bytes; new ones are zero. */
    int (*allocate)(struct cn_disk_file *file, uint64_t offset, uint64_t size);
    int64_t (*size)(struct cn_disk_file *file);
    int (*rename)(struct cn_disk *disk, const char *from, const char *to); /* replaces `to` */
    int (*unlink)(struct cn_disk *disk, const char *path); /* a file, or an empty folder */
    int (*mkdir)(struct cn_disk *disk, const char *path);  /* existing is success */
    int (*sync_dir)(struct cn_disk *disk, const char *path);
    /* syncfs: every file and folder of this disk, as if each were synced alone. */
    int (*sync_all)(struct cn_disk *disk);
    /* Calls back for each entry of a folder (not "." and ".."), in no order. */
    int (*list)(struct cn_disk *disk, const char *path,
                void (*each)(void *data, const char *name, bool is_dir), void *data);
    /* Takes an exclusive lock on the file for this process; -EAGAIN if another has it. */
    int (*lock)(struct cn_disk_file *file);
    /* Bytes that are free. May be NULL. Does not wait. */
    uint64_t (*space)(struct cn_disk *disk);
};

struct cn_disk {
    const struct cn_disk_ops *ops;
};

/* Bytes that are free; UINT64_MAX if it cannot be told. */
static inline uint64_t cn_disk_space(struct cn_disk *disk)
{
    return disk->ops->space ? disk->ops->space(disk) : UINT64_MAX;
}

/* The real disk below `root`, which must exist; NULL with errno set otherwise. */
struct cn_disk *cn_disk_system_new(const char *root);
void cn_disk_system_free(struct cn_disk *disk);
/* Whether the folder `path`, or if it is not there the one that it would be made in, is the folder
 * `root` or below it, whatever links lead there. A path that leads nowhere is not. */
bool cn_disk_is_inside(const char *path, const char *root);

static inline int cn_disk_open(struct cn_disk *disk, const char *path, int flags,
                               struct cn_disk_file **file)
{
    return disk->ops->open(disk, path, flags, file);
}

static inline void cn_disk_close(struct cn_disk_file *file)
{
    file->disk->ops->close(file);
}

static inline int64_t cn_disk_read(struct cn_disk_file *file, void *bytes, size_t size,
                                   uint64_t offset)
{
    return file->disk->ops->read(file, bytes, size, offset);
}

static inline int64_t cn_disk_read_now(struct cn_disk_file *file, void *bytes, size_t size,
                                       uint64_t offset)
{
    const struct cn_disk_ops *ops = file->disk->ops;
    return ops->read_now ? ops->read_now(file, bytes, size, offset) : -EAGAIN;
}

static inline int64_t cn_disk_write(struct cn_disk_file *file, const struct iovec *parts,
                                    int part_count, uint64_t offset)
{
    return file->disk->ops->write(file, parts, part_count, offset);
}

static inline int cn_disk_sync_data(struct cn_disk_file *file)
{
    return file->disk->ops->sync_data(file);
}

static inline int cn_disk_truncate(struct cn_disk_file *file, uint64_t size)
{
    return file->disk->ops->truncate(file, size);
}

static inline int cn_disk_allocate(struct cn_disk_file *file, uint64_t offset, uint64_t size)
{
    return file->disk->ops->allocate(file, offset, size);
}

static inline int64_t cn_disk_size(struct cn_disk_file *file)
{
    return file->disk->ops->size(file);
}

static inline int cn_disk_lock(struct cn_disk_file *file)
{
    return file->disk->ops->lock(file);
}

static inline int cn_disk_rename(struct cn_disk *disk, const char *from, const char *to)
{
    return disk->ops->rename(disk, from, to);
}

static inline int cn_disk_unlink(struct cn_disk *disk, const char *path)
{
    return disk->ops->unlink(disk, path);
}

static inline int cn_disk_mkdir(struct cn_disk *disk, const char *path)
{
    return disk->ops->mkdir(disk, path);
}

static inline int cn_disk_sync_dir(struct cn_disk *disk, const char *path)
{
    return disk->ops->sync_dir(disk, path);
}

static inline int cn_disk_sync_all(struct cn_disk *disk)
{
    return disk->ops->sync_all(disk);
}

static inline int cn_disk_list(struct cn_disk *disk, const char *path,
                               void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    return disk->ops->list(disk, path, each, data);
}

/* Loops over short writes. 0, or the first error. */
int cn_disk_write_all(struct cn_disk_file *file, const void *bytes, size_t size, uint64_t offset);
/* The same for several pieces; changes `parts` on the way. */
int cn_disk_writev_all(struct cn_disk_file *file, struct iovec *parts, int part_count,
                       uint64_t offset);
/* Whether a file can be opened. */
bool cn_disk_has(struct cn_disk *disk, const char *path);
/* Creates every missing folder of `path`; when it returns 0, all their names are synced. */
int cn_disk_mkdirs(struct cn_disk *disk, const char *path);

/* The entries of a folder, sorted by name. */
struct cn_disk_entries {
    struct cn_disk_entry {
        char *name; /* owned */
        bool is_dir;
    } * items; /* owned */
    size_t count;
};
int cn_disk_entries(struct cn_disk *disk, const char *path, struct cn_disk_entries *entries);
void cn_disk_entries_fini(struct cn_disk_entries *entries);
/* Calls back with the path of every file below the folder `path`, in order. A folder that
 * is not there is empty. A negative return ends the walk and is returned. */
int cn_disk_walk(struct cn_disk *disk, const char *path, int (*each)(void *data, const char *path),
                 void *data);
/* Syncs the folder that holds `path`. */
int cn_disk_sync_parent(struct cn_disk *disk, const char *path);
/* Replaces `path` by these bytes so that a crash leaves the old or the new contents: writes
 * `path`.tmp, syncs, renames, syncs the folder. */
int cn_disk_replace(struct cn_disk *disk, const char *path, const void *bytes, size_t size);

#endif
