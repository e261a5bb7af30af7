/* SPDX-License-Identifier: Apache-2.0 */
/* base/crc32c.h - the CRC-32C (Castagnoli) checksum that guards every record on disk.
 *
 * Uses the processor's instruction where there is one (about 7 GB/s, and twenty over long runs), a
 * table otherwise. Threads: any. */
#ifndef CN_BASE_CRC32C_H
#define CN_BASE_CRC32C_H
#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to begin) over `bytes`: the result over two pieces, one
 * after the other, is that of the whole. */
uint32_t cn_crc32c(uint32_t crc, const void *bytes, size_t size);

/* The table version, whatever the processor has; for tests. */
uint32_t cn_crc32c_portable(uint32_t crc, const void *bytes, size_t size);

#endif
