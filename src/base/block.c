/* SPDX-License-Identifier: Apache-2.0 */
#include "base/block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"

enum { PLACES_MAX = 64 };

_Thread_local bool cn_block_forbidden;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static const char *said[PLACES_MAX];                     /* names of functions */

/* Once for each place. */
static bool is_new(const char *function)
{
    bool found = false;
    size_t i = 0;
    pthread_mutex_lock(&lock);
    for (; i < PLACES_MAX && said[i] && !found; i++)
        found = strcmp(said[i], function) == 0;
    found |= i == PLACES_MAX;
    if (!found)
        said[i] = function;
    pthread_mutex_unlock(&lock);
    return !found;
}

void cn_block_fail(const char *function)
{
    if (CN_DEBUG_CHECKS || getenv("CAIRN_STRICT"))
        cn_assert_fail(function, "a thread that serves waits", 0);
    if (is_new(function))
        cn_error("a thread that serves waits in %s(): please report this", function);
}
