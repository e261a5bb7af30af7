/* SPDX-License-Identifier: Apache-2.0 */
/* net/client_head.h - the head of an answer, gathered line by line.
 *
 * Interim answers (1xx) are read and forgotten. Strict where a peer could smuggle
 * something past us: names are tokens, values hold no NUL and no CR. Folded lines
 * are joined by one space, as RFC 9112 (5.2) allows.
 *
 * Threads: none of its own; the owner's. */
#ifndef CN_NET_CLIENT_HEAD_H
#define CN_NET_CLIENT_HEAD_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/client.h"

/* A zeroed struct is ready for the first line. */
struct cn_client_head_reader {
    struct cn_buf text;  /* the reason, names and values, each with a NUL */
    struct cn_buf spans; /* where they are, in order */
    size_t size;         /* bytes seen, interim answers included */
    int status, http_version;
    bool upgrades; /* 101 was asked for: it is a final answer */
};

void cn_client_head_fini(struct cn_client_head_reader *reader);
/* One line with its line end. 1: that was the last of the final head; 0: more follow;
 * CN_ELIMIT: more than `size_max` in all; CN_EPROTOCOL: malformed. */
int cn_client_head_line(struct cn_client_head_reader *reader, const char *line, size_t size,
                        size_t size_max, struct cn_err *err);
/* After it returned 1. The array of headers is the caller's to free; all else borrowed. */
struct cn_client_head cn_client_head_take(struct cn_client_head_reader *reader,
                                          struct cn_client_header **headers);

/* A method or header name by RFC 9110 (5.6.2). */
bool cn_client_is_token(const char *text, size_t length);

#endif
