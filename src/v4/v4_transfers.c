/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_transfers.c - files that go in and out by an address of their own, without a token:
 * PUT and GET /client/v4/transfers/SECRET. wrangler asks for such addresses for files of SQL.
 *
 *   F1  Who knows the secret may send or fetch the one file, for an hour, while the token with
 *       which it was asked for is good.
 *   F2  What was sent is what was announced, by its MD5, or is refused.
 *   F3  A file is below DATA/deployed/transfers/, where nothing is after a start; at most
 *       CN_V4_TRANSFER_MAX are there, CN_V4_TRANSFER_TOKEN_MAX of one token. A token that asks for
 *       more loses its own oldest, and if there is no place, who has most loses one.
 *   F4  What goes out is made while somebody waits for it and may have it, by two calls of a token
 *       and CN_V4_EXPORT_MAX together at most, and takes no more than half of what is free on the
 *       disk, and no more than CN_V4_EXPORT_SIZE_MAX. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "text/hex.h"
#include "v4/v4.h"

int cn_v4_write_all(int fd, const void *bytes, size_t size, struct cn_err *err)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t count = write(fd, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return cn_err_errno(err, errno, "the file cannot be written");
        at += count;
        size -= (size_t)count;
    }
    return 0;
}

static char *file_of(struct cn_v4 *v4, const char *name, struct cn_err *err)
{
    char *folder = cn_depot_transfers(v4->depot, err);
    char *path = folder ? cn_sprintf("%s/%s", folder, name) : NULL;
    cn_free(folder);
    return path;
}

static void remove_file(struct cn_v4 *v4, const char *name)
{
    char *path = file_of(v4, name, NULL);
    if (path)
        (void)unlink(path); /* it may not have come */
    cn_free(path);
}

/* Under the lock. */
static void forget(struct cn_v4 *v4, struct cn_v4_transfer *transfer)
{
    remove_file(v4, transfer->name);
    *transfer = (struct cn_v4_transfer){0};
}

static bool is_by(const struct cn_v4_transfer *transfer, const char *by)
{
    return transfer->name[0] && strcmp(transfer->by, by) == 0;
}

static unsigned count_by(const struct cn_v4 *v4, const char *by)
{
    unsigned count = 0;
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++)
        count += is_by(&v4->transfers[i], by);
    return count;
}

/* The oldest of a token's that nobody uses at the moment, or NULL. */
static struct cn_v4_transfer *find_oldest(struct cn_v4 *v4, const char *by)
{
    struct cn_v4_transfer *oldest = NULL;
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++) {
        struct cn_v4_transfer *each = &v4->transfers[i];
        if (is_by(each, by) && !each->busy && (!oldest || each->until_ms < oldest->until_ms))
            oldest = each;
    }
    return oldest;
}

/* F3: one that has to go for a new one of this token, or NULL. */
static struct cn_v4_transfer *find_victim(struct cn_v4 *v4, const char *by)
{
    struct cn_v4_transfer *victim = find_oldest(v4, by);
    if (count_by(v4, by) >= CN_V4_TRANSFER_TOKEN_MAX)
        return victim;
    unsigned most = 1;
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++) {
        unsigned count = count_by(v4, v4->transfers[i].by);
        struct cn_v4_transfer *oldest = find_oldest(v4, v4->transfers[i].by);
        if (oldest && count > most) {
            victim = oldest;
            most = count;
        }
    }
    return victim;
}

/* A free place, or NULL; what is past its time goes. Under the lock. */
static struct cn_v4_transfer *find_place(struct cn_v4 *v4, const char *by)
{
    struct cn_v4_transfer *place = NULL;
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++) {
        struct cn_v4_transfer *each = &v4->transfers[i];
        if (each->name[0] && each->until_ms <= cn_v4_now() && !each->busy)
            forget(v4, each);
        if (!each->name[0])
            place = each;
    }
    if (place && count_by(v4, by) < CN_V4_TRANSFER_TOKEN_MAX)
        return place;
    struct cn_v4_transfer *victim = find_victim(v4, by);
    if (victim)
        forget(v4, victim);
    return victim;
}

static const char *asker(const struct cn_control_call *call)
{
    return call->who.scopes & CN_SCOPE_ADMIN ? "" : call->who.id;
}

