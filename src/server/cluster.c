/* SPDX-License-Identifier: Apache-2.0 */
/* server/cluster.c - hooks of the host, the wait for the engine, what nodes agree on. See
 * cluster.h.
 *
 * One lock guards the state, the caches and what is known of each shard. It is never held while a
 * function of the host, the shards or the book is called. A thread of its own (the *watch*) does
 * what has a time or may block: N5, N9. */
#include "server/cluster.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "cluster/bodies.h"
#include "cluster/book.h"
#include "cluster/disk.h"
#include "cluster/haul.h"
#include "cluster/host.h"
#include "cluster/link.h"
#include "object/call.h"
#include "object/node.h"
#include "object/shard.h"
#include "remote/far.h"
#include "admin/relay.h"
#include "remote/others.h"
#include "remote/remote.h"
#include "remote/target.h"
#include "server/address.h"
#include "service/others.h"
#include "server/classes.h"
#include "server/deploy_classes.h"
#include "server/witness.h"
#include "service/def.h"
#include "service/service.h"
#include "store/blob.h"
#include "worker/remote.h"

enum {
    STOP_MS = 5000,   /* N5 */
    DEPART_MS = 9000, /* the same of a node that departs; less than the member's limit to leave */
    SILENT_MS = 4500, /* N2: longer than a live session is silent */
    LOOK_MS = 500,
    LOST_MS = 10000,  /* N9: longer than most engines take for a fail-over */
    LEAVE_MS = 40000, /* more than the member's own limit, and the closing of stores */
};

#define CLASSES_DOCUMENT "classes"

enum state { BOOTING, JOINED, FAILED, LEFT };

/* How far the front is with a shard, beyond what the set of shards knows. */
enum spot_state {
    SERVED,   /* or not here at all */
    STOPPING, /* until its time is over */
    FORCING,  /* N5, N9: it is being closed in the place of being stopped, or served */
    FORCED,   /* it is closed */
    REOPENING /* and is to be opened again */
};

struct spot {
    struct cn_cluster *cluster;
    enum spot_state state;
    uint64_t ticket;
    int64_t stop_by_ms;
    bool open;                        /* between serve() and close() */
    bool silenced;                    /* N9: FORCING or FORCED, and nobody has asked it to stop */
    bool closing, stopping, resuming; /* what was wanted while that could not be done */
};

struct name {
    uint32_t number;
    char *text; /* owned */
};

struct cn_cluster {
    struct cn_book book; /* its texts are owned by the struct */
    char *url, *node, *address;
    struct cn_cluster_disk disk;
    struct cn_host *host;
    struct cn_shards *shards;
    struct cn_remote *remote; /* from JOINED on */
    struct cn_others others;
    struct cn_relay_net relay;
    struct cn_lane_remote lanes;
    unsigned lane_count, call_wait_ms;
    struct cn_engine_pg_info info;
    struct cn_host_front front;
    struct cn_host_beside beside;
    struct cn_blobs *blobs;   /* of this disk */
    struct cn_bodies *bodies; /* NULL until it has joined */
    struct cn_hauls *hauls;   /* of shards that are served here */
    atomic_bool backing_up;
    struct cn_node *_Atomic objects;
    struct cn_ledger ledger;
    uint64_t ledger_version;    /* of the deploying thread */
    struct cn_witness *witness; /* borrowed, or NULL */
    bool unwatched;             /* of the watch: its loss was told */
    int64_t twin_since_ms;      /* of the watch; 0: there is none */
    int64_t lease_seen_ms;      /* of the watch */
    pthread_t watch;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    enum state state;
    bool left, watching, ending;
    bool parted;           /* cn_cluster_leave() is done */
    atomic_bool departing; /* N6 */
    bool served;           /* N7 */
    bool started;          /* the host: left() will come */
    struct cn_err why;     /* FAILED */
    struct spot spots[CN_CLUSTER_SHARDS_MAX];
    struct name *names; /* numbers as the engine last named them */
    size_t name_count;
};

static void lock(struct cn_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
}

static void unlock(struct cn_cluster *cluster)
{
    pthread_mutex_unlock(&cluster->lock);
}

/* --- the front: what the host wants ---------------------------------------------------------- */

static int front_serve(void *data, uint32_t shard, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_store *store = cn_cluster_disk_store(&cluster->disk, shard);
    CN_ASSERT(store);
    int rc = cn_shards_open(cluster->shards, shard, store,
                            cn_cluster_disk_history(&cluster->disk, shard), NULL, NULL, err);
    lock(cluster);
    cluster->spots[shard].open = rc == 0;
    unlock(cluster);
    return rc;
}

static void on_stopped(void *data, unsigned index, bool reached)
{
    struct spot *spot = data;
    struct cn_cluster *cluster = spot->cluster;
    lock(cluster);
    bool stopped = reached && spot->state == STOPPING;
    uint64_t ticket = spot->ticket;
    if (stopped)
        spot->state = SERVED;
    unlock(cluster);
    if (stopped)
        cn_host_stopped(cluster->host, index, ticket);
}

