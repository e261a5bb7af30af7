/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blob.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/rand.h"
#include "text/hex.h"

#define BUFFER_SIZE (256u << 10) /* bytes gathered before they are written */

struct cn_blobs {
    struct cn_disk *disk; /* borrowed */
    char *path;           /* owned */
    int64_t opening;      /* random */
    bool by_shard;
    const struct cn_blob_peers *peers; /* borrowed; NULL: there are none */
    atomic_size_t reader_count;
};

struct cn_blob_writer {
    struct cn_blobs *blobs; /* borrowed */
    struct cn_disk_file *file;
    struct cn_blob_id id;
    struct cn_buf buffer;
    uint64_t written;   /* bytes in the file; the body so far is that and the buffer */
    struct cn_buf sums; /* of the chunks that are complete */
    uint32_t crc;       /* of the one that is not, */
    size_t in_chunk;    /* and its bytes so far */
    int failed;         /* 0, or what every later call returns */
};

struct cn_blob_reader {
    struct cn_blobs *blobs; /* borrowed */
    struct cn_disk_file
        *file; /* NULL: it is read from elsewhere, and the footer has the size alone */
    struct cn_blob_footer footer;
    struct cn_blob_id id;
    uint64_t far;      /* the disk it is read from; 0: this one */
    uint32_t *sums;    /* owned; read with the first bytes */
    uint8_t *chunk;    /* owned; the last chunk that was read for a part of it */
    uint64_t chunk_no; /* which, +1; 0: none */
    bool now;          /* a read that may not wait */
};

static void id_text(const struct cn_blob_id *id, char text[CN_BLOB_ID_SIZE * 2 + 1])
{
    cn_hex_encode(id->bytes, CN_BLOB_ID_SIZE, text);
}

/* Only as id_text() writes it. */
static bool id_parse(const char *text, struct cn_blob_id *id)
{
    char again[CN_BLOB_ID_SIZE * 2 + 1];
    if (strlen(text) != CN_BLOB_ID_SIZE * 2 || !cn_hex_decode(text, CN_BLOB_ID_SIZE, id->bytes))
        return false;
    id_text(id, again);
    return strcmp(again, text) == 0;
}

/* Owned by the caller. */
static char *tmp_path(const struct cn_blobs *blobs, const struct cn_blob_id *id)
{
    char text[CN_BLOB_ID_SIZE * 2 + 1];
    id_text(id, text);
    return cn_sprintf("%s/tmp/%s", blobs->path, text);
}

/* The folder that it lies in. */
static char *final_folder(const struct cn_blobs *blobs, const struct cn_blob_id *id)
{
    return blobs->by_shard
               ? cn_sprintf("%s/%u/%02x", blobs->path, cn_blob_id_shard(id), id->bytes[0])
               : cn_sprintf("%s/%02x", blobs->path, id->bytes[0]);
}

static char *final_path(const struct cn_blobs *blobs, const struct cn_blob_id *id)
{
    char text[CN_BLOB_ID_SIZE * 2 + 1], *folder = final_folder(blobs, id);
    id_text(id, text);
    char *path = cn_sprintf("%s/%s", folder, text);
    cn_free(folder);
    return path;
}

/* --- ids of a cluster ------------------------------------------------------------------------- */

enum { NAMESPACE_AT = 10, SHARD_AT = 14 };

void cn_blob_id_place(struct cn_blob_id *id, uint32_t namespace_id, unsigned shard)
{
    for (unsigned i = 0; i < 4; i++)
        id->bytes[NAMESPACE_AT + i] = (uint8_t)(namespace_id >> (8 * i));
    for (unsigned i = 0; i < 2; i++)
        id->bytes[SHARD_AT + i] = (uint8_t)(shard >> (8 * i));
}

uint32_t cn_blob_id_namespace(const struct cn_blob_id *id)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < 4; i++)
        number |= (uint32_t)id->bytes[NAMESPACE_AT + i] << (8 * i);
    return number;
}

unsigned cn_blob_id_shard(const struct cn_blob_id *id)
{
    return id->bytes[SHARD_AT] | (unsigned)id->bytes[SHARD_AT + 1] << 8;
}

