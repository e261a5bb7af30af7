/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite.h - what every use of SQLite in the store shares: errors, and the
 * parts of a VFS that are the same for all.
 *
 * Threads: any. */
#ifndef CN_STORE_SQLITE_H
#define CN_STORE_SQLITE_H
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/err.h"

/* Must have succeeded before any other call of SQLite; cheap when repeated. */
int cn_sqlite_setup(struct cn_err *err);

/* "SQLITE_CONSTRAINT" and so on, for a primary or extended code. */
const char *cn_sqlite_code_name(int code);

/* Fills `err` with the connection's message and the name of the code, as in
 * "no such table: t: SQLITE_ERROR", the place in the statement and the extended code if there is
 * one: "near
 * \"x\": syntax error at offset 7: SQLITE_ERROR". Returns CN_ESQL, or CN_ENOMEM. */
int cn_sqlite_error(sqlite3 *connection, int code, struct cn_err *err);

/* Prepares a statement of our own; a failure is a bug or a damaged file. */
int cn_sqlite_prepare(sqlite3 *connection, const char *sql, sqlite3_stmt **statement,
                      struct cn_err *err);
/* Runs statements of our own that return no rows. */
int cn_sqlite_exec(sqlite3 *connection, const char *sql, struct cn_err *err);

/* Fills a VFS with the methods that do not touch files (time, randomness, ...) and `name`. */
void cn_sqlite_vfs_init(sqlite3_vfs *vfs, const char *name, int file_size, void *data);

/* The no-op locks of files that one connection has for itself. */
int cn_sqlite_lock_none(sqlite3_file *file, int level);
int cn_sqlite_lock_check(sqlite3_file *file, int *held);

/* A VFS over a disk as it is, with SQLite's own journal and syncs: for the
 * catalog and for exported files. Registered under `name` (borrowed) until freed. */
struct cn_diskvfs;
struct cn_diskvfs *cn_diskvfs_new(struct cn_disk *disk, const char *name);
void cn_diskvfs_free(struct cn_diskvfs *vfs);

/* A database with this many bytes reserved at the end of its pages (diskvfs.c) has a checksum in
 * each: set when the page is written, compared when it is read. */
#define CN_DISKVFS_SEAL 8
bool cn_diskvfs_sealed(sqlite3 *connection); /* whether the main database has them */
bool cn_diskvfs_page_good(const uint8_t *page, uint32_t page_no);
void cn_diskvfs_page_seal(uint8_t *page, uint32_t page_no);

#endif
