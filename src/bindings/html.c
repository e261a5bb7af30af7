/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/html.c - the HTML rewriter as a handle of the prelude, which drives it:
 * prelude/web/html-rewriter.js. Numbers of events, places and wants are those of
 * html/rewriter.h. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "border/html.h"
#include "html/rewriter.h"
#include "js/handle.h"
#include "js/native.h"

struct handle {
    struct cn_js_handle base;
    struct cn_html_rewriter rewriter;
};

static void on_collected(void *data)
{
    struct handle *handle = data;
    cn_html_rewriter_fini(&handle->rewriter);
    cn_free(handle);
}

static const struct cn_js_handle_type rewriter_type = {.name = "html", .free = on_collected};

/* The rewriter, or NULL with an exception. */
static struct cn_html_rewriter *rewriter_of(JSContextRef ctx, JSValueRef value,
                                            JSValueRef *exception)
{
    struct handle *handle = cn_js_handle_find(ctx, value, &rewriter_type);
    if (handle)
        return &handle->rewriter;
    cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "not a rewriter");
    return NULL;
}

#define IS(event) (1u << (event))
#define ANY_TOKEN                                                                         \
    (IS(CN_HTML_ELEMENT) | IS(CN_HTML_TEXT) | IS(CN_HTML_COMMENT) | IS(CN_HTML_DOCTYPE) | \
     IS(CN_HTML_END_TAG))

/* The same if its current token is one of `events`, else NULL and an exception: methods may be
 * called on another kind of token, and after it is gone. */
static struct cn_html_rewriter *rewriter_at(JSContextRef ctx, JSValueRef value, unsigned events,
                                            JSValueRef *exception)
{
    struct cn_html_rewriter *rewriter = rewriter_of(ctx, value, exception);
    if (!rewriter || IS(rewriter->event) & events)
        return rewriter;
    cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "Illegal invocation: not the current token");
    return NULL;
}

/* The same where an element is needed. */
static struct cn_html_rewriter *element_at(JSContextRef ctx, JSValueRef value,
                                           JSValueRef *exception)
{
    return rewriter_at(ctx, value, IS(CN_HTML_ELEMENT), exception);
}

static JSValueRef undefined_or_throw(JSContextRef ctx, int rc, const struct cn_err *err,
                                     JSValueRef *exception)
{
    if (rc < 0)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "Parser error: %s", err->text);
    return JSValueMakeUndefined(ctx);
}

static JSValueRef span_value(JSContextRef ctx, struct cn_html_span span)
{
    return cn_js_text(ctx, span.at ? (const char *)span.at : "", span.size);
}

static JSValueRef native_html_check(CN_JS_NATIVE_ARGS)
{
    struct cn_html_selectors set = {0};
    struct cn_err err;
    size_t size;
    char *text = cn_js_to_text(ctx, cn_js_arg(0), &size);
    int rc = cn_html_selectors_add(&set, text, size, 0, &err);
    cn_html_selectors_fini(&set);
    cn_free(text);
    return undefined_or_throw(ctx, rc, &err, exception);
}

static JSValueRef native_html_open(CN_JS_NATIVE_ARGS)
{
    struct handle *handle = CN_NEW(struct handle);
    cn_html_rewriter_init(&handle->rewriter);
    return cn_js_handle_make(ctx, &handle->base, &rewriter_type, 64 * 1024);
}

static JSValueRef native_html_on(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = rewriter_of(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    if (rewriter->depth > 0)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "the rewriter has begun");
    unsigned wants = cn_js_to_uint32(ctx, cn_js_arg(2));
    struct cn_err err;
    if (!JSValueIsString(ctx, cn_js_arg(1)))
        return undefined_or_throw(ctx, cn_html_rewriter_on(rewriter, NULL, 0, wants, &err), &err,
                                  exception);
    size_t size;
    char *text = cn_js_to_text(ctx, argv[1], &size);
    int rc = cn_html_rewriter_on(rewriter, text, size, wants, &err);
    cn_free(text);
    return undefined_or_throw(ctx, rc, &err, exception);
}

