/* SPDX-License-Identifier: Apache-2.0 */
#include "base/netdisk.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/wire.h"

#define LIST_SIZE_MAX ((size_t)1 << 20)

/* Numbers are of both processes, which may be of two releases: none gets another meaning. */
enum kind {
    KIND_OPEN = 1,
    KIND_CLOSE,
    KIND_READ,
    KIND_WRITE,
    KIND_SYNC_DATA,
    KIND_TRUNCATE,
    KIND_ALLOCATE,
    KIND_SIZE,
    KIND_RENAME,
    KIND_UNLINK,
    KIND_MKDIR,
    KIND_SYNC_DIR,
    KIND_SYNC_ALL,
    KIND_LIST,
    KIND_LOCK,
    KIND_NOTHING, /* only asks how the run went */
    KIND_MAX = KIND_NOTHING
};

struct operation {
    uint8_t kind;
    uint32_t file;
    uint32_t flags;
    uint64_t offset, size;
    char *path, *to;
    const uint8_t *bytes;
    size_t byte_count;
};

static const struct cn_wire_field operation_fields[] = {
    CN_WIRE_UINT(1, struct operation, kind, KIND_MAX),
    CN_WIRE_UINT(2, struct operation, file, UINT32_MAX),
    CN_WIRE_UINT(3, struct operation, flags, UINT32_MAX),
    CN_WIRE_UINT(4, struct operation, offset, INT64_MAX),
    CN_WIRE_UINT(5, struct operation, size, INT64_MAX),
    CN_WIRE_TEXT(6, struct operation, path, 4096),
    CN_WIRE_TEXT(7, struct operation, to, 4096),
    CN_WIRE_BYTES(8, struct operation, bytes, byte_count, CN_NETDISK_PIECE_MAX),
    CN_WIRE_END};

struct answer {
    int64_t status; /* of the last operation that was tried */
    bool early;     /* it is one before the last (N2) */
    uint8_t *bytes;
    size_t byte_count;
};

static const struct cn_wire_field answer_fields[] = {
    CN_WIRE_INT(1, struct answer, status), CN_WIRE_BOOL(2, struct answer, early),
    CN_WIRE_BYTES(3, struct answer, bytes, byte_count, CN_NETDISK_MESSAGE_MAX), CN_WIRE_END};

/* --- here ------------------------------------------------------------------------------------ */

struct netdisk {
    struct cn_disk base;
    cn_netdisk_exchange exchange;
    void *data;
    pthread_mutex_t lock; /* guards what follows */
    struct cn_buf run;
    uint32_t last_file;
    int failed; /* N2 */
};

struct netfile {
    struct cn_disk_file base;
    uint32_t number;
};

static struct netdisk *of_disk(struct cn_disk *disk)
{
    return (struct netdisk *)disk;
}

static uint32_t number_of(const struct cn_disk_file *file)
{
    return ((const struct netfile *)file)->number;
}

static void append_operation(struct netdisk *disk, const struct operation *operation)
{
    static const uint8_t none[4];
    size_t at = disk->run.size;
    cn_buf_append(&disk->run, none, sizeof(none));
    cn_wire_put(operation_fields, operation, &disk->run);
    uint32_t size = (uint32_t)(disk->run.size - at - sizeof(size));
    memcpy(disk->run.data + at, &size, sizeof(size)); /* both processes are of one machine's kind */
}

/* Sends the run. With the lock held; the caller clears the answer. */
static int send_run(struct netdisk *disk, struct answer *answer)
{
    struct cn_buf bytes = {0};
    int rc = disk->exchange(disk->data, &disk->run, &bytes);
    cn_buf_clear(&disk->run);
    if (rc == 0 && cn_wire_get(answer_fields, answer, bytes.data, bytes.size, NULL) < 0)
        rc = -EPROTO;
    if (rc == 0 && answer->early)
        rc = answer->status < 0 ? (int)answer->status : -EPROTO;
    if (rc < 0)
        disk->failed = rc;
    cn_buf_fini(&bytes);
    return rc;
}

