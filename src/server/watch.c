/* SPDX-License-Identifier: Apache-2.0 */
#include "server/watch.h"

#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "deploy/deploy.h"
#include "server/serve.h"

#define CALM_MS 40
#define CALM_MS_MAX 200 /* W2 */
#define WATCHERS_MAX 2000

struct watcher {
    uv_fs_event_t event; /* first: closed as a handle, then freed */
    struct watcher *next;
    char *folder;
};

static void look(struct cn_watch *watch);

static void deliver_ask(struct cn_mail *mail, void *data)
{
    cn_free(mail);
    look(data);
}

/* On a lane's thread. */
static void ask(struct cn_hold *hold)
{
    struct cn_watch *watch = (struct cn_watch *)hold;
    struct cn_mail *mail = CN_NEW(struct cn_mail);
    mail->deliver = deliver_ask;
    if (!cn_mailbox_send(&watch->asked, mail))
        cn_free(mail); /* the lanes are about to stop, and hold nothing (K4) */
}

void cn_watch_init(struct cn_watch *watch, struct cn_deployer *deployer)
{
    *watch = (struct cn_watch){.hold = {.ask = ask}, .deployer = deployer};
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

static void on_calm(uv_timer_t *timer)
{
    struct cn_watch *watch = timer->data;
    struct cn_buf what = {0};
    watch->stirred_ms = 0;
    if (watch->stopping || cn_serve_is_loading(watch->serve))
        return; /* the end of the load looks again */
    if (cn_deployer_changed(watch->deployer, &what)) {
        cn_info("%s has changed", cn_buf_text(&what));
        cn_serve_reload(watch->serve);
    } else {
        look(watch);
    }
    cn_buf_fini(&what);
}

/* Something may have changed. Each event starts the wait anew, so that a burst of writes is one
 * reload. */
static void stir(struct cn_watch *watch)
{
    uint64_t now_ms = uv_now(cn_serve_loop(watch->serve));
    if (!watch->stirred_ms)
        watch->stirred_ms = now_ms;
    uint64_t passed_ms = now_ms - watch->stirred_ms;
    uint64_t left_ms = passed_ms < CALM_MS_MAX ? CALM_MS_MAX - passed_ms : 0;
    uv_timer_start(&watch->timer, on_calm, left_ms < CALM_MS ? left_ms : CALM_MS, 0);
}

/* W1 */
static void look(struct cn_watch *watch)
{
    uint64_t last = atomic_load(&watch->hold.drawn);
    if (watch->stopping || cn_serve_is_loading(watch->serve))
        return; /* the end of the load looks again */
    if (!cn_deployer_changed(watch->deployer, NULL))
        cn_serve_release(watch->serve, last, watch->problem);
    else if (!uv_is_active((uv_handle_t *)&watch->timer))
        stir(watch);
}

static void on_event(uv_fs_event_t *event, const char *name, int events, int status)
{
    (void)name, (void)events, (void)status;
    struct cn_watch *watch = event->data;
    if (!watch->stopping)
        stir(watch);
}

void cn_watch_settled(struct cn_serve *serve, const struct cn_err *err, void *data)
{
    struct cn_watch *watch = data;
    if (watch->stopping)
        return;
    cn_free(watch->problem);
    watch->problem = err ? cn_deployer_problem(watch->deployer) : NULL;
    if (err && !watch->problem)
        watch->problem = cn_strdup(err->text); /* it builds, and does not start */
    cn_serve_release(serve, watch->loading, watch->problem);
    look(watch);
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
    watch->loading = atomic_load(&watch->hold.drawn); /* W1: nothing has been read */
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
    int rc = cn_mailbox_open(&watch->asked, cn_serve_loop(serve), watch);
    CN_ASSERT(rc == 0);
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
    cn_mailbox_close(&watch->asked, NULL);
    cn_free(watch->problem);
    watch->problem = NULL;
    for (struct watcher *w = watch->watchers, *next; w; w = next) {
        next = w->next;
        uv_close((uv_handle_t *)&w->event, on_closed);
    }
    watch->watchers = NULL;
}
