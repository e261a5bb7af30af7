/* SPDX-License-Identifier: Apache-2.0 */
#include "store/archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "store/segment.h"
#include "store/sums.h"
#include "text/hex.h"

#define ZSTD_LEVEL 3
/* Claims of a file beyond these are not believed: nothing we write reaches them. */
#define RAW_SIZE_MAX ((uint64_t)CN_RECORD_BODY_MAX + CN_ARCHIVE_CHUNK + 4096)

static const struct cn_object_key no_object;

static uint32_t crc_after(const void *start, size_t skip, size_t size)
{
    return cn_crc32c(0, (const uint8_t *)start + skip, size - skip);
}

static uint32_t header_crc(const struct cn_archive_header *header)
{
    return crc_after(header, offsetof(struct cn_archive_header, version), sizeof(*header));
}

static uint32_t image_crc(const struct cn_archive_image *image)
{
    return crc_after(image, offsetof(struct cn_archive_image, version), sizeof(*image));
}

/* Namespaces by number, ids by bytes. */
static int key_order(const struct cn_object_key *a, const struct cn_object_key *b)
{
    if (a->namespace_id != b->namespace_id)
        return a->namespace_id < b->namespace_id ? -1 : 1;
    return memcmp(a->id, b->id, sizeof(a->id));
}

/* ---- names ---- */

void cn_archive_path(uint64_t first_lsn, uint64_t last_lsn, char path[CN_ARCHIVE_PATH_MAX])
{
    snprintf(path, CN_ARCHIVE_PATH_MAX, "history/%016" PRIx64 "-%016" PRIx64 ".arc", first_lsn,
             last_lsn);
}

bool cn_archive_name_parse(const char *name, uint64_t *first_lsn, uint64_t *last_lsn)
{
    char path[CN_ARCHIVE_PATH_MAX];
    if (sscanf(name, "%16" SCNx64 "-%16" SCNx64 ".arc", first_lsn, last_lsn) != 2)
        return false;
    cn_archive_path(*first_lsn, *last_lsn, path);
    return strcmp(path + strlen("history/"), name) == 0; /* exactly as we would write it */
}

void cn_archive_image_path(const struct cn_object_key *key, uint64_t lsn,
                           char path[CN_ARCHIVE_PATH_MAX])
{
    int at = snprintf(path, CN_ARCHIVE_PATH_MAX, "history/%016" PRIx64 "-%08" PRIx32 "-", lsn,
                      key->namespace_id);
    cn_hex_encode(key->id, CN_OBJECT_ID_SIZE, path + at);
    at += 2 * CN_OBJECT_ID_SIZE;
    snprintf(path + at, CN_ARCHIVE_PATH_MAX - (size_t)at, ".img");
}

bool cn_archive_image_name_parse(const char *name, struct cn_object_key *key, uint64_t *lsn)
{
    char path[CN_ARCHIVE_PATH_MAX];
    if (strlen(name) != 16 + 1 + 8 + 1 + 2 * CN_OBJECT_ID_SIZE + 4 ||
        sscanf(name, "%16" SCNx64 "-%8" SCNx32 "-", lsn, &key->namespace_id) != 2)
        return false;
    for (int i = 0; i < CN_OBJECT_ID_SIZE; i++) {
        unsigned byte;
        if (sscanf(name + 26 + 2 * i, "%2x", &byte) != 1)
            return false;
        key->id[i] = (uint8_t)byte;
    }
    cn_archive_image_path(key, *lsn, path);
    return strcmp(path + strlen("history/"), name) == 0;
}

/* ---- writing a file ---- */

/* A file on its way: written to `path`.tmp, renamed when it is complete. */
struct output {
    struct cn_disk *disk;
    struct cn_disk_file *file;
    uint64_t offset;
    char path[CN_ARCHIVE_PATH_MAX], tmp[CN_ARCHIVE_PATH_MAX + 4];
    ZSTD_CCtx *zstd;
    struct cn_buf packed;
};