/* N5, N6 */
static int stop_ms(struct cn_cluster *cluster)
{
    return atomic_load(&cluster->departing) ? DEPART_MS : STOP_MS;
}

static void front_stop(void *data, uint32_t shard, uint64_t ticket)
{
    struct cn_cluster *cluster = data;
    struct spot *spot = &cluster->spots[shard];
    lock(cluster);
    bool serves = spot->state == SERVED, forced = spot->state == FORCED;
    spot->ticket = ticket;
    spot->stop_by_ms = cn_host_clock_ms() + stop_ms(cluster);
    spot->resuming = spot->silenced = false;
    spot->stopping = spot->state == REOPENING;
    if (serves)
        spot->state = STOPPING;
    unlock(cluster);
    if (serves) {
        cn_shards_stop(cluster->shards, shard, on_stopped, spot);
        cn_hauls_cut(cluster->hauls, shard); /* after it: no other can begin any more */
    } else if (forced)                       /* nothing runs in it */
        cn_host_stopped(cluster->host, shard, ticket);
}

static void front_resume(void *data, uint32_t shard)
{
    struct cn_cluster *cluster = data;
    struct spot *spot = &cluster->spots[shard];
    lock(cluster);
    bool stopped = spot->state == SERVED || spot->state == STOPPING;
    if (stopped) {
        spot->state = SERVED;
    } else {
        spot->resuming = true; /* by the watch: it reads the disk */
        spot->stopping = false;
        pthread_cond_broadcast(&cluster->changed);
    }
    unlock(cluster);
    if (stopped)
        cn_shards_resume(cluster->shards, shard, NULL, NULL);
}

static void on_closed(void *data, unsigned index, bool reached)
{
    struct spot *spot = data;
    CN_ASSERT(reached);
    lock(spot->cluster);
    spot->state = SERVED;
    spot->open = false;
    unlock(spot->cluster);
    cn_host_shut(spot->cluster->host, index);
}

static void front_close(void *data, uint32_t shard)
{
    struct cn_cluster *cluster = data;
    struct spot *spot = &cluster->spots[shard];
    lock(cluster);
    bool closed = spot->state == FORCED;
    bool busy = spot->state == FORCING || spot->state == REOPENING;
    spot->closing = busy;
    spot->open = spot->silenced = false;
    if (!busy)
        spot->state = SERVED;
    unlock(cluster);
    if (closed)
        cn_host_shut(cluster->host, shard);
    else if (!busy)
        cn_shards_close(cluster->shards, shard, on_closed, spot);
    cn_hauls_cut(cluster->hauls, shard);
}

static void front_wake(void *data)
{
    struct cn_cluster *cluster = data;
    cn_shards_wake(cluster->shards);
}

static void host_failed(void *data, const struct cn_err *err);

/* --- the watch: N5 --------------------------------------------------------------------------- */

static void on_forced(void *data, unsigned index, bool reached)
{
    struct spot *spot = data;
    struct cn_cluster *cluster = spot->cluster;
    CN_ASSERT(reached);
    lock(cluster);
    bool closing = spot->closing, silenced = spot->silenced;
    uint64_t ticket = spot->ticket;
    spot->state = closing ? SERVED : FORCED;
    spot->closing = false;
    pthread_cond_broadcast(&cluster->changed);
    unlock(cluster);
    if (closing)
        cn_host_shut(cluster->host, index);
    else if (!silenced)
        cn_host_stopped(cluster->host, index, ticket);
}

static void force(struct cn_cluster *cluster, unsigned shard, bool late)
{
    if (late)
        cn_warn("cluster: calls to objects of shard %u have not ended in %d s; they fail, since it "
                "is moved to another node",
                shard, stop_ms(cluster) / 1000);
    cn_shards_close(cluster->shards, shard, on_forced, &cluster->spots[shard]);
    cn_hauls_cut(cluster->hauls, shard);
}

/* One that cannot be opened again stays closed, and the node ends. */
static void reopen(struct cn_cluster *cluster, unsigned shard)
{
    struct spot *spot = &cluster->spots[shard];
    struct cn_err err = {0};
    int rc = front_serve(cluster, shard, &err);
    lock(cluster);
    bool closing = spot->closing, stopping = spot->stopping && !closing && rc == 0;
    spot->state = stopping ? STOPPING : rc < 0 && !closing ? FORCED : SERVED;
    spot->closing = spot->stopping = false;
    spot->open &= !closing; /* it is closed again below */
    unlock(cluster);
    if (rc < 0)
        host_failed(cluster, &err);
    if (rc < 0 && closing)
        cn_host_shut(cluster->host, shard);
    else if (closing)
        cn_shards_close(cluster->shards, shard, on_closed, spot);
    else if (stopping)
        cn_shards_stop(cluster->shards, shard, on_stopped, spot);
}

