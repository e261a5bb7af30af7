/* SPDX-License-Identifier: Apache-2.0 */
/* worker/server.c - see server.h.
 *
 * S1  A deployment becomes current on every lane or is refused: the first lane
 *     starts it alone, the others only when that has succeeded. They run the
 *     same code on the same input, so a failure there is rare (memory) and is
 *     reported; that lane then keeps its former deployment.
 * S2  While lanes serve, a script that is new is tried before, on a lane of its own (lane.h) that
 *     ends with it. One that throws, uses up the time of a start or never ends it is refused, and
 *     no lane that serves has run it; they go on with what they have. One that starts is then
 *     started by each lane in its turn, which holds that lane for as long as the start takes. */
#include "worker/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/mem.h"
#include "net/server.h"
#include "worker/lane.h"
#include "worker/watchdog.h"

struct cn_server {
    struct cn_server_options options;
    struct cn_mailbox mailbox;
    struct cn_lane *lanes; /* owned */
    struct cn_lane *trial; /* owned; S2; NULL: none is under way */
    bool serving;          /* a deployment has become current */
    uint16_t port;
    unsigned deploy_left; /* lanes that have not answered */
    struct cn_deployment *deploying;
    struct cn_err deploy_err;
    unsigned drain_left;
    struct cn_watchdog *watchdog; /* owned */
    void (*stop_cb)(void *data);
    void *stop_data;
};

struct answer {
    struct cn_mail mail;
    struct cn_err err;
    unsigned lane;
};

static void end_trial(struct cn_server *server)
{
    struct cn_lane *trial = server->trial;
    if (!trial)
        return;
    server->trial = NULL;
    cn_lane_stop_begin(trial);
    cn_lane_stop_wait(trial);
    cn_watchdog_watch_trial(server->watchdog, NULL);
    cn_free(trial);
}

static void finish_deploying(struct cn_server *server)
{
    cn_deployment_unref(server->deploying);
    server->deploying = NULL;
    server->options.on_deployed(server, server->deploy_err.code ? &server->deploy_err : NULL);
}

static void deliver_deployed(struct cn_mail *mail, void *data)
{
    struct cn_server *server = data;
    struct answer answer = *(struct answer *)mail;
    cn_free(mail);
    if (!server->deploying)
        return; /* the server was stopped meanwhile */
    if (answer.err.code)
        server->deploy_err = answer.err;
    if (answer.lane == server->options.lane_count) {
        end_trial(server);
        if (!answer.err.code && !server->deploying->rehearsal) {
            cn_lane_deploy(&server->lanes[0], cn_deployment_ref(server->deploying));
            return;
        }
        server->deploy_left = 1; /* no other is asked */
    }
    server->deploy_left--;
    if (answer.lane == 0 && !answer.err.code) {
        server->serving = true;
        for (unsigned i = 1; i < server->options.lane_count; i++)
            cn_lane_deploy(&server->lanes[i], cn_deployment_ref(server->deploying));
    } else if (answer.lane == 0) {
        server->deploy_left = 0;
    }
    if (!server->deploy_left)
        finish_deploying(server);
}

static void deliver_drained(struct cn_mail *mail, void *data)
{
    struct cn_server *server = data;
    cn_free(mail);
    if (--server->drain_left == 0)
        server->options.on_drained(server);
}

/* On the lane. */
static void on_lane_deployed(struct cn_lane *lane, struct cn_deployment *deployment,
                             const struct cn_err *err)
{
    (void)deployment;
    struct cn_server *server = lane->options.data;
    struct answer *answer = CN_NEW(struct answer);
    answer->mail.deliver = deliver_deployed;
    answer->lane = lane->options.index;
    if (err)
        answer->err = *err;
    if (!cn_mailbox_send(&server->mailbox, &answer->mail))
        cn_free(answer);
}

static void on_lane_drained(struct cn_lane *lane)
{
    struct cn_server *server = lane->options.data;
    struct answer *answer = CN_NEW(struct answer);
    answer->mail.deliver = deliver_drained;
    if (!cn_mailbox_send(&server->mailbox, &answer->mail))
        cn_free(answer);
}

static void deliver_stuck(struct cn_mail *mail, void *data)
{
    struct cn_server *server = data;
    cn_free(mail);
    if (server->options.on_stuck)
        server->options.on_stuck(server);
}

