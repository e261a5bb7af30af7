/* SPDX-License-Identifier: Apache-2.0 */
#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/mem.h"

struct system_disk {
    struct cn_disk base;
    int root_fd;
};

struct system_file {
    struct cn_disk_file base;
    int fd;
};

static int root_fd(const struct cn_disk *disk)
{
    return ((const struct system_disk *)disk)->root_fd;
}

static int file_fd(const struct cn_disk_file *file)
{
    return ((const struct system_file *)file)->fd;
}

/* Runs a system call again while a signal interrupts it. */
#define RETRY(call)                            \
    ({                                         \
        __typeof__(call) result_;              \
        do                                     \
            result_ = (call);                  \
        while (result_ < 0 && errno == EINTR); \
        result_;                               \
    })

static int system_open(struct cn_disk *disk, const char *path, int flags,
                       struct cn_disk_file **file)
{
    int os_flags = O_CLOEXEC | O_NOFOLLOW;
    os_flags |= flags & CN_DISK_READONLY ? O_RDONLY : O_RDWR;
    if (flags & CN_DISK_CREATE)
        os_flags |= O_CREAT;
    if (flags & CN_DISK_EXCLUSIVE)
        os_flags |= O_EXCL;
    if (flags & CN_DISK_TRUNCATE)
        os_flags |= O_TRUNC;
    int fd = RETRY(openat(root_fd(disk), path, os_flags, 0600));
    if (fd < 0)
        return -errno;
    struct system_file *opened = CN_NEW(struct system_file);
    opened->base.disk = disk;
    opened->fd = fd;
    *file = &opened->base;
    return 0;
}

static void system_close(struct cn_disk_file *file)
{
    (void)close(file_fd(file)); /* what had to survive was synced before; nothing is left to fail */
    cn_free(file);
}

static int64_t system_read(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n =
            RETRY(pread(file_fd(file), (char *)bytes + done, size - done, (off_t)(offset + done)));
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (int64_t)done;
}

