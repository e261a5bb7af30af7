/* SPDX-License-Identifier: Apache-2.0 */
/* store/replica_copy.c - a replica on its way from one disk to another.
 *
 * The stream is a row of frames: struct frame and `size` bytes, little-endian as all our files are.
 *
 *     BEGIN   version, shard
 *     FILE    a path in the folder of the shard; one of the catalog may come again
 *     DATA    bytes of that file, from its start, as many frames as it takes
 *     END     the last LSN of the log in it, where its redo starts
 *
 * A frame counts if its checksum does. Order of the files: history, since its archives are
 * immutable and many, while checkpoints go on; then, with checkpoints held, those of it that were
 * made meanwhile, catalog, databases, files set aside (behind the databases: one that is renamed on
 * the way is copied at least once), and last the log up to what is durable then (store/backup.h
 * says why that makes a store).
 *
 * What arrives is written nowhere but below the folder of its shard: paths are those that a store
 * has, and nothing else. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/disk.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/subdisk.h"
#include "store/catalog.h"
#include "store/checkpoint.h"
#include "store/replica_private.h"
#include "store/segment.h"
#include "store/store_private.h"

#define FRAME_MAGIC 0x31595043u /* "CPY1" */

enum {
    COPY_VERSION = 1,
    DATA_SIZE = 256 << 10, /* of a frame at most */
    COPY_PATH_MAX = 160,
};

enum frame_kind { FRAME_BEGIN = 1, FRAME_FILE, FRAME_DATA, FRAME_END };

struct frame {
    uint32_t magic;
    uint32_t crc; /* CRC-32C of the two fields below and of the bytes that follow */
    uint32_t kind;
    uint32_t size;
};

struct frame_begin {
    uint32_t version, shard;
};

struct frame_end {
    uint64_t lsn, redo_lsn;
};

static_assert(sizeof(struct frame) == 16, "in the stream");
static_assert(sizeof(struct frame_begin) == 8, "in the stream");
static_assert(sizeof(struct frame_end) == 16, "in the stream");

static uint32_t frame_crc(const struct frame *frame, const void *bytes)
{
    uint32_t crc = cn_crc32c(0, &frame->kind, 2 * sizeof(uint32_t));
    return cn_crc32c(crc, bytes, frame->size);
}

/* ---- Out ---- */

struct out {
    struct cn_replica *replica;
    struct cn_disk *disk;
    int (*write)(void *data, const void *bytes, size_t size);
    void *data;
    struct cn_map sent; /* archives, by path */
    uint8_t *buffer;    /* owned: a frame */
    struct cn_err *err;
};

/* Of what is in the buffer behind the place of the frame. */
static int frame_write(struct out *out, enum frame_kind kind, size_t size)
{
    struct frame frame = {.magic = FRAME_MAGIC, .kind = kind, .size = (uint32_t)size};
    frame.crc = frame_crc(&frame, out->buffer + sizeof(frame));
    memcpy(out->buffer, &frame, sizeof(frame));
    if (atomic_load(&out->replica->cancelled))
        return cn_err_set(out->err, CN_EABORTED, "the copy was cancelled");
    int rc = out->write(out->data, out->buffer, sizeof(frame) + size);
    return rc < 0 ? cn_err_set(out->err, rc, "the copy could not be sent") : 0;
}

static int frame_send(struct out *out, enum frame_kind kind, const void *bytes, size_t size)
{
    memcpy(out->buffer + sizeof(struct frame), bytes, size);
    return frame_write(out, kind, size);
}

/* The first `limit` bytes of a file, or all it has. */
static int send_bytes(struct out *out, struct cn_disk_file *file, const char *path, uint64_t limit)
{
    int rc = frame_send(out, FRAME_FILE, path, strlen(path));
    for (uint64_t at = 0; rc == 0 && at < limit;) {
        size_t want = limit - at < DATA_SIZE ? (size_t)(limit - at) : DATA_SIZE;
        int64_t got = cn_disk_read(file, out->buffer + sizeof(struct frame), want, at);
        if (got < 0)
            return cn_err_errno(out->err, (int)-got, "cannot read %s", path);
        if (got == 0)
            break; /* it may have become shorter; the log knows */
        rc = frame_write(out, FRAME_DATA, (size_t)got);
        at += (uint64_t)got;
    }
    return rc;
}

static int send_file(void *data, const char *path)
{
    struct out *out = data;
    struct cn_disk_file *file;
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".tmp") == 0)
        return 0;
    int rc = cn_disk_open(out->disk, path, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return 0; /* gone meanwhile, by a commit that the copied log has */
    if (rc < 0)
        return cn_err_errno(out->err, -rc, "cannot open %s", path);
    rc = send_bytes(out, file, path, UINT64_MAX);
    cn_disk_close(file);
    return rc;
}