static void append_url(const struct cn_control_call *call, const struct cn_v4_transfer *transfer,
                       struct cn_buf *url)
{
    cn_buf_printf(url, "%s://%s/client/v4/transfers/%s", call->https ? "https" : "http", call->host,
                  transfer->secret);
}

/* Under the lock. A new one for the database of the path; NULL with an error. */
static struct cn_v4_transfer *add(struct cn_control_call *call, const char *md5, char name[33],
                                  struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_v4_transfer *transfer = find_place(v4, asker(call));
    if (!transfer) {
        cn_v4_fail(call, err, CN_EOVERLOADED, 7400, "%d files are on their way already",
                   CN_V4_TRANSFER_MAX);
        return NULL;
    }
    cn_depot_digits(name);
    *transfer = (struct cn_v4_transfer){.until_ms = cn_v4_now() + CN_V4_TRANSFER_MS};
    cn_depot_digits(transfer->secret);
    snprintf(transfer->name, sizeof(transfer->name), "%s", name);
    snprintf(transfer->md5, sizeof(transfer->md5), "%s", md5);
    snprintf(transfer->of, sizeof(transfer->of), "%s", call->path[6]);
    snprintf(transfer->by, sizeof(transfer->by), "%s", asker(call));
    return transfer;
}

static int check_host(struct cn_control_call *call, struct cn_err *err)
{
    return call->host && *call->host ? 0
                                     : cn_v4_fail(call, err, CN_EINVALID, 7400,
                                                  "this is asked for over HTTP, with a Host");
}

int cn_v4_transfer_begin(struct cn_control_call *call, const char *md5, char name[33],
                         struct cn_buf *url, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    int rc = check_host(call, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&v4->lock);
    const struct cn_v4_transfer *transfer = add(call, md5, name, err);
    if (transfer)
        append_url(call, transfer, url);
    pthread_mutex_unlock(&v4->lock);
    return transfer ? 0 : err->code;
}

/* --- what goes out (F4) --------------------------------------------------------------------------
 */

/* Under the lock. */
static int check_exports(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    unsigned all = 0, own = 0;
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++) {
        const struct cn_v4_transfer *each = &v4->transfers[i];
        bool is_made = each->name[0] && each->busy && !each->whole && !each->md5[0];
        all += is_made;
        own += is_made && is_by(each, asker(call));
    }
    return own < CN_V4_EXPORT_TOKEN_MAX && all < CN_V4_EXPORT_MAX
               ? 0
               : cn_v4_fail(call, err, CN_EOVERLOADED, 7400,
                            "%u exports are being made; ask again when they are done", all);
}

/* Half of what is free where the files are. */
static uint64_t find_room(const char *folder)
{
    struct statvfs room;
    uint64_t half = statvfs(folder, &room) < 0 ? 0 : (uint64_t)room.f_bavail * room.f_frsize / 2;
    return half < CN_V4_EXPORT_SIZE_MAX ? half : CN_V4_EXPORT_SIZE_MAX;
}

int cn_v4_export_begin(struct cn_control_call *call, struct cn_v4_export *export,
                       struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    *export = (struct cn_v4_export){.call = call};
    int rc = check_host(call, err);
    char *folder = rc < 0 ? NULL : cn_depot_transfers(v4->depot, err);
    if (!folder)
        return err->code;
    pthread_mutex_lock(&v4->lock);
    rc = check_exports(call, err);
    struct cn_v4_transfer *transfer = rc < 0 ? NULL : add(call, "", export->name, err);
    if (transfer)
        transfer->busy = true;
    pthread_mutex_unlock(&v4->lock);
    export->left = find_room(folder);
    export->folder = folder;
    if (transfer)
        return 0;
    cn_free(folder);
    return err->code;
}

int cn_v4_export_take(struct cn_v4_export *export, size_t size, struct cn_err *err)
{
    struct cn_control_call *call = export->call;
    if (call->cancelled && call->cancelled(call))
        return cn_err_set(err, CN_ECLOSED, "nobody waits for the export any more");
    if (size > export->left)
        return cn_v4_fail(call, err, CN_ELIMIT, 7400,
                          "the export is too large; cairn d1 export writes it on the server");
    export->left -= size;
    return cn_control_check_good(call, err);
}

