/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane pays before it runs a script: CPU milliseconds and memory (resident, and of it what
 * is the process's own: the rest is code of the libraries) for the engine's VM, for the first
 * context with the prelude in it, and for each further one (another worker on the lane, or a new
 * version of one). One line per figure. */
#include <stdio.h>
#include <time.h>

#include "base/assert.h"
#include "base/loop.h"
#include "bindings/all.h"
#include "js/vm.h"
#include "worker/runtime.h"

#define CONTEXTS 8

static double cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

struct memory {
    double resident_mb, own_mb;
};

static struct memory memory(void)
{
    struct memory result = {0};
    char line[256];
    double kb;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmRSS: %lf", &kb) == 1)
            result.resident_mb = kb * 1024 / 1e6;
        else if (sscanf(line, "RssAnon: %lf", &kb) == 1)
            result.own_mb = kb * 1024 / 1e6;
    }
    if (file)
        fclose(file);
    return result;
}

/* What was used since `ms` and `before`, for each of `count`. */
static void print(const char *name, double ms, struct memory before, int count)
{
    struct memory now = memory();
    printf("%-32s %8.2f ms %8.2f MB, own %6.2f MB\n", name, (cpu_ms() - ms) / count,
           (now.resident_mb - before.resident_mb) / count, (now.own_mb - before.own_mb) / count);
}

static void log_nothing(struct cn_runtime *runtime, int level, const char *text, size_t length)
{
    (void)runtime, (void)level, (void)text, (void)length;
}

int main(void)
{
    uv_loop_t loop;
    if (cn_loop_init(&loop, NULL) < 0)
        return 1;
    CN_ASSERT(cn_js_setup(NULL) == 0);
    double ms = cpu_ms();
    struct memory before = memory();
    struct cn_js_vm *vm = cn_js_vm_new(NULL);
    print("VM", ms, before, 1);

    struct cn_runtime *runtimes[CONTEXTS + 1];
    struct cn_runtime_options options = {
        .loop = &loop, .vm = vm, .install = cn_bindings_install, .log = log_nothing};
    ms = cpu_ms(), before = memory();
    for (int i = 0; i <= CONTEXTS; i++) {
        struct cn_err err;
        if (cn_runtime_new(&options, &runtimes[i], &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        if (i == 0) {
            print("first context with the prelude", ms, before, 1);
            ms = cpu_ms(), before = memory();
        }
    }
    print("each further context", ms, before, CONTEXTS);
    for (int i = 0; i <= CONTEXTS; i++)
        cn_runtime_free(runtimes[i]);
    cn_js_vm_free(vm);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}
