/* SPDX-License-Identifier: Apache-2.0 */
/* test/crash/crash_replica.c - loses power, processes and disk operations under replicas.
 *
 * Three disks have replicas of one shard. One owns it and takes the turns of a model
 * (test/lib/storemodel.h); what it appends is settled by a list in memory (test/lib/listengine.h),
 * now and then late, in part, or never. The others are fed, checkpoint, are copied, discarded, made
 * anew; ownership moves. Before operations of a disk that change something, an image of it is
 * taken, as a loss of power or a kill would leave it, with what was settled and what the engine had
 * been told to forget at that moment. From each image it must be possible to go on:
 *
 *   1  there is a replica, unless it was being made or thrown away, and it has what the engine may
 *      have forgotten;
 *   2  it has nothing that is not settled;
 *   3  fed with the rest, with a checkpoint before or behind that or without, it becomes an owner
 *      that has exactly what is settled.
 *
 * Some images are crashed again on that way. Other trials let the n-th operation fail. The last
 * part plants bugs and demands that each is found.
 *
 *     crash_replica            some hundred images; part of `make test`
 *     crash_replica long       thousands; `make crash`
 *     crash_replica seed N     one trial
 *     crash_replica fault N    one trial with faults */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"
#include "store/log.h"
#include "store/replica.h"
#include "store/store.h"
#include "test/lib/listengine.h"
#include "test/lib/simdisk.h"
#include "test/lib/storemodel.h"

enum { SHARD = 7, DISKS = 3, IMAGES_MAX = 24, OBJECTS = 8 };

struct plan {
    uint64_t seed;
    int steps;
    int image_percent;
    unsigned planted;
    struct simdisk_fault lie;
};

struct image {
    struct simdisk *sim;
    uint64_t last, told; /* settled; forgotten by the engine, for all this disk said */
    bool may_lack;       /* the replica was being made or thrown away */
    char where[200];
};

struct trial;

struct machine {
    struct trial *trial;
    int number;
    struct simdisk *sim;
    struct cn_replicas *replicas;
    uint64_t told;
    bool may_lack;
};

struct trial {
    const struct plan *plan;
    struct machine machines[DISKS];
    int owner; /* -1: none */
    struct listengine engine;
    struct model model;
    struct cn_rand rand, image_rand;
    struct image images[IMAGES_MAX];
    int image_count;
    bool faults;
    char why[MODEL_WHY_MAX + 400];
};

static uint64_t points;

static int trial_fail(struct trial *trial, const char *where, const char *why)
{
    if (!trial->why[0])
        snprintf(trial->why, sizeof(trial->why), "%s: %s", where, why);
    return -1;
}

/* ---- Machines ---- */

static void on_checkpointed(void *data, uint32_t shard, uint64_t lsn)
{
    struct machine *machine = data;
    (void)shard;
    machine->told = lsn;
}

static void on_stall(void *data, uint32_t shard)
{
    struct trial *trial = ((struct machine *)data)->trial;
    struct cn_replica_hooks hooks = listengine_hooks(&trial->engine);
    hooks.stall(hooks.data, shard);
}

static struct cn_replicas_config config_of(struct simdisk *sim, struct machine *machine,
                                           unsigned planted)
{
    return (struct cn_replicas_config){
        .disk = simdisk_disk(sim),
        .hooks = {.data = machine, .checkpointed = on_checkpointed, .stall = on_stall},
        .segment_size = 64 << 10,
        .dirty_size_max = 512 << 10,
        .open_files_max = 4,
        .manual = true,
        .planted = planted,
    };
}

static int machine_open(struct machine *machine)
{
    struct cn_replicas_config config =
        config_of(machine->sim, machine, machine->trial->plan->planted);
    struct cn_err err = {0};
    if (cn_replicas_open(&config, &machine->replicas, &err) < 0)
        return trial_fail(machine->trial, "opening a disk", err.text);
    return 0;
}

static struct cn_replica *replica_of(struct machine *machine)
{
    return machine->replicas ? cn_replicas_find(machine->replicas, SHARD) : NULL;
}

static struct cn_replica_state state_of(struct cn_replica *replica)
{
    struct cn_replica_state state;
    cn_replica_state(replica, &state);
    return state;
}