/* The operation's status; `taken` (may be NULL) gets the bytes of the answer. */
static int64_t ask(struct netdisk *disk, const struct operation *operation, struct answer *taken)
{
    struct answer answer = {0};
    pthread_mutex_lock(&disk->lock);
    int64_t rc = disk->failed;
    if (rc == 0) {
        append_operation(disk, operation);
        rc = send_run(disk, &answer);
    }
    pthread_mutex_unlock(&disk->lock);
    if (rc == 0)
        rc = answer.status;
    if (taken && rc >= 0)
        *taken = answer;
    else
        cn_wire_clear(answer_fields, &answer);
    return rc;
}

/* N1 */
static int tell(struct netdisk *disk, const struct operation *operation)
{
    struct answer answer = {0};
    pthread_mutex_lock(&disk->lock);
    int rc = disk->failed;
    if (rc == 0)
        append_operation(disk, operation);
    if (rc == 0 && disk->run.size > CN_NETDISK_RUN_MAX) {
        rc = send_run(disk, &answer);
        if (rc == 0 && answer.status < 0)
            rc = disk->failed = (int)answer.status;
        cn_wire_clear(answer_fields, &answer);
    }
    pthread_mutex_unlock(&disk->lock);
    return rc;
}

static int net_open(struct cn_disk *disk, const char *path, int flags, struct cn_disk_file **file)
{
    struct netdisk *net = of_disk(disk);
    pthread_mutex_lock(&net->lock);
    uint32_t number = ++net->last_file;
    pthread_mutex_unlock(&net->lock);
    struct operation operation = {
        .kind = KIND_OPEN, .file = number, .flags = (uint32_t)flags, .path = (char *)path};
    int64_t rc = ask(net, &operation, NULL);
    if (rc < 0)
        return (int)rc;
    struct netfile *opened = CN_NEW(struct netfile);
    *opened = (struct netfile){{disk}, number};
    *file = &opened->base;
    return 0;
}

static void net_close(struct cn_disk_file *file)
{
    struct operation operation = {.kind = KIND_CLOSE, .file = number_of(file)};
    (void)tell(of_disk(file->disk), &operation); /* N2: a failure of what came before is kept */
    cn_free(file);
}

static int64_t read_piece(struct cn_disk_file *file, uint8_t *bytes, size_t size, uint64_t offset)
{
    struct operation operation = {
        .kind = KIND_READ, .file = number_of(file), .offset = offset, .size = size};
    struct answer answer = {0};
    int64_t rc = ask(of_disk(file->disk), &operation, &answer);
    if (rc >= 0 && answer.byte_count <= size) {
        memcpy(bytes, answer.bytes, answer.byte_count);
        rc = (int64_t)answer.byte_count;
    } else if (rc >= 0) {
        rc = -EPROTO;
    }
    cn_wire_clear(answer_fields, &answer);
    return rc;
}

static int64_t net_read(struct cn_disk_file *file, void *bytes, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        size_t piece = size - done < CN_NETDISK_PIECE_MAX ? size - done : CN_NETDISK_PIECE_MAX;
        int64_t got = read_piece(file, (uint8_t *)bytes + done, piece, offset + done);
        if (got < 0)
            return got;
        done += (size_t)got;
        if ((size_t)got < piece)
            break;
    }
    return (int64_t)done;
}

static int64_t net_write(struct cn_disk_file *file, const struct iovec *parts, int part_count,
                         uint64_t offset)
{
    int64_t done = 0;
    for (int i = 0; i < part_count; i++) {
        const uint8_t *at = parts[i].iov_base;
        for (size_t left = parts[i].iov_len; left > 0;) {
            size_t piece = left < CN_NETDISK_PIECE_MAX ? left : CN_NETDISK_PIECE_MAX;
            struct operation operation = {.kind = KIND_WRITE,
                                          .file = number_of(file),
                                          .offset = offset + (uint64_t)done,
                                          .bytes = at,
                                          .byte_count = piece};
            int rc = tell(of_disk(file->disk), &operation);
            if (rc < 0)
                return rc;
            at += piece;
            left -= piece;
            done += (int64_t)piece;
        }
    }
    return done;
}

