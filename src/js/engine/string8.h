/* SPDX-License-Identifier: Apache-2.0 */
/* js/engine/string8.h - the engine's 8-bit strings, which its C API hides.
 *
 * The engine keeps a text of U+0000 to U+00FF with a byte per character, but its C API gives and
 * takes UTF-16, or UTF-8 one character after the other. A body of 1 MB that goes through text()
 * would be widened to 2 MB, copied, and narrowed again, and everything done with it in between
 * works on twice the bytes.
 *
 * So two things of the library are used that are not in its headers: the exported constructors
 * of such strings, bound weakly, and the layout of a string. cn_js_string8_setup() tries both on a
 * few strings; should a later version of the library differ, strings go as UTF-16 again.
 *
 * Threads: any, after the setup. */
#ifndef CN_JS_ENGINE_STRING8_H
#define CN_JS_ENGINE_STRING8_H
#include <stddef.h>
#include <stdint.h>

#include "js/jsc.h"

/* Once, by cn_js_setup(). */
void cn_js_string8_setup(void);
/* A string of these characters; NULL if the library does not offer it. */
JSStringRef cn_js_string8_new(const uint8_t *characters, size_t length);
/* The same for characters that live as long as the process: they are not copied. */
JSStringRef cn_js_string8_static(const uint8_t *characters, size_t length);
/* The characters of an 8-bit string, borrowed; NULL if it is a 16-bit one, or nobody can tell. */
const uint8_t *cn_js_string8_peek(JSStringRef string);

#endif
