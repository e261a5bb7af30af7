/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/simdisk.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"

enum { SECTOR = 512 };

/* A change of a file's contents that no sync has made durable yet. */
struct change {
    uint64_t offset;
    uint64_t size;  /* of `bytes`, or the new size of the file */
    uint8_t *bytes; /* owned; NULL: the file was cut or grown to `size` */
};

struct node {
    bool is_dir, locked, late_sync;
    unsigned refs;          /* names (live, durable, pending) and open files */
    struct cn_buf live;     /* what a reader sees */
    struct cn_buf durable;  /* what a crash cannot take */
    struct change *changes; /* from durable to live, oldest first */
    size_t change_count, change_room;
};

/* A path and what it names; NULL: nothing. */
struct name {
    char *path;
    struct node *node;
};

struct names {
    struct name *items; /* sorted by path */
    size_t count, room;
};

/* A change of names no sync_dir has made durable yet: one path, two for a rename, or two for all
 * that is in a folder that was renamed. */
struct renaming {
    struct name *part;
    int part_count;
    bool syncs; /* being made durable */
};

struct simdisk {
    struct cn_disk base;
    pthread_mutex_t lock; /* guards everything below */
    struct names live, durable;
    struct renaming *renamings; /* from durable to live, oldest first */
    size_t renaming_count, renaming_room;
    struct simdisk_fault fault;
    uint64_t fault_count; /* operations counted towards fault.at */
    uint64_t grown;       /* bytes counted towards fault.space_bytes */
    uint64_t counts[6];   /* by bit of enum simdisk_kind */
    simdisk_hook hook;
    void *hook_data;
    unsigned hook_kinds;
};

struct sim_file {
    struct cn_disk_file base;
    struct node *node;
    char *path;
    bool readonly, has_lock;
};

static struct simdisk *of(struct cn_disk *disk)
{
    return CN_CONTAINER_OF(disk, struct simdisk, base);
}

/* ---- names ---- */

static struct node *node_ref(struct node *node)
{
    if (node)
        node->refs++;
    return node;
}

static void drop_changes(struct node *node)
{
    for (size_t i = 0; i < node->change_count; i++)
        cn_free(node->changes[i].bytes);
    node->change_count = 0;
}

static void node_unref(struct node *node)
{
    if (!node || --node->refs > 0)
        return;
    drop_changes(node);
    cn_free(node->changes);
    cn_buf_fini(&node->live);
    cn_buf_fini(&node->durable);
    cn_free(node);
}

/* The index of `path`, or of the place where it belongs. */
static size_t names_search(const struct names *names, const char *path, bool *found)
{
    size_t low = 0, high = names->count;
    *found = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(names->items[middle].path, path);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct node *names_find(const struct names *names, const char *path)
{
    bool found;
    size_t index = names_search(names, path, &found);
    return found ? names->items[index].node : NULL;
}

/* Makes `path` name `node`, or nothing if NULL. */
static void names_set(struct names *names, const char *path, struct node *node)
{
    bool found;
    size_t index = names_search(names, path, &found);
    if (!found && !node)
        return;
    if (!found && names->count == names->room) {
        names->room = names->room ? names->room * 2 : 16;
        names->items = cn_realloc(names->items, names->room * sizeof(names->items[0]));
    }
    struct name *item = &names->items[index];
    if (!found) {
        memmove(item + 1, item, (names->count - index) * sizeof(*item));
        *item = (struct name){cn_strdup(path), node_ref(node)};
        names->count++;
        return;
    }
    struct node *old = item->node;
    item->node = node_ref(node);
    node_unref(old);
    if (!node) {
        cn_free(item->path);
        names->count--;
        memmove(item, item + 1, (names->count - index) * sizeof(*item));
    }
}

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        cn_free(names->items[i].path);
        node_unref(names->items[i].node);
    }
    cn_free(names->items);
}

static bool is_in_folder(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    const char *rest = path;
    if (size > 0) {
        if (strncmp(path, folder, size) != 0 || path[size] != '/')
            return false;
        rest = path + size + 1;
    }
    return !strchr(rest, '/');
}

