/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host.c - the thread of a node: engine, member, links, the gate.
 *
 *     BOOT       the engine is asked which cluster it is, by links of the host's own    MEMBER, END
 *     MEMBER     the member is there and has the engine
 *     END        it has left: stores close, then links, engine and handles
 *
 * All of it runs on the host's thread but what the header says of any thread: those touch atomics,
 * send mail, or take `status_lock`. */
#include "shard/host.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/diag.h"
#include "base/loop.h"
#include "base/mem.h"
#include "membership/member_private.h"
#include "net/stream.h"
#include "shard/host_private.h"

enum { BOOT_MS = 3000, BOOT_RETRY_MS = 200, WARN_MS = 10000 };

int64_t cn_host_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static struct cn_host_shard *shard_of(struct cn_host *host, uint32_t index)
{
    return host->member_there && index < host->shard_count ? &host->shards[index] : NULL;
}

/* --- the gate: any thread --------------------------------------------------------------------- */

static bool lease_is_valid(struct cn_host *host)
{
    /* The clock is read after the lease: a sleep in between makes the time later, not earlier. */
    int64_t until = atomic_load(&host->lease_ms);
    return cn_host_clock_ms() < until;
}

bool cn_host_may_take(struct cn_host *host, uint32_t index)
{
    /* Also with verified reads: what cannot be confirmed now is not taken. */
    return atomic_load(&host->shards[index].gate) && lease_is_valid(host);
}

bool cn_host_may_leave(struct cn_host *host, uint32_t index)
{
    /* H2: the gate is asked last, so that it was open while the lease was valid. */
    return (host->config.verified || lease_is_valid(host)) &&
           atomic_load(&host->shards[index].gate);
}

uint64_t cn_host_ticket(struct cn_host *host)
{
    if (!host->config.verified)
        return 0;
    /* Before it is sent a statement's number is here: one with a higher number is sent later. */
    uint64_t number = atomic_load(&host->number);
    if (!atomic_exchange(&host->confirm, true))
        uv_async_send(&host->async);
    return number;
}

bool cn_host_confirmed(struct cn_host *host, uint64_t ticket)
{
    return !host->config.verified || atomic_load(&host->confirmed) > ticket;
}

struct cn_host_owner cn_host_owner(struct cn_host *host, uint32_t index)
{
    uint64_t disk = atomic_load(&host->shards[index].owner);
    return (struct cn_host_owner){disk, disk == host->config.disk};
}

void cn_host_appended(struct cn_host *host, uint32_t shard)
{
    uint64_t bit = 1ull << (shard % 64);
    if (!(atomic_fetch_or(&host->dirty[shard / 64], bit) & bit))
        uv_async_send(&host->async);
}

/* --- what the member wants -------------------------------------------------------------------- */

/* A record of a batch, by where it is in `weighed`. */
struct weighed {
    uint32_t shard;
    uint64_t lsn;
    size_t at, size;
};

static size_t weighed_count(const struct cn_host *host)
{
    return host->weighed_index.size / sizeof(struct weighed);
}

static uint64_t host_weigh(void *data, uint32_t shard, uint64_t lsn)
{
    struct cn_host *host = data;
    const struct cn_host_disk *disk = host->config.disk_hands;
    struct weighed weighed = {.shard = shard, .lsn = lsn, .at = host->weighed.size};
    if (disk->records(disk->data, shard, lsn, lsn, SIZE_MAX, &host->weighed) != lsn)
        return 1; /* on_record() will find it missing */
    weighed.size = host->weighed.size - weighed.at;
    cn_buf_append(&host->weighed_index, &weighed, sizeof(weighed));
    return weighed.size + 4;
}

/* H4: as it was weighed for this batch, or, when it is sent again, from the store. */
static struct cn_engine_record on_record(void *data, uint32_t shard, uint64_t lsn)
{
    struct cn_host *host = data;
    const struct cn_host_disk *disk = host->config.disk_hands;
    const struct weighed *all = (const struct weighed *)host->weighed_index.data;
    for (size_t i = host->weighed_next; i < weighed_count(host); i++)
        if (all[i].shard == shard && all[i].lsn == lsn) {
            host->weighed_next = i + 1;
            return (struct cn_engine_record){host->weighed.data + all[i].at, all[i].size};
        }
    cn_buf_clear(&host->scratch);
    if (disk->records(disk->data, shard, lsn, lsn, SIZE_MAX, &host->scratch) == lsn)
        return (struct cn_engine_record){host->scratch.data, host->scratch.size};
    struct cn_err err;
    cn_err_set(&err, CN_ECORRUPT,
               "record %llu of shard %u is under way to the engine and not in the store any more: "
               "the shard was taken from this node by other hands than a node's",
               (unsigned long long)lsn, shard);
    cn_host_fail(host, &err);
    return (struct cn_engine_record){NULL, 0};
}

static void host_send(void *data, const struct cn_engine_statement *statement)
{
    struct cn_host *host = data;
    atomic_store(&host->number, statement->number); /* cn_host_ticket() */
    host->weighed_next = 0;
    if (statement->kind == CN_ENGINE_APPEND) {
        unsigned at = host->sent_next++ % CN_ARRAY_COUNT(host->sent);
        host->sent[at].number = statement->number;
        host->sent[at].at_us = uv_hrtime() / 1000;
    }
    cn_engine_pg_send(host->engine, statement);
    cn_buf_clear(&host->weighed);
    cn_buf_clear(&host->weighed_index);
}

static void host_connect(void *data, uint64_t link)
{
    cn_engine_pg_connect(((struct cn_host *)data)->engine, link);
}

