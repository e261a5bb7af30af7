/* SPDX-License-Identifier: Apache-2.0 */
/* service/email/natives.c - messages that `cairn dev` keeps instead of sending them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "border/email/natives.h"
#include "js/native.h"
#include "worker/instance.h"
#include "worker/runtime.h"
#include "worker/script.h"

/* A new file of the folder; the descriptor, or -1. */
static int create(const char *folder, char **path)
{
    static _Atomic unsigned count;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return -1;
    for (int tries = 0; tries < 10000; tries++) {
        cn_free(*path);
        *path = cn_sprintf("%s/%ld-%u.eml", folder, (long)getpid(), ++count);
        int fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, bytes, size);
        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0) {
            bytes += count;
            size -= (size_t)count;
        }
    }
    return true;
}

/* emailKeep(bytes) -> the path of the file that has them. For development only: it waits for the
 * file system. */
static JSValueRef native_email_keep(CN_JS_NATIVE_ARGS)
{
    const struct cn_instance *instance = cn_runtime_of(ctx)->data;
    const char *folder = instance->script->email_dir;
    uint8_t *bytes;
    size_t size;
    if (!folder || !cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "emailKeep: bad arguments");
    char *path = NULL;
    int fd = create(folder, &path);
    bool written = fd >= 0 && write_all(fd, bytes, size);
    int problem = errno;
    if (fd >= 0)
        close(fd);
    JSValueRef result =
        written ? cn_js_text_z(ctx, path)
                : cn_js_throw(ctx, exception, CN_JS_ERROR,
                              "The message cannot be written to %s: %s", folder, strerror(problem));
    cn_free(path);
    return result;
}