static bool parent_exists(const struct names *names, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return true;
    char *parent = cn_strndup(path, (size_t)(slash - path));
    struct node *node = names_find(names, parent);
    cn_free(parent);
    return node && node->is_dir;
}

static void renaming_fini(struct renaming *renaming)
{
    for (int i = 0; i < renaming->part_count; i++) {
        cn_free(renaming->part[i].path);
        node_unref(renaming->part[i].node);
    }
    cn_free(renaming->part);
}

static void renaming_apply(const struct renaming *renaming, struct names *names)
{
    for (int i = 0; i < renaming->part_count; i++)
        names_set(names, renaming->part[i].path, renaming->part[i].node);
}

/* Changes the live names and remembers that a crash may undo it. */
static void rename_live(struct simdisk *sim, const struct name *parts, int part_count)
{
    if (sim->renaming_count == sim->renaming_room) {
        sim->renaming_room = sim->renaming_room ? sim->renaming_room * 2 : 16;
        sim->renamings = cn_realloc(sim->renamings, sim->renaming_room * sizeof(sim->renamings[0]));
    }
    struct renaming *renaming = &sim->renamings[sim->renaming_count++];
    renaming->part_count = part_count;
    renaming->part = cn_alloc((size_t)part_count * sizeof(*renaming->part));
    renaming->syncs = false;
    for (int i = 0; i < part_count; i++)
        renaming->part[i] = (struct name){cn_strdup(parts[i].path), node_ref(parts[i].node)};
    renaming_apply(renaming, &sim->live);
}

/* ---- contents ---- */

static void resize(struct cn_buf *buf, uint64_t size)
{
    if (size > buf->size) {
        cn_buf_reserve(buf, size - buf->size);
        memset(buf->data + buf->size, 0, size - buf->size);
    }
    buf->size = size;
}

static void change_apply(const struct change *change, struct cn_buf *buf)
{
    if (!change->bytes) {
        resize(buf, change->size);
        return;
    }
    if (change->offset + change->size > buf->size)
        resize(buf, change->offset + change->size);
    if (change->size > 0)
        memcpy(buf->data + change->offset, change->bytes, change->size);
}

static void change_live(struct node *node, struct change change)
{
    if (node->change_count == node->change_room) {
        node->change_room = node->change_room ? node->change_room * 2 : 16;
        node->changes = cn_realloc(node->changes, node->change_room * sizeof(change));
    }
    node->changes[node->change_count++] = change;
    change_apply(&change, &node->live);
}

static void make_durable(struct node *node)
{
    for (size_t i = 0; i < node->change_count; i++)
        change_apply(&node->changes[i], &node->durable);
    drop_changes(node);
    node->late_sync = false;
}

/* What S1 and S2 leave of a file. `fate` draws how many changes a thing has seen. */
enum fate {
    NOTHING_SURVIVES,
    ALL_SURVIVES,
    PREFIX_SURVIVES,
    SECTORS_OLD_OR_NEW,
    SECTORS_ANY,
    FATES
};

static size_t sector_limit(enum fate fate, size_t prefix, size_t count, uint64_t seed,
                           uint64_t sector)
{
    uint64_t draw = cn_hash_bytes(seed, &sector, sizeof(sector));
    switch (fate) {
    case NOTHING_SURVIVES:
        return 0;
    case ALL_SURVIVES:
        return count;
    case PREFIX_SURVIVES:
        return prefix;
    case SECTORS_OLD_OR_NEW:
        return draw % 2 ? count : 0;
    default:
        return draw % (count + 1);
    }
}

