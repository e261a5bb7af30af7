/* SPDX-License-Identifier: Apache-2.0 */
/* service/table.c - which services there are. A new one is a line here (service/def.h). */
#include <assert.h>
#include <string.h>

#include "base/assert.h"
#include "service/def.h"

/* clang-format off */
#define SERVICES(each) \
    each(d1)           \
    each(kv)           \
    each(r2)           \
    each(queue)        \
    each(cron)         \
    each(ratelimit)    \
    each(analytics)    \
    each(cache)        \
    each(ai)           \
    each(hyperdrive)   \
    each(email)
/* clang-format on */

#define DECLARE(name) extern const struct cn_service_def cn_service_##name;
#define LIST(name) &cn_service_##name,

SERVICES(DECLARE)

const struct cn_service_def *const cn_service_table[] = {SERVICES(LIST) NULL};
static_assert(CN_ARRAY_COUNT(cn_service_table) <= CN_SERVICE_MAX, "each has a place");

size_t cn_service_index(const struct cn_service_def *def)
{
    size_t index = 0;
    while (cn_service_table[index] != def)
        CN_ASSERT(cn_service_table[index++]);
    return index;
}

const struct cn_service_def *cn_service_named(const char *name, size_t size)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_def *def = cn_service_table[i];
        if (strlen(def->name) == size && memcmp(def->name, name, size) == 0)
            return def;
    }
    return NULL;
}
