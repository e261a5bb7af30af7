/* SPDX-License-Identifier: Apache-2.0 */
/* cairn.h - Durable Objects and workers written in C.
 *
 * A module is a shared object that `cairn serve` loads. It has classes; an object of such a class
 * is an object like any other. It has an id, perhaps a name, and a database of its own. It lives in
 * one place at a time and gets its events one after the other. What it answers leaves the server
 * only when everything it has written is on disk. JavaScript calls it as it calls objects written
 * in JavaScript:
 *
 *     wrangler.toml                               JavaScript
 *     [cairn.modules]                             const counter = env.COUNTER.getByName("a");
 *     counter = "build/counter.so"                await counter.increment(5);
 *     [[durable_objects.bindings]]                await counter.fetch("https://counter/");
 *     name = "COUNTER"
 *     class_name = "counter:Counter"
 *     [[migrations]]
 *     tag = "v1"
 *     new_sqlite_classes = ["counter:Counter"]
 *
 * A whole module:
 *
 *     #include <cairn.h>
 *     #include <string.h>
 *
 *     static int call(cairn_object *object, void *instance, cairn_event *event)
 *     {
 *         int64_t count = 0, by = 1;
 *         if (strcmp(cairn->event_method(event), "increment") != 0)
 *             return cairn->error(object, "TypeError", "there is no such method");
 *         cairn->value_int(cairn->kv_get(object, "count"), &count);
 *         cairn->value_int(cairn->value_at(cairn->event_arguments(event), 0), &by);
 *         cairn_builder *kept = cairn->builder(object);
 *         cairn->build_int(kept, count + by);
 *         int rc = cairn->kv_put(object, "count", kept);
 *         cairn->build_int(cairn->event_result(event), count + by);
 *         return rc;
 *     }
 *
 *     static const struct cairn_class classes[] = {{.name = "Counter", .call = call}};
 *     CAIRN_MODULE(classes)
 *
 * made by
 *
 *     cc -O2 $(pkg-config --variable=moduleflags cairn) $(pkg-config --cflags cairn) \
 *        -o build/counter.so counter.c
 *
 * THREADS. A server has several threads, its lanes. An object lives on one of them from create() to
 * destroy(), and every function of its class runs there, one at a time. Objects of one class live
 * on different lanes, so what a module keeps in static variables is shared between threads and
 * needs a lock. Functions of struct cairn_api are called on the thread of the object that they are
 * given, from within a function of its class, unless it says otherwise. A lane serves many objects:
 * a function that takes long keeps all of them waiting.
 *
 * TURNS. What a function of a class writes to storage becomes one transaction when it returns:
 * all of it is kept, or, if the server ends before, nothing. An error does not undo it (as an
 * exception in JavaScript does not): transaction_begin() does that.
 *
 * WORKERS. A class can also be a worker: what answers requests from outside. The configuration says
 * so, and then no JavaScript need be there:
 *
 *     [cairn]                                     [cairn.modules]
 *     worker = "front:Front"                      front = "build/front.so"
 *
 * It gets the events of the worker that it has functions for. These are `fetch` for requests from
 * outside and from service bindings, `call` for methods that other workers call by a service
 * binding, and `scheduled` and `queue`. If the project has a `main` as well, the others go there.
 * Its class has an instance on each lane, from create() to destroy(), and `object` stands for that.
 * It has no id, no storage, no alarm and no WebSockets of its own (CAIRN_EMISUSE; it forwards them
 * to objects, object_forward()). All else is the same. Events are not kept apart: while one waits
 * (CAIRN_LATER) others come. A deployment makes new instances; the old one gets no new events,
 * answers those it has, and goes with the last of them.
 *
 * OWNERSHIP. What a function returns by pointer belongs to the server. Values (cairn_value) and
 * texts that were read are good until the function of the class returns; those of an event that is
 * answered later, until it is answered. What is passed in is copied.
 *
 * ERRORS. Functions that can fail return 0 or more, or one of the negative numbers CAIRN_E...
 * below. The object's last error (error_text()) then has a sentence that says why. A function of
 * the class that returns the number fails its event with that sentence: in JavaScript the caller's
 * promise is rejected with it.
 *
 * MISUSE. It is a mistake to call a function with something that is gone, is none, is another
 * thread's or another object's. The same holds for a call without something that the function needs
 * (a text, bytes or a function that is NULL where nothing says that it may be). It also holds for a
 * call outside of a function of the object's class. The function then does nothing and says so: it
 * returns CAIRN_EMISUSE (a pointer: NULL; a text that is never NULL: ""; a count: 0), and a line of
 * the log names the module and the function. Any thread may call now() and log() without an object,
 * and those that read values. The functions object_id(), object_name() and error_text() may be
 * called on the object's thread at any time, and from destroy() everything but storage, within what
 * its text says. Handles (of objects, events, builders, statements, sockets, remotes and streams)
 * are numbers, not addresses, and one that is gone is told though others have come since. Values
 * and texts that were read are not watched over: one that is used for longer than OWNERSHIP says is
 * read from memory that is something else, and a pointer to nowhere is a crash. A function that has
 * not returned for 3 s is told in the log, by the name of its class, and every 30 s again.
 *
 * TRUST. A module is code with all the rights of the server. It is not checked, not limited and not
 * sandboxed apart from the server itself: a crash in it ends the server, whose last line then names
 * the module. So does an exception of C++ that leaves a function of a class.
 *
 * VERSIONS. The header is C11 and C++17. Functions are added to the end of struct cairn_api, never
 * changed or taken away, as long as CAIRN_ABI is the same; a module runs on the server it was made
 * for and on later ones. */
#ifndef CAIRN_H
#define CAIRN_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_ABI 1u