static void survive(const struct node *node, struct cn_rand *rand, struct cn_buf *out)
{
    size_t count = node->change_count;
    enum fate fate = (enum fate)cn_rand_below(rand, FATES);
    uint64_t seed = cn_rand_next(rand);
    size_t prefix = cn_rand_below(rand, count + 1);
    size_t size_limit = sector_limit(fate, prefix, count, seed, UINT64_MAX);
    cn_buf_append(out, node->durable.data, node->durable.size);
    uint64_t size = out->size, running = out->size;
    for (size_t i = 0; i < count; i++) {
        const struct change *change = &node->changes[i];
        uint64_t end = change->bytes ? change->offset + change->size : change->size;
        uint64_t from = change->bytes ? change->offset : end;
        /* A cut clears what lay beyond; a growth adds zeros, which `resize` brings. */
        uint64_t to = change->bytes ? end : running;
        if (end > out->size)
            resize(out, end);
        for (uint64_t at = from; at < to;) {
            uint64_t sector = at / SECTOR, next = (sector + 1) * SECTOR;
            uint64_t stop = next < to ? next : to;
            if (sector_limit(fate, prefix, count, seed, sector) > i) {
                if (change->bytes)
                    memcpy(out->data + at, change->bytes + (at - from), stop - at);
                else
                    memset(out->data + at, 0, stop - at);
            }
            at = stop;
        }
        running = change->bytes && end < running ? running : end;
        if (i < size_limit)
            size = running;
    }
    resize(out, size);
}

/* ---- operations ---- */

static int kind_index(unsigned kind)
{
    return __builtin_ctz(kind);
}

/* Counts the operation; 0 to go on, or the planned failure. */
static int begin(struct simdisk *sim, unsigned kind, const char *name, const char *path)
{
    pthread_mutex_lock(&sim->lock);
    simdisk_hook hook = sim->hook_kinds & kind ? sim->hook : NULL;
    void *hook_data = sim->hook_data;
    pthread_mutex_unlock(&sim->lock);
    if (hook) /* without the lock: it may wait for another operation */
        hook(hook_data, name, path);
    pthread_mutex_lock(&sim->lock);
    sim->counts[kind_index(kind)]++;
    const struct simdisk_fault *fault = &sim->fault;
    if (!(fault->kinds & kind) || fault->at == 0)
        return 0;
    uint64_t count = ++sim->fault_count;
    if (count != fault->at && !(fault->sticky && count > fault->at))
        return 0;
    return fault->code ? fault->code : kind == SIMDISK_WRITE ? 1 : 0;
}

static int end(struct simdisk *sim, int rc)
{
    pthread_mutex_unlock(&sim->lock);
    return rc;
}

/* Takes `bytes` of the space that is left. */
static int grow(struct simdisk *sim, uint64_t bytes)
{
    if (sim->fault.space_bytes && sim->grown + bytes > sim->fault.space_bytes)
        return -ENOSPC;
    sim->grown += bytes;
    return 0;
}

static int sim_open(struct cn_disk *disk, const char *path, int flags, struct cn_disk_file **file)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_OPEN, "open", path);
    if (rc < 0)
        return end(sim, rc);
    struct node *node = names_find(&sim->live, path);
    if (node && node->is_dir)
        return end(sim, -EISDIR);
    if (node && flags & CN_DISK_EXCLUSIVE)
        return end(sim, -EEXIST);
    if (!node) {
        if (!(flags & CN_DISK_CREATE) || !parent_exists(&sim->live, path))
            return end(sim, -ENOENT);
        node = CN_NEW(struct node);
        rename_live(sim, &(struct name){(char *)path, node}, 1);
    }
    if (flags & CN_DISK_TRUNCATE && node->live.size > 0)
        change_live(node, (struct change){0});
    struct sim_file *opened = CN_NEW(struct sim_file);
    opened->base.disk = disk;
    opened->node = node_ref(node);
    opened->path = cn_strdup(path);
    opened->readonly = flags & CN_DISK_READONLY;
    *file = &opened->base;
    return end(sim, 0);
}

static struct sim_file *file_of(struct cn_disk_file *file)
{
    return CN_CONTAINER_OF(file, struct sim_file, base);
}

static void sim_close(struct cn_disk_file *base)
{
    struct simdisk *sim = of(base->disk);
    struct sim_file *file = file_of(base);
    pthread_mutex_lock(&sim->lock);
    if (file->has_lock)
        file->node->locked = false;
    node_unref(file->node);
    pthread_mutex_unlock(&sim->lock);
    cn_free(file->path);
    cn_free(file);
}

