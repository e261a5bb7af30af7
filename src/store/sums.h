/* SPDX-License-Identifier: Apache-2.0 */
/* store/sums.h - the checksums of the pages in one database file.
 *
 * A file of objects/ is a plain SQLite database and has no room for checksums, so they are kept in
 * the catalog, in parts of CN_SUMS_PART pages, and in memory while the image is (image.c, I7). A
 * file that is set aside carries them behind its last page.
 *
 * Threads:   the owner's; an image's under its lock.
 * Ownership: embedded. A zeroed struct has none. */
#ifndef CN_STORE_SUMS_H
#define CN_STORE_SUMS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"

enum { CN_SUMS_PART = 128 };

struct cn_sums {
    uint32_t *list; /* owned; of page 1, 2, ...; CN_SUM_UNKNOWN: written by an older version */
    uint32_t count, capacity;
    bool cut;       /* became fewer since they were last taken */
    uint64_t dirty; /* bit n: part n changed since then */
    uint64_t *more; /* owned; the bits of parts from 64 on */
    uint32_t more_words;
};

#define CN_SUM_UNKNOWN 0u

/* The checksum of a page of CN_PAGE_SIZE bytes; never CN_SUM_UNKNOWN. */
uint32_t cn_sum_of(const void *page);

void cn_sums_fini(struct cn_sums *sums);
/* CN_SUM_UNKNOWN beyond the last. */
uint32_t cn_sums_get(const struct cn_sums *sums, uint32_t page_no);
void cn_sums_set(struct cn_sums *sums, uint32_t page_no, uint32_t sum);
/* New ones are those of pages of zeros. */
void cn_sums_resize(struct cn_sums *sums, uint32_t count);

/* ---- In the catalog ---- */

struct cn_sums_part {
    uint32_t number, count;
    uint32_t list[CN_SUMS_PART];
};
/* Enters what was stored; parts come in order. False: it cannot be ours. */
bool cn_sums_load(struct cn_sums *sums, uint32_t number, const void *bytes, size_t size);
/* The file has this many pages: those that nothing was stored for are unknown. */
void cn_sums_fit(struct cn_sums *sums, uint32_t count);
bool cn_sums_changed(const struct cn_sums *sums);
/* Everything has changed: what was taken is lost. */
void cn_sums_changed_all(struct cn_sums *sums);
/* Copies of the parts that changed, for the caller to free; their number. From now on they have
 * not. */
size_t cn_sums_take(struct cn_sums *sums, struct cn_sums_part **parts);
uint32_t cn_sums_part_count(uint32_t page_count);

/* ---- Behind the pages of a file that is set aside ---- */

/* Writes the sums of the file's pages behind them; not synced. 0, or a negative errno value. */
int cn_sums_append(const struct cn_sums *sums, struct cn_disk_file *file, uint32_t page_count);
/* Reads them; *page_count is that of the database. A file of an older version has none. */
int cn_sums_read(struct cn_sums *sums, struct cn_disk_file *file, uint32_t *page_count,
                 struct cn_err *err);
/* Does the page have the sum it should have? */
int cn_sums_check(const struct cn_sums *sums, uint32_t page_no, const void *page,
                  struct cn_err *err);

#endif