/* A live object, as its class sees it. */
typedef struct cairn_object cairn_object;
/* Something that an object is asked: a call, a request, an alarm. */
typedef struct cairn_event cairn_event;
/* A value that was read: what JavaScript has, or had, or stored. NULL is `undefined`. */
typedef struct cairn_value cairn_value;
/* A value that is being built. */
typedef struct cairn_builder cairn_builder;
/* A prepared SQL statement. */
typedef struct cairn_statement cairn_statement;

/* A WebSocket of an object. It is the same one as long as the connection lasts, whether the object
 * is in memory or not; good until socket_close() of the class has returned. */
typedef struct cairn_socket cairn_socket;

/* Something that lives elsewhere and can be called: a function or RpcTarget that JavaScript has
 * given the object, or the stub of an object. */
typedef struct cairn_remote cairn_remote;
/* Bytes that come, or go, piece by piece. */
typedef struct cairn_stream cairn_stream;

/* What functions return. Others may be added; all of them are negative. */
enum {
    CAIRN_OK = 0,
    CAIRN_LATER = 1,      /* of a class: the event will be answered by event_answer(), _fail() */
    CAIRN_ERROR = -1,     /* what error() returns, and failures of no other kind */
    CAIRN_EMISMATCH = -2, /* the value is of another kind, or out of range */
    CAIRN_ELIMIT = -3,    /* larger than a limit */
    CAIRN_ESQL = -4,      /* an SQL statement failed */
    CAIRN_ECLOSED = -5,   /* the object was reset: it has no storage any more */
    CAIRN_EMISUSE = -6    /* the function was called in a way that its text forbids */
};

/* Kinds of values. Later versions may add some. */
enum cairn_kind {
    CAIRN_UNDEFINED,
    CAIRN_NULL,
    CAIRN_BOOL,
    CAIRN_NUMBER, /* a double, as in JavaScript */
    CAIRN_BIGINT,
    CAIRN_TEXT,
    CAIRN_BYTES, /* an ArrayBuffer, or any view of one: Uint8Array, DataView, ... */
    CAIRN_DATE,  /* milliseconds since 1970, by value_number() */
    CAIRN_ARRAY,
    CAIRN_OBJECT, /* names and values */
    CAIRN_MAP,
    CAIRN_SET,
    CAIRN_REGEXP, /* has "source" and "flags" */
    CAIRN_FAULT,  /* an Error or DOMException: has "name", "message", perhaps "stack", and others */
    CAIRN_OTHER,  /* what C cannot read: WritableStreams, signals, requests, blobs, keys, ... */
    CAIRN_FUNCTION, /* a function or an RpcTarget: remote_keep() */
    CAIRN_STREAM,   /* a ReadableStream: stream_open() */
    CAIRN_STUB      /* the stub of an object: remote_keep() */
};

enum cairn_level { CAIRN_DEBUG, CAIRN_INFO, CAIRN_WARN, CAIRN_FAILURE };

/* How something has ended that was started; good until the function that gets it returns. */
struct cairn_reply {
    size_t size;              /* of this struct, as the server has it */
    const char *error;        /* NULL: well; else the sentence */
    const cairn_value *value; /* the result; of a call that failed, what was thrown, or NULL */
    int retryable;            /* the object was not reached, or was reset: trying again may help */
    int overloaded;           /* a bound was reached */
    cairn_stream *stream; /* of a response, or an object of R2, that was asked for with `streamed`:
                             its body, which is the object's from now on (stream_end()); else NULL */
    cairn_socket *socket; /* NULL: for later versions */
};
typedef void (*cairn_done)(cairn_object *object, void *instance, const struct cairn_reply *reply,
                           void *data);
typedef void (*cairn_fired)(cairn_object *object, void *instance, void *data);

/* Which pairs kv_list() gives. All zero (size set): all of them. */
struct cairn_range {
    size_t size;        /* sizeof(struct cairn_range) */
    const char *prefix; /* NULL: any */
    const char *start;  /* NULL: from the first */
    const char *end;    /* NULL: to the last; this one itself is left out */
    int start_after;    /* leave `start` itself out */
    int reverse;
    int64_t limit; /* 0: none */
};

/* What fetch() does when it is redirected; as in JavaScript. */
enum cairn_redirect {
    /* Goes there, 20 times at most. A POST becomes a GET by 301 and 302, everything but GET and
     * HEAD by 303; authorization, proxy-authorization and cookie are not sent to another origin. A
     * body that is a stream cannot be sent again: an error. */
    CAIRN_REDIRECT_FOLLOW,
    CAIRN_REDIRECT_MANUAL, /* tells of the redirect as of any response */
    CAIRN_REDIRECT_ERROR   /* fails */
};

/* A request that code in C makes. What it points to is copied. */
struct cairn_request {
    size_t size;                /* sizeof(struct cairn_request) */
    const char *url;            /* "https://example.com/path" */
    const char *method;         /* NULL: GET */
    const char *const *headers; /* name, value, name, value, ..., NULL; NULL: none; 256 at most */
    const void *body;           /* NULL: none */
    size_t body_size;
    size_t response_max; /* bytes of the response's body; 0, or more than that: 16 MiB */
    int64_t timeout;     /* of fetch(), milliseconds for all of it; 0: those of fetch() apply */
    /* Instead of `body`, a stream that stream_new() has made; NULL: none. The server may have gone
     * before all of it was sent: stream_write() says so. fetch() says its length to the server if
     * there is a header content-length. */
    cairn_stream *stream;
    /* Of fetch(): what becomes of a redirect, an enum cairn_redirect. */
    int redirect;
    /* Not 0: the reply is told when the head is there, and its `stream` is the body, of any size.
     */
    int streamed;
};

