/* SPDX-License-Identifier: Apache-2.0 */
/* A record is read back as it was sealed, and refused when any bit of it, or of its
 * structure, is wrong. */
#include "store/record.h"

#include <string.h>

#include "base/buf.h"
#include "test/lib/test.h"

/* A commit of an object with an alarm, a name, one new page and one changed page. */
static void build(struct cn_buf *body)
{
    struct cn_commit_head head = {
        .key.namespace_id = 7,
        .pages_before = 1,
        .pages_after = 2,
        .page_count = 2,
        .meta_size = 2 * sizeof(struct cn_meta_item) + 8 + 3,
    };
    memset(head.key.id, 0xab, sizeof(head.key.id));
    int64_t alarm = 123456;
    struct cn_meta_item items[] = {{CN_META_ALARM, 8}, {CN_META_NAME, 3}};
    struct cn_page_entry pages[] = {{1, 2, 3}, {2, 4, 0}};
    cn_buf_append(body, &head, sizeof(head));
    cn_buf_append(body, &items[0], sizeof(items[0]));
    cn_buf_append(body, &alarm, sizeof(alarm));
    cn_buf_append(body, &items[1], sizeof(items[1]));
    cn_buf_append(body, "bob", 3);
    cn_buf_append(body, &pages[0], sizeof(pages[0]));
    cn_buf_append(body, "iiddd", 5);
    cn_buf_append(body, &pages[1], sizeof(pages[1]));
    cn_buf_append(body, "IIII", 4);
}

static struct cn_record as_record(const struct cn_buf *body)
{
    struct cn_record record = {.header.kind = CN_RECORD_COMMIT, .body = body->data};
    record.header.body_size = (uint32_t)body->size;
    return record;
}

TEST(record, comes_back_as_it_was_sealed)
{
    struct cn_buf body = {0}, bytes = {0};
    build(&body);
    struct cn_record_header header = {
        .lsn = 42, .time_ms = 99, .kind = CN_RECORD_COMMIT, .body_size = (uint32_t)body.size};
    cn_record_seal(&header, body.data);
    cn_buf_append(&bytes, &header, sizeof(header));
    cn_buf_append(&bytes, body.data, body.size);
    while (bytes.size % 8)
        cn_buf_append_byte(&bytes, 0);
    struct cn_record record;
    CHECK_INT((long long)bytes.size, (long long)cn_record_read(bytes.data, bytes.size, &record));
    CHECK_INT(42, record.header.lsn);

    struct cn_commit commit;
    struct cn_commit_page page;
    size_t offset = 0;
    CHECK_INT(0, cn_commit_read(&record, &commit, NULL));
    CHECK(commit.has_alarm && commit.alarm_ms == 123456);
    CHECK(commit.name_size == 3 && memcmp(commit.name, "bob", 3) == 0);
    CHECK(cn_commit_page(&commit, &offset, &page));
    CHECK(page.page_no == 1 && memcmp(page.image, "ii", 2) == 0 &&
          memcmp(page.diff, "ddd", 3) == 0);
    CHECK(cn_commit_page(&commit, &offset, &page));
    CHECK(page.page_no == 2 && page.diff == NULL && page.image_size == 4);
    CHECK(!cn_commit_page(&commit, &offset, &page));

    for (size_t bit = 0; bit < (sizeof(header) + body.size) * 8; bit++) { /* any one bit flipped */
        bytes.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        CHECK_INT(0, (long long)cn_record_read(bytes.data, bytes.size, &record));
        bytes.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (size_t size = 0; size < bytes.size; size++) /* cut short */
        CHECK_INT(0, (long long)cn_record_read(bytes.data, size, &record));
    cn_buf_fini(&body);
    cn_buf_fini(&bytes);
}

TEST(record, a_commit_with_wrong_lengths_is_refused)
{
    struct cn_buf body = {0};
    struct cn_commit commit;
    build(&body);
    struct cn_record record = as_record(&body);
    CHECK_INT(0, cn_commit_read(&record, &commit, NULL));
    for (uint32_t size = 0; size < body.size; size++) {
        record.header.body_size = size;
        CHECK_INT(CN_ECORRUPT, cn_commit_read(&record, &commit, NULL));
    }
    cn_buf_append_byte(&body, 0); /* one byte too many */
    record = as_record(&body);
    CHECK_INT(CN_ECORRUPT, cn_commit_read(&record, &commit, NULL));
    cn_buf_fini(&body);
}

/* Changes one field of the head and expects a refusal. */
static void check_head(size_t offset, uint32_t value, size_t size)
{
    struct cn_buf body = {0};
    struct cn_commit commit;
    build(&body);
    memcpy(body.data + offset, &value, size);
    struct cn_record record = as_record(&body);
    CHECK_INT(CN_ECORRUPT, cn_commit_read(&record, &commit, NULL));
    cn_buf_fini(&body);
}

TEST(record, a_commit_that_breaks_a_rule_is_refused)
{
    check_head(offsetof(struct cn_commit_head, key.namespace_id), 0, 4);
    check_head(offsetof(struct cn_commit_head, pages_before), 2, 4); /* page 2 has no difference */
    check_head(offsetof(struct cn_commit_head, pages_after), 1, 4);  /* page 2 is in neither */
    check_head(offsetof(struct cn_commit_head, page_count), 1, 4);
    check_head(offsetof(struct cn_commit_head, page_count), 3, 4);
    check_head(offsetof(struct cn_commit_head, flags), CN_COMMIT_RESET, 2);
    check_head(offsetof(struct cn_commit_head, flags), CN_COMMIT_DELETED, 2);
    check_head(offsetof(struct cn_commit_head, meta_size), 0xffff, 2);
    check_head(sizeof(struct cn_commit_head), 99, 2);    /* an unknown item */
    check_head(sizeof(struct cn_commit_head) + 2, 7, 2); /* an alarm of 7 bytes */
}
