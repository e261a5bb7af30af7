/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a page change: refused or applied, and applied twice changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "store/pagediff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t page[4096], want[4096];
    memset(page, 0x5a, sizeof(page));
    memcpy(want, page, sizeof(page));
    if (cn_pagediff_apply(page, sizeof(page), data, size) == 0) {
        uint8_t again[4096 + CN_PAGEDIFF_OVERHEAD];
        size_t encoded = cn_pagediff_encode(want, page, sizeof(page), again);
        if (cn_pagediff_apply(page, sizeof(page), again, encoded) != 0 ||
            memcmp(page, want, sizeof(page)) != 0)
            abort();
    }
    return 0;
}