static int net_sync_data(struct cn_disk_file *file)
{
    struct operation operation = {.kind = KIND_SYNC_DATA, .file = number_of(file)};
    return tell(of_disk(file->disk), &operation);
}

static int net_truncate(struct cn_disk_file *file, uint64_t size)
{
    struct operation operation = {.kind = KIND_TRUNCATE, .file = number_of(file), .size = size};
    return tell(of_disk(file->disk), &operation);
}

static int net_allocate(struct cn_disk_file *file, uint64_t offset, uint64_t size)
{
    struct operation operation = {
        .kind = KIND_ALLOCATE, .file = number_of(file), .offset = offset, .size = size};
    return tell(of_disk(file->disk), &operation);
}

static int64_t net_size(struct cn_disk_file *file)
{
    struct operation operation = {.kind = KIND_SIZE, .file = number_of(file)};
    return ask(of_disk(file->disk), &operation, NULL);
}

static int net_rename(struct cn_disk *disk, const char *from, const char *to)
{
    struct operation operation = {.kind = KIND_RENAME, .path = (char *)from, .to = (char *)to};
    return (int)ask(of_disk(disk), &operation, NULL);
}

static int net_unlink(struct cn_disk *disk, const char *path)
{
    struct operation operation = {.kind = KIND_UNLINK, .path = (char *)path};
    return (int)ask(of_disk(disk), &operation, NULL);
}

static int net_mkdir(struct cn_disk *disk, const char *path)
{
    struct operation operation = {.kind = KIND_MKDIR, .path = (char *)path};
    return (int)ask(of_disk(disk), &operation, NULL); /* -ENOENT is no failure of the disk */
}

static int net_sync_dir(struct cn_disk *disk, const char *path)
{
    struct operation operation = {.kind = KIND_SYNC_DIR, .path = (char *)path};
    return tell(of_disk(disk), &operation);
}

static int net_sync_all(struct cn_disk *disk)
{
    struct operation operation = {.kind = KIND_SYNC_ALL};
    return (int)ask(of_disk(disk), &operation, NULL);
}

/* A list is one letter, the name and a NUL for each entry; `count` goes up by each. */
static int give_entries(const struct answer *answer, uint64_t *count,
                        void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    const char *at = (const char *)answer->bytes, *end = at + answer->byte_count;
    if (!answer->byte_count || end[-1] != 0)
        return answer->byte_count || answer->status ? -EPROTO : 0;
    for (; at < end; at += strlen(at) + 1) {
        if (strlen(at) < 2)
            return -EPROTO;
        each(data, at + 1, at[0] == 'd');
        ++*count;
    }
    return 0;
}

/* Piece by piece: nobody else changes the folder. */
static int net_list(struct cn_disk *disk, const char *path,
                    void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    struct operation operation = {.kind = KIND_LIST, .path = (char *)path};
    int64_t left;
    do {
        struct answer answer = {0};
        left = ask(of_disk(disk), &operation, &answer);
        int rc = left < 0 ? (int)left : give_entries(&answer, &operation.offset, each, data);
        cn_wire_clear(answer_fields, &answer);
        if (rc < 0)
            return rc;
    } while (left > 0);
    return 0;
}

static int net_lock(struct cn_disk_file *file)
{
    struct operation operation = {.kind = KIND_LOCK, .file = number_of(file)};
    return (int)ask(of_disk(file->disk), &operation, NULL);
}

static const struct cn_disk_ops net_ops = {
    .open = net_open,
    .close = net_close,
    .read = net_read,
    .write = net_write,
    .sync_data = net_sync_data,
    .truncate = net_truncate,
    .allocate = net_allocate,
    .size = net_size,
    .rename = net_rename,
    .unlink = net_unlink,
    .mkdir = net_mkdir,
    .sync_dir = net_sync_dir,
    .sync_all = net_sync_all,
    .list = net_list,
    .lock = net_lock,
};

