/* SPDX-License-Identifier: Apache-2.0 */
/* base/overlay.h - a disk whose changes stay in memory.
 *
 * Reads come from the disk below until something was written over them; nothing is ever written to
 * that disk. So code that works on a disk, recovery above all, can run on a data directory that
 * must not change. Locks are taken on the disk below.
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