static uint32_t footer_crc(const struct cn_blob_footer *footer)
{
    const size_t start = offsetof(struct cn_blob_footer, sums_crc);
    return cn_crc32c(0, (const uint8_t *)footer + start, sizeof(*footer) - start);
}

/* ---- opening ---- */

static int remove_file(void *data, const char *path)
{
    return cn_disk_unlink(data, path);
}

int cn_blobs_open(struct cn_disk *disk, const char *path, struct cn_blobs **blobs,
                  struct cn_err *err)
{
    char *tmp = cn_sprintf("%s/tmp", path);
    int rc = cn_disk_mkdirs(disk, tmp);
    if (rc == 0)
        rc = cn_disk_walk(disk, tmp, remove_file, disk);
    if (rc < 0) {
        rc = cn_err_errno(err, -rc, "cannot make or clear the folder %s", tmp);
        goto free_tmp;
    }
    struct cn_blobs *opened = CN_NEW(struct cn_blobs);
    opened->disk = disk;
    opened->path = cn_strdup(path);
    cn_rand_secure(&opened->opening, sizeof(opened->opening));
    opened->opening |= 1;
    *blobs = opened;
free_tmp:
    cn_free(tmp);
    return rc;
}

int cn_blobs_open_by_shard(struct cn_disk *disk, const char *path, struct cn_blobs **blobs,
                           struct cn_err *err)
{
    int rc = cn_blobs_open(disk, path, blobs, err);
    if (rc == 0)
        (*blobs)->by_shard = true;
    return rc;
}

struct cn_blobs *cn_blobs_among(const struct cn_blobs *blobs, const struct cn_blob_peers *peers)
{
    struct cn_blobs *among = CN_NEW(struct cn_blobs);
    among->disk = blobs->disk;
    among->path = cn_strdup(blobs->path);
    among->opening = blobs->opening;
    among->by_shard = blobs->by_shard;
    among->peers = peers;
    return among;
}

void cn_blobs_close(struct cn_blobs *blobs)
{
    if (!blobs)
        return;
    cn_free(blobs->path);
    cn_free(blobs);
}

int64_t cn_blobs_opening(const struct cn_blobs *blobs)
{
    return blobs->opening;
}

/* ---- writing ---- */

void cn_blob_id_draw(struct cn_blob_id *id)
{
    cn_rand_secure(id, sizeof(*id));
}

int cn_blob_create(struct cn_blobs *blobs, struct cn_blob_writer **writer, struct cn_err *err)
{
    struct cn_blob_id id;
    cn_blob_id_draw(&id);
    return cn_blob_create_as(blobs, &id, writer, err);
}

int cn_blob_create_as(struct cn_blobs *blobs, const struct cn_blob_id *id,
                      struct cn_blob_writer **writer, struct cn_err *err)
{
    struct cn_blob_writer *created = CN_NEW(struct cn_blob_writer);
    created->blobs = blobs;
    created->id = *id;
    char *path = tmp_path(blobs, &created->id);
    int rc = cn_disk_open(blobs->disk, path, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &created->file);
    if (rc < 0) {
        rc = cn_err_errno(err, -rc, "cannot create %s", path);
        cn_free(created);
    } else {
        *writer = created;
    }
    cn_free(path);
    return rc;
}

static int write_out(struct cn_blob_writer *writer, const void *bytes, size_t size)
{
    int rc = cn_disk_write_all(writer->file, bytes, size, writer->written);
    if (rc == 0)
        writer->written += size;
    return rc;
}

static int flush_buffer(struct cn_blob_writer *writer)
{
    int rc = write_out(writer, writer->buffer.data, writer->buffer.size);
    if (rc == 0)
        cn_buf_clear(&writer->buffer);
    return rc;
}

/* Adds to the checksums of chunks. */
static void sum_bytes(struct cn_blob_writer *writer, const uint8_t *at, size_t size)
{
    while (size > 0) {
        size_t room = CN_BLOB_CHUNK - writer->in_chunk, part = size < room ? size : room;
        writer->crc = cn_crc32c(writer->crc, at, part);
        writer->in_chunk += part;
        at += part;
        size -= part;
        if (writer->in_chunk == CN_BLOB_CHUNK) {
            cn_buf_append(&writer->sums, &writer->crc, sizeof(writer->crc));
            writer->crc = 0;
            writer->in_chunk = 0;
        }
    }
}

