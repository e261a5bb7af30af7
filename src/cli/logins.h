/* SPDX-License-Identifier: Apache-2.0 */
/* cli/logins.h - the servers that this user has logged in to, and the token for each:
 * $XDG_CONFIG_HOME/cairn/servers.json, else ~/.config/cairn/servers.json.
 *
 *   N1  The file has mode 0600 from the moment it is made; one that others may read is not used.
 *   N2  It is replaced as a whole: a reader sees the old or the new one.
 *   N3  A server is its address in one form (cn_logins_normal()), so that a token is never sent to
 *       an address that only resembles the one it is for.
 *
 * Ownership: texts that are returned are the caller's. */
#ifndef CN_CLI_LOGINS_H
#define CN_CLI_LOGINS_H
#include "base/err.h"

#define CN_LOGINS_MAX 1000

/* The form of an address that counts: scheme and host in lower case, no path, no slash at its end;
 * /client/v4 is taken off. NULL with an error: it is none that a token may be sent to. */
char *cn_logins_normal(const char *url, struct cn_err *err);
/* The token for a server (in its normal form), or NULL; with an error if the file cannot be used.
 */
char *cn_logins_token(const char *url, struct cn_err *err);
/* The server that was logged in to last, or NULL; likewise. */
char *cn_logins_last(struct cn_err *err);
/* Keeps a token; NULL: forgets the server, CN_ENOTFOUND if it was not known. */
int cn_logins_set(const char *url, const char *token, struct cn_err *err);
/* The file's name. */
char *cn_logins_path(void);

#endif
