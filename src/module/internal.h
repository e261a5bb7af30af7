/* SPDX-License-Identifier: Apache-2.0 */
/* module/internal.h - what the files of module/ share among themselves.
 *
 * A cairn_object is the instance of a cn_object. Functions of the class run between
 * cn_compiled_enter() and cn_compiled_leave(): what they were lent (values, builders, rows of
 * statements) goes with the outermost leave.
 *
 *     event   RUNNING ──► LATER ──► answered: freed
 *                └───────────┴──► the object was reset: call is NULL; freed with the object,
 *                                 or when it is answered all the same
 *
 * Threads:   the lane's.
 * Ownership: an object owns its events, statements and what it has lent. */
#ifndef CN_MODULE_INTERNAL_H
#define CN_MODULE_INTERNAL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "include/cairn.h"
#include "module/module.h"
#include "module/value.h"
#include "module/worker.h"
#include "object/call.h"
#include "object/id.h"
#include "object/socket.h"

struct cn_compiled_batch;
struct cn_compiled_outside;
struct cn_compiled_timer;
struct cn_counter;
struct cn_database;
struct cn_http_request;
struct cn_message;
struct cn_object;
struct cn_statement;

#define CN_MODULE_BODY_MAX (16u << 20)

struct cn_module_class {
    struct cn_modules *modules; /* borrowed: whose it is */
    const char *module;         /* borrowed: its name */
    char *name;                 /* owned: "counter:Counter" */
    struct cairn_class table;   /* a copy: what the module's struct lacks is NULL */
};

const char *cn_modules_worker(const struct cn_modules *modules);
/* What the script's configuration binds to a name; NULL: nothing. */
struct cn_namespace *cn_modules_namespace(const struct cn_modules *modules, const char *binding);
/* What the configuration says of a binding: an object; NULL: there is none. */
const cairn_value *cn_modules_binding(const struct cn_modules *modules, const char *name);
const char *cn_modules_var(const struct cn_modules *modules, const char *name);

struct cn_compiled_error {
    char type[64];
    char text[CN_ERR_TEXT_MAX];
};

struct cairn_object {
    uintptr_t handle;                     /* G5 of guard.h, as of all that modules have */
    struct cn_object *object;             /* NULL: it is a worker (worker.c) */
    const struct cn_compiled_host *host;  /* of its lane; NULL: the lane has none */
    const struct cn_module_class *class_; /* of a set that it has a reference to */
    void *instance;
    struct cn_list events;           /* of struct cairn_event */
    size_t event_count;              /* of a worker: W4 of worker.h */
    struct cn_list statements;       /* of struct cairn_statement */
    struct cn_list lent;             /* of struct lent (object.c) */
    struct cn_compiled_error *error; /* owned; NULL: there was none yet */
    bool stillborn;                  /* that of create(), which has reset the object */
    unsigned running;                /* functions of the class on the stack */
    unsigned busy;                   /* statements with rows left */
    unsigned transactions;           /* open ones */
    int first_level;                 /* the savepoint of the outermost; the others follow it */
    struct cn_list pending;          /* of struct cn_pending: pending.h */
    unsigned pending_count;
    unsigned blocks; /* of the input gate that the class has taken */
    struct cn_compiled_timer *block_timer;
    int64_t last_timer;
    struct cn_compiled_outside *outside; /* owned: what it has of others and others of it (lent.h);
                                            NULL: nothing yet */
    bool going;                          /* it is being freed: nothing that was started ends */
    uint32_t serial;                     /* of a worker: of its instance, for addresses */
    struct cn_origin origin;             /* of the event that runs, or ran last */
    uint64_t trace;                      /* and its trace: tracer.h */
    struct cn_counter *ticks;            /* of a worker: what its functions take */
    uint64_t entered_trace, entered_ticks; /* of the function that runs */
    unsigned loops;                        /* of that event, in a worker: X4 of fetch_out.c */
    char id[CN_OBJECT_HEX_SIZE + 1];
};

/* Of a worker's event: whom its end is told, and what it was asked with besides values. */
struct cn_compiled_asked {
    void (*ended)(void *data, struct cn_compiled_answer *answer);
    void *data;                         /* NULL: nobody asks any more (W3) */
    const struct cn_http_request *http; /* a request from outside; NULL once nobody asks */
    char *address;                      /* owned: of the client, "" if it is not known */
    size_t body_size;                   /* of a request from outside: event->bytes */
    /* Of one whose body has not come: opens that; `data` is there. NULL: it is in event->bytes. */
    cairn_stream *(*open_body)(void *data, cairn_object *worker);
    char **texts; /* owned: what was read of the request, for C: request.c */
    size_t text_count;
    struct cn_compiled_batch *batch; /* owned: of a queue */
};

