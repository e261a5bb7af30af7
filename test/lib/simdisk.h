/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/simdisk.h - a disk in memory that can lose power, fail and run full.
 *
 * Implements base/disk.h. Each file keeps what is durable and, beside it, every
 * change since its last sync; each name keeps its durable meaning and the
 * changes since the last sync of its folder. simdisk_crash() draws from a seed
 * what a machine would find after losing power at this instant:
 *
 *   S1  of each 512-byte sector, any one of the contents it has had since the
 *       last sync of its file, independently of every other sector;
 *   S2  of each file, any one of the sizes it has had since then;
 *   S3  any subset of the unsynced creations, removals and renames, each whole
 *       or not at all (renames are atomic, as on every journalling file system);
 *   S4  all that was synced.
 *
 * The disk it is taken from goes on unharmed: one run of a workload can be
 * crashed at each of its operations, several times.
 *
 * Threads: any; one lock. With one thread a run repeats exactly from its seed. */
#ifndef CN_TEST_SIMDISK_H
#define CN_TEST_SIMDISK_H
#include <stdbool.h>
#include <stdint.h>

#include "base/disk.h"

struct simdisk;

/* Kinds of operations, for counting and failing them. */
enum simdisk_kind {
    SIMDISK_OPEN = 1,
    SIMDISK_READ = 2,
    SIMDISK_WRITE = 4,
    SIMDISK_SYNC = 8,    /* sync_data and sync_dir */
    SIMDISK_RESIZE = 16, /* truncate and allocate */
    SIMDISK_NAME = 32,   /* rename, unlink, mkdir */
    SIMDISK_CHANGES = SIMDISK_OPEN | SIMDISK_WRITE | SIMDISK_SYNC | SIMDISK_RESIZE | SIMDISK_NAME,
    SIMDISK_ALL = 63,
};

/* What goes wrong. A zeroed struct is a disk without faults. */
struct simdisk_fault {
    unsigned kinds;       /* which operations count */
    uint64_t at;          /* the n-th of them from now, from 1; 0: none */
    int code;             /* fails with this (-EIO); 0 for a write: a short write */
    bool sticky;          /* all of them from then on */
    uint64_t space_bytes; /* files may grow by this much, then -ENOSPC; 0: any amount */
    const char
        *ignore_sync;      /* sync_data of files whose path begins so does nothing: a planted bug */
    const char *late_sync; /* ... takes effect only at the next write to the file: another */
};

struct simdisk *simdisk_new(void);
void simdisk_free(struct simdisk *sim);            /* files must be closed */
struct cn_disk *simdisk_disk(struct simdisk *sim); /* borrowed */

void simdisk_set_fault(struct simdisk *sim, const struct simdisk_fault *fault);
/* Operations of these kinds so far. */
uint64_t simdisk_count(struct simdisk *sim, unsigned kinds);

/* Runs before each operation of the given kinds, outside the lock, on the thread that asked
 * for it: the moment to take a crash image. `name` is the operation and `path` its file. */
typedef void (*simdisk_hook)(void *data, const char *name, const char *path);
void simdisk_set_hook(struct simdisk *sim, unsigned kinds, simdisk_hook hook, void *data);

/* The disk as found after losing power now. Everything on it is durable. */
struct simdisk *simdisk_crash(struct simdisk *sim, uint64_t seed);
/* The disk as a process finds it that was killed now: nothing is lost. */
struct simdisk *simdisk_copy(struct simdisk *sim);

/* Flips one bit of a file, durably: damage of the medium. 0, or -ENOENT, -EINVAL past the end. */
int simdisk_damage(struct simdisk *sim, const char *path, uint64_t offset, unsigned bit);

/* Copies everything to the real folder `path`, which is made, to look at after a failure. */
int simdisk_export(struct simdisk *sim, const char *path);

/* Bytes of all files, for a look at growth. */
uint64_t simdisk_used(struct simdisk *sim);

#endif