/* ---- Images ---- */

static void take_image(void *data, const char *name, const char *path)
{
    struct machine *machine = data;
    struct trial *trial = machine->trial;
    if (cn_rand_below(&trial->image_rand, 1000) >= (uint64_t)trial->plan->image_percent * 10 ||
        trial->image_count == IMAGES_MAX)
        return;
    struct image *image = &trial->images[trial->image_count++];
    bool power = cn_rand_below(&trial->image_rand, 3) > 0;
    uint64_t seed = cn_rand_next(&trial->image_rand);
    *image = (struct image){.last = trial->engine.last,
                            .told = machine->told,
                            .may_lack = machine->may_lack,
                            .sim = power ? simdisk_crash(machine->sim, seed)
                                         : simdisk_copy(machine->sim)};
    snprintf(image->where, sizeof(image->where), "%s of disk %d before %s %s (operation %llu)",
             power ? "power" : "process", machine->number, name, path,
             (unsigned long long)simdisk_count(machine->sim, SIMDISK_CHANGES));
}

struct second {
    struct simdisk *sim;
    uint64_t crash_at, operation, seed;
    struct simdisk *again;
};

static void crash_again(void *data, const char *name, const char *path)
{
    (void)name, (void)path;
    struct second *second = data;
    if (++second->operation == second->crash_at)
        second->again = simdisk_crash(second->sim, second->seed);
}

static int image_go_on(struct trial *trial, struct cn_replicas *replicas, struct image *image,
                       struct machine *machine)
{
    struct cn_err err = {0};
    struct cn_store *store;
    struct cn_replica *replica = cn_replicas_find(replicas, SHARD);
    if (!replica)
        return image->may_lack ? 0 : trial_fail(trial, image->where, "there is no replica");
    struct cn_replica_state state = state_of(replica);
    if (state.have < image->told)
        return trial_fail(trial, image->where, "less than the engine was told");
    if (state.have > image->last)
        return trial_fail(trial, image->where, "more than is settled");
    struct listengine engine = trial->engine;
    engine.last = image->last;
    engine.owner = replica;
    if (cn_rand_below(&trial->rand, 3) == 0 && cn_replica_checkpoint(replica, &err) < 0)
        return trial_fail(trial, image->where, err.text);
    if (listengine_feed(&engine, replica, image->last, 1 + cn_rand_below(&trial->rand, 40000),
                        &err) < 0)
        return trial_fail(trial, image->where, err.text);
    if (cn_rand_below(&trial->rand, 2) == 0 && cn_replica_checkpoint(replica, &err) < 0)
        return trial_fail(trial, image->where, err.text);
    if (cn_replica_promote(replica, image->last, NULL, &store, &err) < 0)
        return trial_fail(trial, image->where, err.text);
    (void)machine;
    if (model_compare_copy(&trial->model, store, image->last) < 0)
        return trial_fail(trial, image->where, trial->model.why);
    return 0;
}

static int image_verify(struct trial *trial, struct image *image, bool deep)
{
    struct machine machine = {.trial = trial};
    struct cn_replicas_config config = config_of(image->sim, &machine, 0);
    struct cn_replicas *replicas;
    struct cn_err err = {0};
    struct second second = {.sim = image->sim, .seed = cn_rand_next(&trial->rand)};
    config.hooks.stall = NULL; /* nothing is committed here */
    points++;
    if (deep) {
        second.crash_at = 1 + cn_rand_below(&trial->rand, 60);
        simdisk_set_hook(image->sim, SIMDISK_CHANGES, crash_again, &second);
    }
    machine.told = image->told;
    if (cn_replicas_open(&config, &replicas, &err) < 0)
        return trial_fail(trial, image->where, err.text);
    int rc = image_go_on(trial, replicas, image, &machine);
    cn_replicas_close(replicas);
    simdisk_set_hook(image->sim, 0, NULL, NULL);
    if (rc == 0 && second.again) {
        struct image next = *image;
        next.sim = second.again;
        snprintf(next.where, sizeof(next.where), "%.120s, then at operation %llu of what followed",
                 image->where, (unsigned long long)second.crash_at);
        rc = image_verify(trial, &next, false);
    }
    simdisk_free(second.again);
    return rc;
}

