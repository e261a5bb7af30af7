/* SPDX-License-Identifier: Apache-2.0 */
/* crypto/curve.h - points of any elliptic curve of OpenSSL's, by its name. Numbers and points are
 * big-endian bytes. Errors: crypto.h C2; CN_EUNSUPPORTED: there is no such curve. Threads: any. */
#ifndef CN_CRYPTO_CURVE_H
#define CN_CRYPTO_CURVE_H
#include "crypto/crypto.h"

#define CN_CURVE_POINT_MAX 512 /* bytes */

/* The point in another form (2: compressed, 4: not, 6: hybrid). */
int cn_curve_point(const char *curve, struct cn_bytes point, unsigned form, struct cn_buf *out,
                   struct cn_err *err);
/* A secret (NULL: one is made) in its full width, and its public point. */
int cn_curve_pair(const char *curve, const struct cn_bytes *secret, struct cn_buf *secret_out,
                  struct cn_buf *point_out, struct cn_err *err);
/* The x coordinate of the product of a secret and a point, in its full width. */
int cn_curve_multiply(const char *curve, struct cn_bytes secret, struct cn_bytes point,
                      struct cn_buf *out, struct cn_err *err);

#endif
