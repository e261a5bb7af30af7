/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/version_files.h - files of versions, from this node's disk to the engine of its cluster and back.
 *
 * A *bundle* is what belongs to a version by its id: its own file (version.json, which here is
 * deployed/versions/ID.json) and, if it brought code, what lies in deployed/code/ID/: modules and
 * assets as they were uploaded, what was built of them, and the checksums of both (v4/depot.h).
 * The engine has the bytes of a file once for each SHA-256, in pieces (membership/engine_pg_depot.c).
 *
 * F1  What is fetched is compared with its SHA-256 before it gets its name, and its name is checked
 *     as one that comes from outside (D5 of depot.h).
 * F2  A bundle that is here is whole: the files that say so (versions/ID.json, sums.json) are
 *     written when all others are synced. What a crash leaves is fetched again.
 * F3  The engine takes CN_VERSION_FILES_SIZE_MAX in total; beyond it a deployment is refused.
 *
 * Threads:   any that may block; the holder of the change puts (D9 of engine_pg_depot.c).
 * Ownership: everything is borrowed. */
#ifndef CN_FLEET_VERSION_FILES_H
#define CN_FLEET_VERSION_FILES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cn_registry;
struct cn_disk;
struct cn_err;

#define CN_VERSION_FILES_SIZE_MAX ((uint64_t)8 << 30)

struct cn_version_files {
    const struct cn_registry *registry;
    struct cn_disk *disk; /* the data directory */
};

/* Puts the bundle there; `who` holds the change. */
int cn_version_files_put(const struct cn_version_files *version_files, const char *who,
                         const char *id, struct cn_err *err);
/* Whether it is here: the version's own file; or its code. */
bool cn_version_files_has(const struct cn_version_files *version_files, const char *id, bool code);
/* Fetches the bundle, also if it is here. With `code`, all of it; else the version's own file.
 * CN_ENOTFOUND: the engine does not have it. */
int cn_version_files_fetch(const struct cn_version_files *version_files, const char *id, bool code,
                           struct cn_err *err);

/* A list of texts as PostgreSQL reads it: begin with an empty buffer, then end it. */
void cn_version_files_array_add(struct cn_buf *array, const char *text);
char *cn_version_files_array_end(struct cn_buf *array);

#endif
