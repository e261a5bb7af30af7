/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/natives_body.c - bodies of R2 objects: into blobs and out of them, on the thread pool.
 *
 * A writer takes the pieces of one body (service/r2/r2_writer.h). One that is neither finished nor
 * abandoned is abandoned when the collector finds it.
 *
 * Ownership: a writer is counted, by its JavaScript object and by the work that runs on it. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bindings/service_call.h"
#include "service/r2/natives.h"
#include "border/r2/natives_body.h"
#include "js/handle.h"
#include "js/native.h"
#include "js/work.h"
#include "object/node.h"
#include "service/r2/r2.h"
#include "service/r2/r2_seal.h"
#include "service/r2/r2_writer.h"
#include "text/hex.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"

struct writer {
    struct cn_js_handle handle;
    atomic_uint refs;
    struct cn_r2_writer body;
    bool busy, over;
};

static void unref(struct writer *writer)
{
    if (atomic_fetch_sub(&writer->refs, 1) != 1)
        return;
    cn_r2_writer_fini(&writer->body);
    cn_free(writer);
}

static void free_writer(void *data)
{
    unref(data);
}
static const struct cn_js_handle_type writer_type = {.name = "R2Writer", .free = free_writer};

static void free_body(void *data)
{
    struct cn_r2_reader *reader = data;
    if (atomic_fetch_sub(&reader->refs, 1) != 1)
        return;
    cn_r2_body_fini(&reader->body);
    OPENSSL_cleanse(reader->key, sizeof(reader->key));
    cn_free(reader);
}
static const struct cn_js_handle_type reader_type = {.name = "R2Body", .free = free_body};

struct cn_blobs *cn_r2_blobs(JSContextRef ctx)
{
    struct cn_instance *instance = cn_runtime_of(ctx)->data;
    return ((struct cn_services *)cn_node_data(instance->lane->options.node))->blobs;
}

/* --- writing --------------------------------------------------------------------------------- */

/* r2Writer(ns, sha | undefined, blobOnly, key | undefined) -> writer; sha is OpenSSL's name */
static JSValueRef native_r2_writer(CN_JS_NATIVE_ARGS)
{
    struct cn_namespace *ns = cn_jsservice_namespace(ctx, cn_js_arg(0), "$r2/", exception);
    if (!ns)
        return JSValueMakeUndefined(ctx);
    struct writer *writer = CN_NEW(struct writer);
    atomic_init(&writer->refs, 1);
    char *sha = JSValueIsString(ctx, cn_js_arg(1)) ? cn_js_to_text(ctx, cn_js_arg(1), NULL) : NULL;
    uint8_t *key;
    size_t key_size;
    bool sealed = cn_js_bytes(ctx, cn_js_arg(3), &key, &key_size) && key_size == CN_R2_KEY_SIZE;
    cn_r2_writer_init(&writer->body, ns, sha, JSValueToBoolean(ctx, cn_js_arg(2)),
                      sealed ? key : NULL);
    cn_free(sha);
    return cn_js_handle_make(ctx, &writer->handle, &writer_type, sizeof(*writer) + 65536);
}

struct write_work {
    struct cn_js_work work;
    struct writer *writer;
    uint8_t *bytes; /* owned */
    size_t size;
    bool finish;
    int rc;
    struct cn_r2_written written;
    struct cn_err err;
};

/* On the pool, or on the lane while all of it is in memory. */
static void run_write(struct cn_js_work *work)
{
    struct write_work *write = (struct write_work *)work;
    struct cn_r2_writer *body = &write->writer->body;
    write->rc = cn_r2_writer_append(body, write->bytes, write->size, &write->err);
    if (write->rc == 0 && write->finish)
        write->rc = cn_r2_writer_finish(body, &write->written, &write->err);
}

/* [blob | null, size, md5, sha | undefined, bytes | undefined] */
static JSValueRef finished(JSContextRef ctx, struct write_work *write)
{
    const struct cn_r2_writer *body = &write->writer->body;
    const struct cn_r2_written *written = &write->written;
    char blob[2 * CN_BLOB_ID_SIZE + 1], md5[2 * CN_R2_DIGEST_MAX + 1],
        sha[2 * CN_R2_DIGEST_MAX + 1];
    cn_hex_encode(written->blob.bytes, CN_BLOB_ID_SIZE, blob);
    cn_hex_encode(written->md5, written->md5_size, md5);
    cn_hex_encode(written->sha, written->sha_size, sha);
    JSValueRef values[] = {
        written->in_blob ? cn_js_text_z(ctx, blob) : JSValueMakeNull(ctx),
        JSValueMakeNumber(ctx, (double)body->size),
        cn_js_text_z(ctx, md5),
        body->sha ? cn_js_text_z(ctx, sha) : JSValueMakeUndefined(ctx),
        written->in_blob ? JSValueMakeUndefined(ctx)
                         : cn_js_uint8array(ctx, body->head.data, body->head.size),
    };
    return JSObjectMakeArray(ctx, 5, values, NULL);
}

