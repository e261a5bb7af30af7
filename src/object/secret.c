/* SPDX-License-Identifier: Apache-2.0 */
#include "object/secret.h"

#include <errno.h>

#include "base/rand.h"

#define TEMPORARY CN_SECRET_FILE ".new"

static int secret_make(struct cn_disk *disk, uint8_t secret[CN_SIPHASH_KEY_SIZE])
{
    struct cn_disk_file *file;
    cn_rand_secure(secret, CN_SIPHASH_KEY_SIZE);
    int rc = cn_disk_open(disk, TEMPORARY, CN_DISK_CREATE | CN_DISK_TRUNCATE, &file);
    if (rc < 0)
        return rc;
    rc = cn_disk_write_all(file, secret, CN_SIPHASH_KEY_SIZE, 0);
    if (rc == 0)
        rc = cn_disk_sync_data(file);
    cn_disk_close(file);
    if (rc == 0)
        rc = cn_disk_rename(disk, TEMPORARY, CN_SECRET_FILE);
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "");
    return rc;
}

int cn_secret_load(struct cn_disk *disk, uint8_t secret[CN_SIPHASH_KEY_SIZE], struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, CN_SECRET_FILE, CN_DISK_READONLY, &file);
    if (rc == -ENOENT) {
        rc = secret_make(disk, secret);
        return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s", CN_SECRET_FILE) : 0;
    }
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read %s", CN_SECRET_FILE);
    int64_t got = cn_disk_read(file, secret, CN_SIPHASH_KEY_SIZE, 0);
    cn_disk_close(file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s", CN_SECRET_FILE);
    if (got != CN_SIPHASH_KEY_SIZE)
        return cn_err_set(err, CN_ECORRUPT, "%s has %lld bytes instead of %d", CN_SECRET_FILE,
                          (long long)got, CN_SIPHASH_KEY_SIZE);
    return 0;
}