/* A message of a queue. */
struct cairn_message {
    size_t size;             /* sizeof(struct cairn_message) */
    const char *id;          /* the same each time it comes */
    int64_t sent;            /* milliseconds since 1970 */
    unsigned attempts;       /* how often it has come, with this time */
    const cairn_value *body; /* NULL: it cannot be read, or is `undefined` */
    const void *bytes;       /* the body as it was sent: JSON, a text, bytes */
    size_t byte_count;
};
#define CAIRN_ALL ((size_t)-1)

/* A class. Every function may be NULL. `instance` is what create() has made.
 *
 * The functions return CAIRN_OK: the event is over, and its answer is what was built; CAIRN_LATER:
 * it will be answered later; or a negative number: it has failed with the object's last error. */
struct cairn_class {
    const char *name; /* the part of class_name behind the colon */

    /* The object has come into memory, for its first event. The others wait until it returns.
     * Negative: those fail, and the next one tries again. CAIRN_LATER is not allowed. */
    int (*create)(cairn_object *object, void **instance);
    /* It leaves memory: nobody needed it for a while, it was reset, its code was replaced, or the
     * server ends. Storage cannot be used any more, events that were not answered have failed. Also
     * called if create() has failed. A server that is killed calls nothing. */
    void (*destroy)(cairn_object *object, void *instance);
    /* stub.METHOD(...arguments) in JavaScript: event_method(), event_arguments(),
     * event_result(). */
    int (*call)(cairn_object *object, void *instance, cairn_event *event);
    /* stub.fetch(): request_...(), response_...(). Called when all of the body is there. */
    int (*fetch)(cairn_object *object, void *instance, cairn_event *event);
    /* The time of alarm_set() has come: alarm_...(). Negative: it is tried again after 2 s, 4 s,
     * ... up to six times. */
    int (*alarm)(cairn_object *object, void *instance, cairn_event *event);
    /* A WebSocket that was accepted by socket_accept() has something to say: a message (a text is
     * UTF-8), its end, or what went wrong, after which the end follows. The object need not have
     * been in memory before. Events of one socket come in order. CAIRN_LATER is not allowed; an
     * error is logged, and the socket stays open. */
    int (*socket_message)(cairn_object *object, void *instance, cairn_socket *socket, int is_text,
                          const void *bytes, size_t size);
    int (*socket_close)(cairn_object *object, void *instance, cairn_socket *socket, int code,
                        const char *reason, int is_clean);
    int (*socket_error)(cairn_object *object, void *instance, cairn_socket *socket,
                        const char *error);
    /* Of a worker (WORKERS, above): a cron trigger is due: scheduled_...(). */
    int (*scheduled)(cairn_object *object, void *instance, cairn_event *event);
    /* Of a worker: a batch of messages of a queue: queue_...(). Those that it says nothing about
     * are acknowledged when it ends well, and come again when it fails. */
    int (*queue)(cairn_object *object, void *instance, cairn_event *event);
    /* The same as fetch(), but called when the head is there: the body, of any size, is read by
     * request_stream(). A class that has it needs no fetch(). Of a worker too: a client that goes
     * ends what is read with an error, and is told to the writer of a stream as a reader that has
     * given up. */
    int (*fetch_stream)(cairn_object *object, void *instance, cairn_event *event);
};

/* What the server gives a module. */
struct cairn_api {
    size_t size;         /* of this struct, as the server has it */
    const char *version; /* of the server: "0.1.0" */

    /* ---- the object ----
     *
     * Thread: the object's, but for now() and log(). Owned: texts are the server's; an id and a
     * name are good as long as the object, the error's until the next one. Errors: MISUSE alone. */

    /* Its id: 64 hexadecimal digits. Good as long as the object. */
    const char *(*object_id)(cairn_object *object);
    /* The name that its id was made from, or NULL: it has none, or it is not known. */
    const char *(*object_name)(cairn_object *object);
    /* Milliseconds since 1970. Any thread; `object` may be NULL. */
    int64_t (*now)(cairn_object *object);
    /* A line of the server's log, with the names of worker, class and object. Any thread may log
     * with `object` NULL. Longer lines than 8 kB are cut. */
    void (*log)(cairn_object *object, enum cairn_level level, const char *format, ...)
#ifdef __GNUC__
        __attribute__((format(printf, 3, 4)))
#endif
        ;
    /* Sets the object's last error and returns CAIRN_ERROR, so that a failure is one line. `type`
     * is what the caller gets in JavaScript: "Error", "TypeError", "RangeError", ...; NULL is
     * "Error". */
    int (*error)(cairn_object *object, const char *type, const char *format, ...)
#ifdef __GNUC__
        __attribute__((format(printf, 3, 4)))
#endif
        ;
    /* The last error, "" if there was none since the function of the class began. */
    const char *(*error_text)(cairn_object *object);
    /* Resets the object: what it has written since the function of the class began is undone, all
     * of its events fail with `reason`, it leaves memory, and the next event makes it anew. The
     * function should return at once; what it returns is not used. */
    void (*abort)(cairn_object *object, const char *reason);

    /* ---- events ----
     *
     * Thread: the object's. Owned: the event and all that is read of it are the server's, good
     * until it is answered; what is written is copied. Errors: MISUSE, and what is said. */

    /* Answers an event for which the class has returned CAIRN_LATER: it is gone then. From within
     * a function of the class. One that was answered is not answered again (MISUSE), nor is one
     * that has ended with its object. */
    void (*event_answer)(cairn_event *event);
    /* The same with the object's last error. */
    void (*event_fail)(cairn_event *event);
    /* Of a call: the method's name; "" for other events. */
    const char *(*event_method)(const cairn_event *event);
    /* The arguments: an array. */
    const cairn_value *(*event_arguments)(const cairn_event *event);
    /* Where the result is built; nothing built is `undefined`. */
    cairn_builder *(*event_result)(cairn_event *event);