/* With the lock held; gives it back meanwhile. True: something was done. */
static bool look(struct cn_cluster *cluster, unsigned shard)
{
    struct spot *spot = &cluster->spots[shard];
    int64_t now = cn_host_clock_ms();
    bool late = spot->state == STOPPING && now >= spot->stop_by_ms;
    bool lost = spot->state == SERVED && spot->open && now - cluster->lease_seen_ms >= LOST_MS;
    bool opens = spot->state == FORCED &&
                 (spot->resuming || (spot->silenced && cn_host_may_take(cluster->host, shard)));
    if (!late && !lost && !opens)
        return false;
    spot->state = opens ? REOPENING : FORCING;
    spot->silenced = lost;
    spot->resuming = false;
    unlock(cluster);
    if (opens)
        reopen(cluster, shard);
    else
        force(cluster, shard, late);
    lock(cluster);
    return true;
}

/* N2 */
static void look_for_twin(struct cn_cluster *cluster)
{
    uint64_t twin = cn_host_twin(cluster->host);
    if (!twin || twin > cluster->disk.id) {
        cluster->twin_since_ms = 0;
    } else if (!cluster->twin_since_ms) {
        cluster->twin_since_ms = cn_host_clock_ms();
    } else if (cn_host_clock_ms() - cluster->twin_since_ms > SILENT_MS) {
        struct cn_err err;
        cn_err_set(&err, CN_EEXISTS, "another node of this cluster is called %s and is alive",
                   cluster->node);
        host_failed(cluster, &err);
        cluster->twin_since_ms = INT64_MAX; /* once */
    }
}

/* N9 */
static void look_for_lease(struct cn_cluster *cluster)
{
    struct cn_host_status status;
    int64_t now = cn_host_clock_ms();
    cn_host_status(cluster->host, &status);
    bool was_lost = now - cluster->lease_seen_ms >= LOST_MS;
    if (status.lease) {
        if (was_lost)
            cn_info("cluster: this node may answer again");
        cluster->lease_seen_ms = now;
    } else if (!was_lost && now + LOOK_MS - cluster->lease_seen_ms >= LOST_MS) {
        cn_warn("cluster: this node has not been allowed to answer for %d s: it has no engine that "
                "it can write to; calls that wait fail, and can be tried elsewhere",
                LOST_MS / 1000);
    }
}

/* N8 */
static void look_for_witness(struct cn_cluster *cluster)
{
    if (!cluster->witness || cluster->unwatched || cn_witness_lives(cluster->witness))
        return;
    cluster->unwatched = true;
    cn_warn("cluster: the process that would tell of this one's death has ended itself; if this "
            "one is killed, others take over when it has been silent for long enough");
}

static void *watch_main(void *data)
{
    struct cn_cluster *cluster = data;
    cluster->lease_seen_ms = cn_host_clock_ms();
    lock(cluster);
    while (!cluster->ending) {
        unlock(cluster);
        look_for_twin(cluster);
        look_for_witness(cluster);
        look_for_lease(cluster);
        lock(cluster);
        bool any = false;
        for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++)
            any = look(cluster, i) || any;
        if (!any && !cluster->ending)
            (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, LOOK_MS);
    }
    unlock(cluster);
    return NULL;
}

/* --- what nodes agree on: N3 ----------------------------------------------------------------- */

/* N7: whether the engine was away and is to be asked again. */
static bool is_again(struct cn_cluster *cluster, int rc, const struct cn_err *err)
{
    lock(cluster);
    bool again = rc == CN_ETIMEOUT && !cluster->served && cluster->state != FAILED;
    unlock(cluster);
    if (again)
        cn_warn("cluster: %s; trying again", err->text);
    return again;
}

/* With the lock held. */
static struct name *find_name(struct cn_cluster *cluster, uint32_t number)
{
    for (size_t i = 0; i < cluster->name_count; i++)
        if (cluster->names[i].number == number)
            return &cluster->names[i];
    return NULL;
}

static void remember(struct cn_cluster *cluster, uint32_t number, const char *text)
{
    lock(cluster);
    struct name *name = find_name(cluster, number);
    if (!name) {
        cluster->names =
            cn_realloc(cluster->names, (cluster->name_count + 1) * sizeof(*cluster->names));
        name = &cluster->names[cluster->name_count++];
        *name = (struct name){.number = number};
    }
    cn_free(name->text);
    name->text = cn_strdup(text);
    unlock(cluster);
}

/* Names of services never become those of other numbers, so what was told once stays true. */
static bool recall_service(struct cn_cluster *cluster, const char *text, uint32_t *number)
{
    bool found = false;
    lock(cluster);
    for (size_t i = 0; i < cluster->name_count && *text == '$' && !found; i++) {
        found = strcmp(cluster->names[i].text, text) == 0;
        if (found)
            *number = cluster->names[i].number;
    }
    unlock(cluster);
    return found;
}

static int shards_number(void *data, const char *name, uint32_t *number, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    if (recall_service(cluster, name, number))
        return 0;
    int rc;
    do
        rc = cn_book_number(&cluster->book, name, number, err);
    while (is_again(cluster, rc, err));
    if (rc == 0)
        remember(cluster, *number, name);
    return rc;
}