static int send_archive(void *data, const char *path)
{
    struct out *out = data;
    if (cn_map_find(&out->sent, path, strlen(path)))
        return 0;
    (void)cn_map_set(&out->sent, path, strlen(path), out);
    return send_file(data, path);
}

static int send_folder(struct out *out, const char *path, int (*send)(void *data, const char *path))
{
    int rc = cn_disk_walk(out->disk, path, send, out);
    if (rc < 0 && out->err->code == 0)
        return cn_err_errno(out->err, -rc, "cannot list %s", path);
    return rc;
}

/* A segment up to `lsn`: what is behind that may be half there. */
static int send_segment(struct out *out, const char *path, uint64_t lsn)
{
    struct cn_segment_reader reader;
    struct cn_record record;
    int rc = cn_segment_reader_open(&reader, out->disk, path, out->err);
    if (rc < 0)
        return rc;
    while (reader.next_lsn <= lsn && (rc = cn_segment_reader_next(&reader, &record, out->err)) == 1)
        ;
    if (rc >= 0 && reader.header.first_lsn <= lsn)
        rc = send_bytes(out, reader.file, path, reader.offset);
    cn_segment_reader_close(&reader);
    return rc < 0 ? rc : 0;
}

static int send_log(struct out *out, uint64_t lsn)
{
    struct cn_disk_entries entries;
    int rc = send_file(out, "log/checkpoint");
    if (rc < 0)
        return rc;
    rc = cn_disk_entries(out->disk, "log", &entries);
    if (rc < 0)
        return cn_err_errno(out->err, -rc, "cannot list the folder log");
    for (size_t i = 0; rc == 0 && i < entries.count; i++) {
        const char *name = entries.items[i].name;
        size_t length = strlen(name);
        char path[COPY_PATH_MAX];
        snprintf(path, sizeof(path), "log/%.100s", name);
        if (length > 4 && strcmp(name + length - 4, ".seg") == 0)
            rc = send_segment(out, path, lsn);
    }
    cn_disk_entries_fini(&entries);
    return rc;
}

/* A new namespace changes the file, and must not wait until it is sent: it is sent again. */
static int send_catalog(struct out *out)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct cn_store *store = out->replica->store;
    int rc;
    unsigned before;
    do {
        while ((before = store ? cn_catalog_changes(store->catalog) : 0) % 2 == 1)
            (void)nanosleep(&pause, NULL); /* a shorter one does no harm */
        rc = send_folder(out, "catalog", send_file);
    } while (rc == 0 && store && cn_catalog_changes(store->catalog) != before);
    return rc;
}

/* With checkpoints held. */
static int send_held(struct out *out, uint64_t *lsn)
{
    struct cn_store *store = out->replica->store;
    int rc = send_folder(out, "history", send_archive);
    if (rc == 0)
        rc = send_catalog(out);
    if (rc == 0)
        rc = send_folder(out, "objects", send_file);
    if (rc == 0)
        rc = send_folder(out, "aside", send_file);
    if (rc == 0)
        rc = send_file(out, "FORMAT");
    *lsn = cn_log_durable(store ? store->log : out->replica->log);
    if (rc == 0)
        rc = send_log(out, *lsn);
    struct frame_end end = {.lsn = *lsn, .redo_lsn = atomic_load(&out->replica->redo_lsn)};
    return rc < 0 ? rc : frame_send(out, FRAME_END, &end, sizeof(end));
}

int cn_replica_copy(struct cn_replica *replica,
                    int (*write)(void *data, const void *bytes, size_t size), void *data,
                    uint64_t *lsn, struct cn_err *err)
{
    struct cn_err own = {0};
    struct out out = {.replica = replica, .disk = replica->disk, .write = write, .data = data};
    struct frame_begin begin = {.version = COPY_VERSION, .shard = replica->shard};
    out.err = &own;
    out.buffer = cn_alloc(sizeof(struct frame) + DATA_SIZE);
    cn_map_init(&out.sent);
    pthread_mutex_lock(&replica->slow); /* the form stays, and a follower does not checkpoint */
    int rc = replica->store || replica->log
                 ? frame_send(&out, FRAME_BEGIN, &begin, sizeof(begin))
                 : cn_err_set(&own, CN_EREADONLY, "the replica has no log");
    if (rc == 0)
        rc = send_folder(&out, "history", send_archive);
    if (rc == 0) {
        if (replica->store)
            cn_keeper_hold(replica->store->keeper);
        rc = send_held(&out, lsn);
        if (replica->store)
            cn_keeper_release(replica->store->keeper);
    }
    pthread_mutex_unlock(&replica->slow);
    cn_map_fini(&out.sent);
    cn_free(out.buffer);
    if (rc < 0 && err)
        *err = own;
    return rc;
}

/* ---- In ---- */

