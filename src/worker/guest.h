/* SPDX-License-Identifier: Apache-2.0 */
/* worker/guest.h - the language that scripts are written in, as a server that starts them sees it.
 *
 * What starts lanes need not know JavaScriptCore: it is given this (bindings/all.h has the one
 * there is) and hands it on.
 *
 * Threads: `setup` on the main one before any lane; the others on lanes. */
#ifndef CN_WORKER_GUEST_H
#define CN_WORKER_GUEST_H
#include <stdbool.h>

struct cn_class;
struct cn_err;
struct cn_namespace;
struct cn_object_key;
struct cn_object_lane;
struct cn_runtime;
struct OpaqueJSValue; /* a JSObjectRef is a pointer to it */

struct cn_guest {
    int (*setup)(struct cn_err *err);
    /* Prints what `cairn version --engine` tells, in a process that serves nothing. */
    int (*describe)(struct cn_err *err);
    /* Puts the functions that C provides into the object that the prelude gets. */
    void (*install)(struct cn_runtime *runtime, struct OpaqueJSValue *native);
    /* What cn_node_options.find_class is for classes of scripts. */
    bool (*find_class)(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_object_key *key, const struct cn_class **class_,
                       void **class_data);
};

#endif
