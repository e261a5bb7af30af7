/* SPDX-License-Identifier: Apache-2.0 */
/* base/whose.h - which process has a port or a file that is wanted, for the sentence that says so.
 *
 * Read from /proc; of other users' processes little can be read there, so that the answer may be
 * "another process".
 *
 * Threads: any that may block. */
#ifndef CN_BASE_WHOSE_H
#define CN_BASE_WHOSE_H
#include <stddef.h>
#include <stdint.h>

#define CN_WHOSE_TEXT_MAX 96

/* "node (process 4711)", or "another process": who listens on this TCP port, */
void cn_whose_port(uint16_t port, char text[CN_WHOSE_TEXT_MAX]);
/* and who has a lock (flock) on this file. */
void cn_whose_lock(const char *path, char text[CN_WHOSE_TEXT_MAX]);

#endif
