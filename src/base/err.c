/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static int err_vset(struct cn_err *err, int code, const char *format, va_list args)
{
    CN_ASSERT(code < 0);
    if (err) {
        err->code = code;
        vsnprintf(err->text, sizeof(err->text), format, args);
    }
    return code;
}

int cn_err_set(struct cn_err *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_vset(err, code, format, args);
    va_end(args);
    return code;
}

int cn_err_errno(struct cn_err *err, int errno_value, const char *format, ...)
{
    va_list args;
    CN_ASSERT(errno_value > 0);
    va_start(args, format);
    err_vset(err, -errno_value, format, args);
    va_end(args);
    if (err) {
        size_t used = strlen(err->text);
        snprintf(err->text + used, sizeof(err->text) - used, ": %s", strerror(errno_value));
    }
    return -errno_value;
}

int cn_err_context(struct cn_err *err, const char *format, ...)
{
    if (!err)
        return -1;
    char before[CN_ERR_TEXT_MAX];
    memcpy(before, err->text, sizeof(before));
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %.*s", (int)(sizeof(before) - 1),
             before);
    return err->code;
}

const char *cn_err_name(int code)
{
    switch (code) {
    case CN_ECORRUPT:
        return "corrupt data";
    case CN_EOVERLOADED:
        return "overloaded";
    case CN_ENOMEM:
        return "out of memory";
    case CN_ELIMIT:
        return "limit exceeded";
    case CN_EINVALID:
        return "invalid input";
    case CN_ENOTFOUND:
        return "not found";
    case CN_EEXISTS:
        return "exists already";
    case CN_EVERSION:
        return "written by a newer version";
    case CN_ELOCKED:
        return "in use by another process";
    case CN_EREADONLY:
        return "writes are refused";
    case CN_ESQL:
        return "SQL error";
    case CN_ECLOSED:
        return "closed";
    case CN_ETIMEOUT:
        return "timed out";
    case CN_EABORTED:
        return "aborted";
    case CN_EJS:
        return "JavaScript exception";
    case CN_EPROTOCOL:
        return "protocol error";
    case CN_EUNSUPPORTED:
        return "not supported";
    case CN_ETLS:
        return "TLS failed";
    case CN_EDENIED:
        return "denied";
    case CN_EOLDER:
        return "the other side has gone back";
    default:
        return code < 0 && code > -10000 ? strerror(-code) : "unknown error";
    }
}
