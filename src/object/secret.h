/* SPDX-License-Identifier: Apache-2.0 */
/* object/secret.h - the node's secret, from which the keys of ids come.
 *
 * Sixteen random bytes in the file SECRET of the data directory, made once.
 * Without it every id of the data would be another one: it belongs to the data
 * and to every backup. */
#ifndef CN_OBJECT_SECRET_H
#define CN_OBJECT_SECRET_H
#include "base/disk.h"
#include "base/err.h"
#include "base/siphash.h"

#define CN_SECRET_FILE "SECRET"

/* Reads it, or makes it and returns when it is durable. CN_ECORRUPT if it does not match its
 * checksum; one without gets it. */
int cn_secret_load(struct cn_disk *disk, uint8_t secret[CN_SIPHASH_KEY_SIZE], struct cn_err *err);
/* Makes it this one: of a data directory that is being restored. */
int cn_secret_keep(struct cn_disk *disk, const uint8_t secret[CN_SIPHASH_KEY_SIZE],
                   struct cn_err *err);
/* Only looks. One that is not there is fine. */
int cn_secret_check(struct cn_disk *disk, struct cn_err *err);

#endif
