/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "admin/admin.h"
#include "admin/otlp.h"
#include "background/background.h"
#include "base/assert.h"
#include "base/diag.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/server.h"
#include "net/tls.h"
#include "server/systemd.h"
#include "worker/guest.h"
#include "worker/server.h"

#define DRAIN_MS_DEFAULT 30000
#define PORTS_BESIDE 20       /* among which a free port is looked for */
#define STOP_MS 10000         /* for the lanes to end, once what runs was cut */
#define RESTART_DRAIN_MS 3000 /* for requests of other lanes, when one is stuck */
#define RELOAD_TURN_MS 500    /* cairn dev: a turn older than this makes way for new code */

/* A thread in cn_serve_deploy(); on its stack. */
struct waiter {
    struct cn_list link;
    uv_sem_t done;
    struct cn_err err;
    bool rereads; /* projects on disk, too */
};

struct cn_serve {
    struct cn_serve_options options;
    uv_loop_t loop;
    struct cn_server *server;
    struct cn_admin *admin;
    uv_signal_t signals[3];
    uv_timer_t drain_timer;
    uv_work_t load_work, depart_work;
    struct cn_deployment *loaded; /* result of load_work */
    struct cn_err load_err;
    bool listening;
    uint64_t began_ns;               /* uv_hrtime() of the load under way */
    bool reloading;                  /* a load or a deployment is under way */
    bool reload_again;               /* and another was asked for meanwhile */
    bool rereads;                    /* the next one reads projects on disk again, */
    bool rereading;                  /* as the one under way does */
    bool owed;                       /* a signal asked for one, and none has been but rehearsals */
    uv_async_t asked;                /* somebody waits for a deployment */
    struct cn_deployment *deploying; /* a reference to what the lanes are given, or NULL */
    uv_mutex_t lock;                 /* guards the next three */
    struct cn_list asking;           /* of struct waiter: for the next reload */
    bool closed;                     /* nobody can ask any more */
    struct cn_deployment *served;    /* a reference to what they run, or NULL */
    struct cn_list waiting;          /* of struct waiter: for the reload under way */
    bool draining;
    bool departing; /* V5 */
    bool stopping;
    int *kept;            /* owned; listening sockets for the process that comes after, or NULL */
    struct cn_err result; /* code 0: all went well */
};

static void stop(struct cn_serve *serve);

static void print_ready(struct cn_serve *serve)
{
    struct cn_serve_addresses at;
    cn_serve_addresses(serve, &at);
    if (cn_diag_format() == CN_DIAG_JSON && cn_systemd_has_journal(STDOUT_FILENO)) {
        cn_info("ready on %s", at.url); /* the journal has JSON lines and no others */
    } else {
        printf("cairn: ready on %s\n", at.url);
        fflush(stdout);
    }
    if (serve->options.on_ready && serve->options.on_ready(serve->options.data))
        return;
    if (at.admin_port)
        cn_info("admin on %s://%s:%u (cairn dashboard prints the way in)",
                at.admin_tls ? "https" : "http", at.admin_host, at.admin_port);
    if (at.health_port)
        cn_info("health on http://%s:%u", at.health_host, at.health_port);
    if (at.inspector_port)
        cn_info("inspector on http://127.0.0.1:%u (chrome://inspect, or its /json)",
                at.inspector_port);
}

static void tell_all(struct cn_list *waiters, const struct cn_err *err)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(waiters))) {
        struct waiter *waiter = CN_CONTAINER_OF(node, struct waiter, link);
        if (err)
            waiter->err = *err;
        uv_sem_post(&waiter->done); /* it is gone from here on */
    }
}

/* No deployment comes any more. */
static void refuse_all(struct cn_serve *serve)
{
    struct cn_err err;
    cn_err_set(&err, CN_ECLOSED, "the server is stopping");
    uv_mutex_lock(&serve->lock);
    serve->closed = true;
    tell_all(&serve->asking, &err);
    uv_mutex_unlock(&serve->lock);
    tell_all(&serve->waiting, &err);
}

static void reload(struct cn_serve *serve);

static void on_asked(uv_async_t *async)
{
    reload(async->data);
}