struct cn_replica_copy {
    struct cn_replicas *all;
    uint32_t shard;
    struct cn_disk *disk;      /* owned: the folder of the shard */
    struct cn_buf pending;     /* a frame that is not whole yet */
    struct cn_disk_file *file; /* owned; NULL: none */
    uint64_t offset;
    char folder[COPY_PATH_MAX]; /* the last one made */
    bool begun, ended, failed;
    struct frame_end end;
};

int cn_replica_copy_begin(struct cn_replicas *replicas, uint32_t shard,
                          struct cn_replica_copy **result, struct cn_err *err)
{
    int rc = cn_replica_shard_check(shard, err);
    if (rc < 0)
        return rc;
    struct cn_replica_copy *copy = CN_NEW(struct cn_replica_copy);
    copy->all = replicas;
    copy->shard = shard;
    pthread_mutex_lock(&replicas->lock);
    bool taken = replicas->list[shard] || replicas->copies[shard];
    if (!taken)
        replicas->copies[shard] = copy;
    pthread_mutex_unlock(&replicas->lock);
    if (taken) {
        cn_free(copy);
        return cn_err_set(err, CN_EEXISTS, "there is a replica of shard %" PRIu32, shard);
    }
    char path[32];
    snprintf(path, sizeof(path), "shards/%04" PRIu32, shard);
    copy->disk = cn_replica_disk_new(replicas, shard);
    rc = cn_disk_mkdirs(replicas->config.disk, path);
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot make the folder %s", path);
    if (rc == 0)
        rc = cn_replica_remove(copy->disk, err); /* what is there is no replica */
    if (rc < 0) {
        cn_replica_copy_abort(copy);
        return rc;
    }
    *result = copy;
    return 0;
}

