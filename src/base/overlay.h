/* SPDX-License-Identifier: Apache-2.0 */
/* base/overlay.h - a disk whose changes stay in memory.
 *
 * Reads come from another disk until something is written over them; nothing is
 * ever written to that disk. So whatever can work on a disk can be tried on
 * one that must not change: recovery, above all, for a look at a data
 * directory. Locks are taken on the disk below.
 *
 * Memory: what is written, in blocks of 4 KiB.
 *
 * Threads: any; one lock. The disk below must not change meanwhile. */
#ifndef CN_BASE_OVERLAY_H
#define CN_BASE_OVERLAY_H
#include "base/disk.h"

/* `below` is borrowed. */
struct cn_disk *cn_disk_overlay_new(struct cn_disk *below);
void cn_disk_overlay_free(struct cn_disk *disk); /* files must be closed */

#endif