static int output_open(struct output *out, struct cn_disk *disk, const char *path,
                       struct cn_err *err)
{
    memset(out, 0, sizeof(*out));
    out->disk = disk;
    snprintf(out->path, sizeof(out->path), "%s", path);
    snprintf(out->tmp, sizeof(out->tmp), "%s.tmp", path);
    int rc = cn_disk_mkdirs(disk, "history");
    if (rc == 0)
        rc = cn_disk_open(disk, out->tmp, CN_DISK_CREATE | CN_DISK_TRUNCATE, &out->file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot create %s", out->tmp);
    out->zstd = ZSTD_createCCtx();
    return 0;
}

static int output_write(struct output *out, const void *bytes, size_t size, struct cn_err *err)
{
    int rc = cn_disk_write_all(out->file, bytes, size, out->offset);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot write %s", out->tmp);
    out->offset += size;
    return 0;
}

/* Compresses into out->packed. */
static int output_pack(struct output *out, const void *bytes, size_t size, struct cn_err *err)
{
    cn_buf_clear(&out->packed);
    cn_buf_reserve(&out->packed, ZSTD_compressBound(size));
    size_t packed = ZSTD_compressCCtx(out->zstd, out->packed.data, out->packed.capacity, bytes,
                                      size, ZSTD_LEVEL);
    if (ZSTD_isError(packed))
        return cn_err_set(err, CN_ENOMEM, "cannot compress: %s", ZSTD_getErrorName(packed));
    out->packed.size = packed;
    return 0;
}

static int output_finish(struct output *out, const void *header, size_t header_size,
                         struct cn_err *err)
{
    int rc = cn_disk_write_all(out->file, header, header_size, 0);
    if (rc == 0)
        rc = cn_disk_sync_data(out->file);
    if (rc == 0)
        rc = cn_disk_rename(out->disk, out->tmp, out->path);
    if (rc == 0)
        rc = cn_disk_sync_dir(out->disk, "history");
    return rc < 0 ? cn_err_errno(err, -rc, "cannot finish %s", out->path) : 0;
}

static void output_close(struct output *out, bool failed)
{
    cn_disk_close(out->file);
    if (failed)
        (void)cn_disk_unlink(out->disk, out->tmp); /* history removes leftovers when it opens */
    ZSTD_freeCCtx(out->zstd);
    cn_buf_fini(&out->packed);
}

/* ---- archiving a segment ---- */

/* Where a record of the segment is. */
struct place {
    struct cn_object_key key;
    uint64_t lsn, offset;
    uint32_t size; /* with header and padding */
};

static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = key_order(&x->key, &y->key);
    return order ? order : x->lsn < y->lsn ? -1 : x->lsn > y->lsn;
}

static void put_number(struct cn_buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        cn_buf_append_byte(buf, (uint8_t)(number | 0x80));
    cn_buf_append_byte(buf, (uint8_t)number);
}

struct writer {
    struct cn_archive_header header;
    struct place *places; /* owned */
    size_t place_count, place_room;
    struct cn_buf times, chunks, objects; /* parts of the directory */
    struct cn_buf chunk;                  /* records of the chunk being filled */
    struct output out;
};

