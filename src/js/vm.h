/* SPDX-License-Identifier: Apache-2.0 */
/* js/vm.h - one JavaScript virtual machine per lane, and entering it.
 *
 * A VM owns a heap and any number of contexts (globals). All calls into
 * JavaScript happen between cn_js_enter() and cn_js_leave(): the pair takes the
 * engine's lock once, so that the calls in between are cheap, and leaving the
 * outermost pair runs every pending microtask. That stretch is a "turn"
 * (docs/understand/glossary.md).
 *
 * Time: a turn that uses more CPU than its context's budget is ended by the engine
 * with an exception that JavaScript cannot catch; the VM lives on.
 *
 * Who runs: a turn may be on behalf of somebody of the layer above (an object), the owner, and has
 * a cause. The engine has no hook for `await`, so within one turn code of several owners may run:
 * that which one of them waited for was brought by another. The prelude knows which (its contexts,
 * prelude/internal/turn.js) and says so in `clock`, memory that both sides see:
 *
 * V1  When a turn begins, the clock says for whom and why, and `mark` is 0: no context that the
 *     prelude knows. Whenever code of another owner or trace goes on, the prelude writes
 *     its numbers and calls the guest, which sets `owner` (bindings/turn.c). So the
 *     clock and `owner` are true whenever a native function is called.
 * V2  Numbers of contexts (CN_JS_LAST_CONTEXT counts them) are never used again in a VM.
 * V3  Whether a turn was ended before its time is what cn_js_leave() returns. The VM itself
 *     does not know any more: what ends with a turn (an object that was reset, say) may have run
 *     one of its own by then.
 *
 * What waits for something (a timer, an answer) is pinned, and pins remember owner and cause
 * (context.h): cn_js_enter_pin() enters for them. The hooks tell the layer above.
 *
 * Threads:   a VM is created and used on one thread. The engine may finalize
 *            objects on others: finalizers only free() memory or post mail.
 * Ownership: the lane. Contexts must be freed before the VM. */
#ifndef CN_JS_VM_H
#define CN_JS_VM_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "js/engine/alloc.h"
#include "js/jsc.h"

struct cn_err;
struct cn_js_context;

/* The clock: numbers that C and the prelude share. */
enum cn_js_clock {
    CN_JS_TIME,         /* wall-clock milliseconds at the start of the turn */
    CN_JS_OBJECT,       /* number of the owner, which the hooks know; 0: nobody */
    CN_JS_TRACE,        /* of the cause, and the next four */
    CN_JS_REQUEST_HIGH, /* its upper 32 bits, */
    CN_JS_REQUEST_LOW,  /* and the lower ones */
    CN_JS_HOPS,         /* twice its depth; and one, if no trace is wanted */
    CN_JS_EVENT,
    CN_JS_LAST_CONTEXT, /* the number given last */
    CN_JS_STRAY,        /* not 0: what leaves must wait though no object's gate says so */
    CN_JS_CLOCK_COUNT,
};

/* Why a turn was ended before its time. */
enum cn_js_end {
    CN_JS_END_NONE,
    CN_JS_END_CPU,    /* it used up its CPU time */
    CN_JS_END_MEMORY, /* it took more memory than there may be */
    CN_JS_END_WALL,   /* it lasted for too long (cairn dev) */
    CN_JS_END_STOP,   /* the server stops, or its code was replaced */
    CN_JS_END_ASKED,  /* a native function wanted it: cn_js_end_turn() */
};

struct cn_js_owner_hooks {
    /* A turn begins, for nobody. */
    void (*begin)(void *data);
    /* A turn begins. False: the owner is gone, do not enter. */
    bool (*enter)(void *owner);
    /* The turn that was begun or entered has ended, its microtasks drained. */
    void (*end)(void *data);
    /* Within a turn, code goes on for `owner`, which the guest has looked at; NULL: for nobody. */
    void (*focus)(void *data, void *owner);
    /* Before that: the engine has ended it for its time, code of `culprit` (NULL: nobody's)
     * running. */
    void (*terminated)(void *data, void *culprit);
    /* A pin made in its turns exists, and is gone. */
    void (*hold)(void *owner);
    void (*unhold)(void *owner);
};

/* What a turn goes back to, whoever's it is: the numbers of a request and of its trace, which mean
 * something to the layer above alone; 0: none. Code that waits goes on with the same cause. */
struct cn_js_cause {
    uint64_t request;
    uint64_t trace;
    uint64_t event; /* which of the events of that request */
    uint32_t depth; /* how many calls from script to script led to it */
    bool unsampled; /* no trace is wanted */
};

/* What a watchdog on another thread sees of a VM, and may ask of it. */
struct cn_js_pulse {
    _Atomic uint64_t running;                /* the number of the running turn; 0: none */
    _Atomic uint64_t budget_ns;              /* CPU time that it may use; 0: any */
    _Atomic(struct cn_js_context *) context; /* whose it is; good while it runs */
    _Atomic uint64_t unwanted;               /* the turn that is to end, */
    _Atomic int why;                         /* and the reason: enum cn_js_end */
};