static int shards_named(void *data, uint32_t number, const char *text, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    lock(cluster);
    const struct name *name = find_name(cluster, number);
    bool known = name && strcmp(name->text, text) == 0;
    unlock(cluster);
    if (known)
        return 0;
    int rc;
    do
        rc = cn_book_rename(&cluster->book, number, text, err);
    while (is_again(cluster, rc, err));
    if (rc == 0)
        remember(cluster, number, text);
    return rc;
}

static bool shards_may_take(void *data, unsigned index)
{
    return cn_host_may_take(((struct cn_cluster *)data)->host, index);
}

/* The table of classes: the engine's becomes the file's. */
static int ledger_fetch(void *data, struct cn_disk *disk, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_buf text = {0};
    int rc;
    do
        rc = cn_book_recall(&cluster->book, CLASSES_DOCUMENT, &text, &cluster->ledger_version, err);
    while (is_again(cluster, rc, err));
    if (rc == 1) {
        rc = cn_disk_replace(disk, CN_CLASSES_FILE, text.data, text.size);
        if (rc < 0)
            rc = cn_err_errno(err, -rc, "cannot write " CN_CLASSES_FILE);
    } else if (rc == 0) {
        (void)cn_disk_unlink(disk, CN_CLASSES_FILE); /* of a deployment that was never agreed on */
    }
    cn_buf_fini(&text);
    return rc < 0 ? rc : 0;
}

static int ledger_keep(void *data, const struct cn_buf *json, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_buf text = {0};
    cn_buf_append(&text, json->data, json->size);
    int rc;
    do
        rc = cn_book_keep(&cluster->book, CLASSES_DOCUMENT, cn_buf_text(&text),
                          &cluster->ledger_version, err);
    while (is_again(cluster, rc, err));
    cn_buf_fini(&text);
    return rc;
}

static void ledger_served(void *data)
{
    struct cn_cluster *cluster = data;
    lock(cluster);
    cluster->served = true;
    unlock(cluster);
}

void cn_cluster_secret_of(const uint8_t whole[CN_CLUSTER_SECRET_SIZE],
                          uint8_t secret[CN_SIPHASH_KEY_SIZE])
{
    static const char purpose[] = "ids of objects";
    _Static_assert(CN_ENGINE_PG_SECRET_SIZE == 2 * CN_SIPHASH_KEY_SIZE, "two keys");
    for (unsigned i = 0; i < 2; i++) {
        uint8_t half[CN_SIPHASH_SIZE];
        cn_siphash(whole + i * CN_SIPHASH_KEY_SIZE, purpose, sizeof(purpose) - 1, half);
        memcpy(secret + i * CN_SIPHASH_KEY_SIZE / 2, half, CN_SIPHASH_KEY_SIZE / 2);
    }
}

void cn_cluster_secret(const struct cn_cluster *cluster, uint8_t secret[CN_SIPHASH_KEY_SIZE])
{
    cn_cluster_secret_of(cluster->info.secret, secret);
}

void cn_cluster_whole_secret(const struct cn_cluster *cluster,
                             uint8_t secret[CN_CLUSTER_SECRET_SIZE])
{
    _Static_assert(CN_ENGINE_PG_SECRET_SIZE == CN_CLUSTER_SECRET_SIZE, "all of it");
    memcpy(secret, cluster->info.secret, CN_CLUSTER_SECRET_SIZE);
}

const struct cn_book *cn_cluster_book(const struct cn_cluster *cluster)
{
    return &cluster->book;
}

uint64_t cn_cluster_disk_id(const struct cn_cluster *cluster)
{
    return cluster->disk.id;
}

bool cn_cluster_is_away(struct cn_cluster *cluster, int rc, struct cn_err *err)
{
    return is_again(cluster, rc, err);
}

uint64_t cn_cluster_ledger_version(const struct cn_cluster *cluster)
{
    return cluster->ledger_version;
}

/* --- N4 -------------------------------------------------------------------------------------- */

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

/* Nodes but this one: service/others.h. */
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

const struct cn_others *cn_cluster_others(struct cn_cluster *cluster)
{
    return &cluster->others;
}

static void serve_others(void *data, const struct cn_others_door *door)
{
    cn_remote_others_serve(((struct cn_cluster *)data)->remote, door);
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

static int open_remote(struct cn_cluster *cluster, struct cn_err *err)
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
    cluster->others = (struct cn_others){cluster, list_others, cn_remote_others_ask, serve_others};
    return cn_remote_new(&options, &cluster->remote, err);
}

static void lane_opens(void *data, struct cn_object_lane *objects)
{
    cn_remote_lane_open(((struct cn_cluster *)data)->remote, objects);
    cn_far_open(objects->data);
}

void cn_cluster_counts(struct cn_cluster *cluster, struct cn_remote_counts *counts)
{
    cn_remote_count(cluster->remote, counts);
}

const struct cn_lane_remote *cn_cluster_remote(struct cn_cluster *cluster)
{
    return &cluster->lanes;
}