/* Notes every record of the segment up to `last_lsn`. */
static int survey(struct writer *writer, struct cn_segment_reader *reader, uint64_t last_lsn,
                  struct cn_err *err)
{
    int64_t time_ms = 0;
    while (reader->next_lsn <= last_lsn) {
        uint64_t offset = reader->offset;
        struct cn_record record;
        int rc = cn_segment_reader_next(reader, &record, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return cn_err_set(err, CN_ECORRUPT, "%s ends before LSN %" PRIu64, reader->path,
                              last_lsn);
        struct place place = {.lsn = record.header.lsn,
                              .offset = offset,
                              .size = (uint32_t)cn_record_size(record.header.body_size)};
        if (record.header.kind == CN_RECORD_COMMIT) {
            struct cn_commit commit;
            rc = cn_commit_read(&record, &commit, err);
            if (rc < 0)
                return rc;
            place.key = commit.head.key;
        }
        CN_GROW(writer->places, writer->place_count, writer->place_room);
        if (writer->place_count == 0)
            writer->header.first_ms = time_ms = record.header.time_ms;
        put_number(&writer->times, (uint64_t)(record.header.time_ms - time_ms));
        time_ms = record.header.time_ms;
        writer->places[writer->place_count++] = place;
        writer->header.records_size += place.size;
    }
    writer->header.last_ms = time_ms;
    return 0;
}

static int flush_chunk(struct writer *writer, struct cn_err *err)
{
    if (writer->chunk.size == 0)
        return 0;
    int rc = output_pack(&writer->out, writer->chunk.data, writer->chunk.size, err);
    if (rc < 0)
        return rc;
    const struct cn_buf *packed = &writer->out.packed;
    struct cn_archive_chunk chunk = {.offset = writer->out.offset,
                                     .size = (uint32_t)packed->size,
                                     .raw_size = (uint32_t)writer->chunk.size,
                                     .crc = cn_crc32c(0, packed->data, packed->size)};
    cn_buf_append(&writer->chunks, &chunk, sizeof(chunk));
    writer->header.chunk_count++;
    cn_buf_clear(&writer->chunk);
    return output_write(&writer->out, packed->data, packed->size, err);
}

/* Copies the records in order of the places into chunks. */
static int copy_records(struct writer *writer, struct cn_disk_file *segment, struct cn_err *err)
{
    struct cn_archive_object object = {0};
    for (size_t i = 0; i < writer->place_count; i++) {
        const struct place *place = &writer->places[i];
        if (writer->chunk.size + place->size > CN_ARCHIVE_CHUNK) {
            int rc = flush_chunk(writer, err);
            if (rc < 0)
                return rc;
        }
        if (object.record_count == 0 || key_order(&object.key, &place->key) != 0) {
            if (object.record_count > 0)
                cn_buf_append(&writer->objects, &object, sizeof(object));
            object = (struct cn_archive_object){.key = place->key,
                                                .chunk = writer->header.chunk_count,
                                                .offset = (uint32_t)writer->chunk.size,
                                                .first_lsn = place->lsn};
            writer->header.object_count++;
        }
        object.record_count++;
        object.last_lsn = place->lsn;
        cn_buf_reserve(&writer->chunk, place->size);
        int64_t count = cn_disk_read(segment, writer->chunk.data + writer->chunk.size, place->size,
                                     place->offset);
        if (count < 0)
            return cn_err_errno(err, (int)-count, "cannot read a log segment");
        if (count != place->size)
            return cn_err_set(err, CN_ECORRUPT, "a log segment became shorter while it was read");
        writer->chunk.size += place->size;
    }
    if (object.record_count > 0)
        cn_buf_append(&writer->objects, &object, sizeof(object));
    return flush_chunk(writer, err);
}

static int write_directory(struct writer *writer, struct cn_err *err)
{
    struct cn_archive_header *header = &writer->header;
    struct cn_buf *raw = &writer->chunks; /* the parts, one behind the other */
    cn_buf_append(raw, writer->objects.data, writer->objects.size);
    cn_buf_append(raw, writer->times.data, writer->times.size);
    int rc = output_pack(&writer->out, raw->data, raw->size, err);
    if (rc < 0)
        return rc;
    const struct cn_buf *packed = &writer->out.packed;
    header->directory_offset = writer->out.offset;
    header->directory_size = (uint32_t)packed->size;
    header->directory_raw_size = (uint32_t)raw->size;
    header->directory_crc = cn_crc32c(0, packed->data, packed->size);
    rc = output_write(&writer->out, packed->data, packed->size, err);
    if (rc < 0)
        return rc;
    header->magic = CN_ARCHIVE_MAGIC;
    header->version = CN_ARCHIVE_VERSION;
    header->crc = header_crc(header);
    return output_finish(&writer->out, header, sizeof(*header), err);
}

int cn_archive_write(struct cn_disk *disk, const char *segment_path, uint64_t last_lsn,
                     struct cn_archive_header *header, struct cn_err *err)
{
    struct cn_segment_reader reader;
    struct writer writer = {0};
    char path[CN_ARCHIVE_PATH_MAX];
    int rc = cn_segment_reader_open(&reader, disk, segment_path, err);
    if (rc < 0)
        return rc;
    writer.header.segment = reader.header.number;
    writer.header.first_lsn = reader.header.first_lsn;
    writer.header.last_lsn = last_lsn;
    rc = survey(&writer, &reader, last_lsn, err);
    if (rc < 0)
        goto close_reader;
    qsort(writer.places, writer.place_count, sizeof(struct place), place_order);
    cn_archive_path(reader.header.first_lsn, last_lsn, path);
    rc = output_open(&writer.out, disk, path, err);
    if (rc < 0)
        goto close_reader;
    writer.out.offset = sizeof(writer.header);
    rc = copy_records(&writer, reader.file, err);
    if (rc == 0)
        rc = write_directory(&writer, err);
    output_close(&writer.out, rc < 0);
    if (rc == 0)
        *header = writer.header;
close_reader:
    cn_segment_reader_close(&reader);
    cn_free(writer.places);
    cn_buf_fini(&writer.times);
    cn_buf_fini(&writer.chunks);
    cn_buf_fini(&writer.objects);
    cn_buf_fini(&writer.chunk);
    return rc;
}

/* ---- reading ---- */

static int read_exact(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset,
                      struct cn_err *err)
{
    int64_t count = cn_disk_read(file, bytes, size, offset);
    if (count < 0)
        return cn_err_errno(err, (int)-count, "cannot read");
    if ((size_t)count != size)
        return cn_err_set(err, CN_ECORRUPT, "the file is too short");
    return 0;
}

/* Reads `size` compressed bytes and appends their `raw_size` uncompressed ones to `out`. */
static int unpack(struct cn_disk_file *file, uint64_t offset, uint32_t size, uint32_t raw_size,
                  uint32_t crc, struct cn_buf *out, struct cn_err *err)
{
    int64_t file_size = cn_disk_size(file);
    if (file_size < 0)
        return cn_err_errno(err, (int)-file_size, "cannot read");
    if (raw_size > RAW_SIZE_MAX || offset > (uint64_t)file_size ||
        size > (uint64_t)file_size - offset)
        return cn_err_set(err, CN_ECORRUPT, "a part lies outside the file");
    uint8_t *packed = cn_try_alloc(size ? size : 1);
    uint8_t *grown = packed ? cn_try_realloc(out->data, out->size + raw_size + 1) : NULL;
    if (!grown) {
        cn_free(packed);
        return cn_err_set(err, CN_ENOMEM, "no memory for %" PRIu32 " bytes", raw_size);
    }
    out->data = grown;
    out->capacity = out->size + raw_size + 1;
    int rc = read_exact(file, packed, size, offset, err);
    if (rc == 0 && cn_crc32c(0, packed, size) != crc)
        rc = cn_err_set(err, CN_ECORRUPT, "a checksum does not match");
    if (rc == 0) {
        size_t raw = ZSTD_decompress(out->data + out->size, raw_size, packed, size);
        if (raw != raw_size)
            rc = cn_err_set(err, CN_ECORRUPT, "a part does not decompress to its size");
    }
    if (rc == 0)
        out->size += raw_size;
    cn_free(packed);
    return rc;
}

static int header_check(const struct cn_archive_header *header, struct cn_err *err)
{
    if (header->magic != CN_ARCHIVE_MAGIC)
        return cn_err_set(err, CN_ECORRUPT, "not an archive: wrong magic number");
    if (header->crc != header_crc(header))
        return cn_err_set(err, CN_ECORRUPT, "damaged header: its checksum does not match");
    if (header->version > CN_ARCHIVE_VERSION)
        return cn_err_set(err, CN_EVERSION,
                          "archive format %" PRIu32 " is newer than the %d that this version reads",
                          header->version, CN_ARCHIVE_VERSION);
    uint64_t fixed = (uint64_t)header->chunk_count * sizeof(struct cn_archive_chunk) +
                     (uint64_t)header->object_count * sizeof(struct cn_archive_object);
    if (header->first_lsn == 0 || header->last_lsn < header->first_lsn ||
        header->last_ms < header->first_ms || fixed > header->directory_raw_size)
        return cn_err_set(err, CN_ECORRUPT, "the header contradicts itself");
    return 0;
}

int cn_archive_open(struct cn_archive *archive, struct cn_disk *disk, const char *path,
                    struct cn_err *err)
{
    memset(archive, 0, sizeof(*archive));
    archive->chunk_index = UINT32_MAX;
    struct cn_archive_header *header = &archive->header;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &archive->file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", path);
    rc = read_exact(archive->file, header, sizeof(*header), 0, err);
    if (rc == 0)
        rc = header_check(header, err);
    if (rc == 0)
        rc = unpack(archive->file, header->directory_offset, header->directory_size,
                    header->directory_raw_size, header->directory_crc, &archive->directory, err);
    if (rc < 0) {
        cn_archive_close(archive);
        cn_err_context(err, "%s", path);
        return rc;
    }
    archive->chunks = archive->directory.data;
    archive->objects = archive->chunks + header->chunk_count * sizeof(struct cn_archive_chunk);
    archive->times = archive->objects + header->object_count * sizeof(struct cn_archive_object);
    archive->times_end = archive->directory.data + archive->directory.size;
    return 0;
}

void cn_archive_close(struct cn_archive *archive)
{
    cn_disk_close(archive->file);
    cn_buf_fini(&archive->directory);
    cn_buf_fini(&archive->chunk);
}

void cn_archive_object(const struct cn_archive *archive, uint32_t index,
                       struct cn_archive_object *object)
{
    memcpy(object, archive->objects + index * sizeof(*object), sizeof(*object));
}

bool cn_archive_find(const struct cn_archive *archive, const struct cn_object_key *key,
                     struct cn_archive_object *object)
{
    uint32_t low = 0, high = archive->header.object_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        cn_archive_object(archive, middle, object);
        int order = key_order(&object->key, key);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* One record of an object's run: whose it must be and which LSNs it may have. */
static int check_record(const struct cn_archive *archive, const struct cn_archive_object *object,
                        const struct cn_record *record, uint64_t after_lsn, struct cn_err *err)
{
    struct cn_object_key key = no_object;
    if (record->header.kind == CN_RECORD_COMMIT) {
        struct cn_commit commit;
        int rc = cn_commit_read(record, &commit, err);
        if (rc < 0)
            return rc;
        key = commit.head.key;
    }
    uint64_t lsn = record->header.lsn;
    if (key_order(&key, &object->key) != 0 || lsn <= after_lsn || lsn < archive->header.first_lsn ||
        lsn > archive->header.last_lsn)
        return cn_err_set(err, CN_ECORRUPT, "record %" PRIu64 " is where it does not belong", lsn);
    return 0;
}

/* Makes archive->chunk the chunk with this index. */
static int load_chunk(struct cn_archive *archive, uint32_t index, struct cn_err *err)
{
    struct cn_archive_chunk chunk;
    if (index == archive->chunk_index)
        return 0;
    if (index >= archive->header.chunk_count)
        return cn_err_set(err, CN_ECORRUPT, "records of an object are missing");
    memcpy(&chunk, archive->chunks + index * sizeof(chunk), sizeof(chunk));
    archive->chunk_index = UINT32_MAX;
    cn_buf_clear(&archive->chunk);
    int rc = unpack(archive->file, chunk.offset, chunk.size, chunk.raw_size, chunk.crc,
                    &archive->chunk, err);
    if (rc == 0)
        archive->chunk_index = index;
    return rc;
}

int cn_archive_read(struct cn_archive *archive, const struct cn_archive_object *object,
                    struct cn_buf *records, struct cn_err *err)
{
    const struct cn_buf *raw = &archive->chunk;
    uint32_t at = object->chunk, left = object->record_count;
    uint64_t lsn = 0;
    int rc = 0;
    for (size_t offset = object->offset; rc == 0 && left > 0; at++, offset = 0) {
        rc = load_chunk(archive, at, err);
        size_t start = offset;
        while (rc == 0 && left > 0 && offset < raw->size) {
            struct cn_record record;
            uint64_t size = cn_record_read(raw->data + offset, raw->size - offset, &record);
            if (size == 0)
                rc = cn_err_set(err, CN_ECORRUPT, "a record of chunk %" PRIu32 " is damaged", at);
            else
                rc = check_record(archive, object, &record, lsn, err);
            if (rc < 0)
                break;
            lsn = record.header.lsn;
            offset += size;
            left--;
        }
        if (rc == 0 && offset > start)
            cn_buf_append(records, raw->data + start, offset - start);
    }
    return rc;
}

/* ---- times ---- */

/* Steps through the times; false behind the last one, or at malformed bytes. */
static bool time_next(const struct cn_archive *archive, const uint8_t **at, int64_t *time_ms)
{
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && *at < archive->times_end; shift += 7) {
        uint8_t byte = *(*at)++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *time_ms = (int64_t)((uint64_t)*time_ms + number);
            return true;
        }
    }
    return false;
}

