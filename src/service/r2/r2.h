/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2.h - buckets of objects (R2): the index, and the bodies behind it.
 *
 * A bucket is one object, named "0", of the namespace "$r2/BUCKET": a table of keys with their
 * metadata. Small bodies lie in it; others are blobs (store/blob.h), written by whoever puts them
 * before the index is told, and read by whoever gets them, on the thread pool. No body passes
 * through the index's lane.
 *
 *     put:  body ──► blob, durable ──► index: key refers to it ──► acknowledged
 *     get:  index ──► segments ──► cn_r2_read() as the reader takes them
 *
 * A body is a list of segments: one blob, or the parts of a multipart upload, which are never
 * copied.
 *
 * R1  The index refers only to blobs that are durable.
 * R2  A blob that the index has let go of is deleted CN_R2_GRACE_MS later, by the index; until then
 *     it stands in `garbage`, so that whoever got its segments before can still read it, and a
 *     crash does not leave it behind.
 * R3  Before a blob is finished the index is told its id (ANNOUNCE) and notes it, durably, with the
 *     number of this opening of the blobs. The put takes the note away in the transaction that
 *     refers to the blob. A put that fails makes it garbage (FORGET); notes of an earlier opening
 *     are of blobs that a crash came before, and become garbage when the index starts.
 * R4  An upload that was neither completed nor aborted goes CN_R2_UPLOAD_MS_MAX after it began.
 * R5  A put refers to a blob only if its note is still there, in the same transaction. So an id
 *     that is neither noted, nor referred to, nor garbage will never be referred to, whichever
 *     node has the index by then.
 * R6  In a cluster bodies lie on several disks (shard/bodies.h), which ask the index which of
 *     their blobs are known to it (KNOWN): noted, referred to (`named` has the ids), or garbage.
 *     The id of a blob says which bucket's it is.
 *
 * Threads and ownership: service/service.h; cn_r2_read() from any thread, it waits for the disk. */
#ifndef CN_SERVICE_R2_R2_H
#define CN_SERVICE_R2_R2_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "service/def.h"
#include "service/service.h"
#include "store/blob.h"

#define CN_R2_INLINE_MAX (16u << 10)
#define CN_R2_KEY_SIZE_MAX 1024
#define CN_R2_LIST_MAX 1000
#define CN_R2_PARTS_MAX 10000
#define CN_R2_PART_SIZE_MIN (5u << 20)
#define CN_R2_GRACE_MS 60000
#define CN_R2_UPLOAD_MS_MAX (7 * 86400000ll)

enum cn_r2_op {
    CN_R2_HEAD,
    CN_R2_GET,
    CN_R2_PUT,
    CN_R2_DELETE,
    CN_R2_LIST,
    CN_R2_UPLOAD_CREATE,
    CN_R2_UPLOAD_PART,
    CN_R2_UPLOAD_COMPLETE,
    CN_R2_UPLOAD_ABORT,
    CN_R2_UPLOAD_LIST,  /* of a bucket */
    CN_R2_UPLOAD_PARTS, /* of an upload */
    CN_R2_TOTALS,
    CN_R2_ANNOUNCE, /* R3; both with a body of one segment */
    CN_R2_FORGET,
    CN_R2_KNOWN, /* R6: `ids` */
};

/* A run of a body. Stored as it is. */
struct cn_r2_segment {
    struct cn_blob_id blob;
    uint64_t size;
};

struct cn_r2_body {
    struct cn_r2_segment *segments; /* owned; NULL: `bytes` has it */
    size_t count;
    uint64_t size;
    uint8_t *bytes; /* owned; of a body in the index */
    /* Of an encrypted body, which is never in the index: how a run of a segment is read, and with
     * which key; borrowed. NULL: as it is. */
    int (*unseal)(struct cn_blob_reader *blob, const uint8_t *key, uint64_t segment_size,
                  void *bytes, size_t size, uint64_t offset, struct cn_err *err);
    const uint8_t *key;
};
void cn_r2_body_fini(struct cn_r2_body *body);
/* Reads into `bytes`; returns how many: fewer than asked only at the end. */
int64_t cn_r2_read(struct cn_blobs *blobs, const struct cn_r2_body *body, void *bytes, size_t size,
                   uint64_t offset, struct cn_err *err);