int cn_blob_write(struct cn_blob_writer *writer, const void *bytes, size_t size, struct cn_err *err)
{
    const uint8_t *at = bytes;
    if (size > CN_BLOB_SIZE_MAX - writer->written - writer->buffer.size)
        return cn_err_set(err, CN_ELIMIT, "a blob has at most 5 TiB");
    while (size > 0 && writer->failed == 0) {
        size_t room = BUFFER_SIZE - writer->buffer.size, part = size < room ? size : room;
        sum_bytes(writer, at, part);
        if (part == BUFFER_SIZE) { /* nothing is gathered: as it is */
            writer->failed = write_out(writer, at, part);
        } else {
            cn_buf_append(&writer->buffer, at, part);
            if (writer->buffer.size == BUFFER_SIZE)
                writer->failed = flush_buffer(writer);
        }
        at += part;
        size -= part;
    }
    if (writer->failed)
        return cn_err_errno(err, -writer->failed, "cannot write a blob");
    return 0;
}

static void writer_free(struct cn_blob_writer *writer)
{
    cn_disk_close(writer->file);
    cn_buf_fini(&writer->buffer);
    cn_buf_fini(&writer->sums);
    cn_free(writer);
}

void cn_blob_abandon(struct cn_blob_writer *writer)
{
    char *path = tmp_path(writer->blobs, &writer->id);
    (void)cn_disk_unlink(writer->blobs->disk, path); /* if it stays, opening removes it */
    cn_free(path);
    writer_free(writer);
}

uint32_t cn_blob_written_sum(const struct cn_blob_writer *writer)
{
    uint32_t sum = cn_crc32c(0, writer->sums.data, writer->sums.size);
    return writer->in_chunk ? cn_crc32c(sum, &writer->crc, sizeof(writer->crc)) : sum;
}

int cn_blob_finish(struct cn_blob_writer *writer, struct cn_blob_id *id, struct cn_err *err)
{
    struct cn_blobs *blobs = writer->blobs;
    if (writer->in_chunk > 0)
        cn_buf_append(&writer->sums, &writer->crc, sizeof(writer->crc));
    struct cn_blob_footer footer = {
        .magic = CN_BLOB_MAGIC,
        .sums_crc = cn_crc32c(0, writer->sums.data, writer->sums.size),
        .size = writer->written + writer->buffer.size,
    };
    footer.crc = footer_crc(&footer);
    cn_buf_append(&writer->buffer, writer->sums.data, writer->sums.size);
    cn_buf_append(&writer->buffer, &footer, sizeof(footer));
    int rc = writer->failed ? writer->failed : flush_buffer(writer);
    if (rc == 0)
        rc = cn_disk_sync_data(writer->file);
    if (rc < 0) {
        cn_blob_abandon(writer);
        return cn_err_errno(err, -rc, "cannot write a blob");
    }
    char *from = tmp_path(blobs, &writer->id), *to = final_path(blobs, &writer->id);
    rc = cn_disk_rename(blobs->disk, from, to);
    if (rc == -ENOENT) { /* the first blob of its folder */
        char *folder = final_folder(blobs, &writer->id);
        rc = cn_disk_mkdirs(blobs->disk, folder);
        cn_free(folder);
        if (rc == 0)
            rc = cn_disk_rename(blobs->disk, from, to);
    }
    if (rc == 0)
        rc = cn_disk_sync_parent(blobs->disk, to);
    if (rc < 0) {
        (void)cn_disk_unlink(blobs->disk, to); /* one of the two is there; no index names either */
        (void)cn_disk_unlink(blobs->disk, from);
        rc = cn_err_errno(err, -rc, "cannot finish a blob");
    } else {
        *id = writer->id;
        rc = blobs->peers ? blobs->peers->spread(blobs->peers->data, id, err) : 0;
    }
    writer_free(writer);
    cn_free(from);
    cn_free(to);
    return rc;
}

/* ---- reading ---- */

