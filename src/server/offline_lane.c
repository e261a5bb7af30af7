/* SPDX-License-Identifier: Apache-2.0 */
#include "server/offline_lane.h"

#include <uv.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/moved.h"
#include "object/node.h"
#include "object/secret.h"
#include "service/kv/kvcache.h"
#include "service/pool.h"
#include "service/service.h"
#include "store/blob.h"

#define POOL_THREADS_MAX 2
#define KV_CACHE_BYTES (64u << 10) /* a command reads little twice */

struct cn_offline_lane {
    struct cn_services services;
    struct cn_moved *moved;
    struct cn_node *node;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    struct cn_mail stop_mail;
    struct cn_object_lane lane;
    uv_thread_t thread;
};

static bool find_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_object_key *key, const struct cn_class **class_,
                       void **class_data)
{
    (void)lane, (void)key;
    *class_data = cn_node_data(ns->node);
    return cn_service_find(ns, class_);
}

static void on_stopped(struct cn_object_lane *lane)
{
    struct cn_offline_lane *own = lane->data;
    cn_desk_close(&own->desk);
    cn_mailbox_close(&own->mailbox, NULL); /* and the loop ends */
}

static void deliver_stop(struct cn_mail *mail, void *data)
{
    (void)mail;
    struct cn_offline_lane *own = data;
    cn_object_lane_stop(&own->lane, on_stopped);
}

static void run_lane(void *arg)
{
    struct cn_offline_lane *own = arg;
    cn_loop_take(&own->loop);
    uv_run(&own->loop, UV_RUN_DEFAULT);
}

static int open_services(struct cn_offline_lane *own, struct cn_disk *disk,
                         struct cn_shards *shards, struct cn_err *err)
{
    int rc = cn_blobs_open(disk, "blobs", &own->services.blobs, err);
    if (rc < 0)
        return rc;
    own->services.pool = cn_pool_new(POOL_THREADS_MAX);
    if (!own->services.pool)
        return cn_err_set(err, CN_EOVERLOADED, "cannot start a thread");
    own->services.kv_cache = cn_kvcache_new(KV_CACHE_BYTES);
    struct cn_node_options options = {
        .shards = shards, .lane_count = 1, .find_class = find_class, .data = &own->services};
    rc = cn_secret_load(disk, options.secret, err);
    if (rc == 0)
        rc = cn_moved_load(disk, &own->moved, err);
    if (rc < 0)
        return rc;
    options.moved = own->moved;
    own->node = cn_node_new(&options);
    return 0;
}

static void close_services(struct cn_offline_lane *own)
{
    if (own->node)
        cn_node_free(own->node);
    cn_moved_free(own->moved);
    if (own->services.pool)
        cn_pool_free(own->services.pool);
    cn_kvcache_free(own->services.kv_cache);
    if (own->services.blobs)
        cn_blobs_close(own->services.blobs);
    cn_free(own);
}

int cn_offline_lane_new(struct cn_disk *disk, struct cn_shards *shards,
                        struct cn_offline_lane **out, struct cn_err *err)
{
    struct cn_offline_lane *own = CN_NEW(struct cn_offline_lane);
    int rc = open_services(own, disk, shards, err);
    if (rc == 0)
        rc = cn_loop_init(&own->loop, err);
    if (rc < 0) {
        close_services(own);
        return rc;
    }
    own->stop_mail.deliver = deliver_stop;
    CN_ASSERT(cn_mailbox_open(&own->mailbox, &own->loop, own) == 0);
    cn_desk_open(&own->desk, 0, &own->loop, &own->mailbox, cn_object_lane_step_desk, own);
    rc = cn_object_lane_start(&own->lane, own->node, &own->desk, own, err);
    cn_loop_give(&own->loop);
    if (rc == 0 && uv_thread_create(&own->thread, run_lane, own) == 0) {
        *out = own;
        return 0;
    }
    cn_loop_take(&own->loop);
    if (rc == 0) {
        rc = cn_err_set(err, CN_EOVERLOADED, "cannot start a thread");
        cn_object_lane_stop(&own->lane, on_stopped);
    } else {
        cn_desk_close(&own->desk);
        cn_mailbox_close(&own->mailbox, NULL);
    }
    uv_run(&own->loop, UV_RUN_DEFAULT);
    CN_ASSERT(uv_loop_close(&own->loop) == 0);
    close_services(own);
    return rc;
}

void cn_offline_lane_free(struct cn_offline_lane *own)
{
    if (!own)
        return;
    bool sent = cn_mailbox_send(&own->mailbox, &own->stop_mail);
    CN_ASSERT(sent);
    uv_thread_join(&own->thread);
    CN_ASSERT(uv_loop_close(&own->loop) == 0);
    close_services(own);
}

struct cn_node *cn_offline_lane_node(struct cn_offline_lane *own)
{
    return own->node;
}
