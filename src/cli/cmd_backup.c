/* SPDX-License-Identifier: Apache-2.0 */
/* cairn backup DIR: a consistent copy of a data directory, whether a server uses it or not.
 *
 *   C1  The folder is opened and written here, as the one who called. A server says what to do in
 *       it (base/netdisk.h); it may not even see it.
 *   C2  The folder is new or empty, outside of the data directory, and this command's alone
 *       (locked).
 *   C3  What is in it is read again and compared before "done"; whatever fails, all that was
 *       written goes. Who is killed leaves a folder that says that it is unfinished. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/exchange.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/netdisk.h"
#include "cli/api.h"
#include "cli/args.h"
#include "fleet/backup_manifest.h"
#include "store/backup.h"

struct options {
    const char *data;
};

/* --- the folder ------------------------------------------------------------------------------ */

struct folder {
    const char *path;
    struct cn_disk *disk; /* owned */
    int lock;             /* a descriptor, or -1 */
    bool made;            /* by this command */
};

static void note_entry(void *data, const char *name, bool is_dir)
{
    (void)name, (void)is_dir;
    *(bool *)data = true;
}

/* C2, of one that is there. */
static int take_folder(struct folder *folder, struct cn_err *err)
{
    bool occupied = false;
    folder->disk = cn_disk_system_new(folder->path);
    folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!folder->disk || folder->lock < 0)
        return cn_err_errno(err, errno, "cannot open %s", folder->path);
    if (flock(folder->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return cn_err_set(err, CN_ELOCKED, "another backup is being written to %s", folder->path);
    int rc = cn_disk_list(folder->disk, "", note_entry, &occupied);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot list %s", folder->path);
    return occupied ? cn_err_set(err, CN_EEXISTS, "%s is not empty", folder->path) : 0;
}

static int open_folder(struct folder *folder, const char *path, const char *data,
                       struct cn_err *err)
{
    *folder = (struct folder){.path = path, .lock = -1};
    if (cn_disk_is_inside(path, data))
        return cn_err_set(err, CN_EINVALID, "%s is inside the data directory %s", path, data);
    folder->made = mkdir(path, 0700) == 0;
    if (!folder->made && errno != EEXIST)
        return cn_err_errno(err, errno, "cannot make %s", path);
    int rc = take_folder(folder, err);
    if (rc < 0) { /* nothing of it is ours */
        cn_disk_system_free(folder->disk);
        folder->disk = NULL;
    }
    return rc;
}

/* What says of a folder that it is no whole backup. */
static const char *const marks[] = {CN_BACKUP_UNFINISHED, CN_MANIFEST_FILE};

static bool is_mark(const char *path)
{
    return strcmp(path, marks[0]) == 0 || strcmp(path, marks[1]) == 0;
}

/* Removes what is below `path`, but for marks. It goes on where something cannot be removed. */
static void empty_folder(struct cn_disk *disk, const char *path)
{
    struct cn_disk_entries entries;
    if (cn_disk_entries(disk, path, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.count; i++) {
        char *each = cn_sprintf("%s%s%s", path, *path ? "/" : "", entries.items[i].name);
        if (entries.items[i].is_dir)
            empty_folder(disk, each);
        if (!is_mark(each))
            (void)cn_disk_unlink(disk, each); /* what stays is marked */
        cn_free(each);
    }
    cn_disk_entries_fini(&entries);
}

/* Half removed, it is not whole either: marks go last. */
static void remove_all(struct cn_disk *disk)
{
    if (cn_manifest_is_there(disk))
        (void)cn_manifest_begin(disk, NULL); /* it may be whole; what follows removes it */
    empty_folder(disk, "");
    for (size_t i = 0; i < CN_ARRAY_COUNT(marks); i++)
        (void)cn_disk_unlink(disk, marks[i]); /* there is one of them at the most */
}

static void close_folder(struct folder *folder, bool good)
{
    if (folder->disk && !good)
        remove_all(folder->disk);
    cn_disk_system_free(folder->disk);
    if (!good && folder->made)
        (void)rmdir(folder->path); /* or something is left in it */
    if (folder->lock >= 0)
        close(folder->lock);
}

/* C3 */
static int finish(struct folder *folder, bool cluster, struct cn_err *err)
{
    if (!cluster)
        return cn_store_backup_finish(folder->disk, err);
    struct cn_manifest *manifest = CN_NEW(struct cn_manifest);
    int rc = cn_manifest_read(folder->disk, manifest, err);
    if (rc == 0)
        rc = cn_manifest_compare(folder->disk, manifest, err);
    cn_free(manifest);
    return rc;
}

/* --- what a server says ---------------------------------------------------------------------- */

struct stream {
    struct cn_api *api;
    struct cn_netdisk_server *disk; /* owned */
    struct cn_buf frames;           /* as they come */
    struct cn_buf target;           /* of the answers */
    struct cn_json *answer;         /* the caller's in the end; NULL: X3 */
};

static int give_answer(struct stream *stream, const uint8_t *run, size_t size, struct cn_err *err)
{
    struct cn_buf bytes = {0};
    struct cn_json *taken = NULL;
    cn_netdisk_serve(stream->disk, run, size, &bytes);
    struct cn_api_bytes text = {(const char *)bytes.data, bytes.size};
    struct cn_api_body body = {(int64_t)bytes.size, cn_api_read_bytes, &text};
    int rc = cn_api_put(stream->api, cn_buf_text(&stream->target), &body, &taken, err);
    cn_json_free(taken);
    cn_buf_fini(&bytes);
    return rc;
}

static int fail_as_told(const uint8_t *text, size_t size, struct cn_err *err)
{
    struct cn_json *json = cn_json_parse((const char *)text, size, err);
    const char *message = cn_json_text(cn_json_find(json, "error"), "message");
    int rc = cn_err_set(err, CN_EINVALID, "%s", message ? message : "the server refused");
    cn_json_free(json);
    return rc;
}

static int take_frame(struct stream *stream, uint8_t letter, const uint8_t *bytes, size_t size,
                      struct cn_err *err)
{
    switch (letter) {
    case CN_EXCHANGE_NAME:
        cn_buf_append_str(&stream->target, "/api/backup/stream/");
        cn_api_append_bytes(&stream->target, bytes, size);
        return 0;
    case CN_EXCHANGE_QUESTION:
        return give_answer(stream, bytes, size, err);
    case CN_EXCHANGE_FAILED:
        return fail_as_told(bytes, size, err);
    case CN_EXCHANGE_END:
        stream->answer = cn_json_parse((const char *)bytes, size, err);
        return stream->answer ? 0 : CN_EPROTOCOL;
    default:
        return cn_err_set(err, CN_EPROTOCOL, "the server is of another version");
    }
}

static int on_bytes(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    struct stream *stream = data;
    struct cn_buf *frames = &stream->frames;
    int rc = 0;
    cn_buf_append(frames, bytes, size);
    while (rc == 0 && frames->size >= 5) {
        const uint8_t *at = frames->data;
        size_t length = at[0] | at[1] << 8 | at[2] << 16 | (size_t)at[3] << 24;
        if (length > CN_NETDISK_MESSAGE_MAX)
            return cn_err_set(err, CN_EPROTOCOL, "the server is of another version");
        if (frames->size < 5 + length)
            break;
        rc = take_frame(stream, at[4], at + 5, length, err);
        cn_buf_consume(frames, 5 + length);
    }
    return rc;
}

static int copy_from_server(struct cn_api *api, struct folder *folder, struct cn_json **answer,
                            struct cn_err *err)
{
    struct stream stream = {.api = api, .disk = cn_netdisk_server_new(folder->disk)};
    static const char target[] = "/api/backup/stream?version=" CN_EXCHANGE_VERSION;
    int rc = cn_api_stream(api, "POST", target, on_bytes, &stream, err);
    if (rc == CN_ENOTFOUND && !stream.target.size)
        rc = cn_err_set(err, rc, "the server that runs is of an older version: restart it");
    if (rc == 0 && !stream.answer)
        rc = cn_err_set(err, CN_EPROTOCOL, "the server's answer is cut: there is no backup");
    if (rc == 0)
        rc = finish(folder, cn_json_text(stream.answer, "cluster") != NULL, err);
    *answer = stream.answer;
    cn_netdisk_server_free(stream.disk);
    cn_buf_fini(&stream.frames);
    cn_buf_fini(&stream.target);
    return rc;
}

/* --- the command ----------------------------------------------------------------------------- */

/* Nobody has the directory open: this process reads it, and compares the copy. */
static int copy_here(struct cn_api *api, struct folder *folder, struct cn_json **answer,
                     struct cn_err *err)
{
    struct cn_buf body = {0};
    char *absolute = realpath(folder->path, NULL);
    if (!absolute)
        return cn_err_errno(err, errno, "cannot find %s", folder->path);
    cn_buf_append_str(&body, "{\"path\":");
    cn_buf_append_json(&body, absolute, strlen(absolute));
    cn_buf_append_byte(&body, '}');
    int rc = cn_api_call(api, "POST", "/api/backup", cn_buf_text(&body), answer, err);
    cn_buf_fini(&body);
    free(absolute);
    return rc;
}

static void print_answer(const char *target, const struct cn_json *answer)
{
    const char *cluster = cn_json_text(answer, "cluster");
    if (cluster)
        printf("%s: %" PRId64 " files, %" PRId64 " bytes, %" PRId64
               " shards of the cluster %s: %s\n",
               target, cn_json_int(answer, "files"), cn_json_int(answer, "bytes"),
               cn_json_int(answer, "shards"), cluster, cn_json_text(answer, "consistency"));
    else
        printf("%s: %" PRId64 " files, %" PRId64 " bytes, as of commit %" PRId64 "\n", target,
               cn_json_int(answer, "files"), cn_json_int(answer, "bytes"),
               cn_json_int(answer, "lsn"));
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    struct cn_api api = {0};
    struct folder folder = {.lock = -1};
    struct cn_json *answer = NULL;
    if (args->rest_count != 1) {
        fprintf(stderr, "cairn: backup needs the folder to copy to: cairn backup DIR\n");
        return 2;
    }
    int rc = cn_api_open(&api, options->data, true, &err);
    if (rc == 0)
        rc = open_folder(&folder, args->rest[0], api.path, &err);
    if (rc == 0)
        rc = api.online ? copy_from_server(&api, &folder, &answer, &err)
                        : copy_here(&api, &folder, &answer, &err);
    close_folder(&folder, rc == 0);
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    else
        print_answer(args->rest[0], answer);
    cn_json_free(answer);
    cn_api_close(&api);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(data)),
};

const struct cn_command cn_cmd_backup = {
    .name = "backup",
    .usage = "DIR [OPTIONS]",
    .summary = "copy a data directory",
    .text =
        "Copies a data directory to the new or empty folder DIR outside of it, as of one moment,\n"
        "also while a server uses it. The folder is written by this command, as who calls it, and\n"
        "is read again and compared before it is done; if it fails nothing is left. Of a node of "
        "a\n"
        "cluster: the whole cluster, each object as of one moment; `cairn restore` makes a server\n"
        "or another cluster of it.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