static uint64_t chunk_count(uint64_t size)
{
    return (size + CN_BLOB_CHUNK - 1) / CN_BLOB_CHUNK;
}

/* How long the file of a blob is. */
static uint64_t file_size(const struct cn_blob_footer *footer)
{
    uint64_t sums =
        footer->magic == CN_BLOB_MAGIC ? chunk_count(footer->size) * sizeof(uint32_t) : 0;
    return footer->size + sums + sizeof(*footer);
}

static int footer_read(struct cn_blob_reader *reader, const char *path, struct cn_err *err)
{
    struct cn_blob_footer *footer = &reader->footer;
    int64_t size = cn_disk_size(reader->file);
    if (size < 0)
        return cn_err_errno(err, (int)-size, "cannot read %s", path);
    if ((uint64_t)size < sizeof(*footer))
        return cn_err_set(err, CN_ECORRUPT, "%s is too short to be a blob", path);
    int64_t count =
        cn_disk_read(reader->file, footer, sizeof(*footer), (uint64_t)size - sizeof(*footer));
    if (count < 0)
        return cn_err_errno(err, (int)-count, "cannot read %s", path);
    if (count != sizeof(*footer) ||
        (footer->magic != CN_BLOB_MAGIC && footer->magic != CN_BLOB_MAGIC_1) ||
        footer->crc != footer_crc(footer) || footer->size > CN_BLOB_SIZE_MAX ||
        file_size(footer) != (uint64_t)size)
        return cn_err_set(err, CN_ECORRUPT, "%s has a damaged footer", path);
    return 0;
}

static int open_here(struct cn_blobs *blobs, const struct cn_blob_id *id,
                     struct cn_blob_reader **reader, struct cn_err *err)
{
    struct cn_blob_reader *opened = CN_NEW(struct cn_blob_reader);
    opened->blobs = blobs;
    opened->id = *id;
    char *path = final_path(blobs, id);
    int rc = cn_disk_open(blobs->disk, path, CN_DISK_READONLY, &opened->file);
    if (rc == -ENOENT)
        rc = cn_err_set(err, CN_ENOTFOUND, "there is no blob %s", path);
    else if (rc < 0)
        rc = cn_err_errno(err, -rc, "cannot open %s", path);
    if (rc < 0)
        goto free_opened;
    rc = footer_read(opened, path, err);
    if (rc < 0)
        goto close_file;
    atomic_fetch_add(&blobs->reader_count, 1);
    *reader = opened;
    cn_free(path);
    return 0;
close_file:
    cn_disk_close(opened->file);
free_opened:
    cn_free(opened);
    cn_free(path);
    return rc;
}

/* From now on it is read from another disk. Its own file is missing, or not to be trusted. */
static int turn_elsewhere(struct cn_blob_reader *reader, struct cn_err *err)
{
    const struct cn_blob_peers *peers = reader->blobs->peers;
    uint64_t size, disk;
    int rc = peers->find(peers->data, &reader->id, &disk, &size, err);
    if (rc < 0)
        return rc;
    if (reader->file && size != reader->footer.size)
        return cn_err_set(err, CN_ECORRUPT, "copies of a blob have different sizes");
    if (reader->file)
        cn_disk_close(reader->file);
    reader->file = NULL;
    reader->far = disk;
    reader->footer.size = size;
    return 0;
}

static int open_elsewhere(struct cn_blobs *blobs, const struct cn_blob_id *id,
                          struct cn_blob_reader **reader, struct cn_err *err)
{
    struct cn_blob_reader *opened = CN_NEW(struct cn_blob_reader);
    opened->blobs = blobs;
    opened->id = *id;
    int rc = turn_elsewhere(opened, err);
    if (rc < 0) {
        cn_free(opened);
        return rc;
    }
    atomic_fetch_add(&blobs->reader_count, 1);
    *reader = opened;
    return 0;
}

int cn_blob_open(struct cn_blobs *blobs, const struct cn_blob_id *id,
                 struct cn_blob_reader **reader, struct cn_err *err)
{
    int rc = open_here(blobs, id, reader, err);
    if (rc == 0 || !blobs->peers)
        return rc;
    if (rc == CN_ECORRUPT)
        blobs->peers->damaged(blobs->peers->data, id);
    return open_elsewhere(blobs, id, reader, err);
}

