/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that does not answer and a machine without threads, for a server that runs: loaded by
 * LD_PRELOAD. While the file that CAIRN_TEST_SCARCE names is there,
 *
 *     sync      in it: fsync() and fdatasync() do not return
 *     threads   in it: pthread_create() fails with EAGAIN */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_scarce(const char *word)
{
    char text[64] = "";
    const char *path = getenv("CAIRN_TEST_SCARCE");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    long size = read(fd, text, sizeof(text) - 1);
    close(fd);
    return size > 0 && strstr(text, word) != NULL;
}

static void wait_for_disk(void)
{
    while (is_scarce("sync"))
        usleep(2000);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    wait_for_disk();
    return (int)syscall(SYS_fsync, fd);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return is_scarce("threads") ? EAGAIN : real(thread, attr, run, arg);
}
