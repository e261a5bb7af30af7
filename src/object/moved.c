/* SPDX-License-Identifier: Apache-2.0 */
#include "object/moved.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/crc32c.h"
#include "base/disk.h"
#include "base/mem.h"
#include "crypto/digest.h"

#define MAGIC 0x3144494du /* "MID1" */
#define VERSION 1
#define DERIVED 1
#define HALF (CN_OBJECT_ID_SIZE / 2)
#define COUNT_MAX (1u << 28) /* a bound for the memory that a damaged file asks for */

struct header {
    uint32_t magic;
    uint32_t crc; /* of all that follows, entries too */
    uint32_t version;
    uint32_t flags;
    uint64_t count;
    uint8_t key[CN_MOVED_KEY_SIZE];
    uint8_t zeros[8];
};
_Static_assert(sizeof(struct header) == 64, "docs/reference/data-format.md");
_Static_assert(sizeof(struct cn_moved_entry) == 48, "docs/reference/data-format.md");
#define GUARDED offsetof(struct header, version)

struct cn_moved {
    struct cn_moved_ids *items; /* owned */
    size_t count;
};

/* --- derived ids ----------------------------------------------------------------------------- */

static void mac(const uint8_t key[CN_MOVED_KEY_SIZE], const void *bytes, size_t size,
                uint8_t out[HALF])
{
    struct cn_buf digest = {0};
    struct cn_err err;
    int rc = cn_crypto_hmac(CN_HASH_SHA256, (struct cn_bytes){key, CN_MOVED_KEY_SIZE},
                            (struct cn_bytes){bytes, size}, &digest, &err);
    CN_ASSERT(rc == 0 && digest.size >= HALF);
    memcpy(out, digest.data, HALF);
    cn_buf_fini(&digest);
}

void cn_moved_key(const char *class_name, size_t size, uint8_t key[CN_MOVED_KEY_SIZE])
{
    struct cn_buf digest = {0};
    struct cn_err err;
    int rc = cn_crypto_digest(CN_HASH_SHA256, (struct cn_bytes){(const uint8_t *)class_name, size},
                              &digest, &err);
    CN_ASSERT(rc == 0 && digest.size == CN_MOVED_KEY_SIZE);
    memcpy(key, digest.data, CN_MOVED_KEY_SIZE);
    cn_buf_fini(&digest);
}

void cn_moved_from_name(const uint8_t key[CN_MOVED_KEY_SIZE], const char *name, size_t size,
                        uint8_t id[CN_OBJECT_ID_SIZE])
{
    mac(key, name, size, id);
    mac(key, id, HALF, id + HALF);
}

bool cn_moved_derived(const uint8_t key[CN_MOVED_KEY_SIZE], const uint8_t id[CN_OBJECT_ID_SIZE])
{
    uint8_t proof[HALF];
    mac(key, id, HALF, proof);
    return cn_crypto_equal((struct cn_bytes){proof, HALF}, (struct cn_bytes){id + HALF, HALF});
}

