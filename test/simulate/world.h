/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/world.h - a cluster in one thread, moved by one seed.
 *
 * The decisions are those of src/membership/, as they are in the server's binary. Around them is
 * simulated what they live in, as badly as it may behave:
 *
 *   engine.c   the engine: commits wait for the standby; a wait that is cancelled leaves a commit
 *              that is seen though not replicated; a promotion loses those, a primary that was
 *              replaced goes on for a while; statements linger on links that are long broken; it
 *              is put back to an older backup, and the right one comes back, or not
 *   node.c     nodes: the store of each shard in memory and on disk, the output gate, messages with
 *              delays, losses and partitions of any shape, clocks that run at other rates, crashes
 *              that lose what was not synced, freezes, lost disks
 *   bodies.c   what lies beside the stores, on disks and not in the log, in one of three seeds
 *   fault.c    what goes wrong, and when it stops
 *   check.c    what must be true: of every answer when it leaves, and of the history at the end;
 *              history.c has the rules of a history
 *   events.c   what is to happen, in order, and chance
 *
 * The state of an object is the list of the writes it took; every answer tells its length and a
 * hash of it. So a history is linearizable if every answer is a prefix of the final list, has all
 * that was answered before it was asked, and nothing that was asked after it was answered. */
#ifndef CN_TEST_SIMULATE_WORLD_H
#define CN_TEST_SIMULATE_WORLD_H
#include <stdbool.h>
#include <stdint.h>

#include "membership/member.h"

#ifdef CN_SIMULATION
#include "membership/member_private.h"
/* Bugs of the engine's statements, of its driver and of the host. */
enum {
    PLANT_NO_FENCE = CN_BROKEN_MEMBER, /* C1: APPEND does not ask whether the session lives */
    PLANT_NO_HEAD,                     /* C1: nor for head */
    PLANT_NO_LINK,                     /* C1: what lingers on old links still counts */
    PLANT_NO_LIFE,                     /* C1: a JOIN that lingers ends its successor */
    PLANT_BLIND_FENCE,                 /* C2: FENCE does not repeat the beat */
    PLANT_CLAIM_BLIND,                 /* C3: CLAIM asks neither for the epoch nor for its owner */
    PLANT_WARNING,                     /* E2: a cancelled wait is taken for an answer */
    PLANT_READ_EARLY,                  /* C5: reads do not wait for the writes they saw */
    PLANT_TRIM_EARLY,                  /* C8: cut when one replica has it */
    PLANT_KEEP_CHECKPOINT, /* C16: who claims with nothing counts as having what it once had */
    PLANT_COUNT
};
#define PLANTED(what) (cn_member_broken == PLANT_##what)
#define PLANTED_MEMBER(what) (cn_member_broken == CN_BROKEN_##what)
#else
#define PLANTED(what) false
#define PLANTED_MEMBER(what) false
#endif

/* test/simulate/whole/ has nodes that cost more, and records that are not all of clients. */
#ifdef CN_WHOLE
#define SIZE(of_members, of_nodes) of_nodes
#else
#define SIZE(of_members, of_nodes) of_members
#endif

enum {
    NODES = SIZE(5, 3),
    SHARDS = SIZE(3, 2),
    OBJECTS = 2, /* of a shard */
    OPS = SIZE(200, 1200),
    OPS_SPREAD = SIZE(110, 40), /* the others come when a shard changes hands */
    SESSIONS = 256,
    DISKS = 16,
    NEVER = INT32_MAX,
    CALM_MS = SIZE(22000, 12000), /* when faults stop */
    QUIET_MS = 1000,              /* after that, the last client */
    END_MS = 120000,              /* by when all must be well again */
    REST_MS = 30000,              /* so long before that nothing is moved any more */
};

/* --- the world -------------------------------------------------------------------------------- */