static int64_t sim_read(struct cn_disk_file *base, void *bytes, size_t size, uint64_t offset)
{
    struct simdisk *sim = of(base->disk);
    struct sim_file *file = file_of(base);
    int rc = begin(sim, SIMDISK_READ, "read", file->path);
    if (rc < 0)
        return end(sim, rc);
    const struct cn_buf *live = &file->node->live;
    size_t left = offset < live->size ? live->size - offset : 0;
    size_t count = size < left ? size : left;
    if (count > 0)
        memcpy(bytes, live->data + offset, count);
    end(sim, 0);
    return (int64_t)count;
}

static int64_t sim_write(struct cn_disk_file *base, const struct iovec *parts, int part_count,
                         uint64_t offset)
{
    struct simdisk *sim = of(base->disk);
    struct sim_file *file = file_of(base);
    struct node *node = file->node;
    int rc = begin(sim, SIMDISK_WRITE, "write", file->path);
    if (rc < 0 || file->readonly)
        return end(sim, rc < 0 ? rc : -EBADF);
    if (node->late_sync)
        make_durable(node);
    struct cn_buf all = {0};
    for (int i = 0; i < part_count; i++)
        cn_buf_append(&all, parts[i].iov_base, parts[i].iov_len);
    if (rc == 1 && all.size > 1) /* a short write */
        all.size = 1 + sim->fault_count % (all.size - 1);
    uint64_t stop = offset + all.size;
    if (stop > node->live.size)
        rc = grow(sim, stop - node->live.size);
    if (rc < 0 || all.size == 0) {
        cn_buf_fini(&all);
        return end(sim, rc < 0 ? rc : 0);
    }
    size_t size = all.size;
    change_live(node, (struct change){offset, size, cn_buf_take(&all)});
    end(sim, 0);
    return (int64_t)size;
}

static bool path_begins(const char *path, const char *prefix)
{
    return prefix && strncmp(path, prefix, strlen(prefix)) == 0;
}

static int sim_sync_data(struct cn_disk_file *base)
{
    struct simdisk *sim = of(base->disk);
    struct sim_file *file = file_of(base);
    int rc = begin(sim, SIMDISK_SYNC, "sync", file->path);
    if (rc < 0)
        return end(sim, rc);
    if (path_begins(file->path, sim->fault.late_sync))
        file->node->late_sync = true;
    else if (!path_begins(file->path, sim->fault.ignore_sync))
        make_durable(file->node);
    return end(sim, 0);
}

static int resize_live(struct sim_file *file, uint64_t size)
{
    struct simdisk *sim = of(file->base.disk);
    struct node *node = file->node;
    int rc = file->readonly ? -EBADF : 0;
    if (rc == 0 && size > node->live.size)
        rc = grow(sim, size - node->live.size);
    if (rc == 0 && size != node->live.size)
        change_live(node, (struct change){.size = size});
    return rc;
}

static int sim_truncate(struct cn_disk_file *base, uint64_t size)
{
    struct simdisk *sim = of(base->disk);
    int rc = begin(sim, SIMDISK_RESIZE, "truncate", file_of(base)->path);
    return end(sim, rc < 0 ? rc : resize_live(file_of(base), size));
}

static int sim_allocate(struct cn_disk_file *base, uint64_t offset, uint64_t size)
{
    struct simdisk *sim = of(base->disk);
    int rc = begin(sim, SIMDISK_RESIZE, "allocate", file_of(base)->path);
    if (rc == 0 && offset + size > file_of(base)->node->live.size)
        rc = resize_live(file_of(base), offset + size);
    return end(sim, rc);
}

static int64_t sim_size(struct cn_disk_file *base)
{
    struct simdisk *sim = of(base->disk);
    pthread_mutex_lock(&sim->lock);
    int64_t size = (int64_t)file_of(base)->node->live.size;
    pthread_mutex_unlock(&sim->lock);
    return size;
}