/* --- lookups --------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, CN_OBJECT_ID_SIZE);
}

static bool has_name(const struct cn_moved_entry *entry)
{
    static const uint8_t none[CN_SIPHASH_SIZE];
    return memcmp(entry->name, none, sizeof(none)) != 0;
}

bool cn_moved_valid(const struct cn_moved_ids *ids, const uint8_t id[CN_OBJECT_ID_SIZE])
{
    return (ids->derived && cn_moved_derived(ids->key, id)) ||
           (ids->count &&
            bsearch(id, ids->entries, ids->count, sizeof(*ids->entries), compare_ids));
}

/* The first of those with a name whose hash is not below. */
static size_t lower_bound(const struct cn_moved_ids *ids, const uint8_t hash[CN_SIPHASH_SIZE])
{
    size_t low = 0, high = ids->named_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(ids->entries[ids->by_name[middle]].name, hash, CN_SIPHASH_SIZE) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool cn_moved_named(const struct cn_moved_ids *ids, const uint8_t hash[CN_SIPHASH_SIZE],
                    const char *name, size_t size, uint8_t id[CN_OBJECT_ID_SIZE])
{
    size_t at = lower_bound(ids, hash);
    if (at < ids->named_count) {
        const struct cn_moved_entry *entry = &ids->entries[ids->by_name[at]];
        if (memcmp(entry->name, hash, CN_SIPHASH_SIZE) == 0) {
            memcpy(id, entry->id, CN_OBJECT_ID_SIZE);
            return true;
        }
    }
    if (ids->derived)
        cn_moved_from_name(ids->key, name, size, id);
    return ids->derived;
}

/* --- files ----------------------------------------------------------------------------------- */

static void path_of(uint32_t namespace_id, char path[64])
{
    snprintf(path, 64, CN_MOVED_FOLDER "/%08" PRIx32 ".ids", namespace_id);
}

static int compare_names(const void *a, const void *b, void *entries)
{
    const struct cn_moved_entry *all = entries;
    return memcmp(all[*(const uint32_t *)a].name, all[*(const uint32_t *)b].name, CN_SIPHASH_SIZE);
}

/* Entries are sorted by id; false: two have one id or one name. */
static bool index_names(struct cn_moved_ids *ids)
{
    ids->named_count = 0;
    ids->by_name = cn_realloc(ids->by_name, (ids->count + 1) * sizeof(*ids->by_name));
    for (size_t i = 0; i < ids->count; i++) {
        if (i > 0 && compare_ids(&ids->entries[i - 1], &ids->entries[i]) >= 0)
            return false;
        if (has_name(&ids->entries[i]))
            ids->by_name[ids->named_count++] = (uint32_t)i;
    }
    qsort_r(ids->by_name, ids->named_count, sizeof(*ids->by_name), compare_names, ids->entries);
    for (size_t i = 1; i < ids->named_count; i++) {
        if (compare_names(&ids->by_name[i - 1], &ids->by_name[i], ids->entries) == 0)
            return false;
    }
    return true;
}

static void ids_fini(struct cn_moved_ids *ids)
{
    cn_free(ids->entries);
    cn_free(ids->by_name);
}

static int damaged(const char *path, struct cn_err *err)
{
    return cn_err_set(err, CN_ECORRUPT,
                      "%s is damaged: put it back from a backup, or ids of imported objects are"
                      " not accepted",
                      path);
}

static int read_entries(struct cn_disk_file *file, const struct header *header,
                        struct cn_moved_ids *ids, const char *path, struct cn_err *err)
{
    size_t size = (size_t)header->count * sizeof(*ids->entries);
    if (header->count > COUNT_MAX || cn_disk_size(file) != (int64_t)(sizeof(*header) + size))
        return damaged(path, err);
    ids->entries = cn_try_alloc(size + 1);
    if (!ids->entries)
        return cn_err_set(err, CN_ENOMEM, "no memory for %s", path);
    int64_t got = cn_disk_read(file, ids->entries, size, sizeof(*header));
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s", path);
    uint32_t crc = cn_crc32c(0, (const uint8_t *)header + GUARDED, sizeof(*header) - GUARDED);
    if (got != (int64_t)size || header->crc != cn_crc32c(crc, ids->entries, size))
        return damaged(path, err);
    ids->count = (size_t)header->count;
    ids->derived = header->flags & DERIVED;
    memcpy(ids->key, header->key, sizeof(ids->key));
    return index_names(ids) ? 0 : damaged(path, err);
}

static int read_file(struct cn_disk *disk, const char *path, struct cn_moved_ids *ids,
                     struct cn_err *err)
{
    struct cn_disk_file *file;
    struct header header;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read %s", path);
    int64_t got = cn_disk_read(file, &header, sizeof(header), 0);
    if (got < 0)
        rc = cn_err_errno(err, (int)-got, "cannot read %s", path);
    else if (got != sizeof(header) || header.magic != MAGIC)
        rc = damaged(path, err);
    else if (header.version != VERSION)
        rc = cn_err_set(err, CN_EVERSION, "%s was written by a newer version of Cairn", path);
    else
        rc = read_entries(file, &header, ids, path, err);
    cn_disk_close(file);
    return rc;
}

int cn_moved_load(struct cn_disk *disk, struct cn_moved **moved, struct cn_err *err)
{
    struct cn_disk_entries files = {0};
    struct cn_moved *set = CN_NEW(struct cn_moved);
    int rc = cn_disk_entries(disk, CN_MOVED_FOLDER, &files);
    if (rc < 0 && rc != -ENOENT)
        rc = cn_err_errno(err, -rc, "cannot read the folder %s", CN_MOVED_FOLDER);
    else
        rc = 0;
    set->items = cn_alloc_zero((files.count + 1) * sizeof(*set->items));
    for (size_t i = 0; i < files.count && rc == 0; i++) {
        const char *name = files.items[i].name;
        char path[64], *end;
        unsigned long id = strtoul(name, &end, 16);
        if (files.items[i].is_dir || end - name != 8 || strcmp(end, ".ids") != 0 || id == 0)
            continue; /* what a crash has left of a replacement */
        struct cn_moved_ids *ids = &set->items[set->count++];
        ids->namespace_id = (uint32_t)id;
        path_of(ids->namespace_id, path);
        rc = read_file(disk, path, ids, err);
    }
    cn_disk_entries_fini(&files);
    if (rc < 0)
        cn_moved_free(set);
    else
        *moved = set;
    return rc;
}

void cn_moved_free(struct cn_moved *moved)
{
    if (!moved)
        return;
    for (size_t i = 0; i < moved->count; i++)
        ids_fini(&moved->items[i]);
    cn_free(moved->items);
    cn_free(moved);
}

const struct cn_moved_ids *cn_moved_find(const struct cn_moved *moved, uint32_t namespace_id)
{
    for (size_t i = 0; moved && i < moved->count; i++) {
        if (moved->items[i].namespace_id == namespace_id)
            return &moved->items[i];
    }
    return NULL;
}

int cn_moved_keep(struct cn_disk *disk, struct cn_moved_ids *ids, struct cn_err *err)
{
    char path[64];
    struct header header = {.magic = MAGIC, .version = VERSION, .count = ids->count};
    size_t size = ids->count * sizeof(*ids->entries);
    CN_ASSERT(ids->namespace_id != 0 && ids->count <= COUNT_MAX);
    if (ids->count)
        qsort(ids->entries, ids->count, sizeof(*ids->entries), compare_ids);
    if (!index_names(ids))
        return cn_err_set(err, CN_EEXISTS, "two objects have the same id, or the same name");
    if (ids->derived) {
        header.flags = DERIVED;
        memcpy(header.key, ids->key, sizeof(header.key));
    }
    header.crc = cn_crc32c(0, (uint8_t *)&header + GUARDED, sizeof(header) - GUARDED);
    header.crc = cn_crc32c(header.crc, ids->entries, size);
    struct cn_buf bytes = {0};
    cn_buf_append(&bytes, &header, sizeof(header));
    cn_buf_append(&bytes, ids->entries, size);
    path_of(ids->namespace_id, path);
    int rc = cn_disk_mkdirs(disk, CN_MOVED_FOLDER);
    if (rc == 0)
        rc = cn_disk_replace(disk, path, bytes.data, bytes.size);
    cn_buf_fini(&bytes);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s", path) : 0;
}
