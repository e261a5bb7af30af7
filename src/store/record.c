/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record.h"

#include <string.h>

#include "base/crc32c.h"

static uint32_t header_crc(const struct cn_record_header *header)
{
    const size_t start = offsetof(struct cn_record_header, body_crc);
    return cn_crc32c(0, (const uint8_t *)header + start, sizeof(*header) - start);
}

static uint32_t segment_crc(const struct cn_segment_header *header)
{
    const size_t start = offsetof(struct cn_segment_header, version);
    return cn_crc32c(0, (const uint8_t *)header + start, sizeof(*header) - start);
}

void cn_record_seal(struct cn_record_header *header, const void *body)
{
    header->body_crc = cn_crc32c(0, body, header->body_size);
    cn_record_seal_header(header);
}

void cn_record_seal_header(struct cn_record_header *header)
{
    header->magic = CN_RECORD_MAGIC;
    header->header_crc = header_crc(header);
}

void cn_segment_seal(struct cn_segment_header *header)
{
    header->magic = CN_SEGMENT_MAGIC;
    header->version = CN_SEGMENT_VERSION;
    header->crc = segment_crc(header);
}

int cn_segment_check(const struct cn_segment_header *header, struct cn_err *err)
{
    if (header->magic != CN_SEGMENT_MAGIC)
        return cn_err_set(err, CN_ECORRUPT, "not a log segment: wrong magic number");
    if (header->crc != segment_crc(header))
        return cn_err_set(err, CN_ECORRUPT, "damaged segment header: checksum does not match");
    if (header->version > CN_SEGMENT_VERSION)
        return cn_err_set(err, CN_EVERSION,
                          "log format %u is newer than the %d that this version reads",
                          header->version, CN_SEGMENT_VERSION);
    return 0;
}

uint64_t cn_record_read(const uint8_t *bytes, uint64_t size, struct cn_record *record)
{
    if (size < sizeof(record->header))
        return 0;
    memcpy(&record->header, bytes, sizeof(record->header));
    const struct cn_record_header *header = &record->header;
    if (header->magic != CN_RECORD_MAGIC || header->header_crc != header_crc(header))
        return 0;
    if (header->body_size > CN_RECORD_BODY_MAX || cn_record_size(header->body_size) > size)
        return 0;
    record->body = bytes + sizeof(*header);
    if (header->body_crc != cn_crc32c(0, record->body, header->body_size))
        return 0;
    return cn_record_size(header->body_size);
}

/* Reads the metadata items of a commit. */
static int meta_read(struct cn_commit *commit, const uint8_t *at, size_t size, struct cn_err *err)
{
    while (size > 0) {
        struct cn_meta_item item;
        if (size < sizeof(item))
            return cn_err_set(err, CN_ECORRUPT, "metadata is cut short");
        memcpy(&item, at, sizeof(item));
        at += sizeof(item);
        size -= sizeof(item);
        if (item.size > size)
            return cn_err_set(err, CN_ECORRUPT, "metadata item %u is cut short", item.tag);
        switch (item.tag) {
        case CN_META_ALARM:
        case CN_META_ALARM_BEFORE:
            if (item.size != sizeof(commit->alarm_ms))
                return cn_err_set(err, CN_ECORRUPT, "alarm time of %u bytes", item.size);
            if (item.tag == CN_META_ALARM) {
                memcpy(&commit->alarm_ms, at, sizeof(commit->alarm_ms));
                commit->has_alarm = true;
            } else {
                memcpy(&commit->alarm_before_ms, at, sizeof(commit->alarm_before_ms));
                commit->has_alarm_before = true;
            }
            break;
        case CN_META_NAME:
        case CN_META_NAME_BEFORE:
            if (item.size == 0 || item.size > CN_OBJECT_NAME_MAX)
                return cn_err_set(err, CN_ECORRUPT, "object name of %u bytes", item.size);
            if (item.tag == CN_META_NAME) {
                commit->name = (const char *)at;
                commit->name_size = item.size;
            } else {
                commit->name_before = (const char *)at;
                commit->name_before_size = item.size;
            }
            break;
        default:
            return cn_err_set(err, CN_ECORRUPT, "unknown metadata item %u", item.tag);
        }
        at += item.size;
        size -= item.size;
    }
    return 0;
}

