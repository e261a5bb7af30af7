/* SPDX-License-Identifier: Apache-2.0 */
#include "server/watch.h"

#include <string.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "deploy/deploy.h"
#include "server/serve.h"

#define SETTLE_MS 40
#define WATCHERS_MAX 2000

struct watcher {
    uv_fs_event_t event; /* first: closed as a handle, then freed */
    struct watcher *next;
    char *folder;
};

void cn_watch_init(struct cn_watch *watch, struct cn_deployer *deployer)
{
    *watch = (struct cn_watch){.deployer = deployer};
}

static void on_closed(uv_handle_t *handle)
{
    struct watcher *watcher = (struct watcher *)handle;
    cn_free(watcher->folder);
    cn_free(watcher);
}

static void on_event(uv_fs_event_t *event, const char *name, int events, int status);

static void add_folder(const char *folder, void *data)
{
    struct cn_watch *watch = data;
    for (struct watcher *w = watch->watchers; w; w = w->next)
        if (strcmp(w->folder, folder) == 0)
            return;
    if (watch->watcher_count == WATCHERS_MAX) {
        cn_warn("more than %d folders to watch: changes in %s go unnoticed", WATCHERS_MAX, folder);
        return;
    }
    struct watcher *watcher = CN_NEW(struct watcher);
    watcher->folder = cn_strdup(folder);
    watcher->event.data = watch;
    uv_fs_event_init(cn_serve_loop(watch->serve), &watcher->event);
    int rc = uv_fs_event_start(&watcher->event, on_event, folder, 0);
    if (rc < 0) {
        if (rc != UV_ENOENT)
            cn_warn("%s cannot be watched: %s", folder, uv_strerror(rc));
        uv_close((uv_handle_t *)&watcher->event, on_closed);
        return;
    }
    watcher->next = watch->watchers;
    watch->watchers = watcher;
    watch->watcher_count++;
}

static void on_settled(uv_timer_t *timer)
{
    struct cn_watch *watch = timer->data;
    if (!watch->stopping && cn_deployer_changed(watch->deployer))
        cn_serve_reload(watch->serve);
}

static void on_event(uv_fs_event_t *event, const char *name, int events, int status)
{
    struct cn_watch *watch = event->data;
    if (watch->stopping)
        return;
    /* Each event starts the wait anew, so that a burst of writes is one reload. */
    uv_timer_start(&watch->timer, on_settled, SETTLE_MS, 0);
}

static void on_loaded(uv_async_t *async)
{
    struct cn_watch *watch = async->data;
    if (!watch->stopping)
        cn_deployer_each_folder(watch->deployer, add_folder, watch);
}

int cn_watch_load(void *data, bool reread, struct cn_deployment **deployment, struct cn_err *err)
{
    struct cn_watch *watch = data;
    int rc = cn_deployer_load(watch->deployer, reread, deployment, err);
    if (watch->serve)
        uv_async_send(&watch->loaded);
    return rc;
}

void cn_watch_start(struct cn_serve *serve, void *data)
{
    struct cn_watch *watch = data;
    watch->serve = serve;
    uv_timer_init(cn_serve_loop(serve), &watch->timer);
    watch->timer.data = watch;
    uv_async_init(cn_serve_loop(serve), &watch->loaded, on_loaded);
    watch->loaded.data = watch;
    cn_deployer_each_folder(watch->deployer, add_folder, watch);
}

void cn_watch_stop(struct cn_serve *serve, void *data)
{
    struct cn_watch *watch = data;
    watch->stopping = true;
    cn_deployer_cancel(watch->deployer); /* nobody will use what it builds */
    if (!watch->serve)
        return; /* nothing is watched */
    uv_close((uv_handle_t *)&watch->timer, NULL);
    uv_close((uv_handle_t *)&watch->loaded, NULL);
    for (struct watcher *w = watch->watchers, *next; w; w = next) {
        next = w->next;
        uv_close((uv_handle_t *)&w->event, on_closed);
    }
    watch->watchers = NULL;
}