extern int32_t now;       /* true time, ms */
extern bool calm;         /* faults have stopped */
extern bool verified;     /* this seed's kind of reads */
extern unsigned replicas; /* this seed's wish */
extern bool may_accept;   /* in this seed an operator accepts an engine that went back */
extern bool trace_on;
uint32_t rnd(uint32_t n); /* 0..n-1 */
static inline bool one_in(uint32_t n)
{
    return rnd(n) == 0;
}
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define TRACE(...)              \
    do {                        \
        if (trace_on)           \
            trace(__VA_ARGS__); \
    } while (0)

enum event_kind {
    EVENT_TICK,
    EVENT_ARRIVE, /* a statement at its server */
    EVENT_ANSWER,
    EVENT_LINK_UP,
    EVENT_LINK_DOWN,
    EVENT_STALL_ENDS,
    EVENT_CANCEL,
    EVENT_ENGINE_UP,
    EVENT_ENGINE_MENDED,
    EVENT_ZOMBIE_ENDS,
    EVENT_BACKUP, /* of the engine */
    EVENT_ENGINE_BACK,
    EVENT_ENGINE_RIGHT,
    EVENT_MESSAGE,
    EVENT_CHECKPOINT, /* begins */
    EVENT_SYNCED,     /* a checkpoint, or a copy */
    EVENT_STOPPED,
    EVENT_REMEMBERED, /* by the disk: what was seen of the engine */
    EVENT_START,
    EVENT_CLIENT,
    EVENT_OP_TIMEOUT,
    EVENT_FAULT,
    EVENT_MOVE, /* an operator's */
    EVENT_CALL, /* of test/simulate/whole/: a function is called */
    EVENT_KINDS
};
struct event {
    int32_t at;
    uint32_t order;
    uint8_t kind;
    uint8_t node;
    uint16_t life; /* of the node: events of a dead process are nothing */
    uint32_t a, b;
    void *p;
};
void push(int32_t at, enum event_kind kind, int node, uint32_t a, uint32_t b, void *p);
bool events_pop(struct event *event); /* the next; false: there is none */
int32_t events_next(void);            /* when it is; NEVER: there is none */
void events_reset(uint64_t seed);     /* what is left is dropped, and chance begins anew */

/* --- the engine ------------------------------------------------------------------------------- */

struct statement {
    struct statement *next;
    struct cn_engine_statement s;
    struct cn_engine_item items[SHARDS];
    int node;
    uint16_t life; /* of the node */
    uint8_t server;
    uint32_t server_life;
    struct answer *early;      /* the map as it was when the statement began */
    uint16_t records[OPS + 1]; /* of APPEND, one item after the other */
};
struct answer {
    struct answer *next;
    struct cn_engine_answer a;
    struct cn_engine_item items[SHARDS];
    struct cn_engine_view view;
    struct cn_engine_shard shards[SHARDS];
    struct cn_engine_session sessions[NODES + 2];
    uint16_t record_count;
    uint16_t records[OPS + 1];
};
void engine_reset(void);
void engine_connect(int node, uint64_t link);
void engine_send(int node, const struct cn_engine_statement *statement, const uint16_t *records);
void engine_bury(uint64_t disk, uint64_t disk_life);
void engine_event(struct event *event);
void engine_fault(void);
void engine_heal(void);
void engine_drain(uint64_t disk, bool draining);
bool engine_may_lose(uint64_t disk);
/* Two directories have this disk from now on (C14). The older one has less than the disk counts as
 * having, until it has read what it lacks. */
void engine_disk_copied(uint64_t disk);
bool engine_is_back(void); /* to an older state: C15 */
/* What the engine knows in the end. */
bool engine_up(void);
uint64_t engine_owner(int shard, uint64_t *disk);
unsigned engine_replicas(int shard, uint64_t *disks);
uint64_t engine_trim(int shard);
uint64_t engine_version(void);
void answer_free(struct answer *answer);

/* --- nodes ------------------------------------------------------------------------------------ */