static void open_asking(struct cn_serve *serve)
{
    uv_mutex_init(&serve->lock);
    cn_list_init(&serve->asking);
    cn_list_init(&serve->waiting);
    uv_async_init(&serve->loop, &serve->asked, on_asked);
    serve->asked.data = serve;
}

static int ask(struct cn_serve *serve, bool rereads, struct cn_err *err)
{
    struct waiter waiter = {.rereads = rereads};
    uv_sem_init(&waiter.done, 0);
    uv_mutex_lock(&serve->lock);
    bool closed = serve->closed;
    if (closed) {
        cn_err_set(&waiter.err, CN_ECLOSED, "the server is stopping");
    } else {
        cn_list_push_back(&serve->asking, &waiter.link);
        uv_async_send(&serve->asked);
    }
    uv_mutex_unlock(&serve->lock);
    if (!closed)
        uv_sem_wait(&waiter.done);
    uv_sem_destroy(&waiter.done);
    if (waiter.err.code < 0)
        *err = waiter.err;
    return waiter.err.code;
}

int cn_serve_deploy(void *data, struct cn_err *err)
{
    return ask(data, false, err);
}

int cn_serve_read_again(void *data, struct cn_err *err)
{
    return ask(data, true, err);
}

/* A reference to what is served. From any thread. */
static struct cn_deployment *take_served(void *data)
{
    struct cn_serve *serve = data;
    uv_mutex_lock(&serve->lock);
    struct cn_deployment *served = serve->served ? cn_deployment_ref(serve->served) : NULL;
    uv_mutex_unlock(&serve->lock);
    return served;
}

static void deploy(struct cn_serve *serve)
{
    if (serve->options.server.wall_ms && serve->listening)
        cn_server_end_turns(serve->server, RELOAD_TURN_MS);
    serve->deploying = cn_deployment_ref(serve->loaded);
    cn_server_deploy(serve->server, serve->loaded);
}

/* What was deployed is what is served from now on, or is not. */
static void settle_deploying(struct cn_serve *serve, bool good)
{
    struct cn_deployment *old = serve->deploying;
    uv_mutex_lock(&serve->lock);
    if (good) {
        old = serve->served;
        serve->served = serve->deploying;
    }
    uv_mutex_unlock(&serve->lock);
    serve->deploying = NULL;
    if (old)
        cn_deployment_unref(old);
}

static void start_listening(struct cn_serve *serve)
{
    if (serve->listening)
        return;
    serve->listening = true;
    if (serve->options.on_serving)
        serve->options.on_serving(serve->options.data);
    cn_server_listen(serve->server);
    cn_admin_set_state(serve->admin, CN_ADMIN_SERVING);
    print_ready(serve);
}

static void on_deployed(struct cn_server *server, const struct cn_err *err)
{
    struct cn_serve *serve = cn_server_data(server);
    bool rehearsal = serve->deploying && serve->deploying->rehearsal;
    serve->reloading = false;
    serve->reload_again |= rehearsal && serve->owed;
    serve->rereads |= rehearsal && serve->owed;
    serve->owed &= rehearsal;
    settle_deploying(serve, !err && !rehearsal);
    tell_all(&serve->waiting, err);
    if (err && !serve->listening && err->code == CN_EABORTED && !serve->stopping) {
        cn_info("%s", err->text); /* V4 */
        cn_serve_reload(serve);
        return;
    }
    if (err && !serve->listening && !serve->options.on_settled) {
        serve->result = *err;
        stop(serve);
        return;
    }
    if (err && serve->options.on_settled) {
        cn_error("%s; waiting for a change", err->text); /* V6 */
        start_listening(serve);
    } else if (err) {
        cn_error("%s; the last good version keeps serving", err->text);
    } else if (rehearsal) {
        cn_info("a version that is to be deployed can be served");
    } else if (!serve->listening) {
        start_listening(serve);
    } else {
        cn_info("reloaded in %u ms", (unsigned)((uv_hrtime() - serve->began_ns) / 1000000));
    }
    if (serve->listening)
        cn_systemd_tell("READY=1"); /* with the new version, or still with the last */
    if (serve->reload_again && !serve->draining) {
        serve->reload_again = false;
        reload(serve);
    }
    if (serve->options.on_settled)
        serve->options.on_settled(serve, err, serve->options.data);
}

