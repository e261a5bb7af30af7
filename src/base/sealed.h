/* SPDX-License-Identifier: Apache-2.0 */
/* base/sealed.h - JSON with its own checksum: a sealed text begins with the CRC-32C of everything
 * behind it, and is JSON as before.
 *
 *     {
 *       "crc32c": "1a2b3c4d","format": 1, ...
 *
 * Threads: any. */
#ifndef CN_BASE_SEALED_H
#define CN_BASE_SEALED_H
#include "base/buf.h"

/* Seals an object. */
void cn_sealed_put(struct cn_buf *json);
/* 1: it is as it was sealed; 0: it was never sealed; CN_ECORRUPT: it has changed since. */
int cn_sealed_check(const struct cn_buf *text);

#endif
