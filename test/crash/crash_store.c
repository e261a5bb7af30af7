/* SPDX-License-Identifier: Apache-2.0 */
/* test/crash/crash_store.c - loses power under a store, again and again, and looks what is left.
 *
 * A random workload (test/lib/storemodel.h) runs on a simulated disk (test/lib/simdisk.h). Before
 * operations of the disk that change something, an image of what a power loss would leave is
 * taken together with the LSN the store calls durable at that moment; the image is opened, which
 * runs recovery, and compared with the model; some are looked at by the check of a data directory
 * first, and some asked for an old state of an object, from their history. Some are crashed again
 * while they recover; some replace the disk, and the workload goes on from there. Other trials let
 * the n-th operation fail, for every n, cut writes short, or fill the disk; others the n-th
 * allocation that may fail.
 *
 * The last part plants bugs and demands that each is found.
 *
 *     crash_store              a few hundred crash points; part of `make test`
 *     crash_store long         at least 10,000; `make crash`
 *     crash_store power [COUNT], crash_store faults, crash_store memory, crash_store planted
 *     crash_store seed N       one trial, with what it finds
 *     crash_store fault SEED OPERATION KINDS CODE
 *
 * A failure prints its seed and leaves the image in a folder below $TMPDIR. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "store/check.h"
#include "store/history.h"
#include "store/store.h"
#include "test/lib/scarce.h"
#include "test/lib/simdisk.h"
#include "test/lib/storemodel.h"

enum { IMAGES_MAX = 64, TRIAL_OBJECTS = 10 };

struct image {
    struct simdisk *sim;
    uint64_t acked_lsn; /* durable, said the store, when the power went */
    char where[160];    /* the operation that was about to happen */
};

/* What a trial does. */
struct plan {
    uint64_t seed;
    int turns;
    int image_percent;        /* of the operations that change something */
    bool threads;             /* with the store's own threads, instead of step by step */
    unsigned planted;         /* bugs in the store: cn_store_config.planted */
    struct simdisk_fault lie; /* bugs in the disk */
};

struct trial {
    const struct plan *plan;
    struct simdisk *sim;
    struct cn_history *history; /* of `store` */
    struct cn_store *store;     /* NULL while it opens and closes */
    uint64_t floor_lsn;         /* durable before it closed */
    struct model model;
    struct cn_rand rand;
    pthread_mutex_t lock; /* guards the images and their generator: hooks run on any thread */
    struct cn_rand image_rand;
    struct image images[IMAGES_MAX];
    int image_count;
    char why[MODEL_WHY_MAX + 256];
    bool keep; /* leave the image of a failure behind */
};

static uint64_t points; /* crash images opened and compared */

static void config_fill(struct cn_store_config *config, struct simdisk *sim,
                        const struct plan *plan, struct cn_history *history)
{
    *config = (struct cn_store_config){
        .disk = simdisk_disk(sim),
        .segment_size = 64 << 10,
        .log_live_size = 512 << 10,
        .dirty_size_max = 128 << 10,
        .open_files_max = 4,
        .manual = !plan->threads,
        .planted = plan->planted,
        .history = history ? cn_history_callbacks(history) : NULL,
    };
}

static int trial_fail(struct trial *trial, struct simdisk *sim, const char *where, const char *why)
{
    snprintf(trial->why, sizeof(trial->why), "%s: %s", where, why);
    if (trial->keep && sim) {
        const char *base = getenv("TMPDIR");
        char path[256];
        snprintf(path, sizeof(path), "%s/cairn-crash-%llu", base ? base : "/tmp",
                 (unsigned long long)trial->plan->seed);
        if (simdisk_export(sim, path) == 0)
            fprintf(stderr, "the disk is in %s\n", path);
    }
    return -1;
}

/* ---- images ---- */