/* htmlFeed(rewriter, bytes): without bytes, that was all. */
static JSValueRef native_html_feed(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = rewriter_of(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    uint8_t *bytes;
    size_t size;
    if (rewriter->event != CN_HTML_NEED_INPUT || rewriter->finished)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "the rewriter takes no input now");
    if (cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        cn_html_rewriter_feed(rewriter, bytes, size);
    else
        cn_html_rewriter_finish(rewriter);
    return JSValueMakeUndefined(ctx);
}

/* htmlNext(rewriter, status): returns the event; status[0] is the handler, status[1] is 1 for the
 * last piece of a text node. */
static JSValueRef native_html_next(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = rewriter_of(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    if (rewriter->depth == 0)
        return JSValueMakeNumber(ctx, CN_HTML_NEED_INPUT);
    struct cn_err err;
    uint32_t handler = 0;
    int event = cn_html_rewriter_next(rewriter, &handler, &err);
    if (event < 0)
        return undefined_or_throw(ctx, event, &err, exception);
    uint32_t status[2] = {handler, event == CN_HTML_TEXT && rewriter->text_ended};
    uint8_t *bytes;
    size_t size;
    if (cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size) && size >= sizeof(status))
        memcpy(bytes, status, sizeof(status));
    return JSValueMakeNumber(ctx, event);
}

static JSValueRef native_html_output(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = rewriter_of(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    size_t size = rewriter->output.size;
    uint8_t *bytes = cn_buf_take(&rewriter->output);
    return cn_js_uint8array_take(ctx, cn_realloc(bytes, size + 1), size);
}

/* htmlString(rewriter, which): 0 tag name, 1 text, 2 namespace, 3 name, 4 public and 5 system
 * identifier of a DOCTYPE (null where there is none). */
static JSValueRef native_html_string(CN_JS_NATIVE_ARGS)
{
    static const unsigned tokens[] = {IS(CN_HTML_ELEMENT) | IS(CN_HTML_END_TAG),
                                      IS(CN_HTML_TEXT) | IS(CN_HTML_COMMENT),
                                      IS(CN_HTML_ELEMENT),
                                      IS(CN_HTML_DOCTYPE),
                                      IS(CN_HTML_DOCTYPE),
                                      IS(CN_HTML_DOCTYPE)};
    struct cn_html_span span;
    uint32_t which = cn_js_to_uint32(ctx, cn_js_arg(1));
    struct cn_html_rewriter *rewriter = rewriter_at(
        ctx, cn_js_arg(0), which < CN_ARRAY_COUNT(tokens) ? tokens[which] : 0, exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    switch (which) {
    case 0: {
        struct cn_buf lower = {0};
        span = cn_html_tag_name(rewriter);
        for (size_t i = 0; i < span.size; i++)
            cn_buf_append_byte(&lower, cn_html_lower(span.at[i]));
        JSValueRef value = cn_js_text(ctx, (const char *)lower.data, lower.size);
        cn_buf_fini(&lower);
        return value;
    }
    case 1:
        return span_value(ctx, cn_html_text(rewriter));
    case 2:
        return cn_js_text_z(ctx, cn_html_namespace(rewriter));
    case 3:
        span = rewriter->token.name;
        break;
    case 4:
        span = rewriter->token.public_id;
        break;
    default:
        span = rewriter->token.system_id;
        break;
    }
    return span.at ? span_value(ctx, span) : JSValueMakeNull(ctx);
}

static JSValueRef native_html_removed(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = rewriter_at(ctx, cn_js_arg(0), ANY_TOKEN, exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    return JSValueMakeBoolean(ctx, cn_html_is_removed(rewriter));
}

/* htmlAttributes(rewriter): names and values by turns. */
static JSValueRef native_html_attributes(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = element_at(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    const struct cn_html_edit *edits;
    size_t count = cn_html_attributes(rewriter, &edits);
    JSObjectRef array = JSObjectMakeArray(ctx, 0, NULL, exception);
    for (size_t i = 0; array && i < count; i++) {
        struct cn_buf lower = {0};
        for (size_t k = 0; k < edits[i].name.size; k++)
            cn_buf_append_byte(&lower, cn_html_lower(edits[i].name.at[k]));
        JSObjectSetPropertyAtIndex(ctx, array, (unsigned)(2 * i),
                                   cn_js_text(ctx, (const char *)lower.data, lower.size), NULL);
        JSObjectSetPropertyAtIndex(ctx, array, (unsigned)(2 * i + 1),
                                   span_value(ctx, edits[i].value), NULL);
        cn_buf_fini(&lower);
    }
    return array;
}

static JSValueRef native_html_get_attribute(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = element_at(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    size_t size;
    char *name = cn_js_to_text(ctx, cn_js_arg(1), &size);
    const struct cn_html_edit *edit = cn_html_attribute_find(rewriter, name, size);
    cn_free(name);
    return edit ? span_value(ctx, edit->value) : JSValueMakeNull(ctx);
}

static JSValueRef native_html_set_attribute(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = element_at(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    struct cn_err err;
    size_t name_size, value_size;
    char *name = cn_js_to_text(ctx, cn_js_arg(1), &name_size);
    char *value = cn_js_to_text(ctx, cn_js_arg(2), &value_size);
    int rc = cn_html_attribute_set(rewriter, name, name_size, value, value_size, &err);
    cn_free(name);
    cn_free(value);
    return undefined_or_throw(ctx, rc, &err, exception);
}

static JSValueRef native_html_remove_attribute(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = element_at(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    size_t size;
    char *name = cn_js_to_text(ctx, cn_js_arg(1), &size);
    cn_html_attribute_remove(rewriter, name, size);
    cn_free(name);
    return JSValueMakeUndefined(ctx);
}

/* htmlSet(rewriter, which, text): 0 the name of a tag, 1 the text of a comment. */
static JSValueRef native_html_set(CN_JS_NATIVE_ARGS)
{
    bool name = cn_js_to_number(ctx, cn_js_arg(1)) == 0;
    struct cn_html_rewriter *rewriter = rewriter_at(
        ctx, cn_js_arg(0), name ? IS(CN_HTML_ELEMENT) | IS(CN_HTML_END_TAG) : IS(CN_HTML_COMMENT),
        exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    struct cn_err err;
    size_t size;
    char *text = cn_js_to_text(ctx, cn_js_arg(2), &size);
    int rc = name ? cn_html_set_name(rewriter, text, size, &err)
                  : cn_html_set_comment(rewriter, text, size, &err);
    cn_free(text);
    return undefined_or_throw(ctx, rc, &err, exception);
}

static JSValueRef native_html_insert(CN_JS_NATIVE_ARGS)
{
    static const unsigned tokens[] = {
        [CN_HTML_BEFORE] = ANY_TOKEN,
        [CN_HTML_AFTER] = ANY_TOKEN,
        [CN_HTML_PREPEND] = IS(CN_HTML_ELEMENT),
        [CN_HTML_APPEND] = IS(CN_HTML_ELEMENT) | IS(CN_HTML_DOCUMENT_END),
        [CN_HTML_REPLACE] = ANY_TOKEN,
        [CN_HTML_INNER] = IS(CN_HTML_ELEMENT),
    };
    uint32_t place = cn_js_to_uint32(ctx, cn_js_arg(1));
    struct cn_html_rewriter *rewriter = rewriter_at(
        ctx, cn_js_arg(0), place < CN_ARRAY_COUNT(tokens) ? tokens[place] : 0, exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    size_t size;
    char *text = cn_js_to_text(ctx, cn_js_arg(2), &size);
    cn_html_insert(rewriter, (enum cn_html_place)place, text, size,
                   JSValueToBoolean(ctx, cn_js_arg(3)));
    cn_free(text);
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_html_remove(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = rewriter_at(ctx, cn_js_arg(0), ANY_TOKEN, exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    cn_html_remove(rewriter, JSValueToBoolean(ctx, cn_js_arg(1)));
    return JSValueMakeUndefined(ctx);
}

static JSValueRef native_html_on_end_tag(CN_JS_NATIVE_ARGS)
{
    struct cn_html_rewriter *rewriter = element_at(ctx, cn_js_arg(0), exception);
    if (!rewriter)
        return JSValueMakeUndefined(ctx);
    struct cn_err err;
    int rc = cn_html_on_end_tag(rewriter, cn_js_to_uint32(ctx, cn_js_arg(1)), &err);
    return undefined_or_throw(ctx, rc, &err, exception);
}
