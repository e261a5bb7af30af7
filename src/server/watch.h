/* SPDX-License-Identifier: Apache-2.0 */
/* server/watch.h - `cairn dev`: a changed file becomes a reload.
 *
 * Folders are watched, not files: editors replace files. Every event starts a
 * short timer; when it ends, the inputs are compared with what the running
 * version was made of, and only a real change reloads.
 *
 * Threads:   cn_watch_load() wherever cn_serve() loads; the rest on its loop.
 * Ownership: the caller's memory; must live until cn_serve() returns. */
#ifndef CN_SERVER_WATCH_H
#define CN_SERVER_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct cn_deployer;
struct cn_deployment;
struct cn_err;
struct cn_serve;
struct watcher;

struct cn_watch {
    struct cn_deployer *deployer; /* borrowed */
    struct cn_serve *serve;       /* NULL: not started (serve, or not yet) */
    uv_timer_t timer;
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

#endif
