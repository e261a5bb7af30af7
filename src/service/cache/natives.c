/* SPDX-License-Identifier: Apache-2.0 */
/* service/cache/natives.c - the cache (service/cache/cache.h) for prelude/web/cache.js. A key is
 * the cache's name and the URL; each worker has its own. */
#include "border/cache/natives.h"
#include "service/cache/cache.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bindings/service_call.h"
#include "js/handle.h"
#include "js/native.h"
#include "js/work.h"
#include "object/node.h"
#include "service/node_calls.h"
#include "worker/instance.h"
#include "worker/runtime.h"
#include "worker/script.h"

struct held {
    struct cn_js_handle handle;
    struct cn_cache_entry *entry; /* a reference */
};

static void free_held(void *data)
{
    cn_cache_entry_unref(((struct held *)data)->entry);
    cn_free(data);
}
static const struct cn_js_handle_type held_type = {.name = "CacheEntry", .free = free_held};

static int64_t now_ms(void)
{
    return cn_clock_wall_ms(cn_clock_system());
}

/* The worker's name, then (unless NULL) what the prelude made of cache and URL. */
static void make_key(JSContextRef ctx, JSValueRef value, struct cn_buf *key)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    if (instance)
        cn_buf_append_str(key, instance->script->name);
    cn_buf_append_byte(key, 0);
    if (value)
        cn_js_append_utf8(ctx, value, key);
}

/* cacheGet(key) -> undefined, or [status, head, stored, size, bytes | entry] */
static JSValueRef native_cache_get(CN_JS_NATIVE_ARGS)
{
    struct cn_buf key = {0};
    make_key(ctx, cn_js_arg(0), &key);
    struct cn_cache_entry *entry = cn_cache_find(key.data, key.size, now_ms());
    cn_buf_fini(&key);
    if (!entry)
        return JSValueMakeUndefined(ctx);
    JSValueRef values[5] = {
        JSValueMakeNumber(ctx, entry->status),
        cn_js_latin1(ctx, (const uint8_t *)entry->head, entry->head_size),
        JSValueMakeNumber(ctx, (double)entry->stored_ms),
        JSValueMakeNumber(ctx, (double)entry->size),
    };
    if (entry->fd < 0) {
        values[4] = cn_js_uint8array(ctx, entry->body, (size_t)entry->size);
        cn_cache_entry_unref(entry);
    } else {
        struct held *held = CN_NEW(struct held);
        held->entry = entry;
        values[4] = cn_js_handle_make(ctx, &held->handle, &held_type, sizeof(*held));
    }
    return JSObjectMakeArray(ctx, 5, values, exception);
}

/* cacheDelete(key) -> whether it was there */
static JSValueRef native_cache_delete(CN_JS_NATIVE_ARGS)
{
    struct cn_buf key = {0};
    make_key(ctx, cn_js_arg(0), &key);
    bool found = cn_cache_remove(key.data, key.size, now_ms());
    cn_buf_fini(&key);
    return JSValueMakeBoolean(ctx, found);
}

#define TEXTS_MAX 10000

/* The texts of an array, each with its NUL; the prelude has seen to it that none has one inside. */
static void append_texts(JSContextRef ctx, JSValueRef value, struct cn_buf *out)
{
    if (!JSValueIsObject(ctx, value))
        return;
    unsigned count = cn_js_length(ctx, value, TEXTS_MAX);
    for (unsigned i = 0; i < count; i++) {
        cn_js_append_utf8(ctx, cn_js_at(ctx, value, i), out);
        cn_buf_append_byte(out, 0);
    }
}

/* Up to some thousand years. */
static int64_t seconds_ms(JSContextRef ctx, JSValueRef value)
{
    double ms = cn_js_to_number(ctx, value) * 1000;
    return ms > 1e14 ? (int64_t)1e14 : ms > 0 ? (int64_t)ms : 0;
}

/* cachePut(key, status, head, seconds, bytes | entry, place, tags: string[]) -> false: it is too
 * large */
