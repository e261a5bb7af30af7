/* SPDX-License-Identifier: Apache-2.0 */
/* admin/clone.h - stored JavaScript values (docs/reference/structured-clone.md) as JSON, for
 * people.
 *
 * What JSON has becomes that. The rest becomes an object with one member whose name
 * begins with a dollar sign:
 *
 *     {"$undefined":true}  {"$number":"NaN"}  {"$bigint":"0x1f"}  {"$date":ms}
 * {"$regexp":["a","g"]}
 *     {"$map":[[k,v],...]}  {"$set":[...]}  {"$bytes":"base64"}  {"$error":{...}}  {"$ref":n}
 *
 * and bytes that cannot be read (damage, a class of a later version) {"$raw":"base64"}.
 *
 * The way back, for those who edit a value: JSON means itself, and those objects mean what they
 * stand for, {"$bytes"} a Uint8Array; $regexp, $error, $ref and $raw are refused.
 *
 * Threads: pure. */
#ifndef CN_ADMIN_CLONE_H
#define CN_ADMIN_CLONE_H
#include <stddef.h>

#include "base/err.h"

struct cn_buf;
struct cn_json;

void cn_clone_append_json(struct cn_buf *out, const void *bytes, size_t size);
/* Appends the bytes of a value that is given so. */
int cn_clone_from_json(struct cn_buf *out, const struct cn_json *json, struct cn_err *err);

#endif