    /* Of a request. Texts are UTF-8. */
    const char *(*request_method)(const cairn_event *event);
    const char *(*request_url)(const cairn_event *event);
    /* A header by its name in any case, or NULL. */
    const char *(*request_header)(const cairn_event *event, const char *name);
    size_t (*request_header_count)(const cairn_event *event);
    /* The header with this number: its name in lower case; `value` may be NULL. */
    const char *(*request_header_at)(const cairn_event *event, size_t index, const char **value);
    /* The whole body, NULL if there is none. A body has 16 MiB at most; a longer one is refused
     * before the object hears of it. In fetch_stream() there is none: request_stream(). */
    const void *(*request_body)(const cairn_event *event, size_t *size);
    /* 200 to 599; 200 if it is never called. */
    int (*response_status)(cairn_event *event, int status);
    /* Adds a header. CAIRN_EMISMATCH: HTTP allows no such name or value. */
    int (*response_header)(cairn_event *event, const char *name, const char *value);
    /* Adds to the body: 16 MiB at most (CAIRN_ELIMIT). */
    int (*response_write)(cairn_event *event, const void *bytes, size_t size);

    /* Of an alarm: when it was due, and how often it has failed. */
    int64_t (*alarm_scheduled)(const cairn_event *event);
    unsigned (*alarm_retries)(const cairn_event *event);

    /* ---- reading values: any thread ----
     *
     * Thread: any, several at once too. Owned: by what the value was read from (OWNERSHIP). Errors:
     * none; nothing is there, or CAIRN_EMISMATCH. */

    /* Every function takes NULL and values of other kinds, and then says that there is nothing. A
     * value that was given holds no value that contains itself, and 1,048,576 values at most:
     * others are refused before the class sees them. */
    enum cairn_kind (*value_kind)(const cairn_value *value);
    /* 1: the value is `true`. */
    int (*value_bool)(const cairn_value *value);
    /* A number without fraction up to 2^53 - 1, or a BigInt of 64 bits; CAIRN_EMISMATCH otherwise,
     * and *number stays as it was. */
    int (*value_int)(const cairn_value *value, int64_t *number);
    /* A number or a date. */
    int (*value_number)(const cairn_value *value, double *number);
    /* UTF-8, with a NUL behind it; a half of a surrogate pair becomes U+FFFD. `size` may be NULL;
     * NULL unless it is a text. */
    const char *(*value_text)(const cairn_value *value, size_t *size);
    /* Of CAIRN_BYTES; and of a BigInt its absolute value, the lowest byte first. */
    const void *(*value_bytes)(const cairn_value *value, size_t *size);
    /* How many elements, or pairs, it has. */
    size_t (*value_count)(const cairn_value *value);
    /* The element, or the value of the pair, with this number; NULL beyond the last. */
    const cairn_value *(*value_at)(const cairn_value *value, size_t index);
    /* The key of a pair. */
    const cairn_value *(*value_key)(const cairn_value *value, size_t index);
    /* The value of this name in an object, a map, an error, a regular expression; NULL: none. */
    const cairn_value *(*value_get)(const cairn_value *value, const char *name);

    /* ---- building values ----
     *
     * Thread: the object's. Owned: a builder is the server's; what is built is copied. Errors: none
     * at once; a mistake is told by what uses the builder. */

    /* A builder for kv_put(); good until the function of the class returns. Values are added one
     * after the other; a builder takes one, which may be an array, object or map with others in it:
     *
     *     build_object(b);                         { id: 1, tags: ["a", "b"] }
     *     build_name(b, "id");   build_int(b, 1);
     *     build_name(b, "tags"); build_array(b);
     *     build_text(b, "a", 1); build_text(b, "b", 1);
     *     build_end(b);
     *     build_end(b);
     *
     * A mistake (a name in an array, a second value, something left open) or more than 32 MiB is
     * noted, and what uses the builder says so. */
    cairn_builder *(*builder)(cairn_object *object);
    void (*build_undefined)(cairn_builder *builder);
    void (*build_null)(cairn_builder *builder);
    void (*build_bool)(cairn_builder *builder, int value);
    /* A number; a mistake beyond 2^53 - 1, where JavaScript has no such number. */
    void (*build_int)(cairn_builder *builder, int64_t value);
    void (*build_number)(cairn_builder *builder, double value);
    void (*build_bigint)(cairn_builder *builder, int64_t value);
    /* UTF-8; what is not becomes U+FFFD. */
    void (*build_text)(cairn_builder *builder, const char *text, size_t size);
    /* A Uint8Array. */
    void (*build_bytes)(cairn_builder *builder, const void *bytes, size_t size);
    /* A Date: milliseconds since 1970. */
    void (*build_date)(cairn_builder *builder, double time);
    void (*build_array)(cairn_builder *builder);
    void (*build_object)(cairn_builder *builder);
    /* The keys and values of a map come in turn. */
    void (*build_map)(cairn_builder *builder);
    /* In an object: the name of the value that follows. */
    void (*build_name)(cairn_builder *builder, const char *name);
    /* Ends the innermost array, object or map. */
    void (*build_end)(cairn_builder *builder);
    /* A copy of a value that was read: any view of bytes becomes a Uint8Array, and holes of arrays
     * `undefined`. CAIRN_OTHER, functions, stubs, streams, regular expressions, errors, sets and
     * BigInts of more than 64 bits cannot be copied: a mistake. */
    void (*build_value)(cairn_builder *builder, const cairn_value *value);

