/* SPDX-License-Identifier: Apache-2.0 */
/* The table of called objects is bounded, and a number that went finds nothing. */
#include "worker/jstarget.h"

#include <string.h>

#include "base/mem.h"
#include "test/lib/test.h"

static uint64_t add(struct cn_jstargets *targets, uint32_t number)
{
    struct cn_object_key key = {.namespace_id = number};
    return cn_jstarget_add(targets, NULL, &key, cn_strdup("name"), 4, 7);
}

TEST(jstarget, keeps_what_it_was_given)
{
    struct cn_jstargets *targets = CN_NEW(struct cn_jstargets);
    uint64_t number = add(targets, 3);
    struct cn_jstarget *target = cn_jstarget_find(targets, number);
    CHECK(target && target->key.namespace_id == 3 && target->home_serial == 7);
    CHECK(target && strcmp(target->name, "name") == 0);
    CHECK(!cn_jstarget_find(targets, number + 1) && !cn_jstarget_find(targets, -1));
    cn_jstargets_fini(targets);
    cn_free(targets);
}

TEST(jstarget, the_oldest_goes_for_a_new_one)
{
    struct cn_jstargets *targets = CN_NEW(struct cn_jstargets);
    uint64_t first = add(targets, 1), second = add(targets, 2);
    for (uint32_t i = 2; i < CN_JSTARGETS_MAX; i++)
        add(targets, i + 1);
    CHECK(cn_jstarget_find(targets, first));
    uint64_t last = add(targets, 99);
    CHECK(!cn_jstarget_find(targets, first)); /* although its place is used again */
    CHECK(cn_jstarget_find(targets, second));
    CHECK(cn_jstarget_find(targets, last)->key.namespace_id == 99);
    cn_jstargets_fini(targets);
    cn_free(targets);
}