/* Is it the path of a file that a store has? Of these characters no other folder can be made. */
static bool path_allowed(const char *path, size_t size)
{
    static const char *const folders[] = {"history/", "catalog/", "objects/", "aside/", "log/"};
    if (size == 0 || size >= COPY_PATH_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = path[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
        /* A dot or a slash stands between words: no "..", no "//", none at an end. */
        if (!word && ((c != '.' && c != '/') || i == 0 || i + 1 == size || path[i - 1] == '.' ||
                      path[i - 1] == '/'))
            return size == strlen("FORMAT") && memcmp(path, "FORMAT", size) == 0;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(folders); i++) {
        size_t length = strlen(folders[i]);
        if (size > length && memcmp(path, folders[i], length) == 0)
            return true;
    }
    return false;
}

/* Not synced: all of it is at the end. */
static int make_folder(struct cn_replica_copy *copy, char *path)
{
    char *last = strrchr(path, '/');
    int rc = 0;
    if (!last)
        return 0;
    *last = '\0';
    if (strcmp(path, copy->folder) != 0) {
        for (char *slash = strchr(path, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            rc = cn_disk_mkdir(copy->disk, path);
            *slash = '/';
        }
        if (rc == 0)
            rc = cn_disk_mkdir(copy->disk, path);
        if (rc == 0)
            snprintf(copy->folder, sizeof(copy->folder), "%s", path);
    }
    *last = '/';
    return rc;
}

static int take_file(struct cn_replica_copy *copy, const uint8_t *bytes, size_t size,
                     struct cn_err *err)
{
    char path[COPY_PATH_MAX];
    if (!path_allowed((const char *)bytes, size))
        return cn_err_set(err, CN_EINVALID, "a copy of a shard has no such file");
    memcpy(path, bytes, size);
    path[size] = '\0';
    if (copy->file)
        cn_disk_close(copy->file);
    copy->file = NULL;
    copy->offset = 0;
    int rc = make_folder(copy, path);
    if (rc == 0)
        rc = cn_disk_open(copy->disk, path,
                          CN_DISK_CREATE | (strncmp(path, "catalog/", 8) == 0 ? CN_DISK_TRUNCATE
                                                                              : CN_DISK_EXCLUSIVE),
                          &copy->file);
    if (rc == -EEXIST)
        return cn_err_set(err, CN_EINVALID, "%s comes twice in a copy of a shard", path);
    return rc < 0 ? cn_err_errno(err, -rc, "cannot create %s", path) : 0;
}

static int take_data(struct cn_replica_copy *copy, const uint8_t *bytes, size_t size,
                     struct cn_err *err)
{
    int rc = cn_disk_write_all(copy->file, bytes, size, copy->offset);
    copy->offset += size;
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write a file of shard %" PRIu32, copy->shard)
                  : 0;
}

static int take_begin(struct cn_replica_copy *copy, const uint8_t *bytes, struct cn_err *err)
{
    struct frame_begin begin;
    memcpy(&begin, bytes, sizeof(begin));
    if (begin.version != COPY_VERSION)
        return cn_err_set(err, CN_EVERSION, "a copy of version %" PRIu32 " cannot be read here",
                          begin.version);
    if (begin.shard != copy->shard)
        return cn_err_set(err, CN_EINVALID, "a copy of shard %" PRIu32 " instead of %" PRIu32,
                          begin.shard, copy->shard);
    copy->begun = true;
    return 0;
}

static int take_frame(struct cn_replica_copy *copy, const struct frame *frame, const uint8_t *bytes,
                      struct cn_err *err)
{
    if (frame->kind == FRAME_BEGIN && !copy->begun && frame->size == sizeof(struct frame_begin))
        return take_begin(copy, bytes, err);
    if (copy->begun && !copy->ended) {
        if (frame->kind == FRAME_FILE)
            return take_file(copy, bytes, frame->size, err);
        if (frame->kind == FRAME_DATA && copy->file)
            return take_data(copy, bytes, frame->size, err);
        if (frame->kind == FRAME_END && frame->size == sizeof(copy->end)) {
            memcpy(&copy->end, bytes, sizeof(copy->end));
            copy->ended = true;
            return 0;
        }
    }
    return cn_err_set(err, CN_EINVALID,
                      "frame %" PRIu32 " of %" PRIu32 " bytes has no place in a copy of a shard",
                      frame->kind, frame->size);
}

int cn_replica_copy_take(struct cn_replica_copy *copy, const void *bytes, size_t size,
                         struct cn_err *err)
{
    int rc = 0;
    if (copy->failed)
        return cn_err_set(err, CN_EINVALID, "the copy has failed before");
    cn_buf_append(&copy->pending, bytes, size);
    size_t at = 0;
    while (rc == 0 && copy->pending.size - at >= sizeof(struct frame)) {
        struct frame frame;
        const uint8_t *start = copy->pending.data + at;
        memcpy(&frame, start, sizeof(frame));
        if (frame.magic != FRAME_MAGIC || frame.size > DATA_SIZE)
            rc = cn_err_set(err, CN_EINVALID, "this is no copy of a shard");
        else if (copy->pending.size - at < sizeof(frame) + frame.size)
            break;
        else if (frame.crc != frame_crc(&frame, start + sizeof(frame)))
            rc = cn_err_set(err, CN_EINVALID, "a frame of a copy does not match its checksum");
        else
            rc = take_frame(copy, &frame, start + sizeof(frame), err);
        at += sizeof(frame) + frame.size;
    }
    if (rc == 0)
        cn_buf_consume(&copy->pending, at);
    copy->failed = rc < 0;
    return rc;
}

static void copy_free(struct cn_replica_copy *copy)
{
    if (copy->file)
        cn_disk_close(copy->file);
    pthread_mutex_lock(&copy->all->lock);
    copy->all->copies[copy->shard] = NULL;
    pthread_mutex_unlock(&copy->all->lock);
    cn_disk_sub_free(copy->disk);
    cn_buf_fini(&copy->pending);
    cn_free(copy);
}

void cn_replica_copy_abort(struct cn_replica_copy *copy)
{
    (void)cn_replica_remove(copy->disk, NULL); /* or at the next start: it has no name */
    copy_free(copy);
}

/* P9. Is it what the other end said it is? */
static int copy_settle(struct cn_replica_copy *copy, struct cn_replica **replica,
                       struct cn_err *err)
{
    int rc = cn_disk_sync_all(copy->disk);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot sync a copy");
    rc = cn_replica_name(copy->disk, copy->shard, err);
    if (rc == 0)
        rc = cn_replica_enter(copy->all, copy->shard, replica, err);
    if (rc < 0)
        return rc;
    struct cn_replica_state state;
    cn_replica_state(*replica, &state);
    if (state.have == copy->end.lsn && state.checkpoint + 1 == copy->end.redo_lsn)
        return 0;
    (void)cn_replicas_discard(copy->all, copy->shard, NULL); /* what is left has no name */
    return cn_err_set(err, CN_EINVALID,
                      "a copy of shard %" PRIu32 " has records up to %" PRIu64
                      " and redo from %" PRIu64 ", not %" PRIu64 " and %" PRIu64,
                      copy->shard, state.have, state.checkpoint + 1, copy->end.lsn,
                      copy->end.redo_lsn);
}

int cn_replica_copy_end(struct cn_replica_copy *copy, struct cn_replica **replica,
                        struct cn_err *err)
{
    int rc = 0;
    if (copy->failed || !copy->ended || copy->pending.size > 0)
        rc = cn_err_set(err, CN_EINVALID, "a copy of shard %" PRIu32 " is not whole", copy->shard);
    if (copy->file)
        cn_disk_close(copy->file);
    copy->file = NULL;
    if (rc == 0)
        rc = copy_settle(copy, replica, err);
    if (rc < 0)
        cn_replica_copy_abort(copy);
    else
        copy_free(copy);
    return rc;
}