    /* ---- storage: key-value, the same pairs as ctx.storage.kv of JavaScript ----
     *
     * Thread: the object's, within its functions. Owned: values are the server's, good until the
     * function of the class returns. Errors: CAIRN_ELIMIT, CAIRN_ECLOSED, CAIRN_ERROR (a disk that
     * fails, a value that was not built right). */

    /* The value, or NULL: there is none, or it cannot be read (error_text() is not "" then). */
    const cairn_value *(*kv_get)(cairn_object *object, const char *key);
    /* Keys have 2,048 bytes at most, key and value together 2 MiB. The builder is empty again. */
    int (*kv_put)(cairn_object *object, const char *key, cairn_builder *value);
    /* 1: it was there; 0: it was not. */
    int (*kv_delete)(cairn_object *object, const char *key);
    /* Calls `each` for the pairs in the order of their keys, until it returns nonzero, which is
     * then returned; else 0. `range` may be NULL. `each` may use storage. The value is good until
     * the function of the class returns, the key until `each` does. */
    int (*kv_list)(cairn_object *object, const struct cairn_range *range,
                   int (*each)(void *data, const char *key, const cairn_value *value), void *data);
    /* Deletes everything: tables, pairs and the alarm. Refused inside a transaction. */
    int (*delete_all)(cairn_object *object);

    /* ---- storage: SQL ----
     *
     * Thread: the object's, within its functions. Owned: a statement is the object's until
     * sql_finalize(); what is bound is copied. Errors: CAIRN_ESQL with SQLite's sentence,
     * CAIRN_ELIMIT, CAIRN_ECLOSED, CAIRN_ERROR. */

    /* Runs one or more statements that have no parameters, and drops their rows. */
    int (*sql_exec)(cairn_object *object, const char *sql);
    /* Prepares one statement. It is the object's: it may be kept for as long as the object lives,
     * and ends with it, or by sql_finalize(). What SQL may do is what JavaScript's may
     * (docs/reference/durable-objects.md). NULL: error_text() says why. */
    cairn_statement *(*sql_prepare)(cairn_object *object, const char *sql);
    void (*sql_finalize)(cairn_statement *statement);
    /* Parameters count from 1. What was bound stays bound until it is bound anew. */
    int (*sql_bind_null)(cairn_statement *statement, int index);
    int (*sql_bind_int)(cairn_statement *statement, int index, int64_t value);
    int (*sql_bind_real)(cairn_statement *statement, int index, double value);
    int (*sql_bind_text)(cairn_statement *statement, int index, const char *text, size_t size);
    int (*sql_bind_blob)(cairn_statement *statement, int index, const void *bytes, size_t size);
    /* 1: a row; 0: done, and the statement is ready to run again. A statement with rows left is to
     * be reset before the function of the class returns; otherwise that is done then. A statement
     * that has run for 30 s ends, and resets the object. */
    int (*sql_step)(cairn_statement *statement);
    void (*sql_reset)(cairn_statement *statement);
    /* Of the row. Columns count from 0. Texts and bytes are good until the next step or reset. */
    int (*sql_column_count)(cairn_statement *statement);
    const char *(*sql_column_name)(cairn_statement *statement, int column);
    /* CAIRN_NULL, CAIRN_NUMBER (an integer or a real), CAIRN_TEXT or CAIRN_BYTES. */
    enum cairn_kind (*sql_column_kind)(cairn_statement *statement, int column);
    int64_t (*sql_column_int)(cairn_statement *statement, int column);
    double (*sql_column_real)(cairn_statement *statement, int column);
    /* NULL for an SQL NULL; `size` may be NULL. */
    const char *(*sql_column_text)(cairn_statement *statement, int column, size_t *size);
    const void *(*sql_column_blob)(cairn_statement *statement, int column, size_t *size);
    /* Rows changed by the last INSERT, UPDATE or DELETE; the rowid of the last INSERT. */
    int64_t (*sql_changes)(cairn_object *object);
    int64_t (*sql_last_rowid)(cairn_object *object);
    /* Bytes of the database. */
    int64_t (*database_size)(cairn_object *object);

    /* ---- transactions and alarms ----
     *
     * Thread: the object's, within its functions. Owned: nothing. Errors: CAIRN_EMISUSE (no
     * transaction is open), CAIRN_ELIMIT, CAIRN_ECLOSED, CAIRN_ERROR. */

    /* What is written until the end can be undone. They nest, 60 deep. One that is open when the
     * function of the class returns is undone, and the event fails. */
    int (*transaction_begin)(cairn_object *object);
    int (*transaction_commit)(cairn_object *object);
    int (*transaction_rollback)(cairn_object *object);
    /* The object's one alarm: milliseconds since 1970; *time is -1 if there is none. */
    int (*alarm_get)(cairn_object *object, int64_t *time);
    /* A time that is past means at once. */
    int (*alarm_set)(cairn_object *object, int64_t time);
    int (*alarm_delete)(cairn_object *object);

    /* ---- what ends later ----
     *
     * Calls, timers and questions to history go on while the function of the class returns. Their
     * own function runs afterwards, in a turn of the object like any other; it is not called if the
     * object has left memory, and none is called from inside the function that started something.
     * An event that waits for one returns CAIRN_LATER. Of calls and restore() the function may be
     * NULL: nobody is told. An object has 10,000 under way at most (CAIRN_ELIMIT); while it has any
     * it stays in memory, for 70 s after its last event.
     *
     * Thread: the object's, and so are the functions that are called. Owned: `data` is the
     * module's, and nobody frees it if the function is never called: destroy() is the place.
     * Errors: what is returned is about starting (CAIRN_EMISUSE, CAIRN_EMISMATCH, CAIRN_ELIMIT,
     * CAIRN_ECLOSED), and then the function is not called; all else is the reply's. */