struct cn_disk *cn_netdisk_new(cn_netdisk_exchange exchange, void *data)
{
    struct netdisk *disk = CN_NEW(struct netdisk);
    disk->base.ops = &net_ops;
    disk->exchange = exchange;
    disk->data = data;
    pthread_mutex_init(&disk->lock, NULL);
    return &disk->base;
}

int cn_netdisk_flush(struct cn_disk *disk)
{
    struct operation operation = {.kind = KIND_NOTHING};
    return (int)ask(of_disk(disk), &operation, NULL);
}

void cn_netdisk_free(struct cn_disk *disk)
{
    if (!disk)
        return;
    struct netdisk *net = of_disk(disk);
    cn_buf_fini(&net->run);
    pthread_mutex_destroy(&net->lock);
    cn_free(net);
}

/* --- there ----------------------------------------------------------------------------------- */

struct opened {
    struct cn_list link;
    uint32_t number;
    struct cn_disk_file *file;
};

struct cn_netdisk_server {
    struct cn_disk *below;
    struct cn_list files; /* of struct opened */
};

/* N3 */
static bool is_path(const char *path)
{
    if (!path || !*path)
        return true; /* the folder itself */
    for (;;) {
        size_t size = strcspn(path, "/");
        if (size == 0 || (size == 1 && path[0] == '.') || (size == 2 && !memcmp(path, "..", 2)))
            return false;
        if (!path[size])
            return true;
        path += size + 1;
    }
}

static bool needs_path(uint8_t kind)
{
    return kind == KIND_OPEN || kind == KIND_RENAME || kind == KIND_UNLINK || kind == KIND_MKDIR;
}

static struct opened *find_file(struct cn_netdisk_server *server, uint32_t number)
{
    CN_LIST_FOREACH(&server->files, link)
    {
        struct opened *opened = CN_CONTAINER_OF(link, struct opened, link);
        if (opened->number == number)
            return opened;
    }
    return NULL;
}

static int serve_open(struct cn_netdisk_server *server, const struct operation *operation)
{
    struct cn_disk_file *file;
    if (find_file(server, operation->file))
        return -EINVAL;
    int rc = cn_disk_open(server->below, operation->path, (int)operation->flags & 15, &file);
    if (rc < 0)
        return rc;
    struct opened *opened = CN_NEW(struct opened);
    opened->number = operation->file;
    opened->file = file;
    cn_list_push_front(&server->files, &opened->link);
    return 0;
}

static void close_file(struct opened *opened)
{
    cn_list_remove(&opened->link);
    cn_disk_close(opened->file);
    cn_free(opened);
}

static int64_t serve_read(struct cn_disk_file *file, const struct operation *operation,
                          struct answer *answer)
{
    if (operation->size > CN_NETDISK_PIECE_MAX)
        return -EINVAL;
    answer->bytes = cn_alloc(CN_NETDISK_PIECE_MAX);
    int64_t got = cn_disk_read(file, answer->bytes, operation->size, operation->offset);
    answer->byte_count = got > 0 ? (size_t)got : 0;
    return got < 0 ? got : 0;
}

static int64_t serve_file(struct cn_netdisk_server *server, const struct operation *operation,
                          struct answer *answer)
{
    struct opened *opened = find_file(server, operation->file);
    if (!opened)
        return -EINVAL;
    struct cn_disk_file *file = opened->file;
    switch (operation->kind) {
    case KIND_CLOSE:
        close_file(opened);
        return 0;
    case KIND_READ:
        return serve_read(file, operation, answer);
    case KIND_WRITE:
        return cn_disk_write_all(file, operation->bytes, operation->byte_count, operation->offset);
    case KIND_SYNC_DATA:
        return cn_disk_sync_data(file);
    case KIND_TRUNCATE:
        return cn_disk_truncate(file, operation->size);
    case KIND_ALLOCATE:
        return cn_disk_allocate(file, operation->offset, operation->size);
    case KIND_SIZE:
        return cn_disk_size(file);
    case KIND_LOCK:
        return cn_disk_lock(file);
    default:
        return -EINVAL;
    }
}

