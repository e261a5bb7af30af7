/* SPDX-License-Identifier: Apache-2.0 */
#include "module/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/crash.h"
#include "module/internal.h"
#include "module/json.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

struct module {
    char *name; /* owned */
    void *handle;
    int fd; /* of the copy: the name under which it is loaded is this number's (M1) */
    const struct cairn_module *table;
};

/* A Durable Object namespace, or a variable. */
struct binding {
    char *name;              /* owned */
    struct cn_namespace *ns; /* the node's; NULL: a variable */
    char *text;              /* owned; of a variable */
};

struct cn_modules {
    atomic_uint refs;
    char *worker;            /* owned */
    struct module **modules; /* owned */
    size_t module_count;
    struct cn_module_class **classes; /* owned */
    size_t class_count;
    struct binding *bindings; /* owned */
    size_t binding_count;
    cairn_builder all; /* has the bytes of */
    struct cn_document options;
};

bool cn_module_names(const char *class_name)
{
    return strchr(class_name, ':') != NULL;
}

struct cn_modules *cn_modules_new(const char *worker)
{
    struct cn_modules *modules = CN_NEW(struct cn_modules);
    atomic_init(&modules->refs, 1);
    modules->worker = cn_strdup(worker);
    cn_builder_init(&modules->all, 64u << 20);
    return modules;
}

const char *cn_modules_worker(const struct cn_modules *modules)
{
    return modules->worker;
}

struct cn_modules *cn_modules_ref(struct cn_modules *modules)
{
    atomic_fetch_add_explicit(&modules->refs, 1, memory_order_relaxed);
    return modules;
}

/* ThreadSanitizer does not see the locks of the dynamic linker, and takes a module for the one that
 * was at its place before: under it they stay. */
static void unload(void *handle)
{
#ifndef __SANITIZE_THREAD__
    dlclose(handle);
#else
    (void)handle;
#endif
}

/* M6: names by which code is called that nobody here has called: threads, signals, destructors of
 * keys, and other code found by its name. */
static const char *const outliving[] = {"pthread_create", "thrd_create", "pthread_key_create",
                                        "tss_create",     "clone",       "timer_create",
                                        "sigaction",      "signal",      "dlopen",
                                        "dlsym",          "dlmopen"};
/* Libraries that start nothing by themselves. */
static const char *const quiet[] = {"libc.so.6",
                                    "libm.so.6",
                                    "libpthread.so.0",
                                    "libdl.so.2",
                                    "libstdc++.so.6",
                                    "libgcc_s.so.1",
                                    "librt.so.1",
                                    "libatomic.so.1",
                                    "ld-linux-x86-64.so.2",
                                    "ld-linux-aarch64.so.1"};

static bool is_quiet(const char *library)
{
    size_t i = 0;
    while (i < CN_ARRAY_COUNT(quiet) && strcmp(library, quiet[i]) != 0)
        i++;
    return i < CN_ARRAY_COUNT(quiet);
}

/* M6. Reads what the module asks of the linker. */
static bool may_outlive(void *handle)
{
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return true;
    const char *strings = NULL;
    size_t size = 0;
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++) {
        if (each->d_tag == DT_STRTAB)
            strings = (const char *)each->d_un.d_ptr; /* the linker has made it an address */
        if (each->d_tag == DT_STRSZ)
            size = each->d_un.d_val;
    }
    if (!strings)
        return true;
    for (const ElfW(Dyn) *each = map->l_ld; each->d_tag != DT_NULL; each++) {
        if (each->d_tag == DT_NEEDED && each->d_un.d_val < size &&
            !is_quiet(strings + each->d_un.d_val))
            return true;
    }
    bool found = false; /* the linker lets names share their ends */
    for (size_t i = 0; i < CN_ARRAY_COUNT(outliving) && !found; i++)
        found = memmem(strings, size, outliving[i], strlen(outliving[i]) + 1) != NULL;
    return found;
}

#define COPY_SIZE 64

/* By the number of the process rather than "self", so that a debugger finds it too. */
static void copy_name(int fd, char name[COPY_SIZE])
{
    snprintf(name, COPY_SIZE, "/proc/%d/fd/%d", (int)getpid(), fd);
}

