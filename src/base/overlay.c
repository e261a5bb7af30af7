/* SPDX-License-Identifier: Apache-2.0 */
#include "base/overlay.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "base/mem.h"

enum { BLOCK = 4096 };

struct node {
    unsigned refs;              /* names and open files */
    bool is_dir;                /* a folder made here */
    struct cn_disk_file *below; /* owned; NULL: the file began here */
    uint64_t below_size;        /* so much of the file below is still seen */
    uint64_t size;
    struct cn_map blocks; /* block number -> bytes, owned */
};

/* Stands for a name of the disk below that is gone here. */
static struct node removed;

struct overlay {
    struct cn_disk base;
    struct cn_disk *below; /* borrowed */
    pthread_mutex_t lock;  /* guards the rest, and every node */
    struct cn_map names;   /* path -> struct node, or &removed; absent: as below */
};

struct overlay_file {
    struct cn_disk_file base;
    struct node *node;
    bool readonly;
};

static struct overlay *of(struct cn_disk *disk)
{
    return CN_CONTAINER_OF(disk, struct overlay, base);
}

static struct overlay_file *file_of(struct cn_disk_file *file)
{
    return CN_CONTAINER_OF(file, struct overlay_file, base);
}

static struct node *node_new(void)
{
    struct node *node = CN_NEW(struct node);
    cn_map_init(&node->blocks);
    return node;
}

static void node_unref(struct node *node)
{
    if (!node || node == &removed || --node->refs > 0)
        return;
    const struct cn_map_entry *entry;
    for (size_t cursor = 0; cn_map_next(&node->blocks, &cursor, &entry);)
        cn_free(entry->value);
    cn_map_fini(&node->blocks);
    if (node->below)
        cn_disk_close(node->below);
    cn_free(node);
}

/* Makes `path` mean `node`. */
static void set_name(struct overlay *overlay, const char *path, struct node *node)
{
    if (node != &removed)
        node->refs++;
    node_unref(cn_map_set(&overlay->names, path, strlen(path), node));
}

/* The node of a path in *node, NULL if there is none; from the disk below if it was not used yet.
 */
static int find(struct overlay *overlay, const char *path, struct node **node)
{
    struct node *known = cn_map_find(&overlay->names, path, strlen(path));
    *node = known == &removed ? NULL : known;
    if (known)
        return 0;
    struct cn_disk_file *file;
    int rc = cn_disk_open(overlay->below, path, CN_DISK_READONLY, &file);
    if (rc == -ENOENT || rc == -ENOTDIR)
        return 0;
    if (rc < 0)
        return rc;
    int64_t size = cn_disk_size(file);
    if (size < 0) {
        cn_disk_close(file);
        return (int)size;
    }
    *node = node_new();
    (*node)->below = file;
    (*node)->size = (*node)->below_size = (uint64_t)size;
    set_name(overlay, path, *node);
    return 0;
}

/* ---- contents ---- */

/* Copies from the file below; zeros where it no longer reaches. */
static int read_below(struct node *node, uint8_t *bytes, size_t size, uint64_t offset)
{
    size_t count = 0;
    if (node->below && offset < node->below_size) {
        uint64_t left = node->below_size - offset;
        int64_t got = cn_disk_read(node->below, bytes, left < size ? left : size, offset);
        if (got < 0)
            return (int)got;
        count = (size_t)got;
    }
    memset(bytes + count, 0, size - count);
    return 0;
}

static int read_node(struct node *node, uint8_t *bytes, size_t size, uint64_t offset)
{
    while (size > 0) {
        uint64_t number = offset / BLOCK, inside = offset % BLOCK;
        size_t part = BLOCK - inside < size ? BLOCK - inside : size;
        const uint8_t *block = cn_map_find(&node->blocks, &number, sizeof(number));
        if (block) {
            memcpy(bytes, block + inside, part);
        } else {
            int rc = read_below(node, bytes, part, offset);
            if (rc < 0)
                return rc;
        }
        bytes += part;
        offset += part;
        size -= part;
    }
    return 0;
}

static int write_node(struct node *node, const uint8_t *bytes, size_t size, uint64_t offset)
{
    while (size > 0) {
        uint64_t number = offset / BLOCK, inside = offset % BLOCK;
        size_t part = BLOCK - inside < size ? BLOCK - inside : size;
        uint8_t *block = cn_map_find(&node->blocks, &number, sizeof(number));
        if (!block) {
            block = cn_try_alloc(BLOCK);
            if (!block)
                return -ENOMEM;
            int rc = read_below(node, block, BLOCK, number * BLOCK);
            if (rc < 0) {
                cn_free(block);
                return rc;
            }
            cn_map_set(&node->blocks, &number, sizeof(number), block);
        }
        memcpy(block + inside, bytes, part);
        bytes += part;
        offset += part;
        size -= part;
        node->size = offset > node->size ? offset : node->size;
    }
    return 0;
}

