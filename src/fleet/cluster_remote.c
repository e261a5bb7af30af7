/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/cluster_remote.c - the ways to other nodes, for calls of lanes (N4), for services and for
 * administration. See cluster_private.h. */
#include <stdio.h>
#include <string.h>

#include "fleet/cluster_private.h"
#include "object/call.h"
#include "object/node.h"
#include "object/shard.h"
#include "remote/node_calls.h"
#include "remote/remote.h"
#include "remote/sockets.h"
#include "remote/stubs.h"

/* --- calls of lanes: N4 ---------------------------------------------------------------------- */

static struct cn_remote_owner remote_owner(void *data, unsigned shard)
{
    struct cn_host_owner owner = cn_host_owner(((struct cn_cluster *)data)->host, shard);
    return (struct cn_remote_owner){owner.disk, owner.here};
}

static bool remote_address(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1])
{
    _Static_assert(CN_ENGINE_PG_ADDRESS_MAX <= CN_LINK_ADDRESS_MAX, "an address fits");
    return cn_host_address(((struct cn_cluster *)data)->host, disk, address);
}

static bool remote_is_ready(void *data)
{
    char text[CN_ERR_TEXT_MAX];
    return cn_cluster_unready(data, text, sizeof(text)) == NULL;
}

/* It has waited for an owner for as long as it may. */
static void remote_give_up(void *data, struct cn_call *call)
{
    struct cn_cluster *cluster = data;
    unsigned shard = cn_shard_index(&call->key, cluster->info.shard_count);
    struct cn_host_owner owner = cn_host_owner(cluster->host, shard);
    char text[CN_ERR_TEXT_MAX], name[CN_ENGINE_PG_NODE_MAX + 1];
    char address[CN_ENGINE_PG_ADDRESS_MAX + 1];
    if (owner.disk && !owner.here && cn_host_name(cluster->host, owner.disk, name) &&
        cn_host_address(cluster->host, owner.disk, address))
        snprintf(text, sizeof(text), CN_SHARD_AWAY " (" CN_SHARD_OWNER "%s %s)", name, address);
    else
        snprintf(text, sizeof(text), CN_SHARD_AWAY);
    cn_call_turn_away(call, CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_ECLOSED, text);
}

static void lane_opens(void *data, struct cn_object_lane *objects)
{
    cn_remote_lane_open(((struct cn_cluster *)data)->remote, objects);
    cn_remote_sockets_open(objects->data);
}

void cn_cluster_remote_init(struct cn_cluster *cluster)
{
    cluster->lanes = (struct cn_lane_remote){cluster, lane_opens, cn_remote_lane_close,
                                             cn_remote_lane_free, cn_stubs_lend};
}

const struct cn_lane_remote *cn_cluster_remote(struct cn_cluster *cluster)
{
    return &cluster->lanes;
}

void cn_cluster_counts(struct cn_cluster *cluster, struct cn_remote_counts *counts)
{
    cn_remote_count(cluster->remote, counts);
}

/* --- services and administration ------------------------------------------------------------- */

/* Nodes but this one: service/node_calls.h. */
struct others {
    struct cn_other *items;
    size_t count, max;
    uint64_t own;
};

static void add_other(void *data, uint64_t disk, const char *name)
{
    struct others *others = data;
    if (disk == others->own || others->count == others->max)
        return;
    struct cn_other *other = &others->items[others->count++];
    other->disk = disk;
    snprintf(other->name, sizeof(other->name), "%s", name);
}

static size_t list_others(void *data, struct cn_other items[], size_t max)
{
    struct cn_cluster *cluster = data;
    struct others others = {.items = items, .max = max, .own = cluster->disk.id};
    cn_host_each_node(cluster->host, add_other, &others);
    return others.count;
}

static void serve_others(void *data, const struct cn_node_calls_door *door)
{
    cn_remote_others_serve(((struct cn_cluster *)data)->remote, door);
}

const struct cn_node_calls *cn_cluster_others(struct cn_cluster *cluster)
{
    return &cluster->others;
}

static uint64_t relay_owner(void *data, unsigned shard, bool *here)
{
    struct cn_host_owner owner = cn_host_owner(((struct cn_cluster *)data)->host, shard);
    *here = owner.here;
    return owner.disk;
}

const struct cn_relay_net *cn_cluster_relay(struct cn_cluster *cluster)
{
    cluster->relay =
        (struct cn_relay_net){.others = &cluster->others,
                              .node = atomic_load(&cluster->objects),
                              .name = cluster->node,
                              .disk = cluster->disk.id,
                              .wait_ms = cluster->call_wait_ms ? cluster->call_wait_ms : 5000,
                              .data = cluster,
                              .owner = relay_owner};
    return &cluster->relay;
}

int cn_cluster_remote_open(struct cn_cluster *cluster, struct cn_err *err)
{
    struct cn_remote_options options = {.disk = cluster->disk.id,
                                        .life = cluster->disk.life,
                                        .lane_count = cluster->lane_count,
                                        .wait_ms = cluster->call_wait_ms,
                                        .data = cluster,
                                        .owner = remote_owner,
                                        .address = remote_address,
                                        .is_ready = remote_is_ready,
                                        .give_up = remote_give_up};
    memcpy(options.cluster, cluster->info.cluster, sizeof(options.cluster));
    memcpy(options.key, cluster->info.secret, sizeof(options.key));
    cluster->others =
        (struct cn_node_calls){cluster, list_others, cn_remote_others_ask, serve_others};
    return cn_remote_new(&options, &cluster->remote, err);
}
