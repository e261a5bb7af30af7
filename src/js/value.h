/* SPDX-License-Identifier: Apache-2.0 */
/* js/value.h - JavaScript values to and from C.
 *
 * Strings cross as UTF-8. Lone surrogates become U+FFFD on the way out, as the
 * Web platform's USVString has it; invalid UTF-8 becomes U+FFFD on the way in.
 * All functions are called inside cn_js_enter()/leave() or a native function.
 *
 * Errors are thrown through the `exception` out-parameter:
 *     return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "no %s", what); */
#ifndef CN_JS_VALUE_H
#define CN_JS_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "js/jsc.h"

enum cn_js_error_kind { CN_JS_ERROR, CN_JS_TYPE_ERROR, CN_JS_RANGE_ERROR, CN_JS_SYNTAX_ERROR };

/* Out of JavaScript. Natives take plain values (native.h): an object that stands where a text or a
 * number should is no text and not a number; its methods are not called, for they could do anything
 * to what the native has already looked up. */
/* Appends the UTF-8 of a string; another primitive value goes through ToString.
 * V3  Every character of the string arrives, a lone surrogate as U+FFFD wherever it stands. No other
 *     file makes bytes of a string of any length. */
void cn_js_append_utf8(JSContextRef ctx, JSValueRef value, struct cn_buf *out);
/* The same for any value, of an object what its toString() gives (a throw there appends nothing).
 */
void cn_js_append_any(JSContextRef ctx, JSValueRef value, struct cn_buf *out);
void cn_js_append_string(JSStringRef string, struct cn_buf *out);
/* The text of an ASCII string where the engine keeps it: valid until the returned string is
 * released, on any thread. NULL if `value` is no such string: then append it. */
JSStringRef cn_js_ascii(JSContextRef ctx, JSValueRef value, const uint8_t **text, size_t *length);
/* Appends each character as a byte; those above U+00FF become '?'. */
void cn_js_append_latin1(JSContextRef ctx, JSValueRef value, struct cn_buf *out);
/* A NUL-terminated copy, to be freed; `length` may be NULL. */
char *cn_js_to_text(JSContextRef ctx, JSValueRef value, size_t *length);
double cn_js_to_number(JSContextRef ctx, JSValueRef value); /* NaN where it is none */
/* The same as integers: what is not one becomes 0, what is too large or too small the limit. (A
 * double beyond an integer's range must not be cast.) 64 bits hold what a double holds exactly. */
uint32_t cn_js_to_uint32(JSContextRef ctx, JSValueRef value);
int32_t cn_js_to_int32(JSContextRef ctx, JSValueRef value);
uint64_t cn_js_to_uint64(JSContextRef ctx, JSValueRef value);
int64_t cn_js_to_int64(JSContextRef ctx, JSValueRef value);
/* The bytes of an ArrayBuffer or a view of one. Borrowed: valid until the next call into
 * JavaScript. False if `value` is something else. A detached buffer has size 0;
 * `bytes` is an address even then. */
bool cn_js_bytes(JSContextRef ctx, JSValueRef value, uint8_t **bytes, size_t *size);

/* Into JavaScript. Text comes from anywhere (a message of a library, a file, a client): bytes that
 * are no UTF-8 become U+FFFD, and the rest stays.
 * V1  No text is lost for a byte in it that is no UTF-8.
 * V2  A string of more than CN_JS_STRING_MAX characters is undefined: check before, to throw. (The
 *     engine would end the process at four times that.) */
#define CN_JS_STRING_MAX 0x1fffffe8u
#define CN_JS_STRING_TOO_LONG "Cannot create a string longer than 0x1fffffe8 characters"
JSValueRef cn_js_text(JSContextRef ctx, const char *text, size_t length);
JSValueRef cn_js_text_z(JSContextRef ctx, const char *text);
/* For functions of the engine that want one; the caller releases it. */
JSStringRef cn_js_string(const char *text, size_t length);
/* Each byte a character, U+0000 to U+00FF. */
JSValueRef cn_js_latin1(JSContextRef ctx, const uint8_t *bytes, size_t length);
JSValueRef cn_js_utf16(JSContextRef ctx, const uint16_t *units, size_t count);
/* A Uint8Array with a copy of the bytes. */
JSValueRef cn_js_uint8array(JSContextRef ctx, const void *bytes, size_t size);
/* A Uint8Array or ArrayBuffer that takes over malloc'ed `bytes`. */
JSValueRef cn_js_uint8array_take(JSContextRef ctx, void *bytes, size_t size);
/* A Uint8Array that takes over what is in `buf`, which may be nothing; `buf` becomes empty. */
JSValueRef cn_js_uint8array_take_buf(JSContextRef ctx, struct cn_buf *buf);
JSValueRef cn_js_arraybuffer_take(JSContextRef ctx, void *bytes, size_t size);

/* Undefined if there is none, its getter threw, or `object` is none. */
JSValueRef cn_js_get(JSContextRef ctx, JSValueRef object, const char *name);
JSValueRef cn_js_at(JSContextRef ctx, JSValueRef array, unsigned index);
/* Of an array; `max` if it says that it has more. */
uint32_t cn_js_length(JSContextRef ctx, JSValueRef array, uint32_t max);
/* `value` if it is an object, or NULL. */
JSObjectRef cn_js_object(JSContextRef ctx, JSValueRef value);
/* Calls `function`, if it is one; NULL if it is not, or has thrown (then *exception is set; it may
 * be NULL). */
JSValueRef cn_js_invoke(JSContextRef ctx, JSValueRef function, size_t argc, const JSValueRef argv[],
                        JSValueRef *exception);
void cn_js_set(JSContextRef ctx, JSObjectRef object, const char *name, JSValueRef value);

JSValueRef cn_js_error(JSContextRef ctx, enum cn_js_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets *exception and returns undefined. */
JSValueRef cn_js_throw(JSContextRef ctx, JSValueRef *exception, enum cn_js_error_kind kind,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
