/* SPDX-License-Identifier: Apache-2.0 */
/* base/siphash.h - SipHash-2-4 with 128 bits of output: a keyed hash that cannot be
 * predicted, and so a message authentication code, without the key. */
#ifndef CN_BASE_SIPHASH_H
#define CN_BASE_SIPHASH_H
#include <stddef.h>
#include <stdint.h>

#define CN_SIPHASH_KEY_SIZE 16
#define CN_SIPHASH_SIZE 16

void cn_siphash(const uint8_t key[CN_SIPHASH_KEY_SIZE], const void *bytes, size_t size,
                uint8_t out[CN_SIPHASH_SIZE]);

#endif
