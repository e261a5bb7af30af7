/* SPDX-License-Identifier: Apache-2.0 */
/* server/systemd.h - what a service manager (systemd) and a service say to each other: a socket
 * that it has opened for us (LISTEN_FDS), and how far we are (NOTIFY_SOCKET). Without one, nothing.
 */
#ifndef CN_SERVER_SYSTEMD_H
#define CN_SERVER_SYSTEMD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_err;

/* The listening TCP sockets that were passed to this process: their descriptors (owned, NULL: none)
 * and their number, with their address in *host (owned) and *port. A service manager passes one;
 * more, or another kind, is an error. A process before this one (cn_systemd_restart()) passes one
 * for each lane. The variables are removed, so that children do not take them for theirs. */
int cn_systemd_sockets(int **fds, size_t *count, char **host, uint16_t *port, struct cn_err *err);
/* This program again, with the same arguments and these sockets. Returns only if it fails. */
int cn_systemd_restart(const int *fds, size_t count, struct cn_err *err);

/* Whether what is written to `fd` goes to the journal. */
bool cn_systemd_has_journal(int fd);

/* Opens the way to the manager, if there is one, and keeps it: for a process that can make no such
 * socket later (base/sandbox.h). Once, before there are threads. */
void cn_systemd_keep(void);
/* Tells the manager, e.g. "READY=1". */
void cn_systemd_tell(const char *state);
/* "RELOADING=1" with the time that systemd wants to see; "READY=1" ends it. */
void cn_systemd_tell_reloading(void);

#endif