uint64_t cn_archive_lsn_at(const struct cn_archive *archive, int64_t time_ms)
{
    const uint8_t *at = archive->times;
    int64_t time = archive->header.first_ms;
    uint64_t lsn = archive->header.first_lsn - 1;
    while (lsn < archive->header.last_lsn && time_next(archive, &at, &time) && time <= time_ms)
        lsn++;
    return lsn;
}

int64_t cn_archive_time_of(const struct cn_archive *archive, uint64_t lsn)
{
    const uint8_t *at = archive->times;
    int64_t time = archive->header.first_ms;
    for (uint64_t i = archive->header.first_lsn; i <= lsn && time_next(archive, &at, &time); i++)
        ;
    return time;
}

/* ---- checking ---- */

int cn_archive_verify(struct cn_archive *archive, struct cn_err *err)
{
    struct cn_archive_object object, before = {0};
    struct cn_buf records = {0};
    uint64_t count = 0;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < archive->header.object_count; i++) {
        cn_archive_object(archive, i, &object);
        if (i > 0 && key_order(&before.key, &object.key) >= 0)
            rc = cn_err_set(err, CN_ECORRUPT, "the objects of the directory are out of order");
        cn_buf_clear(&records);
        if (rc == 0)
            rc = cn_archive_read(archive, &object, &records, err);
        count += object.record_count;
        before = object;
    }
    cn_buf_fini(&records);
    if (rc == 0 && count != archive->header.last_lsn - archive->header.first_lsn + 1)
        rc = cn_err_set(err, CN_ECORRUPT, "%" PRIu64 " records instead of %" PRIu64, count,
                        archive->header.last_lsn - archive->header.first_lsn + 1);
    const uint8_t *at = archive->times;
    int64_t time = archive->header.first_ms;
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        if (!time_next(archive, &at, &time))
            rc = cn_err_set(err, CN_ECORRUPT, "times are missing");
    }
    if (rc == 0 && (at != archive->times_end || time != archive->header.last_ms))
        rc = cn_err_set(err, CN_ECORRUPT, "the times do not end where they should");
    return rc;
}

