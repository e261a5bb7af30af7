/* SPDX-License-Identifier: Apache-2.0 */
/* Every moment of every object can be copied and restored, from archives as from the live log,
 * across deletions; restores can be undone; retention forgets, and says so. */
#include "store/history.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "store/archive.h"
#include "test/lib/simdisk.h"
#include "test/lib/storemodel.h"
#include "test/lib/test.h"

enum { OBJECTS = 6 };

struct fake_clock {
    struct cn_clock base;
    int64_t now_ms;
};

static int64_t fake_wall_ms(struct cn_clock *clock)
{
    return ((struct fake_clock *)clock)->now_ms;
}

static uint64_t fake_mono_ns(struct cn_clock *clock)
{
    return (uint64_t)((struct fake_clock *)clock)->now_ms * 1000000;
}

/* A store with history on a simulated disk, and a model beside it. */
struct rig {
    struct simdisk *sim;
    struct fake_clock clock;
    struct cn_history_config history_config;
    struct cn_history *history;
    struct cn_store *store;
    struct model model;
    struct cn_rand rand;
    struct cn_disk *real; /* where copies go, to be read by stock SQLite */
    const char *real_path;
};

static void rig_open(struct rig *rig)
{
    struct cn_err err = {0};
    CHECK_INT(0, cn_history_open(&rig->history_config, &rig->history, &err));
    struct cn_store_config config = {.disk = simdisk_disk(rig->sim),
                                     .clock = &rig->clock.base,
                                     .segment_size = 64 << 10,
                                     .log_live_size = 256 << 10,
                                     .dirty_size_max = 128 << 10,
                                     .manual = true,
                                     .history = cn_history_callbacks(rig->history)};
    if (cn_store_open(&config, &rig->store, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(0, model_open_namespaces(&rig->model, rig->store));
}

static void rig_close(struct rig *rig)
{
    model_close_databases(&rig->model);
    cn_store_close(rig->store);
    cn_history_close(rig->history);
}

static void rig_init(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->sim = simdisk_new();
    rig->clock = (struct fake_clock){{fake_wall_ms, fake_mono_ns}, 1700000000000};
    rig->history_config =
        (struct cn_history_config){.disk = simdisk_disk(rig->sim), .clock = &rig->clock.base};
    cn_rand_init(&rig->rand, test_seed());
    model_init(&rig->model, test_seed() + 1, OBJECTS);
    rig->real_path = test_dir();
    rig->real = cn_disk_system_new(rig->real_path);
    rig_open(rig);
}

static void rig_fini(struct rig *rig)
{
    rig_close(rig);
    cn_disk_system_free(rig->real);
    model_fini(&rig->model);
    simdisk_free(rig->sim);
}

static void turns(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t lsn;
        struct cn_err err = {0};
        rig->clock.now_ms += 1000;
        if (model_turn(&rig->model, rig->store, &lsn) < 0)
            test_fail(__FILE__, __LINE__, "%s", rig->model.why);
        if (i % 40 == 39 || cn_log_live_size(cn_store_log(rig->store)) > 200 << 10)
            CHECK_INT(0, cn_store_checkpoint(rig->store, &err));
    }
}

/* The bookmark after the commit `lsn` of an object. */
static void bookmark_of(struct rig *rig, const struct cn_object_key *key, uint64_t lsn, char *text)
{
    cn_bookmark_format(&(struct cn_bookmark){.lsn = lsn, .time_ms = rig->clock.now_ms}, key, text);
}

static uint64_t last_lsn(const struct model_object *object)
{
    return object->versions[object->version_count - 1].lsn;
}

/* Copies an object as of a bookmark and compares the file with what the model remembers. */
static void check_copy(struct rig *rig, struct model_object *object, const char *bookmark,
                       const struct model_state *want)
{
    struct cn_err err = {0};
    char path[128];
    snprintf(path, sizeof(path), "%s/copy.db", rig->real_path);
    int rc = cn_history_copy(rig->history, rig->store, &object->key, bookmark, rig->real, "copy.db",
                             &err);
    if (rc == CN_ENOTFOUND) {
        CHECK_INT(0, want->version); /* it had no tables then */
        return;
    }
    if (rc < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    if (model_compare_file(&rig->model, path, want) < 0)
        test_fail(__FILE__, __LINE__, "object %u: %s", object->key.id[1], rig->model.why);
    CHECK_INT(0, cn_disk_unlink(rig->real, "copy.db"));
}

TEST(history, copies_every_moment_of_every_object)
{
    struct rig rig;
    struct cn_history_stats stats;
    char text[CN_BOOKMARK_SIZE];
    rig_init(&rig);
    turns(&rig, 250);
    CHECK_INT(0, cn_store_wait(rig.store, last_lsn(&rig.model.objects[0]), NULL));
    cn_history_stats(rig.history, &stats);
    CHECK(stats.archive_count > 2);
    for (int i = 0; i < OBJECTS; i++) {
        struct model_object *object = &rig.model.objects[i];
        for (int v = 1; v < object->version_count; v++) {
            bookmark_of(&rig, &object->key, object->versions[v].lsn, text);
            check_copy(&rig, object, text, &object->versions[v].state);
        }
    }
    /* The same from what a restart finds. */
    rig_close(&rig);
    rig_open(&rig);
    for (int i = 0; i < OBJECTS; i++) {
        struct model_object *object = &rig.model.objects[i];
        for (int v = 1; v < object->version_count; v += 5) {
            bookmark_of(&rig, &object->key, object->versions[v].lsn, text);
            check_copy(&rig, object, text, &object->versions[v].state);
        }
        check_copy(&rig, object, NULL, &object->versions[object->version_count - 1].state);
    }
    rig_fini(&rig);
}

static void check_now(struct rig *rig, struct model_object *object)
{
    struct model_state state;
    if (model_read_object(&rig->model, rig->store, object, &state) < 0)
        test_fail(__FILE__, __LINE__, "%s", rig->model.why);
    const struct model_state *want = model_state_at(object, UINT64_MAX);
    CHECK_INT(want->version, state.version);
    CHECK(memcmp(want->slots, state.slots, sizeof(state.slots)) == 0);
    CHECK_INT(want->alarm_ms, state.alarm_ms);
    CHECK_INT(want->has_name, state.has_name);
}

TEST(history, restores_and_undoes_and_goes_on)
{
    struct rig rig;
    struct cn_err err = {0};
    char text[CN_BOOKMARK_SIZE], undo[CN_BOOKMARK_SIZE], early[CN_BOOKMARK_SIZE];
    rig_init(&rig);
    for (int round = 0; round < 40; round++) {
        turns(&rig, 15);
        model_close_databases(&rig.model);
        struct model_object *object = &rig.model.objects[cn_rand_below(&rig.rand, OBJECTS)];
        uint64_t before = last_lsn(object), lsn;
        int v = (int)cn_rand_below(&rig.rand, (uint64_t)object->version_count);
        bookmark_of(&rig, &object->key, object->versions[v].lsn, text);
        /* Asked for before the restore, as onNextSessionRestoreBookmark() does. */
        cn_history_bookmark_undo(rig.history, rig.store, &object->key, before, early);
        int there = cn_history_was_there(rig.history, rig.store, &object->key, text, &err);
        CHECK(there == 1 || (there == 0 && object->versions[v].state.version == 0));
        CHECK(there == 0 || object->versions[v].state.exists);
        if (cn_history_restore(rig.history, rig.store, &object->key, text, &lsn, undo, &err) < 0)
            test_fail(__FILE__, __LINE__, "%s", err.text);
        CHECK_INT(0, cn_store_wait(rig.store, lsn, &err));
        struct model_state old = object->versions[v].state;
        struct model_state latest = *model_state_at(object, UINT64_MAX);
        model_restored(object, lsn, &old);
        check_now(&rig, object);
        if (round % 2) {
            const char *way = round % 4 == 1 ? undo : early;
            if (cn_history_restore(rig.history, rig.store, &object->key, way, &lsn, NULL, &err) < 0)
                test_fail(__FILE__, __LINE__, "%s", err.text);
            model_restored(object, lsn, &latest);
            check_now(&rig, object);
        }
    }
    rig_fini(&rig);
}

TEST(history, finds_the_moment_of_a_time)
{
    struct rig rig;
    struct cn_err err = {0};
    char text[CN_BOOKMARK_SIZE];
    rig_init(&rig);
    int64_t start_ms = rig.clock.now_ms;
    enum { STEPS = 120 };
    uint64_t lsns[STEPS];
    for (int i = 0; i < STEPS; i++) {
        turns(&rig, 1);
        lsns[i] = cn_log_appended(cn_store_log(rig.store));
        if (i % 30 == 29)
            CHECK_INT(0, cn_store_checkpoint(rig.store, &err));
    }
    CHECK_INT(0, cn_store_wait(rig.store, lsns[STEPS - 1], &err));
    struct model_object *object = &rig.model.objects[1];
    for (int i = 0; i < STEPS; i++) {
        struct cn_bookmark bookmark;
        int64_t time_ms = start_ms + 1000 * (i + 1) + (int64_t)cn_rand_below(&rig.rand, 1000);
        if (time_ms > rig.clock.now_ms)
            continue;
        if (cn_history_bookmark_at(rig.history, rig.store, &object->key, time_ms, text, &err) < 0)
            test_fail(__FILE__, __LINE__, "%s", err.text);
        CHECK_INT(0, cn_bookmark_parse(text, strlen(text), &object->key, &bookmark, &err));
        CHECK_INT(lsns[i], bookmark.lsn);
    }
    CHECK_INT(CN_EINVALID, cn_history_bookmark_at(rig.history, rig.store, &object->key,
                                                  rig.clock.now_ms + 5000, text, &err));
    rig_fini(&rig);
}

TEST(history, forgets_by_time_and_says_so)
{
    struct rig rig;
    struct cn_err err = {0};
    struct cn_history_stats stats;
    char old[CN_BOOKMARK_SIZE], text[CN_BOOKMARK_SIZE];
    rig_init(&rig);
    rig.history_config.retention_ms = 100 * 1000;
    rig_close(&rig);
    rig_open(&rig);
    turns(&rig, 10);
    struct model_object *object = &rig.model.objects[0];
    bookmark_of(&rig, &object->key, 5, old);
    int64_t old_ms = rig.clock.now_ms;
    turns(&rig, 400);
    cn_history_stats(rig.history, &stats);
    CHECK(stats.oldest_lsn > 6);
    CHECK(stats.oldest_ms <= rig.clock.now_ms - 60 * 1000);
    CHECK_INT(CN_ENOTFOUND, cn_history_check(rig.history, rig.store, &object->key, old, &err));
    CHECK_INT(CN_ENOTFOUND,
              cn_history_bookmark_at(rig.history, rig.store, &object->key, old_ms, text, &err));
    /* What is within the time is still there, after a restart as well. */
    rig_close(&rig);
    rig_open(&rig);
    CHECK_INT(CN_ENOTFOUND, cn_history_check(rig.history, rig.store, &object->key, old, &err));
    cn_history_stats(rig.history, &stats);
    for (int i = 0; i < OBJECTS; i++) {
        object = &rig.model.objects[i];
        for (int v = 1; v < object->version_count; v++) {
            if (object->versions[v].lsn + 1 < stats.oldest_lsn)
                continue;
            bookmark_of(&rig, &object->key, object->versions[v].lsn, text);
            check_copy(&rig, object, text, &object->versions[v].state);
        }
    }
    rig_fini(&rig);
}

TEST(history, forgets_by_size)
{
    struct rig rig;
    struct cn_history_stats stats;
    rig_init(&rig);
    rig.history_config.size_max = 150 << 10;
    rig_close(&rig);
    rig_open(&rig);
    turns(&rig, 400);
    cn_history_stats(rig.history, &stats);
    CHECK(stats.archive_count > 0);
    /* Databases set aside by commits that are still in the log are not limited. */
    CHECK(stats.archive_bytes <= 300 << 10);
    rig_fini(&rig);
}

TEST(history, refuses_bookmarks_of_others_and_of_the_future)
{
    struct rig rig;
    struct cn_err err = {0};
    char text[CN_BOOKMARK_SIZE];
    rig_init(&rig);
    turns(&rig, 30);
    struct model_object *one = &rig.model.objects[0], *two = &rig.model.objects[1];
    cn_history_bookmark_now(rig.history, rig.store, &one->key, last_lsn(one), text);
    CHECK_INT(0, cn_history_check(rig.history, rig.store, &one->key, text, &err));
    CHECK_INT(CN_EINVALID, cn_history_check(rig.history, rig.store, &two->key, text, &err));
    bookmark_of(&rig, &one->key, 1000000, text);
    CHECK_INT(CN_EINVALID, cn_history_check(rig.history, rig.store, &one->key, text, &err));
    CHECK_INT(CN_EINVALID, cn_history_check(rig.history, rig.store, &one->key, "nonsense", &err));
    rig_fini(&rig);
}

static void damage_first_archive(struct rig *rig, uint64_t lsn)
{
    struct cn_disk_entries entries;
    CHECK_INT(0, cn_disk_entries(simdisk_disk(rig->sim), "history", &entries));
    for (size_t i = 0; i < entries.count; i++) {
        uint64_t first, last;
        char path[CN_ARCHIVE_PATH_MAX];
        if (!cn_archive_name_parse(entries.items[i].name, &first, &last) || first > lsn ||
            last < lsn)
            continue;
        cn_archive_path(first, last, path);
        CHECK_INT(0, simdisk_damage(rig->sim, path, 200, 3));
    }
    cn_disk_entries_fini(&entries);
}

TEST(history, damage_is_an_error_not_a_wrong_state)
{
    struct rig rig;
    struct cn_err err = {0};
    char text[CN_BOOKMARK_SIZE], path[128];
    rig_init(&rig);
    turns(&rig, 300);
    int refused = 0;
    for (int i = 0; i < OBJECTS; i++) {
        struct model_object *object = &rig.model.objects[i];
        int v = 1;
        while (v + 2 < object->version_count && object->versions[v].state.version == 0)
            v++;
        damage_first_archive(&rig, object->versions[v + 1].lsn); /* the walk must pass it */
        bookmark_of(&rig, &object->key, object->versions[v].lsn, text);
        int rc =
            cn_history_copy(rig.history, rig.store, &object->key, text, rig.real, "copy.db", &err);
        if (rc == 0) { /* not in an archive yet */
            snprintf(path, sizeof(path), "%s/copy.db", rig.real_path);
            CHECK_INT(0, model_compare_file(&rig.model, path, &object->versions[v].state));
            CHECK_INT(0, cn_disk_unlink(rig.real, "copy.db"));
        } else if (rc != CN_ECORRUPT) {
            test_fail(__FILE__, __LINE__, "%s", err.text);
        }
        refused += rc == CN_ECORRUPT;
    }
    CHECK(refused > 0);
    rig_fini(&rig);
}
