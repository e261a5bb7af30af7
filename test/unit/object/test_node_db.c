/* SPDX-License-Identifier: Apache-2.0 */
/* What the node remembers for itself: written whole or not at all, and only when there is
 * something. */
#include "object/node_db.h"

#include <errno.h>

#include "base/disk.h"
#include "store/database.h"
#include "store/store.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static int insert_row(struct cn_database *db, void *data, struct cn_err *err)
{
    int *calls = data;
    ++*calls;
    return cn_database_exec(db,
                            "INSERT INTO restores(namespace, id, source_namespace, source_id,"
                            " bookmark) VALUES(1, randomblob(32), 1, zeroblob(32), 'b')",
                            err);
}

static int insert_and_refuse(struct cn_database *db, void *data, struct cn_err *err)
{
    int rc = insert_row(db, data, err);
    return rc < 0 ? rc : cn_err_set(err, CN_EINVALID, "changed its mind");
}

static int count_rows(struct cn_database *db, void *data, struct cn_err *err)
{
    (void)err;
    *(int *)data = (int)storetest_int(db, "SELECT count(*) FROM restores");
    return 0;
}

static int rows(struct cn_node_db *own)
{
    struct cn_err err;
    int count = -1; /* the work was not run */
    CHECK_INT(0, cn_node_db_read(own, count_rows, &count, &err));
    return count;
}

TEST(node_db, nothing_is_written_and_no_reader_is_run_until_there_is_something)
{
    struct cn_store *store = storetest_open(storetest_disk(), NULL);
    struct cn_node_db *own;
    struct cn_err err;
    int calls = 0;
    CHECK_INT(0, cn_node_db_open(store, NULL, &own, &err));
    CHECK_INT(-1, rows(own));
    CHECK_INT(0, cn_node_db_run(own, insert_row, &calls, &err));
    CHECK_INT(1, rows(own));
    cn_node_db_close(own);
    cn_node_db_close(NULL);
    cn_store_close(store);
}

TEST(node_db, work_that_fails_leaves_nothing_not_even_with_the_first_schema)
{
    struct cn_store *store = storetest_open(storetest_disk(), NULL);
    struct cn_node_db *own;
    struct cn_err err;
    int calls = 0;
    CHECK_INT(0, cn_node_db_open(store, NULL, &own, &err));
    CHECK_INT(CN_EINVALID, cn_node_db_run(own, insert_and_refuse, &calls, &err));
    CHECK_STR("changed its mind", err.text);
    CHECK_INT(0, rows(own)); /* the schema is made anew: it went with the rest */
    CHECK_INT(0, cn_node_db_run(own, insert_row, &calls, &err));
    CHECK_INT(CN_EINVALID, cn_node_db_run(own, insert_and_refuse, &calls, &err));
    CHECK_INT(1, rows(own));
    CHECK_INT(3, calls);
    cn_node_db_close(own);
    cn_store_close(store);
}

struct pair {
    struct cn_store *store;
    struct cn_node_db *own;
};

static struct pair open_on(struct simdisk *sim)
{
    struct cn_store_config config = {.disk = simdisk_disk(sim), .segment_size = 1 << 20};
    struct pair pair;
    struct cn_err err;
    CHECK_INT(0, cn_store_open(&config, &pair.store, &err));
    CHECK_INT(0, cn_node_db_open(pair.store, NULL, &pair.own, &err));
    return pair;
}

static void close_pair(struct pair *pair)
{
    cn_node_db_close(pair->own);
    cn_store_close(pair->store);
}

TEST(node_db, what_was_done_survives_a_loss_of_power)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err;
    int calls = 0;
    struct pair pair = open_on(sim);
    for (int i = 1; i <= 3; i++) {
        CHECK_INT(0, cn_node_db_run(pair.own, insert_row, &calls, &err));
        struct simdisk *found = simdisk_crash(sim, (uint64_t)i);
        struct pair again = open_on(found);
        CHECK_INT(i, rows(again.own));
        close_pair(&again);
        simdisk_free(found);
    }
    close_pair(&pair);
    simdisk_free(sim);
}

TEST(node_db, a_log_that_has_failed_is_said_to_whoever_waits_for_it)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err;
    int calls = 0;
    struct pair pair = open_on(sim);
    CHECK_INT(0, cn_node_db_run(pair.own, insert_row, &calls, &err));
    simdisk_set_fault(
        sim, &(struct simdisk_fault){.kinds = SIMDISK_SYNC, .at = 1, .code = -EIO, .sticky = true});
    CHECK(cn_node_db_run(pair.own, insert_row, &calls, &err) < 0);
    CHECK(err.text[0]);
    simdisk_set_fault(sim, &(struct simdisk_fault){0});
    close_pair(&pair);
    simdisk_free(sim);
}