    /* The text of a variable or secret of the project; NULL: there is none. */
    const char *(*env)(cairn_object *object, const char *name);
    /* Calls a method of the object with this name in the class of a Durable Object binding of the
     * project, written in C or in JavaScript. `arguments` is an array, or NULL for none, and empty
     * again. The call leaves when what the object has written so far is on disk. */
    int (*object_call)(cairn_object *object, const char *binding, const char *name,
                       const char *method, cairn_builder *arguments, cairn_done done, void *data);
    /* The same by id: 64 hexadecimal digits. */
    int (*object_call_id)(cairn_object *object, const char *binding, const char *id,
                          const char *method, cairn_builder *arguments, cairn_done done,
                          void *data);
    /* Calls `fired`, which is there, once after so many milliseconds. Returns a number for
     * timer_stop(), or negative. Timers do not survive the object: alarm_set() does. */
    int64_t (*timer_start)(cairn_object *object, int64_t delay, cairn_fired fired, void *data);
    /* 1: it will not fire any more; 0: there was none. */
    int (*timer_stop)(cairn_object *object, int64_t timer);
    /* A bookmark of the object's data as the function that runs leaves it; of a moment within the
     * time that history is kept. The reply's value is the bookmark, a text. */
    int (*bookmark_now)(cairn_object *object, cairn_done done, void *data);
    int (*bookmark_at)(cairn_object *object, int64_t time, cairn_done done, void *data);
    /* When the object next comes into memory, its data and its alarm are as they were at the
     * bookmark; abort() makes that soon. The reply's value is a bookmark that undoes this. */
    int (*restore)(cairn_object *object, const char *bookmark, cairn_done done, void *data);
    /* From now on no event comes to the object; what is under way goes on and has its functions
     * called. As often as it was blocked it has to be unblocked; after 30 s the object is reset. */
    int (*block_concurrency)(cairn_object *object);
    int (*unblock_concurrency)(cairn_object *object);

    /* ---- WebSockets ----
     *
     * They hibernate: a socket does not keep its object in memory. When nothing else does, the
     * object goes, and the next message brings it back; what it wants to remember of a socket is in
     * tags and the attachment. What is sent leaves when what the object has written so far is on
     * disk.
     *
     * Thread: the object's, within its functions. Owned: a socket is the server's, tags too, an
     * attachment is good until the function of the class returns; what is sent is copied. Errors:
     * CAIRN_EMISUSE (a worker, a socket that is gone), CAIRN_EMISMATCH, CAIRN_ELIMIT,
     * CAIRN_ECLOSED. */

    /* Accepts the WebSocket that a request asks for ("Upgrade: websocket"): its answer becomes 101.
     * `tags` are 10 at most, of 256 bytes, by which sockets are found. NULL: error_text(). */
    cairn_socket *(*socket_accept)(cairn_event *event, const char *const tags[], size_t tag_count);
    /* 1: it is on its way; 0: the socket is closed. A text must be UTF-8 (CAIRN_EMISMATCH). */
    int (*socket_send)(cairn_object *object, cairn_socket *socket, int is_text, const void *bytes,
                       size_t size);
    /* The same to all sockets, or all with a tag unless it is NULL; returns to how many. */
    int64_t (*socket_broadcast)(cairn_object *object, const char *tag, int is_text,
                                const void *bytes, size_t size);
    /* Closes it with 1000 or 3000 to 4999, and a reason of 123 bytes at most. 0: it was. */
    int (*socket_end)(cairn_object *object, cairn_socket *socket, int code, const char *reason);
    /* Calls `each` for the sockets, or those with a tag, oldest first, until it returns nonzero,
     * which is then returned; else 0. */
    int (*socket_list)(cairn_object *object, const char *tag,
                       int (*each)(void *data, cairn_socket *socket), void *data);
    size_t (*socket_count)(cairn_object *object, const char *tag);
    /* A tag of a socket by its number, not ended by a NUL; NULL beyond the last. */
    const char *(*socket_tag)(cairn_object *object, cairn_socket *socket, size_t index,
                              size_t *size);
    /* A value that stays with the socket: 16,384 bytes at most. The builder is empty again. */
    int (*socket_attach)(cairn_object *object, cairn_socket *socket, cairn_builder *value);
    /* NULL: there is none. */
    const cairn_value *(*socket_attachment)(cairn_object *object, cairn_socket *socket);
    /* A text message that is answered with another without waking the object; NULL: none. */
    int (*socket_auto_response)(cairn_object *object, const char *request, const char *response);

    /* ---- JSON ----
     *
     * Thread: the object's. Owned: by the server, until the function of the class returns. Errors:
     * NULL, and error_text(). */

    /* The value of a JSON text; NULL: it is none, and error_text() says why. 64 deep at most. */
    const cairn_value *(*json_read)(cairn_object *object, const char *text, size_t size);
    /* What was built as JSON, with a NUL behind it, good until the function of the class returns;
     * the builder is empty again. As in JavaScript, `undefined` in an object is left out and
     * numbers that JSON has not are null. NULL: a mistake, or a value that JSON has not (bytes,
     * dates, maps). `size` may be NULL. */
    const char *(*json_write)(cairn_object *object, cairn_builder *value, size_t *size);

    /* ---- events of workers ----
     *
     * Thread: the worker's. Owned: as with other events. Errors: CAIRN_EMISMATCH, CAIRN_ELIMIT. */

