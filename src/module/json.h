/* SPDX-License-Identifier: Apache-2.0 */
/* module/json.h - values from and to JSON, for modules; include/cairn.h says what they do. */
#ifndef CN_MODULE_JSON_H
#define CN_MODULE_JSON_H
#include <stddef.h>

#include "include/cairn.h"

struct cn_buf;
struct cn_err;

/* Adds the value of a JSON text to a builder. */
int cn_build_json(cairn_builder *builder, const char *text, size_t size, struct cn_err *err);
/* Appends a value as JSON. Negative: it holds something that JSON has not. */
int cn_value_append_json(const cairn_value *value, struct cn_buf *out, struct cn_err *err);

const cairn_value *cn_api_json_read(cairn_object *object, const char *text, size_t size);
const char *cn_api_json_write(cairn_object *object, cairn_builder *value, size_t *size);

#endif
