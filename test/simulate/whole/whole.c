/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/whole.c - runs seeds.
 *
 *     whole [--seeds N | --until N] [--seed K] [--first K]
 *
 * As test/simulate/simulate.c; --until ends with the first seed that fails, and is 0 then: bugs are
 * planted by planted.mjs. Each seed runs in a child of its own, two at a time, so that none
 * leaves anything to the next, and one that ends by an assertion is a finding like any other. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "store/sqlite.h"
#include "test/simulate/whole/net.h"
#include "test/simulate/whole/whole.h"

int32_t now;
bool calm, verified, may_accept;
unsigned replicas;
struct stats stats;
struct node nodes[NODES];
uint64_t next_disk;
static bool was_accepted;
static uint64_t version_seen;

/* --- what engine.c asks ----------------------------------------------------------------------- */

int node_of_disk(uint64_t disk)
{
    for (int n = 0; n < NODES; n++)
        if (nodes[n].disk == disk)
            return n;
    return -1;
}

const struct cn_engine_seen *node_remembers(int n)
{
    return &nodes[n].seen;
}

/* Nobody answers under the old engine any more: whatever was told may be lost. */
void check_accepted(void)
{
    was_accepted = true;
    for (unsigned i = 1; i <= op_count; i++)
        if (ops[i].status != STATUS_UNKNOWN) {
            ops[i].status = STATUS_UNKNOWN;
            ops[i].answered = now;
        }
}

struct later {
    void (*call)(void *data);
    void *data;
};

void world_later(int32_t at, void (*call)(void *data), void *data)
{
    struct later *later = malloc(sizeof(*later));
    *later = (struct later){call, data};
    push(at, EVENT_CALL, NODES, 0, 0, later);
}

static uint16_t *lists[OPS + 1]; /* what was answered */
static uint16_t list_counts[OPS + 1];
static struct {
    int node;
    uint16_t life; /* of the node */
} askers[OPS + 1]; /* whom a client asked */

/* --- nodes ------------------------------------------------------------------------------------ */

void node_start(int n)
{
    struct node *node = &nodes[n];
    if (node->up || (engine_is_back() && !node->seen.life))
        return;
    TRACE("node %d starts, disk %d", n, (int)node->disk);
    node->up = true;
    node->life++;
    node->link = 0;
    node->link_dead = true;
    node->heard_back = false;
    node->frozen_until = 0;
    whole_start(n);
}

/* The process ends; what it has given to the kernel is there unless the power goes too. */
static void node_ends(int n, bool power)
{
    struct node *node = &nodes[n];
    struct whole *whole = &wholes[n];
    node->up = false;
    node->life++;
    process_kill(&whole->process);
    net_process_ends(&whole->process);
    whole->engine = NULL;
    whole->lane_open = false;
    whole->disk = power ? simdisk_crash(whole->disk, rnd(1u << 31)) : simdisk_copy(whole->disk);
    for (unsigned i = 1; i <= op_count; i++)
        if (ops[i].status == STATUS_OPEN && askers[i].node == n) {
            ops[i].status = STATUS_UNKNOWN;
            ops[i].answered = now;
        }
}

void node_crash(int n)
{
    bool power = one_in(2);
    if (!nodes[n].up)
        return;
    TRACE("node %d dies%s", n, power ? ", with its power" : "");
    node_ends(n, power);
}

static void empty_disk(int n)
{
    TRACE("node %d loses disk %d", n, (int)nodes[n].disk);
    nodes[n].disk = next_disk++;
    nodes[n].disk_life = 0;
    nodes[n].seen = (struct cn_engine_seen){0};
    wholes[n].disk = NULL;
}

static void on_ended(void *data)
{
    struct whole *whole = data;
    int n = whole->process.index;
    if (!nodes[n].up || !whole->ends)
        return;
    bool displaced = whole->displaced;
    TRACE("node %d has ended", n);
    node_ends(n, false);
    if (displaced && next_disk < DISKS)
        empty_disk(n);
    push(now + 200 + (int32_t)rnd(1500), EVENT_START, n, 0, 0, NULL);
}

