/* SPDX-License-Identifier: Apache-2.0 */
/* The store as a whole: its directory, its namespaces, deletion, whole databases. */
#include "store/store.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/catalog.h"
#include "store/sink.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static const struct cn_store_config manual = {.manual = true};

static int try_open(struct cn_disk *disk, struct cn_err *err)
{
    struct cn_store_config config = {.disk = disk, .manual = true};
    struct cn_store *store;
    *err = (struct cn_err){0};
    int rc = cn_store_open(&config, &store, err);
    if (rc == 0)
        cn_store_close(store);
    return rc;
}

TEST(store, a_directory_in_use_is_refused)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_store *store = storetest_open(disk, &manual);
    struct cn_err err;
    CHECK_INT(CN_ELOCKED, try_open(disk, &err));
    CHECK_STR("the data directory is in use by another process", err.text);
    cn_store_close(store);
    CHECK_INT(0, try_open(disk, &err));
    cn_disk_system_free(disk);
}

TEST(store, a_newer_or_foreign_directory_is_refused)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err;
    CHECK_INT(0, try_open(simdisk_disk(sim), &err));
    CHECK_INT(0, cn_disk_replace(simdisk_disk(sim), "FORMAT", "cairn data format 3\n", 20));
    CHECK_INT(CN_EVERSION, try_open(simdisk_disk(sim), &err));
    CHECK(strstr(err.text, "format 3 is newer") != NULL);
    CHECK_INT(0, cn_disk_replace(simdisk_disk(sim), "FORMAT", "something", 9));
    CHECK_INT(CN_ECORRUPT, try_open(simdisk_disk(sim), &err));
    simdisk_free(sim);
}

TEST(store, namespaces_keep_their_numbers)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_err err = {0};
    uint32_t one, two, again;
    char name[CN_OBJECT_NAME_MAX + 1];
    CHECK_INT(0, cn_store_namespace(store, "app/Chat", &one, NULL));
    CHECK_INT(0, cn_store_namespace(store, "app/User", &two, NULL));
    CHECK(one != two);
    CHECK_INT(CN_EEXISTS, cn_store_namespace_rename(store, "app/Chat", "app/User", &err));
    CHECK_INT(CN_ENOTFOUND, cn_store_namespace_rename(store, "app/None", "app/X", &err));
    CHECK_INT(0, cn_store_namespace_rename(store, "app/Chat", "app/Room", NULL));
    struct simdisk *killed = simdisk_copy(sim);
    cn_store_close(store);
    store = storetest_open(simdisk_disk(killed), &manual);
    CHECK_INT(0, cn_store_namespace(store, "app/Room", &again, NULL));
    CHECK_INT(one, again);
    CHECK_INT(0, cn_store_namespace(store, "app/Chat", &again, NULL)); /* free again: a new one */
    CHECK(again != one && again != two);
    CHECK_INT(0, cn_store_namespace_name(store, two, name, NULL));
    CHECK_STR("app/User", name);
    CHECK_INT(CN_ENOTFOUND, cn_store_namespace_name(store, 99, name, NULL));
    CHECK_INT(CN_EINVALID, cn_store_namespace(store, "", &again, NULL));
    cn_store_close(store);
    simdisk_free(sim);
    simdisk_free(killed);
}

