/* SPDX-License-Identifier: Apache-2.0 */
/* admin/handler.h - routes of the control API, and what their handlers share.
 *
 * Services have their routes in their folders (service/def.h). A handler gets a call whose path
 * fits its route and answers it, or returns a negative code with a sentence, from which control.c
 * makes the answer; it must not have written anything then.
 *
 * H1  What a call holds is in the account of memory (base/account.h) before it is held, whoever
 *     asked, and has a bound: more is a 413 or goes out as it is read, and what the account
 *     refuses a 503. */
#ifndef CN_ADMIN_HANDLER_H
#define CN_ADMIN_HANDLER_H
#include "admin/control.h"
#include "store/bookmark.h"

struct cn_catalog_entry;
struct cn_database;
struct cn_namespace;
struct cn_object;
struct cn_service_call;

/* A path is a pattern (target.h). Each is described in an openapi.json, with the scopes that its
 * caller needs; a test compares that with the tables. */
enum cn_control_route_flags {
    CN_ROUTE_RAW = 1,  /* its body is no JSON, and is read by the handler */
    CN_ROUTE_BARE = 2, /* it needs no store */
};
/* And who may: tokens with one of these scopes (enum cn_scope); nothing: the operator alone. */
#define CN_ROUTE_FOR(scopes) ((unsigned)(scopes) << 8)
struct cn_control_route {
    const char *method; /* NULL ends a table */
    const char *path[CN_CONTROL_PATH_MAX];
    int (*run)(struct cn_control_call *call, struct cn_err *err);
    unsigned flags;
};
struct cn_control_routes {
    const struct cn_control_route *items;
};
/* Those of no service. */
extern const struct cn_control_route cn_control_own_routes[];

/* The answer 200 with this JSON; the buffer is emptied. */
int cn_control_answer(struct cn_control_call *call, struct cn_buf *json);
/* The same in the form of the hosted platform's API: {"success":true,...,"result":RESULT}. */
int cn_control_result(struct cn_control_call *call, struct cn_buf *result);

/* H1: the call holds so many bytes more, until its end: of a body, of what others have answered, of
 * its own answer. They are in the account before; negative if it refuses them. */
int cn_control_take(struct cn_control_call *call, size_t bytes, struct cn_err *err);
/* Writes a text as a JSON string, in pieces: escaped, it may be six times as long. */
int cn_control_write_json(struct cn_control_call *call, const char *text, size_t size);

/* Reads the body of a raw route into call->body. */
int cn_control_read_body(struct cn_control_call *call, size_t size_max, struct cn_err *err);
/* Whether who asked may still. Asked wherever something happens behind a wait: when a body has
 * come, when it is a call's turn at an object, when it is sent to a service or another node, when
 * the state of a depot is replaced, and before anything that was read goes out. */
bool cn_control_is_good(const struct cn_control_call *call);
/* Whether the call changes nothing. */
bool cn_control_is_read(const struct cn_control_call *call);
/* What cn_control_is_good() says, as a code and a sentence. */
int cn_control_check_good(struct cn_control_call *call, struct cn_err *err);
/* Adds a field to the head of the answer; the value has been checked. */
void cn_control_field(struct cn_control_call *call, const char *name, const char *value);

/* A field of the request that says more of its body (CN_CONTROL_SENT), or NULL. */
const char *cn_control_sent(const struct cn_control_call *call, const char *name);
/* A parameter of the query, or NULL. */
const char *cn_control_param(const struct cn_control_call *call, const char *name);
/* One that is a whole number from 0 to `max`; `fallback` if it is not given. */
int cn_control_param_number(const struct cn_control_call *call, const char *name, int64_t max,
                            int64_t fallback, int64_t *value, struct cn_err *err);

/* The namespace with this name. */
int cn_control_namespace(struct cn_control_call *call, const char *name, uint32_t *id,
                         struct cn_err *err);
/* The object that path[index] (namespace) and path[index + 1] (id or name) mean. An id need not be
 * in the catalog: it may be of the past. */
int cn_control_object(struct cn_control_call *call, size_t index, struct cn_object_key *key,
                      struct cn_err *err);

/* Holds the shard of the object for the rest of the call, in call->shard; one call is about objects
 * of one. Release it before what may take as long as a client likes. */
int cn_control_hold(struct cn_control_call *call, const struct cn_object_key *key,
                    struct cn_err *err);
void cn_control_release(struct cn_control_call *call);

/* Runs `fn` on the database of an object, wherever it is at home now (object/access.h); `object` is
 * NULL if it is not in memory. What it wrote is durable when this returns 0. */
typedef int (*cn_control_fn)(struct cn_object *object, struct cn_database *db, void *data,
                             struct cn_err *err);