static void take_image(void *data, const char *name, const char *path)
{
    struct trial *trial = data;
    pthread_mutex_lock(&trial->lock);
    if (cn_rand_below(&trial->image_rand, 100) < (uint64_t)trial->plan->image_percent &&
        trial->image_count < IMAGES_MAX) {
        struct image *image = &trial->images[trial->image_count++];
        struct cn_store *store = trial->store;
        /* First the promise, then the disk: what was promised before must be on it. */
        image->acked_lsn = store ? cn_store_durable(store) : trial->floor_lsn;
        uint64_t seed = cn_rand_next(&trial->image_rand);
        image->sim = simdisk_crash(trial->sim, seed);
        snprintf(image->where, sizeof(image->where), "power lost before %s %s (operation %llu)",
                 name, path, (unsigned long long)simdisk_count(trial->sim, SIMDISK_CHANGES));
    }
    pthread_mutex_unlock(&trial->lock);
}

struct recovery {
    struct simdisk *sim;
    uint64_t crash_at, operation, seed;
    struct simdisk *again; /* what a second power loss leaves, or NULL */
};

static void crash_recovery(void *data, const char *name, const char *path)
{
    (void)name, (void)path;
    struct recovery *recovery = data;
    if (++recovery->operation == recovery->crash_at)
        recovery->again = simdisk_crash(recovery->sim, recovery->seed);
}

static void note_problem(void *data, const char *text)
{
    snprintf(data, MODEL_WHY_MAX, "check: %s", text);
}

/* What `cairn check` says of the image. */
static int check_image(struct trial *trial, struct simdisk *sim, const char *where)
{
    char problem[MODEL_WHY_MAX] = "";
    struct cn_check_report report = {.problem = note_problem, .data = problem};
    struct cn_err err = {0};
    int rc = cn_check(simdisk_disk(sim), &report, &err);
    if (rc == CN_ENOTFOUND)
        return 0; /* crashed before there was a data directory */
    if (rc < 0 || problem[0])
        return trial_fail(trial, sim, where, rc < 0 ? err.text : problem);
    return 0;
}

/* Takes an object as of some acknowledged commit out of the history and compares. */
static int check_history(struct trial *trial, struct cn_store *store, struct cn_history *history,
                         uint64_t acked_lsn, const char *where)
{
    struct model *model = &trial->model;
    struct model_object *object =
        &model->objects[cn_rand_below(&trial->rand, (uint64_t)model->object_count)];
    struct cn_bookmark bookmark = {.lsn = cn_rand_below(&trial->rand, acked_lsn + 1)};
    struct cn_err err = {0};
    char text[CN_BOOKMARK_SIZE], path[128];
    cn_bookmark_format(&bookmark, &object->key, text);
    const char *base = getenv("TMPDIR");
    struct cn_disk *real = cn_disk_system_new(base ? base : "/tmp");
    snprintf(path, sizeof(path), "cairn-crash-copy-%d.db", (int)getpid());
    int rc = cn_history_copy(history, store, &object->key, text, real, path, &err);
    const struct model_state *want = model_state_at(object, bookmark.lsn);
    if (rc == CN_ENOTFOUND && want->version == 0) {
        rc = 0;
    } else if (rc < 0) {
        rc = trial_fail(trial, NULL, where, err.text);
    } else {
        char full[256];
        snprintf(full, sizeof(full), "%s/%s", base ? base : "/tmp", path);
        rc = model_compare_file(model, full, want);
        if (rc < 0)
            rc = trial_fail(trial, NULL, where, model->why);
        (void)cn_disk_unlink(real, path);
    }
    cn_disk_system_free(real);
    return rc;
}