/* ---- databases set aside ---- */

int cn_archive_image_write(struct cn_disk *disk, const char *from, const struct cn_object_key *key,
                           uint64_t lsn, struct cn_err *err)
{
    struct cn_disk_file *file;
    struct output out;
    char path[CN_ARCHIVE_PATH_MAX];
    int rc = cn_disk_open(disk, from, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", from);
    struct cn_sums sums = {0};
    uint32_t page_count = 0;
    uint8_t *pages = cn_alloc((size_t)CN_ARCHIVE_RUN * CN_PAGE_SIZE);
    cn_archive_image_path(key, lsn, path);
    rc = cn_sums_read(&sums, file, &page_count, err);
    if (rc == 0)
        rc = output_open(&out, disk, path, err);
    if (rc < 0)
        goto close_file;
    struct cn_archive_image image = {.magic = CN_ARCHIVE_IMAGE_MAGIC,
                                     .version = CN_ARCHIVE_VERSION,
                                     .page_count = page_count,
                                     .lsn = lsn,
                                     .key = *key};
    image.crc = image_crc(&image);
    out.offset = sizeof(image);
    uint64_t end = (uint64_t)image.page_count * CN_PAGE_SIZE;
    for (uint64_t at = 0; rc == 0 && at < end;) {
        uint64_t raw =
            end - at < CN_ARCHIVE_RUN * CN_PAGE_SIZE ? end - at : CN_ARCHIVE_RUN * CN_PAGE_SIZE;
        rc = read_exact(file, pages, raw, at, err);
        for (uint64_t i = 0; rc == 0 && i < raw; i += CN_PAGE_SIZE)
            rc = cn_sums_check(&sums, (uint32_t)((at + i) / CN_PAGE_SIZE) + 1, pages + i, err);
        if (rc == 0)
            rc = output_pack(&out, pages, raw, err);
        struct cn_archive_run run = {.size = (uint32_t)out.packed.size,
                                     .raw_size = (uint32_t)raw,
                                     .crc = cn_crc32c(0, out.packed.data, out.packed.size)};
        if (rc == 0)
            rc = output_write(&out, &run, sizeof(run), err);
        if (rc == 0)
            rc = output_write(&out, out.packed.data, out.packed.size, err);
        at += raw;
    }
    if (rc == 0)
        rc = output_finish(&out, &image, sizeof(image), err);
    output_close(&out, rc < 0);
close_file:
    if (rc == CN_ECORRUPT)
        cn_err_context(err, "%s", from);
    cn_sums_fini(&sums);
    cn_free(pages);
    cn_disk_close(file);
    return rc;
}

static int image_check(const struct cn_archive_image *image, struct cn_err *err)
{
    if (image->magic != CN_ARCHIVE_IMAGE_MAGIC)
        return cn_err_set(err, CN_ECORRUPT, "not an archived database: wrong magic number");
    if (image->crc != image_crc(image))
        return cn_err_set(err, CN_ECORRUPT, "damaged header: its checksum does not match");
    if (image->version > CN_ARCHIVE_VERSION)
        return cn_err_set(err, CN_EVERSION,
                          "archive format %" PRIu32 " is newer than the %d that this version reads",
                          image->version, CN_ARCHIVE_VERSION);
    return 0;
}

int cn_archive_image_read(struct cn_disk *disk, const char *path,
                          int (*each)(void *data, uint32_t page_no, const uint8_t *page),
                          void *data, struct cn_archive_image *image, struct cn_err *err)
{
    struct cn_disk_file *file;
    struct cn_buf pages = {0};
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open %s", path);
    rc = read_exact(file, image, sizeof(*image), 0, err);
    if (rc == 0)
        rc = image_check(image, err);
    uint64_t offset = sizeof(*image);
    for (uint32_t done = 0; rc == 0 && done < image->page_count;) {
        struct cn_archive_run run;
        uint32_t count = image->page_count - done;
        count = count < CN_ARCHIVE_RUN ? count : CN_ARCHIVE_RUN;
        rc = read_exact(file, &run, sizeof(run), offset, err);
        if (rc == 0 && (run.raw_size != count * CN_PAGE_SIZE || run.reserved != 0))
            rc = cn_err_set(err, CN_ECORRUPT, "a run of pages has a damaged header");
        cn_buf_clear(&pages);
        if (rc == 0)
            rc = unpack(file, offset + sizeof(run), run.size, run.raw_size, run.crc, &pages, err);
        for (uint32_t i = 0; rc == 0 && i < count; i++)
            rc = each(data, done + i + 1, pages.data + (size_t)i * CN_PAGE_SIZE);
        done += count;
        offset += sizeof(run) + run.size;
    }
    if (rc == 0 && cn_disk_size(file) != (int64_t)offset)
        rc = cn_err_set(err, CN_ECORRUPT, "there are bytes behind the last run of pages");
    if (rc < 0 && err && err->code == rc)
        cn_err_context(err, "%s", path);
    cn_buf_fini(&pages);
    cn_disk_close(file);
    return rc;
}
