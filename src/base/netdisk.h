/* SPDX-License-Identifier: Apache-2.0 */
/* base/netdisk.h - a folder of another process, as a disk.
 *
 *     here                                       there
 *     cn_disk_open(), cn_disk_write() ...        cn_netdisk_serve() does it on a disk of its own,
 *       ──► a run of operations, as bytes ──►    with the rights of its process
 *       ◄── one answer ◄──
 *
 * The process that has the folder serves it: `cairn backup` to the server. The server itself may
 * not see that folder (a packaged service has a /tmp of its own, and may write nowhere else).
 *
 *   N1  Operations whose result is only whether they worked (write, truncate, sync, close)
 *       wait here, up to CN_NETDISK_RUN_MAX bytes of them, and go with the next one that has an
 *       answer, in order. There the run ends with the first that fails.
 *   N2  A failure of one that waited is the disk's: every later operation returns it, so that
 *       what was not written is never taken for written. Nothing is known to be done before
 *       cn_netdisk_flush() has returned 0.
 *   N3  There, paths are input: relative, without empty segments, "." and ".."; sizes have a
 *       bound. What breaks that, or is no operation, is -EINVAL, and nothing is done.
 *
 * Threads:   the disk as base/disk.h says (one exchange at a time); the serving half one.
 * Ownership: `exchange` and the disk below are borrowed. */
#ifndef CN_BASE_NETDISK_H
#define CN_BASE_NETDISK_H
#include "base/buf.h"
#include "base/disk.h"

#define CN_NETDISK_RUN_MAX ((size_t)1 << 20)
#define CN_NETDISK_PIECE_MAX ((size_t)256 << 10) /* of one read or write */
/* No run and no answer is larger. */
#define CN_NETDISK_MESSAGE_MAX ((size_t)4 << 20)

/* Takes the run there, and waits for its answer: 0, or a negative errno value if it cannot be had.
 */
typedef int (*cn_netdisk_exchange)(void *data, const struct cn_buf *run, struct cn_buf *answer);

struct cn_disk *cn_netdisk_new(cn_netdisk_exchange exchange, void *data);
/* N2: 0, or what has failed since it was made. */
int cn_netdisk_flush(struct cn_disk *disk);
void cn_netdisk_free(struct cn_disk *disk); /* files must be closed */

struct cn_netdisk_server;
struct cn_netdisk_server *cn_netdisk_server_new(struct cn_disk *below);
/* Does what the run says, and appends the answer. */
void cn_netdisk_serve(struct cn_netdisk_server *server, const void *run, size_t size,
                      struct cn_buf *answer);
void cn_netdisk_server_free(struct cn_netdisk_server *server); /* closes what is open */

#endif