struct cn_js_vm {
    JSContextGroupRef group;
    struct cn_list contexts;     /* of struct cn_js_context */
    struct cn_list loans;        /* of struct cn_js_loan */
    struct cn_js_context *hit;   /* the one found last by cn_js_context_of() */
    void *glib;                  /* GMainContext: the engine's own timers run there */
    JSGlobalContextRef bare;     /* a global without anything in it, and */
    JSObjectRef nothing;         /* its function that does nothing: context.c */
    struct cn_js_context *house; /* stands for it in turns of the engine's own */
    unsigned entered;            /* depth of enter/leave */
    uint64_t turn_count;
    uint64_t turn_ticks; /* cn_clock_ticks() when the running turn began, */
    uint64_t cost_ticks; /* and when code of another trace began in it, */
    double cost_trace;   /* which is this one */
    /* By enum cn_js_clock; the prelude sees them. */
    double *clock;
    double *mark; /* number of the prelude's context that runs; 0: none yet. Scripts see it too */
    uint64_t budget_ns;       /* CPU time the running turn may use; 0: no limit */
    uint64_t watched_turn;    /* the turn in which the engine last read its clock, */
    uint64_t watched_mono_ns; /* when it first did, */
    uint64_t
        cpu_deadline_ns; /* and, once the turn has lasted for its budget, its end; 0: not yet */
    bool timing;         /* a timer of the loop runs (T2 of bindings/timers.c) */
    bool hurried;        /* the engine was told to ask at once, and has not yet */
    bool closely;        /* the engine asks every 10 ms */
    bool ending;         /* the running turn is to be ended, whatever its budget */
    bool terminated;     /* the running turn was told to end before its time */
    bool tells_place;    /* cairn dev: where it was then is noted in the next */
    struct cn_buf place; /* "    at NAME (URL:LINE:COLUMN)" lines of the last that was ended */
    struct cn_js_pulse *pulse; /* `own_pulse`, or that of the lane, which outlives the VM */
    struct cn_js_pulse own_pulse;
    enum cn_js_end end;                    /* of the last turn that was ended */
    unsigned alloc;                        /* its number in engine/alloc.h */
    const struct cn_js_owner_hooks *hooks; /* NULL while there are no owners */
    void *owner;                           /* for whom code runs now; NULL: nobody */
    struct cn_js_meter *meter;    /* the owner's, which the hooks set; NULL: the context's */
    struct cn_js_context *inside; /* the context of the innermost enter */
    struct cn_js_nested *nested;  /* what innermost ones have put aside; NULL: nothing */
    /* Of the next turn: set by whoever begins one. In a turn cn_js_cause() knows it. */
    struct cn_js_cause cause;
    /* For each stretch of a turn that has a trace; set by whoever gives turns one. */
    void (*on_turn_cost)(void *data, uint64_t trace, uint64_t ticks);
    /* Called when the outermost turn ends, its microtasks drained. May be NULL. */
    void (*on_turn_end)(void *data);
    void *data; /* the owner's */
};

/* Process-wide engine settings; call once, before any VM and any thread exists. Fails if the
 * environment asks for something that is not there (engine/patch.h). */
int cn_js_setup(struct cn_err *err);

struct cn_js_vm *cn_js_vm_new(void *data);
void cn_js_vm_free(struct cn_js_vm *vm);
/* The VM of the calling thread, or NULL. */
struct cn_js_vm *cn_js_vm_current(void);

void cn_js_enter(struct cn_js_context *context);
/* The same on behalf of `owner` (NULL: nobody). False if it is gone: nothing was entered. */
bool cn_js_enter_for(struct cn_js_context *context, void *owner);
/* The same with a cause. Inside a turn already: the cause stays as it is. */
void cn_js_enter_cause(struct cn_js_context *context, const struct cn_js_cause *cause);
/* Returns why the turn was ended before its time, if it was (V3). */
enum cn_js_end cn_js_leave(struct cn_js_context *context);
/* Of the code that runs now. */
struct cn_js_cause cn_js_cause(const struct cn_js_vm *vm);
/* Code of `owner` goes on (V1): the clock says so already. */
void cn_js_switch(struct cn_js_vm *vm, void *owner);
/* From a native function: the engine ends the turn soon, with an exception that JavaScript cannot
 * catch. Until then the script goes on. */
void cn_js_end_turn(struct cn_js_vm *vm);

/* From any thread: ends the turn with this number (`running`), if it still runs. */
void cn_js_unwant(struct cn_js_pulse *pulse, uint64_t turn, enum cn_js_end why);
/* For a person: "used more than its CPU limit of 50 ms". Borrowed until the thread's next call. */
const char *cn_js_end_text(enum cn_js_end end, uint64_t cpu_limit_ms);

struct cn_js_memory {
    size_t heap_bytes;     /* live objects and what they hold outside the heap */
    size_t capacity_bytes; /* what the heap keeps from the system */
};
void cn_js_vm_memory(struct cn_js_vm *vm, struct cn_js_memory *memory);
/* A full collection, now. */
void cn_js_vm_collect(struct cn_js_vm *vm);
/* Runs the engine's own due timers (finalization registries, deferred work), as a turn of nobody's
 * that may use a second of CPU time. Outside of turns. */
void cn_js_vm_pump(struct cn_js_vm *vm);

#endif