static void resize_node(struct node *node, uint64_t size)
{
    /* What lies beyond must read as zeros if the file grows again. */
    if (size < node->size) {
        for (uint64_t number = size / BLOCK; number * BLOCK < node->size; number++) {
            uint8_t *block = cn_map_find(&node->blocks, &number, sizeof(number));
            uint64_t start = number * BLOCK;
            if (block && start >= size)
                cn_free(cn_map_take(&node->blocks, &number, sizeof(number)));
            else if (block)
                memset(block + (size - start), 0, BLOCK - (size - start));
        }
        if (node->below_size > size)
            node->below_size = size;
    }
    node->size = size;
}

/* ---- operations ---- */

static int overlay_open(struct cn_disk *disk, const char *path, int flags,
                        struct cn_disk_file **file)
{
    struct overlay *overlay = of(disk);
    struct node *node;
    pthread_mutex_lock(&overlay->lock);
    int rc = find(overlay, path, &node);
    if (rc == 0 && node && node->is_dir)
        rc = -EISDIR;
    else if (rc == 0 && node && flags & CN_DISK_EXCLUSIVE)
        rc = -EEXIST;
    else if (rc == 0 && !node && !(flags & CN_DISK_CREATE))
        rc = -ENOENT;
    if (rc == 0) {
        if (!node) {
            node = node_new();
            set_name(overlay, path, node);
        }
        if (flags & CN_DISK_TRUNCATE)
            resize_node(node, 0);
        node->refs++;
        struct overlay_file *opened = CN_NEW(struct overlay_file);
        opened->base.disk = disk;
        opened->node = node;
        opened->readonly = flags & CN_DISK_READONLY;
        *file = &opened->base;
    }
    pthread_mutex_unlock(&overlay->lock);
    return rc;
}

static void overlay_close(struct cn_disk_file *file)
{
    struct overlay *overlay = of(file->disk);
    pthread_mutex_lock(&overlay->lock);
    node_unref(file_of(file)->node);
    pthread_mutex_unlock(&overlay->lock);
    cn_free(file_of(file));
}

static int64_t overlay_read(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset)
{
    struct overlay *overlay = of(file->disk);
    struct node *node = file_of(file)->node;
    pthread_mutex_lock(&overlay->lock);
    uint64_t left = offset < node->size ? node->size - offset : 0;
    size_t count = size < left ? size : (size_t)left;
    int rc = read_node(node, bytes, count, offset);
    pthread_mutex_unlock(&overlay->lock);
    return rc < 0 ? rc : (int64_t)count;
}

static int64_t overlay_write(struct cn_disk_file *file, const struct iovec *parts, int part_count,
                             uint64_t offset)
{
    struct overlay *overlay = of(file->disk);
    int64_t count = 0;
    int rc = file_of(file)->readonly ? -EBADF : 0;
    pthread_mutex_lock(&overlay->lock);
    for (int i = 0; rc == 0 && i < part_count; i++) {
        rc = write_node(file_of(file)->node, parts[i].iov_base, parts[i].iov_len,
                        offset + (uint64_t)count);
        count += (int64_t)parts[i].iov_len;
    }
    pthread_mutex_unlock(&overlay->lock);
    return rc < 0 ? rc : count;
}

static int overlay_sync_data(struct cn_disk_file *file)
{
    (void)file;
    return 0;
}

static int overlay_truncate(struct cn_disk_file *file, uint64_t size)
{
    struct overlay *overlay = of(file->disk);
    if (file_of(file)->readonly)
        return -EBADF;
    pthread_mutex_lock(&overlay->lock);
    resize_node(file_of(file)->node, size);
    pthread_mutex_unlock(&overlay->lock);
    return 0;
}

static int64_t overlay_size(struct cn_disk_file *file)
{
    struct overlay *overlay = of(file->disk);
    pthread_mutex_lock(&overlay->lock);
    int64_t size = (int64_t)file_of(file)->node->size;
    pthread_mutex_unlock(&overlay->lock);
    return size;
}

static int overlay_allocate(struct cn_disk_file *file, uint64_t offset, uint64_t size)
{
    return (uint64_t)overlay_size(file) < offset + size ? overlay_truncate(file, offset + size) : 0;
}

static int overlay_rename(struct cn_disk *disk, const char *from, const char *to)
{
    struct overlay *overlay = of(disk);
    struct node *node;
    pthread_mutex_lock(&overlay->lock);
    int rc = find(overlay, from, &node);
    if (rc == 0 && !node)
        rc = -ENOENT;
    if (rc == 0 && strcmp(from, to) != 0) {
        set_name(overlay, to, node);
        set_name(overlay, from, &removed);
    }
    pthread_mutex_unlock(&overlay->lock);
    return rc;
}