void whole_ended(int n)
{
    wholes[n].ends = true;
    world_later(now, on_ended, &wholes[n]);
}

/* --- clients ---------------------------------------------------------------------------------- */

void whole_answered(unsigned op, enum status status, const uint16_t *list, unsigned count)
{
    struct op *x = &ops[op];
    if (x->status != STATUS_OPEN)
        return; /* the client has not waited */
    x->status = status;
    x->answered = now;
    x->len = 0;
    x->hash = 0;
    if (status != STATUS_OK)
        return;
    TRACE("op %u is answered: %u", op, count);
    x->len = (uint16_t)count;
    for (unsigned i = 0; i < count; i++)
        x->hash = hash_step(x->hash, list[i]);
    lists[op] = malloc(count * sizeof(*list) + 1);
    memcpy(lists[op], list, count * sizeof(*list));
    list_counts[op] = (uint16_t)count;
}

enum { ANSWER_MS = 40000 };

static unsigned ask(int n, unsigned shard, unsigned object, bool write)
{
    if (op_count == OPS)
        return 0;
    unsigned op = ++op_count;
    ops[op] = (struct op){
        .shard = (uint8_t)shard, .object = (uint8_t)object, .write = write, .asked = now};
    askers[op].node = n;
    askers[op].life = nodes[n].life;
    TRACE("node %d is asked for %s %u of object %u of shard %u", n, write ? "write" : "read", op,
          object, shard);
    push(now + 8000, EVENT_OP_TIMEOUT, NODES, op, 0, NULL);
    whole_ask(n, op);
    return op;
}

/* `at` NODES: any of them. */
static void client(unsigned at)
{
    int burst = one_in(4) ? 5 : 1;
    int n = at < NODES ? (int)at : (int)rnd(NODES);
    for (int i = 0; i < burst; i++)
        (void)ask(n, rnd(SHARDS), rnd(OBJECTS), one_in(2));
}

/* Clients come to this node, or to any, when something has happened: that is what matters. */
static void clients_come(unsigned at, unsigned count, uint32_t within_ms)
{
    for (unsigned i = 0; i < count && now < CALM_MS; i++)
        push(now + (int32_t)rnd(within_ms), EVENT_CLIENT, NODES, at, 0, NULL);
}

/* --- faults ----------------------------------------------------------------------------------- */

static unsigned focus; /* this seed's: of what there is more */
static unsigned lost_disks;
static int32_t lost_at;

static void freeze(int n, int32_t ms)
{
    nodes[n].frozen_until = now + ms;
    wholes[n].process.frozen_ns = (int64_t)nodes[n].frozen_until * 1000000;
    TRACE("node %d is frozen until %d", n, nodes[n].frozen_until);
    clients_come((unsigned)n, 4, (uint32_t)ms + 500);
}

static void fault_node(int n)
{
    if (!nodes[n].up) {
        node_start(n);
    } else if (one_in(2)) {
        uint64_t disk = nodes[n].disk;
        uint64_t life = nodes[n].disk_life;
        node_crash(n);
        if (one_in(2))
            engine_bury(disk, life);
        if (!one_in(3))
            push(now + 5 + (int32_t)rnd(2000), EVENT_START, n, 0, 0, NULL);
    } else {
        freeze(n, 100 + (int32_t)rnd(one_in(2) ? 1500 : 5000));
    }
}

static void fault_network(int n)
{
    clients_come((unsigned)n, 6, 5000);
    switch (rnd(3)) {
    case 0:
        nodes[n].no_engine = !nodes[n].no_engine;
        TRACE("node %d %s the engine", n, nodes[n].no_engine ? "does not reach" : "reaches");
        break;
    case 1:
        nodes[n].no_peer ^= (uint8_t)(1u << rnd(NODES));
        TRACE("node %d does not reach nodes %02x", n, nodes[n].no_peer);
        break;
    default:
        net_fault(n);
        break;
    }
}

