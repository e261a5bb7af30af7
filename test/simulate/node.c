/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/node.c - nodes: what a host does for its member, with stores that are lists. */
#include <string.h>

#include "base/mem.h"
#include "test/simulate/world.h"

struct node nodes[NODES];
uint64_t next_disk;

enum message_kind { MESSAGE_OP, MESSAGE_REPLY, MESSAGE_MEMBER, MESSAGE_COPY };
struct message {
    struct message *next;
    enum message_kind kind;
    int from;
    uint16_t from_life, op, len;
    enum status status;
    uint64_t hash;
    struct cn_member_message m;
    uint16_t records[OPS + 1]; /* of a feed or a copy: from m.from + 1 on */
};
static struct message *free_messages;

static struct message *message_new(enum message_kind kind, int from)
{
    struct message *message = free_messages;
    if (message)
        free_messages = message->next;
    else
        message = cn_alloc(sizeof(*message));
    message->kind = kind;
    message->from = from;
    message->from_life = nodes[from].life;
    return message;
}

static void message_free(struct message *message)
{
    message->next = free_messages;
    free_messages = message;
}

/* --- clocks and the network ------------------------------------------------------------------- */

int64_t node_clock(const struct node *node)
{
    return node->offset + (int64_t)now * node->rate / 1000;
}

static int32_t true_time(const struct node *node, int64_t clock)
{
    return (int32_t)((clock - node->offset) * 1000 / node->rate) + 1;
}

static void message_send(struct message *message, int to)
{
    int from = message->from;
    /* Feeds are lost more often, so that followers have to ask the engine. */
    bool feed = message->kind == MESSAGE_MEMBER && message->m.to > message->m.from;
    if ((nodes[from].no_peer >> to & 1) || (!calm && one_in(feed ? 6 : 100))) {
        message_free(message);
        return;
    }
    push(now + 1 + (int32_t)rnd(one_in(12) && !calm ? 600 : 4), EVENT_MESSAGE, to, 0, 0, message);
}

int node_of_disk(uint64_t disk)
{
    for (int n = 0; n < NODES; n++)
        if (nodes[n].disk == disk)
            return n;
    return -1;
}

/* --- answers to clients ----------------------------------------------------------------------- */

static void finish(unsigned op, enum status status, unsigned len, uint64_t hash)
{
    if (ops[op].status != STATUS_OPEN)
        return;
    ops[op].status = status;
    ops[op].answered = now;
    ops[op].len = (uint16_t)len;
    ops[op].hash = hash;
    TRACE("client: %s %u of shard %d object %d is %s (%u writes)", ops[op].write ? "write" : "read",
          op, ops[op].shard, ops[op].object,
          status == STATUS_OK        ? "answered"
          : status == STATUS_REFUSED ? "refused"
                                     : "unknown",
          len);
}

static void answer_client(int n, int to, uint16_t to_life, unsigned op, enum status status,
                          unsigned len, uint64_t hash)
{
    if (to == n) {
        if (nodes[n].life == to_life)
            finish(op, status, len, hash);
        return;
    }
    struct message *message = message_new(MESSAGE_REPLY, n);
    message->op = (uint16_t)op;
    message->status = status;
    message->len = (uint16_t)len;
    message->hash = hash;
    message_send(message, to);
}

static void gate(int n)
{
    struct node *node = &nodes[n];
    unsigned kept = 0;
    for (unsigned i = 0; i < node->out_count; i++) {
        struct out *out = &node->outs[i];
        if (cn_member_may_leave(&node->member, node_clock(node), out->shard, out->epoch, out->lsn,
                                out->ticket)) {
            check_answer(n, out);
            answer_client(n, out->from, out->from_life, out->op, STATUS_OK, out->len, out->hash);
        } else {
            node->outs[kept++] = *out;
        }
    }
    node->out_count = kept;
}

void node_after(int n)
{
    struct node *node = &nodes[n];
    if (node->out_count)
        gate(n);
    int64_t next = cn_member_next(&node->member);
    if (next == INT64_MAX)
        return;
    int32_t at = true_time(node, next);
    if (at <= now)
        at = now + 1;
    if (at >= node->tick_at)
        return;
    node->tick_at = at;
    push(at, EVENT_TICK, n, 0, 0, NULL);
}