/* Opens what a crash left and compares. `deep`: crash its recovery as well. */
static int verify_image(struct trial *trial, struct simdisk *sim, uint64_t acked_lsn,
                        const char *where, bool deep)
{
    struct plan honest = {.threads = false};
    struct cn_store_config config;
    struct cn_store *store;
    struct cn_history *history = NULL;
    struct cn_err err = {0};
    if (cn_rand_below(&trial->rand, 6) == 0 && check_image(trial, sim, where) < 0)
        return -1;
    struct recovery recovery = {.sim = sim, .seed = cn_rand_next(&trial->rand)};
    struct simdisk *before = trial->keep ? simdisk_copy(sim) : NULL; /* recovery changes it */
    recovery.crash_at = deep ? 1 + cn_rand_below(&trial->rand, 40) : 0;
    points++;
    if (deep)
        simdisk_set_hook(sim, SIMDISK_CHANGES, crash_recovery, &recovery);
    int rc =
        cn_history_open(&(struct cn_history_config){.disk = simdisk_disk(sim)}, &history, &err);
    config_fill(&config, sim, &honest, history);
    if (rc == 0)
        rc = cn_store_open(&config, &store, &err);
    if (rc < 0) {
        rc = trial_fail(trial, before, where, err.text);
    } else {
        if (model_open_namespaces(&trial->model, store) < 0 ||
            model_compare_copy(&trial->model, store, acked_lsn) < 0)
            rc = trial_fail(trial, before, where, trial->model.why);
        if (rc == 0 && cn_rand_below(&trial->rand, 4) == 0)
            rc = check_history(trial, store, history, acked_lsn, where);
        cn_store_close(store);
    }
    cn_history_close(history);
    simdisk_set_hook(sim, 0, NULL, NULL);
    if (rc == 0 && recovery.again) {
        char deeper[256];
        snprintf(deeper, sizeof(deeper), "%s, then at operation %llu of its recovery", where,
                 (unsigned long long)recovery.crash_at);
        rc = verify_image(trial, recovery.again, acked_lsn, deeper, false);
    }
    simdisk_free(recovery.again);
    simdisk_free(before);
    return rc;
}

static int verify_images(struct trial *trial)
{
    int rc = 0;
    pthread_mutex_lock(&trial->lock);
    struct image images[IMAGES_MAX];
    int count = trial->image_count;
    memcpy(images, trial->images, sizeof(images));
    trial->image_count = 0;
    pthread_mutex_unlock(&trial->lock);
    for (int i = 0; i < count; i++) {
        if (rc == 0)
            rc = verify_image(trial, images[i].sim, images[i].acked_lsn, images[i].where,
                              cn_rand_below(&trial->rand, 4) == 0);
        simdisk_free(images[i].sim);
    }
    return rc;
}

/* ---- the life of a store ---- */

static int trial_open(struct trial *trial)
{
    struct cn_store_config config;
    struct cn_store *store;
    struct cn_err err = {0};
    struct cn_history_config history_config = {.disk = simdisk_disk(trial->sim)};
    if (cn_history_open(&history_config, &trial->history, &err) < 0)
        return trial_fail(trial, trial->sim, "open", err.text);
    config_fill(&config, trial->sim, trial->plan, trial->history);
    if (cn_store_open(&config, &store, &err) < 0)
        return trial_fail(trial, trial->sim, "open", err.text);
    pthread_mutex_lock(&trial->lock);
    trial->store = store;
    pthread_mutex_unlock(&trial->lock);
    if (model_open_namespaces(&trial->model, store) < 0)
        return trial_fail(trial, trial->sim, "open", trial->model.why);
    return 0;
}

static void trial_close(struct trial *trial)
{
    if (!trial->store)
        return;
    model_close_databases(&trial->model);
    pthread_mutex_lock(&trial->lock);
    struct cn_store *store = trial->store;
    trial->floor_lsn = cn_store_durable(store);
    trial->store = NULL;
    pthread_mutex_unlock(&trial->lock);
    cn_store_close(store);
    cn_history_close(trial->history);
    trial->history = NULL;
}

/* Closes and opens again: nothing may be missing, durable or not. */
static int restart_clean(struct trial *trial)
{
    trial_close(trial);
    trial->floor_lsn = 0;
    for (int i = 0; i < trial->model.object_count; i++) {
        const struct model_object *object = &trial->model.objects[i];
        uint64_t lsn = object->versions[object->version_count - 1].lsn;
        trial->floor_lsn = lsn > trial->floor_lsn ? lsn : trial->floor_lsn;
    }
    if (trial_open(trial) < 0)
        return -1;
    if (model_compare(&trial->model, trial->store, trial->floor_lsn) < 0)
        return trial_fail(trial, trial->sim, "after a clean restart", trial->model.why);
    return 0;
}