TEST(store, a_deleted_object_is_gone_with_its_alarm)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_object_key key = storetest_key(1);
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    uint64_t lsn;
    CHECK_INT(0, cn_store_delete(store, &key, &lsn, NULL)); /* nothing there */
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE t(a)");
    CHECK_INT(0, cn_database_set_alarm(db, 5, NULL));
    storetest_commit(db);
    CHECK_INT(CN_ELOCKED, cn_store_delete(store, &key, &lsn, NULL));
    cn_database_close(db);
    CHECK_INT(0, cn_store_delete(store, &key, &lsn, NULL));
    CHECK(lsn > 0);
    CHECK_INT(0, cn_catalog_find(cn_store_catalog(store), &key, &entry, name, NULL));
    struct cn_database_options options = {.must_exist = true};
    CHECK_INT(CN_ENOTFOUND, cn_database_open(store, &key, &options, &db, NULL));
    CHECK_INT(0, cn_store_wait(store, lsn, NULL));
    struct simdisk *killed = simdisk_copy(sim);
    cn_store_close(store);
    store = storetest_open(simdisk_disk(killed), &manual);
    CHECK_INT(CN_ENOTFOUND, cn_database_open(store, &key, &options, &db, NULL));
    db = storetest_database(store, 1); /* a new object under the old id */
    CHECK_INT(0, storetest_int(db, "SELECT count(*) FROM sqlite_schema"));
    CHECK(cn_database_alarm(db) == CN_ALARM_NONE);
    storetest_exec(db, "CREATE TABLE u(a)");
    storetest_commit(db);
    cn_database_close(db);
    CHECK_INT(1, cn_catalog_find(cn_store_catalog(store), &key, &entry, name, NULL));
    cn_store_close(store);
    simdisk_free(sim);
    simdisk_free(killed);
}

/* A copy of a database in memory. */
struct copy {
    uint8_t *pages;
    uint32_t count;
};

static int copy_page(void *data, uint32_t page_no, const uint8_t *page)
{
    struct copy *copy = data;
    CHECK_INT(copy->count + 1, page_no);
    copy->pages = cn_realloc(copy->pages, (size_t)page_no * CN_PAGE_SIZE);
    memcpy(copy->pages + (size_t)copy->count++ * CN_PAGE_SIZE, page, CN_PAGE_SIZE);
    return 0;
}

static int read_copy(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE], struct cn_err *err)
{
    const struct copy *copy = data;
    memcpy(page, copy->pages + (size_t)(page_no - 1) * CN_PAGE_SIZE, CN_PAGE_SIZE);
    return 0;
}

TEST(store, a_database_is_replaced_by_a_snapshot_of_itself)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_object_key key = storetest_key(1);
    struct cn_database *db = storetest_database(store, 1);
    struct copy copy = {0};
    struct cn_page_source source = {&copy, read_copy};
    uint32_t page_count;
    uint64_t lsn;
    storetest_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1), (2)");
    storetest_commit(db);
    CHECK_INT(0, cn_store_snapshot(store, &key, copy_page, &copy, &page_count, &lsn, NULL));
    CHECK_INT(page_count, copy.count);
    storetest_exec(db, "DELETE FROM t; CREATE TABLE u(b); INSERT INTO u VALUES(randomblob(40000))");
    storetest_commit(db);
    CHECK_INT(CN_ELOCKED, cn_store_replace(store, &key, copy.count, &source, NULL, &lsn, NULL));
    cn_database_close(db);
    CHECK_INT(0, cn_store_replace(store, &key, copy.count, &source, NULL, &lsn, NULL));
    CHECK_INT(0, cn_store_wait(store, lsn, NULL));
    for (int i = 0; i < 2; i++) { /* from memory, then after a kill, from the log */
        db = storetest_database(store, 1);
        CHECK_STR("1,2", storetest_text(db, "SELECT group_concat(a) FROM t"));
        CHECK_STR("ok", storetest_text(db, "PRAGMA integrity_check"));
        CHECK_INT((long long)copy.count * CN_PAGE_SIZE, (long long)cn_database_size(db));
        cn_database_close(db);
        struct simdisk *killed = simdisk_copy(sim);
        cn_store_close(store);
        simdisk_free(sim);
        sim = killed;
        store = storetest_open(simdisk_disk(sim), &manual);
    }
    cn_store_close(store);
    simdisk_free(sim);
    cn_free(copy.pages);
}

