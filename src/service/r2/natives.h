/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/natives.h - what the files for R2 share: bodies that JavaScript holds. */
#ifndef CN_SERVICE_R2_NATIVES_H
#define CN_SERVICE_R2_NATIVES_H
#include <stdatomic.h>
#include <stdbool.h>

#include "js/handle.h"
#include "service/r2/r2.h"
#include "service/r2/r2_seal.h"

/* A body that can be read: counted, by its JavaScript object and by what reads it. */
struct cn_r2_reader {
    struct cn_js_handle handle;
    atomic_uint refs;
    struct cn_blobs *blobs;
    struct cn_r2_body body;
    uint8_t key[CN_R2_KEY_SIZE]; /* the customer's, if the body is encrypted */
};

/* Takes the body over. */
JSValueRef cn_r2_reader_make(JSContextRef ctx, struct cn_r2_body *body);
struct cn_r2_reader *cn_r2_reader_arg(JSContextRef ctx, JSValueRef value); /* NULL: it is none */
void cn_r2_reader_unref(struct cn_r2_reader *reader);

struct cn_blobs *cn_r2_blobs(JSContextRef ctx);
/* The id of a blob as r2Finish() gave it out; false: it is none. */
bool cn_r2_blob_arg(JSContextRef ctx, JSValueRef value, struct cn_blob_id *id);

#endif