/* Loses the power for good and goes on with what is left. */
static int restart_crashed(struct trial *trial)
{
    uint64_t acked = cn_store_durable(trial->store);
    struct simdisk *after = simdisk_crash(trial->sim, cn_rand_next(&trial->rand));
    simdisk_set_hook(trial->sim, 0, NULL, NULL);
    trial_close(trial);
    /* While the model still knows the commits that are lost now: an image may hold them. */
    if (verify_images(trial) < 0) {
        simdisk_free(after);
        return -1;
    }
    simdisk_free(trial->sim);
    trial->sim = after;
    trial->floor_lsn = acked;
    simdisk_set_fault(after, &trial->plan->lie);
    simdisk_set_hook(after, SIMDISK_CHANGES, take_image, trial);
    if (trial_open(trial) < 0)
        return -1;
    if (model_compare(&trial->model, trial->store, acked) < 0)
        return trial_fail(trial, trial->sim, "after a crash", trial->model.why);
    points++;
    return 0;
}

static int trial_turn(struct trial *trial)
{
    uint64_t lsn;
    struct cn_err err = {0};
    if (model_turn(&trial->model, trial->store, &lsn) < 0)
        return trial_fail(trial, trial->sim, "turn", trial->model.why);
    if (lsn > 0 && cn_rand_below(&trial->rand, 3) == 0 &&
        cn_store_wait(trial->store, lsn, &err) < 0)
        return trial_fail(trial, trial->sim, "wait", err.text);
    if (cn_rand_below(&trial->rand, 100) == 0 && cn_store_checkpoint(trial->store, &err) < 0)
        return trial_fail(trial, trial->sim, "checkpoint", err.text);
    uint64_t draw = cn_rand_below(&trial->rand, 300);
    if (draw == 0 && restart_clean(trial) < 0)
        return -1;
    if ((draw == 1 || draw == 2) && restart_crashed(trial) < 0)
        return -1;
    return verify_images(trial);
}

static void trial_init(struct trial *trial, const struct plan *plan, bool keep)
{
    memset(trial, 0, sizeof(*trial));
    trial->plan = plan;
    trial->keep = keep;
    trial->sim = simdisk_new();
    pthread_mutex_init(&trial->lock, NULL);
    cn_rand_init(&trial->rand, plan->seed);
    cn_rand_init(&trial->image_rand, plan->seed + 1);
    model_init(&trial->model, plan->seed + 2, TRIAL_OBJECTS);
}

static void trial_fini(struct trial *trial)
{
    simdisk_set_hook(trial->sim, 0, NULL, NULL);
    trial_close(trial);
    cn_history_close(trial->history); /* left if the store did not open */
    for (int i = 0; i < trial->image_count; i++)
        simdisk_free(trial->images[i].sim);
    simdisk_free(trial->sim);
    model_fini(&trial->model);
    pthread_mutex_destroy(&trial->lock);
}

/* 0, or -1 with why[]. */
static int run_trial(const struct plan *plan, bool keep, char *why, size_t why_size)
{
    static struct trial trial;
    trial_init(&trial, plan, keep);
    simdisk_set_fault(trial.sim, &plan->lie);
    simdisk_set_hook(trial.sim, SIMDISK_CHANGES, take_image, &trial);
    int rc = trial_open(&trial);
    for (int i = 0; rc == 0 && i < plan->turns; i++)
        rc = trial_turn(&trial);
    if (rc == 0)
        rc = restart_clean(&trial);
    if (rc == 0)
        rc = verify_images(&trial);
    snprintf(why, why_size, "%s", trial.why);
    trial_fini(&trial);
    return rc;
}

/* ---- a disk that fails, memory that runs out ---- */

/* The n-th allocation fails, and if `sticky` all after it; at 0: none. */
struct scarcity {
    uint64_t at;
    bool sticky;
};

/* Runs turns on a failing disk or with little memory, closes, and opens what is left without the
 * fault. Returns 1 if the fault was never reached, 0 if all is well, -1 with why[]. */