/* For reading a body in several pieces: the blob of the last one stays open. A zeroed struct is a
 * new one; one thread at a time. */
struct cn_r2_cursor {
    struct cn_blob_reader *blob; /* owned; NULL: none is open */
    size_t segment;              /* whose */
    bool now;                    /* may not wait for the disk: -EAGAIN, without a text, instead */
};
void cn_r2_cursor_close(struct cn_r2_cursor *cursor); /* it may be used again */
int64_t cn_r2_read_on(struct cn_r2_cursor *cursor, struct cn_blobs *blobs,
                      const struct cn_r2_body *body, void *bytes, size_t size, uint64_t offset,
                      struct cn_err *err);

/* Only if ... (R2-3). Lists of ETags are separated by newlines; NULL: not asked. */
struct cn_r2_condition {
    char *match, *none_match;    /* owned */
    int64_t after_ms, before_ms; /* INT64_MIN: not asked */
    bool seconds;                /* compare whole seconds */
};

struct cn_r2_call {
    struct cn_service_call base; /* call.op is an enum cn_r2_op */
    /* Asked. */
    struct cn_buf key; /* delete: keys, each followed by a NUL */
    struct cn_r2_condition only_if;
    struct cn_r2_body body; /* put and part ask with it, get answers with it */
    char *etag;             /* put, part: MD5 in hexadecimal; owned */
    char *checksums;        /* the texts below are JSON objects; owned */
    char *http, *custom;
    char *storage_class; /* owned */
    int64_t uploaded_ms; /* put: of one that comes from elsewhere; 0: now */
    char *ssec;          /* MD5 of the customer's key in hexadecimal; owned; NULL: none */
    char *upload;        /* id of a multipart upload; owned */
    unsigned part;
    char *parts;                            /* complete: "number etag\n" for each; owned */
    struct cn_buf prefix, delimiter, after; /* list; `after` data NULL: from the first */
    bool after_prefix;                      /* list: `after` is a common prefix */
    unsigned limit;
    bool include_http, include_custom;
    struct cn_buf ids; /* known: of struct cn_blob_id; answered with a byte for each */
    /* Answered. */
    bool found;         /* head, get: the key exists; delete: one of them did */
    bool failed;        /* a condition did not hold */
    unsigned problem;   /* enum cn_r2_problem */
    struct cn_buf json; /* the object's description, or what was asked for */
    bool truncated;     /* list: there is more, after: */
    struct cn_buf last;
    bool last_prefix;
    uint64_t total_objects, total_bytes; /* totals: of all keys */
};

/* What the platform has codes for. */
enum cn_r2_problem {
    CN_R2_OK,
    CN_R2_BAD_KEY = 10003, /* the customer's key is missing, another one, or not wanted */
    CN_R2_NO_UPLOAD = 10024,
    CN_R2_BAD_PART = 10025,
    CN_R2_TOO_SMALL = 10011,
    CN_R2_UNEQUAL = 10048, /* parts of different sizes */
};

extern const struct cn_class cn_r2_class;

/* The descriptor (service/def.h) and its parts. */
extern const struct cn_service_def cn_service_r2;
extern const struct cn_service_config cn_r2_config;
extern const struct cn_js_natives cn_r2_natives;
extern const struct cn_service_face cn_r2_face;
extern const struct cn_control_routes cn_r2_routes;
extern const struct cn_command cn_r2_command;
extern const struct cn_service_wire cn_r2_wire;

/* An id for a blob of this bucket. */
void cn_r2_id_draw(struct cn_namespace *ns, struct cn_blob_id *id);

struct cn_r2_call *cn_r2_call_new(struct cn_namespace *ns, enum cn_r2_op op);
void cn_r2_call_fini(struct cn_service_call *call); /* for cn_r2_wire */

#endif
