/* SPDX-License-Identifier: Apache-2.0 */
/* store/pagediff.h - the change of a database page as a short string of bytes.
 *
 * A change is the XOR of the page before and after. Applied to the page before
 * it gives the page after, applied to the page after it gives the page before:
 * recovery walks forwards, history backwards, over the same bytes. A whole page
 * is the change from a page of zeros, so there is one encoding for both.
 *
 * The encoding begins with a tag:
 *
 *     0  nothing changed; no more bytes
 *     1  spans: pairs (skip, length), each a little-endian base-128 number of at
 *        most 3 bytes, and `length` XOR bytes after each pair. `skip` counts
 *        unchanged bytes since the last span; 1 <= length; the rest is unchanged
 *     2  the XOR of the whole page, as one LZ4 block
 *     3  the XOR of the whole page as it is
 *
 * Spans win for the small changes that make up nearly all commits; LZ4 is tried
 * only when spans come out long. Figures: `build/bench/bench_pagediff`.
 *
 * Threads: pure functions. */
#ifndef CN_STORE_PAGEDIFF_H
#define CN_STORE_PAGEDIFF_H
#include <stddef.h>
#include <stdint.h>

#define CN_PAGEDIFF_PAGE_MAX 65536 /* SQLite's largest page */
/* No encoding is longer than the page and this. */
#define CN_PAGEDIFF_OVERHEAD 1

/* Writes the change from `before` (NULL: a page of zeros) to `after` into `out`,
 * which has room for page_size + CN_PAGEDIFF_OVERHEAD bytes; returns its size.
 * `page_size` is a multiple of 8, at most CN_PAGEDIFF_PAGE_MAX. */
size_t cn_pagediff_encode(const uint8_t *before, const uint8_t *after, size_t page_size,
                          uint8_t *out);

/* Changes `page` by the encoded XOR. CN_ECORRUPT if `diff` is not an encoding
 * for a page of this size; `page` may then be partly changed. */
int cn_pagediff_apply(uint8_t *page, size_t page_size, const uint8_t *diff, size_t diff_size);

/* Reads a whole page (a change from zeros) into `page`; as above. */
int cn_pagediff_expand(uint8_t *page, size_t page_size, const uint8_t *diff, size_t diff_size);

#endif