void cn_cluster_mark(const struct cn_cluster *cluster, uint64_t *disk, uint64_t *life)
{
    *disk = cluster->disk.id;
    *life = cluster->disk.life;
}

static void host_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size)
{
    cn_remote_pipe(((struct cn_cluster *)data)->remote, moved, body, size);
}

static void host_silent(void *data, uint64_t disk)
{
    cn_remote_silent(((struct cn_cluster *)data)->remote, disk);
}

static void host_sessions(void *data, uint64_t own, const struct cn_host_session *sessions,
                          unsigned count)
{
    cn_remote_sessions(((struct cn_cluster *)data)->remote, own, sessions, count);
}

/* --- bodies ---------------------------------------------------------------------------------- */

static bool bodies_send(void *data, uint64_t disk, enum cn_frame_kind kind, const void *head,
                        size_t head_size, const void *more, size_t more_size)
{
    return cn_host_send(((struct cn_cluster *)data)->host, disk, kind, head, head_size, more,
                        more_size);
}

static bool bodies_view(void *data, uint32_t shard, struct cn_host_view *view)
{
    return cn_host_view(((struct cn_cluster *)data)->host, shard, view);
}

static unsigned bodies_linked(void *data, uint64_t disks[CN_CLUSTER_NODES_MAX])
{
    return cn_host_linked(((struct cn_cluster *)data)->host, disks);
}

static void bodies_whole(void *data, uint32_t shard, uint64_t epoch, const uint64_t *disks,
                         unsigned count)
{
    cn_host_whole(((struct cn_cluster *)data)->host, shard, epoch, disks, count);
}

/* Those of one namespace, by its service. What nobody here knows of is kept. */
static int ask_service(struct cn_node *node, uint32_t namespace_id, const struct cn_blob_id *ids,
                       size_t count, uint8_t *known, struct cn_err *err)
{
    struct cn_namespace *ns = cn_node_namespace_find(node, namespace_id);
    const struct cn_service_def *def = ns ? cn_service_of(ns->name) : NULL;
    memset(known, 1, count);
    return def && def->blobs_known ? def->blobs_known(ns, ids, count, known, err) : 0;
}

static int bodies_known(void *data, uint32_t shard, const struct cn_blob_id *ids, size_t count,
                        uint8_t *known, struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_node *node = atomic_load(&cluster->objects);
    struct cn_blob_id *some = cn_alloc(count * sizeof(*some) + 1);
    uint8_t *bits = cn_alloc(count + 1), *done = cn_alloc_zero(count + 1);
    int rc = node ? 0 : cn_err_set(err, CN_EOVERLOADED, "the server is starting");
    (void)shard;
    for (size_t i = 0; i < count && rc == 0; i++) {
        uint32_t of = cn_blob_id_namespace(&ids[i]);
        size_t some_count = 0;
        for (size_t j = i; j < count && !done[i]; j++)
            if (cn_blob_id_namespace(&ids[j]) == of)
                some[some_count++] = ids[j];
        if (!some_count)
            continue;
        rc = ask_service(node, of, some, some_count, bits, err);
        for (size_t j = i, at = 0; j < count && rc == 0; j++)
            if (cn_blob_id_namespace(&ids[j]) == of) {
                known[j] = bits[at++];
                done[j] = 1;
            }
    }
    cn_free(some);
    cn_free(bits);
    cn_free(done);
    return rc;
}

static bool beside_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    struct cn_bodies *bodies = ((struct cn_cluster *)data)->bodies;
    /* NULL: it could not be opened, and the host is about to leave. */
    return !bodies || cn_bodies_frame(bodies, disk, frame);
}

static void beside_link(void *data, uint64_t disk, bool up)
{
    struct cn_bodies *bodies = ((struct cn_cluster *)data)->bodies;
    if (bodies)
        cn_bodies_link(bodies, disk, up);
}

/* --- backups: the stores of shards that are served here (cluster/haul.h) ---------------------- */

static void *haul_hold(void *data, uint32_t shard, uint64_t *epoch)
{
    struct cn_cluster *cluster = data;
    struct cn_host_view view;
    if (!cn_host_may_leave(cluster->host, shard) || !cn_host_view(cluster->host, shard, &view) ||
        view.owner != cluster->disk.id)
        return NULL;
    *epoch = view.epoch;
    return cn_shards_hold_index(cluster->shards, shard);
}

static void haul_release(void *data, void *hold)
{
    (void)data;
    cn_shard_release(hold);
}

static int haul_copy(void *data, uint32_t shard,
                     int (*write)(void *to, const void *bytes, size_t size), void *to,
                     struct cn_err *err)
{
    const struct cn_host_disk *hands = &((struct cn_cluster *)data)->disk.hands;
    return hands->copy_out(hands->data, shard, write, to, err);
}

static int bodies_store(void *data, const struct cn_haul_ask *ask, struct cn_haul_piece *piece,
                        struct cn_err *err)
{
    return cn_haul_next(((struct cn_cluster *)data)->hauls, ask, piece, err);
}

