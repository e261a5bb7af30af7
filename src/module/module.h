/* SPDX-License-Identifier: Apache-2.0 */
/* module/module.h - modules: shared objects with classes of Durable Objects written in C
 * (include/cairn.h), as the rest of the server knows them.
 *
 *     deployment ──► cn_modules_load() ──► cn_modules_class() ──► classes of a script
 *     a call     ──► cn_compiled_class (object/class.h) ──► the module's functions
 *
 * M1  What is loaded is a copy of the file as it was: whoever overwrites the file changes nothing
 *     that runs, and the next deployment loads the new one beside the old.
 * M2  Code stays as long as an object or a deployment needs it: both have references, and the last
 *     one unloads it.
 * M3  An object runs on the code of the deployment that was current when it came into memory. When
 *     another has become current, it is reset (cn_compiled_retire()), as objects of JavaScript are.
 * M4  While a function of a module runs, its thread says so (module/crash.h): if the process dies
 *     there, its last line names the module.
 * M5  The linker knows a copy by the number of its file, and some it never lets go (C++ with
 *     symbols that are unique in the process): such a copy keeps its number, so that no later one
 *     is taken for it.
 * M6  Code that may run without being called by us is never unloaded: that of a module which can
 *     start threads, set signal handlers or find other code by name, or which needs a library that
 *     we do not know. Its memory is what a deployment with such a module costs.
 *
 * Threads:   loading on any; a set is immutable once it is shared.
 * Ownership: counted references, atomic. */
#ifndef CN_MODULE_MODULE_H
#define CN_MODULE_MODULE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "object/class.h"

struct cn_modules; /* those of one script */
struct cn_module_class;
struct cn_namespace;
struct cn_object_lane;

#define CN_MODULE_BYTES_MAX (256u << 20)

/* Whether the name of a class is one of a module's: "counter:Counter". */
bool cn_module_names(const char *class_name);

struct cn_modules *cn_modules_new(const char *worker);
struct cn_modules *cn_modules_ref(struct cn_modules *modules);
void cn_modules_unref(struct cn_modules *modules); /* NULL is fine */
/* Loads a module under a name. Whatever is wrong with it is told in a sentence. */
int cn_modules_load(struct cn_modules *modules, const char *name, const char *path,
                    struct cn_err *err);
/* The class "counter:Counter"; borrowed. NULL: `err` says what is missing. `modules` may be NULL:
 * there are none. */
const struct cn_module_class *cn_modules_class(const struct cn_modules *modules,
                                               const char *class_name, struct cn_err *err);

/* Before the set is shared: what the script's configuration binds, for modules to name. Of
 * variables with one name the last counts. */
void cn_modules_bind(struct cn_modules *modules, const char *binding, struct cn_namespace *ns);
/* All of them as JSON: {"bindings":[{"name","type",...},...]} (config/service_config.h). */
int cn_modules_set_bindings(struct cn_modules *modules, const char *json, struct cn_err *err);
void cn_modules_set_var(struct cn_modules *modules, const char *name, const char *text);
/* Whether that was done: a set that a deployment takes again (P2 of deploy/deploy.h) is shared. */
bool cn_modules_are_bound(const struct cn_modules *modules);

/* All classes, "counter:Counter"; borrowed. `modules` may be NULL. */
size_t cn_modules_class_count(const struct cn_modules *modules);
const char *cn_modules_class_name(const struct cn_modules *modules, size_t index);

/* The class of all objects of modules; class_data is a struct cn_module_class. */
extern const struct cn_class cn_compiled_class;
/* On the lane, outside of turns: resets the objects whose modules `is_current` does not know. */
void cn_compiled_retire(struct cn_object_lane *lane,
                        bool (*is_current)(const struct cn_modules *modules, void *data),
                        void *data, unsigned faults, const char *text);

#endif