static bool send_message(struct cn_host *host, uint64_t disk,
                         const struct cn_member_message *message, const struct cn_buf *records)
{
    uint8_t body[CN_FRAME_MESSAGE_SIZE];
    cn_frame_put_message(body, message);
    return host->links &&
           cn_links_send(host->links, disk, CN_FRAME_MESSAGE, body, sizeof(body),
                         records ? records->data : NULL, records ? records->size : 0);
}

/* H5: in frames, for as long as there is room. */
static void feed(struct cn_host *host, uint64_t to_disk, const struct cn_member_message *message)
{
    const struct cn_host_disk *disk = host->config.disk_hands;
    const size_t max = CN_FRAME_BODY_MAX - CN_FRAME_MESSAGE_SIZE;
    struct cn_member_message part = *message;
    if (!host->links || !cn_links_room(host->links, to_disk))
        return;
    while (part.from < message->to) {
        cn_buf_clear(&host->scratch);
        part.to = disk->records(disk->data, message->shard, part.from + 1, message->to, max,
                                &host->scratch);
        if (!part.to || host->scratch.size > max ||
            !send_message(host, to_disk, &part, &host->scratch))
            break;
        part.from = part.to;
    }
    if (part.from == message->to)
        return;
    host->feeds_dropped++;
    part.from = part.to = message->to; /* so far it is: there is a gap */
    (void)send_message(host, to_disk, &part, NULL);
}

static void host_tell(void *data, uint64_t session, uint64_t disk,
                      const struct cn_member_message *message)
{
    struct cn_host *host = data;
    if (message->kind == CN_MESSAGE_COPY)
        cn_host_copy_send(host, disk, message->shard);
    else if (message->kind == CN_MESSAGE_FEED && message->from < message->to)
        feed(host, disk, message);
    else if (!send_message(host, disk, message, NULL) && message->kind == CN_MESSAGE_ASK) {
        host->shards[message->shard].ask = *message; /* all else is said again, or found */
        host->shards[message->shard].ask_disk = disk;
    }
}

static void host_remember(void *data, const struct cn_engine_seen *seen)
{
    cn_host_seen_put(data, seen);
}

static void on_time(uv_timer_t *timer);

static void host_act(void *data, enum cn_member_act act, uint32_t shard, uint64_t epoch,
                     uint64_t from, uint64_t lsn)
{
    cn_host_act(data, act, shard, epoch, from, lsn);
}

/* H8. What is left to be done is done by on_time(): the engine's hooks may not free it. */
static void finish(struct cn_host *host)
{
    host->finishing = true;
    if (!uv_is_closing((uv_handle_t *)&host->timer))
        uv_timer_start(&host->timer, on_time, 0, 0);
}

static void host_note(void *data, enum cn_member_note note)
{
    struct cn_host *host = data;
    struct cn_err err;
    switch (note) {
    case CN_NOTE_FENCED:
        host->fenced++;
        cn_warn("cluster: this node's session was ended by another node; it joins anew");
        break;
    case CN_NOTE_REFUSED:
        if (cn_host_clock_ms() - host->warned_ms >= WARN_MS) {
            host->warned_ms = cn_host_clock_ms();
            cn_warn("cluster: a link to the engine is refused: its settings would lose data, or it "
                    "was replaced by a later server, or it was restored from a backup that no "
                    "operator has accepted (cairn cluster accept-engine)");
        }
        break;
    case CN_NOTE_DRAINED:
        cn_info("cluster: nothing is left on this node, it may be stopped");
        break;
    case CN_NOTE_LEFT:
        finish(host);
        break;
    case CN_NOTE_DISPLACED:
        cn_err_set(&err, CN_ELOCKED,
                   "another process has joined the cluster with this disk (a copy of this data "
                   "directory, or a later state of it): of the two this one ends. Two nodes need "
                   "two directories; start a new one with an empty directory");
        cn_host_fail(host, &err);
        break;
    case CN_NOTE_ENGINE_LOST_DATA:
        cn_err_set(&err, CN_EOLDER,
                   "the engine knows less than it has told this node: it was restored from a "
                   "backup, or replaced by a server without its last commits. Nothing is served "
                   "from this node, and nothing on its disk was changed. Put the right engine back "
                   "and start the node again; or, if there is no other, go on with this one and "
                   "what the disks have: `cairn cluster accept-engine`, then start all nodes");
        cn_host_fail(host, &err);
        break;
    case CN_NOTE_ENGINE_ACCEPTED:
        cn_warn("cluster: the engine knows less than it has told this node, and was accepted by "
                "an operator: shards go on with what the first disk to serve them has");
        break;
    default:
        break;
    }
}

/* --- after every call of the member ----------------------------------------------------------- */

static void publish_lease(struct cn_host *host)
{
    int64_t until = host->failed ? 0 : host->member.lease_ms, now = cn_host_clock_ms();
    bool was = now < atomic_load(&host->lease_ms);
    bool more = host->member.confirmed > atomic_load(&host->confirmed) && host->config.verified;
    atomic_store(&host->lease_ms, until);
    atomic_store(&host->confirmed, host->member.confirmed);
    if ((!was && now < until) || more)
        host->config.front->wake(host->config.front->data);
}

static void add_follower(struct cn_host_status *status, const struct cn_member_shard *shard,
                         int64_t now_ms)
{
    int64_t since = shard->fed_ms > shard->since_ms ? shard->fed_ms : shard->since_ms;
    int64_t silent = now_ms - since;
    status->following++;
    status->behind += shard->read != CN_READ_IDLE || silent >= CN_HOST_SILENT_MS;
    if (silent > status->silent_ms)
        status->silent_ms = silent;
}