static int images_verify(struct trial *trial)
{
    int rc = 0;
    for (int i = 0; i < trial->image_count; i++) {
        if (rc == 0)
            rc = image_verify(trial, &trial->images[i], cn_rand_below(&trial->rand, 3) == 0);
        simdisk_free(trial->images[i].sim);
    }
    trial->image_count = 0;
    return rc;
}

/* ---- Steps ---- */

/* What fails may fail only while faults are planned. */
static int step_rc(struct trial *trial, int rc, const char *what, const struct cn_err *err)
{
    return rc >= 0 ? 0 : trial->faults ? 1 : trial_fail(trial, what, err->text);
}

static int step_demote(struct trial *trial)
{
    struct cn_err err = {0};
    if (trial->owner < 0)
        return 0;
    struct machine *machine = &trial->machines[trial->owner];
    model_close_databases(&trial->model);
    trial->owner = -1;
    trial->engine.owner = NULL;
    trial->engine.held = 0;
    return step_rc(trial, cn_replica_demote(replica_of(machine), &err), "demote", &err);
}

/* A machine that has or can get everything becomes the owner. */
static int step_promote(struct trial *trial)
{
    struct cn_err err = {0};
    struct cn_store *store;
    int number = (int)cn_rand_below(&trial->rand, DISKS);
    struct machine *machine = &trial->machines[number];
    struct cn_replica *replica = replica_of(machine);
    if (trial->owner >= 0 || !replica)
        return 0;
    int rc = listengine_feed(&trial->engine, replica, trial->engine.last, 30000, &err);
    if (rc == 0)
        rc = cn_replica_promote(replica, trial->engine.last, NULL, &store, &err);
    if (rc < 0)
        return step_rc(trial, rc, "promote", &err);
    trial->owner = number;
    trial->engine.owner = replica;
    /* Half compared, the model does not know yet which of the turns without an answer there were:
     * this one is given up, and the next owner is compared as a whole. */
    if (model_compare(&trial->model, store, trial->engine.last) < 0)
        return trial->faults ? 1 : trial_fail(trial, "a new owner", trial->model.why);
    rc = model_open_namespaces(&trial->model, store);
    return rc < 0 && !trial->faults ? trial_fail(trial, "a new owner", trial->model.why) : 0;
}

static int step_turns(struct trial *trial)
{
    struct cn_err err = {0};
    uint64_t lsn;
    if (trial->owner < 0)
        return step_promote(trial);
    struct cn_store *store = cn_replica_store(replica_of(&trial->machines[trial->owner]));
    int count = 1 + (int)cn_rand_below(&trial->rand, 6);
    for (int i = 0; i < count; i++) {
        int rc = model_turn(&trial->model, store, &lsn);
        if (rc < 0 && trial->faults)
            return 1; /* a database that cannot be read now: what is in the files shows later */
        if (rc == CN_ECORRUPT || (rc < 0 && !trial->engine.held))
            return trial_fail(trial, "a turn", trial->model.why);
    }
    switch (cn_rand_below(&trial->rand, 8)) {
    case 0: /* the answer of the engine is lost: it has them, and the owner is none any more */
        listengine_take(&trial->engine);
        return step_demote(trial);
    case 1: /* they are refused */
        return step_demote(trial);
    case 2: /* late */
        return 0;
    case 3: /* in part; from now on nothing is settled */
        trial->engine.held = trial->engine.last +
                             cn_rand_below(&trial->rand, cn_replica_appended(trial->engine.owner) -
                                                             trial->engine.last + 1);
        if (trial->engine.held == 0)
            return 0;
        trial->model.faults = true;
        break;
    default:
        break;
    }
    int rc = listengine_settle(&trial->engine, &err);
    if (trial->engine.held) {
        for (int i = 0; i < 3; i++)
            (void)model_turn(&trial->model, store, &lsn);
        int demoted = step_demote(trial);
        trial->model.faults = trial->faults;
        return demoted;
    }
    return step_rc(trial, rc, "settle", &err);
}

