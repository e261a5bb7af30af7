/* SPDX-License-Identifier: Apache-2.0 */
/* base/assert.h - assertions that stay on in release builds.
 *
 * For our own mistakes only. Input from the network, a file or a script is
 * checked and refused, never asserted. */
#ifndef CN_BASE_ASSERT_H
#define CN_BASE_ASSERT_H

_Noreturn void cn_assert_fail(const char *expr, const char *file, int line);

#define CN_ASSERT(expr)                                \
    do {                                               \
        if (__builtin_expect(!(expr), 0))              \
            cn_assert_fail(#expr, __FILE__, __LINE__); \
    } while (0)

#define CN_UNREACHABLE() cn_assert_fail("unreachable", __FILE__, __LINE__)

/* The struct of type `type` whose field `member` is at `ptr`. */
#define CN_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define CN_ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