TEST(store, commits_fail_and_reads_go_on_after_the_disk_has_failed)
{
    struct simdisk *sim = simdisk_new();
    struct cn_store *store = storetest_open(simdisk_disk(sim), &manual);
    struct cn_database *db = storetest_database(store, 1);
    struct cn_err err = {0};
    uint64_t lsn;
    storetest_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    lsn = storetest_commit(db);
    CHECK_INT(0, cn_store_wait(store, lsn, NULL));
    simdisk_set_fault(sim, &(struct simdisk_fault){.kinds = SIMDISK_WRITE, .at = 1, .code = -EIO});
    storetest_exec(db, "INSERT INTO t VALUES(2)");
    lsn = storetest_commit(db); /* accepted, and never durable */
    CHECK_INT(CN_EREADONLY, cn_store_wait(store, lsn, &err));
    storetest_exec(db, "INSERT INTO t VALUES(3)");
    CHECK_INT(CN_EREADONLY, cn_database_commit(db, &lsn, &err));
    CHECK(strstr(err.text, "writing the log failed") != NULL);
    CHECK_INT(CN_EREADONLY, cn_store_status(store, &err));
    CHECK_INT(2, storetest_int(db, "SELECT count(*) FROM t"));
    cn_database_close(db);
    cn_store_close(store);
    simdisk_set_fault(sim, NULL);
    store = storetest_open(simdisk_disk(sim), &manual);
    db = storetest_database(store, 1);
    CHECK(storetest_int(db, "SELECT count(*) FROM t") >= 1);
    cn_database_close(db);
    cn_store_close(store);
    simdisk_free(sim);
}

/* --- a sink: store/sink.h -------------------------------------------------------------------- */

static int refuse_after(void *data, const struct cn_sink_batch *batch, struct cn_err *err)
{
    uint64_t *last = data;
    return batch->last_lsn > *last ? cn_err_set(err, CN_EREADONLY, "the session is over") : 0;
}

/* Commits a table of this name; its LSN. */
static uint64_t commit_table(struct cn_database *db, const char *sql)
{
    uint64_t lsn;
    CHECK_INT(0, cn_database_exec(db, sql, NULL));
    CHECK_INT(0, cn_database_commit(db, &lsn, NULL));
    return lsn;
}

/* K1, K2: with checkpoints that try to bring everything to its file, and a crash at the end. */
TEST(store, has_on_disk_a_beginning_of_what_its_sink_has)
{
    struct simdisk *sim = simdisk_new();
    uint64_t last = UINT64_MAX;
    struct cn_sink sink = {.data = &last, .settle = refuse_after};
    struct cn_store_config config = {.manual = true, .sink = &sink};
    struct cn_store *store = storetest_open(simdisk_disk(sim), &config);
    struct cn_database *db = storetest_database(store, 1);
    uint64_t first = commit_table(db, "CREATE TABLE a(x)");
    CHECK(!cn_store_may_leave(store, first));
    CHECK_INT(0, cn_store_wait(store, first, NULL));
    CHECK(cn_store_may_leave(store, first));
    last = cn_store_durable(store);
    uint64_t second = commit_table(db, "CREATE TABLE b(x)");
    CHECK(cn_store_checkpoint(store, NULL) < 0);
    CHECK(!cn_store_may_leave(store, second));
    struct cn_err err = {0};
    CHECK_INT(CN_EREADONLY, cn_store_status(store, &err));
    CHECK(strstr(err.text, "the session is over") != NULL);
    struct simdisk *killed = simdisk_copy(sim);
    cn_database_close(db);
    cn_store_close(store);
    for (int i = 0; i < 2; i++) { /* after a kill, and after an end in order */
        store = storetest_open(simdisk_disk(i ? sim : killed), &manual);
        db = storetest_database(store, 1);
        CHECK_INT(0, cn_database_exec(db, "INSERT INTO a VALUES (1)", NULL));
        CHECK(cn_database_exec(db, "INSERT INTO b VALUES (1)", NULL) < 0);
        cn_database_close(db);
        cn_store_close(store);
    }
    simdisk_free(sim);
    simdisk_free(killed);
}