uint64_t cn_blob_size(const struct cn_blob_reader *reader)
{
    return reader->footer.size;
}

uint32_t cn_blob_sum(const struct cn_blob_reader *reader)
{
    return reader->footer.sums_crc;
}

bool cn_blob_is_here(struct cn_blobs *blobs, const struct cn_blob_id *id)
{
    char *path = final_path(blobs, id);
    bool here = cn_disk_has(blobs->disk, path);
    cn_free(path);
    return here;
}

static int damaged(const struct cn_blob_reader *reader, struct cn_err *err)
{
    char text[CN_BLOB_ID_SIZE * 2 + 1];
    id_text(&reader->id, text);
    return cn_err_set(err, CN_ECORRUPT, "blob %s is damaged: its checksum does not match", text);
}

static int read_exact(struct cn_blob_reader *reader, void *bytes, size_t size, uint64_t offset,
                      struct cn_err *err)
{
    int64_t count = reader->now ? cn_disk_read_now(reader->file, bytes, size, offset)
                                : cn_disk_read(reader->file, bytes, size, offset);
    if (reader->now && count == -EAGAIN)
        return -EAGAIN;
    if (count < 0)
        return cn_err_errno(err, (int)-count, "cannot read a blob");
    if ((size_t)count != size)
        return cn_err_set(err, CN_ECORRUPT, "a blob is shorter than its footer says");
    return 0;
}

static int sums_read(struct cn_blob_reader *reader, struct cn_err *err)
{
    size_t size = (size_t)chunk_count(reader->footer.size) * sizeof(uint32_t);
    uint32_t *sums = cn_try_alloc(size + 1);
    if (!sums)
        return cn_err_set(err, CN_ENOMEM, "no memory for the checksums of a blob");
    int rc = read_exact(reader, sums, size, reader->footer.size, err);
    if (rc == 0 && cn_crc32c(0, sums, size) != reader->footer.sums_crc)
        rc = damaged(reader, err);
    if (rc < 0)
        cn_free(sums);
    else
        reader->sums = sums;
    return rc;
}

/* One whole chunk; its size. */
static int64_t chunk_read(struct cn_blob_reader *reader, uint64_t number, uint8_t *bytes,
                          struct cn_err *err)
{
    uint64_t left = reader->footer.size - number * CN_BLOB_CHUNK;
    size_t size = left < CN_BLOB_CHUNK ? (size_t)left : CN_BLOB_CHUNK;
    int rc = reader->sums ? 0 : sums_read(reader, err);
    if (rc == 0)
        rc = read_exact(reader, bytes, size, number * CN_BLOB_CHUNK, err);
    if (rc == 0 && cn_crc32c(0, bytes, size) != reader->sums[number])
        rc = damaged(reader, err);
    return rc < 0 ? rc : (int64_t)size;
}

/* The chunk of which a part is wanted, kept for the next part. */
static int chunk_hold(struct cn_blob_reader *reader, uint64_t number, struct cn_err *err)
{
    if (reader->chunk_no == number + 1)
        return 0;
    if (!reader->chunk)
        reader->chunk = cn_alloc(CN_BLOB_CHUNK);
    reader->chunk_no = 0;
    int64_t size = chunk_read(reader, number, reader->chunk, err);
    if (size < 0)
        return (int)size;
    reader->chunk_no = number + 1;
    return 0;
}

static int64_t read_here(struct cn_blob_reader *reader, void *bytes, size_t size, uint64_t offset,
                         struct cn_err *err)
{
    uint64_t left = offset < reader->footer.size ? reader->footer.size - offset : 0;
    size_t want = size < left ? size : (size_t)left;
    uint8_t *out = bytes;
    if (reader->footer.magic == CN_BLOB_MAGIC_1) {
        int rc = read_exact(reader, bytes, want, offset, err);
        return rc < 0 ? rc : (int64_t)want;
    }
    for (size_t done = 0; done < want;) {
        uint64_t number = (offset + done) / CN_BLOB_CHUNK;
        size_t at = (size_t)((offset + done) % CN_BLOB_CHUNK), part = CN_BLOB_CHUNK - at;
        part = part < want - done ? part : want - done;
        bool whole =
            at == 0 && (part == CN_BLOB_CHUNK || offset + done + part == reader->footer.size);
        int64_t rc =
            whole ? chunk_read(reader, number, out + done, err) : chunk_hold(reader, number, err);
        if (rc < 0)
            return rc;
        if (!whole)
            memcpy(out + done, reader->chunk + at, part);
        done += part;
    }
    return (int64_t)want;
}

