/* SPDX-License-Identifier: Apache-2.0 */
/* import/v8value.h - JavaScript values as V8 serialises them, to bytes that Cairn stores.
 *
 * workerd, and so the hosted platform and its simulator, keeps values of object storage as V8's
 * ValueSerializer writes them (versions 13 to 15). Cairn's own form is in
 * docs/reference/structured-clone.md.
 *
 *   E1  What is read is the same value: kinds, bits of numbers, units of strings, holes, which
 *       places hold the same object. What it has no word for is refused (CN_EUNSUPPORTED), never
 *       left out.
 *   E2  Any bytes are read or refused; memory and time are in proportion to them.
 *   E3  The same bytes give the same bytes: what was imported can be compared with its source.
 *
 * Threads: pure. */
#ifndef CN_IMPORT_V8VALUE_H
#define CN_IMPORT_V8VALUE_H
#include <stddef.h>

#include "base/err.h"

struct cn_buf;

/* Appends the value. CN_ECORRUPT: these are no such bytes; CN_EUNSUPPORTED, with what it is. */
int cn_v8value_convert(const void *bytes, size_t size, struct cn_buf *out, struct cn_err *err);

#endif
