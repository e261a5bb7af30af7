/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <jsc/jsc.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/err.h"
#include "js/context.h"
#include "js/engine/alloc.h"
#include "js/engine/clock.h"
#include "js/engine/dates.h"
#include "js/engine/lock.h"
#include "js/engine/memory.h"
#include "js/engine/names.h"
#include "js/engine/regexp.h"
#include "js/engine/pages.h"
#include "js/engine/promises.h"
#include "js/engine/stacks.h"
#include "js/engine/stop.h"
#include "js/engine/string8.h"

#define LIBRARY "libjavascriptcoregtk-4.1.so"
/* A child that takes longer than this has failed. */
#define TRIAL_SECONDS 30

/* The builds that all patches are known to work with: `make engine-tests` has passed on them. */
static const char *const known_builds[] = {
    "9975c76698c1fab53076bf1269d309b3afaca0bb", /* Debian 12, amd64: 2.50.6-1~deb12u2 */
};

/* In the order in which they are proven. */
static struct cn_js_patch_status patches[] = {
    {.patch = &cn_js_patch_strings}, {.patch = &cn_js_patch_lock},
    {.patch = &cn_js_patch_stop},    {.patch = &cn_js_patch_clock},
    {.patch = &cn_js_patch_memory},  {.patch = &cn_js_patch_alloc},
    {.patch = &cn_js_patch_pages},   {.patch = &cn_js_patch_names},
    {.patch = &cn_js_patch_stacks},  {.patch = &cn_js_patch_dates},
    {.patch = &cn_js_patch_regexp},  {.patch = &cn_js_patch_promises},
};

static char build_id[65];
static bool in_trial; /* this process is a child that tries */

__attribute__((format(printf, 2, 3))) static void turn_off(struct cn_js_patch_status *status,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(status->reason, sizeof(status->reason), format, args);
    va_end(args);
    status->on = false;
    status->patch->use(false);
}

/* The switch. */

static struct cn_js_patch_status *find_patch(const char *name, size_t length)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        if (strlen(patches[i].patch->name) == length &&
            memcmp(patches[i].patch->name, name, length) == 0)
            return &patches[i];
    return NULL;
}

static int read_switch(const char *text, struct cn_err *err)
{
    bool only = text[0] != '-' && strcmp(text, "on") != 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        patches[i].on = !only;
    if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)
        return 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        bool minus = *at == '-';
        struct cn_js_patch_status *status = find_patch(at + minus, length - minus);
        if (!status || minus == only)
            return cn_err_set(
                err, CN_EINVALID,
                "CAIRN_ENGINE_PATCHES: \"%.*s\" is not expected: \"off\", or names, or "
                "names that all begin with a minus (`cairn version --engine` lists them)",
                (int)length, at);
        status->on = !minus;
        at += length + (at[length] == ',');
    }
    return 0;
}

/* The library. */

static void take_build_id(const char *notes, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        size_t name_size = (note->n_namesz + 3u) & ~(size_t)3;
        size_t text_size = (note->n_descsz + 3u) & ~(size_t)3;
        if (size - sizeof(*note) < name_size + text_size)
            return;
        const uint8_t *bytes = (const uint8_t *)notes + sizeof(*note) + name_size;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz * 2 < sizeof(build_id))
            for (size_t i = 0; i < note->n_descsz; i++)
                snprintf(build_id + 2 * i, 3, "%02x", bytes[i]);
        notes += sizeof(*note) + name_size + text_size;
        size -= sizeof(*note) + name_size + text_size;
    }
}

static int on_library(struct dl_phdr_info *info, size_t size, void *data)
{
    if (!strstr(info->dlpi_name, LIBRARY))
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            take_build_id((const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                          info->dlpi_phdr[i].p_memsz);
    return 1;
}

const char *cn_js_engine_build_id(void)
{
    return build_id;
}

bool cn_js_engine_build_known(void)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(known_builds); i++)
        if (strcmp(known_builds[i], build_id) == 0)
            return true;
    return false;
}

const char *cn_js_engine_version(void)
{
    static char text[32];
    snprintf(text, sizeof(text), "%u.%u.%u", jsc_get_major_version(), jsc_get_minor_version(),
             jsc_get_micro_version());
    return text;
}

/* The library's own, which comes after ours; of several names, the first that there is. */
static void *find_symbol(const char *names)
{
    char name[256];
    for (size_t length; *names; names += length + (names[length] == '|')) {
        length = strcspn(names, "|");
        CN_ASSERT(length < sizeof(name));
        snprintf(name, sizeof(name), "%.*s", (int)length, names);
        void *found = dlsym(RTLD_NEXT, name);
        if (found)
            return found;
    }
    return NULL;
}

