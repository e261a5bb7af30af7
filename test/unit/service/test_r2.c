/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a bucket without JavaScript: what it refers to, what becomes garbage and when it
 * goes, restart. */
#include "service/r2.h"

#include <string.h>

#include "base/mem.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct service_rig rig;

static struct cn_blob_id make_blob(const char *text)
{
    struct cn_blob_writer *writer;
    struct cn_blob_id id;
    struct cn_err err;
    CHECK_INT(0, cn_blob_create(rig.services.blobs, &writer, &err));
    CHECK_INT(0, cn_blob_write(writer, text, strlen(text), &err));
    CHECK_INT(0, cn_blob_finish(writer, &id, &err));
    return id;
}

static bool has_blob(const struct cn_blob_id *id)
{
    struct cn_blob_reader *reader;
    struct cn_err err;
    if (cn_blob_open(rig.services.blobs, id, &reader, &err) < 0)
        return false;
    cn_blob_close(reader);
    return true;
}

static struct cn_r2_call *new_call(enum cn_r2_op op, const char *key)
{
    struct cn_r2_call *call = cn_r2_call_new(rig.ns, op);
    cn_buf_append_str(&call->key, key);
    return call;
}

/* Puts a blob under the key; false: a condition did not hold. */
static bool put(const char *key, const struct cn_blob_id *blob, size_t size, const char *match)
{
    struct cn_r2_call *call = new_call(CN_R2_PUT, key);
    call->body.segments = CN_NEW(struct cn_r2_segment);
    *call->body.segments = (struct cn_r2_segment){*blob, size};
    call->body.count = 1;
    call->body.size = size;
    call->etag = cn_strdup("e");
    call->only_if.match = match ? cn_strdup(match) : NULL;
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.err.code);
    bool held = !call->failed;
    cn_service_call_free(&call->base);
    return held;
}

static void check_body(const char *key, const char *want)
{
    struct cn_r2_call *call = new_call(CN_R2_GET, key);
    char text[64] = "";
    struct cn_err err;
    service_rig_call(&rig, &call->base);
    CHECK(call->found == (want != NULL));
    if (want) {
        CHECK_INT((int64_t)strlen(want),
                  cn_r2_read(rig.services.blobs, &call->body, text, sizeof(text), 0, &err));
        CHECK_STR(want, text);
        CHECK_INT(2, cn_r2_read(rig.services.blobs, &call->body, text, 2, 1, &err));
        CHECK(memcmp(text, want + 1, 2) == 0);
        CHECK_INT(0, cn_r2_read(rig.services.blobs, &call->body, text, 2, strlen(want), &err));
    }
    cn_service_call_free(&call->base);
}

static void delete_key(const char *key)
{
    struct cn_r2_call *call = new_call(CN_R2_DELETE, key);
    cn_buf_append_byte(&call->key, 0);
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.err.code);
    cn_service_call_free(&call->base);
}

/* Lets the alarm fire and its work on the pool end. */
static void wait_gone(const struct cn_blob_id *id)
{
    service_rig_advance(&rig, CN_R2_GRACE_MS + 1);
    for (int i = 0; i < 2000 && has_blob(id); i++) {
        uv_sleep(1);
        service_rig_advance(&rig, 1);
    }
    CHECK(!has_blob(id));
}

TEST(r2, a_body_that_is_replaced_goes_after_the_grace)
{
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_blob_id one = make_blob("first"), two = make_blob("second");
    CHECK(put("k", &one, 5, NULL));
    check_body("k", "first");
    CHECK(put("k", &two, 6, NULL));
    check_body("k", "second");
    CHECK(has_blob(&one)); /* somebody may be reading it */
    wait_gone(&one);
    CHECK(has_blob(&two));
    delete_key("k");
    check_body("k", NULL);
    wait_gone(&two);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(r2, a_put_whose_condition_fails_leaves_nothing_behind)
{
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_blob_id one = make_blob("kept"), two = make_blob("refused");
    CHECK(put("k", &one, 4, NULL));
    CHECK(!put("k", &two, 7, "other"));
    check_body("k", "kept");
    wait_gone(&two);
    CHECK(has_blob(&one));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(r2, garbage_is_remembered_over_a_restart)
{
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test");
    struct cn_blob_id one = make_blob("first"), two = make_blob("second");
    CHECK(put("k", &one, 5, NULL));
    CHECK(put("k", &two, 6, NULL));
    service_rig_close(&rig);
    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test");
    check_body("k", "second");
    CHECK(has_blob(&one));
    wait_gone(&one);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}
