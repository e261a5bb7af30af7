/* SPDX-License-Identifier: Apache-2.0 */
/* bundler/convert.h - values of JavaScript to and from C, on the engine's public functions alone. (js/value.h
 * is for the server's engine, whose patches this program does without.)
 *
 * Texts cross as UTF-8; what is none, or a lone surrogate, becomes U+FFFD.
 *
 * Threads: one. */
#ifndef CN_BUNDLER_CONVERT_H
#define CN_BUNDLER_CONVERT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "js/jsc.h"

#define NATIVE(name)                                                                              \
    static JSValueRef name(JSContextRef ctx, JSObjectRef function, JSObjectRef self, size_t argc, \
                           const JSValueRef argv[], JSValueRef *exception)
#define ARG(i) (argc > (i) ? argv[i] : JSValueMakeUndefined(ctx))

/* Appends what toString() gives; nothing if that throws. */
void cn_convert_append(JSContextRef ctx, JSValueRef value, struct cn_buf *out);
/* The same as a path or an argument: NUL-terminated, to be freed. */
char *cn_convert_to_text(JSContextRef ctx, JSValueRef value);
/* Borrowed until the next call into JavaScript. False: it is no typed array. */
bool cn_convert_bytes(JSContextRef ctx, JSValueRef value, uint8_t **bytes, size_t *size);

/* The caller releases it. */
JSStringRef cn_convert_string(const char *text, size_t size);
JSValueRef cn_convert_text(JSContextRef ctx, const char *text);
/* Takes what is in `buf`, which becomes empty. */
JSValueRef cn_convert_take(JSContextRef ctx, struct cn_buf *buf);
JSValueRef cn_convert_get(JSContextRef ctx, JSValueRef object, const char *name);
void cn_convert_set(JSContextRef ctx, JSObjectRef object, const char *name, JSValueRef value);
/* Sets *exception to an Error, and returns it. */
JSObjectRef cn_convert_throw(JSContextRef ctx, JSValueRef *exception, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
