/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/test.h - a small unit-test harness.
 *
 *     TEST(map_take, closes_the_gap)
 *     {
 *         CHECK(1 + 1 == 2);
 *         CHECK_INT(2, 1 + 1);
 *     }
 *
 * Link with test/lib/test.c, which has main(). `prog NAME...` runs the tests
 * whose "suite.name" contains one of the words. A failed CHECK ends its test
 * (longjmp: leaks after a failure do not matter). The last line of output is
 * "N passed, N failed, N skipped". */
#ifndef CN_TEST_TEST_H
#define CN_TEST_TEST_H
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct test_case {
    const char *suite, *name;
    void (*run)(void);
    struct test_case *next;
};
void test_register(struct test_case *test);
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
void test_check_str(const char *file, int line, const char *want, const char *got);
/* A fresh directory, removed when the program ends. Borrowed until then. */
const char *test_dir(void);
/* In a child process: `run(data)` must end it by an assertion whose expression contains `expr`. */
void test_check_asserts(const char *file, int line, const char *expr, void (*run)(void *data),
                        void *data);
/* CAIRN_TEST_SEED if set, else random; printed when a test fails. */
uint64_t test_seed(void);

#define TEST(suite_, name_)                                                                      \
    static void test_##suite_##_##name_(void);                                                   \
    static struct test_case case_##suite_##_##name_ = {#suite_, #name_, test_##suite_##_##name_, \
                                                       NULL};                                    \
    __attribute__((constructor)) static void register_##suite_##_##name_(void)                   \
    {                                                                                            \
        test_register(&case_##suite_##_##name_);                                                 \
    }                                                                                            \
    static void test_##suite_##_##name_(void)

#define CHECK(expr)                                     \
    do {                                                \
        if (!(expr))                                    \
            test_fail(__FILE__, __LINE__, "%s", #expr); \
    } while (0)
#define CHECK_INT(want, got)                                                             \
    do {                                                                                 \
        long long want_ = (long long)(want), got_ = (long long)(got);                    \
        if (want_ != got_)                                                               \
            test_fail(__FILE__, __LINE__, "%s: want %lld, got %lld", #got, want_, got_); \
    } while (0)
#define CHECK_ASSERTS(expr, run, data) test_check_asserts(__FILE__, __LINE__, expr, run, data)
#define CHECK_STR(want, got) test_check_str(__FILE__, __LINE__, want, got)

#endif
