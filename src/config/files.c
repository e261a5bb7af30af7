/* SPDX-License-Identifier: Apache-2.0 */
#include "config/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

int cn_files_read(const char *path, size_t size_max, struct cn_buf *out, struct cn_err *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cn_err_errno(err, errno, "%s: cannot be opened", path);
    int rc = 0;
    if (fstat(fd, &info) < 0)
        rc = cn_err_errno(err, errno, "%s: cannot be read", path);
    else if (S_ISDIR(info.st_mode))
        rc = cn_err_errno(err, EISDIR, "%s: cannot be read", path);
    else if (info.st_size > 0)
        cn_buf_reserve(out, (size_t)info.st_size < size_max ? (size_t)info.st_size + 1 : size_max);
    size_t start = out->size;
    while (rc == 0) {
        if (out->size - start > size_max) {
            rc = cn_err_set(err, CN_ELIMIT, "%s: larger than %zu bytes", path, size_max);
            break;
        }
        cn_buf_reserve(out, 16384);
        ssize_t size = read(fd, out->data + out->size, out->capacity - out->size);
        if (size == 0)
            break;
        if (size > 0)
            out->size += (size_t)size;
        else if (errno != EINTR)
            rc = cn_err_errno(err, errno, "%s: cannot be read", path);
    }
    close(fd);
    return rc;
}

int cn_files_write(const char *path, const void *bytes, size_t size, struct cn_err *err)
{
    char *temporary = cn_sprintf("%s.%ld.tmp", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = fd < 0 ? cn_err_errno(err, errno, "%s: cannot be created", path) : 0;
    const char *from = bytes;
    while (rc == 0 && size > 0) {
        ssize_t written = write(fd, from, size);
        if (written > 0) {
            from += written;
            size -= (size_t)written;
        } else if (errno != EINTR) {
            rc = cn_err_errno(err, errno, "%s: cannot be written", path);
        }
    }
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = cn_err_errno(err, errno, "%s: cannot be written", path);
    if (rc == 0 && rename(temporary, path) < 0)
        rc = cn_err_errno(err, errno, "%s: cannot be written", path);
    if (rc < 0)
        (void)unlink(temporary); /* may not exist */
    cn_free(temporary);
    return rc;
}

int cn_files_make_dirs(const char *path, struct cn_err *err)
{
    char *copy = cn_strdup(path);
    int rc = 0;
    for (char *slash = copy + (*copy == '/'); rc == 0; slash++) {
        slash = strchr(slash, '/');
        if (slash)
            *slash = 0;
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            rc = cn_err_errno(err, errno, "%s: cannot be created", copy);
        if (!slash)
            break;
        *slash = '/';
    }
    cn_free(copy);
    return rc;
}

int cn_files_write_all(int fd, const char *path, const void *bytes, size_t size, struct cn_err *err)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t count = write(fd, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return cn_err_errno(err, errno, "cannot write %s", path);
        at += count;
        size -= (size_t)count;
    }
    return 0;
}
