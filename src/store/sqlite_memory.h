/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite_memory.h - how much memory SQLite has: pages, statements, schemas.
 *
 * Threads: any; the setup once, before SQLite is used. */
#ifndef CN_STORE_SQLITE_MEMORY_H
#define CN_STORE_SQLITE_MEMORY_H
#include <stdint.h>

/* A code of SQLite. */
int cn_sqlite_memory_setup(void);
uint64_t cn_sqlite_memory_bytes(void);

#endif