struct cn_hauls *cn_cluster_hauls(struct cn_cluster *cluster)
{
    return cluster->hauls;
}

struct cn_bodies *cn_cluster_body_keeper(struct cn_cluster *cluster)
{
    return cluster->bodies;
}

const struct cn_engine_pg_info *cn_cluster_info(const struct cn_cluster *cluster)
{
    return &cluster->info;
}

bool cn_cluster_backup_begin(struct cn_cluster *cluster)
{
    return !atomic_exchange(&cluster->backing_up, true);
}

void cn_cluster_backup_end(struct cn_cluster *cluster)
{
    atomic_store(&cluster->backing_up, false);
}

static int open_bodies(struct cn_cluster *cluster, const struct cn_engine_pg_info *info,
                       struct cn_err *err)
{
    struct cn_bodies_config config = {.blobs = cluster->blobs,
                                      .disk = cluster->disk.id,
                                      .shard_count = info->shard_count,
                                      .replicas = info->replicas,
                                      .hands = {cluster, bodies_send, bodies_view, bodies_linked,
                                                bodies_known, bodies_whole, bodies_store}};
    return cn_bodies_new(&config, &cluster->bodies, err);
}

struct cn_blobs *cn_cluster_blobs(struct cn_cluster *cluster)
{
    return cn_blobs_among(cluster->blobs, cn_bodies_peers(cluster->bodies));
}

void cn_cluster_bodies(struct cn_cluster *cluster, struct cn_bodies_stats *stats)
{
    cn_bodies_stats(cluster->bodies, stats);
}

void cn_cluster_serve(struct cn_cluster *cluster, struct cn_node *node)
{
    atomic_store(&cluster->objects, node);
}

/* --- its life -------------------------------------------------------------------------------- */

static int host_joined(void *data, struct cn_host *host, const struct cn_engine_pg_info *info,
                       struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    struct cn_shards_options options = {.count = info->shard_count,
                                        .number = shards_number,
                                        .named = shards_named,
                                        .may_take = shards_may_take,
                                        .data = cluster};
    cluster->info = *info;
    cluster->book.cluster = cluster->info.cluster;
    cluster->shards = cn_shards_new(&options);
    cluster->hauls =
        cn_hauls_new(&(struct cn_hauls_hands){cluster, haul_hold, haul_release, haul_copy});
    int rc = open_remote(cluster, err);
    if (rc == 0)
        rc = open_bodies(cluster, info, err);
    if (rc == 0)
        rc = cn_cluster_disk_join(&cluster->disk, host, info, err);
    if (rc < 0)
        return rc;
    if (cluster->witness)
        cn_witness_tell(cluster->witness, cluster->disk.id,
                        cluster->disk.life + CN_HOST_LIFE_JOINS - 1, info->cluster);
    lock(cluster);
    cluster->state = JOINED;
    pthread_cond_broadcast(&cluster->changed);
    unlock(cluster);
    return 0;
}

static void host_failed(void *data, const struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    lock(cluster);
    bool serving = cluster->state == JOINED;
    cluster->state = FAILED;
    cluster->why = *err;
    pthread_cond_broadcast(&cluster->changed);
    unlock(cluster);
    if (serving)
        (void)kill(getpid(), SIGTERM); /* drains, stops, and ends with the reason */
}

static void host_left(void *data)
{
    struct cn_cluster *cluster = data;
    lock(cluster);
    cluster->left = true;
    pthread_cond_broadcast(&cluster->changed);
    unlock(cluster);
}

bool cn_cluster_failed(struct cn_cluster *cluster, struct cn_err *err)
{
    lock(cluster);
    bool failed = cluster->state == FAILED;
    if (failed)
        *err = cluster->why;
    unlock(cluster);
    return failed;
}

unsigned cn_cluster_allowed(const struct cn_cluster_options *options)
{
    return options->allow_async
               ? CN_ENGINE_NO_STANDBY | CN_ENGINE_ASYNC | CN_ENGINE_NO_FSYNC | CN_ENGINE_TORN_PAGES
               : 0;
}

int cn_cluster_check(const struct cn_cluster_options *options, struct cn_err *err)
{
    char *host = NULL;
    uint16_t port;
    if (!options->node || !cn_engine_pg_is_node(options->node))
        return cn_err_set(err, CN_EINVALID,
                          "a node of a cluster needs a name that no other has, of up to %d letters,"
                          " digits, '-', '_' and '.': --node NAME",
                          CN_ENGINE_PG_NODE_MAX);
    if (!options->peer || cn_address_parse(options->peer, &host, &port, NULL) < 0 ||
        !cn_engine_pg_is_address(options->peer)) {
        cn_free(host);
        return cn_err_set(err, CN_EINVALID,
                          "a node of a cluster needs an address where the others reach it: --peer "
                          "HOST:PORT");
    }
    cn_free(host);
    return 0;
}

