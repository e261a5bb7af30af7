/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/storetest.h - short ways to a store and its databases, for tests. */
#ifndef CN_TEST_STORETEST_H
#define CN_TEST_STORETEST_H
#include "base/disk.h"
#include "base/err.h"
#include "store/database.h"
#include "store/store.h"

/* A fresh directory below test_dir(), as a disk of its own. */
struct cn_disk *storetest_disk(void);

/* Opens a store; fails the test if it cannot. `config` may be NULL; its disk is replaced. */
struct cn_store *storetest_open(struct cn_disk *disk, const struct cn_store_config *config);

/* The key of object `number` in namespace 1. */
struct cn_object_key storetest_key(unsigned number);

struct cn_database *storetest_database(struct cn_store *store, unsigned number);
void storetest_exec(struct cn_database *db, const char *sql);
/* The first column of the first row as text ("" for none, "NULL" for NULL); valid until the next
 * call. */
const char *storetest_text(struct cn_database *db, const char *sql);
int64_t storetest_int(struct cn_database *db, const char *sql);
/* Commits; fails the test if that is refused. */
uint64_t storetest_commit(struct cn_database *db);

#endif
