/* SPDX-License-Identifier: Apache-2.0 */
/* Damage of the medium: a flipped bit anywhere in a data directory gives the right data or an
 * error, never other data; the check finds it wherever it matters; a page of one object is an error
 * for that object alone, and history brings it back; directories without checksums still open.
 *
 *     CAIRN_FLIPS=3000 build/unit/store/test_damage flipped      a longer run: make flips */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/rand.h"
#include "store/blob.h"
#include "store/check.h"
#include "store/history.h"
#include "store/image.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/sums.h"
#include "test/lib/simdisk.h"
#include "test/lib/storemodel.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

/* ---- a store at work, and its disk ---- */

struct rig {
    struct simdisk *sim;
    struct cn_history *history;
    struct cn_store *store;
    struct model model;
};

static int rig_try(struct rig *rig, struct cn_err *err)
{
    struct cn_history_config history_config = {.disk = simdisk_disk(rig->sim)};
    int rc = cn_history_open(&history_config, &rig->history, err);
    if (rc < 0)
        return rc;
    struct cn_store_config config = {.disk = simdisk_disk(rig->sim),
                                     .segment_size = 64 << 10,
                                     .log_live_size = 1 << 20,
                                     .dirty_size_max = 64 << 10,
                                     .open_files_max = 4,
                                     .manual = true,
                                     .history = cn_history_callbacks(rig->history)};
    rc = cn_store_open(&config, &rig->store, err);
    if (rc < 0)
        cn_history_close(rig->history);
    return rc;
}

static void rig_close(struct rig *rig)
{
    model_close_databases(&rig->model);
    cn_store_close(rig->store);
    cn_history_close(rig->history);
}

