/* SPDX-License-Identifier: Apache-2.0 */
/* store/vfs.h - SQLite's view of an image.
 *
 * The VFS of object databases. Pages that SQLite writes stay with the open file until it commits;
 * then all of them become one log record (cn_image_commit()). Only its own connection sees an
 * uncommitted page.
 *
 * Threads:   a file belongs to its database's lane.
 * Ownership: a file lives inside its connection. */
#ifndef CN_STORE_VFS_H
#define CN_STORE_VFS_H
#include <stdbool.h>
#include <stdint.h>

#include "store/sqlite.h"

struct cn_image;
struct cn_image_meta;
struct cn_vfs_file;

/* Once cn_sqlite_setup() has succeeded; cheap when repeated. */
void cn_vfs_setup(void);

/* Opens a connection to the image, which stays the caller's. With `reset` it
 * sees an empty database, and its first commit makes that so. */
int cn_vfs_connect(struct cn_image *image, bool reset, sqlite3 **connection,
                   struct cn_vfs_file **file, struct cn_err *err);
/* The connection's file is another image from now on, of whichever store; NULL: none until the next
 * call. Nothing is pending in it, and SQLite has been told (store/sqlite/engine.h). */
void cn_vfs_move(struct cn_vfs_file *file, struct cn_image *image);

/* Around COMMIT: `meta` (NULL: none) goes into the record. cn_vfs_commit_end()
 * says whether one was written, and if the log refused it, why. */
void cn_vfs_commit_begin(struct cn_vfs_file *file, const struct cn_image_meta *meta);
int cn_vfs_commit_end(struct cn_vfs_file *file, bool *logged, uint64_t *lsn, struct cn_err *err);

/* What is behind an SQLITE_CORRUPT: true, and why, if a page did not match its checksum. */
bool cn_vfs_damage_take(struct cn_vfs_file *file, struct cn_err *err);

/* Size in pages as the connection sees it. */
uint32_t cn_vfs_page_count(const struct cn_vfs_file *file);

#endif