static int run_fault(uint64_t seed, const struct simdisk_fault *fault, struct scarcity memory,
                     int turns, bool keep, char *why, size_t why_size)
{
    static struct trial trial;
    struct plan plan = {.seed = seed};
    struct cn_store_config config;
    struct cn_err err = {0};
    trial_init(&trial, &plan, keep);
    trial.model.faults = true;
    uint64_t before = simdisk_count(trial.sim, fault->kinds), acked = 0;
    simdisk_set_fault(trial.sim, fault);
    scarce_set(memory.at, memory.sticky);
    struct cn_history_config history_config = {.disk = simdisk_disk(trial.sim)};
    int rc = cn_history_open(&history_config, &trial.history, &err);
    if (rc == 0) {
        config_fill(&config, trial.sim, &plan, trial.history);
        rc = cn_store_open(&config, &trial.store, &err);
    }
    if (rc == 0) {
        rc = model_open_namespaces(&trial.model, trial.store);
        for (int i = 0; rc == 0 && i < turns; i++) {
            uint64_t lsn;
            (void)model_turn(&trial.model, trial.store, &lsn); /* refusals are expected */
            if (lsn > 0 && i % 3 == 0)
                (void)cn_store_wait(trial.store, lsn, &err);
            if (i % 16 == 15)
                (void)cn_store_checkpoint(trial.store, &err);
        }
        acked = cn_store_durable(trial.store);
        trial_close(&trial);
    } else {
        trial.store = NULL;
    }
    bool reached = memory.at ? scarce_count() >= memory.at
                             : fault->space_bytes ||
                                   simdisk_count(trial.sim, fault->kinds) - before >= fault->at;
    scarce_set(0, false);
    simdisk_set_fault(trial.sim, NULL);
    struct simdisk *after = seed % 2 ? simdisk_copy(trial.sim) : simdisk_crash(trial.sim, seed);
    char where[160];
    snprintf(where, sizeof(where), "kinds %u, operation %llu, code %d, space %llu, allocation %llu",
             fault->kinds, (unsigned long long)fault->at, fault->code,
             (unsigned long long)fault->space_bytes, (unsigned long long)memory.at);
    rc = trial.model.why[0] ? trial_fail(&trial, NULL, where, trial.model.why)
                            : verify_image(&trial, after, acked, where, false);
    simdisk_free(after);
    snprintf(why, why_size, "%s", trial.why);
    trial_fini(&trial);
    return rc < 0 ? rc : reached ? 0 : 1;
}

/* ---- the suite ---- */

static int passed, failed;

static void verdict(const char *name, int rc, const char *why, uint64_t seed)
{
    if (rc >= 0) {
        passed++;
        return;
    }
    failed++;
    printf("FAIL %s (seed %llu): %s\n", name, (unsigned long long)seed, why);
}

static void suite_power(uint64_t seed, uint64_t point_count, int turns)
{
    char why[MODEL_WHY_MAX + 256];
    uint64_t until = points + point_count;
    for (int i = 0; points < until && failed < 5; i++) {
        struct plan plan = {.seed = seed + (uint64_t)i * 1000,
                            .turns = turns,
                            .image_percent = i % 3 == 0 ? 30 : 8,
                            .threads = i % 4 == 3};
        verdict("power loss", run_trial(&plan, true, why, sizeof(why)), why, plan.seed);
    }
}

static void suite_fault(const char *name, uint64_t seed, struct simdisk_fault fault, int step)
{
    char why[MODEL_WHY_MAX + 256];
    int rc = 0;
    for (fault.at = 1; rc == 0 && failed < 5; fault.at += (uint64_t)step)
        rc = run_fault(seed + fault.at, &fault, (struct scarcity){0}, 40, false, why, sizeof(why));
    verdict(name, rc, why, seed + fault.at - (uint64_t)step);
}

static void suite_faults(uint64_t seed, int step)
{
    suite_fault("operation fails", seed,
                (struct simdisk_fault){.kinds = SIMDISK_CHANGES, .code = -EIO}, step);
    suite_fault("disk dies", seed,
                (struct simdisk_fault){.kinds = SIMDISK_CHANGES, .code = -EIO, .sticky = true},
                step);
    suite_fault("operation finds no space", seed,
                (struct simdisk_fault){.kinds = SIMDISK_CHANGES, .code = -ENOSPC}, step);
    suite_fault("read fails", seed, (struct simdisk_fault){.kinds = SIMDISK_READ, .code = -EIO},
                step);
    suite_fault("short write", seed, (struct simdisk_fault){.kinds = SIMDISK_WRITE}, step);
    char why[MODEL_WHY_MAX + 256];
    int rc = 0;
    uint64_t space = 0;
    for (int i = 1; rc >= 0 && i <= 60 / step + 3; i++) {
        space = (uint64_t)i * (uint64_t)step * 9000;
        rc = run_fault(seed + space, &(struct simdisk_fault){.space_bytes = space},
                       (struct scarcity){0}, 60, false, why, sizeof(why));
    }
    verdict("disk runs full", rc, why, seed + space);
}

