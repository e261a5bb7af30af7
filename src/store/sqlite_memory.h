/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite_memory.h - how much memory SQLite has: pages, statements, schemas.
 *
 * Q1  What a statement of a guest has (rows that it sorts, tables of its own, what is bound) is
 *     counted for that statement, and may be refused: past CN_GUEST_FREE the statement gets no more
 *     once those of all guests have a quarter of the limit and half of it is used, or the
 *     process is at level BODIES (base/account.h, A4). It then ends with SQLITE_NOMEM.
 *
 * Threads: any; the setup once, before SQLite is used. */
#ifndef CN_STORE_SQLITE_MEMORY_H
#define CN_STORE_SQLITE_MEMORY_H
#include <stdint.h>

/* A code of SQLite. */
int cn_sqlite_memory_setup(void);
uint64_t cn_sqlite_memory_bytes(void);

#define CN_GUEST_FREE ((int64_t)1 << 20)
/* From begin to end what the calling thread takes and gives is *bytes, of a guest's statement. */
void cn_sqlite_memory_begin(int64_t *bytes);
void cn_sqlite_memory_end(void);
/* The statement has nothing any more. */
void cn_sqlite_memory_forget(int64_t *bytes);

#endif
