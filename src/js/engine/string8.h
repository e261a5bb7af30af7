/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/string8.h - the engine's 8-bit strings, which its C API hides.
 *
 * The engine keeps a text of U+0000 to U+00FF with a byte per character, but its C API gives and
 * takes UTF-16, or UTF-8 one character after the other. A body of 1 MB that goes through text()
 * would be widened to 2 MB, copied, and narrowed again, and everything done with it in between
 * works on twice the bytes.
 *
 * So two things of the library are used that are not in its headers: the exported constructors
 * of such strings, and the layout of a string. If they are not as expected, strings go as UTF-16.
 *
 * Threads: any, after the first VM was made. */
#ifndef CN_JS_ENGINE_STRING8_H
#define CN_JS_ENGINE_STRING8_H
#include <stddef.h>
#include <stdint.h>

#include "js/engine/patch.h"
#include "js/jsc.h"

extern const struct cn_js_patch cn_js_patch_strings;

/* A string of these characters; NULL if the library does not offer it. */
JSStringRef cn_js_string8_new(const uint8_t *characters, size_t length);
/* The same for characters that live as long as the process: they are not copied. */
JSStringRef cn_js_string8_static(const uint8_t *characters, size_t length);
/* The characters of an 8-bit string, borrowed; NULL if it is a 16-bit one, or nobody can tell. */
const uint8_t *cn_js_string8_peek(JSStringRef string);
/* Whether a string as the engine itself has it (a StringImpl; NULL is none) reads `text`, which is
 * ASCII. Whoever uses it proves that it can tell. */
bool cn_js_string8_impl_equals(const void *string, const char *text);

#endif
