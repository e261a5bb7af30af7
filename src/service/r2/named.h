/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/named.h - which bodies the index of a bucket refers to, read from its database.
 *
 * For those who look at a store that nobody serves: a backup has to have them (R6 of r2.h).
 * Threads: that of the database. */
#ifndef CN_SERVICE_R2_NAMED_H
#define CN_SERVICE_R2_NAMED_H

struct cn_blob_id;
struct cn_database;
struct cn_err;

/* Calls back for each, of an index of a cluster. A negative return ends it and is returned. */
int cn_r2_named(struct cn_database *db, int (*each)(void *data, const struct cn_blob_id *id),
                void *data, struct cn_err *err);

#endif
