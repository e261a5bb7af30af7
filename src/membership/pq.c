/* SPDX-License-Identifier: Apache-2.0 */
#include "membership/pq.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/err.h"

static struct cn_pq table;
static struct cn_err trouble;

static const struct {
    const char *name;
    void **field;
} functions[] = {
#define CN_PQ_ROW(name) {#name, (void **)&table.name},
    CN_PQ_FUNCTIONS(CN_PQ_ROW)
#undef CN_PQ_ROW
};

static void load(void)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        cn_err_set(&trouble, CN_EUNSUPPORTED,
                   "a cluster needs PostgreSQL's client library (Debian package libpq5): %s",
                   dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        *functions[i].field = dlsym(library, functions[i].name);
        if (!*functions[i].field) {
            cn_err_set(&trouble, CN_EUNSUPPORTED,
                       "PostgreSQL's client library is too old for a cluster: it has no %s",
                       functions[i].name);
            return;
        }
    }
}

int cn_pq_load(const struct cn_pq **pq, struct cn_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (trouble.code)
        return cn_err_set(err, trouble.code, "%s", trouble.text);
    *pq = &table;
    return 0;
}