static void let_go(struct cn_v4 *v4, const char *name, bool whole, bool forgets);

int cn_v4_export_end(struct cn_v4_export *export, int rc, struct cn_buf *url)
{
    struct cn_v4 *v4 = cn_v4_of(export->call);
    if (rc == 0) {
        pthread_mutex_lock(&v4->lock);
        for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++) {
            if (strcmp(v4->transfers[i].name, export->name) == 0)
                append_url(export->call, &v4->transfers[i], url);
        }
        pthread_mutex_unlock(&v4->lock);
    }
    let_go(v4, export->name, rc == 0, rc < 0);
    cn_free(export->folder);
    return rc;
}

/* --- who may (F1)
 * ------------------------------------------------------------------------------- */

bool cn_v4_transfer_find(struct cn_v4 *v4, const char *secret, size_t size,
                         struct cn_guard_who *who)
{
    bool found = false;
    pthread_mutex_lock(&v4->lock);
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX && !found; i++) {
        const struct cn_v4_transfer *each = &v4->transfers[i];
        found = each->name[0] && each->until_ms > cn_v4_now() &&
                cn_guard_equal(each->secret, secret, size);
        if (found) {
            who->scopes = CN_SCOPE_TRANSFER;
            snprintf(who->id, sizeof(who->id), "%s", each->by);
            snprintf(who->name, sizeof(who->name), "transfer");
        }
    }
    pthread_mutex_unlock(&v4->lock);
    return found;
}

/* The transfer of the path, kept for this call: its name; false: there is none. */
static bool hold(struct cn_v4 *v4, const char *secret, bool uploads, struct cn_v4_transfer *copy)
{
    bool found = false;
    pthread_mutex_lock(&v4->lock);
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX && !found; i++) {
        struct cn_v4_transfer *each = &v4->transfers[i];
        found = each->name[0] && !each->busy && (each->md5[0] != 0) == uploads &&
                cn_guard_equal(each->secret, secret, strlen(secret));
        if (found) {
            each->busy = true;
            *copy = *each;
        }
    }
    pthread_mutex_unlock(&v4->lock);
    return found;
}

static void let_go(struct cn_v4 *v4, const char *name, bool whole, bool forgets)
{
    pthread_mutex_lock(&v4->lock);
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX; i++) {
        struct cn_v4_transfer *each = &v4->transfers[i];
        if (strcmp(each->name, name) != 0 || !name[0])
            continue;
        each->busy = false;
        each->whole |= whole;
        if (forgets)
            forget(v4, each);
    }
    pthread_mutex_unlock(&v4->lock);
}

/* --- in and out
 * ---------------------------------------------------------------------------------- */

/* Writes the body to the file; `md5` gets what came. */
static int receive(struct cn_control_call *call, int fd, char md5[33], struct cn_err *err)
{
    uint8_t bytes[64 << 10], sum[EVP_MAX_MD_SIZE];
    unsigned sum_size = 0;
    uint64_t total = 0;
    int64_t count = 0;
    int rc = 0;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    int good = digest && EVP_DigestInit_ex(digest, EVP_md5(), NULL);
    CN_ASSERT(good == 1);
    while (rc == 0 && call->read && (count = call->read(call, bytes, sizeof(bytes))) > 0) {
        total += (uint64_t)count;
        if (total > CN_V4_TRANSFER_SIZE_MAX)
            rc =
                cn_v4_fail(call, err, CN_ELIMIT, 7400,
                           "the file is larger than %u MiB; cairn d1 import takes it on the server",
                           CN_V4_TRANSFER_SIZE_MAX >> 20);
        EVP_DigestUpdate(digest, bytes, (size_t)count);
        if (rc == 0)
            rc = cn_v4_write_all(fd, bytes, (size_t)count, err);
    }
    if (rc == 0 && count < 0)
        rc = cn_err_set(err, CN_ECLOSED, "the file did not come to its end");
    EVP_DigestFinal_ex(digest, sum, &sum_size);
    EVP_MD_CTX_free(digest);
    cn_hex_encode(sum, 16, md5);
    md5[32] = 0;
    return rc;
}