/* How often sessions of other disks with this name have beaten so far; NULL: there is none. */
static int others_of_the_name(struct cn_cluster *cluster, struct cn_buf *beats, struct cn_err *err)
{
    char disk[24];
    const char *values[] = {cluster->node, disk};
    snprintf(disk, sizeof(disk), "%" PRId64, (int64_t)cluster->disk.id);
    return cn_book_ask(&cluster->book,
                       "SELECT string_agg(s.id || ':' || s.beat || ' ' || d.address, ', ' ORDER BY "
                       "s.id) FROM cairn.session s JOIN cairn.disk d ON d.id = s.disk WHERE s.live "
                       "AND d.node = $1::text AND d.id <> $2::bigint",
                       values, 2, beats, err);
}

/* N2. The engine may be away: the host waits for it, and is not started before. */
static int check_name(struct cn_cluster *cluster, struct cn_err *err)
{
    struct cn_buf before = {0}, after = {0};
    int rc;
    do
        rc = others_of_the_name(cluster, &before, err);
    while (is_again(cluster, rc, err));
    if (rc == 1) {
        lock(cluster);
        (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, SILENT_MS);
        unlock(cluster);
        do
            rc = others_of_the_name(cluster, &after, err);
        while (is_again(cluster, rc, err));
    }
    if (rc == 1 && strcmp(cn_buf_text(&before), cn_buf_text(&after)) != 0)
        rc = cn_err_set(err, CN_EEXISTS,
                        "another node of this cluster is called %s and is alive, at %s",
                        cluster->node, strchr(cn_buf_text(&after), ' ') + 1);
    cn_buf_fini(&before);
    cn_buf_fini(&after);
    return rc < 0 ? rc : 0;
}

static int open_host(struct cn_cluster *cluster, const struct cn_cluster_options *options,
                     struct cn_err *err)
{
    char *peer_host = NULL;
    uint16_t port;
    struct cn_host_config config = {.conninfo = cluster->url,
                                    .node = cluster->node,
                                    .cluster =
                                        *cluster->disk.cluster ? cluster->disk.cluster : NULL,
                                    .disk = cluster->disk.id,
                                    .life = cluster->disk.life,
                                    .shard_count = options->shard_count,
                                    .replicas = options->replicas,
                                    .allow_flaws = cluster->book.allow_flaws,
                                    .verified = options->verified,
                                    .disk_hands = &cluster->disk.hands,
                                    .front = &cluster->front,
                                    .beside = &cluster->beside,
                                    .data = cluster,
                                    .joined = host_joined,
                                    .failed = host_failed,
                                    .left = host_left,
                                    .pipe = host_pipe,
                                    .silent = host_silent,
                                    .sessions = host_sessions};
    int rc = cn_address_parse(options->peer, &peer_host, &port, err);
    if (rc < 0)
        return rc;
    config.listen_fd = cn_links_bind(peer_host, port, &port, err);
    bool bare_v6 = strchr(peer_host, ':') != NULL;
    cluster->address =
        cn_sprintf("%s%s%s:%u", bare_v6 ? "[" : "", peer_host, bare_v6 ? "]" : "", port);
    config.address = cluster->address;
    cn_free(peer_host);
    if (config.listen_fd < 0)
        return cn_err_context(err, "--peer");
    rc = cn_host_new(&config, &cluster->host, err);
    if (rc < 0)
        close(config.listen_fd);
    else
        rc = cn_host_start(cluster->host, err);
    cluster->started = rc == 0;
    return rc;
}

/* Until the engine has told which cluster it is. */
static int await_joined(struct cn_cluster *cluster, struct cn_err *err)
{
    lock(cluster);
    while (cluster->state == BOOTING)
        pthread_cond_wait(&cluster->changed, &cluster->lock);
    int rc = cluster->state == FAILED ? cluster->why.code : 0;
    if (rc < 0)
        *err = cluster->why;
    unlock(cluster);
    return rc;
}

static struct cn_cluster *make(const struct cn_cluster_options *options)
{
    struct cn_cluster *cluster = CN_NEW(struct cn_cluster);
    cn_cond_init(&cluster->changed);
    pthread_mutex_init(&cluster->lock, NULL);
    cluster->url = cn_strdup(options->url);
    cluster->node = cn_strdup(options->node);
    cluster->lane_count = options->lane_count ? options->lane_count : 1;
    cluster->call_wait_ms = options->call_wait_ms;
    cluster->lanes = (struct cn_lane_remote){
        cluster,        lane_opens,    cn_remote_lane_close, cn_remote_lane_free,
        cn_target_send, cn_target_lend};
    cluster->witness = options->witness;
    cluster->book = (struct cn_book){.conninfo = cluster->url,
                                     .node = cluster->node,
                                     .shard_count = options->shard_count,
                                     .replicas = options->replicas};
    cluster->book.allow_flaws = cn_cluster_allowed(options);
    cluster->front = (struct cn_host_front){cluster,      front_serve, front_stop,
                                            front_resume, front_close, front_wake};
    cluster->beside = (struct cn_host_beside){cluster, beside_frame, beside_link};
    cluster->ledger = (struct cn_ledger){cluster, ledger_fetch, ledger_keep, ledger_served};
    for (unsigned i = 0; i < CN_CLUSTER_SHARDS_MAX; i++)
        cluster->spots[i].cluster = cluster;
    return cluster;
}

