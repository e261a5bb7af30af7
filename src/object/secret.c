/* SPDX-License-Identifier: Apache-2.0 */
#include "object/secret.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/rand.h"

/* The file: the secret and its CRC. Format 1 had the secret alone. */
struct sealed {
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    uint32_t crc;
};
_Static_assert(sizeof(struct sealed) == 20, "docs/reference/data-format.md");

static int secret_write(struct cn_disk *disk, const uint8_t secret[CN_SIPHASH_KEY_SIZE],
                        struct cn_err *err)
{
    struct sealed sealed;
    memcpy(sealed.secret, secret, sizeof(sealed.secret));
    sealed.crc = cn_crc32c(0, sealed.secret, sizeof(sealed.secret));
    int rc = cn_disk_replace(disk, CN_SECRET_FILE, &sealed, sizeof(sealed));
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s", CN_SECRET_FILE) : 0;
}

/* 1: it is there; 0: it is not. *old: without a checksum. */
static int secret_read(struct cn_disk *disk, uint8_t secret[CN_SIPHASH_KEY_SIZE], bool *old,
                       struct cn_err *err)
{
    struct cn_disk_file *file;
    uint8_t bytes[sizeof(struct sealed) + 1];
    struct sealed sealed;
    int rc = cn_disk_open(disk, CN_SECRET_FILE, CN_DISK_READONLY, &file);
    if (rc < 0)
        return rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot read %s", CN_SECRET_FILE);
    int64_t got = cn_disk_read(file, bytes, sizeof(bytes), 0);
    cn_disk_close(file);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read %s", CN_SECRET_FILE);
    *old = got == CN_SIPHASH_KEY_SIZE;
    memcpy(&sealed, bytes, sizeof(sealed));
    if (!*old &&
        (got != sizeof(sealed) || sealed.crc != cn_crc32c(0, sealed.secret, sizeof(sealed.secret))))
        return cn_err_set(err, CN_ECORRUPT,
                          "%s is damaged: put it back from a backup, or names of objects lead to"
                          " other objects",
                          CN_SECRET_FILE);
    memcpy(secret, bytes, CN_SIPHASH_KEY_SIZE);
    return 1;
}

int cn_secret_load(struct cn_disk *disk, uint8_t secret[CN_SIPHASH_KEY_SIZE], struct cn_err *err)
{
    bool old = false;
    int rc = secret_read(disk, secret, &old, err);
    if (rc < 0 || (rc == 1 && !old))
        return rc < 0 ? rc : 0;
    if (rc == 0)
        cn_rand_secure(secret, CN_SIPHASH_KEY_SIZE);
    return secret_write(disk, secret, err);
}

int cn_secret_check(struct cn_disk *disk, struct cn_err *err)
{
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    bool old;
    int rc = secret_read(disk, secret, &old, err);
    return rc < 0 ? rc : 0;
}

int cn_secret_keep(struct cn_disk *disk, const uint8_t secret[CN_SIPHASH_KEY_SIZE],
                   struct cn_err *err)
{
    return secret_write(disk, secret, err);
}