static void on_depart(uv_work_t *work)
{
    struct cn_serve *serve = work->data;
    serve->options.depart(serve->options.data);
}

static void on_departed(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    stop(work->data);
}

static void on_drained(struct cn_server *server)
{
    struct cn_serve *serve = cn_server_data(server);
    if (serve->kept || serve->stopping || serve->departing)
        return; /* a stuck lane that drains after all is restarted nonetheless */
    if (!serve->options.depart) {
        stop(serve);
        return;
    }
    serve->departing = true;
    serve->depart_work.data = serve;
    int rc = uv_queue_work(&serve->loop, &serve->depart_work, on_depart, on_departed);
    CN_ASSERT(rc == 0);
}

static void on_load(uv_work_t *work)
{
    struct cn_serve *serve = work->data;
    serve->loaded = NULL;
    serve->load_err.code = 0;
    (void)serve->options.load(serve->options.data, serve->rereading, &serve->loaded,
                              &serve->load_err);
}

static void unref_loaded(struct cn_serve *serve)
{
    if (serve->loaded)
        cn_deployment_unref(serve->loaded);
}

static void on_loaded(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct cn_serve *serve = work->data;
    if (serve->stopping) {
        unref_loaded(serve);
        return;
    }
    if (!serve->loaded) {
        on_deployed(serve->server, &serve->load_err);
        return;
    }
    deploy(serve);
}

static void reload(struct cn_serve *serve)
{
    if (serve->draining) {
        refuse_all(serve);
        return;
    }
    if (serve->reloading) {
        serve->reload_again = true;
        return;
    }
    serve->reloading = true;
    serve->began_ns = uv_hrtime();
    cn_systemd_tell_reloading();
    uv_mutex_lock(&serve->lock);
    cn_list_splice(&serve->waiting, &serve->asking);
    uv_mutex_unlock(&serve->lock);
    for (struct cn_list *link = serve->waiting.next; link != &serve->waiting; link = link->next)
        serve->rereads |= CN_CONTAINER_OF(link, struct waiter, link)->rereads;
    serve->rereading = serve->rereads;
    serve->rereads = false;
    serve->load_work.data = serve;
    int rc = uv_queue_work(&serve->loop, &serve->load_work, on_load, on_loaded);
    CN_ASSERT(rc == 0);
}

void cn_serve_reload(struct cn_serve *serve)
{
    serve->rereads = true;
    reload(serve);
}

bool cn_serve_is_loading(const struct cn_serve *serve)
{
    return serve->reloading;
}

void cn_serve_release(struct cn_serve *serve, uint64_t last, const char *problem)
{
    cn_server_release(serve->server, last, problem);
}

void cn_serve_addresses(const struct cn_serve *serve, struct cn_serve_addresses *at)
{
    const struct cn_server_options *server = &serve->options.server;
    const struct cn_admin_options *admin = serve->options.admin;
    const char *host = server->host;
    bool bare_v6 = strchr(host, ':') && host[0] != '[';
    *at = (struct cn_serve_addresses){
        .tls = server->tls,
        .everybody = !*host || strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 ||
                     strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0,
        .port = cn_server_port(serve->server),
        .admin_host = admin->host,
        .admin_tls = admin->tls,
        .admin_port = cn_admin_port(serve->admin),
        .health_host = admin->health_host,
        .health_port = cn_admin_health_port(serve->admin),
        .inspector_port = cn_admin_inspector_port(serve->admin),
    };
    snprintf(at->url, sizeof(at->url), "%s://%s%.120s%s:%u", at->tls ? "https" : "http",
             bare_v6 ? "[" : "", host[0] ? host : "0.0.0.0", bare_v6 ? "]" : "", at->port);
}

struct uv_loop_s *cn_serve_loop(struct cn_serve *serve)
{
    return &serve->loop;
}

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP};

static void on_nothing(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
}

static void on_stopped(void *data)
{
    (void)data; /* the loop ends when its last handle has closed */
}

/* V3: libuv gives a signal its default action back when its last handle has closed, and a further
 * SIGTERM would then kill the process while it closes its store. So there are handles that never
 * close, of a loop that never runs: it lives as long as the process. */