static JSValueRef finish_write(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct write_work *write = (struct write_work *)work;
    JSValueRef value = NULL;
    write->writer->busy = false;
    if (ctx && write->rc < 0)
        value = *exception = cn_js_error(ctx, CN_JS_ERROR, "%s", write->err.text);
    else if (ctx)
        value = write->finish ? finished(ctx, write) : JSValueMakeUndefined(ctx);
    else if (write->finish && write->rc == 0 && write->written.in_blob)
        (void)cn_blob_delete(write->writer->body.blobs, &write->written.blob,
                             NULL); /* nobody will refer to it */
    cn_free(write->bytes);
    unref(write->writer);
    return value;
}

static JSValueRef start_write(JSContextRef ctx, struct writer *writer, const uint8_t *bytes,
                              size_t size, bool finish)
{
    struct write_work *write = CN_NEW(struct write_work);
    write->work.run = run_write;
    write->work.finish = finish_write;
    write->writer = writer;
    write->bytes = cn_memdup(bytes, size);
    write->size = write->work.given = size;
    write->finish = finish;
    writer->busy = true;
    atomic_fetch_add(&writer->refs, 1);
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    return cn_js_work_start(runtime->context, runtime->loop, &write->work);
}

static struct writer *writer_arg(JSContextRef ctx, JSValueRef value, JSValueRef *exception)
{
    struct writer *writer = cn_js_handle_find(ctx, value, &writer_type);
    if (writer && !writer->busy && !writer->over)
        return writer;
    cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2: the writer is in use");
    return NULL;
}

