/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a cluster's backup (src/fleet/backup_manifest.h), on disks that tell where they
 * are asked to read and to write: nothing is outside of the backup, what is read is written as the
 * same again, and a list that is taken has every file once (I3, I4). BACKUP.json goes up to the
 * first NUL, the lines of FILES are behind it; its checksum is made to match. */
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "fleet/backup_manifest.h"
#include "text/hex.h"

enum { SHARDS = 3 }; /* of a list whose manifest is none */

static void require(int condition)
{
    if (!condition)
        abort();
}

/* --- disks ------------------------------------------------------------------------------------ */

/* Reads: the two files of the input, and any other of a byte. Writes: the last file. */
struct model {
    struct cn_disk base; /* first */
    const uint8_t *manifest, *files;
    size_t manifest_size, files_size;
    struct cn_buf written;
};

struct model_file {
    struct cn_disk_file base; /* first */
    const uint8_t *bytes;
    size_t size;
    bool readonly;
};

static void require_inside(const char *path)
{
    const char *from = path;
    require(path[0] && path[0] != '/' && !strchr(path, '\\'));
    for (const char *at = path;; at++) {
        size_t size = (size_t)(at - from);
        require(!*at || (unsigned char)*at >= ' ');
        if (*at && *at != '/')
            continue;
        require(size > 0 && !(size == 1 && from[0] == '.') &&
                !(size == 2 && from[0] == '.' && from[1] == '.'));
        if (!*at)
            break;
        from = at + 1;
    }
}

static int model_open(struct cn_disk *disk, const char *path, int flags, struct cn_disk_file **file)
{
    struct model *model = (struct model *)disk;
    struct model_file *opened = CN_NEW(struct model_file);
    require_inside(path);
    *opened = (struct model_file){.base.disk = disk, .readonly = flags & CN_DISK_READONLY};
    if (!opened->readonly) {
        cn_buf_clear(&model->written);
    } else if (strcmp(path, CN_MANIFEST_FILE) == 0) {
        opened->bytes = model->manifest;
        opened->size = model->manifest_size;
    } else if (strcmp(path, CN_MANIFEST_FILES) == 0) {
        opened->bytes = model->files;
        opened->size = model->files_size;
    } else {
        opened->bytes = (const uint8_t *)"x";
        opened->size = 1;
    }
    *file = &opened->base;
    return 0;
}

static void model_close(struct cn_disk_file *file)
{
    cn_free(file);
}

static int64_t model_read(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset)
{
    struct model_file *own = (struct model_file *)file;
    require(own->readonly && offset <= own->size);
    size_t count = own->size - (size_t)offset;
    if (count > size)
        count = size;
    if (count)
        memcpy(bytes, own->bytes + offset, count);
    return (int64_t)count;
}

static int64_t model_write(struct cn_disk_file *file, const struct iovec *parts, int part_count,
                           uint64_t offset)
{
    struct model *model = (struct model *)file->disk;
    size_t before = model->written.size;
    require(!((struct model_file *)file)->readonly && offset == before);
    for (int i = 0; i < part_count; i++)
        cn_buf_append(&model->written, parts[i].iov_base, parts[i].iov_len);
    return (int64_t)(model->written.size - before);
}

static int model_sync(struct cn_disk_file *file)
{
    (void)file;
    return 0;
}

static int model_truncate(struct cn_disk_file *file, uint64_t size)
{
    (void)file;
    require(size == 0);
    return 0;
}

static int64_t model_size(struct cn_disk_file *file)
{
    return (int64_t)((struct model_file *)file)->size;
}

static int model_rename(struct cn_disk *disk, const char *from, const char *to)
{
    (void)disk;
    require_inside(from);
    require(strcmp(to, CN_MANIFEST_FILE) == 0);
    return 0;
}

static int model_folder(struct cn_disk *disk, const char *path)
{
    (void)disk;
    if (*path)
        require_inside(path);
    return 0;
}

static const struct cn_disk_ops ops = {.open = model_open,
                                       .close = model_close,
                                       .read = model_read,
                                       .write = model_write,
                                       .sync_data = model_sync,
                                       .truncate = model_truncate,
                                       .size = model_size,
                                       .rename = model_rename,
                                       .mkdir = model_folder,
                                       .sync_dir = model_folder};

/* --- a manifest ------------------------------------------------------------------------------- */