static void drop_outs(int n, unsigned shard)
{
    struct node *node = &nodes[n];
    unsigned kept = 0;
    for (unsigned i = 0; i < node->out_count; i++) {
        struct out *out = &node->outs[i];
        if (out->shard == shard)
            answer_client(n, out->from, out->from_life, out->op, STATUS_UNKNOWN, 0, 0);
        else
            node->outs[kept++] = *out;
    }
    node->out_count = kept;
}

/* --- what the member wants -------------------------------------------------------------------- */

static int index_of(const struct node *node)
{
    return (int)(node - nodes);
}

/* Small ones, some of which two fill a batch, and some that alone are more than one may have. */
static uint64_t host_weigh(void *data, uint32_t shard, uint64_t lsn)
{
    struct node *node = data;
    uint32_t op = node->store[shard].op[lsn];
    return op % 5 ? 100 + op : op % 3 ? CN_MEMBER_BATCH_BYTES / 2 : CN_MEMBER_BATCH_BYTES + op;
}

static void host_send(void *data, const struct cn_engine_statement *statement)
{
    struct node *node = data;
    uint16_t records[OPS + 1];
    unsigned count = 0;
    uint64_t bytes = 0;
    if (statement->kind == CN_ENGINE_APPEND)
        for (size_t i = 0; i < statement->count; i++)
            for (uint64_t l = statement->items[i].from + 1; l <= statement->items[i].to; l++) {
                records[count++] = node->store[statement->items[i].shard].op[l];
                bytes += host_weigh(node, statement->items[i].shard, l);
            }
    if (bytes > CN_MEMBER_BATCH_BYTES && count > 1)
        fail("node %d: a batch of %u records has %llu bytes", index_of(node), count,
             (unsigned long long)bytes);
    bool acts = statement->kind != CN_ENGINE_JOIN && statement->kind != CN_ENGINE_HELLO &&
                statement->kind != CN_ENGINE_BEAT && statement->kind != CN_ENGINE_LEAVE;
    if (acts && node_remembers(index_of(node))->life != node->member.config.life) /* C15 */
        fail("node %d acts on a map, and its disk does not remember that it has joined",
             index_of(node));
    if (statement->kind == CN_ENGINE_DROP)
        node->dropping[statement->items[0].shard] = statement->items[0].disk;
    engine_send(index_of(node), statement, records);
}

static void host_connect(void *data, uint64_t link)
{
    engine_connect(index_of(data), link);
}

static void host_tell(void *data, uint64_t session, uint64_t disk,
                      const struct cn_member_message *told)
{
    struct node *node = data;
    int to = node_of_disk(disk);
    if (to < 0 || to == index_of(node))
        return;
    bool copy = told->kind == CN_MESSAGE_COPY;
    struct message *message = message_new(copy ? MESSAGE_COPY : MESSAGE_MEMBER, index_of(node));
    message->m = *told;
    if (told->to > told->from)
        memcpy(message->records, &node->store[told->shard].op[told->from + 1],
               (told->to - told->from) * sizeof(uint16_t));
    message_send(message, to);
}

static void store_clear(struct store *store)
{
    store->here = store->on_disk = store->serving = store->stopping = false;
    store->total = store->synced = 0;
    store->generation++;
}

/* Who asks now asks the new owner, and those who think that they still are. */
static void changed_hands(int n, uint32_t shard)
{
    for (int i = 0; i < 4; i++)
        push(now + (int32_t)rnd(800), EVENT_CLIENT, NODES, shard, 0, NULL);
    if (!calm && one_in(4))
        push(now + 1 + (int32_t)rnd(500), EVENT_MOVE, n, shard, 0, NULL);
}