static JSValueRef native_cache_put(CN_JS_NATIVE_ARGS)
{
    struct cn_buf key = {0}, head = {0};
    make_key(ctx, cn_js_arg(0), &key);
    struct cn_cache_entry *entry = cn_cache_entry_new(key.data, key.size);
    cn_buf_fini(&key);
    entry->status = cn_js_to_int32(ctx, cn_js_arg(1));
    cn_js_append_latin1(ctx, cn_js_arg(2), &head);
    entry->head_size = head.size;
    entry->head = (char *)cn_buf_take(&head);
    entry->stored_ms = now_ms();
    entry->expires_ms = entry->stored_ms + seconds_ms(ctx, cn_js_arg(3));
    entry->place = cn_js_to_text(ctx, cn_js_arg(5), NULL);
    struct cn_buf tags = {0};
    append_texts(ctx, cn_js_arg(6), &tags);
    entry->tags_size = tags.size;
    entry->tags = (char *)cn_buf_take(&tags);
    uint8_t *bytes;
    size_t size;
    struct held *held = cn_js_handle_find(ctx, cn_js_arg(4), &held_type);
    if (held) { /* a file that cacheWrite() has filled: it changes hands */
        entry->fd = held->entry->fd;
        entry->size = held->entry->size;
        held->entry->fd = -1;
        held->entry->size = 0;
    } else if (cn_js_bytes(ctx, cn_js_arg(4), &bytes, &size)) {
        entry->body = cn_memdup(bytes, size);
        entry->size = size;
    }
    return JSValueMakeBoolean(ctx, cn_cache_put(entry));
}

/* Who waits for other nodes. */
struct purging {
    struct cn_js_pin callback;
};

static void on_purged(void *data, unsigned failed, const struct cn_err *err)
{
    struct purging *purging = data;
    if (cn_js_enter_pin(&purging->callback)) {
        struct cn_js_context *context = purging->callback.context;
        JSValueRef argv[1] = {failed ? cn_js_text_z(context->ref, err->text)
                                     : JSValueMakeUndefined(context->ref)};
        cn_js_invoke(context->ref, purging->callback.value, 1, argv, NULL);
        cn_js_pin_clear(&purging->callback);
        cn_js_leave(context);
    } else {
        cn_js_pin_clear(&purging->callback);
    }
    cn_free(purging);
}

/* H3 of cache.h. False: there are no other nodes. */
static bool purge_others(JSContextRef ctx, const struct cn_cache_purge *purge, JSValueRef callback)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    struct cn_object_lane *lane = instance ? cn_jsservice_lane(ctx) : NULL;
    if (!lane || !lane->node || !((struct cn_services *)cn_node_data(lane->node))->others)
        return false;
    struct cn_buf bytes = {0};
    cn_cache_purge_put(purge, &bytes);
    struct purging *purging = CN_NEW(struct purging);
    cn_js_pin_set(&purging->callback, cn_js_context_of(ctx), callback);
    bool asked =
        bytes.size <= CN_OTHERS_SIZE_MAX &&
        cn_node_calls_tell(lane, &cn_service_cache, bytes.data, bytes.size, on_purged, purging);
    if (!asked) {
        cn_js_pin_clear(&purging->callback);
        cn_free(purging);
    }
    cn_buf_fini(&bytes);
    return asked;
}

/* cachePurge(tags: string[], paths: string[], everything, callback): of this worker, whatever the
 * cache. True: it is done; else callback(undefined), or callback(why a node has not done it). */
static JSValueRef native_cache_purge(CN_JS_NATIVE_ARGS)
{
    struct cn_buf prefix = {0}, tags = {0}, paths = {0};
    make_key(ctx, NULL, &prefix);
    append_texts(ctx, cn_js_arg(0), &tags);
    append_texts(ctx, cn_js_arg(1), &paths);
    struct cn_cache_purge purge = {
        .prefix = (const char *)prefix.data,
        .prefix_size = prefix.size,
        .tags = (const char *)tags.data,
        .tags_size = tags.size,
        .paths = (const char *)paths.data,
        .paths_size = paths.size,
        .everything = JSValueToBoolean(ctx, cn_js_arg(2)),
    };
    cn_cache_purge(&purge);
    bool asked = purge_others(ctx, &purge, cn_js_arg(3));
    cn_buf_fini(&prefix);
    cn_buf_fini(&tags);
    cn_buf_fini(&paths);
    return JSValueMakeBoolean(ctx, !asked);
}

