/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/backup_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/hex.h"
#include "v4/depot.h"

enum { PIECE = 1 << 20, LINE_MAX_ = 4096, MANIFEST_MAX = 4 << 20 };

static const char unfinished[] = "{\"format\": \"cairn cluster backup\", \"unfinished\": true}\n";

/* --- checksums -------------------------------------------------------------------------------- */

static EVP_MD_CTX *sum_begin(void)
{
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    CN_ASSERT(sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) == 1);
    return sum;
}

static void sum_end(EVP_MD_CTX *sum, char text[CN_MANIFEST_SUM_SIZE])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    CN_ASSERT(EVP_DigestFinal_ex(sum, digest, NULL) == 1);
    cn_hex_encode(digest, (CN_MANIFEST_SUM_SIZE - 1) / 2, text);
    EVP_MD_CTX_free(sum);
}

/* The file's sum and size; with `out`, its bytes go there. */
static int read_file(struct cn_disk *disk, const char *path, struct cn_disk_file *out,
                     char text[CN_MANIFEST_SUM_SIZE], uint64_t *size, struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc == -ENOENT || rc == -ENOTDIR)
        return cn_err_set(err, CN_ENOTFOUND, "%s is missing", path);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read %s", path);
    EVP_MD_CTX *sum = sum_begin();
    int64_t got = cn_disk_size(file);
    size_t piece = got >= 0 && got < PIECE ? (size_t)got + 1 : PIECE; /* most are small */
    uint8_t *bytes = cn_alloc(piece);
    *size = 0;
    while (rc == 0 && (got = cn_disk_read(file, bytes, piece, *size)) > 0) {
        CN_ASSERT(EVP_DigestUpdate(sum, bytes, (size_t)got) == 1);
        rc = out ? cn_disk_write_all(out, bytes, (size_t)got, *size) : 0;
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot write a copy of %s", path);
        *size += (uint64_t)got;
    }
    if (rc == 0 && got < 0)
        rc = cn_err_errno(err, (int)-got, "cannot read %s", path);
    sum_end(sum, text);
    cn_free(bytes);
    cn_disk_close(file);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

int cn_manifest_begin(struct cn_disk *disk, struct cn_err *err)
{
    int rc = cn_disk_replace(disk, CN_MANIFEST_FILE, unfinished, sizeof(unfinished) - 1);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write " CN_MANIFEST_FILE " in the backup") : 0;
}

struct listing {
    struct cn_disk *disk;
    struct cn_manifest *manifest;
    struct cn_disk_file *out;
    struct cn_buf lines;
    uint64_t offset;
    EVP_MD_CTX *sum;
    bool (*cancelled)(void *data);
    void *data;
    struct cn_err *err;
};

static int flush_lines(struct listing *listing)
{
    struct cn_buf *lines = &listing->lines;
    CN_ASSERT(EVP_DigestUpdate(listing->sum, lines->data, lines->size) == 1);
    int rc = cn_disk_write_all(listing->out, lines->data, lines->size, listing->offset);
    listing->offset += lines->size;
    cn_buf_clear(lines);
    return rc < 0 ? cn_err_errno(listing->err, -rc, "cannot write the backup's list of files") : 0;
}

static int list_file(void *data, const char *path)
{
    struct listing *listing = data;
    char sum[CN_MANIFEST_SUM_SIZE];
    uint64_t size;
    if (strcmp(path, CN_MANIFEST_FILE) == 0 || strcmp(path, CN_MANIFEST_FILES) == 0)
        return 0;
    if (listing->cancelled && listing->cancelled(listing->data))
        return cn_err_set(listing->err, CN_EABORTED, "the backup was cancelled");
    int rc = read_file(listing->disk, path, NULL, sum, &size, listing->err);
    if (rc < 0)
        return rc;
    cn_buf_printf(&listing->lines, "%s %" PRIu64 " %s\n", sum, size, path);
    listing->manifest->file_count++;
    listing->manifest->bytes += size;
    return listing->lines.size < PIECE ? 0 : flush_lines(listing);
}

