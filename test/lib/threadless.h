/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/threadless.h - a machine without threads to give: while `threadless` is set, who asks
 * for one gets EAGAIN. Included by the one file of a program that needs it. */
#ifndef CN_TEST_THREADLESS_H
#define CN_TEST_THREADLESS_H
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool threadless;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *data)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real, &found, sizeof(real));
    return atomic_load(&threadless) ? EAGAIN : real(thread, attributes, run, data);
}

#endif