static int64_t system_read_now(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset)
{
    struct iovec part = {bytes, size};
    ssize_t n = RETRY(preadv2(file_fd(file), &part, 1, (off_t)offset, RWF_NOWAIT));
    if (n < 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return -errno;
    return n == (ssize_t)size ? n : -EAGAIN;
}

static int64_t system_write(struct cn_disk_file *file, const struct iovec *parts, int part_count,
                            uint64_t offset)
{
    int count = part_count < IOV_MAX ? part_count : IOV_MAX;
    ssize_t n = RETRY(pwritev(file_fd(file), parts, count, (off_t)offset));
    return n < 0 ? -errno : n;
}

static int system_sync_data(struct cn_disk_file *file)
{
    cn_may_block_here();
    return RETRY(fdatasync(file_fd(file))) < 0 ? -errno : 0;
}

static int system_truncate(struct cn_disk_file *file, uint64_t size)
{
    return RETRY(ftruncate(file_fd(file), (off_t)size)) < 0 ? -errno : 0;
}

static int64_t system_size(struct cn_disk_file *file)
{
    struct stat st;
    return fstat(file_fd(file), &st) < 0 ? -errno : st.st_size;
}

static int system_allocate(struct cn_disk_file *file, uint64_t offset, uint64_t size)
{
    if (RETRY(fallocate(file_fd(file), 0, (off_t)offset, (off_t)size)) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return -errno;
    /* This file system reserves nothing: keep the promise about the size. */
    int64_t present = system_size(file);
    if (present < 0)
        return (int)present;
    return (uint64_t)present < offset + size ? system_truncate(file, offset + size) : 0;
}

static int system_rename(struct cn_disk *disk, const char *from, const char *to)
{
    return renameat(root_fd(disk), from, root_fd(disk), to) < 0 ? -errno : 0;
}

static int system_unlink(struct cn_disk *disk, const char *path)
{
    if (unlinkat(root_fd(disk), path, 0) == 0)
        return 0;
    if (errno == EISDIR && unlinkat(root_fd(disk), path, AT_REMOVEDIR) == 0)
        return 0;
    return -errno;
}

static int system_mkdir(struct cn_disk *disk, const char *path)
{
    return mkdirat(root_fd(disk), path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_dir(struct cn_disk *disk, const char *path)
{
    int fd = RETRY(openat(root_fd(disk), path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd < 0 ? -errno : fd;
}

static int system_sync_dir(struct cn_disk *disk, const char *path)
{
    cn_may_block_here();
    int fd = open_dir(disk, path);
    if (fd < 0)
        return fd;
    int rc = RETRY(fsync(fd)) < 0 ? -errno : 0;
    (void)close(fd); /* opened for reading: nothing to lose */
    return rc;
}

static int system_sync_all(struct cn_disk *disk)
{
    cn_may_block_here();
    return RETRY(syncfs(root_fd(disk))) < 0 ? -errno : 0;
}

static bool entry_is_dir(int fd, const struct dirent *entry)
{
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    struct stat st;
    return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int system_list(struct cn_disk *disk, const char *path,
                       void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    int fd = open_dir(disk, path);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int rc = -errno;
        (void)close(fd);
        return rc;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(data, entry->d_name, entry_is_dir(fd, entry));
    }
    int rc = -errno;
    closedir(dir);
    return rc;
}

static int system_lock(struct cn_disk_file *file)
{
    return RETRY(flock(file_fd(file), LOCK_EX | LOCK_NB)) < 0 ? -errno : 0;
}

static uint64_t system_space(struct cn_disk *disk)
{
    struct statvfs st;
    return fstatvfs(root_fd(disk), &st) < 0 ? UINT64_MAX : (uint64_t)st.f_bavail * st.f_frsize;
}

static const struct cn_disk_ops system_ops = {
    .open = system_open,
    .close = system_close,
    .read = system_read,
    .read_now = system_read_now,
    .write = system_write,
    .sync_data = system_sync_data,
    .truncate = system_truncate,
    .allocate = system_allocate,
    .size = system_size,
    .rename = system_rename,
    .unlink = system_unlink,
    .mkdir = system_mkdir,
    .sync_dir = system_sync_dir,
    .sync_all = system_sync_all,
    .list = system_list,
    .lock = system_lock,
    .space = system_space,
};

struct cn_disk *cn_disk_system_new(const char *root)
{
    int fd = RETRY(open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return NULL;
    struct system_disk *disk = CN_NEW(struct system_disk);
    disk->base.ops = &system_ops;
    disk->root_fd = fd;
    return &disk->base;
}

void cn_disk_system_free(struct cn_disk *disk)
{
    if (!disk)
        return;
    CN_ASSERT(disk->ops == &system_ops);
    (void)close(root_fd(disk));
    cn_free(disk);
}

/* Goes up from `fd`, which it closes, until there is no folder above. */
static bool is_below(int fd, const struct stat *root)
{
    struct stat here, last = {0};
    bool found = false;
    while (fd >= 0 && !found && fstat(fd, &here) == 0 &&
           (here.st_ino != last.st_ino || here.st_dev != last.st_dev)) {
        found = here.st_ino == root->st_ino && here.st_dev == root->st_dev;
        int above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        (void)close(fd); /* nothing was written by it */
        fd = above;
        last = here;
    }
    if (fd >= 0)
        (void)close(fd); /* as above */
    return found;
}

bool cn_disk_is_inside(const char *path, const char *root)
{
    struct stat outer;
    if (stat(root, &outer) < 0)
        return false;
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        char *copy = cn_strdup(path);
        size_t size = strlen(copy);
        while (size > 1 && copy[size - 1] == '/')
            copy[--size] = 0;
        char *slash = strrchr(copy, '/');
        if (slash)
            slash[slash == copy] = 0;
        fd = open(slash ? copy : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cn_free(copy);
    }
    return is_below(fd, &outer);
}

int cn_disk_writev_all(struct cn_disk_file *file, struct iovec *parts, int part_count,
                       uint64_t offset)
{
    while (part_count > 0) {
        if (parts->iov_len == 0) {
            parts++, part_count--;
            continue;
        }
        int64_t n = cn_disk_write(file, parts, part_count, offset);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return -EIO; /* no progress and no reason given: looping on it would never end */
        offset += (uint64_t)n;
        size_t left = (size_t)n;
        while (part_count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            parts++, part_count--;
        }
        if (part_count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return 0;
}

int cn_disk_write_all(struct cn_disk_file *file, const void *bytes, size_t size, uint64_t offset)
{
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    return cn_disk_writev_all(file, &part, 1, offset);
}

int cn_disk_sync_parent(struct cn_disk *disk, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return cn_disk_sync_dir(disk, "");
    char *parent = cn_strndup(path, (size_t)(slash - path));
    int rc = cn_disk_sync_dir(disk, parent);
    cn_free(parent);
    return rc;
}

bool cn_disk_has(struct cn_disk *disk, const char *path)
{
    struct cn_disk_file *file;
    if (cn_disk_open(disk, path, CN_DISK_READONLY, &file) < 0)
        return false;
    cn_disk_close(file);
    return true;
}

int cn_disk_mkdirs(struct cn_disk *disk, const char *path)
{
    /* Each name was synced before anything was made below it; only the last may not have been, if
     * its maker was killed. */
    struct cn_disk_file *there;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &there);
    if (rc == 0)
        cn_disk_close(there);
    if (rc == 0 || rc == -EISDIR)
        return cn_disk_sync_parent(disk, path);
    if (rc != -ENOENT)
        return rc;
    char *copy = cn_strdup(path);
    rc = 0;
    for (char *at = copy; rc == 0 && at;) {
        char *slash = strchr(at, '/');
        if (slash)
            *slash = '\0';
        if (*at)
            rc = cn_disk_mkdir(disk, copy);
        if (rc == 0 && *at)
            rc = cn_disk_sync_parent(disk, copy);
        if (slash)
            *slash = '/';
        at = slash ? slash + 1 : NULL;
    }
    cn_free(copy);
    return rc;
}

int cn_disk_replace(struct cn_disk *disk, const char *path, const void *bytes, size_t size)
{
    char *tmp = cn_sprintf("%s.tmp", path);
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, tmp, CN_DISK_CREATE | CN_DISK_TRUNCATE, &file);
    if (rc < 0)
        goto free_tmp;
    rc = cn_disk_write_all(file, bytes, size, 0);
    if (rc == 0)
        rc = cn_disk_sync_data(file);
    cn_disk_close(file);
    if (rc == 0)
        rc = cn_disk_rename(disk, tmp, path);
    if (rc == 0)
        rc = cn_disk_sync_parent(disk, path);
free_tmp:
    cn_free(tmp);
    return rc;
}

static void add_entry(void *data, const char *name, bool is_dir)
{
    struct cn_disk_entries *entries = data;
    CN_GROW_COUNTED(entries->items, entries->count);
    entries->items[entries->count++] = (struct cn_disk_entry){cn_strdup(name), is_dir};
}

static int entry_order(const void *a, const void *b)
{
    return strcmp(((const struct cn_disk_entry *)a)->name, ((const struct cn_disk_entry *)b)->name);
}

int cn_disk_entries(struct cn_disk *disk, const char *path, struct cn_disk_entries *entries)
{
    *entries = (struct cn_disk_entries){0};
    int rc = cn_disk_list(disk, path, add_entry, entries);
    if (rc < 0)
        cn_disk_entries_fini(entries);
    else if (entries->count > 1)
        qsort(entries->items, entries->count, sizeof(entries->items[0]), entry_order);
    return rc;
}

void cn_disk_entries_fini(struct cn_disk_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        cn_free(entries->items[i].name);
    cn_free(entries->items);
    *entries = (struct cn_disk_entries){0};
}

int cn_disk_walk(struct cn_disk *disk, const char *path, int (*each)(void *data, const char *path),
                 void *data)
{
    struct cn_disk_entries entries;
    int rc = cn_disk_entries(disk, path, &entries);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    for (size_t i = 0; rc >= 0 && i < entries.count; i++) {
        const struct cn_disk_entry *entry = &entries.items[i];
        char *full = path[0] ? cn_sprintf("%s/%s", path, entry->name) : cn_strdup(entry->name);
        rc = entry->is_dir ? cn_disk_walk(disk, full, each, data) : each(data, full);
        cn_free(full);
    }
    cn_disk_entries_fini(&entries);
    return rc;
}
