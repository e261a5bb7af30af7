/* SPDX-License-Identifier: Apache-2.0 */
/* admin/guard.h - who may use the admin listener.
 *
 * The control socket is protected by its file's mode and asks nothing. On TCP:
 *
 *   G1  Health, readiness and the files of the dashboard, which show nothing by themselves, are
 *       open to whoever reaches the port. On loopback, so are metrics.
 *   G2  Everything else needs "Authorization: Bearer TOKEN", compared in constant time.
 *   G3  A right token is let in whatever was sent before it: an address may be everybody's
 *       (loopback, a proxy). Whoever tries finds none: they have 16 characters at least, and most
 *       are random. A wrong one costs a hash and a comparison with each. An address that has sent
 *       FREE_FAILURES of them is told in the log, once, and its further wrong ones are answered
 *       with 429 and a time to wait that doubles, 1 s to 5 min, until it sends none for as long.
 *   G4  A page in a browser cannot use the listener behind its user's back: on
 *       loopback the Host must be a loopback name (DNS rebinding), and a request with
 *       an Origin must come from the listener itself.
 *   G5  Besides the operator's token there are others (v4/tokens.h) that are good for a part
 *       of the requests; each route says for whom it is (handler.h), and without a word it is for
 *       the operator alone.
 *
 * Threads: the admin thread's. */
#ifndef CN_ADMIN_GUARD_H
#define CN_ADMIN_GUARD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_http_request;

/* What a token is good for. */
enum cn_scope {
    CN_SCOPE_READ = 1,      /* look at what is deployed, and at data */
    CN_SCOPE_DEPLOY = 2,    /* workers, versions, secrets, schedules, routes */
    CN_SCOPE_DATA = 4,      /* write to KV, D1, R2, queues */
    CN_SCOPE_ADMIN = 8,     /* everything else: the control API, the dashboard */
    CN_SCOPE_UPLOAD = 16,   /* files of one upload of assets */
    CN_SCOPE_TRANSFER = 32, /* one file, by an address that is a secret */
    CN_SCOPE_TOKENS = CN_SCOPE_READ | CN_SCOPE_DEPLOY | CN_SCOPE_DATA, /* what tokens can have */
    CN_SCOPE_ALL = CN_SCOPE_TOKENS | CN_SCOPE_ADMIN,
};

/* Who asks. */
struct cn_guard_who {
    unsigned scopes;
    char id[33], name[65]; /* of the token; the operator's has the name "admin" */
};

#define CN_GUARD_ADDRESS_MAX 64 /* addresses remembered; the one idle longest is forgotten */

struct cn_guard {
    const char *token; /* borrowed; never empty */
    bool loopback;     /* the listener is bound to a loopback address */
    /* G5: fills `who` by a token that is not the operator's; scopes 0: it is none. May be NULL. */
    void (*find)(void *data, const char *token, size_t size, struct cn_guard_who *who);
    void *find_data;
    struct cn_guard_address {
        char remote[48];
        unsigned failures; /* up to what the longest wait needs */
        uint64_t last_ms;
    } addresses[CN_GUARD_ADDRESS_MAX];
};

enum cn_guard_need { CN_GUARD_OPEN, CN_GUARD_METRICS, CN_GUARD_TOKEN };

/* 0: let it in, as `who`. Otherwise the status to answer with, a sentence, and seconds for
 * Retry-After. */
int cn_guard_check(struct cn_guard *guard, struct cn_http_request *req, enum cn_guard_need need,
                   uint64_t now_ms, struct cn_guard_who *who, const char **sentence,
                   unsigned *retry_seconds);
/* Whoever may do everything. */
void cn_guard_operator(struct cn_guard_who *who);

/* Whether two texts are equal, in a time that depends on the length of the first only. */
bool cn_guard_equal(const char *secret, const char *given, size_t given_size);
struct cn_http_text;
/* G4: whether the Host field, without its port, is a loopback name. */
bool cn_guard_host_is_loopback(const struct cn_http_text *host);
/* 127.0.0.0/8, ::1, localhost. */
bool cn_guard_is_loopback(const char *host);

#endif