/* A folder and all that is in it, at once. */
static void rename_folder(struct simdisk *sim, const char *from, const char *to)
{
    size_t length = strlen(from), count = 0;
    struct name *parts = cn_alloc(2 * sim->live.count * sizeof(*parts));
    for (size_t i = 0; i < sim->live.count; i++) {
        const struct name *name = &sim->live.items[i];
        if (strncmp(name->path, from, length) != 0 ||
            (name->path[length] != '/' && name->path[length] != 0))
            continue;
        parts[count++] = (struct name){cn_sprintf("%s%s", to, name->path + length), name->node};
        parts[count++] = (struct name){cn_strdup(name->path), NULL};
    }
    rename_live(sim, parts, (int)count);
    for (size_t i = 0; i < count; i++)
        cn_free(parts[i].path);
    cn_free(parts);
}

static int sim_rename(struct cn_disk *disk, const char *from, const char *to)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_NAME, "rename", from);
    struct node *node = names_find(&sim->live, from), *old = names_find(&sim->live, to);
    if (rc == 0 && (!node || !parent_exists(&sim->live, to)))
        rc = -ENOENT;
    if (rc == 0 && ((old && old->is_dir) || (old && node->is_dir)))
        rc = -EISDIR; /* nothing is replaced by a folder here */
    if (rc == 0 && node->is_dir)
        rename_folder(sim, from, to);
    else if (rc == 0 && node != old)
        rename_live(sim, (struct name[]){{(char *)from, NULL}, {(char *)to, node}}, 2);
    return end(sim, rc);
}

static int sim_unlink(struct cn_disk *disk, const char *path)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_NAME, "unlink", path);
    struct node *node = names_find(&sim->live, path);
    if (rc == 0 && !node)
        rc = -ENOENT;
    if (rc == 0 && node->is_dir)
        rc = -EISDIR;
    if (rc == 0)
        rename_live(sim, &(struct name){(char *)path, NULL}, 1);
    return end(sim, rc);
}

static int sim_mkdir(struct cn_disk *disk, const char *path)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_NAME, "mkdir", path);
    struct node *node = names_find(&sim->live, path);
    if (rc == 0 && !parent_exists(&sim->live, path))
        rc = -ENOENT;
    if (rc == 0 && !node) {
        node = CN_NEW(struct node);
        node->is_dir = true;
        rename_live(sim, &(struct name){(char *)path, node}, 1);
    }
    return end(sim, rc);
}

static bool share_a_name(const struct renaming *a, const struct renaming *b)
{
    for (int i = 0; i < a->part_count * b->part_count; i++) {
        if (strcmp(a->part[i % a->part_count].path, b->part[i / a->part_count].path) == 0)
            return true;
    }
    return false;
}

/* Makes the marked changes durable, and with each all earlier ones of the same names: they
 * happened before it, so they cannot come to the disk after it. */
static void sync_renamings(struct simdisk *sim)
{
    for (size_t i = sim->renaming_count; i-- > 0;) {
        for (size_t j = 0; sim->renamings[i].syncs && j < i; j++) {
            if (share_a_name(&sim->renamings[i], &sim->renamings[j]))
                sim->renamings[j].syncs = true;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < sim->renaming_count; i++) {
        if (sim->renamings[i].syncs) {
            renaming_apply(&sim->renamings[i], &sim->durable);
            renaming_fini(&sim->renamings[i]);
        } else {
            sim->renamings[kept++] = sim->renamings[i];
        }
    }
    sim->renaming_count = kept;
}

static int sim_sync_dir(struct cn_disk *disk, const char *path)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_SYNC, "sync_dir", path);
    struct node *dir = path[0] ? names_find(&sim->live, path) : NULL;
    if (rc == 0 && path[0] && !(dir && dir->is_dir))
        rc = dir ? -ENOTDIR : -ENOENT;
    if (rc < 0)
        return end(sim, rc);
    for (size_t i = 0; i < sim->renaming_count; i++) {
        struct renaming *renaming = &sim->renamings[i];
        for (int part = 0; part < renaming->part_count; part++)
            renaming->syncs = renaming->syncs || is_in_folder(renaming->part[part].path, path);
    }
    sync_renamings(sim);
    return end(sim, 0);
}