struct cairn_event {
    uintptr_t handle;    /* 0 once it has been answered or passed on */
    struct cn_list link; /* in the object's */
    cairn_object *object;
    struct cn_call *call; /* NULL: it has been answered, or the object was reset; or a worker's */
    struct cn_compiled_asked *asked; /* owned; of a worker's; NULL: an object's */
    uint64_t trace;                  /* tracer.h; 0: nobody watches */
    enum cn_compiled_kind kind;
    bool running;   /* its function is on the stack, which frees it */
    bool done;      /* it has been answered */
    bool passed_on; /* by object_forward(), service_forward(), which will answer it */
    const char *method;
    uint8_t *bytes; /* owned: what the document is of */
    struct cn_document document;
    cairn_builder result;
    int status;            /* of a response */
    struct cn_buf headers; /* "name\0value\0" ... */
    struct cn_buf body;
    bool has_body;
    cairn_stream *stream;  /* of a response: its body; NULL: none */
    struct cn_buf request; /* a body that came as a stream and was collected */
    bool collected;
    bool streamed;                       /* request_stream() was called */
    char socket[CN_SOCKET_ADDRESS_SIZE]; /* of a response: the address of its WebSocket; "": none */
    int64_t scheduled_ms;                /* of an alarm */
    unsigned retries;
};

/* Runs in a turn of the object, but in no function of its class. */
struct cn_pending_end;
typedef void (*cn_compiled_ended)(cairn_object *self, void *data, const struct cn_pending_end *end);

/* A call to what somebody has lent (object/lent.h): one of `done` and `ended` is told. */
struct cn_compiled_lent_call {
    const char *address;
    double number;
    const char *method; /* a path; "": itself is called */
    uint8_t *bytes;     /* owned: taken, also if it fails */
    size_t size;
    cairn_done done;
    cn_compiled_ended ended;
    void *data;
};
int cn_compiled_call_lent(cairn_object *self, const struct cn_compiled_lent_call *call);
/* "~retain" or "~release" of something lent; from within the object's end too. */
void cn_compiled_note_lent(cairn_object *self, const char *method, const char *address,
                           double number);
/* A method of the object that a stub is of. */
int cn_compiled_call_stub(cairn_object *self, const struct cn_value_remote *stub,
                          const char *method, cairn_builder *arguments, cairn_done done,
                          void *data);
void cn_compiled_enter(cairn_object *self);
/* 0, or negative: a transaction was left open, and has been undone. */
int cn_compiled_leave(cairn_object *self);

/* A document for bytes that are copied, lent to the function that runs; NULL: they cannot be read,
 * and that is the object's last error. */
const cairn_value *cn_compiled_lend_value(cairn_object *self, const void *bytes, size_t size);
cairn_builder *cn_compiled_lend_builder(cairn_object *self);

/* Keeps the error; returns the CAIRN_E... for it. */
int cn_compiled_fault(cairn_object *self, const struct cn_err *err);
int cn_compiled_refuse(cairn_object *self, int code, const char *text);

/* Whether the object has gone: a worker never has. */
bool cn_compiled_is_gone(const cairn_object *self);
/* Runs the event's function, and ends the event unless that wants to later. */
void cn_compiled_handle(cairn_event *event,
                        int (*function)(cairn_object *object, void *instance, cairn_event *event));
/* Ends an event that its class does not get. */
void cn_compiled_reject(cairn_event *event, const char *type, const char *text);
cairn_event *cn_compiled_event_new(cairn_object *self, enum cn_compiled_kind kind);
void cn_compiled_event_free(cairn_event *event);
/* The class may not use it any more. */
void cn_compiled_event_hide(cairn_event *event);
/* create() and destroy() of the class. */
int cn_compiled_begin(cairn_object *self, struct cn_err *err);
void cn_compiled_finish(cairn_object *self);
uint8_t *cn_compiled_error_bytes(cairn_object *self, const struct cn_compiled_error *error,
                                 size_t *size);
/* Of a worker (worker.c): the event ends; NULL: well. */
void cn_compiled_worker_end(cairn_event *event, const struct cn_compiled_error *error);
void cn_compiled_asked_free(struct cn_compiled_asked *asked);

/* The event ends, well or with the object's last error. */
void cn_compiled_answer(cairn_event *event);
void cn_compiled_fail(cairn_event *event);

/* The parts of a request, and what a response becomes. */
int cn_compiled_check_request(cairn_event *event, struct cn_err *err);
void cn_compiled_build_response(cairn_event *event);

/* Lets go of what a document refers to and nobody has kept (V3), and frees it. */
void cn_compiled_end_document(cairn_object *self, struct cn_document *document);

/* Before the database closes: statements let go of it, and are prepared anew when they are used. */
void cn_compiled_release_statements(cairn_object *self);
void cn_compiled_reset_statements(cairn_object *self);
void cn_compiled_free_statements(cairn_object *self);
int cn_compiled_undo_transactions(cairn_object *self);
/* The object goes: what it has under way finds nobody. */
void cn_compiled_drop_pending(cairn_object *self);

extern const struct cairn_api cn_compiled_api;

#endif