struct listing {
    struct cn_buf text;
    uint64_t skip, count; /* count: of all that were seen */
    uint64_t given;
};

static void append_entry(void *data, const char *name, bool is_dir)
{
    struct listing *list = data;
    if (list->count++ < list->skip || list->text.size > LIST_SIZE_MAX)
        return;
    list->given++;
    cn_buf_append_byte(&list->text, is_dir ? 'd' : 'f');
    cn_buf_append(&list->text, name, strlen(name) + 1);
}

/* The status is how many are left. */
static int64_t serve_list(struct cn_disk *disk, const char *path, uint64_t skip,
                          struct answer *answer)
{
    struct listing list = {.skip = skip};
    int rc = cn_disk_list(disk, path, append_entry, &list);
    answer->byte_count = list.text.size;
    answer->bytes = cn_buf_take(&list.text);
    return rc < 0 ? rc : (int64_t)(list.count > skip ? list.count - skip - list.given : 0);
}

static int64_t serve_one(struct cn_netdisk_server *server, const struct operation *operation,
                         struct answer *answer)
{
    struct cn_disk *disk = server->below;
    const char *path = operation->path ? operation->path : "";
    const char *to = operation->to ? operation->to : "";
    if (!is_path(path) || !is_path(to) || (!*path && needs_path(operation->kind)))
        return -EINVAL;
    switch (operation->kind) {
    case KIND_OPEN:
        return serve_open(server, operation);
    case KIND_RENAME:
        return *to ? cn_disk_rename(disk, path, to) : -EINVAL;
    case KIND_UNLINK:
        return cn_disk_unlink(disk, path);
    case KIND_MKDIR:
        return cn_disk_mkdir(disk, path);
    case KIND_SYNC_DIR:
        return cn_disk_sync_dir(disk, path);
    case KIND_SYNC_ALL:
        return cn_disk_sync_all(disk);
    case KIND_LIST:
        return serve_list(disk, path, operation->offset, answer);
    case KIND_NOTHING:
        return 0;
    default:
        return serve_file(server, operation, answer);
    }
}

/* The next operation of the run; what it owns is freed. */
static int64_t serve_next(struct cn_netdisk_server *server, const uint8_t **at, const uint8_t *end,
                          struct answer *answer)
{
    struct operation operation = {0};
    uint32_t size;
    if ((size_t)(end - *at) < sizeof(size))
        return -EINVAL;
    memcpy(&size, *at, sizeof(size));
    *at += sizeof(size);
    if (size > (size_t)(end - *at))
        return -EINVAL;
    int64_t rc = cn_wire_get(operation_fields, &operation, *at, size, NULL) < 0
                     ? -EINVAL
                     : serve_one(server, &operation, answer);
    *at += size;
    cn_wire_clear(operation_fields, &operation);
    return rc;
}

void cn_netdisk_serve(struct cn_netdisk_server *server, const void *run, size_t size,
                      struct cn_buf *answer)
{
    const uint8_t *at = run, *end = at + size;
    struct answer last = {.status = size ? 0 : -EINVAL};
    while (at < end && last.status >= 0) {
        cn_wire_clear(answer_fields, &last);
        last.status = serve_next(server, &at, end, &last);
    }
    last.early = last.status < 0 && at < end;
    cn_wire_put(answer_fields, &last, answer);
    cn_wire_clear(answer_fields, &last);
}

struct cn_netdisk_server *cn_netdisk_server_new(struct cn_disk *below)
{
    struct cn_netdisk_server *server = CN_NEW(struct cn_netdisk_server);
    server->below = below;
    cn_list_init(&server->files);
    return server;
}

void cn_netdisk_server_free(struct cn_netdisk_server *server)
{
    if (!server)
        return;
    struct cn_list *link;
    while ((link = cn_list_take_front(&server->files)))
        close_file(CN_CONTAINER_OF(link, struct opened, link));
    cn_free(server);
}
