/* SPDX-License-Identifier: Apache-2.0 */
/* v4/depot_arrival.c - files of assets on their way in.
 *
 *     begin ──► put, put, ...                      ──► end: one sync, then each gets its name
 *               transfers/ID-HASH, names of its own         in assets/WORKER/
 *
 * So a file that is found under its hash is whole, whatever happens: a name is given only to bytes
 * that were synced, two requests with the same file do not write into each other's, and what was
 * cut short is removed with everything in transfers/ at the next start. One sync serves a whole
 * request: one for each file would take minutes for a project with thousands of them. The names
 * themselves become durable with the version that needs them (D1 of depot.h). */
#include <string.h>

#include "base/assert.h"
#include "base/disk.h"
#include "base/mem.h"
#include "v4/depot.h"

#define HASH_SIZE 32

struct cn_depot_arrival {
    struct cn_disk *disk;
    char *worker; /* owned */
    char id[33];
    char (*hashes)[HASH_SIZE + 1]; /* owned */
    size_t count;
};

static char *staged_path(const struct cn_depot_arrival *arrival, const char *hash)
{
    return cn_sprintf(CN_DEPOT_TRANSFERS "/%s-%s", arrival->id, hash);
}

int cn_depot_arrival_begin(struct cn_depot *depot, const char *worker,
                           struct cn_depot_arrival **out, struct cn_err *err)
{
    struct cn_disk *disk = cn_depot_disk(depot);
    int rc = cn_disk_mkdirs(disk, CN_DEPOT_TRANSFERS);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot make " CN_DEPOT_TRANSFERS);
    struct cn_depot_arrival *arrival = CN_NEW(struct cn_depot_arrival);
    arrival->disk = disk;
    arrival->worker = cn_strdup(worker);
    cn_depot_digits(arrival->id);
    *out = arrival;
    return 0;
}

static bool has_hash(const struct cn_depot_arrival *arrival, const char *hash)
{
    char *path = staged_path(arrival, hash);
    struct cn_disk_file *file;
    bool found = cn_disk_open(arrival->disk, path, CN_DISK_READONLY, &file) == 0;
    if (found)
        cn_disk_close(file);
    cn_free(path);
    return found;
}

int cn_depot_arrival_put(struct cn_depot_arrival *arrival, const char *hash, const void *bytes,
                         size_t size, struct cn_err *err)
{
    CN_ASSERT(strlen(hash) == HASH_SIZE);
    if (has_hash(arrival, hash))
        return cn_err_set(err, CN_EINVALID, "%s is there twice", hash);
    CN_GROW_COUNTED(arrival->hashes, arrival->count);
    memcpy(arrival->hashes[arrival->count++], hash, HASH_SIZE + 1);
    char *path = staged_path(arrival, hash);
    struct cn_disk_file *file;
    int rc = cn_disk_open(arrival->disk, path, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &file);
    if (rc == 0) {
        rc = cn_disk_write_all(file, bytes, size, 0);
        cn_disk_close(file);
    }
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot write %s", path);
    cn_free(path);
    return rc;
}

static int give_names(struct cn_depot_arrival *arrival, struct cn_err *err)
{
    char *folder = cn_sprintf("deployed/assets/%s", arrival->worker);
    int rc = arrival->count ? cn_disk_sync_all(arrival->disk) : 0;
    if (rc == 0 && arrival->count)
        rc = cn_disk_mkdirs(arrival->disk, folder);
    for (size_t i = 0; i < arrival->count && rc == 0; i++) {
        char *from = staged_path(arrival, arrival->hashes[i]);
        char *to = cn_sprintf("%s/%s", folder, arrival->hashes[i]);
        rc = cn_disk_rename(arrival->disk, from, to);
        cn_free(from);
        cn_free(to);
    }
    if (rc < 0)
        cn_err_errno(err, -rc, "the assets of %s cannot be kept", arrival->worker);
    cn_free(folder);
    return rc;
}

int cn_depot_arrival_end(struct cn_depot_arrival *arrival, int rc, struct cn_err *err)
{
    if (rc == 0)
        rc = give_names(arrival, err);
    for (size_t i = 0; i < arrival->count && rc < 0; i++) {
        char *path = staged_path(arrival, arrival->hashes[i]);
        (void)cn_disk_unlink(arrival->disk, path); /* best effort: else at the next start */
        cn_free(path);
    }
    cn_free(arrival->worker);
    cn_free(arrival->hashes);
    cn_free(arrival);
    return rc;
}
