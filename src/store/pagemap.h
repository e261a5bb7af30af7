/* SPDX-License-Identifier: Apache-2.0 */
/* store/pagemap.h - a small hash table from page numbers to pages in memory.
 *
 * Open addressing, linear probing, deletion without tombstones. An empty table
 * takes no memory. The bytes of a page belong to whoever put them there.
 *
 * Threads: the owner's. */
#ifndef CN_STORE_PAGEMAP_H
#define CN_STORE_PAGEMAP_H
#include <stdbool.h>
#include <stdint.h>

struct cn_page {
    uint32_t page_no;   /* 0 marks a free slot */
    bool pinned;        /* its bytes are being written back: do not free them */
    uint64_t lsn;       /* of the last change */
    uint64_t image_lsn; /* of the last record with the whole page */
    uint8_t *bytes;     /* never changed in place, only replaced */
};

struct cn_pagemap {
    struct cn_page *slots; /* owned; capacity is 0 or a power of two */
    uint32_t capacity, count;
};

/* The page, or NULL. Borrowed until the table changes. */
struct cn_page *cn_pagemap_find(const struct cn_pagemap *map, uint32_t page_no);
/* The page, added with zeroed fields if it was not there. */
struct cn_page *cn_pagemap_add(struct cn_pagemap *map, uint32_t page_no);
void cn_pagemap_remove(struct cn_pagemap *map, struct cn_page *page);
/* Removes the pages above `limit`, handing each to `drop` first. */
void cn_pagemap_cut(struct cn_pagemap *map, uint32_t limit,
                    void (*drop)(void *data, const struct cn_page *page), void *data);
/* Forgets every page (and not their bytes), frees the table. */
void cn_pagemap_clear(struct cn_pagemap *map);
/* Iteration: start with *cursor = 0; NULL at the end. */
struct cn_page *cn_pagemap_next(const struct cn_pagemap *map, uint32_t *cursor);

#endif