static int sim_sync_all(struct cn_disk *disk)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_SYNC, "sync_all", "");
    if (rc < 0)
        return end(sim, rc);
    /* Files without a name are of no interest any more. */
    for (size_t i = 0; i < sim->live.count; i++)
        make_durable(sim->live.items[i].node);
    for (size_t i = 0; i < sim->renaming_count; i++) {
        renaming_apply(&sim->renamings[i], &sim->durable);
        renaming_fini(&sim->renamings[i]);
    }
    sim->renaming_count = 0;
    return end(sim, 0);
}

static int sim_list(struct cn_disk *disk, const char *path,
                    void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    struct simdisk *sim = of(disk);
    int rc = begin(sim, SIMDISK_READ, "list", path);
    struct node *dir = path[0] ? names_find(&sim->live, path) : NULL;
    if (rc == 0 && path[0] && !(dir && dir->is_dir))
        rc = dir ? -ENOTDIR : -ENOENT;
    if (rc < 0)
        return end(sim, rc);
    /* A copy, because `each` may well call the disk. */
    struct name *found = cn_alloc(sim->live.count * sizeof(*found) + 1);
    size_t count = 0;
    for (size_t i = 0; i < sim->live.count; i++) {
        const struct name *name = &sim->live.items[i];
        if (is_in_folder(name->path, path))
            found[count++] = (struct name){cn_strdup(name->path), node_ref(name->node)};
    }
    end(sim, 0);
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(found[i].path, '/');
        each(data, slash ? slash + 1 : found[i].path, found[i].node->is_dir);
        cn_free(found[i].path);
        pthread_mutex_lock(&sim->lock);
        node_unref(found[i].node);
        pthread_mutex_unlock(&sim->lock);
    }
    cn_free(found);
    return 0;
}

static int sim_lock(struct cn_disk_file *base)
{
    struct simdisk *sim = of(base->disk);
    struct sim_file *file = file_of(base);
    pthread_mutex_lock(&sim->lock);
    int rc = file->node->locked && !file->has_lock ? -EAGAIN : 0;
    if (rc == 0)
        file->node->locked = file->has_lock = true;
    return end(sim, rc);
}

static const struct cn_disk_ops sim_ops = {
    .open = sim_open,
    .close = sim_close,
    .read = sim_read,
    .read_now = sim_read,
    .write = sim_write,
    .sync_data = sim_sync_data,
    .truncate = sim_truncate,
    .allocate = sim_allocate,
    .size = sim_size,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .mkdir = sim_mkdir,
    .sync_dir = sim_sync_dir,
    .sync_all = sim_sync_all,
    .list = sim_list,
    .lock = sim_lock,
};

struct simdisk *simdisk_new(void)
{
    struct simdisk *sim = CN_NEW(struct simdisk);
    sim->base.ops = &sim_ops;
    pthread_mutex_init(&sim->lock, NULL);
    return sim;
}

void simdisk_free(struct simdisk *sim)
{
    if (!sim)
        return;
    for (size_t i = 0; i < sim->renaming_count; i++)
        renaming_fini(&sim->renamings[i]);
    cn_free(sim->renamings);
    names_fini(&sim->live);
    names_fini(&sim->durable);
    pthread_mutex_destroy(&sim->lock);
    cn_free(sim);
}

struct cn_disk *simdisk_disk(struct simdisk *sim)
{
    return &sim->base;
}

void simdisk_set_fault(struct simdisk *sim, const struct simdisk_fault *fault)
{
    pthread_mutex_lock(&sim->lock);
    sim->fault = fault ? *fault : (struct simdisk_fault){0};
    sim->fault_count = sim->grown = 0;
    pthread_mutex_unlock(&sim->lock);
}

void simdisk_set_hook(struct simdisk *sim, unsigned kinds, simdisk_hook hook, void *data)
{
    pthread_mutex_lock(&sim->lock);
    sim->hook = hook;
    sim->hook_kinds = kinds;
    sim->hook_data = data;
    pthread_mutex_unlock(&sim->lock);
}

uint64_t simdisk_count(struct simdisk *sim, unsigned kinds)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&sim->lock);
    for (unsigned i = 0; i < CN_ARRAY_COUNT(sim->counts); i++)
        sum += kinds & 1u << i ? sim->counts[i] : 0;
    pthread_mutex_unlock(&sim->lock);
    return sum;
}