/* Every allocation of one workload; `step`: every so many. */
static void suite_scarce(const char *name, uint64_t seed, bool sticky, uint64_t step)
{
    char why[MODEL_WHY_MAX + 256];
    struct simdisk_fault none = {0};
    uint64_t at = 1;
    int rc = 0;
    for (; rc == 0 && failed < 5; at += step)
        rc = run_fault(seed, &none, (struct scarcity){at, sticky}, 40, false, why, sizeof(why));
    printf("%s: %llu allocations of a workload, each %llu-th\n", name, (unsigned long long)at,
           (unsigned long long)step);
    verdict(name, rc, why, seed);
}

static void suite_planted(uint64_t seed)
{
    static const struct {
        const char *name;
        unsigned planted;
        struct simdisk_fault lie;
    } bugs[] = {
        {"the log is not synced", 0, {.ignore_sync = "log/"}},
        {"acknowledged before the sync", CN_PLANTED_EARLY_ACK, {0}},
        {"the sync returns before it is done", 0, {.late_sync = "log/"}},
        {"first-touch page image dropped", CN_PLANTED_NO_IMAGE, {0}},
        {"written back before durable", CN_PLANTED_EARLY_WRITE_BACK, {0}},
    };
    char why[MODEL_WHY_MAX + 256];
    for (size_t b = 0; b < sizeof(bugs) / sizeof(bugs[0]); b++) {
        int caught = 0, trial;
        for (trial = 0; !caught && trial < 60; trial++) {
            struct plan plan = {.seed = seed + (uint64_t)trial * 1000,
                                .turns = 120,
                                .image_percent = 20,
                                .planted = bugs[b].planted,
                                .lie = bugs[b].lie};
            caught = run_trial(&plan, false, why, sizeof(why)) < 0;
        }
        if (caught)
            printf("caught in trial %d: %s -- %s\n", trial, bugs[b].name, why);
        verdict("planted bug goes unnoticed", caught ? 0 : -1, bugs[b].name, seed);
    }
}

int main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    const char *given = getenv("CAIRN_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003;
    setvbuf(stdout, NULL, _IOLBF, 0);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR + 1); /* failures are planned; no word about them */
    if (argc == 3 && strcmp(argv[1], "seed") == 0) {
        char why[MODEL_WHY_MAX + 256];
        struct plan plan = {.seed = strtoull(argv[2], NULL, 0), .turns = 200, .image_percent = 30};
        verdict("power loss", run_trial(&plan, true, why, sizeof(why)), why, plan.seed);
    } else if (argc == 6 && strcmp(argv[1], "fault") == 0) {
        char why[MODEL_WHY_MAX + 256];
        struct simdisk_fault fault = {.at = strtoull(argv[3], NULL, 0),
                                      .kinds = (unsigned)atoi(argv[4]),
                                      .code = atoi(argv[5])};
        uint64_t fault_seed = strtoull(argv[2], NULL, 0);
        verdict("fault",
                run_fault(fault_seed, &fault, (struct scarcity){0}, 40, true, why, sizeof(why)),
                why, fault_seed);
    } else {
        uint64_t start = cn_clock_mono_ns(cn_clock_system());
        const char *part = argc > 1 && !is_long ? argv[1] : "";
        uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : is_long ? 10000 : 300;
        if (!*part || strcmp(part, "power") == 0)
            suite_power(seed, count, is_long ? 200 : 80);
        if (!*part || strcmp(part, "faults") == 0)
            suite_faults(seed, is_long ? 1 : 11);
        if (!*part || strcmp(part, "memory") == 0) {
            is_long = is_long || argc > 2;
            suite_scarce("allocation fails", seed, false, is_long ? 1 : 37);
            suite_scarce("memory is gone", seed, true, is_long ? 1 : 97);
        }
        if (!*part || strcmp(part, "planted") == 0)
            suite_planted(seed);
        printf("%llu crash points in %.1f s (CAIRN_TEST_SEED=%llu)\n", (unsigned long long)points,
               (double)(cn_clock_mono_ns(cn_clock_system()) - start) / 1e9,
               (unsigned long long)seed);
    }
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
