/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/agree.h - the secret that two keys share: ECDH and X25519. Errors: crypto.h C2.
 * Threads: any. */
#ifndef CN_CRYPTO_AGREE_H
#define CN_CRYPTO_AGREE_H
#include "crypto/key.h"

int cn_crypto_agree(enum cn_crypto_kind kind, struct cn_bytes pkcs8, struct cn_bytes spki,
                    struct cn_buf *out, struct cn_err *err);

#endif
