/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subdisk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { PATH_SIZE = 512 };

struct sub {
    struct cn_disk base;
    struct cn_disk *below; /* borrowed */
    char *folder;          /* owned */
};

static struct sub *sub_of(struct cn_disk *disk)
{
    return (struct sub *)disk;
}

/* The path below; -ENAMETOOLONG. */
static int path_below(const struct sub *sub, const char *path, char out[PATH_SIZE])
{
    int size = snprintf(out, PATH_SIZE, "%s%s%s", sub->folder, *path ? "/" : "", path);
    return size < PATH_SIZE ? 0 : -ENAMETOOLONG;
}

static int sub_open(struct cn_disk *disk, const char *path, int flags, struct cn_disk_file **file)
{
    char below[PATH_SIZE];
    int rc = path_below(sub_of(disk), path, below);
    return rc < 0 ? rc : cn_disk_open(sub_of(disk)->below, below, flags, file);
}

static int sub_rename(struct cn_disk *disk, const char *from, const char *to)
{
    char below_from[PATH_SIZE], below_to[PATH_SIZE];
    int rc = path_below(sub_of(disk), from, below_from);
    if (rc == 0)
        rc = path_below(sub_of(disk), to, below_to);
    return rc < 0 ? rc : cn_disk_rename(sub_of(disk)->below, below_from, below_to);
}

static int sub_unlink(struct cn_disk *disk, const char *path)
{
    char below[PATH_SIZE];
    int rc = path_below(sub_of(disk), path, below);
    return rc < 0 ? rc : cn_disk_unlink(sub_of(disk)->below, below);
}

static int sub_mkdir(struct cn_disk *disk, const char *path)
{
    char below[PATH_SIZE];
    int rc = path_below(sub_of(disk), path, below);
    return rc < 0 ? rc : cn_disk_mkdir(sub_of(disk)->below, below);
}

static int sub_sync_dir(struct cn_disk *disk, const char *path)
{
    char below[PATH_SIZE];
    int rc = path_below(sub_of(disk), path, below);
    return rc < 0 ? rc : cn_disk_sync_dir(sub_of(disk)->below, below);
}

static int sub_sync_all(struct cn_disk *disk)
{
    return cn_disk_sync_all(sub_of(disk)->below);
}

static int sub_list(struct cn_disk *disk, const char *path,
                    void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    char below[PATH_SIZE];
    int rc = path_below(sub_of(disk), path, below);
    return rc < 0 ? rc : cn_disk_list(sub_of(disk)->below, below, each, data);
}

/* What is asked of a file is asked of the disk that opened it, which is the one below. */
static const struct cn_disk_ops sub_ops = {
    .open = sub_open,
    .rename = sub_rename,
    .unlink = sub_unlink,
    .mkdir = sub_mkdir,
    .sync_dir = sub_sync_dir,
    .sync_all = sub_sync_all,
    .list = sub_list,
};

struct cn_disk *cn_disk_sub_new(struct cn_disk *below, const char *folder)
{
    struct sub *sub = CN_NEW(struct sub);
    sub->base.ops = &sub_ops;
    sub->below = below;
    sub->folder = cn_strndup(folder, strlen(folder));
    return &sub->base;
}

void cn_disk_sub_free(struct cn_disk *disk)
{
    cn_free(sub_of(disk)->folder);
    cn_free(disk);
}
