/* SPDX-License-Identifier: Apache-2.0 */
/* Cron expressions from a configuration file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[300];
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    struct cn_cron cron;
    struct cn_err err;
    if (cn_cron_parse(text, &cron, &err) < 0)
        return 0;
    int64_t now = 1794720300000, next = cn_cron_next(&cron, now);
    CN_ASSERT(next < 0 || (next > now && next % 60000 == 0));
    CN_ASSERT(next < 0 || cn_cron_previous(&cron, next) == next);
    return 0;
}
