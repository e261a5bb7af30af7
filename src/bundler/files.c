/* SPDX-License-Identifier: Apache-2.0 */
#include "bundler/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "bundler/convert.h"
#include "crypto/digest.h"

#define TEXT_SIZE_MAX (256u << 20) /* the engine's strings have an end, which is not far behind */

/* Throws what a failed system call was. */
static JSValueRef refuse(JSContextRef ctx, JSValueRef *exception, int error, const char *call,
                         const char *path)
{
    const char *code = strerrorname_np(error);
    JSObjectRef thrown = cn_convert_throw(ctx, exception, "%s: %s, %s '%s'",
                                          code ? code : "EUNKNOWN", strerror(error), call, path);
    cn_convert_set(ctx, thrown, "code", cn_convert_text(ctx, code ? code : "EUNKNOWN"));
    return JSValueMakeUndefined(ctx);
}

/* The end of a native that is one call with one path. Frees it. */
static JSValueRef done(JSContextRef ctx, JSValueRef *exception, int rc, const char *call,
                       char *path)
{
    JSValueRef result =
        rc < 0 ? refuse(ctx, exception, errno, call, path) : JSValueMakeUndefined(ctx);
    cn_free(path);
    return result;
}

/* Appends the whole file. */
static int read_all(int fd, struct cn_buf *out)
{
    for (;;) {
        struct stat info;
        size_t left = fstat(fd, &info) == 0 && (size_t)info.st_size > out->size
                          ? (size_t)info.st_size - out->size
                          : 0;
        cn_buf_reserve(out, left + 4096);
        ssize_t size = read(fd, out->data + out->size, out->capacity - out->size);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return (int)size;
        out->size += (size_t)size;
    }
}

/* read(path): Uint8Array */
NATIVE(native_read)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    struct cn_buf bytes = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : read_all(fd, &bytes);
    int error = errno;
    if (fd >= 0)
        close(fd);
    JSValueRef result =
        rc < 0 ? refuse(ctx, exception, error, "open", path) : cn_convert_take(ctx, &bytes);
    cn_buf_fini(&bytes);
    cn_free(path);
    return result;
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t written = write(fd, bytes + at, size - at);
        if (written < 0 && errno != EINTR)
            return -1;
        at += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* write(path, bytes or text) */
NATIVE(native_write)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    struct cn_buf text = {0};
    uint8_t *bytes;
    size_t size;
    if (!cn_convert_bytes(ctx, ARG(1), &bytes, &size)) {
        cn_convert_append(ctx, ARG(1), &text);
        bytes = text.data;
        size = text.size;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = fd < 0 ? -1 : write_all(fd, bytes, size);
    int error = errno;
    if (fd >= 0 && close(fd) < 0 && rc == 0) {
        rc = -1;
        error = errno;
    }
    errno = error;
    cn_buf_fini(&text);
    return done(ctx, exception, rc, "write", path);
}

NATIVE(native_rename)
{
    char *from = cn_convert_to_text(ctx, ARG(0)), *to = cn_convert_to_text(ctx, ARG(1));
    int rc = rename(from, to);
    int error = errno;
    cn_free(to);
    errno = error;
    return done(ctx, exception, rc, "rename", from);
}

NATIVE(native_unlink)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    int rc = unlink(path);
    return done(ctx, exception, rc, "unlink", path);
}

NATIVE(native_mkdir)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    int rc = mkdir(path, 0777);
    return done(ctx, exception, rc, "mkdir", path);
}

/* realpath(path): string */
NATIVE(native_realpath)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    char *found = realpath(path, NULL);
    if (!found)
        return done(ctx, exception, -1, "realpath", path);
    JSValueRef result = cn_convert_text(ctx, found);
    free(found);
    cn_free(path);
    return result;
}

/* stat(path): [type, size, seconds, nanoseconds of the last change]; the type is "d", "f" or "o". */
NATIVE(native_stat)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    struct stat info;
    if (stat(path, &info) < 0)
        return done(ctx, exception, -1, "stat", path);
    cn_free(path);
    JSValueRef values[] = {
        cn_convert_text(ctx, S_ISDIR(info.st_mode)   ? "d"
                             : S_ISREG(info.st_mode) ? "f"
                                                     : "o"),
        JSValueMakeNumber(ctx, (double)info.st_size),
        JSValueMakeNumber(ctx, (double)info.st_mtim.tv_sec),
        JSValueMakeNumber(ctx, (double)info.st_mtim.tv_nsec),
    };
    return JSObjectMakeArray(ctx, sizeof(values) / sizeof(values[0]), values, NULL);
}

/* What an entry of a folder is: "d", "f" or "o", for a link too. */
static const char *type_of(DIR *dir, const struct dirent *entry)
{
    struct stat info;
    if (entry->d_type == DT_DIR || entry->d_type == DT_REG)
        return entry->d_type == DT_DIR ? "d" : "f";
    if (entry->d_type != DT_UNKNOWN ||
        fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return "o";
    return S_ISDIR(info.st_mode) ? "d" : S_ISREG(info.st_mode) ? "f" : "o";
}

/* readdir(path): [name, type, name, type...] */
NATIVE(native_readdir)
{
    char *path = cn_convert_to_text(ctx, ARG(0));
    DIR *dir = opendir(path);
    if (!dir)
        return done(ctx, exception, -1, "scandir", path);
    cn_free(path);
    JSObjectRef list = JSObjectMakeArray(ctx, 0, NULL, NULL);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        JSObjectSetPropertyAtIndex(ctx, list, count++, cn_convert_text(ctx, entry->d_name), NULL);
        JSObjectSetPropertyAtIndex(ctx, list, count++, cn_convert_text(ctx, type_of(dir, entry)),
                                   NULL);
    }
    closedir(dir);
    return list;
}