/* --- bodies on disk -------------------------------------------------------------------------- */

/* cacheFile() -> an entry to be filled, or undefined: there is no disk for it */
static JSValueRef native_cache_file(CN_JS_NATIVE_ARGS)
{
    int fd = cn_cache_file();
    if (fd < 0)
        return JSValueMakeUndefined(ctx);
    struct held *held = CN_NEW(struct held);
    held->entry = cn_cache_entry_new("", 0);
    held->entry->fd = fd;
    return cn_js_handle_make(ctx, &held->handle, &held_type, sizeof(*held));
}

struct file_work {
    struct cn_js_work work;
    struct cn_cache_entry *entry; /* a reference */
    uint8_t *bytes;               /* owned */
    size_t size;
    uint64_t offset;
    bool writes;
    ssize_t result;
};

static void run_file(struct cn_js_work *work)
{
    struct file_work *file = (struct file_work *)work;
    size_t done = 0;
    if (!file->writes)
        file->bytes = cn_try_alloc_large(file->size);
    while (file->bytes && done < file->size) {
        ssize_t part = file->writes ? pwrite(file->entry->fd, file->bytes + done, file->size - done,
                                             (off_t)(file->offset + done))
                                    : pread(file->entry->fd, file->bytes + done, file->size - done,
                                            (off_t)(file->offset + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            break;
        done += (size_t)part;
    }
    file->result = done == file->size ? 0 : -1;
}

static JSValueRef finish_file(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct file_work *file = (struct file_work *)work;
    JSValueRef value = NULL;
    if (ctx && file->result < 0)
        value = *exception = cn_js_error(ctx, CN_JS_ERROR, "the cache's file cannot be %s",
                                         file->writes ? "written" : "read");
    else if (ctx)
        value = file->writes ? JSValueMakeUndefined(ctx)
                             : cn_js_uint8array_take(ctx, file->bytes, file->size);
    if (file->writes || !ctx || file->result < 0)
        cn_free(file->bytes);
    cn_cache_entry_unref(file->entry);
    return value;
}

static JSValueRef start_file(JSContextRef ctx, struct cn_cache_entry *entry, uint8_t *bytes,
                             size_t size, uint64_t offset, bool writes)
{
    struct file_work *file = CN_NEW(struct file_work);
    file->work.run = run_file;
    file->work.finish = finish_file;
    atomic_fetch_add(&entry->refs, 1);
    file->entry = entry;
    file->bytes = bytes;
    file->size = size;
    *(writes ? &file->work.given : &file->work.made) = size;
    file->offset = offset;
    file->writes = writes;
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    return cn_js_work_start(runtime->context, runtime->loop, &file->work);
}

/* cacheWrite(entry, bytes) -> a promise: appended */
static JSValueRef native_cache_write(CN_JS_NATIVE_ARGS)
{
    struct held *held = cn_js_handle_find(ctx, cn_js_arg(0), &held_type);
    uint8_t *bytes;
    size_t size;
    if (!held || !cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "cacheWrite: bad arguments");
    uint64_t offset = held->entry->size;
    held->entry->size += size;
    return start_file(ctx, held->entry, cn_memdup(bytes, size), size, offset, true);
}

/* cacheRead(entry, offset, size) -> a promise of bytes */
static JSValueRef native_cache_read(CN_JS_NATIVE_ARGS)
{
    struct held *held = cn_js_handle_find(ctx, cn_js_arg(0), &held_type);
    double offset = cn_js_to_number(ctx, cn_js_arg(1)), size = cn_js_to_number(ctx, cn_js_arg(2));
    if (!held || !(offset >= 0) || !(size > 0) || size > CN_CACHE_BODY_MAX)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "cacheRead: bad arguments");
    return start_file(ctx, held->entry, NULL, (size_t)size, (uint64_t)offset, false);
}
