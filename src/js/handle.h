/* SPDX-License-Identifier: Apache-2.0 */
/* js/handle.h - a JavaScript object that owns a C struct.
 *
 * For native state whose end is the collector's to decide: a compressor, a
 * parser. The prelude holds the object in a field and gives it back to native
 * functions.
 *
 * N1  The struct is freed once: when the object is collected, or its VM goes.
 * N2  Only a handle of the very type gives its struct: whatever else a script passes is none.
 *
 * N3  What it holds is on the meter of who made it (M5 of engine/alloc.h).
 *
 * Threads: `free` runs on any thread, the engine's collector among them. It
 *          releases memory and does nothing else; what is shared with work on
 *          the pool is counted by its owner. */
#ifndef CN_JS_HANDLE_H
#define CN_JS_HANDLE_H
#include <stdbool.h>

#include "js/jsc.h"

struct cn_js_handle_type {
    const char *name;
    void (*free)(void *data);
    bool counts; /* what it holds counts by itself (cn_js_holding); else by `cost_bytes` */
};

/* The first field of a struct that a handle owns. */
struct cn_js_handle {
    const struct cn_js_handle_type *type;
};

/* `handle` becomes the object's. `cost_bytes` tells the collector what it holds. */
JSValueRef cn_js_handle_make(JSContextRef ctx, struct cn_js_handle *handle,
                             const struct cn_js_handle_type *type, size_t cost_bytes);
/* The struct behind `value`, or NULL if it is not a handle of that type. */
void *cn_js_handle_find(JSContextRef ctx, JSValueRef value, const struct cn_js_handle_type *type);

#endif