/* Adds a name of the old disk to the new one, with what `survive` leaves of its contents, or
 * all of them if `rand` is NULL. A name below a folder that is gone is gone too. */
static void add_surviving(struct simdisk *after, const struct name *name, struct cn_rand *rand)
{
    if (!parent_exists(&after->live, name->path))
        return;
    struct node *node = CN_NEW(struct node);
    node->is_dir = name->node->is_dir;
    if (rand)
        survive(name->node, rand, &node->durable);
    else
        cn_buf_append(&node->durable, name->node->live.data, name->node->live.size);
    cn_buf_append(&node->live, node->durable.data, node->durable.size);
    names_set(&after->live, name->path, node);
    names_set(&after->durable, name->path, node);
}

struct simdisk *simdisk_crash(struct simdisk *sim, uint64_t seed)
{
    struct cn_rand rand;
    cn_rand_init(&rand, seed);
    struct simdisk *after = simdisk_new();
    struct names names = {0};
    pthread_mutex_lock(&sim->lock);
    for (size_t i = 0; i < sim->durable.count; i++)
        names_set(&names, sim->durable.items[i].path, sim->durable.items[i].node);
    enum fate fate = (enum fate)cn_rand_below(&rand, FATES);
    size_t prefix = cn_rand_below(&rand, sim->renaming_count + 1);
    for (size_t i = 0; i < sim->renaming_count; i++) {
        bool coin = cn_rand_below(&rand, 2);
        if (fate == ALL_SURVIVES || (fate == PREFIX_SURVIVES && i < prefix) ||
            (fate > PREFIX_SURVIVES && coin))
            renaming_apply(&sim->renamings[i], &names);
    }
    /* Sorted by path, so a folder comes before what is in it. */
    for (size_t i = 0; i < names.count; i++)
        add_surviving(after, &names.items[i], &rand);
    names_fini(&names);
    pthread_mutex_unlock(&sim->lock);
    return after;
}

struct simdisk *simdisk_copy(struct simdisk *sim)
{
    struct simdisk *after = simdisk_new();
    pthread_mutex_lock(&sim->lock);
    for (size_t i = 0; i < sim->live.count; i++)
        add_surviving(after, &sim->live.items[i], NULL);
    pthread_mutex_unlock(&sim->lock);
    return after;
}

int simdisk_damage(struct simdisk *sim, const char *path, uint64_t offset, unsigned bit)
{
    int rc = -ENOENT;
    pthread_mutex_lock(&sim->lock);
    struct node *node = names_find(&sim->live, path);
    if (node) {
        make_durable(node);
        rc = offset < node->live.size ? 0 : -EINVAL;
    }
    if (rc == 0)
        node->durable.data[offset] = node->live.data[offset] ^= (uint8_t)(1u << bit);
    return end(sim, rc);
}

int simdisk_export(struct simdisk *sim, const char *path)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    struct cn_disk *disk = cn_disk_system_new(path);
    if (!disk)
        return -errno;
    int rc = 0;
    pthread_mutex_lock(&sim->lock);
    for (size_t i = 0; rc == 0 && i < sim->live.count; i++) {
        const struct name *name = &sim->live.items[i];
        struct cn_disk_file *file;
        if (name->node->is_dir) {
            rc = cn_disk_mkdir(disk, name->path);
            continue;
        }
        rc = cn_disk_open(disk, name->path, CN_DISK_CREATE | CN_DISK_TRUNCATE, &file);
        if (rc < 0)
            break;
        rc = cn_disk_write_all(file, name->node->live.data, name->node->live.size, 0);
        cn_disk_close(file);
    }
    pthread_mutex_unlock(&sim->lock);
    cn_disk_system_free(disk);
    return rc;
}

uint64_t simdisk_used(struct simdisk *sim)
{
    uint64_t used = 0;
    pthread_mutex_lock(&sim->lock);
    for (size_t i = 0; i < sim->live.count; i++)
        used += sim->live.items[i].node->live.size;
    pthread_mutex_unlock(&sim->lock);
    return used;
}
