/* SPDX-License-Identifier: Apache-2.0 */
/* store/record.h - what a log segment holds, byte by byte, and how it is read.
 *
 * All numbers are little-endian; structures are written as they lie in memory
 * (checked by static_assert). A segment is a file log/<number>.seg:
 *
 *     struct cn_segment_header
 *     record, record, ...          each at a multiple of 8 bytes
 *     zeros, or the remains of an older segment whose file is used again
 *
 * A record is a struct cn_record_header and `body_size` bytes of body, padded
 * with zeros to a multiple of 8. The rules by which bytes count as a record:
 *
 *   R1  Magic, header CRC and body CRC match and the record lies whole in the segment.
 *   R2  Its LSN is its predecessor's plus one; the first of a segment has the
 *       segment's first_lsn, which is the last LSN of the segment before plus one.
 *       Remains of an older use of the file have smaller LSNs, and a torn tail
 *       is cut off and synced before its LSNs are given out again, so R2 alone
 *       keeps old bytes from being taken for new ones.
 *   R3  `durable_lsn` is set in the first record of each flush to what was
 *       durable when it was written, 0 in the others. Bytes that should be a
 *       record n but are not are a torn tail if no valid record behind them
 *       claims durable_lsn >= n, and damage if one does. Damage is an error, never skipped.
 *   R4  time_ms never decreases from record to record.
 *
 * The body of a commit (CN_RECORD_COMMIT):
 *
 *     struct cn_commit_head        whose object, database size, counts
 *     meta_size bytes              of struct cn_meta_item + its bytes, one after the other
 *     page_count times             struct cn_page_entry, image bytes, difference bytes
 *
 * Image and difference are encodings of store/pagediff.h. With P the page
 * before and Q the page after the commit (a page beyond the database is zeros):
 *
 *   R5  image, if present, is Q; difference, if present, is P xor Q.
 *   R6  A page that is new (page_no > pages_before) has only an image, which is
 *       its difference too. A page that goes (page_no > pages_after) has only a difference.
 *   R7  The first change of any other page after the start of a checkpoint has both; later
 *       ones have the difference. So recovery needs no page of the file, and
 *       history needs no page but those of the file.
 *   R8  With CN_COMMIT_RESET the database starts anew: pages_before is 0 and the file as it
 *       was before this LSN has been set aside whole (store/image.h).
 *   R9  CN_RECORD_BOUNDARY is set in the first record after a checkpoint began, and in the first
 *       after an open: R7 begins anew there, so redo may start with it, on any disk that has what
 *       comes before it in files. Only such a record may be where a replica's redo starts
 *       (store/replica.h), since its own checkpoints do not make images.
 *
 * The body of a namespace record is its number and its name: struct
 * cn_namespace_body, name bytes. A mark has no body and changes nothing: it is there to be a
 * boundary when nothing else comes (R9). */
#ifndef CN_STORE_RECORD_H
#define CN_STORE_RECORD_H
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CN_PAGE_SIZE 4096
#define CN_OBJECT_ID_SIZE 32
#define CN_OBJECT_NAME_MAX 1024
#define CN_RECORD_BODY_MAX (1u << 30)
#define CN_DATABASE_PAGES_MAX (1u << 28) /* 1 TiB */

#define CN_SEGMENT_MAGIC 0x31474553u /* "SEG1" */
#define CN_SEGMENT_VERSION 1
#define CN_RECORD_MAGIC 0x31434552u /* "REC1" */

/* The identity of an object: which namespace, which id. */
struct cn_object_key {
    uint32_t namespace_id; /* numbers are given out by the store; 0 is never used */
    uint8_t id[CN_OBJECT_ID_SIZE];
};

struct cn_segment_header {
    uint32_t magic;
    uint32_t crc; /* CRC-32C of the rest of this struct */
    uint32_t version;
    uint32_t reserved;
    uint64_t number;    /* 1, 2, 3, ... without gaps */
    uint64_t first_lsn; /* of its first record */
    uint64_t file_size; /* bytes allocated to the segment */
    int64_t created_ms;
    uint8_t zeros[16];
};

enum cn_record_kind {
    CN_RECORD_COMMIT = 1,
    CN_RECORD_NAMESPACE = 2,
    CN_RECORD_MARK = 3, /* written by driven stores only */
};

enum cn_record_flags {
    CN_RECORD_BOUNDARY = 1, /* R9; records of older versions do not have it */
};

struct cn_record_header {
    uint32_t magic;
    uint32_t header_crc; /* of the bytes of this struct after this field */
    uint32_t body_crc;
    uint32_t body_size; /* without padding */
    uint64_t lsn;
    uint64_t durable_lsn; /* see R3 */
    int64_t time_ms;
    uint16_t kind;  /* enum cn_record_kind */
    uint16_t flags; /* enum cn_record_flags */
    uint32_t reserved32;
};