static void publish_status(struct cn_host *host)
{
    const struct cn_member_peer *me = cn_member_peer_of_disk(&host->member, host->config.disk);
    int64_t now = cn_host_clock_ms();
    struct cn_host_status status = {.state = host->member.state,
                                    .session = host->member.session,
                                    .disk = host->config.disk,
                                    .shard_count = host->shard_count,
                                    .nodes = host->member.peer_count,
                                    .batches = host->member.batch_count,
                                    .takeovers = host->takeovers,
                                    .fenced = host->fenced,
                                    .draining = me && me->draining,
                                    .copies_in = host->member.copies,
                                    .copies_out = host->copy_count,
                                    .appends = host->appends,
                                    .engine_links = host->engine_links,
                                    .engine_broken = host->engine_broken,
                                    .queued_bytes = host->queued_total,
                                    .feeds_dropped = host->feeds_dropped};
    for (unsigned i = 0; i < host->shard_count; i++) {
        const struct cn_member_shard *shard = &host->member.shards[i];
        status.serving += shard->role == CN_ROLE_SERVING;
        if (shard->role == CN_ROLE_FOLLOWING || shard->role == CN_ROLE_CLAIMING)
            add_follower(&status, shard, now);
        status.coming += shard->role == CN_ROLE_COPYING || shard->role == CN_ROLE_JOINING ||
                         shard->role == CN_ROLE_TAKING;
        status.leaving += shard->role == CN_ROLE_STOPPING || shard->role == CN_ROLE_MOVING;
        if (cn_role_owns(shard->role))
            status.unsettled_records += shard->appended - shard->have;
    }
    if (host->links) {
        struct cn_links_stats stats;
        cn_links_stats(host->links, &stats);
        status.links_up = stats.up;
        status.links_broken = stats.broken;
        status.link_bytes = stats.queued_bytes;
        status.strangers = stats.strangers;
        status.unreached = stats.troubled;
    }
    pthread_mutex_lock(&host->status_lock);
    memcpy(status.engine, host->status.engine, sizeof(status.engine));
    host->status = status;
    pthread_mutex_unlock(&host->status_lock);
}

static void publish_owners(struct cn_host *host)
{
    for (unsigned i = 0; i < host->shard_count; i++) {
        uint64_t disk = 0;
        if (!cn_member_owner(&host->member, i, &disk))
            disk = 0;
        atomic_store_explicit(&host->shards[i].owner, disk, memory_order_relaxed);
    }
}

static bool sessions_are_told(const struct cn_host *host)
{
    const struct cn_member *member = &host->member;
    if (host->told_own != member->session || !member->session || !member->seen)
        return host->told_own == member->session;
    if (cn_host_clock_ms() - host->told_ms >= CN_HOST_TOLD_MS ||
        host->told_count != member->peer_count)
        return false;
    for (unsigned i = 0; i < member->peer_count; i++)
        if (host->told[i].id != member->peers[i].id || host->told[i].disk != member->peers[i].disk)
            return false;
    return true;
}

/* --- nodes that are not reached: L8 ------------------------------------------------------------
 */

static bool trouble_end(struct cn_host *host, uint64_t disk)
{
    bool found = false;
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->trouble_count && !found; i++) {
        found = host->troubles[i].disk == disk;
        if (found)
            host->troubles[i] = host->troubles[--host->trouble_count];
    }
    pthread_mutex_unlock(&host->status_lock);
    return found;
}

/* Of nodes that are not there any more. */
static void forget_troubles(struct cn_host *host)
{
    for (unsigned i = host->trouble_count; i-- > 0;) {
        bool known = false;
        for (unsigned k = 0; k < host->node_count; k++)
            known = known || host->nodes[k].disk == host->troubles[i].disk;
        if (!known)
            (void)trouble_end(host, host->troubles[i].disk);
    }
}

static void on_link_trouble(void *data, uint64_t disk, const char *why)
{
    struct cn_host *host = data;
    char name[CN_ENGINE_PG_NODE_MAX + 1] = "?", address[CN_ENGINE_PG_ADDRESS_MAX + 1] = "?";
    (void)cn_host_name(host, disk, name);
    (void)cn_host_address(host, disk, address);
    (void)trouble_end(host, disk);
    pthread_mutex_lock(&host->status_lock);
    struct cn_host_trouble *trouble = &host->troubles[host->trouble_count++];
    trouble->disk = disk;
    snprintf(trouble->why, sizeof(trouble->why), "%s", why);
    pthread_mutex_unlock(&host->status_lock);
    cn_warn(
        "cluster: there is no link to node %s at %s: %s. Both are part of the cluster, and calls "
        "between them fail: is its --peer the address that others reach, and is the port open "
        "between the nodes, in both directions?",
        name, address, why);
}

static void on_link_stranger(void *data, const char *address)
{
    (void)data;
    cn_warn("cluster: %s has connected to the port of this node that is for other nodes, and does "
            "not have the key of this cluster: a node of another cluster, or nobody's business",
            address);
}

unsigned cn_host_troubles(struct cn_host *host,
                          struct cn_host_trouble troubles[CN_CLUSTER_NODES_MAX])
{
    pthread_mutex_lock(&host->status_lock);
    unsigned count = host->trouble_count;
    memcpy(troubles, host->troubles, count * sizeof(*troubles));
    pthread_mutex_unlock(&host->status_lock);
    return count;
}

/* After the member has told those who are not there any more (C13). */
static void publish_nodes(struct cn_host *host)
{
    struct cn_link_peer peers[CN_CLUSTER_NODES_MAX];
    if (!host->nodes_changed || !host->links)
        return;
    host->nodes_changed = false;
    for (unsigned i = 0; i < host->node_count; i++)
        peers[i] = (struct cn_link_peer){host->nodes[i].disk, host->nodes[i].address};
    cn_links_know(host->links, peers, host->node_count);
    forget_troubles(host);
}

