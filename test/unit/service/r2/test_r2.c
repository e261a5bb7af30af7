/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a bucket without JavaScript: what it refers to, what becomes garbage and when it
 * goes, restart. */
#include "service/r2/r2.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "object/alarm.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

#define ETAG "0123456789abcdef0123456789abcdef"

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

static void note(enum cn_r2_op op, const struct cn_blob_id *blob)
{
    struct cn_r2_call *call = cn_r2_call_new(rig.ns, op);
    call->body.segments = CN_NEW(struct cn_r2_segment);
    call->body.segments->blob = *blob;
    call->body.count = 1;
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    cn_service_call_free(&call->base);
}

/* Puts a blob under the key; false: a condition did not hold. `want`: the error. */
static bool put_noted(const char *key, const struct cn_blob_id *blob, size_t size,
                      const char *match, int want)
{
    struct cn_r2_call *call = new_call(CN_R2_PUT, key);
    call->body.segments = CN_NEW(struct cn_r2_segment);
    *call->body.segments = (struct cn_r2_segment){*blob, size};
    call->body.count = 1;
    call->body.size = size;
    call->etag = cn_strdup("e");
    call->only_if.match = match ? cn_strdup(match) : NULL;
    service_rig_call(&rig, &call->base);
    CHECK_INT(want, call->base.call.envelope.err.code);
    bool held = !call->failed;
    cn_service_call_free(&call->base);
    return held;
}

/* The same of one that the index has not been told of yet. */
static bool put(const char *key, const struct cn_blob_id *blob, size_t size, const char *match)
{
    note(CN_R2_ANNOUNCE, blob);
    return put_noted(key, blob, size, match, 0);
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
    CHECK_INT(0, call->base.call.envelope.err.code);
    cn_service_call_free(&call->base);
}

static bool alarm_runs(void)
{
    size_t running, due;
    cn_alarm_counts(&rig.lane, &running, &due);
    return running > 0;
}

