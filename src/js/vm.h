/* SPDX-License-Identifier: Apache-2.0 */
/* js/vm.h - one JavaScript virtual machine per lane, and entering it.
 *
 * A VM owns a heap and any number of contexts (globals). All calls into
 * JavaScript happen between cn_js_enter() and cn_js_leave(): the pair takes the
 * engine's lock once, so that the calls in between are cheap, and leaving the
 * outermost pair runs every pending microtask. That stretch is a "turn".
 *
 * Time: code that uses more than its budget of CPU is ended by the engine with
 * an exception that JavaScript cannot catch; the VM lives on. The budget is set
 * by cn_js_vm_set_budget() and counts the thread's CPU time from then on.
 *
 * Threads:   a VM is created and used on one thread. The engine may finalize
 *            objects on others: finalizers only free() memory or post mail.
 * Ownership: the lane. Contexts must be freed before the VM. */
#ifndef CN_JS_VM_H
#define CN_JS_VM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "js/jsc.h"

struct cn_js_context;

struct cn_js_vm {
    JSContextGroupRef group;
    struct cn_list contexts;   /* of struct cn_js_context */
    struct cn_js_context *hit; /* the one found last by cn_js_context_of() */
    void *glib;                /* GMainContext: the engine's own timers run there */
    unsigned entered;          /* depth of enter/leave */
    uint64_t turn_count;
    double *clock; /* [0]: wall-clock milliseconds at the start of the turn; contexts see it too */
    uint64_t deadline_ns; /* on the thread's CPU clock; 0: no limit */
    uint64_t deadline_mono_ns; /* before that the CPU time cannot be over its deadline */
    bool terminated;      /* something was ended for its budget since it was set */
    /* Called when the outermost turn ends, its microtasks drained. May be NULL. */
    void (*on_turn_end)(void *data);
    void *data; /* the owner's */
};

/* Process-wide engine settings; call once, before any VM exists. */
void cn_js_setup(void);

struct cn_js_vm *cn_js_vm_new(void *data);
void cn_js_vm_free(struct cn_js_vm *vm);
/* The VM of the calling thread, or NULL. */
struct cn_js_vm *cn_js_vm_current(void);

void cn_js_enter(struct cn_js_context *context);
void cn_js_leave(struct cn_js_context *context);

/* CPU time the code entered from now on may use, 0 for no limit. Clears `terminated`. */
void cn_js_vm_set_budget(struct cn_js_vm *vm, uint64_t budget_ns);

struct cn_js_memory {
    size_t heap_bytes;     /* live objects and what they hold outside the heap */
    size_t capacity_bytes; /* what the heap keeps from the system */
};
void cn_js_vm_memory(struct cn_js_vm *vm, struct cn_js_memory *memory);
/* A full collection, now. */
void cn_js_vm_collect(struct cn_js_vm *vm);
/* Runs the engine's own due timers (finalization registries, deferred work). */
void cn_js_vm_pump(struct cn_js_vm *vm);

#endif
