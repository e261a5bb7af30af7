/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a line of a recording: a request that could be sent, something else, or an error. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "cli/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_err err = {0};
    struct cn_record record;
    int rc = cn_record_parse(&record, (const char *)data, size, &err);
    CN_ASSERT(rc < 0 ? err.text[0] != 0 : rc <= 1);
    if (rc == 1)
        CN_ASSERT(record.method && record.target && record.target[0] == '/');
    cn_record_fini(&record);
    return 0;
}
