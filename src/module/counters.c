/* SPDX-License-Identifier: Apache-2.0 */
#include "module/counters.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "module/internal.h"

struct counter {
    char *worker, *name; /* owned */
    uint64_t number;
};

/* Metrics outlive deployments, as what they are made of does: C1. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter *counters; /* owned */
static size_t counter_count;

static bool is_name(const char *name)
{
    static const char others[] = "_.:-";
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(others, c)))
            return false;
    }
    return size > 0 && size <= CN_COUNTER_NAME_MAX;
}

/* With the lock. NULL: C2. */
static struct counter *find(const char *worker, const char *name)
{
    for (size_t i = 0; i < counter_count; i++) {
        if (strcmp(counters[i].name, name) == 0 && strcmp(counters[i].worker, worker) == 0)
            return &counters[i];
    }
    if (counter_count == CN_COUNTERS_MAX)
        return NULL;
    counters = cn_realloc(counters, (counter_count + 1) * sizeof(*counters));
    counters[counter_count] = (struct counter){cn_strdup(worker), cn_strdup(name), 0};
    return &counters[counter_count++];
}

int cn_api_count(cairn_object *self, const char *name, uint64_t amount)
{
    if (!is_name(name))
        return cn_compiled_refuse(self, CAIRN_EMISMATCH,
                                  "the name of a counter is 1 to 64 letters, digits and _ . : -");
    pthread_mutex_lock(&lock);
    struct counter *counter = find(cn_modules_worker(self->class_->modules), name);
    if (counter)
        counter->number += amount;
    pthread_mutex_unlock(&lock);
    return counter ? 0 : cn_compiled_refuse(self, CAIRN_ELIMIT, "there are 1000 counters already");
}

void cn_counters_each(void (*each)(void *data, const char *worker, const char *name,
                                   uint64_t number),
                      void *data)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < counter_count; i++)
        each(data, counters[i].worker, counters[i].name, counters[i].number);
    pthread_mutex_unlock(&lock);
}
