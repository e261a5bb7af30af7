/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void cn_assert_fail(const char *expr, const char *file, int line)
{
    fprintf(stderr, "cairn: assertion failed: %s (%s:%d)\n", expr, file, line);
    fflush(stderr);
    abort();
}
