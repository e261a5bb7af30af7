/* SPDX-License-Identifier: Apache-2.0 */
/* The table agrees with a plain array under random additions and removals. */
#include "store/pagemap.h"

#include <string.h>

#include "base/rand.h"
#include "test/lib/test.h"

enum { PAGES = 300 };

TEST(pagemap, agrees_with_an_array)
{
    struct cn_pagemap map = {0};
    struct cn_rand rand;
    static uint8_t bytes[PAGES];
    bool present[PAGES] = {0};
    uint32_t count = 0;
    cn_rand_init(&rand, test_seed());
    for (int i = 0; i < 50000; i++) {
        uint32_t no = 1 + (uint32_t)cn_rand_below(&rand, PAGES - 1) * 7919; /* far apart */
        uint32_t index = (no - 1) / 7919;
        struct cn_page *page = cn_pagemap_find(&map, no);
        CHECK((page != NULL) == present[index]);
        if (page)
            CHECK(page->bytes == &bytes[index]);
        /* Grows and shrinks in waves. */
        bool add = cn_rand_below(&rand, 100) < (i / 5000 % 2 ? 30u : 70u);
        if (add && !page) {
            cn_pagemap_add(&map, no)->bytes = &bytes[index];
            count++;
        } else if (!add && page) {
            cn_pagemap_remove(&map, page);
            count--;
        } else {
            continue;
        }
        present[index] = add;
        CHECK_INT(count, map.count);
    }
    uint32_t seen = 0, cursor = 0;
    while (cn_pagemap_next(&map, &cursor))
        seen++;
    CHECK_INT(count, seen);
    cn_pagemap_clear(&map);
    CHECK(cn_pagemap_find(&map, 1) == NULL);
}
