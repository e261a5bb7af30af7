/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/ciphering.h - any cipher of OpenSSL by its name, fed piece by piece. Those whose modes
 * need to know all data at once, or two keys (wrap, XTS, CCM, SIV, OCB), are not there.
 *
 * A failure has OpenSSL's first reason as its whole text.
 *
 * Threads:   one at a time, any.
 * Ownership: cn_ciphering_free() releases what cn_ciphering_new() has made. */
#ifndef CN_CRYPTO_CIPHERING_H
#define CN_CRYPTO_CIPHERING_H
#include "crypto/crypto.h"

#define CN_CIPHERING_TAG_MIN 4
#define CN_CIPHERING_TAG_MAX 16
#define CN_CIPHERING_IV_MAX 1024          /* of ciphers that take any */
#define CN_CIPHERING_PIECE_MAX (1u << 30) /* bytes of one update */

struct cn_ciphering;

struct cn_ciphering_info {
    size_t key_size, iv_size, block_size;
    bool is_aead; /* has a tag, and data that it covers besides */
};
/* False: there is no such cipher, or not here. */
bool cn_ciphering_find(const char *name, struct cn_ciphering_info *info);

struct cn_ciphering_params {
    const char *name;
    bool encrypts, pads;
    struct cn_bytes key, iv;
};
/* CN_EUNSUPPORTED: no such cipher; CN_EINVALID: a key or vector of another size. */
int cn_ciphering_new(const struct cn_ciphering_params *params, struct cn_ciphering **ciphering,
                     struct cn_err *err);
void cn_ciphering_free(struct cn_ciphering *ciphering);

/* Appends what is ready. */
int cn_ciphering_update(struct cn_ciphering *ciphering, struct cn_bytes bytes, struct cn_buf *out,
                        struct cn_err *err);
/* Data that the tag covers and that are not encrypted, before the first update. */
int cn_ciphering_cover(struct cn_ciphering *ciphering, struct cn_bytes bytes, struct cn_err *err);
/* Appends the rest; fails if the padding or the tag is wrong. */
int cn_ciphering_finish(struct cn_ciphering *ciphering, struct cn_buf *out, struct cn_err *err);
/* The tag to compare with at the end; the one that was made, after it. */
int cn_ciphering_set_tag(struct cn_ciphering *ciphering, struct cn_bytes tag, struct cn_err *err);
int cn_ciphering_get_tag(struct cn_ciphering *ciphering, size_t size, struct cn_buf *out,
                         struct cn_err *err);

/* Appends the names of all ciphers of OpenSSL's, separated by blanks. */
void cn_ciphering_names(struct cn_buf *out);

#endif
