/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/multipart.c - multipart/form-data bodies for Request.formData(). */
#include "base/multipart.h"

#include "base/mem.h"
#include "border/multipart.h"
#include "js/native.h"

/* More parts than this are refused: each costs a JavaScript object. */
#define PARTS_MAX 100000

static JSValueRef text_or_undefined(JSContextRef ctx, const char *text, size_t size)
{
    return text ? cn_js_text(ctx, text, size) : JSValueMakeUndefined(ctx);
}

/* multipartParse(bytes, boundary) -> [name, filename | undefined, type, start, end, name, ...];
 * throws a TypeError if the body is malformed. */
static JSValueRef native_multipart_parse(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "multipartParse: not a buffer");
    size_t boundary_size;
    char *boundary = cn_js_to_text(ctx, cn_js_arg(1), &boundary_size);
    struct cn_multipart parser;
    cn_multipart_init(&parser, bytes, size, boundary, boundary_size);
    JSObjectRef list = JSObjectMakeArray(ctx, 0, NULL, exception);
    struct cn_multipart_part part;
    struct cn_err err;
    unsigned count = 0;
    int rc;
    while ((rc = cn_multipart_next(&parser, &part, &err)) > 0) {
        if (count == PARTS_MAX) {
            rc = cn_err_set(&err, CN_ELIMIT, "More than %d parts in a FormData body.", PARTS_MAX);
            break;
        }
        JSValueRef fields[] = {cn_js_text(ctx, part.name, part.name_size),
                               text_or_undefined(ctx, part.filename, part.filename_size),
                               cn_js_text(ctx, part.type, part.type_size),
                               JSValueMakeNumber(ctx, (double)part.start),
                               JSValueMakeNumber(ctx, (double)part.end)};
        for (unsigned i = 0; i < 5; i++)
            JSObjectSetPropertyAtIndex(ctx, list, count * 5 + i, fields[i], NULL);
        count++;
    }
    cn_multipart_fini(&parser);
    cn_free(boundary);
    if (rc < 0)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "%s", err.text);
    return list;
}
