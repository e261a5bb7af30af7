/* SPDX-License-Identifier: Apache-2.0 */
/* store/plain.h - plain SQLite files of others: read, put in order, and made an object's database.
 *
 *     file (+ -wal) ──copy──► our own file ──open──► checked ──settle──► pages as ours ──► object
 *
 *   G1  The source is read with read(2) and nothing else, its write-ahead log with it. If it changes
 *       meanwhile the copy is refused (CN_ELOCKED); links are not followed.
 *   G2  A file may hold anything. It is checked as a whole before it is used, and a table is asked
 *       only if it is one, without triggers and indexes of its own: reading it runs nobody's code.
 *   G3  The pages of an object are those of the settled file, and the same source gives the same
 *       pages: whether an object is what its source is, is a comparison of bytes.
 *   G4  An object appears whole, in one commit. One that is too large for that appears in parts; what
 *       an interruption leaves is a beginning of its source, and is continued.
 *
 * Threads: one at a time. */
#ifndef CN_STORE_PLAIN_H
#define CN_STORE_PLAIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/database.h"
#include "store/record.h"

struct cn_buf;
struct cn_plain;
struct cn_replace_meta;
struct cn_store;

/* G1. Paths of the system; `to` and `to`-wal are replaced. */
int cn_plain_copy(const char *from, const char *to, struct cn_err *err);

/* G2. CN_ECORRUPT: it is damaged, or no database. */
int cn_plain_open(const char *path, struct cn_plain **plain, struct cn_err *err);
void cn_plain_close(struct cn_plain *plain); /* NULL is fine */
/* Whether it has such a table, to be read (G2). CN_ECORRUPT: there is something of that name that
 * may not be. */
int cn_plain_has(struct cn_plain *plain, const char *table, struct cn_err *err);

struct cn_plain_row; /* during a callback */
bool cn_plain_null(const struct cn_plain_row *row, int column);
int64_t cn_plain_int(const struct cn_plain_row *row, int column);
/* Borrowed; never NULL. Terminated, as a text. */
const char *cn_plain_text(const struct cn_plain_row *row, int column, size_t *size);
typedef int (*cn_plain_each)(void *data, const struct cn_plain_row *row, struct cn_err *err);
/* Calls back for each row of a query of ours, whose first parameter is the text (or NULL); a
 * negative return ends it and is returned. */
int cn_plain_query(struct cn_plain *plain, const char *sql, const char *text, cn_plain_each each,
                   void *data, struct cn_err *err);

/* Replaces the values of the table _cf_KV, if it is there. */
int cn_plain_rewrite(struct cn_plain *plain,
                     int (*convert)(void *data, const void *bytes, size_t size, struct cn_buf *out,
                                    struct cn_err *err),
                     void *data, struct cn_err *err);
/* G3: drops the tables of the platform and of its simulator, and gives the file the form of ours.
 * The connection ends. *page_count: 0 if no table is left. */
int cn_plain_settle(struct cn_plain *plain, uint32_t *page_count, struct cn_err *err);

/* --- a file that is made of statements of others ----------------------------------------------- */

struct cn_plain_cell {
    enum cn_sql_type type;
    int64_t integer;
    double real;
    const void *bytes; /* of a text or a blob; borrowed */
    size_t size;
};

/* An empty one at `path`, which is replaced. */
int cn_plain_make(const char *path, struct cn_plain **plain, struct cn_err *err);
/* Runs a statement that defines or fills tables; any other, and what reaches beyond the file, is
 * refused, and one that takes longer than a minute ends. */
int cn_plain_run(struct cn_plain *plain, const char *sql, const struct cn_plain_cell *cells,
                 size_t count, struct cn_err *err);
/* Adds a pair to _cf_KV. */
int cn_plain_put(struct cn_plain *plain, const char *key, size_t key_size, const void *value,
                 size_t size, struct cn_err *err);

enum cn_plain_outcome { CN_PLAIN_CAME, CN_PLAIN_THERE, CN_PLAIN_OTHER };
/* A settled file, and what goes with it. */
struct cn_plain_file {
    const char *path;
    uint32_t page_count;
    const struct cn_replace_meta *meta; /* NULL: nothing */
    bool look;                          /* only compare */
};
/* Makes the object of `key` what the file is, if it does not exist. THERE: it is that already;
 * OTHER: it is something else, and stays; of one that is looked at also: it is not there. Durable
 * when the store says so (cn_store_wait()). */
int cn_plain_store(struct cn_store *store, const struct cn_object_key *key,
                   const struct cn_plain_file *file, enum cn_plain_outcome *outcome,
                   struct cn_err *err);

#endif
