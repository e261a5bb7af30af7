/* SPDX-License-Identifier: Apache-2.0 */
/* js/context.h - one JavaScript global: a worker's on one lane.
 *
 * Scripts are evaluated as classic scripts whose completion value is returned.
 *
 * Pins: a JavaScript value kept in C memory must be pinned, or the collector
 * frees it. Pins are listed by context, so that freeing the context releases
 * every one of them; a pin that outlives its context is empty, not dangling.
 *
 * Loans: bytes of a JavaScript buffer that C goes on reading after the call (a body on
 * its way to a client) are lent. A loan is the VM's, whatever becomes of the context.
 *
 * The end: the engine may still run code of a context that was freed (callbacks of a
 * FinalizationRegistry, a promise of Atomics.waitAsync), for as long as anything refers to
 * its global.
 *
 * X1  Code of a context that was freed reaches no native function: the properties of
 *     `native` are functions that do nothing, and the prelude calls natives as its
 *     properties only.
 * X2  No turn is under way when a context is freed.
 * X3  Bytes that were lent stay as they are until they are given back.
 *
 * Threads:   the VM's.
 * Ownership: whoever made it. */
#ifndef CN_JS_CONTEXT_H
#define CN_JS_CONTEXT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/list.h"
#include "js/jsc.h"
#include "js/vm.h"

struct cn_js_context {
    struct cn_js_vm *vm;
    JSGlobalContextRef ref;
    struct cn_list link;  /* in vm->contexts */
    struct cn_list pins;  /* of struct cn_js_pin */
    size_t waiting;       /* of them those that are not passive */
    struct cn_list works; /* of struct cn_js_work: those that wait (work.h, W5) */
    size_t work_bytes;    /* of those that are under way */
    JSObjectRef natives;  /* what native functions are properties of, protected; NULL: none */
    /* Called with an error whose stack is first looked at, protected; NULL: engine/stacks.h. */
    JSObjectRef stacks;
    uint64_t budget_ns; /* CPU time of one turn; 0: no limit */
    uint64_t ticks;     /* cn_clock_ticks() of its turns; who publishes them begins anew */
    /* A turn was ended by the engine, which drops what was left to run in it: whoever waits for
     * that waits for ever. Who deals with it clears it. */
    bool cut;
    uint64_t cut_ns;          /* monotonic: who has begun since has lost nothing */
    uint64_t cut_turn;        /* and the turn: vm->turn_count */
    uint64_t cut_event;       /* whose code was ended; 0: an object's, or none's */
    struct cn_js_meter meter; /* of turns that are nobody's */
    enum cn_js_end end;       /* why its last turn that was ended was */
    void *data;               /* the owner's */
};

struct cn_js_pin {
    struct cn_js_context *context; /* NULL: empty */
    JSValueRef value;
    void *owner;              /* whose turn it was made in (vm.h); NULL: nobody's */
    struct cn_js_cause cause; /* of that turn */
    bool orphan;              /* that one is gone */
    bool borrowed;            /* somebody else's pin keeps the value */
    bool passive;             /* it promises nothing to come: worker/hung.h */
    struct cn_list link;
};

struct cn_js_loan {
    struct cn_js_vm *vm;
    JSValueRef buffer;   /* protected */
    struct cn_list link; /* in vm->loans */
};

struct cn_js_context *cn_js_context_new(struct cn_js_vm *vm, void *data);
void cn_js_context_free(struct cn_js_context *context);

/* The context a native function was called in. It exists (X1). */
struct cn_js_context *cn_js_context_of(JSContextRef ctx);
/* That of a global; NULL: it was freed, or is the VM's own. */
struct cn_js_context *cn_js_context_find(struct cn_js_vm *vm, JSContextRef global);
/* `function` (error, touched) gives an error's stack its form, from now on. */
void cn_js_context_shape_stacks(struct cn_js_context *context, JSObjectRef function);

/* Evaluates `source` (UTF-8, NUL-terminated). On an exception: CN_EJS, `err` has
 * the message and the stack. */
int cn_js_evaluate(struct cn_js_context *context, const char *source, const char *url,
                   JSValueRef *result, struct cn_err *err);
/* The same for ASCII text that lives as long as the process: it is not copied. */
int cn_js_evaluate_static(struct cn_js_context *context, const char *source, size_t length,
                          const char *url, JSValueRef *result, struct cn_err *err);
/* Calls a function; `result` may be NULL. On an exception, and if it is no function, for a script
 * may have given it: CN_EJS, as above. */
int cn_js_call(struct cn_js_context *context, JSValueRef function, size_t argc,
               const JSValueRef argv[], JSValueRef *result, struct cn_err *err);
/* Fills `err` from a thrown value: "Error: message" and its stack. Returns CN_EJS. */
int cn_js_exception(struct cn_js_context *context, JSValueRef exception, struct cn_err *err);

/* Lends a buffer that the script does not change any more. */
struct cn_js_loan *cn_js_lend(JSContextRef ctx, JSValueRef buffer);
/* Gives it back; a struct cn_js_loan. */
void cn_js_loan_return(void *loan);

void cn_js_pin_set(struct cn_js_pin *pin, struct cn_js_context *context, JSValueRef value);
/* The same for a value that another pin keeps for as long as the context lives. */
void cn_js_pin_borrow(struct cn_js_pin *pin, struct cn_js_context *context, JSValueRef value);
/* The pin is kept for something that may never happen. */
void cn_js_pin_set_passive(struct cn_js_pin *pin);
void cn_js_pin_clear(struct cn_js_pin *pin); /* an empty pin is fine */
/* `owner` goes: its pins stay, but nothing can be entered for them. */
void cn_js_pin_orphan(struct cn_js_context *context, void *owner);
/* W3 of base/loop.h: `waiting` is the number of pins that are not passive. */
void cn_js_context_check(const struct cn_js_context *context);
/* Whether a pin exists that was made for this event: something will call back for it. */
bool cn_js_context_waits(const struct cn_js_context *context, uint64_t event);
/* Begins a turn for the owner of the pin; cn_js_leave() ends it. False if that one is gone, or
 * the pin is empty: then nothing was entered. */
bool cn_js_enter_pin(struct cn_js_pin *pin);
/* Enters for the pin's owner, empties the pin and calls the function that was in it. */
void cn_js_pin_call(struct cn_js_pin *pin, size_t argc, const JSValueRef argv[]);

#endif