static int step_checkpoint(struct trial *trial)
{
    struct cn_err err = {0};
    int number = (int)cn_rand_below(&trial->rand, DISKS);
    struct cn_replica *replica = replica_of(&trial->machines[number]);
    if (!replica)
        return 0;
    return step_rc(trial, cn_replica_checkpoint(replica, &err), "checkpoint", &err);
}

static int step_feed(struct trial *trial)
{
    struct cn_err err = {0};
    int number = (int)cn_rand_below(&trial->rand, DISKS);
    struct cn_replica *replica = replica_of(&trial->machines[number]);
    if (!replica || number == trial->owner)
        return 0;
    uint64_t have = state_of(replica).have;
    if (have > trial->engine.last)
        return trial_fail(trial, "a follower", "has more than is settled");
    uint64_t lsn = have + cn_rand_below(&trial->rand, trial->engine.last - have + 1);
    size_t piece = 1 + cn_rand_below(&trial->rand, 60000);
    int rc = listengine_feed(&trial->engine, replica, lsn, piece, &err);
    return step_rc(trial, rc, "feed", &err);
}

static int copy_write(void *data, const void *bytes, size_t size)
{
    return cn_replica_copy_take(data, bytes, size, NULL);
}

/* A disk loses its replica and gets a copy of another's, or all from the engine. */
static int step_replace(struct trial *trial)
{
    struct cn_err err = {0};
    int to = (int)cn_rand_below(&trial->rand, DISKS), from = (to + 1) % DISKS;
    struct machine *machine = &trial->machines[to];
    if (to == trial->owner || !machine->replicas)
        return 0;
    machine->may_lack = true;
    machine->told = 0;
    int rc = cn_replicas_discard(machine->replicas, SHARD, &err);
    struct cn_replica *source = replica_of(&trial->machines[from]), *replica;
    if (rc == 0 && source && cn_rand_below(&trial->rand, 3) > 0) {
        struct cn_replica_copy *copy;
        uint64_t lsn;
        rc = cn_replica_copy_begin(machine->replicas, SHARD, &copy, &err);
        if (rc == 0) {
            rc = cn_replica_copy(source, copy_write, copy, &lsn, &err);
            if (rc < 0)
                cn_replica_copy_abort(copy);
            else
                rc = cn_replica_copy_end(copy, &replica, &err);
        }
        if (rc == 0)
            machine->told = state_of(replica).checkpoint; /* what ADD tells the engine */
    } else if (rc == 0) {
        rc = cn_replicas_create(machine->replicas, SHARD, &replica, &err);
    }
    if (rc == 0)
        machine->may_lack = false;
    return step_rc(trial, rc, "a new replica", &err);
}

/* A process ends and starts again, after a loss of power or not. */
static int step_restart(struct trial *trial)
{
    int number = (int)cn_rand_below(&trial->rand, DISKS);
    struct machine *machine = &trial->machines[number];
    struct simdisk *after = cn_rand_below(&trial->rand, 2)
                                ? simdisk_crash(machine->sim, cn_rand_next(&trial->rand))
                                : NULL;
    if (number == trial->owner) {
        model_close_databases(&trial->model);
        trial->owner = -1;
        trial->engine.owner = NULL;
    }
    if (machine->replicas) /* its last start may have failed */
        cn_replicas_close(machine->replicas);
    machine->replicas = NULL;
    if (images_verify(trial) < 0) {
        simdisk_free(after);
        return -1;
    }
    if (after) {
        simdisk_free(machine->sim);
        machine->sim = after;
        simdisk_set_fault(after, &trial->plan->lie);
        simdisk_set_hook(after, SIMDISK_CHANGES, take_image, machine);
    }
    if (machine_open(machine) < 0)
        return trial->faults ? 1 : -1;
    struct cn_replica *replica = replica_of(machine);
    if (!replica && !machine->may_lack)
        return trial_fail(trial, "a restart", "there is no replica");
    if (replica && state_of(replica).have < machine->told)
        return trial_fail(trial, "a restart", "less than the engine was told");
    return 0;
}