int cn_control_with_database(struct cn_control_call *call, const struct cn_object_key *key,
                             cn_control_fn fn, void *data, struct cn_err *err);
/* Runs `fn` while nobody has the database open: a live instance ends, and those who call it are
 * told `reason`. */
int cn_control_exclusive(struct cn_control_call *call, const struct cn_object_key *key,
                         const char *reason,
                         int (*fn)(struct cn_control_call *call, const struct cn_object_key *key,
                                   void *data, struct cn_err *err),
                         void *data, struct cn_err *err);

/* Appends a catalog entry as a JSON object. */
void cn_control_append_entry(struct cn_buf *out, const char *namespace_name,
                             const struct cn_catalog_entry *entry);

/* --- services -------------------------------------------------------------------------------- */

/* The namespace "$SERVICE/NAME", which must exist, and the node that answers for it. */
int cn_control_service(struct cn_control_call *call, const char *service, const char *name,
                       struct cn_namespace **ns, struct cn_err *err);
/* Makes it, if it does not exist. */
int cn_control_service_make(struct cn_control_call *call, const char *service, const char *name,
                            struct cn_err *err);
/* Sends a call of a service and waits for its answer. */
int cn_control_ask(struct cn_control_call *call, struct cn_service_call *request,
                   struct cn_err *err);
/* Calls `each` for every namespace "$SERVICE/..." with what follows the slash. */
typedef int (*cn_control_each)(struct cn_control_call *call, uint32_t id, const char *name,
                               void *data, struct cn_err *err);
int cn_control_each_service(struct cn_control_call *call, const char *service, cn_control_each each,
                            void *data, struct cn_err *err);
/* Answers {MEMBER:[{"id",TITLE,"bytes","bindings"},...]} of them; a title is what a binding calls
 * it. */
int cn_control_list_service(struct cn_control_call *call, const char *service, const char *member,
                            const char *title, struct cn_err *err);
/* What is served now, a reference of the caller's, or NULL. */
struct cn_deployment *cn_control_deployment(struct cn_control_call *call);
/* Appends ,"bindings":[{"worker","name"},...] of what is served: who has this namespace. If `title`
 * is not NULL it gets what the first binding calls it, owned; NULL: nothing does. */
void cn_control_append_bindings(struct cn_control_call *call, struct cn_buf *out, uint32_t id,
                                char **title);

/* A cursor is a letter that says of what, and bytes as hexadecimal digits. Appends one as a JSON
 * string. */
void cn_control_append_cursor(struct cn_buf *out, char kind, const void *bytes, size_t size);
/* The parameter `cursor`: its letter, which must be one of `kinds`, and its bytes; 0: not given. */
int cn_control_read_cursor(struct cn_control_call *call, const char *kinds, struct cn_buf *bytes,
                           struct cn_err *err);
/* Appends JSON with \u escapes for all that is not ASCII, as a field of a head needs it. */
void cn_control_append_ascii(struct cn_buf *out, const char *json, size_t size);

/* The bookmark that one of the two means: 1 and the text, or 0 if neither is given. */
int cn_control_moment(struct cn_control_call *call, const struct cn_object_key *key,
                      const char *bookmark, const char *time, char text[CN_BOOKMARK_SIZE],
                      struct cn_err *err);

/* 0, or CN_ENOTFOUND: the object had no data at the bookmark, so a restore would empty it. */
int cn_control_had_data(struct cn_control_call *call, const struct cn_object_key *key,
                        const char *bookmark, struct cn_err *err);

/* Handlers. */
int cn_control_namespaces(struct cn_control_call *call, struct cn_err *err);
int cn_control_list(struct cn_control_call *call, struct cn_err *err);
int cn_control_inspect(struct cn_control_call *call, struct cn_err *err);
int cn_control_delete(struct cn_control_call *call, struct cn_err *err);
int cn_control_export(struct cn_control_call *call, struct cn_err *err);
int cn_control_restore(struct cn_control_call *call, struct cn_err *err);
int cn_control_history(struct cn_control_call *call, struct cn_err *err);
int cn_control_alarm(struct cn_control_call *call, struct cn_err *err);
int cn_control_sql(struct cn_control_call *call, struct cn_err *err);
int cn_control_kv(struct cn_control_call *call, struct cn_err *err);
int cn_control_kv_put(struct cn_control_call *call, struct cn_err *err);
int cn_control_kv_delete(struct cn_control_call *call, struct cn_err *err);
int cn_control_workers(struct cn_control_call *call, struct cn_err *err);
int cn_control_deploy(struct cn_control_call *call, struct cn_err *err);
int cn_control_backup(struct cn_control_call *call, struct cn_err *err);
int cn_control_backup_stream(struct cn_control_call *call, struct cn_err *err);
int cn_control_backup_answer(struct cn_control_call *call, struct cn_err *err);

#endif