static void publish_sessions(struct cn_host *host)
{
    const struct cn_member *member = &host->member;
    if (!host->config.sessions || sessions_are_told(host))
        return;
    bool known = member->session && member->seen;
    host->told_own = member->session;
    host->told_ms = cn_host_clock_ms();
    host->told_count = known ? member->peer_count : 0;
    for (unsigned i = 0; i < host->told_count; i++)
        host->told[i] = (struct cn_host_session){member->peers[i].id, member->peers[i].disk};
    host->config.sessions(host->config.data, host->told_own, known ? host->told : NULL,
                          host->told_count);
}

void cn_host_after(struct cn_host *host)
{
    if (host->member_there)
        publish_lease(host);
    if (host->finishing)
        finish(host);
    if (host->finishing || !host->member_there)
        return;
    int64_t left = cn_member_next(&host->member) - cn_host_clock_ms();
    if (left > 1000) /* GONE, or nothing to do: for the status */
        left = 1000;
    uv_update_time(&host->loop);
    uv_timer_start(&host->timer, on_time, left > 0 ? (uint64_t)left : 0, 0);
}

void cn_host_fail(struct cn_host *host, const struct cn_err *err)
{
    if (host->failed)
        return;
    host->failed = true;
    atomic_store(&host->lease_ms, 0);
    for (unsigned i = 0; i < host->shard_count; i++)
        atomic_store(&host->shards[i].gate, false);
    cn_error("cluster: %s", err->text);
    if (host->config.failed)
        host->config.failed(host->config.data, err);
    cn_host_leave(host, false); /* by mail: the member may be in the middle of something */
}

/* --- the engine ------------------------------------------------------------------------------- */

static void remember_engine(struct cn_host *host, const char *why)
{
    pthread_mutex_lock(&host->status_lock);
    snprintf(host->status.engine, sizeof(host->status.engine), "%.*s", (int)strcspn(why, "\n"),
             why);
    pthread_mutex_unlock(&host->status_lock);
    if (cn_host_clock_ms() - host->warned_ms < WARN_MS)
        return;
    host->warned_ms = cn_host_clock_ms();
    cn_warn("cluster: the link to the engine ended: %.*s", (int)strcspn(why, "\n"), why);
}

static void boot(struct cn_host *host)
{
    cn_engine_pg_connect(host->engine, ++host->boot_link);
    uv_timer_start(&host->timer, on_time, BOOT_MS, 0);
}

static void on_link_up(void *data, uint64_t disk);
static void on_link_down(void *data, uint64_t disk, bool silent, const char *why);
static bool on_link_frame(void *data, uint64_t disk, const struct cn_frame *frame);
static void on_link_room(void *data, uint64_t disk);
static void on_link_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body,
                         size_t size);

static int open_links(struct cn_host *host, const struct cn_engine_pg_info *info,
                      struct cn_err *err)
{
    struct cn_links_config config = {.listen_fd = host->config.listen_fd,
                                     .disk = host->config.disk,
                                     .life = host->config.life,
                                     .hooks = {host, on_link_up, on_link_down, on_link_frame,
                                               on_link_room, on_link_pipe, on_link_trouble,
                                               on_link_stranger}};
    memcpy(config.cluster, info->cluster, sizeof(config.cluster));
    memcpy(config.key, info->secret, sizeof(config.key));
    int rc = cn_links_new(&host->loop, &config, &host->links, err);
    host->config.listen_fd = -1;
    host->links_open = rc == 0;
    return rc;
}

static int make_member(struct cn_host *host, const struct cn_engine_pg_info *info,
                       struct cn_err *err)
{
    struct cn_member_config config = host->config.times;
    config.disk = host->config.disk;
    config.life = host->config.life;
    config.shard_count = info->shard_count;
    config.replicas = info->replicas;
    config.verified = host->config.verified;
    config.allow_flaws = host->config.allow_flaws;
    config.waits_for_whole = host->config.beside != NULL;
    config.shut = host->config.shut;
    cn_member_defaults(&config);
    config.seen = host->config.seen;
    host->hands = (struct cn_member_host){host_send, host_connect, host_tell,     host_act,
                                          host_note, host_weigh,   host_remember, host};
    if (cn_member_init(&host->member, &config, &host->hands) < 0)
        return cn_err_set(err, CN_EINVALID, "the times of the cluster do not fit each other");
    host->shard_count = info->shard_count;
    host->member_there = true;
    return 0;
}

/* The cluster is known: from here on the member has the engine. */
static void meet(struct cn_host *host, const struct cn_engine_pg_info *info)
{
    struct cn_err err = {0};
    unsigned flaws = info->link.flaws & ~host->config.allow_flaws;
    for (unsigned bit = 1; flaws && bit <= CN_ENGINE_OTHER_MAJOR; bit <<= 1)
        if (flaws & bit) {
            bool other = bit == CN_ENGINE_OTHER_MAJOR;
            cn_err_set(&err, other ? CN_EVERSION : CN_EDENIED, "the engine %s: %s",
                       other ? "is of no use to this version" : "would lose data",
                       cn_engine_flaw_text((enum cn_engine_flaw)bit));
            cn_host_fail(host, &err);
            return;
        }
    if (make_member(host, info, &err) < 0 || open_links(host, info, &err) < 0 ||
        host->config.joined(host->config.data, host, info, &err) < 0) {
        cn_host_fail(host, &err);
        return;
    }
    cn_member_start(&host->member, cn_host_clock_ms());
    cn_host_after(host);
}

