/* SPDX-License-Identifier: Apache-2.0 */
/* config/adminconf.h - where the admin listener is and who may use it: flags, variables, [cairn].
 *
 *     --admin HOST:PORT          default 127.0.0.1:8788 (cairn dev: any free port)
 *     --admin https://HOST:PORT  with the server's certificate
 *     --admin off
 *     --health HOST:PORT         /healthz and /readyz alone, for a load balancer; default: none
 *     CAIRN_ADMIN_TOKEN          the token; on loopback, without one, DATA/admin.token is made
 *
 * N1  A listener that others can reach has a token that somebody chose. One on loopback makes its
 *     own at its first start, which only the server's user can read, and keeps it.
 * N2  A token has 16 to 512 characters; a file with something else is refused, and one that was
 *     made here is told from a damaged one. A file that cannot be written whole is not left.
 *
 * Ownership: the struct owns its texts; to be freed, also on failure. */
#ifndef CN_CONFIG_ADMINCONF_H
#define CN_CONFIG_ADMINCONF_H
#include "admin/admin.h"

struct cn_config;
struct cn_tls_context;

/* What it is chosen by. Texts are borrowed; NULL: not given. */
struct cn_adminconf_wishes {
    const char *address, *token, *health;
    const struct cn_config *config;
    const char *data; /* the data directory, made if it is absent */
    struct cn_tls_context *tls;
    bool development;
};

struct cn_adminconf {
    char *host, *token, *data, *health_host;
};

/* Fills the options' listener and token. */
int cn_adminconf_choose(struct cn_adminconf *conf, const struct cn_adminconf_wishes *wishes,
                        struct cn_admin_options *options, struct cn_err *err);
void cn_adminconf_fini(struct cn_adminconf *conf);

/* Whether the token in the data directory is what was written; one that is not there is fine. */
int cn_adminconf_check(const char *data, struct cn_err *err);

#endif