static void find_symbols(struct cn_js_patch_status *status)
{
    const struct cn_js_patch *patch = status->patch;
    status->is_unneeded = patch->superseded && find_symbol(patch->superseded); /* P6 */
    if (status->is_unneeded)
        turn_off(status, "the library does it by itself");
    void *functions[CN_JS_PATCH_SYMBOLS_MAX];
    const char *missing = NULL;
    for (size_t i = 0; i < CN_JS_PATCH_SYMBOLS_MAX && patch->symbols[i]; i++) {
        functions[i] = find_symbol(patch->symbols[i]);
        if (!functions[i])
            missing = patch->symbols[i];
    }
    if (patch->found)
        patch->found(functions);
    if (missing && status->on)
        turn_off(status, "the library has no %.*s", (int)strcspn(missing, "|"), missing);
}

/* Proofs. */

bool cn_js_engine_evaluates(struct cn_js_context *context, const char *source)
{
    JSStringRef text = JSStringCreateWithUTF8CString(source);
    cn_js_enter(context);
    bool good = JSEvaluateScript(context->ref, text, NULL, NULL, 1, NULL) != NULL;
    cn_js_leave(context);
    JSStringRelease(text);
    return good;
}

static void prove_all(struct cn_js_vm *vm)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++) {
        if (!patches[i].on)
            continue;
        const char *needs = patches[i].patch->needs;
        if (needs && !find_patch(needs, strlen(needs))->on) { /* P5 */
            turn_off(&patches[i], "it needs %s", needs);
            continue;
        }
        patches[i].patch->use(true);
        const char *wrong = patches[i].patch->prove(vm);
        if (wrong)
            turn_off(&patches[i], "%s", wrong);
    }
}

static size_t count_on(void)
{
    size_t on = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        on += patches[i].on;
    return on;
}

static size_t count_needed(void)
{
    size_t needed = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        needed += !patches[i].is_unneeded;
    return needed;
}

/* P3 */
static void tell(void)
{
    char text[1024] = "";
    size_t at = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches) && at < sizeof(text); i++)
        if (!patches[i].on && !patches[i].is_unneeded)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %s (%s)", at ? ";" : "",
                                   patches[i].patch->name, patches[i].reason);
    if (at)
        cn_warn(
            "engine: JavaScriptCore %s, build %s: %zu of %zu patches are off:%s. `cairn version "
            "--engine` says what that means",
            cn_js_engine_version(), build_id, count_needed() - count_on(), count_needed(), text);
    else if (!cn_js_engine_build_known())
        cn_info("engine: JavaScriptCore %s, build %s, is new to this version; its patches were "
                "tried and "
                "work",
                cn_js_engine_version(), build_id);
}

void cn_js_engine_prove(struct cn_js_vm *vm)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool proven;
    pthread_mutex_lock(&lock);
    if (!proven) {
        prove_all(vm);
        if (!in_trial)
            tell();
    }
    proven = true;
    pthread_mutex_unlock(&lock);
}

/* The trial (P2): in a child, because a library that is laid out otherwise may crash it. */

/* Whether the child came to its end; what it has proven or not, this process proves again. */
static bool survives(void (*try_out)(void), char *reason, size_t size)
{
    pid_t child = fork();
    if (child < 0) {
        snprintf(reason, size, "it cannot be tried in a child: %s", strerror(errno));
        return false;
    }
    if (child == 0) {
        in_trial = true;
        signal(SIGALRM, SIG_DFL);
        alarm(TRIAL_SECONDS);
        try_out();
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        snprintf(reason, size, "its trial was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(reason, size, "its trial failed");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* All at once; if that fails, each alone, and then those together that survived. */
static void try_patches(void (*try_out)(void))
{
    char reason[96];
    bool wanted[CN_ARRAY_COUNT(patches)];
    if (count_on() == 0 || survives(try_out, reason, sizeof(reason)))
        return;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++) {
        wanted[i] = patches[i].on;
        patches[i].on = false;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++) {
        patches[i].on = wanted[i];
        if (wanted[i] && !survives(try_out, reason, sizeof(reason))) {
            wanted[i] = false;
            turn_off(&patches[i], "%s", reason);
        }
        patches[i].on = false;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        patches[i].on = wanted[i];
    if (count_on() == 0 || survives(try_out, reason, sizeof(reason)))
        return;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        if (patches[i].on)
            turn_off(&patches[i], "with the others, %s", reason);
}

int cn_js_engine_setup(void (*try_out)(void), struct cn_err *err)
{
    const char *text = getenv("CAIRN_ENGINE_PATCHES");
    int rc = read_switch(text && *text ? text : "on", err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        if (!patches[i].on)
            snprintf(patches[i].reason, sizeof(patches[i].reason), "by CAIRN_ENGINE_PATCHES");
    dl_iterate_phdr(on_library, NULL);
    for (size_t i = 0; i < CN_ARRAY_COUNT(patches); i++)
        find_symbols(&patches[i]);
    if (!cn_js_engine_build_known())
        try_patches(try_out);
    return 0;
}

const struct cn_js_patch_status *cn_js_engine_patches(size_t *count)
{
    *count = CN_ARRAY_COUNT(patches);
    return patches;
}
