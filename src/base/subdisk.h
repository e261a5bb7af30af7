/* SPDX-License-Identifier: Apache-2.0 */
/* base/subdisk.h - a folder of a disk, as a disk of its own.
 *
 * Costs no descriptor: paths are made longer, and files are those of the disk below.
 *
 * Threads: as the disk below. */
#ifndef CN_BASE_SUBDISK_H
#define CN_BASE_SUBDISK_H
#include "base/disk.h"

/* `below` is borrowed; `folder` is copied, and need not be there yet. */
struct cn_disk *cn_disk_sub_new(struct cn_disk *below, const char *folder);
void cn_disk_sub_free(struct cn_disk *disk); /* files must be closed */

#endif