    /* Of scheduled(): when it was due (milliseconds since 1970), and the cron expression as it is
     * configured; 0 and "" of other events. */
    int64_t (*scheduled_time)(const cairn_event *event);
    const char *(*scheduled_cron)(const cairn_event *event);
    /* Of queue(): the queue's name ("" of other events), and how many messages the batch has. */
    const char *(*queue_name)(const cairn_event *event);
    size_t (*queue_count)(const cairn_event *event);
    /* One of them; message->size is set by the caller. CAIRN_EMISMATCH: there is no such one. What
     * it points to is good until the event is answered. */
    int (*queue_message)(cairn_event *event, size_t index, struct cairn_message *message);
    /* What becomes of a message, or of all that nothing was said about (CAIRN_ALL). Of what is said
     * twice about one the first counts. `delay` is in seconds, up to 86,400; negative: the queue's
     * own. */
    int (*queue_ack)(cairn_event *event, size_t index);
    int (*queue_retry)(cairn_event *event, size_t index, int64_t delay);

    /* ---- services: for objects and workers ----
     *
     * They end later (above). What an object asks for leaves when what it has written so far is on
     * disk; what was asked is not undone if the object goes meanwhile.
     *
     * Thread, ownership and errors as of all that ends later. */

    /* Calls a method of a binding of the project, with an array of arguments, or NULL for none; the
     * builder is empty again. The reply's value is the result. Methods, arguments, results, limits
     * and sentences are those of JavaScript, but for what is said here:
     *
     *     KV          get(key, type), getWithMetadata(key, type), put(key, value, options),
     *                 delete(key), list(options); types are "text", "json" and "arrayBuffer"
     *     D1          all(sql, ...values), first(sql, ...values), run(sql, ...values),
     *                 batch([[sql, ...values], ...]), exec(sql): one transaction each
     *     R2          head(key), get(key, options), put(key, value, options), delete(key or keys),
     *                 list(options); a get's `body` is bytes, 16 MiB at most, of a longer object a
     *                 `range`, or, with the option `streamed: true`, the reply's stream, of any
     *                 size; a put takes 16 MiB at most, or a stream of any size (build_stream()),
     *                 which is stored when it has ended well; of conditions etagMatches and
     *                 etagDoesNotMatch
     *     queues      send(body, options), sendBatch(messages, options), metrics()
     *     Analytics   writeDataPoint(point)
     *     services    any method of the other worker
     *
     * Bindings of other kinds are for JavaScript: rate limits (an object that counts, as
     * examples/c/limiter.c, does the same), sending email, AI, Hyperdrive, assets, browsers.
     *
     * CAIRN_EMISUSE: there is no such binding, or it has no such method for C. Arguments that a
     * service refuses are told by what is returned, all else by the reply. */
    int (*service_call)(cairn_object *object, const char *binding, const char *method,
                        cairn_builder *arguments, cairn_done done, void *data);

    /* ---- asking for responses: for objects and workers ----
     *
     * They end later (above). The reply's value is { status, headers: [[name, value], ...], body },
     * the names in lower case, the body bytes, or null if there is none; of fetch() also `url`,
     * where the response is from, and `redirected`. With `streamed` the body is the reply's stream.
     * Without, a response is whole before it is told, but for one that a worker or an object has
     * sent as a stream: then the body is a stream (stream_open()). A response that is a WebSocket
     * has the status 101; response_from() passes it on. fetch() follows redirects as the request
     * says, the other two tell of them.
     *
     * Thread, ownership and errors as of all that ends later. */

    /* Of the world, by HTTP or HTTPS. As for fetch() in JavaScript the configuration says which
     * addresses are reached; content codings are decoded. The connection writes these headers
     * itself: host, transfer-encoding, connection, keep-alive, upgrade. */
    int (*fetch)(cairn_object *object, const struct cairn_request *request, cairn_done done,
                 void *data);
    /* Of another worker, by a service binding. */
    int (*service_fetch)(cairn_object *object, const char *binding,
                         const struct cairn_request *request, cairn_done done, void *data);
    /* Of the object with this name, by a Durable Object binding. */
    int (*object_fetch)(cairn_object *object, const char *binding, const char *name,
                        const struct cairn_request *request, cairn_done done, void *data);
    /* The first header with this name, in any case, of such a value; NULL: there is none. Any
     * thread. */
    const char *(*response_find)(const cairn_value *response, const char *name);

    /* ---- metrics ----
     *
     * Thread: the object's; counters are the server's, and shared. Owned: the name is copied.
     * Errors: those that are said. */

    /* Adds to a counter of the worker, which the server's metrics show as
     * cairn_module_count_total{worker,name}; the first time makes it. Reloads keep it. The name has
     * 1 to 64 letters, digits and _ . : - (CAIRN_EMISMATCH); a server has 1,000 such counters
     * (CAIRN_ELIMIT). */
    int (*count)(cairn_object *object, const char *name, uint64_t amount);

    /* ---- functions and stubs ----
     *
     * Arguments and results may have functions, RpcTargets and stubs in them. Those among arguments
     * are the caller's, and good until the event is answered, unless they are kept.
     *
     * Thread: the object's. Owned: a remote is the object's until remote_release(). Errors:
     * CAIRN_EMISMATCH, CAIRN_ELIMIT; of calls as of all that ends later. */