void cn_host_found(struct cn_host *host, uint32_t shard, uint64_t have, uint64_t checkpoint)
{
    if (shard < host->shard_count)
        cn_member_found(&host->member, shard, have, checkpoint);
}

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    struct cn_host *host = data;
    if (!host->member_there) {
        if (!host->failed && !host->leaving)
            meet(host, info);
        return;
    }
    host->engine_links++;
    cn_member_link_up(&host->member, cn_host_clock_ms(), link, &info->link);
    cn_host_after(host);
}

static void on_down(void *data, uint64_t link, const char *why)
{
    struct cn_host *host = data;
    remember_engine(host, why);
    if (!host->member_there) {
        uv_timer_start(&host->timer, on_time, BOOT_RETRY_MS, 0);
        return;
    }
    host->engine_broken++;
    cn_member_link_down(&host->member, cn_host_clock_ms(), link);
    publish_status(host);
    cn_host_after(host);
}

static void note_append(struct cn_host *host, uint64_t number)
{
    host->appends++;
    for (size_t i = 0; i < CN_ARRAY_COUNT(host->sent); i++)
        if (host->sent[i].number == number)
            cn_histogram_note(&host->append_us, cn_histogram_us,
                              uv_hrtime() / 1000 - host->sent[i].at_us);
}

const struct cn_histogram *cn_host_append_us(const struct cn_host *host)
{
    return &host->append_us;
}

static void on_answer(void *data, const struct cn_engine_answer *answer,
                      const struct cn_engine_record *records, size_t count)
{
    struct cn_host *host = data;
    if (answer->kind == CN_ENGINE_READ && answer->items[0].shard < host->shard_count) {
        const struct cn_engine_item *item = &answer->items[0];
        const struct cn_member_shard *shard = &host->member.shards[item->shard];
        if (shard->read == CN_READ_SENT && shard->read_number == answer->number)
            cn_host_tail_keep(&host->shards[item->shard], item->to - count, records, count);
    }
    if (answer->kind == CN_ENGINE_APPEND)
        note_append(host, answer->number);
    cn_member_answer(&host->member, cn_host_clock_ms(), answer);
    publish_nodes(host);
    if (answer->kind == CN_ENGINE_LEAVE && host->member.state == CN_MEMBER_GONE)
        atomic_store(&host->parted, true);
    if (answer->kind != CN_ENGINE_APPEND && answer->kind != CN_ENGINE_READ) {
        publish_owners(host);
        cn_host_beside_publish(host);
    }
    if (answer->kind == CN_ENGINE_BEAT)
        publish_status(host);
    if (answer->kind != CN_ENGINE_APPEND || host->told_own != host->member.session)
        publish_sessions(host);
    cn_host_after(host);
}

static void on_hint(void *data)
{
    struct cn_host *host = data;
    if (host->member_there)
        cn_member_hint(&host->member, cn_host_clock_ms());
    cn_host_after(host);
}

static void on_nodes(void *data, const struct cn_engine_pg_node *nodes, size_t count)
{
    struct cn_host *host = data;
    pthread_mutex_lock(&host->status_lock);
    host->node_count = 0;
    for (size_t i = 0; i < count && i < CN_CLUSTER_NODES_MAX; i++) {
        host->nodes[host->node_count].disk = nodes[i].disk;
        snprintf(host->nodes[host->node_count].name, sizeof(host->nodes[0].name), "%s",
                 nodes[i].node);
        snprintf(host->nodes[host->node_count].address, sizeof(host->nodes[0].address), "%s",
                 nodes[i].address);
        host->node_count++;
    }
    pthread_mutex_unlock(&host->status_lock);
    host->nodes_changed = true; /* publish_nodes() */
}

/* --- links ------------------------------------------------------------------------------------ */

static void on_link_up(void *data, uint64_t disk)
{
    struct cn_host *host = data;
    char name[CN_ENGINE_PG_NODE_MAX + 1] = "?";
    if (trouble_end(host, disk) && cn_host_name(host, disk, name))
        cn_info("cluster: there is a link to node %s again", name);
    cn_host_beside_link(host, disk, true);
    for (unsigned i = 0; i < host->shard_count; i++) {
        struct cn_host_shard *shard = &host->shards[i];
        if (shard->ask_disk != disk || host->member.shards[i].role != CN_ROLE_COPYING)
            continue;
        shard->ask_disk = 0;
        (void)send_message(host, disk, &shard->ask, NULL); /* or it will be asked for anew */
    }
}

static void on_link_down(void *data, uint64_t disk, bool silent, const char *why)
{
    struct cn_host *host = data;
    struct cn_member_peer *peer = cn_member_peer_of_disk(&host->member, disk);
    cn_host_copy_link(host, disk, false);
    cn_host_beside_link(host, disk, false);
    if (silent && host->config.silent)
        host->config.silent(host->config.data, disk);
    if (peer && silent)
        cn_member_silent(&host->member, cn_host_clock_ms(), peer->id); /* C10 */
    else if (peer)
        cn_member_hint(&host->member, cn_host_clock_ms());
    cn_host_after(host);
}

static void on_link_room(void *data, uint64_t disk)
{
    cn_host_copy_link(data, disk, true);
    cn_host_beside_room(data, disk);
}

static void on_link_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body,
                         size_t size)
{
    const struct cn_host_config *config = &((struct cn_host *)data)->config;
    if (config->pipe)
        config->pipe(config->data, moved, body, size);
    else
        cn_stream_moved_drop(moved);
}