static int step(struct trial *trial)
{
    static int (*const steps[])(struct trial *) = {step_turns,      step_turns,     step_turns,
                                                   step_turns,      step_feed,      step_feed,
                                                   step_checkpoint, step_checkpoint};
    uint64_t kind = cn_rand_below(&trial->rand, 44);
    if (kind < 40)
        return steps[kind % CN_ARRAY_COUNT(steps)](trial);
    return kind < 42 ? step_replace(trial) : kind == 42 ? step_restart(trial) : step_demote(trial);
}

/* ---- Trials ---- */

static void trial_init(struct trial *trial, const struct plan *plan)
{
    *trial = (struct trial){.plan = plan, .owner = -1};
    listengine_init(&trial->engine);
    model_init(&trial->model, plan->seed, OBJECTS);
    cn_rand_init(&trial->rand, plan->seed + 1);
    cn_rand_init(&trial->image_rand, plan->seed + 2);
    for (int i = 0; i < DISKS; i++)
        trial->machines[i] =
            (struct machine){.trial = trial, .number = i, .sim = simdisk_new(), .may_lack = true};
}

static int trial_start(struct trial *trial)
{
    for (int i = 0; i < DISKS; i++) {
        struct machine *machine = &trial->machines[i];
        struct cn_replica *replica;
        struct cn_err err = {0};
        if (machine_open(machine) < 0)
            return -1;
        if (cn_replicas_create(machine->replicas, SHARD, &replica, &err) < 0)
            return trial_fail(trial, "create", err.text);
        machine->may_lack = false;
        simdisk_set_fault(machine->sim, &trial->plan->lie);
        simdisk_set_hook(machine->sim, SIMDISK_CHANGES, take_image, machine);
    }
    return 0;
}

static void trial_fini(struct trial *trial)
{
    model_close_databases(&trial->model);
    for (int i = 0; i < trial->image_count; i++)
        simdisk_free(trial->images[i].sim);
    for (int i = 0; i < DISKS; i++) {
        struct machine *machine = &trial->machines[i];
        simdisk_set_hook(machine->sim, 0, NULL, NULL);
        if (machine->replicas)
            cn_replicas_close(machine->replicas);
        simdisk_free(machine->sim);
    }
    model_fini(&trial->model);
    listengine_fini(&trial->engine);
}

static int trial_run(struct trial *trial)
{
    int rc = trial_start(trial);
    for (int i = 0; rc == 0 && i < trial->plan->steps; i++) {
        /* Images before whatever may make the model forget commits that were lost. */
        rc = step(trial);
        if (rc == 0)
            rc = images_verify(trial);
    }
    return rc;
}

static int run_power(uint64_t seed, int steps, char why[MODEL_WHY_MAX + 400])
{
    struct plan plan = {.seed = seed, .steps = steps, .image_percent = 3};
    struct trial trial;
    trial_init(&trial, &plan);
    int rc = trial_run(&trial);
    memcpy(why, trial.why, sizeof(trial.why));
    trial_fini(&trial);
    return rc;
}

/* The n-th operation of one disk fails. Then that machine starts again, without faults. */
static int run_fault(uint64_t seed, char why[MODEL_WHY_MAX + 400])
{
    static const int codes[] = {-EIO, -ENOSPC, 0};
    struct plan plan = {.seed = seed, .steps = 60};
    struct trial trial;
    trial_init(&trial, &plan);
    int rc = trial_start(&trial);
    struct machine *machine = &trial.machines[seed % DISKS];
    struct simdisk_fault fault = {
        .kinds = seed % 7 == 0 ? SIMDISK_ALL : SIMDISK_CHANGES,
        .at = 1 + cn_rand_below(&trial.rand, 400),
        .code = codes[seed / 3 % 3],
        .sticky = seed % 2,
    };
    if (fault.code == 0)
        fault.kinds = SIMDISK_WRITE;
    simdisk_set_fault(machine->sim, &fault);
    trial.faults = trial.model.faults = true;
    for (int i = 0; rc == 0 && i < plan.steps; i++) {
        rc = step(&trial);
        if (rc > 0) { /* whoever had the fault is given up, as a host would */
            rc = step_demote(&trial);
            rc = rc > 0 ? 0 : rc;
        }
    }
    for (int i = 0; i < DISKS; i++)
        simdisk_set_fault(trial.machines[i].sim, NULL);
    /* Everyone starts anew and can become the owner. */
    if (rc == 0)
        rc = step_demote(&trial) < 0 ? -1 : 0;
    trial.faults = trial.model.faults = false;
    for (int i = 0; rc == 0 && i < DISKS; i++) {
        struct machine *again = &trial.machines[i];
        struct image image = {.sim = simdisk_copy(again->sim),
                              .last = trial.engine.last,
                              .told = again->told,
                              .may_lack = again->may_lack};
        snprintf(image.where, sizeof(image.where), "disk %d after a fault", i);
        rc = image_verify(&trial, &image, false);
        simdisk_free(image.sim);
    }
    memcpy(why, trial.why, sizeof(trial.why));
    trial_fini(&trial);
    return rc;
}