static void hold_signals(void)
{
    static uv_loop_t nobody;
    static uv_signal_t held[CN_ARRAY_COUNT(signal_numbers)];
    static bool done;
    if (done)
        return;
    done = true;
    if (cn_loop_init(&nobody, NULL) != 0)
        return; /* no descriptors left: then the default actions it is */
    for (size_t i = 0; i < CN_ARRAY_COUNT(held); i++) {
        uv_signal_init(&nobody, &held[i]);
        (void)uv_signal_start(&held[i], on_nothing, signal_numbers[i]); /* as above */
    }
}

static void stop(struct cn_serve *serve)
{
    if (serve->stopping)
        return;
    serve->stopping = true;
    hold_signals();
    cn_server_end_turns(serve->server, 0);
    cn_server_end_by(serve->server, STOP_MS); /* V1 */
    refuse_all(serve);
    uv_close((uv_handle_t *)&serve->asked, NULL);
    if (serve->options.on_stop)
        serve->options.on_stop(serve, serve->options.data);
    for (size_t i = 0; i < CN_ARRAY_COUNT(serve->signals); i++)
        uv_close((uv_handle_t *)&serve->signals[i], NULL);
    uv_close((uv_handle_t *)&serve->drain_timer, NULL);
    cn_admin_stop(serve->admin); /* it works with the lanes */
    cn_otlp_detach(serve->options.otlp);
    cn_server_stop(serve->server, on_stopped, serve);
}

static void on_drain_timeout(uv_timer_t *timer)
{
    cn_warn("requests were still running when the time to drain was over; they are cut");
    stop(timer->data);
}

static void on_end_signal(uv_signal_t *handle, int number)
{
    struct cn_serve *serve = handle->data;
    if (serve->draining || !serve->listening) {
        stop(serve);
        return;
    }
    serve->draining = true;
    cn_systemd_tell("STOPPING=1");
    cn_admin_set_state(serve->admin, CN_ADMIN_DRAINING);
    cn_info("%s: finishing the requests under way", number == SIGINT ? "SIGINT" : "SIGTERM");
    unsigned drain_ms = serve->options.drain_ms ? serve->options.drain_ms : DRAIN_MS_DEFAULT;
    uv_timer_start(&serve->drain_timer, on_drain_timeout, drain_ms, 0);
    cn_server_end_by(serve->server, drain_ms + STOP_MS);
    cn_server_drain(serve->server);
}

/* --- a lane that does not come back --------------------------------------------------------- */

static void on_restart(uv_timer_t *timer)
{
    struct cn_serve *serve = timer->data;
    struct cn_err err;
    /* Does not return if all goes well. */
    (void)cn_systemd_restart(serve->kept, serve->options.server.lane_count, &err);
    cn_error("the server cannot start itself anew (%s) and ends", err.text);
    _exit(1);
}

static void on_stuck(struct cn_server *server)
{
    struct cn_serve *serve = cn_server_data(server);
    if (serve->draining || serve->stopping)
        return; /* V1 */
    serve->draining = true;
    cn_error("the server starts itself anew to get the lane back; other requests have %u s to "
             "finish, the address stays open, what was acknowledged is on disk",
             RESTART_DRAIN_MS / 1000);
    cn_admin_set_state(serve->admin, CN_ADMIN_DRAINING);
    serve->kept = cn_alloc_zero(serve->options.server.lane_count * sizeof(*serve->kept));
    for (unsigned i = 0; i < serve->options.server.lane_count;
         i++) /* V2: draining closes the lanes' own */
        serve->kept[i] = dup(cn_server_listener(server, i));
    uv_timer_start(&serve->drain_timer, on_restart, RESTART_DRAIN_MS, 0);
    cn_server_drain(server);
}

static void on_hangup(uv_signal_t *handle, int number)
{
    (void)number;
    struct cn_serve *serve = handle->data;
    struct cn_err err;
    if (serve->options.server.tls && cn_tls_context_reload(serve->options.server.tls, &err) < 0)
        cn_error("the certificate stays as it was: %s", err.text);
    serve->owed = true;
    cn_serve_reload(serve);
}

/* Every connection and every open database takes a descriptor; the usual soft limit of 1,024 is for
 * programs that use select(). */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* up to the hard limit it is always allowed */
}