static void page_read(const uint8_t *at, struct cn_commit_page *page)
{
    struct cn_page_entry entry;
    memcpy(&entry, at, sizeof(entry));
    at += sizeof(entry);
    *page = (struct cn_commit_page){
        .page_no = entry.page_no,
        .image = entry.image_size ? at : NULL,
        .diff = entry.diff_size ? at + entry.image_size : NULL,
        .image_size = entry.image_size,
        .diff_size = entry.diff_size,
    };
}

static size_t page_entry_size(const struct cn_commit_page *page)
{
    return sizeof(struct cn_page_entry) + page->image_size + page->diff_size;
}

/* Rule R6 for one page. */
static bool page_plausible(const struct cn_commit_head *head, const struct cn_commit_page *page)
{
    if (page->page_no == 0)
        return false;
    if (page->page_no > head->pages_after)
        return page->page_no <= head->pages_before && !page->image && page->diff;
    if (page->page_no > head->pages_before)
        return page->image && !page->diff;
    return page->diff != NULL;
}

int cn_commit_read(const struct cn_record *record, struct cn_commit *commit, struct cn_err *err)
{
    size_t size = record->header.body_size;
    const uint8_t *at = record->body;
    *commit = (struct cn_commit){0};
    struct cn_commit_head *head = &commit->head;
    if (record->header.kind != CN_RECORD_COMMIT || size < sizeof(*head))
        return cn_err_set(err, CN_ECORRUPT, "not a commit record");
    memcpy(head, at, sizeof(*head));
    at += sizeof(*head);
    size -= sizeof(*head);
    if (head->key.namespace_id == 0 || head->meta_size > size)
        return cn_err_set(err, CN_ECORRUPT, "malformed commit head");
    if (head->pages_before > CN_DATABASE_PAGES_MAX || head->pages_after > CN_DATABASE_PAGES_MAX)
        return cn_err_set(err, CN_ECORRUPT, "a database larger than any can be");
    if ((head->flags & CN_COMMIT_RESET) && head->pages_before != 0)
        return cn_err_set(err, CN_ECORRUPT, "reset commit that has pages before it");
    if ((head->flags & CN_COMMIT_DELETED) && (head->pages_after != 0 || head->page_count != 0))
        return cn_err_set(err, CN_ECORRUPT, "deletion that has pages");
    int rc = meta_read(commit, at, head->meta_size, err);
    if (rc < 0)
        return rc;
    commit->pages = at + head->meta_size;
    commit->pages_size = size - head->meta_size;

    size_t offset = 0;
    for (uint32_t i = 0; i < head->page_count; i++) {
        struct cn_commit_page page;
        if (commit->pages_size - offset < sizeof(struct cn_page_entry))
            return cn_err_set(err, CN_ECORRUPT, "page entry %u is cut short", i);
        page_read(commit->pages + offset, &page);
        if (commit->pages_size - offset < page_entry_size(&page))
            return cn_err_set(err, CN_ECORRUPT, "page %u is cut short", page.page_no);
        if (!page_plausible(head, &page))
            return cn_err_set(err, CN_ECORRUPT, "page entry %u (page %u) breaks the format", i,
                              page.page_no);
        offset += page_entry_size(&page);
    }
    if (offset != commit->pages_size)
        return cn_err_set(err, CN_ECORRUPT, "%zu bytes behind the last page",
                          commit->pages_size - offset);
    return 0;
}

bool cn_commit_page(const struct cn_commit *commit, size_t *offset, struct cn_commit_page *page)
{
    if (*offset >= commit->pages_size)
        return false;
    page_read(commit->pages + *offset, page);
    *offset += page_entry_size(page);
    return true;
}

int cn_namespace_read(const struct cn_record *record, uint32_t *namespace_id, const char **name,
                      size_t *name_size, struct cn_err *err)
{
    struct cn_namespace_body body;
    if (record->header.kind != CN_RECORD_NAMESPACE || record->header.body_size < sizeof(body))
        return cn_err_set(err, CN_ECORRUPT, "not a namespace record");
    memcpy(&body, record->body, sizeof(body));
    if (body.namespace_id == 0 || body.name_size == 0 || body.name_size > CN_OBJECT_NAME_MAX ||
        body.name_size != record->header.body_size - sizeof(body))
        return cn_err_set(err, CN_ECORRUPT, "malformed namespace record");
    *namespace_id = body.namespace_id;
    *name = (const char *)record->body + sizeof(body);
    *name_size = body.name_size;
    return 0;
}
