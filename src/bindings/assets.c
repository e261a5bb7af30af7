/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/assets.c - env.ASSETS.fetch(): the project's static files (assets/assets.h). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "assets/assets.h"
#include "base/buf.h"
#include "base/mem.h"
#include "border/assets.h"
#include "js/native.h"
#include "js/work.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"
#include "worker/script.h"

static struct cn_assets *assets_of(JSContextRef ctx)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    return instance->script->assets;
}

/* "name\nvalue\nname\nvalue\n" */
static struct cn_http_text find_header(void *data, const char *lower_name)
{
    struct cn_buf *lines = data;
    const char *at = (const char *)lines->data, *end = at + lines->size;
    size_t name_size = strlen(lower_name);
    while (at < end) {
        const char *value = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        const char *stop = memchr(value, '\n', (size_t)(end - value));
        if ((size_t)(value - 1 - at) == name_size && memcmp(at, lower_name, name_size) == 0)
            return (struct cn_http_text){value, (size_t)(stop - value)};
        at = stop + 1;
    }
    return (struct cn_http_text){0};
}

static struct cn_http_text text_of(struct cn_buf *buf)
{
    return (struct cn_http_text){cn_buf_text(buf), buf->size};
}

static void push(JSContextRef ctx, JSObjectRef list, unsigned index, JSValueRef value)
{
    JSObjectSetPropertyAtIndex(ctx, list, index, value, NULL);
}

/* assetFind(path) -> undefined (there is no such file), or [etag, type, body, size]; type is null
 * where it is not known; body is bytes, or undefined: read it with assetRead(path, ...) */
static JSValueRef native_asset_find(CN_JS_NATIVE_ARGS)
{
    struct cn_assets *assets = assets_of(ctx);
    struct cn_buf path = {0};
    if (!assets)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "There is no such binding.");
    cn_js_append_utf8(ctx, cn_js_arg(0), &path);
    const struct cn_asset *asset = cn_assets_find(assets, cn_buf_text(&path), path.size);
    cn_buf_fini(&path);
    if (!asset)
        return JSValueMakeUndefined(ctx);
    JSObjectRef list = JSObjectMakeArray(ctx, 0, NULL, exception);
    push(ctx, list, 0, cn_js_text_z(ctx, asset->etag));
    push(ctx, list, 1, asset->type ? cn_js_text_z(ctx, asset->type) : JSValueMakeNull(ctx));
    push(ctx, list, 2,
         asset->bytes || !asset->size ? cn_js_uint8array(ctx, asset->bytes, (size_t)asset->size)
                                      : JSValueMakeUndefined(ctx));
    push(ctx, list, 3, JSValueMakeNumber(ctx, (double)asset->size));
    return list;
}

/* assetFetch(method, host, target, headers) -> undefined (nothing answers it), or
 * [status, body, path, offset, size, name, value, name, value...]; body is null (none), bytes, or
 * undefined: read it with assetRead(path, ...) */
static JSValueRef native_asset_fetch(CN_JS_NATIVE_ARGS)
{
    struct cn_assets *assets = assets_of(ctx);
    if (!assets)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "There is no such binding.");
    struct cn_buf texts[4] = {0};
    for (int i = 0; i < 4; i++) {
        if (i == 3)
            cn_js_append_latin1(ctx, cn_js_arg(i), &texts[i]);
        else
            cn_js_append_utf8(ctx, cn_js_arg(i), &texts[i]);
    }
    struct cn_asset_request request = {
        .method = text_of(&texts[0]),
        .host = text_of(&texts[1]),
        .target = text_of(&texts[2]),
        .header = find_header,
        .data = &texts[3],
        .from_worker = true,
    };
    struct cn_asset_answer answer;
    JSValueRef result = JSValueMakeUndefined(ctx);
    if (cn_assets_answer(assets, &request, &answer)) {
        JSObjectRef list = JSObjectMakeArray(ctx, 0, NULL, exception);
        const struct cn_asset *asset = answer.asset;
        bool head = request.method.size == 4;
        push(ctx, list, 0, JSValueMakeNumber(ctx, answer.status));
        push(ctx, list, 1,
             !asset || head ? JSValueMakeNull(ctx)
             : asset->bytes
                 ? cn_js_uint8array(ctx, asset->bytes + answer.offset, (size_t)answer.size)
                 : JSValueMakeUndefined(ctx));
        push(ctx, list, 2, asset ? cn_js_text_z(ctx, asset->path) : JSValueMakeNull(ctx));
        push(ctx, list, 3, JSValueMakeNumber(ctx, (double)answer.offset));
        push(ctx, list, 4, JSValueMakeNumber(ctx, (double)answer.size));
        for (unsigned i = 0; i < answer.header_count; i++) {
            const struct cn_http_header *header = &answer.headers[i];
            push(ctx, list, 5 + 2 * i, cn_js_text(ctx, header->name, header->name_size));
            push(ctx, list, 6 + 2 * i,
                 cn_js_latin1(ctx, (const uint8_t *)header->value, header->value_size));
        }
        result = list;
    }
    cn_asset_answer_fini(&answer);
    for (int i = 0; i < 4; i++)
        cn_buf_fini(&texts[i]);
    return result;
}

struct read_work {
    struct cn_js_work work;
    struct cn_assets *assets; /* a reference */
    const struct cn_asset *asset;
    uint8_t *bytes;
    uint64_t offset;
    size_t size;
    ssize_t result;
};

static void run_read(struct cn_js_work *work)
{
    struct read_work *read = (struct read_work *)work;
    bool same;
    uint64_t begin, size;
    read->bytes = cn_alloc(read->size);
    int fd = cn_asset_open(read->assets, read->asset, &same, &begin, &size);
    read->result = -1;
    if (fd < 0)
        return;
    if (same) {
        uint64_t left = read->offset < size ? size - read->offset : 0;
        read->result = pread(fd, read->bytes, read->size < left ? read->size : (size_t)left,
                             (off_t)(begin + read->offset));
    }
    close(fd);
}

static JSValueRef finish_read(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct read_work *read = (struct read_work *)work;
    JSValueRef value = NULL;
    if (ctx && read->result > 0)
        value = cn_js_uint8array_take(ctx, read->bytes, (size_t)read->result);
    else
        cn_free(read->bytes);
    if (ctx && !value)
        value = *exception = cn_js_error(
            ctx, CN_JS_ERROR, "the asset %s has changed since it was deployed", read->asset->path);
    cn_assets_unref(read->assets);
    return value;
}

/* assetRead(path, offset, size) -> a promise of at most so many bytes */
static JSValueRef native_asset_read(CN_JS_NATIVE_ARGS)
{
    struct cn_assets *assets = assets_of(ctx);
    if (!assets)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "There is no such binding.");
    size_t path_size;
    char *path = cn_js_to_text(ctx, cn_js_arg(0), &path_size);
    const struct cn_asset *asset = cn_assets_find(assets, path, path_size);
    cn_free(path);
    double offset = cn_js_to_number(ctx, cn_js_arg(1)), size = cn_js_to_number(ctx, cn_js_arg(2));
    if (!asset || !(offset >= 0) || !(size > 0 && size <= CN_ASSET_SIZE_MAX))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "assetRead: bad arguments");
    struct read_work *read = CN_NEW(struct read_work);
    read->work.run = run_read;
    read->work.finish = finish_read;
    read->assets = cn_assets_ref(assets);
    read->asset = asset;
    read->offset = (uint64_t)offset;
    read->size = read->work.made = (size_t)size;
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    return cn_js_work_start(runtime->context, runtime->loop, &read->work);
}
