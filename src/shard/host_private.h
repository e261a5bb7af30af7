/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host_private.h - what the parts of a host tell each other.
 *
 * host.c has the thread, the engine, the links, the gate; host_step.c what is done with a shard,
 * one step after the other; host_copy.c copies of shards, going and coming; host_beside.c what is
 * done for those who keep things beside the stores; host_seen.c what was seen of the engine.
 *
 * A step of a shard:
 *
 *     step     on        does                                       left out if
 *     CREATE   worker    disk.create()
 *     WRITE    worker    disk.write(); several that wait are one
 *     OPEN     worker    disk.open(), then the gate opens           a CLOSE is behind it
 *     SERVE    worker    front.serve()                              a CLOSE is behind it
 *     STOP     host      front.stop(); is over at once              it is not served, or as above
 *     RESUME   host      front.resume(), and the gate opens         the same
 *     SHUT     host      front.close(), waits for cn_host_shut()    it is not served
 *     SYNC     worker    disk.sync(), then the member is told
 *     CLOSE    worker    disk.close()                               it is not open
 *     DISCARD  worker    disk.discard()
 *     BEGIN    worker    disk.copy_begin()
 *     TAKE     worker    disk.copy_take(), then credit is sent      the copy was given up
 *     END      worker    disk.copy_end(), then the member is told   the copy was given up
 *
 * After a failure of the disk (H7) only SHUT and CLOSE are done. */
#ifndef CN_SHARD_HOST_PRIVATE_H
#define CN_SHARD_HOST_PRIVATE_H
#include <pthread.h>
#include <uv.h>

#include "base/buf.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "peer/link.h"
#include "shard/host.h"

#define CN_HOST_WORKERS_MAX 16
#define CN_HOST_COPIES_OUT_MAX 2

enum cn_host_step_kind {
    CN_STEP_CREATE,
    CN_STEP_WRITE,
    CN_STEP_OPEN,
    CN_STEP_SERVE,
    CN_STEP_STOP,
    CN_STEP_RESUME,
    CN_STEP_SHUT,
    CN_STEP_SYNC,
    CN_STEP_CLOSE,
    CN_STEP_DISCARD,
    CN_STEP_BEGIN,
    CN_STEP_TAKE,
    CN_STEP_END,
};

struct cn_host_step {
    struct cn_list link; /* of the shard's steps; once it runs, of the workers' queue */
    enum cn_host_step_kind kind;
    struct cn_host_shard *shard;
    struct cn_buf bytes; /* WRITE, TAKE */
    uint64_t lsn;        /* OPEN, SYNC; of END: its result */
    uint64_t epoch;      /* OPEN */
    uint64_t copy;       /* BEGIN, TAKE, END: which coming it belongs to */
    uint64_t offset;     /* TAKE: behind it */
    int rc;
    struct cn_err err;
    struct cn_mail mail; /* back to the host */
};

/* What a READ answered, until the member says what of it is used. */
struct cn_host_tail {
    struct cn_buf bytes;
    struct cn_buf ends; /* of uint64_t: where each record ends */
    uint64_t from;      /* the LSN before the first */
};

struct cn_host_shard {
    struct cn_host *host;
    uint32_t index;
    struct cn_list steps;         /* of struct cn_host_step that wait */
    struct cn_host_step *running; /* NULL: none */
    uint64_t queued;              /* bytes of WRITE and TAKE that wait or run */
    unsigned closes;              /* CLOSE steps that wait or run, */
    unsigned opens;               /* and OPEN steps: H9 */
    unsigned voids;               /* CREATE, DISCARD, BEGIN that wait or run: a checkpoint that is
                                     told now is of what is thrown away */
    bool open, served;
    bool stopping;
    uint64_t ticket; /* of the last stop */
    struct cn_host_tail tail;
    struct cn_member_message ask; /* for a copy; said again when there is a link */
    uint64_t ask_disk;            /* whom; 0: none is asked, or it was told */
    /* A copy that comes: from whom, which of theirs; 0: none. */
    uint64_t coming, coming_disk, coming_number, coming_offset;
    struct cn_host_copy *going;
    atomic_bool gate;            /* H2 */
    atomic_uint_least64_t owner; /* a disk */
};

