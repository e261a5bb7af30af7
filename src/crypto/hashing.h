/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/hashing.h - any hash of OpenSSL by its name, and HMAC over it, fed piece by piece.
 *
 * H1  After it has been finished a hash does nothing: every call fails.
 *
 * Threads:   one at a time, any.
 * Ownership: cn_hashing_free() releases what cn_hashing_new() and cn_hashing_copy() have made. */
#ifndef CN_CRYPTO_HASHING_H
#define CN_CRYPTO_HASHING_H
#include "crypto/crypto.h"

struct cn_hashing;

/* With `hmac_key` (NULL: none) an HMAC. NULL if there is no such hash. */
struct cn_hashing *cn_hashing_new(const char *name, const struct cn_bytes *hmac_key);
void cn_hashing_free(struct cn_hashing *hashing);
/* NULL: it is an HMAC, or has been finished. */
struct cn_hashing *cn_hashing_copy(const struct cn_hashing *hashing);
int cn_hashing_update(struct cn_hashing *hashing, struct cn_bytes bytes, struct cn_err *err);
/* Appends the digest. `size` other than 0 is for hashes that have any length (SHAKE);
 * CN_EUNSUPPORTED: this one has not. HMACs have their own. */
int cn_hashing_finish(struct cn_hashing *hashing, size_t size, struct cn_buf *out,
                      struct cn_err *err);

/* Appends the names of all hashes, separated by blanks. */
void cn_hashing_names(struct cn_buf *out);

/* ---- for the files of this room ---- */

/* Appends names of an OBJ_NAME_TYPE_ of OpenSSL's. */
void cn_crypto_names(int type, struct cn_buf *out);

#endif