/* The bytes of an argument; a text's are its UTF-8, which `text` then holds. */
static struct cn_bytes bytes_of(JSContextRef ctx, JSValueRef value, struct cn_buf *text)
{
    uint8_t *bytes;
    size_t size;
    if (cn_convert_bytes(ctx, value, &bytes, &size))
        return (struct cn_bytes){bytes, size};
    cn_convert_append(ctx, value, text);
    return (struct cn_bytes){text->data, text->size};
}

/* sha256(bytes or text): Uint8Array */
NATIVE(native_sha256)
{
    struct cn_buf text = {0}, digest = {0};
    struct cn_err err;
    int rc = cn_crypto_digest(CN_HASH_SHA256, bytes_of(ctx, ARG(0), &text), &digest, &err);
    cn_buf_fini(&text);
    if (rc < 0)
        return cn_convert_throw(ctx, exception, "%s", err.text);
    return cn_convert_take(ctx, &digest);
}

/* random(bytes): fills them */
NATIVE(native_random)
{
    uint8_t *bytes;
    size_t size;
    if (cn_convert_bytes(ctx, ARG(0), &bytes, &size) && getrandom(bytes, size, 0) != (ssize_t)size)
        return cn_convert_throw(ctx, exception, "no random numbers: %s", strerror(errno));
    return ARG(0);
}

/* encode(text): Uint8Array of its UTF-8 */
NATIVE(native_encode)
{
    struct cn_buf text = {0};
    cn_convert_append(ctx, ARG(0), &text);
    return cn_convert_take(ctx, &text);
}

/* encodeLatin1(text): Uint8Array of its characters, which are none above U+00FF */
NATIVE(native_encode_latin1)
{
    struct cn_buf bytes = {0};
    JSStringRef string = JSValueToStringCopy(ctx, ARG(0), exception);
    size_t count = string ? JSStringGetLength(string) : 0;
    const uint16_t *units = string ? JSStringGetCharactersPtr(string) : NULL;
    cn_buf_reserve(&bytes, count);
    for (size_t i = 0; i < count; i++)
        bytes.data[bytes.size++] = (uint8_t)units[i];
    if (string)
        JSStringRelease(string);
    return cn_convert_take(ctx, &bytes);
}

/* The bytes of the first argument, of which a text can be made; else an exception. */
static bool bytes_for_text(JSContextRef ctx, size_t argc, const JSValueRef argv[], uint8_t **bytes,
                           size_t *size, JSValueRef *exception)
{
    if (!cn_convert_bytes(ctx, ARG(0), bytes, size))
        cn_convert_throw(ctx, exception, "bytes are expected");
    else if (*size > TEXT_SIZE_MAX)
        cn_convert_throw(ctx, exception, "a text of %zu bytes is too long", *size);
    else
        return true;
    return false;
}

static JSValueRef take_string(JSContextRef ctx, JSStringRef string)
{
    JSValueRef value = JSValueMakeString(ctx, string);
    JSStringRelease(string);
    return value;
}

/* decode(bytes): text of their UTF-8 */
NATIVE(native_decode)
{
    uint8_t *bytes;
    size_t size;
    if (!bytes_for_text(ctx, argc, argv, &bytes, &size, exception))
        return JSValueMakeUndefined(ctx);
    return take_string(ctx, cn_convert_string((const char *)bytes, size));
}

/* decodeLatin1(bytes): text of as many characters */
NATIVE(native_decode_latin1)
{
    uint8_t *bytes;
    size_t size;
    if (!bytes_for_text(ctx, argc, argv, &bytes, &size, exception))
        return JSValueMakeUndefined(ctx);
    uint16_t *units = cn_alloc((size + 1) * sizeof(uint16_t));
    for (size_t i = 0; i < size; i++)
        units[i] = bytes[i];
    JSStringRef string = JSStringCreateWithCharacters(units, size);
    cn_free(units);
    return take_string(ctx, string);
}

void cn_bundler_files_install(JSContextRef ctx, JSObjectRef object)
{
    static const struct {
        const char *name;
        JSObjectCallAsFunctionCallback function;
    } natives[] = {
        {"read", native_read},     {"write", native_write},
        {"rename", native_rename}, {"unlink", native_unlink},
        {"mkdir", native_mkdir},   {"realpath", native_realpath},
        {"stat", native_stat},     {"readdir", native_readdir},
        {"sha256", native_sha256}, {"random", native_random},
        {"encode", native_encode}, {"encodeLatin1", native_encode_latin1},
        {"decode", native_decode}, {"decodeLatin1", native_decode_latin1},
    };
    for (size_t i = 0; i < sizeof(natives) / sizeof(natives[0]); i++) {
        JSStringRef name = JSStringCreateWithUTF8CString(natives[i].name);
        cn_convert_set(ctx, object, natives[i].name,
                       JSObjectMakeFunctionWithCallback(ctx, name, natives[i].function));
        JSStringRelease(name);
    }
}