static void host_act(void *data, enum cn_member_act act, uint32_t index, uint64_t epoch,
                     uint64_t from, uint64_t lsn)
{
    struct node *node = data;
    int n = index_of(node);
    struct store *store = &node->store[index];
    static const char *const names[] = {"create", "apply",  "forget", "fed",   "settle", "serve",
                                        "stop",   "resume", "sync",   "close", "discard"};
    if (act != CN_ACT_FED && act != CN_ACT_FORGET && act != CN_ACT_SETTLE)
        TRACE("node %d: %s shard %u epoch %d (%d..%d]", n, names[act], index, (int)epoch, (int)from,
              (int)lsn);
    switch (act) {
    case CN_ACT_CREATE:
        store_clear(store);
        store->here = true;
        break;
    case CN_ACT_APPLY:
        memcpy(&store->op[from + 1], &store->tail[from - store->tail_from],
               (lsn - from) * sizeof(uint16_t));
        store->total = (uint16_t)lsn;
        break;
    case CN_ACT_FED:
        memcpy(&store->op[from + 1], &node->fed->records[from - node->fed->m.from],
               (lsn - from) * sizeof(uint16_t));
        store->total = (uint16_t)lsn;
        break;
    case CN_ACT_SERVE:
        if (node->member.config.shut)
            fail("node %d serves shard %u before it is open", n, index); /* C12 */
        store->serving = true;
        store->stopping = false;
        store->epoch = epoch;
        store->total = (uint16_t)lsn;
        changed_hands(n, index);
        break;
    case CN_ACT_STOP:
        store->stopping = true;
        push(now + 1 + (int32_t)rnd(20), EVENT_STOPPED, n, index, 0, NULL);
        break;
    case CN_ACT_RESUME:
        store->stopping = false;
        break;
    case CN_ACT_SYNC:
        push(now + 1 + (int32_t)rnd(60), EVENT_SYNCED, n, index | 0x200u,
             (uint32_t)lsn | (uint32_t)store->generation << 16, NULL);
        break;
    case CN_ACT_CLOSE:
        store->serving = store->stopping = false;
        store->total = (uint16_t)lsn;
        drop_outs(n, index);
        break;
    case CN_ACT_DISCARD:
        store_clear(store);
        break;
    default:
        break;
    }
}

static void host_note(void *data, enum cn_member_note note)
{
    struct node *node = data;
    static const char *const names[] = {"",
                                        "was fenced",
                                        "refuses the link",
                                        "is drained",
                                        "has left",
                                        "knows that the engine has gone back",
                                        "is displaced",
                                        "joins an engine that was accepted"};
    if (note != CN_NOTE_GATE)
        TRACE("node %d: %s", index_of(node), names[note]);
    if (note == CN_NOTE_ENGINE_LOST_DATA && !node->heard_back && !check_was_accepted())
        fail("node %d: the engine has lost data", index_of(node));
    if (note == CN_NOTE_ENGINE_LOST_DATA) { /* what is to be remembered is written first */
        stats.ended++;
        node->seen = node->seen_next;
    }
    if (note == CN_NOTE_LEFT || note == CN_NOTE_ENGINE_LOST_DATA)
        node->left = true; /* ends with the event */
}

static void host_remember(void *data, const struct cn_engine_seen *seen)
{
    struct node *node = data;
    if (now >= node->seen_at)
        node->seen = node->seen_next;
    node->seen_next = *seen;
    node->seen_at = now + (int32_t)rnd(40);
    push(node->seen_at, EVENT_REMEMBERED, index_of(node), 0, 0, NULL);
}

const struct cn_engine_seen *node_remembers(int n)
{
    struct node *node = &nodes[n];
    if (now >= node->seen_at)
        node->seen = node->seen_next;
    return &node->seen;
}

static struct cn_member_host hosts[NODES];

/* --- processes -------------------------------------------------------------------------------- */

void node_start(int n)
{
    struct node *node = &nodes[n];
    /* A disk that has never seen the right engine cannot know that this one is not. */
    if (node->up || (engine_is_back() && !node->seen.life))
        return;
    node->up = true;
    node->left = false;
    node->life++;
    node->frozen_until = 0;
    node->out_count = 0;
    node->tick_at = NEVER;
    node->link = 0;
    node->link_dead = true;
    node->heard_back = false;
    node->disk_life++;
    memset(node->whole, 0, sizeof(node->whole));
    memset(node->whole_epoch, 0, sizeof(node->whole_epoch));
    memset(node->dropping, 0, sizeof(node->dropping));
    TRACE("node %d starts, disk %d", n, (int)node->disk);
    struct cn_member_config config = {
        .disk = node->disk,
        .life = node->disk_life << 20,
        .seen = node->seen,
        .shard_count = SHARDS,
        .replicas = replicas,
        .verified = verified,
        .shut = one_in(3),
        .waits_for_whole = with_bodies,
        .settle_ms = 2500,
        .replace_ms = 3000,
        .copy_ms = 1500,
        .leave_ms = one_in(2) ? 200 : 2500,
        .feed_ms = one_in(2) ? 200 : 1000,
    };
    cn_member_defaults(&config);
    hosts[n] = (struct cn_member_host){host_send, host_connect, host_tell,     host_act,
                                       host_note, host_weigh,   host_remember, node};
    if (PLANTED_MEMBER(FORGETFUL))
        config.seen = (struct cn_engine_seen){0};
    if (cn_member_init(&node->member, &config, &hosts[n]) < 0)
        fail("the configuration is refused");
    for (unsigned i = 0; i < SHARDS; i++) {
        struct store *store = &node->store[i];
        store->here = store->on_disk;
        store->serving = store->stopping = false;
        store->total = store->synced;
        store->generation++;
        memcpy(store->op, store->disk_op, sizeof(store->op));
        if (store->here)
            cn_member_found(&node->member, i, store->synced, store->synced);
    }
    cn_member_start(&node->member, node_clock(node));
    node_after(n);
    push(now + 50 + (int32_t)rnd(800), EVENT_CHECKPOINT, n, 0, 0, NULL);
}

