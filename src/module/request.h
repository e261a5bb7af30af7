/* SPDX-License-Identifier: Apache-2.0 */
/* module/request.h - a request from outside (net/server.h) as a worker in C reads it.
 *
 * Its parts lie in the connection's buffer, without a NUL behind them; what is asked for is copied
 * once, and stays as long as the event, whether the client is still there or not.
 *
 * Q1  `texts` has a place for each part: the method, the URL, then for each header its name and its
 *     value; that of the first of several with one name is for all of them, joined.
 * Q2  CF-Connecting-IP is the address that the server knows (worker/address.h), never what a client
 *     has sent under that name.
 *
 * Threads: the lane's. */
#ifndef CN_MODULE_REQUEST_H
#define CN_MODULE_REQUEST_H
#include "module/internal.h"

/* Makes `texts`; `http` is there. */
void cn_outside_begin(struct cn_compiled_asked *asked);
void cn_outside_end(struct cn_compiled_asked *asked);

const char *cn_outside_method(struct cn_compiled_asked *asked);
const char *cn_outside_url(struct cn_compiled_asked *asked);
const char *cn_outside_header(struct cn_compiled_asked *asked, const char *name);
size_t cn_outside_header_count(const struct cn_compiled_asked *asked);
const char *cn_outside_header_at(struct cn_compiled_asked *asked, size_t index, const char **value);

#endif
