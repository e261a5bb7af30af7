/* SPDX-License-Identifier: Apache-2.0 */
/* test/load/slowdisk.c - a slow or failing disk under a real server, by LD_PRELOAD: syncs and
 * writes to files take longer, or fail. The file that CAIRN_SLOWDISK names says how, and may change
 * at any time: four unsigned numbers (what it is too short for is 0), milliseconds per sync,
 * microseconds per write, whether syncs fail, and when the disk is full: 0 never, 1 now, N after
 * N - 1 more writes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic uint32_t none[4];
static _Atomic uint32_t *control = none; /* sync_ms, write_us, fail, full */

__attribute__((constructor)) static void open_control(void)
{
    const char *path = getenv("CAIRN_SLOWDISK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        control = mapped;
    if (fd >= 0)
        close(fd);
}

static int before_sync(void)
{
    if (control[0])
        usleep(control[0] * 1000);
    errno = EIO;
    return control[2] ? -1 : 0;
}

static int before_write(void)
{
    if (control[1])
        usleep(control[1]);
    uint32_t left = control[3];
    while (left > 1 && !atomic_compare_exchange_weak(&control[3], &left, left - 1))
        continue;
    errno = ENOSPC;
    return left == 1 ? -1 : 0;
}

#define REAL(type, name, ...)         \
    static type (*real)(__VA_ARGS__); \
    if (!real)                        \
    real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

int fdatasync(int fd)
{
    REAL(int, fdatasync, int);
    return before_sync() < 0 ? -1 : real(fd);
}

int fsync(int fd)
{
    REAL(int, fsync, int);
    return before_sync() < 0 ? -1 : real(fd);
}

int syncfs(int fd)
{
    REAL(int, syncfs, int);
    return before_sync() < 0 ? -1 : real(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return before_write() < 0 ? -1 : real(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return pwrite64(fd, bytes, size, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t);
    return before_write() < 0 ? -1 : real(fd, parts, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return pwritev64(fd, parts, count, offset);
}
