/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane pays before it runs a script: CPU milliseconds and resident memory for the engine's
 * VM, for the first context with the prelude in it, and for each further one (another worker on
 * the lane, or a new version of one). One line per figure. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

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

static double resident_mb(void)
{
    unsigned long total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void print(const char *name, double ms, double mb, int count)
{
    printf("%-32s %8.2f ms %8.2f MB\n", name, ms / count, mb / count);
}

static void log_nothing(struct cn_runtime *runtime, int level, const char *text, size_t length)
{
    (void)runtime, (void)level, (void)text, (void)length;
}

int main(void)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    cn_js_setup();
    double ms = cpu_ms(), mb = resident_mb();
    struct cn_js_vm *vm = cn_js_vm_new(NULL);
    print("VM", cpu_ms() - ms, resident_mb() - mb, 1);

    struct cn_runtime *runtimes[CONTEXTS + 1];
    struct cn_runtime_options options = {
        .loop = &loop, .vm = vm, .install = cn_bindings_install, .log = log_nothing};
    ms = cpu_ms(), mb = resident_mb();
    for (int i = 0; i <= CONTEXTS; i++) {
        struct cn_err err;
        if (cn_runtime_new(&options, &runtimes[i], &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        if (i == 0) {
            print("first context with the prelude", cpu_ms() - ms, resident_mb() - mb, 1);
            ms = cpu_ms(), mb = resident_mb();
        }
    }
    print("each further context", cpu_ms() - ms, resident_mb() - mb, CONTEXTS);
    for (int i = 0; i <= CONTEXTS; i++)
        cn_runtime_free(runtimes[i]);
    cn_js_vm_free(vm);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}
