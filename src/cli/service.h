/* SPDX-License-Identifier: Apache-2.0 */
/* cli/service.h - what a service manager (systemd) and a service say to each other: a socket that
 * it has opened for us (LISTEN_FDS), and how far we are (NOTIFY_SOCKET). Without one, nothing. */
#ifndef CN_CLI_SERVICE_H
#define CN_CLI_SERVICE_H
#include <stdint.h>

struct cn_err;

/* The listening TCP socket that was passed to this process: its descriptor, with its address in
 * *host (owned) and *port; -1: none was passed. More than one, or another kind, is an error.
 * The variables are removed, so that children do not take them for theirs. */
int cn_service_socket(int *fd, char **host, uint16_t *port, struct cn_err *err);

/* Tells the manager, e.g. "READY=1". */
void cn_service_tell(const char *state);
/* "RELOADING=1" with the time that systemd wants to see; "READY=1" ends it. */
void cn_service_tell_reloading(void);

#endif
