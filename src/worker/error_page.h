/* SPDX-License-Identifier: Apache-2.0 */
/* worker/error_page.h - what `cairn dev` answers when something went wrong: a page for a browser,
 * plain text for everything else.
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_ERROR_PAGE_H
#define CN_WORKER_ERROR_PAGE_H
#include <stddef.h>

struct cn_http_request;

/* Answers the request, and does not release it. The first line of the text is its title. `worker`:
 * the one that has failed at it, or NULL. Colours for a terminal in the text are left out. */
void cn_error_page(struct cn_http_request *http, int status, const char *worker, const char *text,
                   size_t size);

#endif