static int upload(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_v4_transfer transfer;
    char md5[33] = "", etag[40];
    if (!hold(v4, call->path[3], true, &transfer))
        return cn_v4_fail(call, err, CN_ENOTFOUND, 7404, "no file is expected here");
    char *path = file_of(v4, transfer.name, err);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    int rc = !path    ? err->code
             : fd < 0 ? cn_err_errno(err, errno, "the file cannot be written")
                      : receive(call, fd, md5, err);
    if (rc == 0 && strcasecmp(md5, transfer.md5) != 0) /* F2 */
        rc = cn_v4_fail(call, err, CN_EINVALID, 7400, "the file is not the one that was announced");
    if (rc == 0 && !cn_control_is_good(call))
        rc = cn_v4_fail(call, err, CN_EDENIED, 10000, "the token was revoked");
    if (fd >= 0)
        close(fd);
    cn_free(path);
    let_go(v4, transfer.name, rc == 0, false);
    if (rc < 0)
        return rc;
    snprintf(etag, sizeof(etag), "\"%s\"", md5);
    cn_control_field(call, "etag", etag);
    return cn_v4_answer_null(call);
}

static int download(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_v4_transfer transfer;
    struct stat info;
    if (!hold(v4, call->path[3], false, &transfer))
        return cn_v4_fail(call, err, CN_ENOTFOUND, 7404, "there is no file here");
    char *path = file_of(v4, transfer.name, err), bytes[64 << 10];
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int rc = fd >= 0 && fstat(fd, &info) == 0
                 ? 0
                 : cn_v4_fail(call, err, CN_ENOTFOUND, 7404, "the file is gone");
    if (rc == 0) {
        ssize_t count;
        call->status = 200;
        call->type = "application/sql";
        call->length = info.st_size;
        while ((count = read(fd, bytes, sizeof(bytes))) > 0) {
            if (call->write(call, bytes, (size_t)count) < 0)
                break; /* nobody listens any more */
        }
    }
    if (fd >= 0)
        close(fd);
    cn_free(path);
    let_go(v4, transfer.name, true, false);
    return rc;
}

int cn_v4_transfer(struct cn_control_call *call, struct cn_err *err)
{
    if (!cn_control_is_good(call)) /* F1 */
        return cn_v4_fail(call, err, CN_EDENIED, 10000, "the token was revoked");
    return strcmp(call->method, "PUT") == 0 ? upload(call, err) : download(call, err);
}

/* --- what has come
 * ------------------------------------------------------------------------------- */

static int read_whole(const char *path, struct cn_buf *bytes, struct cn_err *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    if (fd < 0 || fstat(fd, &info) < 0)
        rc = cn_err_errno(err, errno, "the file cannot be read");
    if (rc == 0)
        cn_buf_reserve(bytes, (size_t)info.st_size + 1);
    while (rc == 0 && bytes->size < (size_t)info.st_size) {
        ssize_t count = read(fd, bytes->data + bytes->size, (size_t)info.st_size - bytes->size);
        if (count <= 0)
            rc = cn_err_set(err, CN_ECORRUPT, "the file cannot be read whole");
        else
            bytes->size += (size_t)count;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

int cn_v4_transfer_take(struct cn_control_call *call, const char *name, const char *md5,
                        struct cn_buf *bytes, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_v4_transfer found = {0};
    pthread_mutex_lock(&v4->lock);
    for (size_t i = 0; i < CN_V4_TRANSFER_MAX && *name; i++) {
        struct cn_v4_transfer *each = &v4->transfers[i];
        if (strcmp(each->name, name) == 0 && each->whole && !each->busy &&
            strcmp(each->md5, md5) == 0 && strcmp(each->of, call->path[6]) == 0) {
            each->busy = true;
            found = *each;
        }
    }
    pthread_mutex_unlock(&v4->lock);
    if (!found.name[0])
        return cn_v4_fail(call, err, CN_ENOTFOUND, 7404, "no such file was uploaded");
    char *path = file_of(v4, name, err);
    int rc = path ? read_whole(path, bytes, err) : err->code;
    cn_free(path);
    let_go(v4, name, true, true);
    return rc;
}
