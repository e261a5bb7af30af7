/* SPDX-License-Identifier: Apache-2.0 */
/* net/client_params.h - what a caller asked for, checked and put into curl's terms.
 *
 * Threads: any. */
#ifndef CN_NET_CLIENT_PARAMS_H
#define CN_NET_CLIENT_PARAMS_H
#include <curl/curl.h>

#include "net/client.h"

/* The parsed URL and "scheme://host:port" for messages (no path: it may hold secrets).
 * Both are the caller's to free on success. CN_EINVALID: not http(s), or has a password. */
int cn_client_params_url(const char *text, CURLU **url, char **origin, struct cn_err *err);

/* The headers to send, without those that frame the message. CN_EINVALID: a name that is
 * no token, or a value that could end its line. The caller frees the list on success. */
int cn_client_params_headers(const struct cn_client_params *params, struct curl_slist **list,
                             struct cn_err *err);

#endif
