/* SPDX-License-Identifier: Apache-2.0 */
/* store/template.h - the first statements of a new object, done once for its class.
 *
 * Most objects begin alike: CREATE TABLE IF NOT EXISTS ..., CREATE INDEX IF NOT EXISTS ... To
 * compile and run these takes half of the time of making an object, and always comes to the same
 * pages. So a pool keeps, for a namespace, the texts that its databases begin with and the pages
 * after them: a template. A new database whose first statement is the template's first is given
 * those pages, inside its transaction, and a connection of the pool that has their schema. The
 * statements then find that all is there, and cost next to nothing.
 *
 *     [untouched] -- first text, no template ------> [records] -- another use, commit ---> template
 *         |                                                                                   |
 *         +--------- first text of a template ---> [stands in] -- its last text ---> as usual |
 *                          ^                            |                                     |
 *                          |                 another use before that: undone, and the texts   |
 *                          |                 that came are run in the usual way               |
 *                          +------------------------------------------------------------------+
 *
 * T1  Only texts whose effect depends on nothing but the pages before them: CREATE [UNIQUE] TABLE
 *     or INDEX, IF NOT EXISTS, without SELECT. The pages are those of a database that began empty
 *     and ran just these, for the same namespace, limits and rights.
 * T2  The pages are written in an ordinary transaction of SQLite, so that roll-backs, savepoints
 *     and a commit that fails mean what they always do.
 * T3  Nobody sees tables of texts that have not come yet: whatever else is asked of the database,
 *     or its commit, undoes the pages first (cn_template_end()).
 * T4  A statement that is stood for tells the rows read and written that it told when it was
 *     recorded.
 * T5  A pool keeps few templates of few pages; one that is undone more often than not goes.
 * T6  No page of a template has a row of anybody: recording ends before anything but a text of T1
 *     runs, the statements of the key-value table (cn_database_own()) among it, which are no texts
 *     and are prepared but once for each connection. Else what one object has written would be in
 *     every one that begins as it did.
 *
 * Threads:   the pool's lane.
 * Ownership: of the pool; a database refers to the one that stands in. */
#ifndef CN_STORE_TEMPLATE_H
#define CN_STORE_TEMPLATE_H
#include <stdbool.h>
#include <stddef.h>

struct cn_database;
struct cn_err;
struct cn_list;
struct cn_statement;

/* Before a text is prepared. *expected: it is stood for, and *size is that of its first statement.
 * Negative: what the database had could not be undone or done again. */
int cn_template_prepare(struct cn_database *db, const char *sql, size_t *size, bool guest,
                        bool *expected, struct cn_err *err);
/* What became of it; `sql` and `size` as they were prepared. */
void cn_template_prepared(struct cn_database *db, struct cn_statement *statement, const char *sql,
                          size_t size, bool expected);
/* It has run: 0, or failed: negative. */
void cn_template_ran(struct cn_database *db, struct cn_statement *statement, int rc);

/* It is let go of, perhaps without having run. */
void cn_template_released(struct cn_database *db, struct cn_statement *statement);

/* T3: something else is asked of the database. */
int cn_template_end(struct cn_database *db, struct cn_err *err);
/* What it has written is undone, or its connection gone. */
void cn_template_drop(struct cn_database *db);

/* Those of a pool. */
void cn_templates_clear(struct cn_list *templates);

#endif
