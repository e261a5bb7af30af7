/* SPDX-License-Identifier: Apache-2.0 */
#include "server/offline_lane.h"

#include <uv.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/node.h"
#include "object/secret.h"
#include "service/kv/kvcache.h"
#include "service/pool.h"
#include "service/service.h"
#include "store/blob.h"

#define POOL_THREADS_MAX 2
#define KV_CACHE_BYTES (64u << 10) /* a command reads little twice */

struct cn_standin {
    struct cn_services services;
    struct cn_node *node;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_mail stop_mail;
    struct cn_object_lane lane;
    uv_thread_t thread;
};

static bool find_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_class **class_, void **class_data)
{
    (void)lane;
    *class_data = cn_node_data(ns->node);
    return cn_service_find(ns, class_);
}

static void on_stopped(struct cn_object_lane *lane)
{
    struct cn_standin *standin = lane->data;
    cn_mailbox_close(&standin->mailbox, NULL); /* and the loop ends */
}

static void deliver_stop(struct cn_mail *mail, void *data)
{
    (void)mail;
    struct cn_standin *standin = data;
    cn_object_lane_stop(&standin->lane, on_stopped);
}

static void run_lane(void *arg)
{
    uv_run(&((struct cn_standin *)arg)->loop, UV_RUN_DEFAULT);
}

static int open_services(struct cn_standin *standin, struct cn_disk *disk,
                         struct cn_history *history, struct cn_store *store, struct cn_err *err)
{
    int rc = cn_blobs_open(disk, "blobs", &standin->services.blobs, err);
    if (rc < 0)
        return rc;
    standin->services.history = history;
    standin->services.pool = cn_pool_new(POOL_THREADS_MAX);
    standin->services.kv_cache = cn_kvcache_new(KV_CACHE_BYTES);
    struct cn_node_options options = {.store = store,
                                      .history = history,
                                      .lane_count = 1,
                                      .find_class = find_class,
                                      .data = &standin->services};
    rc = cn_secret_load(disk, options.secret, err);
    return rc < 0 ? rc : cn_node_new(&options, &standin->node, err);
}

static void close_services(struct cn_standin *standin)
{
    if (standin->node)
        cn_node_free(standin->node);
    if (standin->services.pool)
        cn_pool_free(standin->services.pool);
    cn_kvcache_free(standin->services.kv_cache);
    if (standin->services.blobs)
        cn_blobs_close(standin->services.blobs);
    cn_free(standin);
}

int cn_standin_new(struct cn_disk *disk, struct cn_history *history, struct cn_store *store,
                   struct cn_standin **out, struct cn_err *err)
{
    struct cn_standin *standin = CN_NEW(struct cn_standin);
    int rc = open_services(standin, disk, history, store, err);
    if (rc < 0) {
        close_services(standin);
        return rc;
    }
    standin->stop_mail.deliver = deliver_stop;
    CN_ASSERT(uv_loop_init(&standin->loop) == 0);
    CN_ASSERT(cn_mailbox_open(&standin->mailbox, &standin->loop, standin) == 0);
    rc = cn_object_lane_start(&standin->lane, standin->node, 0, &standin->loop, &standin->mailbox,
                              standin, err);
    if (rc == 0 && uv_thread_create(&standin->thread, run_lane, standin) == 0) {
        *out = standin;
        return 0;
    }
    if (rc == 0) {
        rc = cn_err_set(err, CN_EOVERLOADED, "cannot start a thread");
        cn_object_lane_stop(&standin->lane, on_stopped);
    } else {
        cn_mailbox_close(&standin->mailbox, NULL);
    }
    uv_run(&standin->loop, UV_RUN_DEFAULT);
    CN_ASSERT(uv_loop_close(&standin->loop) == 0);
    close_services(standin);
    return rc;
}

void cn_standin_free(struct cn_standin *standin)
{
    if (!standin)
        return;
    bool sent = cn_mailbox_send(&standin->mailbox, &standin->stop_mail);
    CN_ASSERT(sent);
    uv_thread_join(&standin->thread);
    CN_ASSERT(uv_loop_close(&standin->loop) == 0);
    close_services(standin);
}

struct cn_node *cn_standin_node(struct cn_standin *standin)
{
    return standin->node;
}