/* It takes no more, or only so much, until the node is started anew. */
static void fill_disk(int n)
{
    struct simdisk_fault fault = {0};
    if (one_in(2))
        fault.space_bytes = 1 + rnd(100000);
    else
        fault = (struct simdisk_fault){.kinds = SIMDISK_WRITE | SIMDISK_SYNC | SIMDISK_NAME,
                                       .at = 1 + rnd(60),
                                       .code = one_in(2) ? -5 : -28,
                                       .sticky = !one_in(4)};
    TRACE("the disk of node %d %s", n, fault.space_bytes ? "runs full" : "fails");
    simdisk_set_fault(wholes[n].disk, &fault);
}

static void lose_disk(int n)
{
    if (engine_is_back() || lost_disks >= 2 || next_disk >= DISKS ||
        !engine_may_lose(nodes[n].disk))
        return;
    if (lost_disks && now - lost_at < 6000)
        return; /* the first loss is to be noticed */
    lost_at = now;
    lost_disks++;
    if (nodes[n].up)
        node_ends(n, true);
    empty_disk(n);
}

/* The directory of a node that is down, in place of a node's own: two processes with one disk, when
 * the other is started. One of them is displaced, and gets an empty directory. (A copy of one that
 * runs is of an earlier moment, and takes over at once: two answer until the other is told.) */
static void clone_disk(int n, int from)
{
    if (n == from || !wholes[from].disk || nodes[from].up || engine_is_back() || lost_disks >= 2 ||
        next_disk >= DISKS - 2 || !engine_may_lose(nodes[n].disk))
        return;
    if (lost_disks && now - lost_at < 6000)
        return;
    lost_at = now;
    lost_disks++;
    if (nodes[n].up)
        node_ends(n, true);
    TRACE("node %d has a copy of the disk of node %d", n, from);
    stats.fresh++;
    wholes[n].disk = simdisk_copy(wholes[from].disk);
    nodes[n].disk = nodes[from].disk;
    engine_disk_copied(nodes[n].disk);
    nodes[n].disk_life = nodes[from].disk_life;
    nodes[n].seen = nodes[from].seen;
    node_start(n);
}

static void fault_disk(int n)
{
    switch (rnd(5)) {
    case 0:
        lose_disk(n);
        break;
    case 1:
        clone_disk(n, (int)rnd(NODES));
        break;
    case 2:
        wholes[n].disk_slow_ms = one_in(2) ? 400 : 3000;
        TRACE("the disk of node %d is slow", n);
        break;
    default:
        if (nodes[n].up)
            fill_disk(n);
        break;
    }
}

static void operator(int n)
{
    struct whole *whole = &wholes[n];
    if (!nodes[n].up)
        return;
    switch (rnd(5)) {
    case 0:
        TRACE("operator: node %d is to leave", n);
        whole->leave = true;
        whole->hand_over = !one_in(4);
        whole_wake(n);
        break;
    case 1:
        TRACE("operator: node %d is to be drained", n);
        engine_drain(nodes[n].disk, true);
        break;
    default:
        whole->move_shard = (int)rnd(SHARDS);
        whole->move_to = (int)rnd(NODES);
        whole_wake(n);
        break;
    }
}

static void mend_some(void)
{
    for (int n = 0; n < NODES; n++) {
        if (one_in(2))
            nodes[n].no_engine = false;
        if (one_in(2))
            nodes[n].no_peer = 0;
        if (one_in(2))
            node_start(n);
        if (one_in(3))
            engine_drain(nodes[n].disk, false);
        wholes[n].disk_slow_ms = 8;
    }
}

void fault(void)
{
    int n = (int)rnd(NODES);
    if (calm)
        return;
    static const uint8_t first[] = {0, 3, 5, 7, 8};
    switch (focus < sizeof(first) && one_in(2) ? first[focus] : rnd(12)) {
    case 0:
    case 1:
    case 2:
        fault_node(n);
        break;
    case 3:
    case 4:
        fault_network(n);
        break;
    case 5:
    case 6:
        engine_fault();
        break;
    case 7:
        fault_disk(n);
        break;
    case 8:
    case 9:
        operator(n);
        break;
    default:
        mend_some();
        break;
    }
}