static void check_manifest(const struct cn_manifest *manifest)
{
    struct model to = {.base.ops = &ops}, again = {.base.ops = &ops};
    struct cn_manifest *back = CN_NEW(struct cn_manifest);
    struct cn_err err = {0};
    require(manifest->shard_count && manifest->shard_count <= CN_CLUSTER_SHARDS_MAX);
    require(manifest->replicas && manifest->replicas <= CN_CLUSTER_REPLICAS_MAX);
    require(manifest->file_count <= INT64_MAX && manifest->bytes <= INT64_MAX);
    require(cn_manifest_write(&to.base, manifest, &err) == 0);
    require(cn_manifest_parse((const char *)to.written.data, to.written.size, back, &err) == 0);
    require(cn_manifest_write(&again.base, back, &err) == 0);
    require(to.written.size == again.written.size &&
            memcmp(to.written.data, again.written.data, to.written.size) == 0);
    cn_buf_fini(&to.written);
    cn_buf_fini(&again.written);
    cn_free(back);
}

/* --- lines ------------------------------------------------------------------------------------ */

struct listing {
    struct model *from, to;
    const struct cn_manifest *manifest;
    uint64_t count, bytes;
    bool cluster;
    struct cn_buf last;
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int take(void *data, const struct cn_manifest_entry *entry)
{
    struct listing *listing = data;
    struct cn_err err = {0};
    const char *path = entry->path;
    bool cluster = strcmp(path, CN_MANIFEST_CLUSTER) == 0;
    require_inside(path);
    require(cluster || begins(path, "shards/") || begins(path, "blobs/") ||
            begins(path, "deployed/versions/") || begins(path, "deployed/code/"));
    if (begins(path, "shards/"))
        require(path[11] == '/' && strtoul(path + 7, NULL, 10) < listing->manifest->shard_count);
    if (begins(path, "blobs/"))
        require(strchr(path + 6, '/') &&
                strtoul(path + 6, NULL, 10) < listing->manifest->shard_count);
    require(entry->size <= INT64_MAX && strlen(entry->sum) == CN_MANIFEST_SUM_SIZE - 1);
    require(!listing->last.size || strcmp(cn_buf_text(&listing->last), path) != 0);
    cn_buf_clear(&listing->last);
    cn_buf_append_str(&listing->last, path);
    listing->cluster |= cluster;
    listing->count++;
    listing->bytes += entry->size;
    int rc = cn_manifest_take(&listing->from->base, entry, &listing->to.base, NULL, &err);
    require(rc == CN_ECORRUPT || (rc == 0 && entry->size == 1));
    require(listing->to.written.size == 1);
    return 0;
}

static int read_lines(struct model *from, struct cn_manifest *manifest, struct listing *listing)
{
    struct cn_err err = {0};
    *listing = (struct listing){.from = from, .to.base.ops = &ops, .manifest = manifest};
    int rc = cn_manifest_each(&from->base, manifest, take, listing, &err);
    require(rc == 0 || (rc == err.code && *err.text));
    require(listing->count <= manifest->file_count && listing->bytes <= manifest->bytes);
    if (rc == 0)
        require(listing->cluster && listing->count == manifest->file_count &&
                listing->bytes == manifest->bytes);
    cn_buf_fini(&listing->last);
    cn_buf_fini(&listing->to.written);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    struct model from = {.base.ops = &ops, .manifest = data, .files = nul ? nul + 1 : NULL};
    struct cn_manifest *manifest = CN_NEW(struct cn_manifest);
    struct listing listing;
    struct cn_err err = {0};
    uint8_t digest[EVP_MAX_MD_SIZE];
    from.manifest_size = nul ? (size_t)(nul - data) : size;
    from.files_size = nul ? size - from.manifest_size - 1 : 0;
    int rc = cn_manifest_read(&from.base, manifest, &err);
    if (rc == 0)
        check_manifest(manifest);
    else
        manifest->shard_count = SHARDS;
    require(rc == 0 || (rc == err.code && *err.text));
    require(EVP_Digest(nul ? from.files : (const uint8_t *)"", from.files_size, digest, NULL,
                       EVP_sha256(), NULL) == 1);
    cn_hex_encode(digest, (CN_MANIFEST_SUM_SIZE - 1) / 2, manifest->files_sum);
    (void)read_lines(&from, manifest, &listing);
    manifest->file_count = manifest->bytes = INT64_MAX; /* as many as there are good ones */
    require(read_lines(&from, manifest, &listing) < 0);
    manifest->file_count = listing.count;
    manifest->bytes = listing.bytes;
    (void)read_lines(&from, manifest, &listing);
    cn_free(manifest);
    return 0;
}
