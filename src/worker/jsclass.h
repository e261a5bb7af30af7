/* SPDX-License-Identifier: Apache-2.0 */
/* worker/jsclass.h - Durable Object classes written in JavaScript.
 *
 * Implements the class table (object/class.h) by calling functions of the
 * prelude: objectCreate, objectDeliver, objectDestroy. JavaScript names an object
 * and a call by numbers; a number of something that is over finds nothing.
 *
 * Turns: the core enters the object and then the class enters JavaScript for it
 * (js/vm.h, owners); everything the code waits for goes on in turns of the object.
 *
 * Threads:   the lane's.
 * Ownership: a jsobject belongs to its cn_object (its `instance`); it keeps the
 *            worker instance it runs on from being freed. */
#ifndef CN_WORKER_JSCLASS_H
#define CN_WORKER_JSCLASS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/mem.h"
#include "js/context.h"
#include "js/engine/alloc.h"
#include "object/call.h"
#include "object/class.h"
#include "object/message.h"
#include "object/node.h"

struct cn_instance;
struct cn_lane;
struct cn_statement;

/* A message that JavaScript has sent. */
struct cn_jscall {
    struct cn_message message;
    struct cn_js_pin callback; /* on the caller's lane */
};
_Static_assert(sizeof(struct cn_jscall) <= CN_ALLOC_CACHED_MAX, "one is made for each call");

struct cn_jsobject {
    struct cn_object *object;
    struct cn_instance *instance;
    struct cn_list link;    /* in instance->objects */
    struct cn_list cursors; /* of struct cn_jscursor, oldest first */
    unsigned cursor_count;
    uint8_t *error; /* owned; serialized: what it was reset for, if code threw it; NULL: nothing */
    size_t error_size;
    uint64_t handle;
    struct cn_js_meter meter; /* of its turns */
    unsigned locks;           /* of the input gate that its code has taken, and may give back */
};

/* An SQL statement under way, known to JavaScript by number. It is in its object's list, so that it
 * ends before the database is closed. */
struct cn_jscursor {
    struct cn_list link; /* in cn_jsobject.cursors */
    struct cn_jsobject *js;
    struct cn_statement *statement;
    uint64_t handle;
    struct cn_js_holding holding; /* of what the statement has */
};

/* J1: a number that a script gives is good for the instance that it was given to alone, whatever
 * else of the lane it may be the number of. NULL: it is none, or no more. */
struct cn_jsobject *cn_jsobject_find(const struct cn_instance *instance, double number);
struct cn_jscursor *cn_jscursor_find(const struct cn_instance *instance, double number);
struct cn_call *cn_jscall_find(const struct cn_instance *instance, double number);

/* For lines that name it: "object 12ab... ("its name") of class Room". */
void cn_jsobject_describe(struct cn_jsobject *js, char *text, size_t size);

void cn_jscursor_end(struct cn_lane *lane, struct cn_jscursor *cursor);
void cn_jscursor_end_all(struct cn_lane *lane, struct cn_jsobject *js);

extern const struct cn_class cn_jsclass;
extern const struct cn_js_owner_hooks cn_jsclass_hooks;

/* The object whose gate holds what the code that runs now sends; NULL: it leaves at once. */
struct cn_object *cn_jsclass_gate(struct cn_lane *lane);

/* What cn_node_options.find_class is for scripts: the current instance whose script has the
 * class, of the version that is the object's (script.h, R3), or a class of the script's modules
 * (module/module.h). */
bool cn_jsclass_find(struct cn_object_lane *lane, struct cn_namespace *ns,
                     const struct cn_object_key *key, const struct cn_class **class_,
                     void **class_data);

struct cn_jscall *cn_jscall_new(void);
static inline struct cn_jscall *cn_jscall_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(cn_message_of(envelope), struct cn_jscall, message);
}
void cn_jscall_free(struct cn_jscall *jscall);

#endif