/* ---- Planted bugs ---- */

struct planted {
    const char *name;
    unsigned planted;
    struct simdisk_fault lie;
};

static bool planted_found(const struct planted *bug, uint64_t *seed)
{
    for (*seed = 1; *seed <= 60; ++*seed) {
        struct plan plan = {.seed = *seed,
                            .steps = 120,
                            .image_percent = 3,
                            .planted = bug->planted,
                            .lie = bug->lie};
        struct trial trial;
        trial_init(&trial, &plan);
        int rc = trial_run(&trial);
        trial_fini(&trial);
        if (rc != 0)
            return true;
    }
    return false;
}

static int run_planted(void)
{
    static const struct planted bugs[] = {
        {.name = "pages are written before they are settled",
         .planted = CN_PLANTED_EARLY_WRITE_BACK},
        {.name = "the first change of a page has no image", .planted = CN_PLANTED_NO_IMAGE},
        {.name = "redo starts where no boundary is", .planted = CN_PLANTED_ANY_BOUNDARY},
        {.name = "the log that a checkpoint leaves is not synced",
         .lie = {.ignore_sync = "shards/0007/log/0"}},
        {.name = "databases are not synced", .lie = {.ignore_sync = "shards/0007/objects"}},
        {.name = "the catalog is not synced", .lie = {.ignore_sync = "shards/0007/catalog"}},
        {.name = "what is not settled is written", .planted = CN_PLANTED_EARLY_SETTLE},
    };
    int missed = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(bugs); i++) {
        uint64_t seed;
        bool found = planted_found(&bugs[i], &seed);
        printf("%s planted: %s (seed %llu)\n", found ? "ok  " : "FAIL", bugs[i].name,
               (unsigned long long)seed);
        missed += !found;
    }
    return missed;
}

int main(int argc, char **argv)
{
    static char why[MODEL_WHY_MAX + 400];
    bool only_long = argc > 1 && strcmp(argv[1], "long") == 0;
    int failed = 0, passed = 0;
    cn_diag_setup(CN_DIAG_PRETTY, argc > 2 ? CN_DIAG_ERROR : CN_DIAG_ERROR + 1); /* planned */
    if (argc > 2) {
        uint64_t seed = strtoull(argv[2], NULL, 10);
        int rc = strcmp(argv[1], "fault") == 0 ? run_fault(seed, why) : run_power(seed, 200, why);
        printf("seed %llu: %s\n", (unsigned long long)seed, rc ? why : "fine");
        return rc != 0;
    }
    int trials = only_long ? 400 : 12, faults = only_long ? 4000 : 120;
    for (int i = 1; i <= trials; i++) {
        bool bad = run_power((uint64_t)i, 200, why) != 0;
        failed += bad;
        if (bad)
            printf("FAIL crash_replica seed %d: %s\n", i, why);
    }
    printf("%llu images\n", (unsigned long long)points);
    passed += failed == 0;
    int before = failed;
    for (int i = 1; i <= faults; i++) {
        bool bad = run_fault((uint64_t)i, why) != 0;
        failed += bad;
        if (bad)
            printf("FAIL crash_replica fault %d: %s\n", i, why);
    }
    passed += failed == before;
    int missed = run_planted();
    failed += missed;
    passed += missed == 0;
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
