/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/alloc.h - whose memory it is that the engine takes.
 *
 * A VM has one heap for every script and object of its lane, and the engine does not say who holds
 * what. So its allocation functions are passed on through here: every 128 KB or so one allocation
 * is noted, with all the bytes since the last one and with the meter of the running turn; when it
 * is freed they are taken off again. What a meter shows is therefore what was allocated in its
 * turns and is still there, to about 128 KB; large blocks (typed arrays, strings, arrays) exactly.
 *
 *     turn of an object ──► its meter ┐ what an object leaves behind when it ends
 *     turn of a script ───► its meter ◄┘ (in globals of the script) becomes the script's
 *
 * M1  What is noted is taken off once, when it is freed, from whoever has it then: a meter that
 *     ends leaves its bytes to its parent, and one without a parent to nobody.
 * M2  A single block that would bring the heap of its VM past its bound, or the process past its
 *     limit, is refused if the engine can take that (it throws a RangeError): it could be
 *     filled in one call that nothing can interrupt.
 * M3  If the heap of a VM passes its bound in a turn, in however small pieces, the turn is told
 *     (`on_over`, once per turn, on its thread; it must only set a flag).
 * M4  Switched off, or with another library, nothing is noted, nothing refused, and meters show 0.
 * M5  What is not the engine's but held by one of its values (bytes that a native has lent to a
 *     typed array) is noted as if it were: rows of SQL, bodies and messages have holders too.
 * M6  What C holds for a script while it works for it (a body that is being read, bytes on their
 *     way to a service) is reserved for who asked before it is held, and released when it is a
 *     value's (M5) or gone. What would pass a bound is refused as a block is (M2), or ends the
 *     turn (M3).
 * M7  What a library holds for a value (the state of a compressor) counts for who asked for it, as it
 *     is taken, on whatever thread; what would pass a bound is refused, however small, since
 *     there may be no turn to tell.
 *
 * Threads:   allocations are noted on any; a VM's meters belong to its lane.
 * Ownership: a meter is embedded in what it measures, and ended before that goes. */
#ifndef CN_JS_ENGINE_ALLOC_H
#define CN_JS_ENGINE_ALLOC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/holding.h"
#include "js/engine/patch.h"

struct cn_js_meter {
    uint32_t tag; /* 0: nothing was noted for it yet */
    struct cn_js_meter *parent;
};

#define CN_JS_ALLOC_VM_MAX 256

extern const struct cn_js_patch cn_js_patch_alloc;

bool cn_js_alloc_on(void);
/* For the table of patches, and tests: off, allocations are passed on and nothing else. */
void cn_js_alloc_use(bool on);

/* The calling thread has a VM from now on, whose heap may have `bound` bytes (0: any number);
 * and has none any more. Returns its number. */
unsigned cn_js_alloc_open(size_t bound, void (*on_over)(void *data), void *data);
void cn_js_alloc_close(void);
/* The bound, later. Returns what it was. */
size_t cn_js_alloc_bound(size_t bound);
/* M2: what the VM of the calling thread may take yet; SIZE_MAX: any number. */
size_t cn_js_alloc_room(void);
/* The calling thread's turn is for `meter`; NULL: nobody's. */
void cn_js_alloc_begin(struct cn_js_meter *meter);
void cn_js_alloc_end(void);
/* Within the turn: it goes on for `meter`. */
void cn_js_alloc_switch(struct cn_js_meter *meter);
/* M5: `block` is held by a value of the calling thread's VM from now on; and no longer, which any
 * thread may say. */
void cn_js_alloc_lent(void *block, size_t size);
void cn_js_alloc_returned(void *block);
/* M6. A reserve that is zero holds nothing. */
struct cn_js_reserve {
    uint32_t tag, vm;
    int64_t bytes;
};
/* On the thread of a VM, in a turn: false, and nothing was reserved, if there is no room. */
bool cn_js_alloc_reserve(struct cn_js_reserve *reserve, size_t bytes);
/* On any thread. */
void cn_js_alloc_release(struct cn_js_reserve *reserve);
/* M7. Begun in a turn; what is taken later is for whom that turn was. */
struct cn_js_holding {
    struct cn_holding base;
    uint32_t tag, vm;
    bool counts;
    int64_t bytes; /* held now */
};
void cn_js_holding_begin(struct cn_js_holding *holding);
/* On any thread, when all has been given back. */
void cn_js_holding_end(struct cn_js_holding *holding);
/* What it measured goes, or has gone. */
void cn_js_meter_end(struct cn_js_meter *meter);
/* What it holds, with what ended meters have left to it. */
uint64_t cn_js_meter_bytes(const struct cn_js_meter *meter);
/* What the VM of the calling thread holds; the one with that number; and all VMs. */
uint64_t cn_js_alloc_bytes(void);
uint64_t cn_js_alloc_bytes_of(unsigned vm);
uint64_t cn_js_alloc_bytes_all(void);

#endif
