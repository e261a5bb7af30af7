/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/r2_private.h - what the index of a bucket (r2.c) and its uploads (r2_upload.c) share.
 */
#ifndef CN_SERVICE_R2_R2_PRIVATE_H
#define CN_SERVICE_R2_R2_PRIVATE_H
#include "service/r2/r2.h"

enum {
    CN_R2_SQL_GET,
    CN_R2_SQL_PUT,
    CN_R2_SQL_DELETE,
    CN_R2_SQL_LIST,
    CN_R2_SQL_LIST_FROM,
    CN_R2_SQL_DISCARD,
    CN_R2_SQL_GARBAGE,
    CN_R2_SQL_DISCARDED,
    CN_R2_SQL_GARBAGE_LEFT,
    CN_R2_SQL_ANNOUNCE,
    CN_R2_SQL_SETTLE,
    CN_R2_SQL_LOST,
    CN_R2_SQL_NAME,
    CN_R2_SQL_UNNAME,
    CN_R2_SQL_KNOWN,
    CN_R2_SQL_UPLOAD_CREATE,
    CN_R2_SQL_UPLOAD_GET,
    CN_R2_SQL_UPLOAD_DELETE,
    CN_R2_SQL_UPLOAD_LIST,
    CN_R2_SQL_UPLOAD_OLD,
    CN_R2_SQL_UPLOAD_OLDEST,
    CN_R2_SQL_PART_PUT,
    CN_R2_SQL_PART_GET,
    CN_R2_SQL_PARTS,
    CN_R2_SQL_PARTS_DELETE,
    CN_R2_SQL_COUNT_UP,
    CN_R2_SQL_TOTALS,
    CN_R2_SQL_COUNT,
};

struct cn_r2_bucket {
    struct cn_object *object;
    struct cn_services *services;
    struct cn_service_sql sql;
    bool spread;             /* R6 */
    struct cn_list removals; /* of struct removal: blobs being deleted */
};

int64_t cn_r2_now(struct cn_r2_bucket *bucket);
int cn_r2_sql(struct cn_r2_bucket *bucket, unsigned which, struct cn_statement **statement,
              struct cn_err *err);
/* NULL is an empty JSON object. */
int cn_r2_bind_text(struct cn_statement *statement, int index, const char *text,
                    struct cn_err *err);
int cn_r2_bind_key(struct cn_statement *statement, int index, const void *key, size_t size,
                   struct cn_err *err);
/* Whether the customer's key of a call is the one of the row (MD5, or NULL for none). */
bool cn_r2_key_fits(const struct cn_r2_call *call, struct cn_statement *statement, int column);
/* NULL is NULL. */
int cn_r2_bind_ssec(struct cn_statement *statement, int index, const char *ssec,
                    struct cn_err *err);
/* The note that a blob is on its way is taken away (R3): it is referred to, or garbage, from now
 * on. CN_ECLOSED: there is none (R5). */
int cn_r2_settle(struct cn_r2_bucket *bucket, const struct cn_r2_body *body, struct cn_err *err);
/* The alarm fires at this time at the latest. */
int cn_r2_wake_by(struct cn_r2_bucket *bucket, int64_t time_ms, struct cn_err *err);
/* The one number of a statement without parameters: 1; 0: it is NULL. */
int cn_r2_number(struct cn_r2_bucket *bucket, unsigned which, int64_t *number, struct cn_err *err);
int cn_r2_discard(struct cn_r2_bucket *bucket, const struct cn_r2_segment *segments, size_t count,
                  struct cn_err *err);
int cn_r2_store(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);

int cn_r2_upload_create(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);
int cn_r2_upload_part(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);
int cn_r2_upload_complete(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);
int cn_r2_upload_abort(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);
/* R4: aborts some of those that are too old; when the next one is due is `next_ms` (INT64_MAX:
 * there is none). */
int cn_r2_upload_expire(struct cn_r2_bucket *bucket, int64_t *next_ms, struct cn_err *err);
int cn_r2_upload_list(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);
int cn_r2_upload_parts(struct cn_r2_bucket *bucket, struct cn_r2_call *call, struct cn_err *err);

#endif