static int overlay_unlink(struct cn_disk *disk, const char *path)
{
    struct overlay *overlay = of(disk);
    struct node *node;
    pthread_mutex_lock(&overlay->lock);
    int rc = find(overlay, path, &node);
    if (rc == 0 && !node)
        rc = -ENOENT;
    if (rc == 0)
        set_name(overlay, path, &removed);
    pthread_mutex_unlock(&overlay->lock);
    return rc;
}

static void ignore_entry(void *data, const char *name, bool is_dir)
{
    (void)data, (void)name, (void)is_dir;
}

static int overlay_mkdir(struct cn_disk *disk, const char *path)
{
    struct overlay *overlay = of(disk);
    pthread_mutex_lock(&overlay->lock);
    if (!cn_map_find(&overlay->names, path, strlen(path)) &&
        cn_disk_list(overlay->below, path, ignore_entry, NULL) < 0) {
        struct node *node = node_new();
        node->is_dir = true;
        set_name(overlay, path, node);
    }
    pthread_mutex_unlock(&overlay->lock);
    return 0;
}

static int overlay_sync_dir(struct cn_disk *disk, const char *path)
{
    (void)disk, (void)path;
    return 0;
}

static int overlay_sync_all(struct cn_disk *disk)
{
    (void)disk;
    return 0;
}

struct listing {
    struct overlay *overlay;
    const char *path;
    struct {
        char *name;
        bool is_dir;
    } * entries; /* owned */
    size_t count;
};

static void add_entry(struct listing *listing, const char *name, bool is_dir)
{
    listing->entries =
        cn_realloc(listing->entries, (listing->count + 1) * sizeof(listing->entries[0]));
    listing->entries[listing->count].name = cn_strdup(name);
    listing->entries[listing->count++].is_dir = is_dir;
}

/* An entry of the disk below, unless the overlay knows better. */
static void list_below(void *data, const char *name, bool is_dir)
{
    struct listing *listing = data;
    char *path = listing->path[0] ? cn_sprintf("%s/%s", listing->path, name) : cn_strdup(name);
    if (!cn_map_find(&listing->overlay->names, path, strlen(path)))
        add_entry(listing, name, is_dir);
    cn_free(path);
}

static int overlay_list(struct cn_disk *disk, const char *path,
                        void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    struct overlay *overlay = of(disk);
    struct listing listing = {.overlay = overlay, .path = path};
    size_t prefix = path[0] ? strlen(path) + 1 : 0;
    const struct cn_map_entry *entry;
    pthread_mutex_lock(&overlay->lock);
    int rc = cn_disk_list(overlay->below, path, list_below, &listing);
    bool made = cn_map_find(&overlay->names, path, strlen(path));
    for (size_t cursor = 0; cn_map_next(&overlay->names, &cursor, &entry);) {
        const struct node *node = entry->value;
        if (entry->key_size > prefix &&
            (prefix == 0 ||
             (entry->key[prefix - 1] == '/' && memcmp(entry->key, path, prefix - 1) == 0)) &&
            !strchr(entry->key + prefix, '/') && node != &removed) {
            made = true;
            add_entry(&listing, entry->key + prefix, node->is_dir);
        }
    }
    pthread_mutex_unlock(&overlay->lock);
    if (rc == -ENOENT && made)
        rc = 0;
    for (size_t i = 0; i < listing.count; i++) {
        if (rc == 0)
            each(data, listing.entries[i].name, listing.entries[i].is_dir);
        cn_free(listing.entries[i].name);
    }
    cn_free(listing.entries);
    return rc;
}

static int overlay_lock(struct cn_disk_file *file)
{
    struct cn_disk_file *below = file_of(file)->node->below;
    return below ? cn_disk_lock(below) : 0;
}

static const struct cn_disk_ops overlay_ops = {
    .open = overlay_open,
    .close = overlay_close,
    .read = overlay_read,
    .write = overlay_write,
    .sync_data = overlay_sync_data,
    .truncate = overlay_truncate,
    .allocate = overlay_allocate,
    .size = overlay_size,
    .rename = overlay_rename,
    .unlink = overlay_unlink,
    .mkdir = overlay_mkdir,
    .sync_dir = overlay_sync_dir,
    .sync_all = overlay_sync_all,
    .list = overlay_list,
    .lock = overlay_lock,
};

struct cn_disk *cn_disk_overlay_new(struct cn_disk *below)
{
    struct overlay *overlay = CN_NEW(struct overlay);
    overlay->base.ops = &overlay_ops;
    overlay->below = below;
    pthread_mutex_init(&overlay->lock, NULL);
    cn_map_init(&overlay->names);
    return &overlay->base;
}

void cn_disk_overlay_free(struct cn_disk *disk)
{
    if (!disk)
        return;
    struct overlay *overlay = of(disk);
    const struct cn_map_entry *entry;
    for (size_t cursor = 0; cn_map_next(&overlay->names, &cursor, &entry);)
        node_unref(entry->value);
    cn_map_fini(&overlay->names);
    pthread_mutex_destroy(&overlay->lock);
    cn_free(overlay);
}