/* Lets the alarm fire and its work on the pool end. */
static void wait_gone(const struct cn_blob_id *id)
{
    service_rig_advance(&rig, CN_R2_GRACE_MS + 1);
    for (int i = 0; i < 60000 && (has_blob(id) || alarm_runs()); i++) {
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

/* --- what a crash leaves behind (R3), uploads that nobody ends (R4) -------------------------- */

/* Each stage at which a process can end: the blob goes if nothing refers to it, and only then. */
TEST(r2, bodies_that_a_crash_orphaned_are_collected)
{
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test");
    struct cn_blob_id orphan = make_blob("orphan"), stored = make_blob("stored"),
                      never = {.bytes = "never finished"}, busy;
    note(CN_R2_ANNOUNCE, &orphan);
    note(CN_R2_ANNOUNCE, &never);
    note(CN_R2_ANNOUNCE, &stored);
    CHECK(put_noted("k", &stored, 6, NULL, 0));
    service_rig_close(&rig);

    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test");
    busy = make_blob("being written");
    note(CN_R2_ANNOUNCE, &busy); /* the index starts, and finds the notes of the other process */
    CHECK(has_blob(&orphan));
    wait_gone(&orphan);
    service_rig_advance(&rig, 10 * CN_R2_GRACE_MS);
    CHECK(has_blob(&stored) && has_blob(&busy));
    check_body("k", "stored");
    CHECK(put_noted("k", &busy, 13, NULL, 0));
    wait_gone(&stored);
    service_rig_close(&rig);

    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test"); /* nothing is left to be found */
    check_body("k", "being written");
    service_rig_advance(&rig, 10 * CN_R2_GRACE_MS);
    CHECK(has_blob(&busy));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

static bool is_known(const struct cn_blob_id *blob)
{
    struct cn_r2_call *call = cn_r2_call_new(rig.ns, CN_R2_KNOWN);
    struct cn_blob_id ids[2] = {*blob, {.bytes = "of nobody"}};
    cn_buf_append(&call->ids, ids, sizeof(ids));
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    CHECK_INT(2, call->ids.size);
    CHECK_INT(0, call->ids.data[1]);
    bool known = call->ids.data[0];
    cn_service_call_free(&call->base);
    return known;
}

/* R5: of a put whose note another process has taken away nothing is referred to; and a put that was
 * carried out is not undone by who was not told so. */
TEST(r2, a_body_is_named_only_while_it_is_noted)
{
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_blob_id one = make_blob("one"), two = make_blob("two");
    CHECK(!is_known(&one));
    (void)put_noted("k", &one, 3, NULL, CN_ECLOSED);
    check_body("k", NULL);
    note(CN_R2_ANNOUNCE, &one);
    CHECK(is_known(&one));
    note(CN_R2_FORGET, &one);
    CHECK(is_known(&one)); /* it is garbage, and there for a while */
    (void)put_noted("k", &one, 3, NULL, CN_ECLOSED);
    CHECK(put("k", &two, 3, NULL));
    note(CN_R2_FORGET, &two);
    wait_gone(&one);
    service_rig_advance(&rig, 10 * CN_R2_GRACE_MS);
    check_body("k", "two");
    CHECK(!is_known(&one));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(r2, the_body_of_a_put_that_failed_is_forgotten)
{
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_blob_id one = make_blob("one");
    note(CN_R2_ANNOUNCE, &one);
    service_rig_advance(&rig, 10 * CN_R2_GRACE_MS);
    CHECK(has_blob(&one)); /* it may take hours to write */
    note(CN_R2_FORGET, &one);
    wait_gone(&one);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

static char *create_upload(const char *key)
{
    struct cn_r2_call *call = new_call(CN_R2_UPLOAD_CREATE, key);
    service_rig_call(&rig, &call->base);
    char *id = cn_strndup((char *)call->json.data + 1, call->json.size - 2);
    cn_service_call_free(&call->base);
    return id;
}

static unsigned upload_part(const char *key, const char *upload, const struct cn_blob_id *blob)
{
    note(CN_R2_ANNOUNCE, blob);
    struct cn_r2_call *call = new_call(CN_R2_UPLOAD_PART, key);
    call->upload = cn_strdup(upload);
    call->part = 1;
    call->etag = cn_strdup(ETAG);
    call->body.segments = CN_NEW(struct cn_r2_segment);
    *call->body.segments = (struct cn_r2_segment){*blob, 4};
    call->body.count = 1;
    call->body.size = 4;
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    unsigned problem = call->problem;
    cn_service_call_free(&call->base);
    return problem;
}

static bool has_upload(const char *key, const char *upload)
{
    struct cn_r2_call *call = new_call(CN_R2_UPLOAD_PARTS, key);
    call->upload = cn_strdup(upload);
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    CHECK(call->problem == CN_R2_OK || call->problem == CN_R2_NO_UPLOAD);
    bool has = call->problem == CN_R2_OK;
    cn_service_call_free(&call->base);
    return has;
}

/* Lets the alarm fire, which aborts it. */
static void wait_ended(const char *key, const char *upload)
{
    for (int i = 0; i < 60000 && (has_upload(key, upload) || alarm_runs()); i++) {
        uv_sleep(1);
        service_rig_advance(&rig, 1);
    }
    CHECK(!has_upload(key, upload));
}

TEST(r2, an_upload_goes_after_seven_days)
{
    struct cn_disk *disk = storetest_disk();
    const int64_t day = 86400000;
    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test");
    int64_t began = rig.wall_ms;
    struct cn_blob_id first = make_blob("part"), second = make_blob("part"), late;
    char *old = create_upload("a");
    CHECK_INT(CN_R2_OK, upload_part("a", old, &first));
    service_rig_advance(&rig, 3 * day);
    char *young = create_upload("b");
    CHECK_INT(CN_R2_OK, upload_part("b", young, &second));
    service_rig_close(&rig);

    /* after a restart as well; and garbage in between does not put it off */
    service_rig_open(&rig, disk, &cn_r2_class, "$r2/test");
    rig.wall_ms = began + 7 * day - 5 * CN_R2_GRACE_MS;
    struct cn_blob_id gone = make_blob("gone");
    note(CN_R2_ANNOUNCE, &gone);
    note(CN_R2_FORGET, &gone);
    wait_gone(&gone);
    CHECK(rig.wall_ms < began + 7 * day && has_blob(&first));
    late = make_blob("late");
    CHECK_INT(CN_R2_OK, upload_part("a", old, &late));
    wait_gone(&first); /* it was replaced */
    service_rig_advance(&rig, began + 7 * day - rig.wall_ms - 1);
    CHECK(has_upload("a", old));
    wait_ended("a", old);
    wait_gone(&late);
    CHECK(has_upload("b", young) && has_blob(&second));
    service_rig_advance(&rig, began + 10 * day - rig.wall_ms - 1);
    CHECK(has_upload("b", young));
    wait_ended("b", young);
    wait_gone(&second);
    cn_free(old);
    cn_free(young);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

/* What a script gave is taken by its size: nothing behind it is read. */
TEST(r2, a_body_in_parts_reads_the_same_in_pieces)
{
    static const char whole[] = "one,second,the third";
    struct cn_err err;
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_r2_segment segments[] = {
        {make_blob("one,"), 4}, {make_blob("second,"), 7}, {make_blob("the third"), 9}};
    struct cn_r2_body body = {.segments = segments, .count = 3, .size = 20};
    for (size_t piece = 1; piece <= 20; piece++) {
        struct cn_r2_cursor cursor = {.now = true};
        char text[32];
        CHECK_INT(-EAGAIN, cn_r2_read_on(&cursor, rig.services.blobs, &body, text, piece, 0, &err));
        cursor.now = false;
        for (size_t at = 0; at < 20; at += piece) {
            int64_t want = at + piece <= 20 ? (int64_t)piece : (int64_t)(20 - at);
            CHECK_INT(want,
                      cn_r2_read_on(&cursor, rig.services.blobs, &body, text, piece, at, &err));
            CHECK(memcmp(text, whole + at, (size_t)want) == 0);
            CHECK_INT(1, (int64_t)cn_blobs_reader_count(rig.services.blobs));
        }
        cursor.now = true; /* of the last part, which is open, but not of the first */
        CHECK_INT(5, cn_r2_read_on(&cursor, rig.services.blobs, &body, text, 5, 15, &err));
        CHECK_INT(-EAGAIN, cn_r2_read_on(&cursor, rig.services.blobs, &body, text, 5, 0, &err));
        cn_r2_cursor_close(&cursor);
        CHECK_INT(0, (int64_t)cn_blobs_reader_count(rig.services.blobs));
    }
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(r2, keys_to_delete_end_with_their_text)
{
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_blob_id one = make_blob("one"), two = make_blob("two");
    CHECK(put("a", &one, 3, NULL) && put("b", &two, 3, NULL));
    struct cn_r2_call *call = new_call(CN_R2_DELETE, "a");
    cn_buf_append_byte(&call->key, 0);
    cn_buf_append_str(&call->key, "bz");
    call->key.size--; /* the z is no part of it */
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    CHECK(call->found);
    cn_service_call_free(&call->base);
    check_body("a", NULL);
    check_body("b", NULL);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(r2, a_list_of_parts_that_breaks_off_names_none)
{
    static const char broken[] = "1\0" ETAG; /* one byte further it would be right */
    service_rig_open(&rig, storetest_disk(), &cn_r2_class, "$r2/test");
    struct cn_blob_id blob = make_blob("part");
    char *upload = create_upload("a");
    CHECK_INT(CN_R2_OK, upload_part("a", upload, &blob));
    struct cn_r2_call *call = new_call(CN_R2_UPLOAD_COMPLETE, "a");
    call->upload = upload;
    call->parts = cn_memdup(broken, sizeof(broken));
    call->etag = cn_strdup("e");
    service_rig_call(&rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    CHECK_INT(CN_R2_BAD_PART, call->problem);
    cn_service_call_free(&call->base);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}
