/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host_beside.c - for what lies beside the stores: frames from any thread, and the map as
 * any thread sees it. */
#include <string.h>

#include "base/mem.h"
#include "membership/member_private.h"
#include "shard/host_private.h"

struct parcel {
    struct cn_list link; /* of host->parcels */
    struct cn_mail mail;
    uint64_t disk;
    enum cn_frame_kind kind;
    struct cn_buf bytes; /* head and more */
};

static void parcel_free(struct parcel *parcel)
{
    cn_buf_fini(&parcel->bytes);
    cn_free(parcel);
}

static bool go(struct cn_host *host, const struct parcel *parcel)
{
    return cn_links_send(host->links, parcel->disk, parcel->kind, parcel->bytes.data,
                         parcel->bytes.size, NULL, 0);
}

static bool is_up(const struct cn_host *host, uint64_t disk)
{
    return host->links && cn_links_state(host->links, disk) == CN_LINK_UP;
}

static bool has_waiting(const struct cn_host *host, uint64_t disk)
{
    for (const struct cn_list *node = host->parcels.next; node != &host->parcels; node = node->next)
        if (CN_CONTAINER_OF(node, struct parcel, link)->disk == disk)
            return true;
    return false;
}

/* Without a link nobody is told here: those who wait were, when it went down. */
static void on_parcel(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct parcel *parcel = CN_CONTAINER_OF(mail, struct parcel, mail);
    if (!is_up(host, parcel->disk))
        parcel_free(parcel);
    else if (has_waiting(host, parcel->disk) || !go(host, parcel))
        cn_list_push_back(&host->parcels, &parcel->link);
    else
        parcel_free(parcel);
}

bool cn_host_send(struct cn_host *host, uint64_t disk, unsigned kind, const void *head,
                  size_t head_size, const void *more, size_t more_size)
{
    bool linked = false;
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->linked_count; i++)
        linked = linked || host->linked[i] == disk;
    pthread_mutex_unlock(&host->status_lock);
    if (!linked)
        return false;
    struct parcel *parcel = CN_NEW(struct parcel);
    parcel->mail.deliver = on_parcel;
    parcel->disk = disk;
    parcel->kind = (enum cn_frame_kind)kind;
    cn_buf_append(&parcel->bytes, head, head_size);
    cn_buf_append(&parcel->bytes, more, more_size);
    if (cn_mailbox_send(&host->mailbox, &parcel->mail))
        return true;
    parcel_free(parcel);
    return false;
}

void cn_host_beside_room(struct cn_host *host, uint64_t disk)
{
    for (struct cn_list *node = host->parcels.next; node != &host->parcels;) {
        struct parcel *parcel = CN_CONTAINER_OF(node, struct parcel, link);
        node = node->next;
        if (parcel->disk != disk)
            continue;
        if (!go(host, parcel))
            return;
        cn_list_remove(&parcel->link);
        parcel_free(parcel);
    }
}

void cn_host_beside_link(struct cn_host *host, uint64_t disk, bool up)
{
    const struct cn_host_beside *beside = host->config.beside;
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->linked_count; i++)
        if (host->linked[i] == disk)
            host->linked[i--] = host->linked[--host->linked_count];
    if (up && host->linked_count < CN_CLUSTER_NODES_MAX)
        host->linked[host->linked_count++] = disk;
    pthread_mutex_unlock(&host->status_lock);
    for (struct cn_list *node = host->parcels.next; node != &host->parcels && !up;) {
        struct parcel *parcel = CN_CONTAINER_OF(node, struct parcel, link);
        node = node->next;
        if (parcel->disk != disk)
            continue;
        cn_list_remove(&parcel->link);
        parcel_free(parcel);
    }
    if (beside)
        beside->link(beside->data, disk, up);
}

unsigned cn_host_linked(struct cn_host *host, uint64_t disks[CN_CLUSTER_NODES_MAX])
{
    pthread_mutex_lock(&host->status_lock);
    unsigned count = host->linked_count;
    memcpy(disks, host->linked, count * sizeof(*disks));
    pthread_mutex_unlock(&host->status_lock);
    return count;
}

void cn_host_beside_publish(struct cn_host *host)
{
    struct cn_member *member = &host->member;
    if (!host->config.beside || !member->seen)
        return;
    pthread_mutex_lock(&host->status_lock);
    if (!host->views)
        host->views = cn_alloc_zero(host->shard_count * sizeof(*host->views));
    for (unsigned i = 0; i < host->shard_count; i++) {
        const struct cn_member_shard *shard = &member->shards[i];
        struct cn_host_view *view = &host->views[i];
        view->owner = 0;
        if (!cn_member_owner(member, i, &view->owner))
            view->owner = 0;
        view->epoch = cn_role_owns(shard->role) ? shard->epoch : shard->row.epoch;
        view->count = shard->row.replica_count;
        for (unsigned j = 0; j < view->count; j++) {
            const struct cn_member_peer *peer = cn_member_peer_of_disk(member, shard->row.disks[j]);
            view->disks[j] = shard->row.disks[j];
            view->good[j] = peer && !peer->draining;
        }
    }
    host->viewed = true;
    pthread_mutex_unlock(&host->status_lock);
}

bool cn_host_view(struct cn_host *host, uint32_t shard, struct cn_host_view *view)
{
    pthread_mutex_lock(&host->status_lock);
    bool viewed = host->viewed && shard < host->shard_count;
    if (viewed)
        *view = host->views[shard];
    pthread_mutex_unlock(&host->status_lock);
    return viewed;
}

struct whole {
    struct cn_mail mail;
    uint32_t shard;
    uint64_t epoch, disks[CN_CLUSTER_REPLICAS_MAX];
    unsigned count;
};

static void on_whole(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct whole *whole = CN_CONTAINER_OF(mail, struct whole, mail);
    if (host->member_there && whole->shard < host->shard_count)
        cn_member_whole(&host->member, whole->shard, whole->epoch, whole->disks, whole->count);
    cn_free(whole);
}

void cn_host_whole(struct cn_host *host, uint32_t shard, uint64_t epoch, const uint64_t *disks,
                   unsigned count)
{
    struct whole *whole = CN_NEW(struct whole);
    whole->mail.deliver = on_whole;
    whole->shard = shard;
    whole->epoch = epoch;
    whole->count = count;
    memcpy(whole->disks, disks, count * sizeof(*disks));
    if (!cn_mailbox_send(&host->mailbox, &whole->mail))
        cn_free(whole);
}

void cn_host_beside_fini(struct cn_host *host)
{
    while (!cn_list_empty(&host->parcels))
        parcel_free(CN_CONTAINER_OF(cn_list_take_front(&host->parcels), struct parcel, link));
    cn_free(host->views);
}
