/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a script of SQL: it is cut into statements, each at least a byte, none past the end.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "store/database.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *sql = (const char *)data;
    while (size > 0) {
        size_t used = cn_sql_first(sql, size);
        CN_ASSERT(used > 0 && used <= size);
        (void)cn_sql_blank(sql, used);
        sql += used;
        size -= used;
    }
    return 0;
}