void node_crash(int n)
{
    struct node *node = &nodes[n];
    if (!node->up)
        return;
    TRACE("node %d dies", n);
    node->seen_next = *node_remembers(n);
    cn_member_fini(&node->member);
    node->up = false;
    node->life++;
    node->out_count = 0;
    for (unsigned i = 0; i < SHARDS; i++)
        node->store[i].serving = false;
}

void node_lose_disk(int n)
{
    struct node *node = &nodes[n];
    TRACE("node %d loses disk %d", n, (int)node->disk);
    node_crash(n);
    for (unsigned i = 0; i < SHARDS; i++)
        store_clear(&node->store[i]);
    bodies_lost(node->disk);
    if (PLANTED_MEMBER(IGNORE_TRIM)) /* a replica by the name of its node, not of its disk */
        return;
    node->disk = next_disk++;
    node->disk_life = 0;
    node->seen = node->seen_next = (struct cn_engine_seen){0};
}

/* --- clients ---------------------------------------------------------------------------------- */

static void measure(const struct store *store, unsigned object, struct out *out)
{
    out->len = 0;
    out->hash = 0;
    for (unsigned i = 1; i <= store->total; i++)
        if (ops[store->op[i]].object == object) {
            out->len++;
            out->hash = hash_step(out->hash, store->op[i]);
        }
}

static void serve(int n, unsigned op, int from, uint16_t from_life)
{
    struct node *node = &nodes[n];
    unsigned shard = ops[op].shard;
    struct store *store = &node->store[shard];
    if (!cn_member_may_take(&node->member, node_clock(node), shard)) {
        answer_client(n, from, from_life, op, STATUS_REFUSED, 0, 0);
        return;
    }
    if (!bodies_put(n, shard, op)) {
        answer_client(n, from, from_life, op, STATUS_REFUSED, 0, 0);
        return;
    }
    if (ops[op].write)
        store->op[++store->total] = (uint16_t)op;
    struct out *out = &node->outs[node->out_count++];
    *out = (struct out){.op = (uint16_t)op,
                        .lsn = PLANTED(READ_EARLY) && !ops[op].write ? 0 : store->total,
                        .shard = (uint8_t)shard,
                        .from = (uint8_t)from,
                        .from_life = from_life,
                        .epoch = store->epoch};
    measure(store, ops[op].object, out);
    TRACE("node %d: %s %u of shard %u runs at %u", n, ops[op].write ? "write" : "read", op, shard,
          store->total);
    out->ticket = cn_member_ticket(&node->member, node_clock(node));
    if (ops[op].write)
        cn_member_appended(&node->member, node_clock(node), shard, store->total);
    node_after(n);
}

/* Mostly any node, which asks its map; else one that serves, rightly or not. */
static int asked_node(unsigned shard, bool any)
{
    int n = (int)rnd(NODES);
    for (int i = 0; i < NODES && !any; i++, n = (n + 1) % NODES)
        if (nodes[n].up && nodes[n].store[shard].serving)
            return n;
    return n;
}

void node_client(uint32_t which)
{
    if (op_count == OPS)
        return;
    unsigned op = ++op_count;
    unsigned shard = which < SHARDS ? which : rnd(SHARDS);
    int n = asked_node(shard, which == SHARDS || one_in(4));
    struct node *node = &nodes[n];
    ops[op] = (struct op){
        .shard = (uint8_t)shard, .object = (uint8_t)rnd(OBJECTS), .write = one_in(2), .asked = now};
    push(now + 8000, EVENT_OP_TIMEOUT, NODES, op, 0, NULL);
    uint64_t disk = 0;
    uint64_t owner = node->up ? cn_member_owner(&node->member, ops[op].shard, &disk) : 0;
    int to = owner ? node_of_disk(disk) : -1;
    if (to < 0) {
        finish(op, STATUS_REFUSED, 0, 0);
        return;
    }
    if (node->frozen_until > now)
        return; /* time will tell */
    if (to == n) {
        serve(n, op, n, node->life);
        return;
    }
    struct message *message = message_new(MESSAGE_OP, n);
    message->op = (uint16_t)op;
    message_send(message, to);
}