static int start(struct cn_cluster *cluster, const struct cn_cluster_options *options,
                 struct cn_err *err)
{
    struct cn_replicas_config replicas = {.disk = options->disk,
                                          .retention_ms = options->history_ms,
                                          .history_size_max = options->history_bytes};
    int rc = cn_cluster_disk_open(&cluster->disk, &replicas, err);
    if (rc < 0)
        return rc;
    if (options->verified)
        cn_cluster_disk_verify(&cluster->disk);
    if (*cluster->disk.cluster)
        cluster->book.cluster = cluster->disk.cluster;
    rc = cn_blobs_open_by_shard(options->disk, "blobs", &cluster->blobs, err);
    if (rc == 0)
        rc = check_name(cluster, err);
    if (rc == 0)
        rc = open_host(cluster, options, err);
    if (rc == 0)
        rc = await_joined(cluster, err);
    if (rc == 0 && pthread_create(&cluster->watch, NULL, watch_main, cluster) != 0)
        rc = cn_err_set(err, CN_ENOMEM, "cannot start a thread");
    cluster->watching = rc == 0;
    return rc;
}

int cn_cluster_open(const struct cn_cluster_options *options, struct cn_cluster **out,
                    struct cn_err *err)
{
    int rc = cn_cluster_check(options, err);
    if (rc < 0)
        return rc;
    struct cn_cluster *cluster = make(options);
    rc = start(cluster, options, err);
    if (rc < 0) {
        cn_cluster_leave(cluster);
        cn_cluster_free(cluster);
        struct cn_err why = *err;
        if (rc == CN_EDENIED)
            cn_err_set(err, rc,
                       "%.300s (allow_async = true in [cairn.cluster], or --allow-async, serves on "
                       "such an engine all the same)",
                       why.text);
        return rc;
    }
    if (options->allow_async)
        cn_warn("cluster: allow_async: what was acknowledged may be lost when the engine fails");
    cn_info("cluster: %s is a node of %s, which has %u shards; others reach it at %s",
            cluster->node, cluster->info.cluster, cluster->info.shard_count, cluster->address);
    *out = cluster;
    return 0;
}

void cn_cluster_depart(struct cn_cluster *cluster)
{
    atomic_store(&cluster->departing, true);
    cn_cluster_leave(cluster);
}

void cn_cluster_leave(struct cn_cluster *cluster)
{
    if (!cluster->started)
        return;
    lock(cluster);
    bool gone = cluster->parted;
    unlock(cluster);
    if (gone)
        return;
    if (cluster->bodies)
        cn_bodies_stop(cluster->bodies);
    if (cluster->hauls)
        cn_hauls_stop(cluster->hauls);
    cn_host_leave(cluster->host, true);
    int64_t until = cn_host_clock_ms() + LEAVE_MS;
    lock(cluster);
    while (!cluster->left && cn_host_clock_ms() < until)
        (void)cn_cond_wait_ms(&cluster->changed, &cluster->lock, LOOK_MS);
    bool left = cluster->parted = cluster->left;
    unlock(cluster);
    if (left && cluster->witness && cn_host_has_parted(cluster->host))
        cn_witness_left(cluster->witness);
    if (left)
        return;
    cn_error("cluster: this node could not leave in %d s and ends as it is; what was acknowledged "
             "is safe in the engine",
             LEAVE_MS / 1000);
    _exit(1);
}

void cn_cluster_free(struct cn_cluster *cluster)
{
    if (!cluster)
        return;
    lock(cluster);
    cluster->ending = true;
    pthread_cond_broadcast(&cluster->changed);
    unlock(cluster);
    if (cluster->watching)
        pthread_join(cluster->watch, NULL);
    cn_shards_free(cluster->shards);
    if (cluster->host)
        cn_host_free(cluster->host);
    cn_bodies_free(cluster->bodies);
    cn_hauls_free(cluster->hauls);
    cn_blobs_close(cluster->blobs);
    cn_remote_free(cluster->remote);
    if (cluster->disk.replicas)
        cn_cluster_disk_close(&cluster->disk);
    for (size_t i = 0; i < cluster->name_count; i++)
        cn_free(cluster->names[i].text);
    cn_free(cluster->names);
    cn_free(cluster->url);
    cn_free(cluster->node);
    cn_free(cluster->address);
    pthread_mutex_destroy(&cluster->lock);
    pthread_cond_destroy(&cluster->changed);
    cn_free(cluster);
}

struct cn_shards *cn_cluster_shards(struct cn_cluster *cluster)
{
    return cluster->shards;
}

struct cn_host *cn_cluster_host(struct cn_cluster *cluster)
{
    return cluster->host;
}

const struct cn_ledger *cn_cluster_ledger(struct cn_cluster *cluster)
{
    return &cluster->ledger;
}
