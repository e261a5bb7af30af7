/* SPDX-License-Identifier: Apache-2.0 */
/* net/redirect.h - where an answer of 301, 302, 303, 307 or 308 leads, by the rules of
 * https://fetch.spec.whatwg.org/#http-redirect-fetch (prelude/web/fetch/fetch.js has the same ones
 * for JavaScript).
 *
 * R1  301 and 302 make a GET of a POST, 303 one of everything but GET and HEAD; the body and the
 *     headers that describe it are left behind then. 307 and 308 keep all.
 * R2  Headers that are meant for one origin (credentials, cookies) go to no other.
 * R3  Only http and https are followed, CN_REDIRECTS_MAX times.
 *
 * Threads: any; nothing here has state. */
#ifndef CN_NET_REDIRECT_H
#define CN_NET_REDIRECT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define CN_REDIRECTS_MAX 20

struct cn_redirect {
    char *url;         /* the caller's: cn_free() */
    bool becomes_get;  /* R1 */
    bool other_origin; /* R2 */
};

bool cn_redirect_is(int status);
/* What `location` means to an answer of `status` from `url`. CN_EINVALID: it is nothing to follow.
 */
int cn_redirect_read(int status, const char *method, const char *url, const char *location,
                     struct cn_redirect *redirect, struct cn_err *err);
/* Whether a header, by its name in any case, goes along. */
bool cn_redirect_keeps(const struct cn_redirect *redirect, const char *name);

#endif