void node_move(int n, uint32_t shard)
{
    struct node *node = &nodes[n];
    if (!node->up || node->frozen_until > now || !node->member.peer_count)
        return;
    for (int i = 0; i < 4; i++)
        if (cn_member_move(&node->member, node_clock(node), shard,
                           node->member.peers[rnd(node->member.peer_count)].id))
            break;
    node_after(n);
}

/* Something in between says that a node is gone. It may be, or not. */
void node_forge(int n)
{
    struct node *node = &nodes[n];
    if (!node->up || node->frozen_until > now || !node->member.peer_count)
        return;
    uint64_t session = node->member.peers[rnd(node->member.peer_count)].id;
    cn_member_silent(&node->member, node_clock(node), session);
    node_after(n);
}

/* --- events ----------------------------------------------------------------------------------- */

static void receive(int n, struct message *message)
{
    struct node *node = &nodes[n];
    switch (message->kind) {
    case MESSAGE_OP:
        serve(n, message->op, message->from, message->from_life);
        break;
    case MESSAGE_REPLY:
        finish(message->op, message->status, message->len, message->hash);
        break;
    case MESSAGE_MEMBER:
        node->fed = message;
        cn_member_message(&node->member, node_clock(node), &message->m);
        break;
    case MESSAGE_COPY: {
        struct store *store = &node->store[message->m.shard];
        if (node->member.shards[message->m.shard].role != CN_ROLE_COPYING || store->here)
            break;
        if (!calm && one_in(20)) { /* what came is none */
            cn_member_copy_failed(&node->member, node_clock(node), message->m.shard);
            break;
        }
        store_clear(store);
        store->here = true;
        memcpy(&store->op[1], message->records, message->m.to * sizeof(uint16_t));
        store->total = (uint16_t)message->m.to;
        push(now + 5 + (int32_t)rnd(one_in(5) ? 1200 : 100), EVENT_SYNCED, n,
             message->m.shard | 0x100u, (uint32_t)message->m.to | (uint32_t)store->generation << 16,
             NULL);
        break;
    }
    }
    message_free(message);
}

static void begin_checkpoint(int n)
{
    struct node *node = &nodes[n];
    unsigned shard = rnd(SHARDS);
    struct store *store = &node->store[shard];
    if (store->here && node->member.shards[shard].role >= CN_ROLE_FOLLOWING)
        push(now + 2 + (int32_t)rnd(60), EVENT_SYNCED, n, shard,
             (uint32_t)node->member.shards[shard].have | (uint32_t)store->generation << 16, NULL);
    bodies_keep(n);
    for (unsigned i = 0; i < SHARDS; i++) /* until the next */
        cn_member_busy(&node->member, node_clock(node), i, !calm && one_in(10));
    push(now + 100 + (int32_t)rnd(700), EVENT_CHECKPOINT, n, 0, 0, NULL);
}

static void synced(int n, unsigned shard, unsigned why, unsigned lsn, unsigned generation)
{
    bool copy = why == 0x100;
    struct node *node = &nodes[n];
    struct store *store = &node->store[shard];
    if (store->generation != generation)
        return;
    /* A freeze may have put off this event, and not one that came after it; a disk writes in order,
     * and has what was synced before. */
    if (store->on_disk && lsn <= store->synced && !why)
        return;
    memcpy(store->disk_op, store->op, (lsn + 1) * sizeof(uint16_t));
    store->synced = (uint16_t)lsn;
    store->on_disk = true;
    if (why == 0x200)
        cn_member_synced(&node->member, node_clock(node), shard, lsn);
    else if (copy)
        cn_member_copied(&node->member, node_clock(node), shard, lsn);
    else
        cn_member_checkpointed(&node->member, node_clock(node), shard, lsn);
}

static void stopped(int n, unsigned shard)
{
    struct node *node = &nodes[n];
    if (!node->store[shard].stopping)
        return;
    for (unsigned i = 0; i < node->out_count; i++)
        if (node->outs[i].shard == shard) {
            push(now + 3 + (int32_t)rnd(20), EVENT_STOPPED, n, shard, 0, NULL);
            return;
        }
    cn_member_stopped(&node->member, node_clock(node), shard);
}