/* False: it is none. */
static bool on_message(struct cn_host *host, const struct cn_frame *frame)
{
    struct cn_member_message message;
    if (!cn_frame_get_message(frame, &message, &host->fed_bytes, &host->fed_size) ||
        message.shard >= host->shard_count)
        return false;
    if (message.kind == CN_MESSAGE_FEED && host->fed_size &&
        cn_host_is_full(&host->shards[message.shard])) { /* H6 */
        host->feeds_dropped++;
        return true;
    }
    cn_member_message(&host->member, cn_host_clock_ms(), &message);
    if (host->told_own != host->member.session) { /* C13 */
        publish_owners(host);
        publish_sessions(host);
        publish_status(host);
    }
    return true;
}

static bool on_link_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    struct cn_host *host = data;
    const struct cn_host_beside *beside = host->config.beside;
    bool good;
    if (frame->kind >= CN_FRAME_BODY_ASK && frame->kind < CN_FRAME_BODY_END)
        return !beside || beside->frame(beside->data, disk, frame);
    if (frame->kind == CN_FRAME_MESSAGE)
        good = on_message(host, frame);
    else
        good = cn_host_copy_frame(host, disk, frame);
    cn_host_after(host);
    return good;
}

/* --- mail ------------------------------------------------------------------------------------- */

enum letter_kind { CHECKPOINTED, STOPPED, SHUT, LEAVE, OPEN, FAILED };

struct letter {
    struct cn_mail mail;
    enum letter_kind kind;
    uint32_t shard;
    uint64_t value;
    struct cn_err err; /* FAILED */
};

static void on_stopped(struct cn_host *host, struct cn_host_shard *shard, uint64_t ticket)
{
    if (!shard->stopping || shard->ticket != ticket || shard->closes)
        return;
    atomic_store(&shard->gate, false); /* H2 */
    /* What was appended until now is known before it is said to be all. */
    const struct cn_host_disk *disk = host->config.disk_hands;
    cn_member_appended(&host->member, cn_host_clock_ms(), shard->index,
                       disk->appended(disk->data, shard->index));
    cn_member_stopped(&host->member, cn_host_clock_ms(), shard->index);
}

static void on_leave(struct cn_host *host, bool hand_over)
{
    host->leaving = true;
    if (!host->member_there || host->member.state == CN_MEMBER_GONE)
        finish(host);
    else
        cn_member_leave(&host->member, cn_host_clock_ms(), hand_over && !host->failed);
}

static void on_letter(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct letter *letter = CN_CONTAINER_OF(mail, struct letter, mail);
    struct cn_host_shard *shard = shard_of(host, letter->shard);
    if (letter->kind == LEAVE) {
        on_leave(host, letter->value);
    } else if (letter->kind == OPEN) {
        cn_member_open(&host->member, cn_host_clock_ms()); /* the cluster is known, see host.h */
    } else if (letter->kind == FAILED) {
        cn_host_fail(host, &letter->err);
    } else if (shard && letter->kind == CHECKPOINTED) {
        if (!shard->voids && letter->value <= host->member.shards[shard->index].have)
            cn_member_checkpointed(&host->member, cn_host_clock_ms(), shard->index, letter->value);
    } else if (shard && letter->kind == STOPPED) {
        on_stopped(host, shard, letter->value);
    } else if (shard) {
        cn_host_step_shut(shard);
    }
    cn_free(letter);
    cn_host_after(host);
}

static void post(struct cn_host *host, const struct letter *text)
{
    struct letter *letter = CN_NEW(struct letter);
    *letter = *text;
    letter->mail.deliver = on_letter;
    if (!cn_mailbox_send(&host->mailbox, &letter->mail))
        cn_free(letter); /* it has left */
}

static void send_letter(struct cn_host *host, enum letter_kind kind, uint32_t shard, uint64_t value)
{
    post(host, &(struct letter){.kind = kind, .shard = shard, .value = value});
}

void cn_host_open(struct cn_host *host)
{
    send_letter(host, OPEN, 0, 0);
}

void cn_host_disk_failed(struct cn_host *host, const struct cn_err *err)
{
    post(host, &(struct letter){.kind = FAILED, .err = *err});
}

void cn_host_checkpointed(struct cn_host *host, uint32_t shard, uint64_t lsn)
{
    send_letter(host, CHECKPOINTED, shard, lsn);
}

void cn_host_stopped(struct cn_host *host, uint32_t shard, uint64_t ticket)
{
    send_letter(host, STOPPED, shard, ticket);
}

void cn_host_shut(struct cn_host *host, uint32_t shard)
{
    send_letter(host, SHUT, shard, 0);
}

void cn_host_leave(struct cn_host *host, bool hand_over)
{
    send_letter(host, LEAVE, 0, hand_over);
}

/* A request of another thread, which waits. */
struct request {
    struct cn_mail mail;
    uint32_t shard;
    const char *node;
    int rc;
    struct cn_err err;
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t cond;
};

static int move(struct cn_host *host, uint32_t shard, const char *node, struct cn_err *err)
{
    if (!shard_of(host, shard))
        return cn_err_set(err, CN_ENOTFOUND, "there is no shard %u", shard);
    for (unsigned i = 0; i < host->node_count; i++) {
        struct cn_member_peer *peer = cn_member_peer_of_disk(&host->member, host->nodes[i].disk);
        if (strcmp(host->nodes[i].name, node) != 0 || !peer)
            continue;
        if (cn_member_move(&host->member, cn_host_clock_ms(), shard, peer->id))
            return 0;
        return cn_err_set(err, CN_EOVERLOADED,
                          "shard %u is not moved: it is not served here, or %s has no replica of "
                          "it yet",
                          shard, node);
    }
    return cn_err_set(err, CN_ENOTFOUND, "there is no node %.63s in the cluster now", node);
}