enum cn_commit_flags {
    CN_COMMIT_RESET = 1,   /* R8 */
    CN_COMMIT_DELETED = 2, /* the object is gone: no pages, its catalog entry goes */
    CN_COMMIT_RESTORE = 4, /* written by a restore, not by the object */
};

struct cn_commit_head {
    struct cn_object_key key;
    uint32_t pages_before; /* size of the database before, in pages */
    uint32_t pages_after;
    uint32_t page_count; /* entries that follow */
    uint16_t meta_size;  /* bytes of metadata items */
    uint16_t flags;      /* enum cn_commit_flags */
};

enum cn_meta_tag {
    CN_META_ALARM = 1, /* int64_t: milliseconds since 1970, or CN_ALARM_NONE */
    CN_META_NAME = 2,  /* the object's name, 1 to CN_OBJECT_NAME_MAX bytes of UTF-8 */
    /* What was there before, for the way back: */
    CN_META_ALARM_BEFORE =
        3,                   /* in a commit that changes the alarm, or deletes an object with one */
    CN_META_NAME_BEFORE = 4, /* in a commit that deletes an object with a name */
};

#define CN_ALARM_NONE INT64_MIN

struct cn_meta_item {
    uint16_t tag; /* enum cn_meta_tag */
    uint16_t size;
};

struct cn_page_entry {
    uint32_t page_no;    /* counts from 1 */
    uint16_t image_size; /* bytes; 0: none */
    uint16_t diff_size;
};

struct cn_namespace_body {
    uint32_t namespace_id;
    uint32_t name_size; /* 1 to CN_OBJECT_NAME_MAX */
};

static_assert(sizeof(struct cn_object_key) == 36, "on disk");
static_assert(sizeof(struct cn_segment_header) == 64, "on disk");
static_assert(sizeof(struct cn_record_header) == 48, "on disk");
static_assert(offsetof(struct cn_record_header, lsn) == 16, "on disk");
static_assert(offsetof(struct cn_record_header, kind) == 40, "on disk");
static_assert(sizeof(struct cn_commit_head) == 52, "on disk");
static_assert(sizeof(struct cn_meta_item) == 4, "on disk");
static_assert(sizeof(struct cn_page_entry) == 8, "on disk");
static_assert(sizeof(struct cn_namespace_body) == 8, "on disk");

/* Bytes a record of this body takes in a segment. */
static inline uint64_t cn_record_size(uint64_t body_size)
{
    return (sizeof(struct cn_record_header) + body_size + 7) & ~(uint64_t)7;
}

/* A record in memory; `body` is borrowed from whoever read it. */
struct cn_record {
    struct cn_record_header header;
    const uint8_t *body;
};

/* Fills magic and CRCs; the caller has set the other fields. */
void cn_record_seal(struct cn_record_header *header, const void *body);
/* The header alone: after a change of lsn, time_ms or durable_lsn. */
void cn_record_seal_header(struct cn_record_header *header);
void cn_segment_seal(struct cn_segment_header *header);

/* Is this a segment header of ours? CN_ECORRUPT, or CN_EVERSION, with a sentence. */
int cn_segment_check(const struct cn_segment_header *header, struct cn_err *err);

/* R1 over `size` bytes. Returns the bytes the record takes (a multiple of 8),
 * or 0 if there is no valid record at this place. */
uint64_t cn_record_read(const uint8_t *bytes, uint64_t size, struct cn_record *record);

/* A commit, taken apart. Pointers are borrowed from the record. */
struct cn_commit {
    struct cn_commit_head head;
    bool has_alarm;
    int64_t alarm_ms;
    const char *name; /* NULL: not in this record */
    uint16_t name_size;
    bool has_alarm_before;
    int64_t alarm_before_ms;
    const char *name_before; /* NULL: not in this record */
    uint16_t name_before_size;
    const uint8_t *pages; /* the entries; walk them with cn_commit_page() */
    size_t pages_size;
};

/* One page of a commit. */
struct cn_commit_page {
    uint32_t page_no;
    const uint8_t *image, *diff; /* NULL if not there */
    uint16_t image_size, diff_size;
};

/* Takes a CN_RECORD_COMMIT apart and checks every length, count and rule R6
 * (not the encodings of the pages). CN_ECORRUPT with a sentence if it is malformed. */
int cn_commit_read(const struct cn_record *record, struct cn_commit *commit, struct cn_err *err);
/* Steps through the pages: start with *offset = 0; false at the end. Only after
 * cn_commit_read() returned 0. */
bool cn_commit_page(const struct cn_commit *commit, size_t *offset, struct cn_commit_page *page);

/* Takes a CN_RECORD_NAMESPACE apart; `name` is borrowed and not terminated. */
int cn_namespace_read(const struct cn_record *record, uint32_t *namespace_id, const char **name,
                      size_t *name_size, struct cn_err *err);

#endif