/* M5 */
static bool is_kept(int fd)
{
    char name[COPY_SIZE];
    copy_name(fd, name);
    void *handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static void module_free(struct module *module)
{
    bool was_loaded = module->handle != NULL;
    if (was_loaded && !may_outlive(module->handle))
        unload(module->handle);
    if (module->fd >= 0 && !(was_loaded && is_kept(module->fd)))
        close(module->fd);
    cn_free(module->name);
    cn_free(module);
}

void cn_modules_unref(struct cn_modules *modules)
{
    if (!modules || atomic_fetch_sub_explicit(&modules->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < modules->class_count; i++) {
        cn_free(modules->classes[i]->name);
        cn_free(modules->classes[i]);
    }
    for (size_t i = 0; i < modules->module_count; i++)
        module_free(modules->modules[i]);
    for (size_t i = 0; i < modules->binding_count; i++) {
        cn_free(modules->bindings[i].name);
        cn_free(modules->bindings[i].text);
    }
    cn_document_fini(&modules->options);
    cn_builder_fini(&modules->all);
    cn_free(modules->bindings);
    cn_free(modules->classes);
    cn_free(modules->modules);
    cn_free(modules->worker);
    cn_free(modules);
}

/* --- loading --------------------------------------------------------------------------------- */

/* Copies all of `from`. */
static int copy_file(int from, int to, const char *path, struct cn_err *err)
{
    char *buffer = cn_alloc(1 << 16);
    size_t total = 0;
    int rc = 0;
    for (;;) {
        ssize_t got = read(from, buffer, 1 << 16);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            rc = cn_err_errno(err, errno, "cannot read %s", path);
        if (got <= 0)
            break;
        total += (size_t)got;
        if (total > CN_MODULE_BYTES_MAX) {
            rc = cn_err_set(err, CN_ELIMIT, "%s is larger than 256 MiB", path);
            break;
        }
        for (ssize_t done = 0; done < got;) {
            ssize_t put = write(to, buffer + done, (size_t)(got - done));
            if (put < 0 && errno == EINTR)
                continue;
            if (put < 0) {
                rc = cn_err_errno(err, errno, "no memory for %s", path);
                break;
            }
            done += put;
        }
        if (rc < 0)
            break;
    }
    cn_free(buffer);
    return rc;
}

static int open_copy(const char *name, const char *path, struct cn_err *err)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return cn_err_errno(err, errno, "cannot open %s", path);
    struct stat info;
    if (fstat(from, &info) < 0 || !S_ISREG(info.st_mode)) {
        close(from);
        return cn_err_set(err, CN_EINVALID, "%s is no file", path);
    }
    int to = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
    if (to < 0 && errno == EINVAL) /* an older kernel */
        to = memfd_create(name, MFD_CLOEXEC);
    int rc = to < 0 ? cn_err_errno(err, errno, "no memory for %s", path)
                    : copy_file(from, to, path, err);
    close(from);
    if (rc < 0 && to >= 0)
        close(to);
    return rc < 0 ? rc : to;
}

/* What the linker says, without the name of the copy. */
static const char *linker_text(void)
{
    const char *text = dlerror();
    if (!text)
        return "it cannot be loaded";
    const char *colon = strncmp(text, "/proc/", 6) == 0 ? strstr(text, ": ") : NULL;
    return colon ? colon + 2 : text;
}

static int check_table(const struct cairn_module *table, struct cn_err *err)
{
    if (!table)
        return cn_err_set(err, CN_EINVALID, "its cairn_module_open() has refused");
    if (table->abi != CAIRN_ABI)
        return cn_err_set(err, CN_EVERSION,
                          "it was made for version %u of cairn.h, and this server has version %u",
                          table->abi, CAIRN_ABI);
    if (table->api_size > sizeof(struct cairn_api) ||
        table->class_size > sizeof(struct cairn_class))
        return cn_err_set(err, CN_EVERSION,
                          "it was made with the cairn.h of a later server than this one");
    if (table->class_size < offsetof(struct cairn_class, alarm) + sizeof(void *) ||
        table->class_size % sizeof(void *) || (table->class_count && !table->classes))
        return cn_err_set(err, CN_EINVALID, "what its cairn_module_open() returns is damaged");
    return 0;
}

static int add_classes(struct cn_modules *modules, const struct module *module, struct cn_err *err)
{
    const struct cairn_module *table = module->table;
    for (size_t i = 0; i < table->class_count; i++) {
        struct cairn_class copy = {0};
        memcpy(&copy, (const char *)table->classes + i * table->class_size, table->class_size);
        if (!copy.name || !*copy.name || strchr(copy.name, ':'))
            return cn_err_set(err, CN_EINVALID, "its class number %zu has no proper name", i + 1);
        char *name = cn_sprintf("%s:%s", module->name, copy.name);
        if (cn_modules_class(modules, name, NULL)) {
            cn_free(name);
            return cn_err_set(err, CN_EEXISTS, "it has two classes with the name \"%s\"",
                              copy.name);
        }
        struct cn_module_class *class_ = CN_NEW(struct cn_module_class);
        *class_ = (struct cn_module_class){modules, module->name, name, copy};
        modules->classes =
            cn_realloc(modules->classes, (modules->class_count + 1) * sizeof(*modules->classes));
        modules->classes[modules->class_count++] = class_;
    }
    return 0;
}

static int load(struct cn_modules *modules, struct module *module, const char *path,
                struct cn_err *err)
{
    char copy[COPY_SIZE];
    module->fd = open_copy(module->name, path, err);
    if (module->fd < 0)
        return module->fd;
    copy_name(module->fd, copy);
    module->handle = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    if (!module->handle)
        return cn_err_set(err, CN_EINVALID, "%s: %s", path, linker_text());
    const struct cairn_module *(*entry)(const struct cairn_api *api);
    void *symbol = dlsym(module->handle, "cairn_module_open");
    if (!symbol)
        return cn_err_set(err, CN_ENOTFOUND,
                          "%s is no module: it has no symbol cairn_module_open (CAIRN_MODULE() of "
                          "cairn.h defines it)",
                          path);
    memcpy(&entry, &symbol, sizeof(entry));
    const struct cn_module_class unknown = {.module = module->name, .name = (char *)"(loading)"};
    const struct cn_module_class *before = cn_module_crash_note(&unknown);
    module->table = entry(&cn_compiled_api);
    cn_module_crash_note(before);
    int rc = check_table(module->table, err);
    if (rc == 0)
        rc = add_classes(modules, module, err);
    return rc < 0 ? cn_err_context(err, "%s", path) : 0;
}

int cn_modules_load(struct cn_modules *modules, const char *name, const char *path,
                    struct cn_err *err)
{
    cn_module_crash_setup();
    struct module *module = CN_NEW(struct module);
    module->name = cn_strdup(name);
    module->fd = -1;
    modules->modules =
        cn_realloc(modules->modules, (modules->module_count + 1) * sizeof(*modules->modules));
    modules->modules[modules->module_count++] = module; /* goes with the set if it fails */
    int rc = load(modules, module, path, err);
    return rc < 0 ? cn_err_context(err, "the module \"%s\"", name) : 0;
}

/* --- classes --------------------------------------------------------------------------------- */

static bool has_module(const struct cn_modules *modules, const char *name, size_t size)
{
    for (size_t i = 0; modules && i < modules->module_count; i++) {
        if (strlen(modules->modules[i]->name) == size &&
            memcmp(modules->modules[i]->name, name, size) == 0)
            return true;
    }
    return false;
}

const struct cn_module_class *cn_modules_class(const struct cn_modules *modules,
                                               const char *class_name, struct cn_err *err)
{
    for (size_t i = 0; modules && i < modules->class_count; i++) {
        if (strcmp(modules->classes[i]->name, class_name) == 0)
            return modules->classes[i];
    }
    const char *colon = strchr(class_name, ':');
    size_t size = colon ? (size_t)(colon - class_name) : 0;
    if (colon && has_module(modules, class_name, size))
        cn_err_set(err, CN_ENOTFOUND, "the module \"%.*s\" has no class \"%s\"", (int)size,
                   class_name, colon + 1);
    else
        cn_err_set(err, CN_ENOTFOUND,
                   "the class \"%s\" is of a module, and [cairn.modules] has no \"%.*s\"",
                   class_name, (int)size, class_name);
    return NULL;
}

size_t cn_modules_class_count(const struct cn_modules *modules)
{
    return modules ? modules->class_count : 0;
}

const char *cn_modules_class_name(const struct cn_modules *modules, size_t index)
{
    CN_ASSERT(index < modules->class_count);
    return modules->classes[index]->name;
}

/* --- bindings -------------------------------------------------------------------------------- */

static void add_binding(struct cn_modules *modules, const char *name, struct cn_namespace *ns,
                        const char *text)
{
    modules->bindings =
        cn_realloc(modules->bindings, (modules->binding_count + 1) * sizeof(*modules->bindings));
    modules->bindings[modules->binding_count++] =
        (struct binding){cn_strdup(name), ns, text ? cn_strdup(text) : NULL};
}

void cn_modules_bind(struct cn_modules *modules, const char *binding, struct cn_namespace *ns)
{
    add_binding(modules, binding, ns, NULL);
}

int cn_modules_set_bindings(struct cn_modules *modules, const char *json, struct cn_err *err)
{
    int rc = cn_build_json(&modules->all, json, strlen(json), err);
    if (rc == 0)
        rc = cn_builder_finish(&modules->all, err);
    if (rc == 0)
        rc = cn_document_read(&modules->options, modules->all.bytes.data, modules->all.bytes.size,
                              err);
    return rc;
}

bool cn_modules_are_bound(const struct cn_modules *modules)
{
    return modules->options.root != NULL;
}

const cairn_value *cn_modules_binding(const struct cn_modules *modules, const char *name)
{
    const cairn_value *list = cn_value_get(modules->options.root, "bindings");
    for (size_t i = 0; i < cn_value_count(list); i++) {
        const char *each = cn_value_text(cn_value_get(cn_value_at(list, i), "name"), NULL);
        if (each && strcmp(each, name) == 0)
            return cn_value_at(list, i);
    }
    return NULL;
}

void cn_modules_set_var(struct cn_modules *modules, const char *name, const char *text)
{
    add_binding(modules, name, NULL, text);
}

static const struct binding *find_binding(const struct cn_modules *modules, const char *name,
                                          bool is_namespace)
{
    for (size_t i = modules->binding_count; i > 0; i--) {
        const struct binding *binding = &modules->bindings[i - 1];
        if (!binding->ns != is_namespace && strcmp(binding->name, name) == 0)
            return binding;
    }
    return NULL;
}

struct cn_namespace *cn_modules_namespace(const struct cn_modules *modules, const char *binding)
{
    const struct binding *found = find_binding(modules, binding, true);
    return found ? found->ns : NULL;
}

const char *cn_modules_var(const struct cn_modules *modules, const char *name)
{
    const struct binding *found = find_binding(modules, name, false);
    return found ? found->text : NULL;
}