struct store {
    bool here, on_disk, serving, stopping;
    uint16_t total, synced;
    uint16_t generation; /* of what is here: a checkpoint of an older one is nothing */
    uint64_t epoch;
    uint16_t tail_from;
    uint16_t op[OPS + 1], disk_op[OPS + 1], tail[OPS + 1];
};
struct out {
    uint16_t op, lsn, len;
    uint8_t shard, from;
    uint16_t from_life;
    uint64_t epoch, ticket, hash;
};
struct node {
    bool up, left, no_engine;
    uint8_t no_peer; /* bits: does not reach those */
    uint16_t life;
    int32_t frozen_until;
    int32_t tick_at;
    int32_t rate, offset; /* of its clock, per mille */
    uint64_t disk;
    uint64_t disk_life;
    /* C15: what the disk has; and what it has from `seen_at` on, if its process lives until then.
     */
    struct cn_engine_seen seen, seen_next;
    int32_t seen_at;
    struct cn_member member;
    struct store store[SHARDS];
    struct out outs[OPS];
    unsigned out_count;
    uint8_t link_server;
    uint32_t link_server_life;
    uint64_t link;
    bool link_dead;  /* nothing passes it any more; perhaps nobody knows */
    bool heard_back; /* an engine that had gone back has answered this process: C15 */
    int32_t link_send_at, link_answer_at;
    const struct message *fed; /* what is being told */
    /* By shard: which disks have all bodies, as bits, under which epoch, and whose replica the
     * last DROP is to drop. */
    uint32_t whole[SHARDS];
    uint64_t whole_epoch[SHARDS], dropping[SHARDS];
};
extern struct node nodes[NODES];
extern uint64_t next_disk;

void nodes_reset(void);
int64_t node_clock(const struct node *node);
int node_of_disk(uint64_t disk); /* -1: it is lost */
void node_start(int n);
void node_crash(int n);
const struct cn_engine_seen *node_remembers(int n); /* at the least */
void node_lose_disk(int n);
void node_event(struct event *event);
void node_after(int n);           /* after every call of its member */
void node_client(uint32_t shard); /* SHARDS: any */
void node_move(int n, uint32_t shard);
void node_forge(int n);

/* --- what lies beside the stores -------------------------------------------------------------- */

extern bool with_bodies; /* this seed's */
void bodies_reset(bool with);
bool bodies_put(int n, unsigned shard, unsigned op);
void bodies_keep(int n); /* now and then */
void bodies_dropped(unsigned shard, uint64_t disk);
bool bodies_may_lose(uint64_t disk);
void bodies_lost(uint64_t disk);
bool bodies_settled(const struct store *store, uint64_t disk);
void bodies_check(unsigned shard, const struct store *store);

/* --- the history ------------------------------------------------------------------------------ */

enum status { STATUS_OPEN, STATUS_OK, STATUS_REFUSED, STATUS_UNKNOWN };
struct op {
    uint8_t shard, object;
    bool write;
    enum status status;
    int32_t asked, answered;
    uint16_t len;
    uint64_t hash;
};
extern struct op ops[OPS + 1]; /* from 1 */
extern unsigned op_count;
uint64_t hash_step(uint64_t hash, unsigned op);
void check_reset(void);
bool check_was_accepted(void);
void check_accepted(void); /* what was answered until now may be lost: C16 */
void check_answer(int node, const struct out *out); /* when it leaves */
bool check_settled(void);                           /* all is well: it may end */
void check_history(void);
/* history.c: what was answered of the object, whose writes are these in the end. */
void history_check(unsigned shard, unsigned object, const uint16_t *writes, unsigned total);
void check_rest(uint64_t version_before);
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool failed, stuck;
extern char failure[300];
/* What of the world was seen: that a run was not idle. */
extern struct stats {
    uint64_t seeds, ops, answered, takeovers, moves, promotions, cancelled, fenced, copies, late,
        fresh, backs, accepted, ended;
} stats;

void fault_reset(void);
void fault(void);
void heal(void);
#endif
