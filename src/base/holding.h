/* SPDX-License-Identifier: Apache-2.0 */
/* base/holding.h - memory that a library takes, and who answers for it.
 *
 * Compressors take from some kilobytes to hundreds of megabytes by what they are asked for, at
 * their first byte or in the middle of their work. A holding is what they allocate with: whoever
 * gave it is asked for each block before it is there, and may refuse.
 *
 * H1  What was taken from a holding is given back exactly, with the block.
 * H2  A refused block is to the library what a failed malloc() is: an error, never an end.
 * H3  Brotli's encoder ends the process when it is given no block. Its blocks are never refused
 *     (`must`); instead it is asked before each step whether there is room for the largest.
 *
 * Threads:   those of the library, one at a time.
 * Ownership: embedded in what gives it; it has to stay until the last block is free. */
#ifndef CN_BASE_HOLDING_H
#define CN_BASE_HOLDING_H
#include <stdbool.h>
#include <stddef.h>

struct cn_holding {
    bool (*take)(struct cn_holding *holding, size_t bytes); /* false: there is no room */
    void (*give)(struct cn_holding *holding, size_t bytes);
    bool must; /* H3: `take` may not refuse */
};

/* As the libraries want them; `holding` is a struct cn_holding, NULL: nobody is asked. */
void *cn_holding_alloc(void *holding, size_t size);
void *cn_holding_alloc_items(void *holding, unsigned count, unsigned size); /* zlib's */
/* NULL only if the system has none. */
void *cn_holding_alloc_always(void *holding, size_t size);
/* Nothing is taken. */
bool cn_holding_has_room(struct cn_holding *holding, size_t bytes);
void cn_holding_free(void *holding, void *block);

#endif