/* On the watchdog's thread. */
static void on_stuck(void *data)
{
    struct cn_server *server = data;
    struct cn_mail *mail = CN_NEW(struct cn_mail);
    mail->deliver = deliver_stuck;
    if (!cn_mailbox_send(&server->mailbox, mail))
        cn_free(mail);
}

void cn_server_end_turns(struct cn_server *server, unsigned age_ms)
{
    cn_watchdog_end_turns(server->watchdog, age_ms, CN_JS_END_STOP);
}

void cn_server_end_by(struct cn_server *server, unsigned ms)
{
    cn_watchdog_end_by(server->watchdog, ms);
}

int cn_server_listener(const struct cn_server *server, unsigned lane)
{
    return server->lanes[lane].options.listen_fd;
}

/* The lanes accept from sockets that somebody else has opened: each from its own, or all from one.
 */
static int share_socket(const struct cn_server_options *options, int *fds, unsigned count,
                        uint16_t *port, struct cn_err *err)
{
    for (unsigned i = 0; i < count; i++) {
        size_t from = options->listen_count == count ? i : 0;
        fds[i] = fcntl(options->listen_fds[from], F_DUPFD_CLOEXEC, 3);
        if (fds[i] < 0) {
            int saved = errno;
            while (i-- > 0)
                close(fds[i]);
            return cn_err_errno(err, saved, "the passed socket cannot be shared");
        }
    }
    *port = options->port;
    return 0;
}

static struct cn_lane_options lane_options(struct cn_server *server, unsigned index)
{
    const struct cn_server_options *options = &server->options;
    return (struct cn_lane_options){
        .index = index,
        .lane_count = options->lane_count,
        .limits = options->limits,
        .websockets = options->websockets,
        .tls = options->tls,
        .trust = options->trust,
        .egress = options->egress,
        .proxies = options->proxies,
        .node = options->node,
        .exporter = options->exporter,
        .taps = options->taps,
        .heap_bytes_max = options->heap_bytes_max ? options->heap_bytes_max : 512u << 20,
        .show_errors = options->show_errors,
        .hold = options->hold,
        .guest = options->guest,
        .background = options->background,
        .remote = options->remote,
        .commits = index == 0, /* S1 */
        .on_deployed = on_lane_deployed,
        .on_drained = on_lane_drained,
        .data = server,
    };
}

/* The first `count` of them, at a start that failed. */
static void stop_lanes(struct cn_server *server, unsigned count)
{
    while (count-- > 0) {
        cn_lane_stop_begin(&server->lanes[count]);
        cn_lane_stop_wait(&server->lanes[count]);
    }
}

int cn_server_start(const struct cn_server_options *options, struct cn_server **out,
                    struct cn_err *err)
{
    CN_ASSERT(options->lane_count > 0);
    struct cn_server *server = CN_NEW(struct cn_server);
    server->options = *options;
    unsigned count = options->lane_count;
    int *fds = cn_alloc_zero(count * sizeof(*fds));
    int rc = options->listen_count
                 ? share_socket(options, fds, count, &server->port, err)
                 : cn_http_bind(options->host, options->port, fds, count, &server->port, err);
    if (rc < 0)
        goto free_server;
    rc = cn_mailbox_open(&server->mailbox, options->loop, server);
    CN_ASSERT(rc == 0);
    server->lanes = cn_alloc_zero(count * sizeof(*server->lanes));
    for (unsigned i = 0; i < count; i++) {
        struct cn_lane_options lane = lane_options(server, i);
        lane.listen_fd = fds[i];
        rc = cn_lane_start(&server->lanes[i], &lane, err);
        if (rc < 0) {
            stop_lanes(server, i);
            goto close_fds;
        }
    }
    struct cn_watchdog_options watchdog = {.lanes = server->lanes,
                                           .lane_count = count,
                                           .stuck_ms = options->stuck_ms,
                                           .wall_ms = options->wall_ms,
                                           .on_stuck = on_stuck,
                                           .data = server};
    server->watchdog = cn_watchdog_start(&watchdog, err);
    if (!server->watchdog) {
        rc = err->code;
        stop_lanes(server, count);
        goto close_fds;
    }
    cn_free(fds);
    *out = server;
    return 0;
close_fds:
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
    cn_free(server->lanes);
    cn_mailbox_close(&server->mailbox, NULL);
    cn_free(fds);
    return rc; /* the mailbox is inside the server: leaked once, at a failed start */
free_server:
    cn_free(fds);
    cn_free(server);
    return rc;
}

