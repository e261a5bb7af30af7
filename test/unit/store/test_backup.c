/* SPDX-License-Identifier: Apache-2.0 */
/* A backup made while commits go on is the state of one moment, whole, and checks clean; damage
 * anywhere in a data directory is found by a check that changes nothing. */
#include "store/backup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/rand.h"
#include "store/blob.h"
#include "store/check.h"
#include "store/history.h"
#include "store/store.h"
#include "test/lib/simdisk.h"
#include "test/lib/storemodel.h"
#include "test/lib/test.h"

struct rig {
    struct simdisk *sim;
    struct cn_history *history;
    struct cn_store *store;
    struct model model;
    bool threads;
};

static void rig_open(struct rig *rig)
{
    struct cn_err err = {0};
    struct cn_history_config history_config = {.disk = simdisk_disk(rig->sim)};
    CHECK_INT(0, cn_history_open(&history_config, &rig->history, &err));
    struct cn_store_config config = {.disk = simdisk_disk(rig->sim),
                                     .segment_size = 64 << 10,
                                     .log_live_size = 1 << 20,
                                     .dirty_size_max = 64 << 10,
                                     .open_files_max = 4,
                                     .manual = !rig->threads,
                                     .history = cn_history_callbacks(rig->history)};
    if (cn_store_open(&config, &rig->store, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    if (model_open_namespaces(&rig->model, rig->store) < 0)
        test_fail(__FILE__, __LINE__, "%s", rig->model.why);
}

static void rig_close(struct rig *rig)
{
    model_close_databases(&rig->model);
    cn_store_close(rig->store);
    cn_history_close(rig->history);
}

static void rig_init(struct rig *rig, bool threads)
{
    memset(rig, 0, sizeof(*rig));
    rig->sim = simdisk_new();
    rig->threads = threads;
    model_init(&rig->model, test_seed(), 8);
    rig_open(rig);
}

static void rig_fini(struct rig *rig)
{
    rig_close(rig);
    model_fini(&rig->model);
    simdisk_free(rig->sim);
}

static void turns(struct rig *rig, int count)
{
    uint64_t lsn;
    for (int i = 0; i < count; i++) {
        int rc = model_turn(&rig->model, rig->store, &lsn);
        if (rc < 0)
            test_fail(__FILE__, __LINE__, "%s", rig->model.why);
        if (!rig->threads && cn_log_live_size(cn_store_log(rig->store)) > 200 << 10)
            CHECK_INT(0, cn_store_checkpoint(rig->store, NULL));
    }
}

struct findings {
    int count;
    char last[512];
};

static void note_problem(void *data, const char *text)
{
    struct findings *findings = data;
    findings->count++;
    snprintf(findings->last, sizeof(findings->last), "%s", text);
}

static int check_disk(struct simdisk *sim, struct findings *findings,
                      struct cn_check_report *report)
{
    struct cn_err err = {0};
    *findings = (struct findings){0};
    *report = (struct cn_check_report){.problem = note_problem, .data = findings};
    return cn_check(simdisk_disk(sim), report, &err);
}

struct background {
    struct rig *rig;
    struct simdisk *to;
    struct cn_backup_report report;
    int rc;
    struct cn_err err;
    atomic_bool done;
};

static void *run_backup(void *arg)
{
    struct background *background = arg;
    background->rc = cn_store_backup(background->rig->store, simdisk_disk(background->to),
                                     &background->report, &background->err);
    atomic_store(&background->done, true);
    return NULL;
}

TEST(backup, is_one_moment_of_a_store_at_work)
{
    struct rig rig;
    rig_init(&rig, true);
    CHECK_INT(0, cn_disk_replace(simdisk_disk(rig.sim), "SECRET", "x", 1)); /* kept beside it */
    turns(&rig, 150);
    for (int round = 0; round < 5; round++) {
        struct background background = {.rig = &rig, .to = simdisk_new()};
        uint64_t before = cn_store_durable(rig.store);
        pthread_t thread;
        CHECK_INT(0, pthread_create(&thread, NULL, run_backup, &background));
        for (int i = 0; i < 300 && !atomic_load(&background.done); i++)
            turns(&rig, 1);
        pthread_join(thread, NULL);
        if (background.rc < 0)
            test_fail(__FILE__, __LINE__, "%s", background.err.text);
        CHECK(background.report.lsn >= before);
        struct cn_disk_file *secret;
        CHECK_INT(0, cn_disk_open(simdisk_disk(background.to), "SECRET", 0, &secret));
        cn_disk_close(secret);
        struct findings findings;
        struct cn_check_report report;
        CHECK_INT(CN_EINVALID, check_disk(background.to, &findings, &report)); /* B5 */
        CHECK_INT(0, cn_store_backup_finish(simdisk_disk(background.to), NULL));
        CHECK_INT(0, check_disk(background.to, &findings, &report));
        if (findings.count)
            test_fail(__FILE__, __LINE__, "%s", findings.last);
        struct rig copy = {.sim = background.to, .model = rig.model};
        rig_open(&copy);
        if (model_compare_copy(&copy.model, copy.store, background.report.lsn) < 0)
            test_fail(__FILE__, __LINE__, "%s", copy.model.why);
        memset(copy.model.objects, 0,
               sizeof(copy.model.objects)); /* databases are the original's */
        rig_close(&copy);
        simdisk_free(background.to);
    }
    rig_fini(&rig);
}

struct files {
    char paths[64][160];
    size_t count;
};

static int note_path(void *data, const char *path)
{
    struct files *files = data;
    if (files->count < CN_ARRAY_COUNT(files->paths) && strcmp(path, "LOCK") != 0)
        snprintf(files->paths[files->count++], sizeof(files->paths[0]), "%s", path);
    return 0;
}

/* B5: one bit of any file, the manifest among them, or one that is missing. */
TEST(backup, is_not_finished_if_it_is_not_what_was_written)
{
    struct rig rig;
    struct files files = {0};
    struct cn_backup_report report = {0};
    struct simdisk *to = simdisk_new();
    rig_init(&rig, false);
    turns(&rig, 60);
    CHECK_INT(0, cn_store_backup(rig.store, simdisk_disk(to), &report, NULL));
    CHECK_INT(0, cn_disk_walk(simdisk_disk(to), "", note_path, &files));
    CHECK(files.count > 5);
    for (size_t i = 0; i < files.count; i++) {
        struct simdisk *bad = simdisk_copy(to), *lacking = simdisk_copy(to);
        CHECK_INT(0, simdisk_damage(bad, files.paths[i], 3, 2));
        CHECK(cn_store_backup_finish(simdisk_disk(bad), NULL) < 0);
        CHECK(cn_disk_has(simdisk_disk(bad), CN_BACKUP_UNFINISHED));
        CHECK_INT(0, cn_disk_unlink(simdisk_disk(lacking), files.paths[i]));
        CHECK(cn_store_backup_finish(simdisk_disk(lacking), NULL) < 0);
        simdisk_free(bad);
        simdisk_free(lacking);
    }
    CHECK_INT(0, cn_store_backup_finish(simdisk_disk(to), NULL));
    CHECK(!cn_disk_has(simdisk_disk(to), CN_BACKUP_UNFINISHED));
    simdisk_free(to);
    rig_fini(&rig);
}

TEST(backup, refuses_a_folder_that_is_not_empty)
{
    struct rig rig;
    struct cn_backup_report report = {0};
    struct simdisk *to = simdisk_new();
    rig_init(&rig, false);
    turns(&rig, 10);
    CHECK_INT(0, cn_disk_replace(simdisk_disk(to), "something", "x", 1));
    CHECK_INT(CN_EEXISTS, cn_store_backup(rig.store, simdisk_disk(to), &report, NULL));
    simdisk_free(to);
    rig_fini(&rig);
}

TEST(check, is_clean_and_changes_nothing)
{
    struct rig rig;
    struct findings findings;
    struct cn_check_report report;
    rig_init(&rig, false);
    turns(&rig, 300);
    CHECK_INT(CN_ELOCKED, check_disk(rig.sim, &findings, &report));
    struct simdisk *sim = simdisk_copy(rig.sim); /* as a killed process leaves it */
    uint64_t changes = simdisk_count(sim, SIMDISK_WRITE | SIMDISK_RESIZE | SIMDISK_NAME);
    CHECK_INT(0, check_disk(sim, &findings, &report));
    if (findings.count)
        test_fail(__FILE__, __LINE__, "%s", findings.last);
    CHECK(report.record_count > 0 && report.object_count > 0 && report.archive_count > 0);
    CHECK_INT(changes, simdisk_count(sim, SIMDISK_WRITE | SIMDISK_RESIZE | SIMDISK_NAME));
    simdisk_free(sim);
    rig_fini(&rig);
    struct simdisk *empty = simdisk_new();
    CHECK_INT(CN_ENOTFOUND, check_disk(empty, &findings, &report));
    simdisk_free(empty);
}

struct damage {
    struct simdisk *sim;
    struct cn_rand *rand;
    char last_segment[64]; /* left alone: damage there cannot be told from a torn tail */
    int tried, found;
    char missed[256];
};

static int note_segment(void *data, const char *path)
{
    struct damage *damage = data;
    if (strstr(path, ".seg"))
        snprintf(damage->last_segment, sizeof(damage->last_segment), "%s", path);
    return 0;
}

/* Flips one bit in the used part of a file; the check must say something. */
static int damage_file(void *data, const char *path)
{
    struct damage *damage = data;
    struct cn_disk_file *file;
    struct findings findings;
    struct cn_check_report report;
    if (strcmp(path, damage->last_segment) == 0 || strstr(path, "spare-") || strstr(path, ".tmp") ||
        strstr(path, "-journal"))
        return 0;
    CHECK_INT(0, cn_disk_open(simdisk_disk(damage->sim), path, CN_DISK_READONLY, &file));
    uint64_t size = (uint64_t)cn_disk_size(file);
    cn_disk_close(file);
    if (size == 0)
        return 0;
    if (strstr(path, ".seg") && size > 4096)
        size = 4096; /* the end of a segment is not used */
    uint64_t at = cn_rand_below(damage->rand, size);
    unsigned bit = (unsigned)cn_rand_below(damage->rand, 8);
    CHECK_INT(0, simdisk_damage(damage->sim, path, at, bit));
    damage->tried++;
    int rc = check_disk(damage->sim, &findings, &report);
    if (rc < 0 || findings.count > 0)
        damage->found++;
    else
        snprintf(damage->missed, sizeof(damage->missed), "%s, byte %llu", path,
                 (unsigned long long)at);
    CHECK_INT(0, simdisk_damage(damage->sim, path, at, bit));
    return 0;
}

struct census {
    int segments, archives;
};

static int count_file(void *data, const char *path)
{
    struct census *census = data;
    census->segments += strstr(path, ".seg") != NULL;
    census->archives += strstr(path, ".arc") != NULL || strstr(path, ".img") != NULL;
    return 0;
}

/* Works until there is something to damage: a segment before the last one, and history. */
static void work_until_there_is_a_past(struct rig *rig)
{
    struct census census = {0};
    for (int i = 0; i < 100 && (census.segments < 2 || census.archives < 2); i++) {
        turns(rig, 20);
        census = (struct census){0};
        CHECK_INT(0, cn_disk_walk(simdisk_disk(rig->sim), "log", count_file, &census));
        CHECK_INT(0, cn_disk_walk(simdisk_disk(rig->sim), "history", count_file, &census));
    }
}

TEST(check, finds_damage_in_log_history_and_blobs)
{
    struct rig rig;
    struct cn_rand rand;
    struct cn_blobs *blobs;
    struct cn_blob_writer *writer;
    struct cn_blob_id id;
    cn_rand_init(&rand, test_seed());
    rig_init(&rig, false);
    turns(&rig, 200);
    work_until_there_is_a_past(&rig);
    CHECK_INT(0, cn_blobs_open(simdisk_disk(rig.sim), "blobs", &blobs, NULL));
    CHECK_INT(0, cn_blob_create(blobs, &writer, NULL));
    CHECK_INT(0, cn_blob_write(writer, "a blob of some bytes", 20, NULL));
    CHECK_INT(0, cn_blob_finish(writer, &id, NULL));
    cn_blobs_close(blobs);
    struct simdisk *sim = simdisk_copy(rig.sim);
    static const char *const folders[] = {"log", "history", "blobs"};
    for (size_t i = 0; i < 3; i++) {
        struct damage damage = {.sim = sim, .rand = &rand};
        CHECK_INT(0, cn_disk_walk(simdisk_disk(sim), "log", note_segment, &damage));
        CHECK_INT(0, cn_disk_walk(simdisk_disk(sim), folders[i], damage_file, &damage));
        CHECK(damage.tried > 0);
        if (damage.found != damage.tried)
            test_fail(__FILE__, __LINE__, "%d of %d noticed; not: %s", damage.found, damage.tried,
                      damage.missed);
    }
    simdisk_free(sim);
    rig_fini(&rig);
}