/* All nodes are told; the owner may do it. */
static void on_wish(void *data, uint32_t shard, const char *node)
{
    struct cn_host *host = data;
    struct cn_err err;
    if (!host->member_there || shard >= host->shard_count ||
        host->member.shards[shard].role != CN_ROLE_SERVING || strcmp(node, host->node) == 0)
        return;
    if (move(host, shard, node, &err) == 0)
        cn_info("cluster: shard %u is moved to %s, as somebody asked", shard, node);
    else
        cn_warn("cluster: %s", err.text);
    cn_host_after(host);
}

static void on_request(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct request *request = CN_CONTAINER_OF(mail, struct request, mail);
    int rc = move(host, request->shard, request->node, &request->err);
    cn_host_after(host);
    pthread_mutex_lock(&request->lock);
    request->rc = rc;
    request->done = true;
    pthread_cond_signal(&request->cond);
    pthread_mutex_unlock(&request->lock);
}

int cn_host_move(struct cn_host *host, uint32_t shard, const char *node, struct cn_err *err)
{
    struct request request = {.mail.deliver = on_request, .shard = shard, .node = node};
    pthread_mutex_init(&request.lock, NULL);
    pthread_cond_init(&request.cond, NULL);
    if (cn_mailbox_send(&host->mailbox, &request.mail)) {
        pthread_mutex_lock(&request.lock);
        while (!request.done)
            pthread_cond_wait(&request.cond, &request.lock);
        pthread_mutex_unlock(&request.lock);
    } else {
        request.rc = cn_err_set(&request.err, CN_ECLOSED, "this node has left the cluster");
    }
    pthread_mutex_destroy(&request.lock);
    pthread_cond_destroy(&request.cond);
    if (request.rc < 0 && err)
        *err = request.err;
    return request.rc;
}

void cn_host_each_node(struct cn_host *host,
                       void (*each)(void *data, uint64_t disk, const char *name), void *data)
{
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->node_count; i++)
        each(data, host->nodes[i].disk, host->nodes[i].name);
    pthread_mutex_unlock(&host->status_lock);
}

bool cn_host_name(struct cn_host *host, uint64_t disk, char name[CN_ENGINE_PG_NODE_MAX + 1])
{
    bool found = false;
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->node_count && !found; i++) {
        found = host->nodes[i].disk == disk;
        if (found)
            memcpy(name, host->nodes[i].name, sizeof(host->nodes[i].name));
    }
    pthread_mutex_unlock(&host->status_lock);
    return found;
}

bool cn_host_address(struct cn_host *host, uint64_t disk,
                     char address[CN_ENGINE_PG_ADDRESS_MAX + 1])
{
    bool found = false;
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->node_count && !found; i++) {
        found = host->nodes[i].disk == disk;
        if (found)
            memcpy(address, host->nodes[i].address, sizeof(host->nodes[i].address));
    }
    pthread_mutex_unlock(&host->status_lock);
    return found;
}

uint64_t cn_host_twin(struct cn_host *host)
{
    uint64_t twin = 0;
    pthread_mutex_lock(&host->status_lock);
    for (unsigned i = 0; i < host->node_count && !twin; i++)
        if (host->nodes[i].disk != host->config.disk && !strcmp(host->nodes[i].name, host->node))
            twin = host->nodes[i].disk;
    pthread_mutex_unlock(&host->status_lock);
    return twin;
}

void cn_host_status(struct cn_host *host, struct cn_host_status *status)
{
    pthread_mutex_lock(&host->status_lock);
    *status = host->status;
    pthread_mutex_unlock(&host->status_lock);
    status->lease = lease_is_valid(host);
}

/* --- what comes from lanes -------------------------------------------------------------------- */

static void on_async(uv_async_t *async)
{
    struct cn_host *host = CN_CONTAINER_OF(async, struct cn_host, async);
    const struct cn_host_disk *disk = host->config.disk_hands;
    if (!host->member_there)
        return;
    if (atomic_exchange(&host->confirm, false))
        (void)cn_member_ticket(&host->member, cn_host_clock_ms());
    struct cn_member_appends appends[CN_CLUSTER_SHARDS_MAX];
    size_t count = 0;
    for (unsigned word = 0; word < CN_CLUSTER_SHARDS_MAX / 64; word++) {
        uint64_t bits = atomic_load_explicit(&host->dirty[word], memory_order_relaxed)
                            ? atomic_exchange(&host->dirty[word], 0)
                            : 0;
        for (; bits; bits &= bits - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
            struct cn_host_shard *shard = shard_of(host, index);
            if (shard && shard->open && !shard->closes)
                appends[count++] =
                    (struct cn_member_appends){index, disk->appended(disk->data, index)};
        }
    }
    cn_member_appended_all(&host->member, cn_host_clock_ms(), appends, count);
    cn_host_after(host);
}

/* --- its end ---------------------------------------------------------------------------------- */

static void end_if_closed(struct cn_host *host)
{
    if (host->engine_open || host->links_open || host->mailbox_open || host->handles)
        return;
    if (host->config.left)
        host->config.left(host->config.data);
}

static void on_engine_closed(void *data)
{
    ((struct cn_host *)data)->engine_open = false;
    end_if_closed(data);
}

static void on_links_closed(void *data)
{
    ((struct cn_host *)data)->links_open = false;
    end_if_closed(data);
}

static void on_mailbox_closed(struct cn_mailbox *mailbox)
{
    struct cn_host *host = CN_CONTAINER_OF(mailbox, struct cn_host, mailbox);
    host->mailbox_open = false;
    end_if_closed(host);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cn_host *host = handle->data;
    host->handles--;
    end_if_closed(host);
}