    /* Keeps what a value of the kind CAIRN_FUNCTION or CAIRN_STUB stands for until it is released
     * or the object leaves memory; an object keeps 10,000 at most. NULL: error_text(). */
    cairn_remote *(*remote_keep)(cairn_object *object, const cairn_value *value);
    void (*remote_release)(cairn_remote *remote);
    /* Calls the function, or a method of it (a path: "a.b"); of a function itself `method` is NULL.
     * Otherwise as object_call(). */
    int (*remote_call)(cairn_remote *remote, const char *method, cairn_builder *arguments,
                       cairn_done done, void *data);
    /* The same to whoever gets what is built. */
    void (*build_remote)(cairn_builder *builder, cairn_remote *remote);
    /* A stub of the object with this name in the class of a binding; `name` NULL: of the object
     * itself. A mistake if there is no such binding. */
    void (*build_stub)(cairn_builder *builder, cairn_object *object, const char *binding,
                       const char *name);

    /* ---- streams ----
     *
     * A stream is read, or written, by the object. Either way it is the object's until stream_end()
     * or stream_fail(), which is called once, whatever has happened to the other side; it goes with
     * the object. An object has 1,000 at most, a worker 20,000 on each lane. When the other side is
     * a client or a server, the connection is held back in the same way. What is not read is not
     * received, and a client that does not read stops the writer.
     *
     * Thread: the object's. Owned: the stream as is said; a piece that was read, by the reply; what
     * is written is copied. Errors: CAIRN_EMISUSE (one that is read is written, a second read),
     * CAIRN_ELIMIT, CAIRN_ECLOSED; of reads, the reply's. */

    /* Reads a ReadableStream, or bytes or a text as if they were one. NULL: error_text(). */
    cairn_stream *(*stream_open)(cairn_object *object, const cairn_value *value);
    /* The body of a request, once; there always is one, perhaps with nothing in it. */
    cairn_stream *(*request_stream)(cairn_event *event);
    /* Asks for the next piece: one read at a time. The reply's value is bytes, and NULL at the end.
     * Nothing is sent that was not asked for, but for what is on its way. A read that is under way
     * at stream_end() is not told. */
    int (*stream_read)(cairn_stream *stream, cairn_done done, void *data);
    /* A stream for others to read: response_stream(), build_stream(). `wanted` (may be NULL) is
     * called when the reader asks and nothing is there for it, and when it has given up. */
    cairn_stream *(*stream_new)(cairn_object *object, cairn_fired wanted, void *data);
    /* The body of the response, in place of response_write(). */
    int (*response_stream)(cairn_event *event, cairn_stream *stream);
    /* A ReadableStream in an argument or a result, once. */
    void (*build_stream)(cairn_builder *builder, cairn_stream *stream);
    /* 1: more may come; 0: 64 KiB or more are waiting to be read, and the writer should wait for
     * `wanted`; CAIRN_ELIMIT: 16 MiB would be; CAIRN_ECLOSED: the reader has given up. */
    int (*stream_write)(cairn_stream *stream, const void *bytes, size_t size);
    /* A written stream ends, and what is waiting is still read; a read one is given up. */
    void (*stream_end)(cairn_stream *stream);
    /* The same with an error for the other side. */
    void (*stream_fail)(cairn_stream *stream, const char *reason);

    /* ---- passing on ----
     *
     * Thread: the object's. Owned: what is passed on is the server's: the module's handle is good
     * for nothing more, but that the stream that is written may still be given away once. Errors:
     * CAIRN_EMISUSE, CAIRN_EMISMATCH, CAIRN_ELIMIT. */

    /* Writes all that is read of one stream, of which no read is under way, into another, as fast
     * as that one's reader takes it. Both are the server's from then on, and end together. */
    int (*stream_pipe)(cairn_stream *from, cairn_stream *to);
    /* The answer becomes this response, a reply's value: status, headers, the body (with `streamed`
     * the reply's stream, else `stream` is NULL), or the WebSocket that it has for the client.
     * Before or after it more headers can be added. CAIRN_EMISMATCH: it is no response. */
    int (*response_from)(cairn_event *event, const cairn_value *response, cairn_stream *stream);
    /* The object with this name in the class of a binding answers in place of the event's own. It
     * gets the request as it came, its body as a stream if it is one. Its response is passed on, as
     * `return stub.fetch(request)` does. If that is a WebSocket, the client talks to the object
     * from then on, and the object may hibernate. Returns CAIRN_LATER, for the function of the
     * class to return: the event is not to be touched any more. Negative: it still is. */
    int (*object_forward)(cairn_event *event, const char *binding, const char *name);
    /* The same of another worker, by a service binding. */
    int (*service_forward)(cairn_event *event, const char *binding);
};

/* What a module gives the server. */
struct cairn_module {
    uint32_t abi;        /* CAIRN_ABI */
    uint32_t api_size;   /* sizeof(struct cairn_api): what it was compiled with */
    uint32_t class_size; /* sizeof(struct cairn_class) */
    uint32_t class_count;
    const struct cairn_class *classes;
};

/* The one symbol that a module exports. Called once, on any thread, when the module is loaded; NULL
 * refuses. CAIRN_MODULE() defines it. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const struct cairn_module *
cairn_module_open(const struct cairn_api *api);

/* The server, for all files of a module. */
#ifdef __GNUC__
__attribute__((visibility("hidden")))
#endif
extern const struct cairn_api *cairn;

/* Once in a module, at the end of a file: defines `cairn` and cairn_module_open(). */
#define CAIRN_MODULE(classes)                                                          \
    const struct cairn_api *cairn;                                                     \
    static const struct cairn_module cairn_this_module = {                             \
        CAIRN_ABI, (uint32_t)sizeof(struct cairn_api), (uint32_t)sizeof((classes)[0]), \
        (uint32_t)(sizeof(classes) / sizeof((classes)[0])), classes};                  \
    const struct cairn_module *cairn_module_open(const struct cairn_api *api)          \
    {                                                                                  \
        cairn = api;                                                                   \
        return &cairn_this_module;                                                     \
    }

#ifdef __cplusplus
}
#endif
#endif
