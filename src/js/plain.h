/* SPDX-License-Identifier: Apache-2.0 */
/* js/plain.h - plain values of JavaScript to and from bytes of docs/reference/structured-clone.md,
 * without the prelude: undefined, null, booleans, numbers and texts. A call whose arguments and
 * result are plain crosses the border once each way.
 *
 * L1  The bytes are those that the prelude would have written, or ones that mean the same value.
 * L2  What is not plain is left alone, and written and read by the prelude.
 *
 * Threads: the lane's, inside JavaScript. */
#ifndef CN_JS_PLAIN_H
#define CN_JS_PLAIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "js/jsc.h"

#define CN_JS_PLAIN_TEXT_MAX (1u << 16)

/* Appends the array of these values, a whole value with its version. False: one of them is not
 * plain, a text is not ASCII or longer than CN_JS_PLAIN_TEXT_MAX; `out` then has rubbish at its
 * end. */
bool cn_js_plain_write(JSContextRef ctx, size_t count, const JSValueRef values[],
                       struct cn_buf *out);
/* The value; NULL: it is not plain, or the bytes are damaged. */
JSValueRef cn_js_plain_read(JSContextRef ctx, const uint8_t *bytes, size_t size);

#endif