static void close_all(struct cn_host *host)
{
    struct cn_links *links = host->links;
    host->links = NULL;
    if (links)
        cn_links_free(links, on_links_closed, host);
    cn_engine_pg_free(host->engine, on_engine_closed, host);
    cn_mailbox_close(&host->mailbox, on_mailbox_closed);
    host->timer.data = host->async.data = host;
    uv_close((uv_handle_t *)&host->timer, on_handle_closed);
    uv_close((uv_handle_t *)&host->async, on_handle_closed);
}

static void on_time(uv_timer_t *timer)
{
    struct cn_host *host = CN_CONTAINER_OF(timer, struct cn_host, timer);
    if (host->finishing) { /* when its stores are closed */
        if (cn_host_is_quiet(host) && cn_host_seen_is_written(host) &&
            !uv_is_closing((uv_handle_t *)timer))
            close_all(host);
        return;
    }
    if (!host->member_there) {
        if (!host->leaving && !host->failed)
            boot(host);
        return;
    }
    cn_member_tick(&host->member, cn_host_clock_ms());
    cn_host_after(host);
}

/* --- its life --------------------------------------------------------------------------------- */

static void *host_main(void *data)
{
    struct cn_host *host = data;
    cn_loop_take(&host->loop);
    boot(host);
    uv_run(&host->loop, UV_RUN_DEFAULT);
    cn_loop_give(&host->loop);
    return NULL;
}

static void set_defaults(struct cn_host_config *config)
{
    if (!config->queue_max)
        config->queue_max = 16u << 20;
    if (!config->queue_total)
        config->queue_total = 128u << 20;
}

static void host_free(struct cn_host *host)
{
    cn_host_seen_end(host);
    if (host->member_there)
        cn_member_fini(&host->member);
    cn_host_beside_fini(host);
    cn_buf_fini(&host->weighed);
    cn_buf_fini(&host->weighed_index);
    cn_buf_fini(&host->scratch);
    for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++) {
        cn_buf_fini(&host->shards[i].tail.bytes);
        cn_buf_fini(&host->shards[i].tail.ends);
    }
    cn_free(host->shards);
    pthread_mutex_destroy(&host->lock);
    pthread_mutex_destroy(&host->status_lock);
    pthread_cond_destroy(&host->work);
    if (host->config.listen_fd >= 0)
        close(host->config.listen_fd);
    cn_free(host);
}

int cn_host_new(const struct cn_host_config *config, struct cn_host **result, struct cn_err *err)
{
    if (!config->disk || !cn_engine_pg_is_node(config->node))
        return cn_err_set(err, CN_EINVALID,
                          "the name of a node has up to %d letters, digits, '-', '_' and '.'",
                          CN_ENGINE_PG_NODE_MAX);
    struct cn_host *host = CN_NEW(struct cn_host);
    host->config = *config;
    snprintf(host->node, sizeof(host->node), "%s", config->node);
    set_defaults(&host->config);
    int rc = cn_loop_init(&host->loop, err);
    if (rc < 0) {
        cn_free(host);
        return rc;
    }
    struct cn_engine_pg_config engine = {
        .conninfo = config->conninfo,
        .node = config->node,
        .address = config->address,
        .cluster = config->cluster,
        .shard_count = config->shard_count,
        .replicas = config->replicas,
        .allow_flaws = config->allow_flaws,
        .hooks = {host, on_up, on_down, on_answer, on_hint, on_nodes, on_record, NULL, on_wish}};
    pthread_mutex_init(&host->lock, NULL);
    pthread_mutex_init(&host->status_lock, NULL);
    pthread_cond_init(&host->work, NULL);
    cn_host_seen_init(host);
    cn_list_init(&host->ready);
    cn_list_init(&host->copies);
    cn_list_init(&host->parcels);
    /* All there can be: the gate may be asked before the cluster is known. */
    host->shards = cn_alloc_zero(CN_CLUSTER_SHARDS_MAX * sizeof(*host->shards));
    for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++) {
        host->shards[i].host = host;
        host->shards[i].index = i;
        cn_list_init(&host->shards[i].steps);
    }
    rc = cn_engine_pg_new(&host->loop, &engine, &host->engine, err);
    if (rc < 0) {
        (void)uv_loop_close(&host->loop);
        host->config.listen_fd = -1; /* stays the caller's */
        host_free(host);
        return rc;
    }
    uv_timer_init(&host->loop, &host->timer);
    uv_async_init(&host->loop, &host->async, on_async);
    cn_mailbox_open(&host->mailbox, &host->loop, host);
    host->engine_open = host->mailbox_open = true;
    host->handles = 2;
    *result = host;
    return 0;
}

int cn_host_start(struct cn_host *host, struct cn_err *err)
{
    int rc = cn_host_workers_start(host, err);
    if (rc == 0)
        rc = cn_host_seen_start(host, err);
    if (rc < 0)
        return rc;
    cn_loop_give(&host->loop);
    rc = pthread_create(&host->thread, NULL, host_main, host);
    if (rc == 0) {
        host->started = true;
        return 0;
    }
    cn_loop_take(&host->loop);
    return cn_err_errno(err, rc, "cannot start the thread of the cluster");
}

bool cn_host_has_parted(const struct cn_host *host)
{
    return atomic_load(&host->parted);
}

void cn_host_free(struct cn_host *host)
{
    if (host->started) {
        pthread_join(host->thread, NULL);
        cn_loop_take(&host->loop);
    } else {
        host->config.left = NULL;
        close_all(host);
        uv_run(&host->loop, UV_RUN_DEFAULT);
    }
    cn_host_workers_end(host);
    CN_ASSERT(uv_loop_close(&host->loop) == 0);
    host_free(host);
}