struct cn_host {
    struct cn_host_config config;
    uv_loop_t loop;
    pthread_t thread;
    bool started;
    struct cn_mailbox mailbox;
    uv_timer_t timer;
    uv_async_t async;
    unsigned handles; /* that have to be closed */
    struct cn_engine_pg *engine;
    struct cn_links *links; /* NULL: not yet, or closed */
    bool engine_open, links_open, mailbox_open;
    struct cn_member member;
    struct cn_member_host hands;
    bool member_there; /* the cluster is known */
    uint64_t boot_link;
    int64_t warned_ms;
    struct cn_host_shard *shards;
    unsigned shard_count;
    bool leaving, hand_over, finishing, failed;
    bool nodes_changed; /* `nodes`, and the links have not been told */
    const uint8_t *fed_bytes;
    size_t fed_size;
    /* Records that were weighed for the batch that is being gathered: H4. */
    struct cn_buf weighed, weighed_index, scratch;
    size_t weighed_next;
    struct {
        uint64_t number, at_us;    /* of the statement */
    } sent[CN_MEMBER_BATCHES_MAX]; /* the last appends */
    unsigned sent_next;
    struct cn_histogram append_us;
    uint64_t appends, engine_links, engine_broken;
    uint64_t queued_total, feeds_dropped, takeovers, fenced, copy_number, coming_number;
    struct cn_list copies; /* of struct cn_host_copy */
    unsigned copy_count;
    /* What `sessions` was told last, and when. */
    uint64_t told_own;
    struct cn_host_session told[CN_CLUSTER_NODES_MAX];
    unsigned told_count;
    int64_t told_ms;
    struct cn_list parcels; /* of struct parcel (host_beside.c) that wait for room, oldest first */

    /* For any thread. */
    atomic_int_least64_t lease_ms;
    atomic_uint_least64_t number, confirmed;
    atomic_bool confirm;
    atomic_bool parted; /* LEAVE was answered */
    atomic_uint_least64_t dirty[CN_CLUSTER_SHARDS_MAX / 64];

    /* The workers. */
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct cn_list ready; /* of struct cn_host_step; guarded by lock */
    bool ending;          /* the same */
    pthread_t workers[CN_HOST_WORKERS_MAX];
    unsigned worker_count;

    struct {
        pthread_t thread;
        bool started;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct cn_engine_seen wanted; /* the rest is guarded by lock */
        bool waits, busy;             /* to be written; or being */
        bool ending;
    } seen; /* H10 */

    char node[CN_ENGINE_PG_NODE_MAX + 1]; /* its name */
    pthread_mutex_t status_lock;
    struct cn_host_status status; /* guarded by it */
    struct {
        uint64_t disk;
        char name[CN_ENGINE_PG_NODE_MAX + 1], address[CN_ENGINE_PG_ADDRESS_MAX + 1];
    } nodes[CN_CLUSTER_NODES_MAX];
    unsigned node_count;
    uint64_t linked[CN_CLUSTER_NODES_MAX]; /* guarded by status_lock */
    unsigned linked_count;
    struct cn_host_trouble troubles[CN_CLUSTER_NODES_MAX]; /* guarded by status_lock */
    unsigned trouble_count;
    struct cn_host_view *views; /* of every shard; guarded by status_lock */
    bool viewed;                /* the same: there was a map */
};

/* host.c */
void cn_host_fail(struct cn_host *host, const struct cn_err *err);
/* After every call of the member. */
void cn_host_after(struct cn_host *host);

/* host_step.c */
int cn_host_workers_start(struct cn_host *host, struct cn_err *err);
void cn_host_workers_end(struct cn_host *host);
void cn_host_act(struct cn_host *host, enum cn_member_act act, uint32_t shard, uint64_t epoch,
                 uint64_t from, uint64_t lsn);
struct cn_host_step *cn_host_step_new(struct cn_host_shard *shard, enum cn_host_step_kind kind);
void cn_host_step_add(struct cn_host_step *step);
void cn_host_step_shut(struct cn_host_shard *shard);     /* the front has let go */
bool cn_host_is_quiet(const struct cn_host *host);       /* nothing waits, runs or is open */
bool cn_host_is_full(const struct cn_host_shard *shard); /* H6 */
void cn_host_tail_keep(struct cn_host_shard *shard, uint64_t from,
                       const struct cn_engine_record *records, size_t count);

/* host_copy.c */
void cn_host_copy_send(struct cn_host *host, uint64_t disk, uint32_t shard);
void cn_host_copy_stop(struct cn_host_shard *shard);                  /* the one that goes */
void cn_host_copy_link(struct cn_host *host, uint64_t disk, bool up); /* room, or none any more */
/* False: it is malformed. */
bool cn_host_copy_frame(struct cn_host *host, uint64_t disk, const struct cn_frame *frame);
void cn_host_copy_forget(struct cn_host_shard *shard); /* the one that comes */
void cn_host_copy_stepped(struct cn_host_step *step);  /* BEGIN, TAKE or END is over */

/* host_seen.c: H10 */
void cn_host_seen_init(struct cn_host *host);
int cn_host_seen_start(struct cn_host *host, struct cn_err *err);
void cn_host_seen_put(struct cn_host *host, const struct cn_engine_seen *seen);
bool cn_host_seen_is_written(struct cn_host *host);
void cn_host_seen_end(struct cn_host *host); /* the last is written */

/* host_beside.c */
void cn_host_beside_publish(struct cn_host *host);                      /* the map may be new */
void cn_host_beside_link(struct cn_host *host, uint64_t disk, bool up); /* a link is up or down */
void cn_host_beside_room(struct cn_host *host, uint64_t disk);          /* its link has room */
void cn_host_beside_fini(struct cn_host *host);

#endif