static void take_answer(int n, struct answer *answer)
{
    struct node *node = &nodes[n];
    if (answer->a.kind == CN_ENGINE_READ && answer->a.link == node->link) {
        /* The member is told, and says which of it to use: APPLY, FORGET. */
        struct cn_member_shard *shard = &node->member.shards[answer->items[0].shard];
        struct store *store = &node->store[answer->items[0].shard];
        if (shard->read == CN_READ_SENT && shard->read_number == answer->a.number) {
            store->tail_from = (uint16_t)(answer->items[0].to - answer->record_count);
            memcpy(store->tail, answer->records, sizeof(store->tail));
        }
    }
    cn_member_answer(&node->member, node_clock(node), &answer->a);
    if (answer->a.kind == CN_ENGINE_DROP && answer->a.live && answer->a.done &&
        answer->a.link == node->link) {
        uint64_t disk = node->dropping[answer->items[0].shard];
        if (disk != node->disk) /* one that gives up its own keeps what it has (Z5) */
            bodies_dropped(answer->items[0].shard, disk);
    }
    answer_free(answer);
}

static void discard(struct event *event)
{
    if (event->kind == EVENT_ANSWER)
        answer_free(event->p);
    else if (event->kind == EVENT_MESSAGE)
        message_free(event->p);
}

void node_event(struct event *event)
{
    int n = event->node;
    struct node *node = &nodes[n];
    bool alive = node->up && (event->life == node->life || event->kind == EVENT_MESSAGE);
    if (!alive) {
        discard(event);
        return;
    }
    if (node->frozen_until > now) {
        struct event later = *event;
        push(node->frozen_until, later.kind, n, later.a, later.b, later.p);
        if (later.kind == EVENT_TICK && node->tick_at == later.at)
            node->tick_at = node->frozen_until;
        return;
    }
    switch (event->kind) {
    case EVENT_TICK:
        if (node->tick_at != event->at)
            return;
        node->tick_at = NEVER;
        if (calm || one_in(3))
            cn_member_open(&node->member, node_clock(node));
        cn_member_tick(&node->member, node_clock(node));
        if (cn_member_next(&node->member) <= node_clock(node)) /* else its host is never idle */
            fail("node %d has done what was due, and is due again at once", n);
        break;
    case EVENT_ANSWER:
        take_answer(n, event->p);
        break;
    case EVENT_LINK_UP:
        if (!node->link_dead && node->link == event->a)
            cn_member_link_up(
                &node->member, node_clock(node), event->a,
                &(struct cn_engine_link){.timeline = event->b & ~(1u << 31),
                                         .flaws = event->b >> 31 ? CN_ENGINE_ASYNC : 0});
        break;
    case EVENT_LINK_DOWN:
        cn_member_link_down(&node->member, node_clock(node), event->a);
        break;
    case EVENT_MESSAGE:
        receive(n, event->p);
        break;
    case EVENT_CHECKPOINT:
        begin_checkpoint(n);
        break;
    case EVENT_SYNCED:
        synced(n, event->a & 0xff, event->a & 0x300, event->b & 0xffff, event->b >> 16);
        break;
    case EVENT_STOPPED:
        stopped(n, event->a);
        break;
    case EVENT_REMEMBERED:
        cn_member_remembered(&node->member, node_clock(node), node_remembers(n));
        break;
    default:
        break;
    }
    node_after(n);
    if (node->left)
        node_crash(n);
}

void nodes_reset(void)
{
    for (int n = 0; n < NODES; n++) {
        struct node *node = &nodes[n];
        if (node->up)
            cn_member_fini(&node->member);
        node->up = node->left = node->no_engine = false;
        node->no_peer = 0;
        node->life = 0;
        node->disk = (uint64_t)n + 1;
        node->disk_life = 0;
        node->seen = node->seen_next = (struct cn_engine_seen){0};
        node->seen_at = 0;
        node->out_count = 0;
        node->frozen_until = 0;
        node->link = 0;
        node->link_dead = true;
        node->link_server = 0;
        node->link_server_life = 0;
        for (int i = 0; i < SHARDS; i++) {
            store_clear(&node->store[i]);
            node->store[i].generation = 0;
        }
        /* Lease reads bear rates that differ by less than ttl_ms / lease_ms; verified ones any. */
        int32_t drift = verified ? 600 : 150;
        node->rate = 1000 - drift + (int32_t)rnd(2 * (uint32_t)drift + 1);
        node->offset = (int32_t)rnd(100000);
    }
    next_disk = NODES + 1;
}
