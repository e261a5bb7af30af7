/* SPDX-License-Identifier: Apache-2.0 */
/* server/watch.h - `cairn dev`: a changed file becomes a reload.
 *
 * Folders are watched, not files: editors replace files. Every event starts a
 * short timer; when it ends, the inputs are compared with what the running
 * version was made of, and only a real change reloads.
 *
 *     an event, or a request (worker/hold.h) ──► look ──► nothing has changed ──► requests go on
 *                                                 │  ▲
 *                  a change: wait until it is calm  │  │ the load is over: requests from before
 *                                                 ▼  │ it began go on, for the others look again
 *                                               reload
 *
 * W1  K1 of worker/hold.h: a request goes on when a look that began after it has found nothing
 *     changed, or when a load that began after it is over.
 * W2  Changes that do not end put a load off for CALM_MS_MAX at the most.
 * W3  A load that has failed is not tried again before a file has changed, or somebody asks.
 *
 * Threads:   cn_watch_load() wherever cn_serve() loads; the rest on its loop.
 * Ownership: the caller's memory; must live until cn_serve() returns. */
#ifndef CN_SERVER_WATCH_H
#define CN_SERVER_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/mailbox.h"
#include "worker/hold.h"

struct cn_deployer;
struct cn_deployment;
struct cn_err;
struct cn_serve;
struct watcher;

struct cn_watch {
    struct cn_hold hold;          /* first: cn_hold.ask finds the watch by it */
    struct cn_deployer *deployer; /* borrowed */
    struct cn_serve *serve;       /* NULL: not started (serve, or not yet) */
    uv_timer_t timer;
    uint64_t stirred_ms;      /* loop time of the first event since the last load */
    struct cn_mailbox asked;  /* requests wait; on a server that serves alone it is never open */
    uint64_t loading;         /* the last ticket before the load under way began */
    char *problem;            /* owned: why the last load failed, or NULL */
    uv_async_t loaded;        /* a load is over: its folders may be new ones */
    struct watcher *watchers; /* linked list */
    size_t watcher_count;
    bool stopping;
};

void cn_watch_init(struct cn_watch *watch, struct cn_deployer *deployer);
/* For struct cn_serve_options; `data` is the struct cn_watch. */
int cn_watch_load(void *data, bool reread, struct cn_deployment **deployment, struct cn_err *err);
void cn_watch_start(struct cn_serve *serve, void *data);
void cn_watch_stop(struct cn_serve *serve, void *data);
void cn_watch_settled(struct cn_serve *serve, const struct cn_err *err, void *data);

#endif