/* The disk it was read from may be gone by now: another one is looked for, once. */
static int64_t read_elsewhere(struct cn_blob_reader *reader, void *bytes, size_t size,
                              uint64_t offset, struct cn_err *err)
{
    const struct cn_blob_peers *peers = reader->blobs->peers;
    uint64_t left = offset < reader->footer.size ? reader->footer.size - offset : 0;
    size_t want = size < left ? size : (size_t)left;
    if (reader->now)
        return -EAGAIN;
    if (!want)
        return 0;
    int rc = peers->read(peers->data, &reader->id, reader->far, bytes, want, offset, err);
    if (rc < 0)
        rc = turn_elsewhere(reader, err);
    else
        return (int64_t)want;
    if (rc == 0)
        rc = peers->read(peers->data, &reader->id, reader->far, bytes, want, offset, err);
    return rc < 0 ? rc : (int64_t)want;
}

int64_t cn_blob_read(struct cn_blob_reader *reader, void *bytes, size_t size, uint64_t offset,
                     struct cn_err *err)
{
    const struct cn_blob_peers *peers = reader->blobs->peers;
    if (!reader->file)
        return read_elsewhere(reader, bytes, size, offset, err);
    int64_t count = read_here(reader, bytes, size, offset, err);
    if (count >= 0 || !peers || (reader->now && count == -EAGAIN))
        return count;
    if (reader->now)
        return -EAGAIN;
    if (count == CN_ECORRUPT)
        peers->damaged(peers->data, &reader->id);
    struct cn_err other;
    if (turn_elsewhere(reader, &other) < 0)
        return count; /* what is wrong here is what is told */
    return read_elsewhere(reader, bytes, size, offset, err);
}

int64_t cn_blob_read_now(struct cn_blob_reader *reader, void *bytes, size_t size, uint64_t offset,
                         struct cn_err *err)
{
    reader->now = true;
    int64_t count = cn_blob_read(reader, bytes, size, offset, err);
    reader->now = false;
    return count;
}

int cn_blob_verify(struct cn_blob_reader *reader, struct cn_err *err)
{
    uint8_t *bytes = cn_alloc(BUFFER_SIZE);
    uint32_t crc = 0;
    int64_t count = 0;
    int rc = reader->footer.magic == CN_BLOB_MAGIC && !reader->sums ? sums_read(reader, err) : 0;
    for (uint64_t at = 0; rc == 0 && at < reader->footer.size; at += (uint64_t)count) {
        count = cn_blob_read(reader, bytes, BUFFER_SIZE, at, err);
        if (count < 0)
            rc = (int)count;
        else
            crc = cn_crc32c(crc, bytes, (size_t)count);
    }
    cn_free(bytes);
    if (rc == 0 && reader->footer.magic == CN_BLOB_MAGIC_1 && crc != reader->footer.sums_crc)
        rc = damaged(reader, err);
    return rc;
}

void cn_blob_close(struct cn_blob_reader *reader)
{
    if (!reader)
        return;
    atomic_fetch_sub(&reader->blobs->reader_count, 1);
    if (reader->file)
        cn_disk_close(reader->file);
    cn_free(reader->sums);
    cn_free(reader->chunk);
    cn_free(reader);
}

size_t cn_blobs_reader_count(const struct cn_blobs *blobs)
{
    return atomic_load(&blobs->reader_count);
}

/* ---- deleting ---- */