int cn_manifest_list(struct cn_disk *disk, struct cn_manifest *manifest, bool (*cancelled)(void *),
                     void *data, struct cn_err *err)
{
    struct cn_err own = {0};
    struct listing listing = {
        .disk = disk, .manifest = manifest, .cancelled = cancelled, .data = data, .err = &own};
    manifest->file_count = manifest->bytes = 0;
    int rc =
        cn_disk_open(disk, CN_MANIFEST_FILES, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &listing.out);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot write the backup's list of files");
    listing.sum = sum_begin();
    rc = cn_disk_walk(disk, "", list_file, &listing);
    if (rc < 0 && !own.code)
        cn_err_errno(&own, -rc, "cannot list the backup");
    if (rc == 0 && listing.lines.size)
        rc = flush_lines(&listing);
    sum_end(listing.sum, manifest->files_sum);
    cn_disk_close(listing.out);
    cn_buf_fini(&listing.lines);
    if (rc == 0) {
        rc = cn_disk_sync_all(disk);
        if (rc < 0)
            cn_err_errno(&own, -rc, "cannot sync the backup");
    }
    if (rc < 0 && err)
        *err = own;
    return rc;
}

int cn_manifest_write(struct cn_disk *disk, const struct cn_manifest *manifest, struct cn_err *err)
{
    struct cn_buf json = {0};
    cn_buf_printf(&json,
                  "{\"format\": \"cairn cluster backup\", \"version\": %d,\n \"consistency\": "
                  "\"" CN_MANIFEST_CONSISTENCY "\",\n \"cluster\": \"%s\", \"node\": \"%s\", "
                  "\"began_ms\": %" PRId64 ", \"ended_ms\": %" PRId64
                  ",\n \"shard_count\": %u, \"replicas\": %u,\n \"files\": %" PRIu64
                  ", \"bytes\": %" PRIu64 ", \"files_sha256\": \"%s\",\n \"shards\": [",
                  CN_MANIFEST_VERSION, manifest->cluster, manifest->node, manifest->began_ms,
                  manifest->ended_ms, manifest->shard_count, manifest->replicas,
                  manifest->file_count, manifest->bytes, manifest->files_sum);
    for (unsigned i = 0; i < manifest->shard_count; i++)
        cn_buf_printf(&json,
                      "%s\n  {\"shard\": %u, \"lsn\": %" PRIu64 ", \"epoch\": %" PRIu64
                      ", \"owner\": \"%s\"}",
                      i ? "," : "", i, manifest->shards[i].lsn, manifest->shards[i].epoch,
                      manifest->shards[i].node);
    cn_buf_append_str(&json, "]}\n");
    int rc = cn_disk_replace(disk, CN_MANIFEST_FILE, json.data, json.size);
    cn_buf_fini(&json);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write " CN_MANIFEST_FILE " in the backup") : 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

bool cn_manifest_is_there(struct cn_disk *disk)
{
    return cn_disk_has(disk, CN_MANIFEST_FILE);
}

static int malformed(struct cn_err *err, const char *what)
{
    return cn_err_set(err, CN_EINVALID, CN_MANIFEST_FILE ": %s", what);
}

static bool is_number(const struct cn_json *object, const char *name, int64_t min, int64_t max)
{
    const struct cn_json *found = cn_json_find(object, name);
    return found && found->kind == CN_JSON_INT && found->integer >= min && found->integer <= max;
}

static bool is_sum(const char *text)
{
    return text && strlen(text) == CN_MANIFEST_SUM_SIZE - 1 &&
           strspn(text, "0123456789abcdef") == CN_MANIFEST_SUM_SIZE - 1;
}

static bool is_id(const char *text)
{
    return text && strlen(text) == CN_ENGINE_PG_ID_SIZE - 1 &&
           strspn(text, "0123456789abcdef-") == CN_ENGINE_PG_ID_SIZE - 1;
}

static bool parse_shard(const struct cn_json *json, unsigned index, struct cn_manifest_shard *shard)
{
    const char *node = cn_json_text(json, "owner");
    if (!is_number(json, "shard", index, index) || !is_number(json, "lsn", 0, INT64_MAX - 1) ||
        !is_number(json, "epoch", 0, INT64_MAX - 1) || !node || !cn_engine_pg_is_node(node))
        return false;
    shard->lsn = (uint64_t)cn_json_int(json, "lsn");
    shard->epoch = (uint64_t)cn_json_int(json, "epoch");
    snprintf(shard->node, sizeof(shard->node), "%s", node);
    return true;
}

static int parse_tree(const struct cn_json *json, struct cn_manifest *manifest, struct cn_err *err)
{
    const char *format = cn_json_text(json, "format"), *cluster = cn_json_text(json, "cluster");
    const char *node = cn_json_text(json, "node"), *sum = cn_json_text(json, "files_sha256");
    const struct cn_json *shards = cn_json_find(json, "shards"), *shard;
    unsigned count = 0;
    if (!format || strcmp(format, "cairn cluster backup") != 0)
        return malformed(err, "this is no backup of a cluster");
    if (cn_json_find(json, "unfinished"))
        return cn_err_set(err, CN_EINVALID,
                          "the backup is not whole: it was interrupted, or is still being made");
    if (!is_number(json, "version", CN_MANIFEST_VERSION, CN_MANIFEST_VERSION))
        return cn_err_set(err, CN_EVERSION, "the backup was made by a newer version");
    if (!is_number(json, "shard_count", 1, CN_CLUSTER_SHARDS_MAX) ||
        !is_number(json, "replicas", 1, CN_CLUSTER_REPLICAS_MAX) ||
        !is_number(json, "files", 0, INT64_MAX) || !is_number(json, "bytes", 0, INT64_MAX) ||
        !is_number(json, "began_ms", 0, INT64_MAX) || !is_number(json, "ended_ms", 0, INT64_MAX) ||
        !is_sum(sum) || !is_id(cluster) || !node || !cn_engine_pg_is_node(node) || !shards ||
        shards->kind != CN_JSON_ARRAY)
        return malformed(err, "a member is missing, or is not what it should be");
    *manifest = (struct cn_manifest){.began_ms = cn_json_int(json, "began_ms"),
                                     .ended_ms = cn_json_int(json, "ended_ms"),
                                     .shard_count = (unsigned)cn_json_int(json, "shard_count"),
                                     .replicas = (unsigned)cn_json_int(json, "replicas"),
                                     .file_count = (uint64_t)cn_json_int(json, "files"),
                                     .bytes = (uint64_t)cn_json_int(json, "bytes")};
    snprintf(manifest->cluster, sizeof(manifest->cluster), "%s", cluster);
    snprintf(manifest->node, sizeof(manifest->node), "%s", node);
    snprintf(manifest->files_sum, sizeof(manifest->files_sum), "%s", sum);
    for (shard = shards->first; shard; shard = shard->next, count++)
        if (count == manifest->shard_count || !parse_shard(shard, count, &manifest->shards[count]))
            return malformed(err, "the list of shards is not one");
    return count == manifest->shard_count ? 0 : malformed(err, "shards are missing");
}

int cn_manifest_parse(const char *text, size_t size, struct cn_manifest *manifest,
                      struct cn_err *err)
{
    struct cn_manifest *own = CN_NEW(struct cn_manifest);
    struct cn_json *json = cn_json_parse_some(text, size, CN_JSON_ASKED_MAX, err);
    int rc = json ? parse_tree(json, own, err) : cn_err_context(err, CN_MANIFEST_FILE);
    if (rc == 0)
        *manifest = *own;
    cn_json_free(json);
    cn_free(own);
    return rc;
}

int cn_manifest_read(struct cn_disk *disk, struct cn_manifest *manifest, struct cn_err *err)
{
    struct cn_disk_file *file;
    struct cn_buf text = {0};
    int rc = cn_disk_open(disk, CN_MANIFEST_FILE, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return cn_err_set(err, CN_ENOTFOUND,
                          "this is no backup of a cluster: there is no " CN_MANIFEST_FILE);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read " CN_MANIFEST_FILE);
    int64_t size = cn_disk_size(file);
    if (size < 0 || size > MANIFEST_MAX) {
        rc = malformed(err, "it is too large");
    } else {
        cn_buf_reserve(&text, (size_t)size + 1);
        int64_t got = cn_disk_read(file, text.data, (size_t)size, 0);
        rc = got == size
                 ? cn_manifest_parse((const char *)text.data, (size_t)size, manifest, err)
                 : cn_err_errno(err, got < 0 ? (int)-got : EIO, "cannot read " CN_MANIFEST_FILE);
    }
    cn_disk_close(file);
    cn_buf_fini(&text);
    return rc;
}

/* "0012/", or "12/" if it is not padded, of a shard that there is; what follows, or NULL. */
static const char *behind_shard(const char *path, const struct cn_manifest *manifest, bool padded)
{
    size_t digits = strspn(path, "0123456789");
    bool one = padded ? digits == 4 : digits == 1 || path[0] != '0'; /* a shard has one name */
    if (digits == 0 || digits > 4 || path[digits] != '/' || !one ||
        strtoul(path, NULL, 10) >= manifest->shard_count)
        return NULL;
    return path + digits + 1;
}

/* I3 */
static bool is_path(const char *path, const struct cn_manifest *manifest)
{
    static const char *const plain[] = {CN_MANIFEST_CLUSTER};
    static const char *const folders[] = {"history/", "catalog/", "objects/", "aside/", "log/"};
    static const char *const files[] = {"FORMAT", "REPLICA", "LOCK"};
    const char *rest;
    if (!cn_depot_path_is_good(path, strlen(path)))
        return false;
    for (size_t i = 0; i < CN_ARRAY_COUNT(plain); i++)
        if (strcmp(path, plain[i]) == 0)
            return true;
    if (strncmp(path, "deployed/versions/", 18) == 0 || strncmp(path, "deployed/code/", 14) == 0)
        return true;
    if (strncmp(path, "blobs/", 6) == 0)
        return (rest = behind_shard(path + 6, manifest, false)) && strlen(rest) == 3 + 32 &&
               rest[2] == '/' && strspn(rest, "0123456789abcdef") == 2 &&
               strspn(rest + 3, "0123456789abcdef") == 32;
    if (strncmp(path, "shards/", 7) != 0 || !(rest = behind_shard(path + 7, manifest, true)))
        return false;
    for (size_t i = 0; i < CN_ARRAY_COUNT(files); i++)
        if (strcmp(rest, files[i]) == 0)
            return true;
    for (size_t i = 0; i < CN_ARRAY_COUNT(folders); i++)
        if (strncmp(rest, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

bool cn_manifest_entry_parse(char *line, const struct cn_manifest *manifest,
                             struct cn_manifest_entry *entry)
{
    char *end;
    if (strspn(line, "0123456789abcdef") != CN_MANIFEST_SUM_SIZE - 1 ||
        line[CN_MANIFEST_SUM_SIZE - 1] != ' ')
        return false;
    const char *size = line + CN_MANIFEST_SUM_SIZE;
    if (*size < '0' || *size > '9')
        return false;
    errno = 0;
    entry->size = strtoull(size, &end, 10);
    if (errno || *end != ' ' || entry->size > INT64_MAX || !is_path(end + 1, manifest))
        return false;
    snprintf(entry->sum, sizeof(entry->sum), "%.*s", CN_MANIFEST_SUM_SIZE - 1, line);
    entry->path = end + 1;
    return true;
}

struct reading {
    const struct cn_manifest *manifest;
    int (*each)(void *data, const struct cn_manifest_entry *entry);
    void *data;
    uint64_t count, bytes;
    bool has_cluster;     /* CN_MANIFEST_CLUSTER */
    char last[LINE_MAX_]; /* the path before */
    struct cn_err *err;
};

/* The order of cn_disk_walk(): by segments. */
static int path_order(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return (*a == '/' ? 1 : (unsigned char)*a) - (*b == '/' ? 1 : (unsigned char)*b);
}

/* I4 */
static int give_entry(struct reading *reading, const struct cn_manifest_entry *entry)
{
    if (path_order(entry->path, reading->last) <= 0)
        return cn_err_set(reading->err, CN_EINVALID,
                          CN_MANIFEST_FILES ": line %" PRIu64
                                            " is not in its place, or there twice",
                          reading->count);
    if (reading->count > reading->manifest->file_count ||
        entry->size > reading->manifest->bytes - reading->bytes)
        return cn_err_set(reading->err, CN_EINVALID,
                          CN_MANIFEST_FILES " has more than " CN_MANIFEST_FILE " says");
    reading->bytes += entry->size;
    reading->has_cluster |= strcmp(entry->path, CN_MANIFEST_CLUSTER) == 0;
    snprintf(reading->last, sizeof(reading->last), "%s", entry->path);
    return reading->each(reading->data, entry);
}

/* Whole lines of what is there; the rest stays. */
static int give_lines(struct reading *reading, struct cn_buf *text)
{
    size_t at = 0;
    int rc = 0;
    for (uint8_t *end;
         rc == 0 && at < text->size && (end = memchr(text->data + at, '\n', text->size - at));) {
        struct cn_manifest_entry entry;
        char *line = (char *)text->data + at;
        bool whole = memchr(line, 0, (size_t)((char *)end - line)) == NULL;
        *end = 0;
        reading->count++;
        rc = whole && cn_manifest_entry_parse(line, reading->manifest, &entry)
                 ? give_entry(reading, &entry)
                 : cn_err_set(reading->err, CN_EINVALID,
                              CN_MANIFEST_FILES ": line %" PRIu64 " is none that a backup has",
                              reading->count);
        at = (size_t)(end - text->data) + 1;
    }
    cn_buf_consume(text, at);
    return rc;
}

/* I4 */
static int end_lines(const struct reading *reading, const struct cn_buf *text)
{
    const struct cn_manifest *manifest = reading->manifest;
    if (text->size || reading->count != manifest->file_count || reading->bytes != manifest->bytes)
        return cn_err_set(reading->err, CN_EINVALID,
                          CN_MANIFEST_FILES " has %" PRIu64 " files of %" PRIu64
                                            " bytes, not %" PRIu64 " of %" PRIu64,
                          reading->count, reading->bytes, manifest->file_count, manifest->bytes);
    if (!reading->has_cluster)
        return cn_err_set(reading->err, CN_EINVALID,
                          CN_MANIFEST_FILES " does not have " CN_MANIFEST_CLUSTER);
    return 0;
}

static int read_lines(struct reading *reading, struct cn_disk_file *file, uint64_t size)
{
    struct cn_buf text = {0};
    uint64_t offset = 0;
    int rc = 0;
    while (rc == 0 && offset < size) {
        size_t piece = size - offset < PIECE ? (size_t)(size - offset) : PIECE;
        cn_buf_reserve(&text, piece);
        int64_t got = cn_disk_read(file, text.data + text.size, piece, offset);
        if (got <= 0) {
            rc = cn_err_errno(reading->err, got < 0 ? (int)-got : EIO,
                              "cannot read " CN_MANIFEST_FILES);
            break;
        }
        text.size += (size_t)got;
        offset += (uint64_t)got;
        rc = give_lines(reading, &text);
        if (rc == 0 && text.size > LINE_MAX_)
            rc = cn_err_set(reading->err, CN_EINVALID,
                            CN_MANIFEST_FILES " has a line that is too long");
    }
    if (rc == 0)
        rc = end_lines(reading, &text);
    cn_buf_fini(&text);
    return rc;
}

int cn_manifest_each(struct cn_disk *disk, const struct cn_manifest *manifest,
                     int (*each)(void *data, const struct cn_manifest_entry *entry), void *data,
                     struct cn_err *err)
{
    struct reading reading = {.manifest = manifest, .each = each, .data = data, .err = err};
    char sum[CN_MANIFEST_SUM_SIZE];
    struct cn_disk_file *file;
    uint64_t size;
    int rc = read_file(disk, CN_MANIFEST_FILES, NULL, sum, &size, err);
    if (rc == 0 && strcmp(sum, manifest->files_sum) != 0)
        rc = cn_err_set(err, CN_ECORRUPT, CN_MANIFEST_FILES " does not match its checksum");
    if (rc < 0)
        return rc;
    rc = cn_disk_open(disk, CN_MANIFEST_FILES, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read " CN_MANIFEST_FILES);
    rc = read_lines(&reading, file, size);
    cn_disk_close(file);
    return rc;
}

int cn_manifest_take(struct cn_disk *disk, const struct cn_manifest_entry *entry,
                     struct cn_disk *to, const char *path, struct cn_err *err)
{
    char sum[CN_MANIFEST_SUM_SIZE];
    uint64_t size;
    struct cn_disk_file *out = NULL;
    const char *place = path ? path : entry->path;
    int rc = 0;
    if (to) {
        char *folder = cn_strdup(place), *slash;
        for (slash = strchr(folder, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
            *slash = 0;
            rc = cn_disk_mkdir(to, folder);
            *slash = '/';
        }
        cn_free(folder);
        if (rc == 0)
            rc = cn_disk_open(to, place, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &out);
        if (rc < 0)
            return cn_err_errno(err, -rc, "cannot write %s", place);
    }
    rc = read_file(disk, entry->path, out, sum, &size, err);
    if (out)
        cn_disk_close(out);
    if (rc == 0 && (size != entry->size || strcmp(sum, entry->sum) != 0))
        rc = cn_err_set(err, CN_ECORRUPT, "%s does not match its checksum", entry->path);
    return rc;
}

struct comparing {
    struct cn_disk *disk;
    struct cn_err *err;
};

static int compare_entry(void *data, const struct cn_manifest_entry *entry)
{
    struct comparing *comparing = data;
    return cn_manifest_take(comparing->disk, entry, NULL, NULL, comparing->err);
}

int cn_manifest_compare(struct cn_disk *disk, const struct cn_manifest *manifest,
                        struct cn_err *err)
{
    struct comparing comparing = {disk, err};
    return cn_manifest_each(disk, manifest, compare_entry, &comparing, err);
}