unsigned cn_server_lane_count(const struct cn_server *server)
{
    return server->options.lane_count;
}

const struct cn_lane_metrics *cn_server_metrics(const struct cn_server *server, unsigned lane)
{
    return lane < server->options.lane_count ? &server->lanes[lane].metrics : NULL;
}

uint16_t cn_server_port(const struct cn_server *server)
{
    return server->port;
}

void *cn_server_data(const struct cn_server *server)
{
    return server->options.data;
}

static bool has_new(const struct cn_deployment *deployment)
{
    for (size_t i = 0; i < deployment->script_count; i++) {
        if (cn_script_is_new(deployment->scripts[i]))
            return true;
    }
    return false;
}

/* S2. False: there is no room for another thread; the first lane finds out. */
static bool start_trial(struct cn_server *server)
{
    struct cn_lane_options options = lane_options(server, server->options.lane_count);
    struct cn_err err;
    options.listen_fd = -1;
    options.node = NULL;
    options.exporter = NULL;
    options.taps = NULL;
    options.background = NULL;
    options.remote = NULL;
    options.trial = true;
    struct cn_lane *trial = CN_NEW(struct cn_lane);
    if (cn_lane_start(trial, &options, &err) < 0) {
        cn_warn("a new version is not tried before lanes start it: %s", err.text);
        cn_free(trial);
        return false;
    }
    server->trial = trial;
    cn_watchdog_watch_trial(server->watchdog, trial);
    return true;
}

void cn_server_deploy(struct cn_server *server, struct cn_deployment *deployment)
{
    CN_ASSERT(!server->deploying);
    server->deploying = deployment;
    server->deploy_err.code = 0;
    server->deploy_left = server->options.lane_count;
    bool is_new = has_new(deployment);
    bool tried = server->serving && is_new && start_trial(server);
    if (deployment->rehearsal && !tried) {
        if (is_new)
            cn_err_set(&server->deploy_err, CN_EOVERLOADED, "a new version cannot be tried here");
        finish_deploying(server);
        return;
    }
    cn_lane_deploy(tried ? server->trial : &server->lanes[0], cn_deployment_ref(deployment));
}

void cn_server_profile(struct cn_server *server, struct cn_profile *profile)
{
    for (unsigned i = 0; i < server->options.lane_count; i++)
        cn_lane_profile(&server->lanes[i], profile);
}

void cn_server_listen(struct cn_server *server)
{
    /* The kernel takes connections from here on, so that whoever is told "ready" can connect;
     * each lane listens again on its own loop, which reports a failure. */
    for (unsigned i = 0; i < server->options.lane_count; i++)
        (void)listen(server->lanes[i].options.listen_fd, SOMAXCONN);
    for (unsigned i = 0; i < server->options.lane_count; i++)
        cn_lane_listen(&server->lanes[i]);
}

void cn_server_drain(struct cn_server *server)
{
    server->drain_left = server->options.lane_count;
    for (unsigned i = 0; i < server->options.lane_count; i++)
        cn_lane_drain(&server->lanes[i]);
}

void cn_server_release(struct cn_server *server, uint64_t last, const char *problem)
{
    for (unsigned i = 0; i < server->options.lane_count; i++)
        cn_lane_release(&server->lanes[i], last, problem);
}

static void on_mailbox_closed(struct cn_mailbox *mailbox)
{
    struct cn_server *server = mailbox->data;
    void (*cb)(void *data) = server->stop_cb;
    void *data = server->stop_data;
    cn_free(server);
    if (cb)
        cb(data);
}

void cn_server_stop(struct cn_server *server, void (*cb)(void *data), void *data)
{
    end_trial(server);
    for (unsigned i = 0; i < server->options.lane_count; i++) {
        cn_lane_stop_begin(&server->lanes[i]);
        cn_lane_stop_wait(&server->lanes[i]);
    }
    cn_watchdog_stop(server->watchdog); /* last: a lane that does not end is its matter */
    cn_free(server->lanes);
    server->stop_cb = cb;
    server->stop_data = data;
    if (server->deploying)
        cn_deployment_unref(server->deploying);
    server->deploying = NULL;
    cn_mailbox_close(&server->mailbox, on_mailbox_closed);
}
