/* SPDX-License-Identifier: Apache-2.0 */
#include "module/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "module/internal.h"

#define TEXT_SIZE_MAX (32u << 20)

static void build(cairn_builder *builder, const struct cn_json *json)
{
    switch (json->kind) {
    case CN_JSON_NULL:
        cn_build_null(builder);
        return;
    case CN_JSON_BOOL:
        cn_build_bool(builder, json->boolean);
        return;
    case CN_JSON_INT:
    case CN_JSON_NUMBER:
        cn_build_number(builder, json->number);
        return;
    case CN_JSON_STRING:
        cn_build_text(builder, json->text, json->size);
        return;
    case CN_JSON_ARRAY:
        cn_build_array(builder);
        for (const struct cn_json *item = json->first; item; item = item->next)
            build(builder, item);
        cn_build_end(builder);
        return;
    case CN_JSON_OBJECT:
        cn_build_object(builder);
        for (const struct cn_json *item = json->first; item; item = item->next) {
            cn_build_name(builder, item->name);
            build(builder, item);
        }
        cn_build_end(builder);
        return;
    }
}

int cn_build_json(cairn_builder *builder, const char *text, size_t size, struct cn_err *err)
{
    if (size > TEXT_SIZE_MAX)
        return cn_err_set(err, CN_ELIMIT, "a JSON text has 32 MiB at most");
    struct cn_json *json = cn_json_parse(text, size, err);
    if (!json)
        return err->code;
    build(builder, json);
    cn_json_free(json);
    return 0;
}

/* The shortest text that means the number; what JSON has none for is null, as in JavaScript. */
static void append_number(struct cn_buf *out, double number)
{
    char text[40];
    if (!isfinite(number)) {
        cn_buf_append_str(out, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number == 0 ? 0 : number);
        if (strtod(text, NULL) == number)
            break;
    }
    cn_buf_append_str(out, text);
}

static int append_pairs(const cairn_value *value, struct cn_buf *out, struct cn_err *err)
{
    int rc = 0;
    bool first = true;
    cn_buf_append_byte(out, '{');
    for (size_t i = 0; i < cn_value_count(value) && rc == 0; i++) {
        size_t size;
        const char *name = cn_value_text(cn_value_key(value, i), &size);
        if (cn_value_kind(cn_value_at(value, i)) == CAIRN_UNDEFINED)
            continue;
        if (!first)
            cn_buf_append_byte(out, ',');
        first = false;
        cn_buf_append_json(out, name, size);
        cn_buf_append_byte(out, ':');
        rc = cn_value_append_json(cn_value_at(value, i), out, err);
    }
    cn_buf_append_byte(out, '}');
    return rc;
}

int cn_value_append_json(const cairn_value *value, struct cn_buf *out, struct cn_err *err)
{
    size_t size;
    double number;
    int rc = 0;
    switch (cn_value_kind(value)) {
    case CAIRN_UNDEFINED:
    case CAIRN_NULL:
        cn_buf_append_str(out, "null");
        return 0;
    case CAIRN_BOOL:
        cn_buf_append_str(out, cn_value_bool(value) ? "true" : "false");
        return 0;
    case CAIRN_NUMBER:
        (void)cn_value_number(value, &number);
        append_number(out, number);
        return 0;
    case CAIRN_TEXT: {
        const char *text = cn_value_text(value, &size);
        cn_buf_append_json(out, text, size);
        return 0;
    }
    case CAIRN_ARRAY:
        cn_buf_append_byte(out, '[');
        for (size_t i = 0; i < cn_value_count(value) && rc == 0; i++) {
            if (i)
                cn_buf_append_byte(out, ',');
            rc = cn_value_append_json(cn_value_at(value, i), out, err);
        }
        cn_buf_append_byte(out, ']');
        return rc;
    case CAIRN_OBJECT:
        return append_pairs(value, out, err);
    default:
        return cn_err_set(err, CN_EINVALID, "the value holds something that JSON does not have");
    }
}

const cairn_value *cn_api_json_read(cairn_object *self, const char *text, size_t size)
{
    struct cn_err err;
    cairn_builder *builder = cn_compiled_lend_builder(self);
    if (cn_build_json(builder, text, size, &err) < 0 || cn_builder_finish(builder, &err) < 0) {
        cn_compiled_fault(self, &err);
        return NULL;
    }
    return cn_compiled_lend_value(self, builder->bytes.data, builder->bytes.size);
}

const char *cn_api_json_write(cairn_object *self, cairn_builder *builder, size_t *size)
{
    struct cn_err err;
    struct cn_document document = {0};
    struct cn_buf *out = &cn_compiled_lend_builder(self)->bytes; /* goes with the function */
    int rc = cn_builder_finish(builder, &err);
    if (rc == 0)
        rc = cn_document_read(&document, builder->bytes.data, builder->bytes.size, &err);
    if (rc == 0)
        rc = cn_value_append_json(document.root, out, &err);
    cn_document_fini(&document);
    cn_builder_clear(builder);
    if (rc < 0) {
        cn_compiled_fault(self, &err);
        return NULL;
    }
    const char *text = cn_buf_text(out);
    if (size)
        *size = out->size;
    return text;
}