int cn_blob_delete(struct cn_blobs *blobs, const struct cn_blob_id *id, struct cn_err *err)
{
    if (blobs->peers)
        return blobs->peers->remove(blobs->peers->data, id, err);
    char *path = final_path(blobs, id);
    /* Not synced: a name that comes back after a crash is collected at start. */
    int rc = cn_disk_unlink(blobs->disk, path);
    if (rc < 0 && rc != -ENOENT)
        rc = cn_err_errno(err, -rc, "cannot remove %s", path);
    cn_free(path);
    return rc == -ENOENT ? 0 : rc;
}

/* Those of the folder `path`/<xx>, rising. */
static int walk_folder(struct cn_blobs *blobs, const char *path, int xx, cn_blob_each each,
                       void *data, struct cn_err *err)
{
    struct cn_disk_entries entries;
    char *folder = cn_sprintf("%s/%02x", path, xx);
    int rc = cn_disk_entries(blobs->disk, folder, &entries);
    if (rc < 0)
        rc = rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot list %s", folder);
    for (size_t j = 0; rc >= 0 && j < entries.count; j++) {
        struct cn_blob_id id;
        if (id_parse(entries.items[j].name, &id))
            rc = each(data, &id);
    }
    cn_disk_entries_fini(&entries);
    cn_free(folder);
    return rc;
}

static int walk_shards(struct cn_blobs *blobs, cn_blob_each each, void *data, struct cn_err *err)
{
    struct cn_disk_entries shards;
    int rc = cn_disk_entries(blobs->disk, blobs->path, &shards);
    if (rc < 0)
        rc = cn_err_errno(err, -rc, "cannot list %s", blobs->path);
    for (size_t i = 0; rc >= 0 && i < shards.count; i++) {
        const char *name = shards.items[i].name;
        if (name[strspn(name, "0123456789")])
            continue; /* tmp */
        char *path = cn_sprintf("%s/%s", blobs->path, name);
        for (int xx = 0; rc >= 0 && xx < 256; xx++)
            rc = walk_folder(blobs, path, xx, each, data, err);
        cn_free(path);
    }
    cn_disk_entries_fini(&shards);
    return rc;
}

int cn_blobs_walk(struct cn_blobs *blobs, cn_blob_each each, void *data, struct cn_err *err)
{
    if (blobs->by_shard)
        return walk_shards(blobs, each, data, err);
    int rc = 0;
    for (int i = 0; rc >= 0 && i < 256; i++)
        rc = walk_folder(blobs, blobs->path, i, each, data, err);
    return rc;
}

struct listing {
    const struct cn_blob_id *after;
    struct cn_blob_id *ids;
    size_t count, max;
};

static int list_one(void *data, const struct cn_blob_id *id)
{
    struct listing *listing = data;
    if (listing->count < listing->max &&
        (!listing->after || memcmp(id, listing->after, sizeof(*id)) > 0))
        listing->ids[listing->count++] = *id;
    return 0;
}

int64_t cn_blobs_list(struct cn_blobs *blobs, unsigned shard, const struct cn_blob_id *after,
                      struct cn_blob_id *ids, size_t max, struct cn_err *err)
{
    struct listing listing = {after, ids, 0, max};
    char *path = cn_sprintf("%s/%u", blobs->path, shard);
    int rc = 0;
    for (int xx = after ? after->bytes[0] : 0; rc >= 0 && xx < 256 && listing.count < max; xx++)
        rc = walk_folder(blobs, path, xx, list_one, &listing, err);
    cn_free(path);
    return rc < 0 ? rc : (int64_t)listing.count;
}

struct collection {
    struct cn_blobs *blobs;
    bool (*in_use)(void *data, const struct cn_blob_id *id);
    void *data;
    struct cn_err *err;
    int64_t deleted;
};

static int collect_one(void *data, const struct cn_blob_id *id)
{
    struct collection *collection = data;
    if (collection->in_use(collection->data, id))
        return 0;
    collection->deleted++;
    return cn_blob_delete(collection->blobs, id, collection->err);
}

int64_t cn_blobs_collect(struct cn_blobs *blobs,
                         bool (*in_use)(void *data, const struct cn_blob_id *id), void *data,
                         struct cn_err *err)
{
    struct collection collection = {blobs, in_use, data, err, 0};
    int rc = cn_blobs_walk(blobs, collect_one, &collection, err);
    return rc < 0 ? rc : collection.deleted;
}