/* r2Write(writer, bytes) -> undefined: taken; or a promise to wait for before the next */
static JSValueRef native_r2_write(CN_JS_NATIVE_ARGS)
{
    struct writer *writer = writer_arg(ctx, cn_js_arg(0), exception);
    uint8_t *bytes;
    size_t size;
    if (!writer)
        return JSValueMakeUndefined(ctx);
    if (!cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2: not a buffer");
    if (!cn_r2_writer_in_memory(&writer->body, size))
        return start_write(ctx, writer, bytes, size, false);
    struct cn_err err;
    (void)cn_r2_writer_append(&writer->body, bytes, size, &err); /* it cannot fail */
    return JSValueMakeUndefined(ctx);
}

/* r2Finish(writer, bytes | undefined) -> a promise of what finished() makes, or itself */
static JSValueRef native_r2_finish(CN_JS_NATIVE_ARGS)
{
    struct writer *writer = writer_arg(ctx, cn_js_arg(0), exception);
    uint8_t *bytes = (uint8_t *)"";
    size_t size = 0;
    if (!writer)
        return JSValueMakeUndefined(ctx);
    (void)cn_js_bytes(ctx, cn_js_arg(1), &bytes, &size); /* undefined: none */
    if (!cn_r2_writer_in_memory(&writer->body, size)) {
        JSValueRef promise = start_write(ctx, writer, bytes, size, true);
        writer->over = true;
        return promise;
    }
    struct write_work now = {.writer = writer, .bytes = bytes, .size = size, .finish = true};
    writer->over = true;
    run_write(&now.work);
    return finished(ctx, &now);
}

/* r2Abandon(writer) */
static JSValueRef native_r2_abandon(CN_JS_NATIVE_ARGS)
{
    struct writer *writer = cn_js_handle_find(ctx, cn_js_arg(0), &writer_type);
    if (writer && !writer->busy && writer->body.blob) {
        cn_r2_writer_abandon(&writer->body);
        writer->over = true;
    }
    return JSValueMakeUndefined(ctx);
}

bool cn_r2_blob_arg(JSContextRef ctx, JSValueRef value, struct cn_blob_id *id)
{
    char text[2 * CN_BLOB_ID_SIZE + 1];
    if (!JSValueIsString(ctx, value))
        return false;
    JSStringRef string = JSValueToStringCopy(ctx, value, NULL);
    bool ok = JSStringGetUTF8CString(string, text, sizeof(text)) == sizeof(text);
    JSStringRelease(string);
    for (size_t i = 0; ok && i < CN_BLOB_ID_SIZE; i++) {
        unsigned byte;
        ok = sscanf(text + 2 * i, "%2x", &byte) == 1;
        id->bytes[i] = (uint8_t)byte;
    }
    return ok;
}

/* r2Begun(writer) -> the id of the blob that it has begun, or undefined: all is in memory */
static JSValueRef native_r2_begun(CN_JS_NATIVE_ARGS)
{
    struct writer *writer = cn_js_handle_find(ctx, cn_js_arg(0), &writer_type);
    char blob[2 * CN_BLOB_ID_SIZE + 1];
    if (!writer || !(writer->busy || !cn_r2_writer_in_memory(&writer->body, 0)))
        return JSValueMakeUndefined(ctx);
    cn_hex_encode(writer->body.id.bytes, CN_BLOB_ID_SIZE, blob);
    return cn_js_text_z(ctx, blob);
}

/* r2Md5(bytes) -> in hexadecimal */
static JSValueRef native_r2_md5(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes, md5[EVP_MAX_MD_SIZE];
    size_t size;
    unsigned md5_size;
    char text[2 * EVP_MAX_MD_SIZE + 1];
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2: not a buffer");
    EVP_Digest(bytes, size, md5, &md5_size, EVP_md5(), NULL);
    cn_hex_encode(md5, md5_size, text);
    return cn_js_text_z(ctx, text);
}

/* --- reading --------------------------------------------------------------------------------- */

JSValueRef cn_r2_reader_make(JSContextRef ctx, struct cn_r2_body *body)
{
    struct cn_r2_reader *reader = CN_NEW(struct cn_r2_reader);
    atomic_init(&reader->refs, 1);
    reader->blobs = cn_r2_blobs(ctx);
    reader->body = *body;
    *body = (struct cn_r2_body){0};
    return cn_js_handle_make(ctx, &reader->handle, &reader_type, sizeof(*reader));
}

struct cn_r2_reader *cn_r2_reader_arg(JSContextRef ctx, JSValueRef value)
{
    return cn_js_handle_find(ctx, value, &reader_type);
}

void cn_r2_reader_unref(struct cn_r2_reader *reader)
{
    free_body(reader);
}

/* r2Unlock(body, key): it is read with the customer's key */
static JSValueRef native_r2_unlock(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_reader *reader = cn_r2_reader_arg(ctx, cn_js_arg(0));
    uint8_t *key;
    size_t size;
    if (!reader || !cn_js_bytes(ctx, cn_js_arg(1), &key, &size) || size != CN_R2_KEY_SIZE)
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2Unlock: bad arguments");
    memcpy(reader->key, key, size);
    reader->body.key = reader->key;
    reader->body.unseal = cn_r2_unseal;
    return JSValueMakeUndefined(ctx);
}

struct read_work {
    struct cn_js_work work;
    struct cn_r2_reader *reader; /* a reference */
    uint8_t *bytes;
    uint64_t offset;
    size_t size;
    int64_t result;
    struct cn_err err;
};

static void run_read(struct cn_js_work *work)
{
    struct read_work *read = (struct read_work *)work;
    read->bytes = cn_try_alloc_large(read->size); /* now: those that wait their turn hold nothing */
    if (!read->bytes) {
        read->result = cn_err_set(&read->err, CN_ENOMEM, "the body does not fit into memory");
        return;
    }
    read->result = cn_r2_read(read->reader->blobs, &read->reader->body, read->bytes, read->size,
                              read->offset, &read->err);
}

static JSValueRef finish_read(struct cn_js_work *work, JSContextRef ctx, JSValueRef *exception)
{
    struct read_work *read = (struct read_work *)work;
    JSValueRef value = NULL;
    if (ctx && read->result >= 0)
        value = cn_js_uint8array_take(ctx, read->bytes, (size_t)read->result);
    else
        cn_free(read->bytes);
    if (ctx && !value)
        value = *exception = cn_js_error(ctx, CN_JS_ERROR, "%s", read->err.text);
    cn_r2_reader_unref(read->reader);
    return value;
}

/* r2Read(body, offset, size) -> a promise of so many bytes */
static JSValueRef native_r2_read(CN_JS_NATIVE_ARGS)
{
    struct cn_r2_reader *reader = cn_r2_reader_arg(ctx, cn_js_arg(0));
    double offset = cn_js_to_number(ctx, cn_js_arg(1)), size = cn_js_to_number(ctx, cn_js_arg(2));
    if (!reader || !(offset >= 0) || !(size > 0))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "r2Read: bad arguments");
    struct read_work *read = CN_NEW(struct read_work);
    read->work.run = run_read;
    read->work.finish = finish_read;
    read->reader = reader;
    read->offset = (uint64_t)offset;
    read->size = read->work.made = (size_t)size;
    atomic_fetch_add(&reader->refs, 1);
    struct cn_runtime *runtime = cn_runtime_of(ctx);
    return cn_js_work_start(runtime->context, runtime->loop, &read->work);
}
