/* SPDX-License-Identifier: Apache-2.0 */
/* admin/dashboard.h - the dashboard: a page, its script and its style, embedded at build time
 * (dashboard/, tools/build-dashboard.mjs).
 *
 * The files have no secrets and are served without a token; everything they show comes from the
 * control API, which asks for one.
 *
 *   D1  The page runs no script but its own, is in no frame, and talks to nobody but this listener.
 *   D2  A name with a hash in it never changes its content and is kept by browsers for ever; the
 *       page itself is asked for again every time.
 *
 * Threads: the admin thread's. */
#ifndef CN_ADMIN_DASHBOARD_H
#define CN_ADMIN_DASHBOARD_H
#include <stdbool.h>
#include <stddef.h>

struct cn_http_request;

struct cn_dashboard_file {
    const char *path, *type, *etag;
    bool fixed; /* D2: its name has a hash */
    const unsigned char *plain;
    size_t plain_size;
    const unsigned char *gzip;
    size_t gzip_size;
};

extern const struct cn_dashboard_file cn_dashboard_files[];
extern const unsigned cn_dashboard_file_count;

/* The file that a request is for, or NULL. */
const struct cn_dashboard_file *cn_dashboard_find(const struct cn_http_request *http);
/* Answers with it, and releases the request. */
void cn_dashboard_answer(const struct cn_dashboard_file *file, struct cn_http_request *http);

#endif
