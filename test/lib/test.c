/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/test.h"

#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"

static struct test_case *cases, **cases_tail = &cases;
static jmp_buf leave;
static char message[1024];
static char dirs[64][64];
static int dir_count;
static uint64_t seed;

void test_register(struct test_case *test)
{
    *cases_tail = test;
    cases_tail = &test->next;
}

_Noreturn void test_fail(const char *file, int line, const char *format, ...)
{
    int used = snprintf(message, sizeof(message), "%s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    vsnprintf(message + used, sizeof(message) - (size_t)used, format, args);
    va_end(args);
    longjmp(leave, 1);
}

_Noreturn void test_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    longjmp(leave, 2);
}

void test_check_str(const char *file, int line, const char *want, const char *got)
{
    if (!got || strcmp(want, got) != 0)
        test_fail(file, line, "want \"%s\", got \"%s\"", want, got ? got : "(null)");
}

void test_check_asserts(const char *file, int line, const char *expr, void (*run)(void *data),
                        void *data)
{
    int ends[2];
    if (pipe(ends) < 0)
        test_fail(file, line, "pipe failed");
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        test_fail(file, line, "fork failed");
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        alarm(60); /* one that hangs fails */
        dup2(ends[1], STDERR_FILENO);
        run(data);
        _exit(0);
    }
    close(ends[1]);
    char said[4096];
    size_t size = 0;
    ssize_t got;
    while (size < sizeof(said) - 1 &&
           (got = read(ends[0], said + size, sizeof(said) - 1 - size)) > 0)
        size += (size_t)got;
    said[size] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, "assertion failed") ||
        !strstr(said, expr))
        test_fail(file, line, "no assertion of \"%s\" (status %d): %s", expr, status, said);
}

const char *test_dir(void)
{
    if (dir_count == 64)
        test_fail(__FILE__, __LINE__, "too many test directories");
    char *dir = dirs[dir_count++];
    const char *base = getenv("TMPDIR");
    snprintf(dir, sizeof(dirs[0]), "%s/cairn-test-XXXXXX",
             base && strlen(base) < 30 ? base : "/tmp");
    if (!mkdtemp(dir))
        test_fail(__FILE__, __LINE__, "mkdtemp failed");
    return dir;
}

uint64_t test_seed(void)
{
    return seed;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static bool wanted(const struct test_case *test, int argc, char **argv)
{
    char name[256];
    snprintf(name, sizeof(name), "%s.%s", test->suite, test->name);
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i]))
            return true;
    }
    return argc < 2;
}

int main(int argc, char **argv)
{
    const char *given = getenv("CAIRN_TEST_SEED");
    if (given)
        seed = strtoull(given, NULL, 0);
    else
        cn_rand_secure(&seed, sizeof(seed));
    volatile int passed = 0, failed = 0, skipped = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN); /* as the server does (U1 of server/run.h) */
    for (struct test_case *volatile test = cases; test; test = test->next) {
        if (!wanted(test, argc, argv))
            continue;
        int outcome = setjmp(leave);
        if (outcome == 0) {
            test->run();
            passed++;
        } else if (outcome == 1) {
            printf("FAIL %s.%s: %s (CAIRN_TEST_SEED=%llu)\n", test->suite, test->name, message,
                   (unsigned long long)seed);
            failed++;
        } else {
            printf("skip %s.%s: %s\n", test->suite, test->name, message);
            skipped++;
        }
    }
    for (int i = 0; i < dir_count; i++)
        nftw(dirs[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
