/* SPDX-License-Identifier: Apache-2.0 */
/* net/caller.h - one HTTP request that is waited for: how a command asks a server elsewhere.
 *
 * The server's own requests go out by net/client.h, on a loop. A command has no loop and nothing
 * else to do.
 *
 *   K1  A token goes to the address that was given and to no other: redirects are not followed, and
 *       no proxy of the environment is asked for a loopback address.
 *   K2  What comes back is bounded.
 *
 * Threads: any. */
#ifndef CN_NET_CALLER_H
#define CN_NET_CALLER_H
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct cn_caller_request {
    const char *method, *url;
    const char *socket;       /* path of a local socket in the place of the host; NULL: none */
    const char *token;        /* Authorization: Bearer; NULL: none */
    const char *content_type; /* NULL: no body */
    const void *body;
    size_t body_size;
    const char *ca_file; /* certificates to believe besides the system's; NULL: none */
    size_t answer_max;
    /* Signed as S3 wants it (the query is in order and encoded): "KEY:SECRET"; NULL: not. */
    const char *s3_keys;
    int file;              /* a descriptor that takes the body of a 200; 0: `answer` does */
    struct cn_buf *fields; /* the head of the answer, line after line; NULL: not wanted */
};

/* The status, and the body appended to `answer`. Negative: no answer was had. */
int cn_caller_ask(const struct cn_caller_request *request, struct cn_buf *answer,
                  struct cn_err *err);

#endif