static void mend_disk(int n)
{
    static const struct simdisk_fault none;
    if (wholes[n].disk)
        simdisk_set_fault(wholes[n].disk, &none);
}

void heal(void)
{
    TRACE("all is mended");
    calm = true;
    engine_heal();
    for (int n = 0; n < NODES; n++) {
        nodes[n].no_engine = false;
        nodes[n].no_peer = 0;
        nodes[n].frozen_until = 0;
        wholes[n].process.frozen_ns = 0;
        mend_disk(n);
        engine_drain(nodes[n].disk, false);
        node_start(n);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

static enum phase { PHASE_RUN, PHASE_SETTLE, PHASE_READ, PHASE_OTHERS, PHASE_DONE } phase;
static unsigned reads[SHARDS][OBJECTS]; /* the op that reads it in the end */
static int32_t look_at;
static bool tries_others;
static const char *why;

static bool is_settled(void)
{
    uint64_t disks[CN_CLUSTER_REPLICAS_MAX], disk;
    why = "a client waits";
    for (unsigned i = 1; i <= op_count; i++)
        if (ops[i].status == STATUS_OPEN)
            return false;
    why = "the engine is away";
    if (!engine_up())
        return false;
    for (int n = 0; n < NODES; n++) {
        why = "a node is not there";
        if (!nodes[n].up || !wholes[n].lane_open)
            return false;
    }
    for (int shard = 0; shard < SHARDS; shard++) {
        why = "a shard has no owner";
        if (!engine_owner(shard, &disk) || node_of_disk(disk) < 0)
            return false;
        why = "a shard does not have the replicas that are wanted";
        if (engine_replicas(shard, disks) != replicas)
            return false;
        for (unsigned i = 0; i < replicas; i++)
            if (node_of_disk(disks[i]) < 0)
                return false;
    }
    return true;
}

static void begin_reads(void)
{
    for (unsigned shard = 0; shard < SHARDS; shard++)
        for (unsigned object = 0; object < OBJECTS; object++)
            reads[shard][object] = 0;
}

/* All objects are read, by whichever nodes. */
static bool has_read(int but)
{
    bool all = true;
    why = "an object is not read";
    for (unsigned shard = 0; shard < SHARDS; shard++)
        for (unsigned object = 0; object < OBJECTS; object++) {
            unsigned op = reads[shard][object];
            if (op && ops[op].status == STATUS_OK)
                continue;
            all = false;
            int n = (int)rnd(NODES);
            if (n == but)
                n = (n + 1) % NODES;
            if (!op || ops[op].status != STATUS_OPEN)
                reads[shard][object] = ask(n, shard, object, false);
        }
    return all;
}

/* C1 of object/call.h, O3 and O4 of remote/remote.h: calls of a lane to an object arrive in the
 * order in which they were sent. A write is behind what was there when it ran, a read too. */
static void check_order(unsigned shard, unsigned object, const uint16_t *writes, unsigned total)
{
    uint16_t at[OPS + 1] = {0};
    for (unsigned i = 0; i < total; i++)
        at[writes[i]] = (uint16_t)(i + 1);
    for (unsigned b = 2; b <= op_count && !failed; b++) {
        const struct op *y = &ops[b];
        bool ran = y->write ? at[b] : y->status == STATUS_OK;
        for (unsigned a = 1; a < b && ran && y->shard == shard && y->object == object; a++) {
            const struct op *x = &ops[a];
            if (x->shard != shard || x->object != object || askers[a].node != askers[b].node ||
                askers[a].life != askers[b].life || !(x->write ? at[a] : x->status == STATUS_OK))
                continue;
            unsigned first = x->write ? at[a] : x->len, second = y->write ? at[b] : y->len;
            if (y->write ? first >= second : first > second)
                fail("op %u of shard %u came before %u of the same lane, which was sent first", b,
                     shard, a);
        }
    }
}

static void check_end(void)
{
    for (unsigned shard = 0; shard < SHARDS; shard++)
        for (unsigned object = 0; object < OBJECTS && !failed; object++) {
            unsigned op = reads[shard][object];
            history_check(shard, object, lists[op], list_counts[op]);
            if (!failed && !was_accepted)
                check_order(shard, object, lists[op], list_counts[op]);
        }
}

static int dead = -1;

/* One that owns something dies, and others go on with what they have. */
static void kill_one(void)
{
    uint64_t disk = 0;
    for (int shard = 0; shard < SHARDS && dead < 0; shard++)
        if (engine_owner(shard, &disk))
            dead = node_of_disk(disk);
    if (dead < 0)
        return;
    TRACE("in the end node %d dies", dead);
    node_ends(dead, true);
    engine_bury(nodes[dead].disk, nodes[dead].disk_life);
}

static void look(void)
{
    look_at = now + 250;
    if (phase == PHASE_SETTLE && !is_settled()) {
        for (int n = 0; n < NODES; n++) {
            mend_disk(n);
            engine_drain(nodes[n].disk, false);
            node_start(n);
        }
    } else if (phase == PHASE_SETTLE) {
        begin_reads();
        phase = PHASE_READ;
        (void)has_read(-1);
    } else if (phase == PHASE_READ && has_read(-1)) {
        check_end();
        phase = PHASE_DONE;
        if (tries_others && !failed) {
            phase = PHASE_OTHERS;
            kill_one();
            begin_reads();
        }
    } else if (phase == PHASE_OTHERS && has_read(dead)) {
        check_end();
        phase = PHASE_DONE;
    }
}

/* --- a seed ----------------------------------------------------------------------------------- */

static void begin(uint64_t seed)
{
    events_reset(seed);
    now = 0;
    now_ns = 0;
    calm = failed = stuck = was_accepted = false;
    op_count = 0;
    machine_yield = one_in(4) ? 0 : 1u << (1 + rnd(6));
    machine_late = one_in(3) ? 0 : 20u << rnd(6);
    verified = one_in(4);
    replicas = one_in(4) ? 3 : 2;
    tries_others = one_in(3);
    focus = rnd(8);
    engine_reset();
    net_reset();
    pg_reset();
    for (int n = 0; n < NODES; n++) {
        int32_t drift = verified ? 600 : 150;
        nodes[n] = (struct node){.disk = (uint64_t)n + 1,
                                 .link_dead = true,
                                 .rate = 1000 - drift + (int32_t)rnd(2 * (uint32_t)drift + 1),
                                 .offset = (int32_t)rnd(100000)};
        push(one_in(4) ? 2000 + (int32_t)rnd(5000) : (int32_t)rnd(200), EVENT_START, n, 0, 0, NULL);
    }
    next_disk = NODES + 1;
    for (int i = 0; i < OPS_SPREAD; i++)
        push(600 + (int32_t)rnd(CALM_MS + QUIET_MS - 600), EVENT_CLIENT, NODES, NODES, 0, NULL);
    may_accept = one_in(8);
    if (one_in(4))
        for (int32_t at = 2000; one_in(2) && at < CALM_MS - 2000; at += 2000 + (int32_t)rnd(4000)) {
            push(at, EVENT_BACKUP, NODES, 0, 0, NULL);
            for (int i = 0; i < 6; i++)
                push(at + 300 + (int32_t)rnd(4000), EVENT_ENGINE_BACK, NODES, 0, 0, NULL);
        }
    unsigned faults = rnd(one_in(3) ? 40 : 16);
    for (unsigned i = 0; i < faults; i++)
        push(1000 + (int32_t)rnd(CALM_MS - 1000), EVENT_FAULT, NODES, 0, 0, NULL);
    phase = PHASE_RUN;
    look_at = NEVER;
}

/* N9 of fleet/cluster.h, O2 of remote/remote.h: no call waits for ever while its node lives. */
static void look_for_answer(unsigned op)
{
    if (ops[op].status != STATUS_OPEN)
        return;
    if (now - ops[op].asked > ANSWER_MS)
        fail("op %u of node %d has no answer", op, askers[op].node);
    push(now + 4000, EVENT_OP_TIMEOUT, NODES, op, 0, NULL);
}

static void dispatch(struct event *event)
{
    struct later later;
    switch (event->kind) {
    case EVENT_CALL:
        later = *(struct later *)event->p;
        free(event->p);
        later.call(later.data);
        break;
    case EVENT_ANSWER:
    case EVENT_LINK_UP:
    case EVENT_LINK_DOWN:
        pg_event(event);
        break;
    case EVENT_START:
        mend_disk(event->node);
        node_start(event->node);
        break;
    case EVENT_CLIENT:
        if (phase <= PHASE_SETTLE && now < CALM_MS + QUIET_MS)
            client(event->a);
        break;
    case EVENT_MOVE:
        wholes[event->node].move_shard = (int)event->a;
        wholes[event->node].move_to = (int)rnd(NODES);
        if (nodes[event->node].up)
            whole_wake(event->node);
        break;
    case EVENT_OP_TIMEOUT:
        look_for_answer(event->a);
        break;
    case EVENT_FAULT:
        fault();
        break;
    default:
        engine_event(event);
        break;
    }
    if (engine_version() != version_seen) {
        version_seen = engine_version();
        pg_hint_all();
        clients_come(NODES, calm ? 0 : 1 + rnd(2), 400);
    }
}

static void run(uint64_t seed)
{
    begin(seed);
    while (!failed && phase != PHASE_DONE) {
        int64_t next_ns = machine_run();
        int32_t next = events_next();
        if (next != NEVER && next * 1000000ll < next_ns)
            next_ns = next * 1000000ll;
        if (look_at != NEVER && look_at * 1000000ll < next_ns)
            next_ns = look_at * 1000000ll;
        if (!calm && next_ns >= CALM_MS * 1000000ll) {
            now_ns = CALM_MS * 1000000ll;
            now = CALM_MS;
            heal();
            phase = PHASE_SETTLE;
            look_at = CALM_MS + QUIET_MS + 500;
            continue;
        }
        if (next_ns >= END_MS * 1000000ll)
            break;
        now_ns = next_ns > now_ns ? next_ns : now_ns;
        now = (int32_t)(now_ns / 1000000);
        struct event event;
        if (look_at != NEVER && now >= look_at)
            look();
        else if (events_next() <= now && events_pop(&event))
            dispatch(&event);
    }
    stats.seeds++;
    stats.ops += op_count;
    for (unsigned i = 1; i <= op_count; i++)
        stats.answered += ops[i].status == STATUS_OK;
    if (failed || phase == PHASE_DONE)
        return;
    stuck = true;
    snprintf(failure, sizeof(failure), "stuck: %s", why);
    TRACE("%s", failure);
}

/* --- many -------------------------------------------------------------------------------------- */

enum { CHILDREN = 2, SECONDS_MAX = 10 };
static struct result {
    uint64_t seed;
    pid_t child; /* 0: it is not under way */
    bool failed, stuck;
    char failure[sizeof(failure)];
    struct stats stats;
    uint64_t switches;
} * results; /* shared with the children */
static uint64_t bad, held, switches;
static struct stats all;

static void add_up(const struct stats *of)
{
    const uint64_t *from = (const uint64_t *)of;
    uint64_t *to = (uint64_t *)&all;
    for (size_t i = 0; i < sizeof(*of) / sizeof(*from); i++)
        to[i] += from[i];
}

static void begin_child(struct result *result, uint64_t seed)
{
    *result = (struct result){.seed = seed, .failed = true};
    fflush(stdout);
    pid_t child = fork();
    if (child) {
        result->child = child;
        return;
    }
    alarm(SECONDS_MAX);
    run(seed);
    result->failed = failed;
    result->stuck = stuck;
    memcpy(result->failure, failure, sizeof(failure));
    result->stats = stats;
    result->switches = machine_switches;
    _exit(0);
}

/* Waits for one of them. */
static struct result *end_child(void)
{
    int status;
    pid_t child = wait(&status);
    for (int i = 0; i < CHILDREN; i++) {
        struct result *result = &results[i];
        if (result->child != child)
            continue;
        result->child = 0;
        if (WIFSIGNALED(status))
            snprintf(result->failure, sizeof(result->failure), "ended by signal %d",
                     WTERMSIG(status));
        add_up(&result->stats);
        switches += result->switches;
        return result;
    }
    abort();
}

/* How many of them were wrong; ends with the first if `first_only`, whose number is told. */
static uint64_t run_many(uint64_t first, uint64_t count, bool first_only, char *what, size_t size)
{
    uint64_t next = first, end = first + count, found = 0;
    unsigned under_way = 0;
    bad = held = 0;
    while (next < end || under_way) {
        for (int i = 0; i < CHILDREN && next < end; i++)
            if (!results[i].child) {
                begin_child(&results[i], next++);
                under_way++;
            }
        struct result *result = end_child();
        under_way--;
        bad += result->failed;
        held += result->stuck && !result->failed;
        if (!result->failed && !result->stuck)
            continue;
        if (first_only) {
            end = next;
            found = result->seed;
            snprintf(what, size, "%s", result->failure);
        } else if (bad + held <= 20) {
            printf("seed %llu: %s\n", (unsigned long long)result->seed, result->failure);
        }
    }
    return first_only ? found : bad + held;
}

static int report(uint64_t first, uint64_t count)
{
    uint64_t wrong = run_many(first, count, false, NULL, 0);
    printf("%llu seeds of whole nodes, %llu wrong, %llu stuck; %llu operations, %.0f %% answered; "
           "%llu claims, %llu fences, %llu moves, %llu copies, %llu promotions, %llu cancelled "
           "waits, %llu copied disks; engines that went back %llu, of which %llu were accepted, "
           "%llu nodes ended by it; %.0f switches of threads each\n",
           (unsigned long long)count, (unsigned long long)bad, (unsigned long long)held,
           (unsigned long long)all.ops, 100.0 * (double)all.answered / (double)(all.ops + 1),
           (unsigned long long)all.takeovers, (unsigned long long)all.fenced,
           (unsigned long long)all.moves, (unsigned long long)all.copies,
           (unsigned long long)all.promotions, (unsigned long long)all.cancelled,
           (unsigned long long)all.fresh, (unsigned long long)all.backs,
           (unsigned long long)all.accepted, (unsigned long long)all.ended,
           (double)switches / (double)(count + 1));
    return wrong != 0;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 1000;
    bool one = false, until = false;
    struct cn_err err;
    /* Addresses decide the order in some tables. */
    if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) &&
        personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE) >= 0)
        execv("/proc/self/exe", argv);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--seeds")) {
            count = strtoull(value, NULL, 10);
        } else if (!strcmp(argv[i], "--until")) {
            until = true;
            count = strtoull(value, NULL, 10);
        } else if (!strcmp(argv[i], "--first") || !strcmp(argv[i], "--seed")) {
            one = one || !strcmp(argv[i], "--seed");
            first = strtoull(value, NULL, 10);
        } else {
            fprintf(stderr, "whole: what is %s?\n", argv[i]);
            return 2;
        }
        i++;
    }
    cn_diag_setup(CN_DIAG_PRETTY, one ? CN_DIAG_INFO : (enum cn_diag_level)(CN_DIAG_ERROR + 1));
    machine_init();
    if (cn_sqlite_setup(&err) < 0)
        return 2;
    results = mmap(NULL, CHILDREN * sizeof(*results), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED)
        return 2;
    if (until) {
        char what[sizeof(failure)];
        uint64_t found = run_many(first, count, true, what, sizeof(what));
        if (found)
            printf("%llu %s\n", (unsigned long long)found, what);
        return found == 0;
    }
    if (!one)
        return report(first, count);
    trace_on = true;
    setvbuf(stdout, NULL, _IOLBF, 0);
    run(first);
    printf("seed %llu: %s\n", (unsigned long long)first,
           failed || stuck ? failure : "as it must be");
    return failed || stuck;
}