static void rig_open(struct rig *rig)
{
    struct cn_err err = {0};
    if (rig_try(rig, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* A directory that has been used: log, history, databases, blobs; stopped in order, or killed. */
static void rig_init(struct rig *rig, int turns, bool killed)
{
    uint64_t lsn;
    struct cn_blobs *blobs;
    struct cn_blob_writer *writer;
    struct cn_blob_id id;
    memset(rig, 0, sizeof(*rig));
    rig->sim = simdisk_new();
    model_init(&rig->model, test_seed(), 8);
    rig_open(rig);
    CHECK_INT(0, model_open_namespaces(&rig->model, rig->store));
    for (int i = 0; i < turns; i++) {
        if (model_turn(&rig->model, rig->store, &lsn) < 0)
            test_fail(__FILE__, __LINE__, "%s", rig->model.why);
        if (cn_log_live_size(cn_store_log(rig->store)) > 200 << 10)
            CHECK_INT(0, cn_store_checkpoint(rig->store, NULL));
    }
    CHECK_INT(0, cn_blobs_open(simdisk_disk(rig->sim), "blobs", &blobs, NULL));
    CHECK_INT(0, cn_blob_create(blobs, &writer, NULL));
    CHECK_INT(0, cn_blob_write(writer, "a blob of some bytes", 20, NULL));
    CHECK_INT(0, cn_blob_finish(writer, &id, NULL));
    cn_blobs_close(blobs);
    struct simdisk *found = NULL;
    if (killed) {
        CHECK_INT(0, cn_store_wait(rig->store, cn_log_appended(cn_store_log(rig->store)), NULL));
        found = simdisk_copy(rig->sim);
    }
    rig_close(rig);
    if (found) {
        simdisk_free(rig->sim);
        rig->sim = found;
    }
}

static void rig_fini(struct rig *rig)
{
    model_fini(&rig->model);
    simdisk_free(rig->sim);
}

/* ---- which bit ---- */

struct places {
    struct place {
        char path[160];
        uint64_t size;
    } list[400];
    size_t count;
    uint64_t last_segment; /* index of it, +1 */
    struct cn_disk *disk;
};

static int add_place(void *data, const char *path)
{
    struct places *places = data;
    struct cn_disk_file *file;
    if (places->count == sizeof(places->list) / sizeof(places->list[0]) || strstr(path, ".tmp"))
        return 0;
    CHECK_INT(0, cn_disk_open(places->disk, path, CN_DISK_READONLY, &file));
    int64_t size = cn_disk_size(file);
    cn_disk_close(file);
    if (size <= 0)
        return 0;
    struct place *place = &places->list[places->count++];
    snprintf(place->path, sizeof(place->path), "%s", path);
    place->size = (uint64_t)size;
    if (strstr(path, ".seg"))
        places->last_segment = places->count;
    return 0;
}

struct flip {
    char path[160];
    uint64_t at;
    unsigned bit;
};

/* Folder by folder, so that few small files of one kind get their share. */
static void flip_choose(struct cn_disk *disk, struct cn_rand *rand, bool killed, struct flip *flip)
{
    static const char *const folders[] = {"", "log", "objects", "catalog", "history", "aside"};
    struct places places;
    do {
        const char *folder = folders[cn_rand_below(rand, 6)];
        places = (struct places){.disk = disk};
        if (*folder)
            CHECK_INT(0, cn_disk_walk(disk, folder, add_place, &places));
        else
            CHECK_INT(0, add_place(&places, "FORMAT"));
    } while (places.count == 0);
    size_t index = cn_rand_below(rand, places.count);
    /* Of a process that was killed: the last records cannot be told from a torn tail. */
    if (killed && index + 1 == places.last_segment && places.count > 1)
        index = index ? index - 1 : index + 1;
    snprintf(flip->path, sizeof(flip->path), "%s", places.list[index].path);
    flip->at = cn_rand_below(rand, places.list[index].size);
    flip->bit = (unsigned)cn_rand_below(rand, 8);
}

/* ---- what comes of it ---- */

struct findings {
    int count;
    char last[640];
};

static void note_problem(void *data, const char *text)
{
    struct findings *findings = data;
    findings->count++;
    snprintf(findings->last, sizeof(findings->last), "%s", text);
}

/* Whether the check says that something is wrong. */
static bool check_finds(struct simdisk *sim, struct findings *findings)
{
    struct cn_err err = {0};
    struct cn_check_report report = {.problem = note_problem, .data = findings};
    *findings = (struct findings){0};
    return cn_check(simdisk_disk(sim), &report, &err) < 0 || findings->count > 0;
}

static bool is_error(const char *why)
{
    return strstr(why, "catalog: ") || strstr(why, "does not open") ||
           strstr(why, "cannot be read");
}

/* Reads every object; errors are counted, other data fails the test. */
static int read_all(struct rig *rig, const struct flip *flip, char *why, size_t why_size)
{
    int errors = 0;
    for (int i = 0; i < rig->model.object_count; i++) {
        struct model_object *object = &rig->model.objects[i];
        const struct model_state *want = model_state_at(object, UINT64_MAX);
        struct model_state state;
        rig->model.why[0] = 0;
        int rc = model_read_object(&rig->model, rig->store, object, &state);
        bool wrong = rc < 0 ? !is_error(rig->model.why) : memcmp(&state, want, sizeof(state)) != 0;
        if (wrong)
            test_fail(__FILE__, __LINE__,
                      "%s, byte %" PRIu64 ", bit %u: object %d is not itself: %s", flip->path,
                      flip->at, flip->bit, i, rig->model.why);
        if (rc < 0) {
            errors++;
            snprintf(why, why_size, "%.*s", (int)why_size - 1, rig->model.why);
        }
    }
    rig->model.why[0] = 0;
    return errors;
}

/* An object's earlier states, from log and history: the right file or a refusal. */
static void export_some(struct rig *rig, const struct flip *flip, struct cn_rand *rand,
                        const char *folder)
{
    for (int i = 0; i < 3; i++) {
        struct model_object *object =
            &rig->model.objects[cn_rand_below(rand, (uint64_t)rig->model.object_count)];
        const struct model_version *version =
            &object->versions[cn_rand_below(rand, (uint64_t)object->version_count)];
        struct cn_bookmark moment = {.lsn = version->lsn, .time_ms = 1};
        struct cn_err err = {0};
        char bookmark[CN_BOOKMARK_SIZE], path[512];
        if (version->lsn == 0)
            continue;
        cn_bookmark_format(&moment, &object->key, bookmark);
        struct cn_disk *disk = cn_disk_system_new(folder);
        int rc = cn_history_copy(rig->history, rig->store, &object->key, bookmark, disk,
                                 "export.db", &err);
        snprintf(path, sizeof(path), "%s/export.db", folder);
        rig->model.why[0] = 0;
        if (rc == 0 && model_compare_file(&rig->model, path, &version->state) < 0)
            test_fail(__FILE__, __LINE__, "%s, byte %" PRIu64 ", bit %u: history is wrong: %s",
                      flip->path, flip->at, flip->bit, rig->model.why);
        rig->model.why[0] = 0;
        (void)cn_disk_unlink(disk, "export.db"); /* absent after a refusal */
        cn_disk_system_free(disk);
    }
}

static int flips_wanted(int usual)
{
    const char *text = getenv("CAIRN_FLIPS");
    return text ? atoi(text) : usual;
}

static void run_flips(bool killed, int count)
{
    struct rig rig;
    struct cn_rand rand;
    struct findings findings;
    int found = 0, refused = 0, harmless = 0;
    const char *folder = test_dir();
    cn_rand_init(&rand, test_seed());
    rig_init(&rig, 500, killed);
    CHECK(!check_finds(rig.sim, &findings));
    for (int i = 0; i < count; i++) {
        struct flip flip;
        struct cn_err err = {0};
        char why[512] = "";
        struct rig copy = {.sim = simdisk_copy(rig.sim), .model = rig.model};
        copy.model.spoilt = true;
        flip_choose(simdisk_disk(copy.sim), &rand, killed, &flip);
        CHECK_INT(0, simdisk_damage(copy.sim, flip.path, flip.at, flip.bit));
        bool seen = check_finds(copy.sim, &findings);
        found += seen;
        int rc = rig_try(&copy, &err), errors = rc < 0;
        if (rc < 0)
            snprintf(why, sizeof(why), "%s", err.text);
        refused += rc < 0;
        if (rc == 0) {
            errors = read_all(&copy, &flip, why, sizeof(why));
            export_some(&copy, &flip, &rand, folder);
            cn_store_close(copy.store);
            cn_history_close(copy.history);
        }
        harmless += !seen;
        if (errors && !seen)
            test_fail(__FILE__, __LINE__, "%s, byte %" PRIu64 ", bit %u: not found, but %s",
                      flip.path, flip.at, flip.bit, why);
        simdisk_free(copy.sim);
    }
    if (getenv("CAIRN_FLIPS"))
        printf(
            "%d flips of a directory that was %s: the check found %d, %d kept it from opening, %d"
            " did not matter; no object and no moment of history was other than it should be\n",
            count, killed ? "killed" : "closed", found, refused, harmless);
    CHECK(found > count / 3);
    rig_fini(&rig);
}

TEST(damage, flipped_bits_of_a_closed_directory_are_right_data_or_an_error)
{
    run_flips(false, flips_wanted(40));
}

TEST(damage, flipped_bits_of_a_killed_directory_are_right_data_or_an_error)
{
    run_flips(true, flips_wanted(40));
}

/* ---- kinds of files, one by one ---- */

static void find_all_in(struct rig *rig, const char *folder, int count)
{
    struct cn_rand rand;
    struct findings findings;
    struct places places = {.disk = simdisk_disk(rig->sim)};
    cn_rand_init(&rand, test_seed());
    CHECK_INT(0, cn_disk_walk(places.disk, folder, add_place, &places));
    CHECK(places.count > 0);
    for (int i = 0; i < count; i++) {
        const struct place *place = &places.list[cn_rand_below(&rand, places.count)];
        uint64_t at = cn_rand_below(&rand, place->size);
        if (strstr(place->path, "-journal"))
            continue; /* of a commit that is over: nobody reads it */
        CHECK_INT(0, simdisk_damage(rig->sim, place->path, at, (unsigned)(i % 8)));
        if (!check_finds(rig->sim, &findings))
            test_fail(__FILE__, __LINE__, "%s, byte %" PRIu64 " is not found", place->path, at);
        CHECK_INT(0, simdisk_damage(rig->sim, place->path, at, (unsigned)(i % 8)));
    }
    CHECK(!check_finds(rig->sim, &findings));
}

TEST(damage, the_check_finds_every_bit_of_databases_and_catalog)
{
    struct rig rig;
    rig_init(&rig, 200, false);
    find_all_in(&rig, "objects", 30);
    find_all_in(&rig, "catalog", 30);
    rig_fini(&rig);
}

/* A checkpoint that could not hand over leaves files aside: flips of those, too. */
TEST(damage, the_check_finds_every_bit_of_what_was_set_aside)
{
    struct rig rig = {.sim = simdisk_new()};
    struct findings findings;
    rig_open(&rig);
    uint32_t id;
    CHECK_INT(0, cn_store_namespace(rig.store, "one", &id, NULL));
    struct cn_database *db = storetest_database(rig.store, 1);
    storetest_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(randomblob(9000))");
    storetest_commit(db);
    CHECK_INT(0, cn_database_delete_all(db, true, NULL));
    storetest_exec(db, "CREATE TABLE u(a)");
    storetest_commit(db);
    CHECK_INT(0, cn_database_delete_all(db, true, NULL)); /* finishes the reset before it */
    storetest_commit(db);
    struct simdisk *left = simdisk_copy(rig.sim);
    cn_database_close(db);
    rig_close(&rig);
    simdisk_free(rig.sim);
    rig.sim = left;
    CHECK(!check_finds(rig.sim, &findings));
    find_all_in(&rig, "aside", 25);
    simdisk_free(rig.sim);
}

/* ---- one page of one object ---- */

static void fill_object(struct cn_store *store, unsigned number)
{
    struct cn_database *db = storetest_database(store, number);
    storetest_exec(db, "CREATE TABLE t(k INTEGER PRIMARY KEY, v)");
    for (int i = 0; i < 5; i++) {
        storetest_exec(db, "INSERT INTO t(v) VALUES(hex(randomblob(3000)))");
        storetest_commit(db);
    }
    cn_database_close(db);
}

TEST(damage, a_page_is_an_error_for_its_object_alone_and_comes_back_from_history)
{
    static const char query[] = "SELECT count(v), sum(length(v)) FROM t";
    struct rig rig = {.sim = simdisk_new()};
    struct cn_err err = {0};
    char path[CN_IMAGE_PATH_MAX];
    uint32_t id, healed = 0;
    rig_open(&rig);
    CHECK_INT(0, cn_store_namespace(rig.store, "one", &id, NULL));
    for (unsigned i = 1; i <= 3; i++) {
        fill_object(rig.store, i);
        CHECK_INT(0,
                  cn_store_checkpoint(rig.store, NULL)); /* so that pages are logged whole again */
    }
    struct cn_database *db = storetest_database(rig.store, 2);
    storetest_exec(db, "UPDATE t SET v = 'short' WHERE k = 1");
    storetest_commit(db);
    char *want = cn_strdup(storetest_text(db, "SELECT hex(group_concat(v)) FROM t"));
    cn_database_close(db);
    rig_close(&rig);

    struct cn_object_key key = storetest_key(2);
    cn_image_path(&key, path);
    for (uint64_t page = 0; page < 4; page++)
        CHECK_INT(0, simdisk_damage(rig.sim, path, page * 4096 + 1234, 3));
    rig_open(&rig);
    for (unsigned i = 1; i <= 3; i++) {
        db = storetest_database(rig.store, i);
        struct cn_statement *statement = NULL;
        size_t used;
        int rc =
            cn_database_prepare(db, query, strlen(query), CN_SQL_GUEST, &statement, &used, &err);
        if (rc == 0)
            rc = cn_statement_step(statement, &err);
        CHECK_INT(i == 2 ? CN_ECORRUPT : 1, rc);
        if (i == 2)
            CHECK(strstr(err.text, "does not match its checksum") &&
                  strstr(err.text, "cairn objects restore"));
        cn_statement_release(statement);
        cn_database_close(db);
    }
    /* The way back, with the object open as it is on a server. */
    db = storetest_database(rig.store, 2);
    if (cn_history_heal(rig.history, rig.store, &key, &healed, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(4, healed);
    CHECK_STR(want, storetest_text(db, "SELECT hex(group_concat(v)) FROM t"));
    cn_database_close(db);
    rig_close(&rig);
    struct findings findings;
    CHECK(!check_finds(rig.sim, &findings)); /* it has been written anew */
    cn_free(want);
    simdisk_free(rig.sim);
}

TEST(damage, a_database_file_that_is_gone_or_short_is_an_error)
{
    struct rig rig = {.sim = simdisk_new()};
    char path[CN_IMAGE_PATH_MAX];
    uint32_t id;
    rig_open(&rig);
    CHECK_INT(0, cn_store_namespace(rig.store, "one", &id, NULL));
    fill_object(rig.store, 1);
    fill_object(rig.store, 2);
    rig_close(&rig);
    struct cn_object_key key = storetest_key(1);
    struct cn_disk_file *file;
    cn_image_path(&key, path);
    CHECK_INT(0, cn_disk_open(simdisk_disk(rig.sim), path, 0, &file));
    CHECK_INT(0, cn_disk_truncate(file, 4096));
    cn_disk_close(file);
    for (int round = 0; round < 2; round++) {
        struct cn_database *db;
        struct cn_err err = {0};
        rig_open(&rig);
        CHECK_INT(CN_ECORRUPT, cn_database_open(rig.store, &key, NULL, &db, &err));
        CHECK(strstr(err.text, "instead of"));
        cn_database_close(storetest_database(rig.store, 2));
        rig_close(&rig);
        if (round == 0)
            CHECK_INT(0, cn_disk_unlink(simdisk_disk(rig.sim), path));
    }
    simdisk_free(rig.sim);
}

/* ---- directories of format 1 ---- */

/* Writes the catalog as version 1 had it: no checksums anywhere. */
static void make_format_1(struct simdisk *sim)
{
    static const char old_schema[] =
        "CREATE TABLE objects(namespace INTEGER NOT NULL, id BLOB NOT NULL, name BLOB, alarm "
        "INTEGER,"
        " created INTEGER NOT NULL, changed INTEGER NOT NULL, pages INTEGER NOT NULL,"
        " lsn INTEGER NOT NULL, PRIMARY KEY(namespace, id)) WITHOUT ROWID;"
        "CREATE TABLE namespaces(id INTEGER PRIMARY KEY, name BLOB NOT NULL, lsn INTEGER NOT NULL);"
        "PRAGMA user_version = 1;";
    struct cn_disk *disk = simdisk_disk(sim);
    struct cn_diskvfs *vfs = cn_diskvfs_new(disk, "old");
    sqlite3 *from, *to;
    sqlite3_stmt *rows, *insert;
    CHECK_INT(SQLITE_OK,
              sqlite3_open_v2("catalog/catalog.db", &from, SQLITE_OPEN_READWRITE, "old"));
    CHECK_INT(SQLITE_OK, sqlite3_open_v2("catalog/old.db", &to,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "old"));
    CHECK_INT(0, cn_sqlite_exec(to, old_schema, NULL));
    CHECK_INT(0, cn_sqlite_prepare(from, "SELECT * FROM objects", &rows, NULL));
    CHECK_INT(0,
              cn_sqlite_prepare(to, "INSERT INTO objects VALUES(?,?,?,?,?,?,?,?)", &insert, NULL));
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int i = 0; i < 8; i++)
            sqlite3_bind_value(insert, i + 1, sqlite3_column_value(rows, i));
        CHECK_INT(SQLITE_DONE, sqlite3_step(insert));
        sqlite3_reset(insert);
    }
    sqlite3_finalize(rows);
    sqlite3_finalize(insert);
    CHECK_INT(0, cn_sqlite_exec(to, "INSERT INTO namespaces VALUES(1, 'one', 1)", NULL));
    CHECK(cn_diskvfs_sealed(from) && !cn_diskvfs_sealed(to));
    sqlite3_close(from);
    sqlite3_close(to);
    cn_diskvfs_free(vfs);
    CHECK_INT(0, cn_disk_rename(disk, "catalog/old.db", "catalog/catalog.db"));
    (void)cn_disk_unlink(disk, "catalog/old.db-journal");
    CHECK_INT(0, cn_disk_replace(disk, "FORMAT", "cairn data format 1\n", 20));
}

TEST(damage, a_directory_of_format_1_opens_and_what_is_written_gets_checksums)
{
    struct rig rig = {.sim = simdisk_new()};
    struct findings findings;
    char path[CN_IMAGE_PATH_MAX];
    uint32_t id;
    rig_open(&rig);
    CHECK_INT(0, cn_store_namespace(rig.store, "one", &id, NULL));
    for (unsigned i = 1; i <= 40; i++)
        fill_object(rig.store, i);
    rig_close(&rig);
    make_format_1(rig.sim);
    CHECK(!check_finds(rig.sim, &findings)); /* on an overlay: it stays as it is */

    rig_open(&rig);
    struct cn_database *db = storetest_database(rig.store, 2);
    CHECK_INT(5, storetest_int(db, "SELECT count(*) FROM t"));
    storetest_exec(db, "UPDATE t SET v = v || 'x'");
    storetest_commit(db);
    cn_database_close(db);
    rig_close(&rig);
    CHECK(!check_finds(rig.sim, &findings));
    struct cn_object_key key = storetest_key(2);
    cn_image_path(&key, path);
    CHECK_INT(0, simdisk_damage(rig.sim, path, 2 * 4096 + 77, 1)); /* written since */
    CHECK(check_finds(rig.sim, &findings));
    CHECK_INT(0, simdisk_damage(rig.sim, path, 2 * 4096 + 77, 1));
    find_all_in(&rig, "catalog", 10); /* sealed now */
    rig_open(&rig);
    for (unsigned i = 1; i <= 40; i++) {
        db = storetest_database(rig.store, i);
        CHECK_INT(5, storetest_int(db, "SELECT count(*) FROM t"));
        cn_database_close(db);
    }
    rig_close(&rig);
    simdisk_free(rig.sim);
}

/* ---- the list of checksums ---- */

TEST(sums, parts_come_back_as_they_were)
{
    struct cn_sums sums = {0}, back = {0};
    struct cn_sums_part *parts;
    CHECK(!cn_sums_changed(&sums));
    cn_sums_resize(&sums, 64 * 2 * CN_SUMS_PART + 5);
    CHECK_INT(129, cn_sums_take(&sums, &parts));
    for (size_t i = 0; i < 129; i++)
        CHECK(
            cn_sums_load(&back, parts[i].number, parts[i].list, parts[i].count * sizeof(uint32_t)));
    CHECK(back.count == sums.count && !memcmp(back.list, sums.list, sums.count * 4));
    cn_free(parts);
    CHECK(!cn_sums_changed(&sums));
    cn_sums_set(&sums, 64 * CN_SUMS_PART + 1, 7);
    cn_sums_set(&sums, 1, 8);
    CHECK_INT(2, cn_sums_take(&sums, &parts));
    CHECK_INT(0, parts[0].number);
    CHECK_INT(64, parts[1].number);
    CHECK_INT(7, parts[1].list[0]);
    cn_free(parts);
    cn_sums_set(&sums, 64 * CN_SUMS_PART + 1, 9);
    cn_sums_resize(&sums, 3); /* what changed behind is gone */
    CHECK(sums.cut && cn_sums_changed(&sums));
    CHECK_INT(1, cn_sums_take(&sums, &parts));
    CHECK_INT(3, parts[0].count);
    cn_free(parts);
    CHECK(!cn_sums_load(&back, 0, "1234", 4)); /* out of order */
    CHECK_INT(CN_SUM_UNKNOWN, cn_sums_get(&sums, 4));
    cn_sums_fini(&sums);
    cn_sums_fini(&back);
}

TEST(sums, behind_the_pages_of_files_of_any_length)
{
    static const uint32_t counts[] = {0, 1, 3, 1019, 1020, 1021, 2044};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct simdisk *sim = simdisk_new();
        struct cn_sums sums = {0}, back = {0};
        struct cn_disk_file *file;
        uint32_t count = 0;
        CHECK_INT(0, cn_disk_open(simdisk_disk(sim), "f", CN_DISK_CREATE, &file));
        CHECK_INT(0, cn_disk_truncate(file, (uint64_t)counts[i] * 4096));
        cn_sums_resize(&sums, counts[i]);
        if (counts[i])
            cn_sums_set(&sums, counts[i], 77);
        CHECK_INT(0, cn_sums_append(&sums, file, counts[i]));
        CHECK_INT(0, cn_sums_append(&sums, file, counts[i])); /* again: it takes the place */
        CHECK(cn_disk_size(file) % 4096 != 0);
        CHECK_INT(0, cn_sums_read(&back, file, &count, NULL));
        CHECK_INT(counts[i], count);
        if (count)
            CHECK_INT(77, cn_sums_get(&back, count));
        cn_disk_close(file);
        cn_sums_fini(&sums);
        cn_sums_fini(&back);
        simdisk_free(sim);
    }
}
