/* SPDX-License-Identifier: Apache-2.0 */
/* base/handles.h - handles: numbers for pointers, given to code that must not hold a pointer.
 *
 * JavaScript names what C owns (events, objects, calls, cursors, sockets, fetches) by a
 * number of 53 bits, which a double holds exactly. A number is the index of a slot and the
 * generation of its use:
 *
 *     generation, 32 bits | index, 21 bits
 *
 * H1  A number is given once in the life of its table. A slot whose generations are used up
 *     is not used again. So whoever holds the number of something that is gone finds nothing,
 *     however long ago that was, and never something else.
 * H2  Every number is above 2^32: code that cuts one to 32 bits fails at the first one.
 *
 * Threads:   the owner's.
 * Ownership: whoever embeds it. What the numbers stand for is not the table's. */
#ifndef CN_BASE_HANDLES_H
#define CN_BASE_HANDLES_H
#include <stddef.h>
#include <stdint.h>

#define CN_HANDLES_MAX ((1u << 21) - 1)

struct cn_handle_slot {
    void *value; /* NULL: free */
    uint32_t generation;
    uint32_t next_free; /* index + 1; 0: none */
};

/* All zero: empty. */
struct cn_handles {
    struct cn_handle_slot *slots; /* owned */
    uint32_t count, capacity;     /* in use ever, allocated */
    uint32_t free;                /* index + 1 of the first free slot; 0: none */
    uint32_t live;
};

/* The number of `value`, which is not NULL. 0: CN_HANDLES_MAX are in use. */
uint64_t cn_handles_add(struct cn_handles *handles, void *value);
/* NULL for a number that stands for nothing any more, or never did: any double is fine. */
void *cn_handles_find(const struct cn_handles *handles, double number);
/* It must stand for something. */
void cn_handles_remove(struct cn_handles *handles, uint64_t number);
/* Walks over what there is: `cursor` begins at 0; NULL at the end. Things may be added and removed
 * meanwhile. */
void *cn_handles_next(const struct cn_handles *handles, uint32_t *cursor);
void cn_handles_fini(struct cn_handles *handles);

/* W3 of base/loop.h: `live` is the number of slots in use, and every other one is free or worn out.
 */
void cn_handles_check(const struct cn_handles *handles);

#endif