/* The first port after `port` that nobody has; 0: none of the next is free. */
static uint16_t find_port(const char *host, uint16_t port)
{
    for (unsigned i = 1; i <= PORTS_BESIDE && port + i <= UINT16_MAX; i++) {
        uint16_t bound;
        int fd;
        if (cn_http_bind(host, (uint16_t)(port + i), &fd, 1, &bound, NULL) == 0) {
            close(fd);
            return bound;
        }
    }
    return 0;
}

static int start_server(struct cn_serve *serve, struct cn_server_options *options,
                        struct cn_err *err)
{
    int rc = cn_server_start(options, &serve->server, err);
    uint16_t other = rc == -EADDRINUSE ? find_port(options->host, options->port) : 0;
    if (other && serve->options.next_port) {
        cn_warn("%s; this server takes the next free one, %u", err->text, other);
        options->port = other;
        rc = cn_server_start(options, &serve->server, err);
    } else if (other) {
        struct cn_err taken = *err;
        cn_err_set(err, rc, "%s; the next free one is %u: --listen %s:%u", taken.text, other,
                   *options->host ? options->host : "*", other);
    }
    return rc;
}

int cn_serve(const struct cn_serve_options *options, struct cn_err *err)
{
    struct cn_serve *serve = CN_NEW(struct cn_serve);
    serve->options = *options;
    int rc = options->server.guest->setup(err);
    if (rc < 0)
        goto free_serve;
    rc = options->load(options->data, true, &serve->loaded, err);
    if (rc < 0 && options->on_settled)
        serve->load_err = *err; /* V6 */
    else if (rc < 0)
        goto free_serve;
    rc = cn_loop_init(&serve->loop, err);
    if (rc < 0) {
        unref_loaded(serve);
        goto free_serve;
    }
    raise_descriptor_limit();
    struct cn_server_options server = options->server;
    server.loop = &serve->loop;
    server.exporter = cn_otlp_exporter(options->otlp);
    server.on_stuck = on_stuck;
    server.background = &cn_background;
    server.on_deployed = on_deployed;
    server.on_drained = on_drained;
    server.data = serve;
    rc = start_server(serve, &server, err);
    if (rc < 0) {
        unref_loaded(serve);
        uv_run(&serve->loop, UV_RUN_DEFAULT);
        goto close_loop;
    }
    open_asking(serve);
    struct cn_admin_options admin = *options->admin;
    admin.server = serve->server;
    admin.control.deploy = cn_serve_deploy;
    admin.control.read_again = cn_serve_read_again;
    admin.control.deployment = take_served;
    admin.control.deploy_data = serve;
    rc = cn_admin_start(&admin, &serve->admin, err);
    if (rc < 0) {
        unref_loaded(serve);
        uv_close((uv_handle_t *)&serve->asked, NULL);
        cn_server_stop(serve->server, on_stopped, serve);
        uv_run(&serve->loop, UV_RUN_DEFAULT);
        goto close_loop;
    }
    struct cn_metrics_sources sources = {
        serve->server,        cn_server_metrics, admin.control.node, admin.control.shards,
        admin.control.points, options->otlp,     admin.metrics,      admin.above};
    cn_otlp_attach(options->otlp, &sources);
    for (size_t i = 0; i < CN_ARRAY_COUNT(signal_numbers); i++) {
        uv_signal_init(&serve->loop, &serve->signals[i]);
        serve->signals[i].data = serve;
        uv_signal_start(&serve->signals[i], signal_numbers[i] == SIGHUP ? on_hangup : on_end_signal,
                        signal_numbers[i]);
    }
    uv_timer_init(&serve->loop, &serve->drain_timer);
    serve->drain_timer.data = serve;
    serve->reloading = true;
    if (options->on_start)
        options->on_start(serve, options->data);
    if (serve->loaded)
        deploy(serve);
    else
        on_deployed(serve->server, &serve->load_err);
    uv_run(&serve->loop, UV_RUN_DEFAULT);
    rc = serve->result.code;
    if (rc < 0)
        *err = serve->result;
close_loop:
    CN_ASSERT(uv_loop_close(&serve->loop) == 0);
    if (serve->deploying)
        cn_deployment_unref(serve->deploying);
    if (serve->served)
        cn_deployment_unref(serve->served);
free_serve:
    cn_free(serve);
    return rc;
}
