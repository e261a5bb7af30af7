/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/node.c - a node: what a host does for its member, with stores that are lists. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/loop.h"
#include "cluster/engine_pg.h"
#include "test/cluster/wire.h"

enum { OUTS = 4096, CHECKPOINT_MS = 200 };

struct store {
    bool here, serving, stopping;
    uint32_t total, synced;
    uint64_t epoch;
    uint32_t tail_from, tail_count;
    uint32_t op[SHARD_OPS + 1], tail[SHARD_OPS + 1];
};

struct out {
    uint32_t op, shard, lsn, len;
    bool dump;
    uint64_t epoch, ticket, hash;
};

static struct cn_member member;
static struct cn_engine_pg *engine;
static struct store stores[SHARDS];
static struct out outs[OUTS];
static unsigned out_count;
static uv_loop_t loop;
static uv_timer_t timer, checkpoint_timer;
static uv_poll_t poll_handle;
static const char *dir;
static unsigned me;
static uint64_t disk;
static int fd;
static uint32_t cut;
static struct wire in, out_wire;
static const struct wire *fed; /* what is being told */

/* --- messages out ---------------------------------------------------------------------------- */

static void tell(unsigned to, struct wire *wire)
{
    wire->from = me;
    if (to == CONTROL || !(cut >> to & 1))
        wire_send(fd, dir, to, wire);
}

/* By the engine's word the disk is on that node. */
static unsigned node_of(uint64_t of_disk)
{
    return (unsigned)(of_disk & 0xff) - 1;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time.tv_sec * 1000ll + time.tv_nsec / 1000000;
}

/* --- files ----------------------------------------------------------------------------------- */

static void path_of(char *path, size_t size, const char *what, unsigned number)
{
    snprintf(path, size, "%s/node%u/%s%u", dir, me, what, number);
}

static bool save(const char *path, const void *bytes, size_t size)
{
    char fresh[300];
    snprintf(fresh, sizeof(fresh), "%s.tmp", path);
    int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool good = file >= 0 && write(file, bytes, size) == (ssize_t)size && fdatasync(file) == 0;
    if (file >= 0)
        close(file);
    return good && rename(fresh, path) == 0;
}

static ssize_t load(const char *path, void *bytes, size_t size)
{
    int file = open(path, O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, bytes, size);
    if (file >= 0)
        close(file);
    return got;
}

static bool save_shard(unsigned index, uint32_t lsn)
{
    char path[300];
    path_of(path, sizeof(path), "shard", index);
    stores[index].op[0] = lsn;
    return save(path, stores[index].op, (lsn + 1) * sizeof(uint32_t));
}

static void load_all(void)
{
    char path[300];
    for (unsigned i = 0; i < SHARDS; i++) {
        path_of(path, sizeof(path), "shard", i);
        ssize_t got = load(path, stores[i].op, sizeof(stores[i].op));
        if (got < 4)
            continue;
        stores[i].here = true;
        stores[i].total = stores[i].synced = stores[i].op[0];
        cn_member_found(&member, i, stores[i].total);
    }
}

/* --- answers --------------------------------------------------------------------------------- */

static void answer(const struct out *out, enum wire_status status)
{
    out_wire = (struct wire){.kind = WIRE_REPLY,
                             .op = out->op,
                             .shard = out->shard,
                             .status = status,
                             .len = out->len,
                             .hash = out->hash};
    if (out->dump && status == STATUS_OK) {
        out_wire.count = out->lsn;
        memcpy(out_wire.records, &stores[out->shard].op[1], out->lsn * sizeof(uint32_t));
    }
    tell(CONTROL, &out_wire);
}

static void drop_outs(unsigned shard)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < out_count; i++)
        if (outs[i].shard == shard)
            answer(&outs[i], STATUS_UNKNOWN);
        else
            outs[kept++] = outs[i];
    out_count = kept;
}

static void gate(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < out_count; i++)
        if (cn_member_may_leave(&member, now(), outs[i].shard, outs[i].epoch, outs[i].lsn,
                                outs[i].ticket))
            answer(&outs[i], STATUS_OK);
        else
            outs[kept++] = outs[i];
    out_count = kept;
}

static void stop_when_quiet(unsigned index)
{
    for (unsigned i = 0; i < out_count; i++)
        if (outs[i].shard == index)
            return;
    stores[index].stopping = false;
    cn_member_stopped(&member, now(), index);
}

static void on_time(uv_timer_t *handle);

/* After every call of the member. */
static void after(void)
{
    gate();
    for (unsigned i = 0; i < SHARDS; i++)
        if (stores[i].stopping)
            stop_when_quiet(i);
    int64_t next = cn_member_next(&member), left = next - now();
    uv_update_time(&loop);
    uv_timer_start(&timer, on_time, left > 0 ? (uint64_t)left : 0, 0);
}

static void on_time(uv_timer_t *handle)
{
    cn_member_tick(&member, now());
    after();
}

/* --- what the member wants ------------------------------------------------------------------- */

static void host_send(void *data, const struct cn_engine_statement *statement)
{
    if (!(cut >> 31))
        cn_engine_pg_send(engine, statement);
}

static void host_connect(void *data, uint64_t link)
{
    cn_engine_pg_connect(engine, link);
}

static void host_tell(void *data, uint64_t session, uint64_t to,
                      const struct cn_member_message *message)
{
    bool copy = message->kind == CN_MESSAGE_COPY;
    out_wire = (struct wire){.kind = copy ? WIRE_COPY : WIRE_MEMBER, .m = *message};
    if (message->to > message->from) {
        out_wire.count = (uint32_t)(message->to - message->from);
        memcpy(out_wire.records, &stores[message->shard].op[message->from + 1],
               out_wire.count * sizeof(uint32_t));
    }
    if (node_of(to) != me && node_of(to) < NODES)
        tell(node_of(to), &out_wire);
}

static void discard(unsigned index)
{
    char path[300];
    path_of(path, sizeof(path), "shard", index);
    unlink(path);
    memset(&stores[index], 0, offsetof(struct store, op));
}

static void host_act(void *data, enum cn_member_act act, uint32_t index, uint64_t epoch,
                     uint64_t from, uint64_t lsn)
{
    struct store *store = &stores[index];
    switch (act) {
    case CN_ACT_CREATE:
        discard(index);
        store->here = true;
        break;
    case CN_ACT_APPLY:
        memcpy(&store->op[from + 1], &store->tail[from - store->tail_from],
               (lsn - from) * sizeof(uint32_t));
        store->total = (uint32_t)lsn;
        break;
    case CN_ACT_FED:
        memcpy(&store->op[from + 1], &fed->records[from - fed->m.from],
               (lsn - from) * sizeof(uint32_t));
        store->total = (uint32_t)lsn;
        break;
    case CN_ACT_SERVE:
        store->serving = true;
        store->epoch = epoch;
        store->total = (uint32_t)lsn;
        break;
    case CN_ACT_STOP:
        store->stopping = true;
        break;
    case CN_ACT_RESUME:
        store->stopping = false;
        break;
    case CN_ACT_CLOSE:
        store->serving = store->stopping = false;
        store->total = (uint32_t)lsn;
        drop_outs(index);
        break;
    case CN_ACT_DISCARD:
        discard(index);
        break;
    default:
        break;
    }
}

static void host_note(void *data, enum cn_member_note note)
{
    if (note == CN_NOTE_ENGINE_LOST_DATA) {
        fprintf(stderr, "node %u: the engine has lost data\n", me);
        exit(3);
    }
}

static uint64_t host_weigh(void *data, uint32_t shard, uint64_t lsn)
{
    return sizeof(uint32_t);
}

static const struct cn_member_host host = {host_send, host_connect, host_tell, host_act,
                                           host_note, host_weigh,   NULL};

/* --- the engine ------------------------------------------------------------------------------ */

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    if (cut >> 31)
        return;
    if (!info->link.flaws && info->shard_count != SHARDS)
        exit(4);
    cn_member_link_up(&member, now(), link, &info->link);
    after();
}

static void on_down(void *data, uint64_t link, const char *why)
{
    if (cut >> 31)
        return;
    cn_member_link_down(&member, now(), link);
    after();
}

static void keep_tail(const struct cn_engine_item *item, const struct cn_engine_record *records,
                      size_t count)
{
    struct store *store = &stores[item->shard];
    store->tail_from = (uint32_t)(item->to - count);
    store->tail_count = (uint32_t)count;
    for (size_t i = 0; i < count && i < SHARD_OPS; i++)
        memcpy(&store->tail[i], records[i].body, sizeof(uint32_t));
}

static void on_answer(void *data, const struct cn_engine_answer *told,
                      const struct cn_engine_record *records, size_t count)
{
    if (cut >> 31)
        return;
    if (told->kind == CN_ENGINE_READ)
        keep_tail(&told->items[0], records, count);
    cn_member_answer(&member, now(), told);
    after();
}

static void on_hint(void *data)
{
    cn_member_hint(&member, now());
    after();
}

static struct cn_engine_record on_record(void *data, uint32_t shard, uint64_t lsn)
{
    return (struct cn_engine_record){&stores[shard].op[lsn], sizeof(uint32_t)};
}

/* --- messages -------------------------------------------------------------------------------- */

static void measure(const struct store *store, struct out *out, unsigned object)
{
    for (uint32_t i = 1; i <= store->total; i++)
        if (wire_object(store->op[i]) == object) {
            out->len++;
            out->hash = wire_hash(out->hash, store->op[i]);
        }
}

static void serve(const struct wire *wire)
{
    struct store *store = &stores[wire->shard];
    struct out out = {.op = wire->op, .shard = wire->shard, .dump = wire->dump};
    if (!cn_member_may_take(&member, now(), wire->shard) || out_count == OUTS ||
        (wire->write && store->total == SHARD_OPS)) {
        answer(&out, STATUS_REFUSED);
        return;
    }
    if (wire->write)
        store->op[++store->total] = wire->op * OBJECTS + wire->object;
    out.lsn = store->total;
    out.epoch = store->epoch;
    measure(store, &out, wire->object);
    out.ticket = cn_member_ticket(&member, now());
    outs[out_count++] = out;
    if (wire->write)
        cn_member_appended(&member, now(), wire->shard, store->total);
    after();
}

static void on_op(struct wire *wire)
{
    uint64_t owner_disk = 0;
    struct out none = {.op = wire->op, .shard = wire->shard};
    if (wire->from != CONTROL) {
        serve(wire); /* passed on: not again */
    } else if (!cn_member_owner(&member, wire->shard, &owner_disk)) {
        answer(&none, STATUS_REFUSED);
    } else if (node_of(owner_disk) == me) {
        serve(wire);
    } else {
        tell(node_of(owner_disk), wire);
    }
}

static void on_copy(const struct wire *wire)
{
    struct store *store = &stores[wire->m.shard];
    if (member.shards[wire->m.shard].role != CN_ROLE_COPYING)
        return;
    memcpy(&store->op[1], wire->records, wire->count * sizeof(uint32_t));
    store->here = true;
    store->total = store->synced = wire->count;
    if (save_shard(wire->m.shard, wire->count))
        cn_member_copied(&member, now(), wire->m.shard, wire->count);
}

static void on_message(uv_poll_t *handle, int status, int events)
{
    for (int i = 0; i < 64 && wire_receive(fd, &in); i++) {
        if (in.from < NODES && (cut >> in.from & 1))
            continue;
        if (in.kind == WIRE_CUT) {
            cut = in.cut;
        } else if (in.kind == WIRE_OP) {
            on_op(&in);
        } else if (in.kind == WIRE_COPY) {
            on_copy(&in);
            after();
        } else if (in.kind == WIRE_MEMBER) {
            fed = &in;
            cn_member_message(&member, now(), &in.m);
            after();
        }
    }
}

static void on_checkpoint(uv_timer_t *handle)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        uint32_t have = (uint32_t)member.shards[i].have; /* C6 */
        if (!stores[i].here || member.shards[i].role < CN_ROLE_FOLLOWING ||
            have == stores[i].synced || have > stores[i].total)
            continue;
        if (save_shard(i, have)) {
            stores[i].synced = have;
            cn_member_checkpointed(&member, now(), i, have);
        }
    }
}

/* --- its life -------------------------------------------------------------------------------- */

/* Its disk's identity, and a life that is higher than any before. */
static uint64_t next_life(void)
{
    char path[300];
    uint64_t identity[2] = {0, 0};
    path_of(path, sizeof(path), "disk", 0);
    if (load(path, identity, sizeof(identity)) != sizeof(identity))
        exit(5); /* the test makes it */
    identity[1]++;
    disk = identity[0];
    if (!save(path, identity, sizeof(identity)))
        exit(5);
    return identity[1] << 20;
}

/* Where all have their sockets, its number, the engine, its flaws that are borne, kind of reads. */
int main(int argc, char **argv)
{
    struct cn_err err;
    if (argc != 6 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return 2;
    dir = argv[1];
    me = (unsigned)strtoul(argv[2], NULL, 10);
    const char *conninfo = argv[3];
    cn_loop_init(&loop);
    struct cn_member_config config = {.life = next_life(),
                                      .shard_count = SHARDS,
                                      .verified = !strcmp(argv[5], "verified"),
                                      .allow_flaws = (unsigned)strtoul(argv[4], NULL, 10),
                                      .settle_ms = 2000,
                                      .replace_ms = 4000,
                                      .copy_ms = 5000};
    config.disk = disk;
    cn_member_defaults(&config);
    struct cn_engine_pg_config engine_config = {
        .conninfo = conninfo,
        .node = "node",
        .allow_flaws = config.allow_flaws,
        .shard_count = SHARDS,
        .hooks = {NULL, on_up, on_down, on_answer, on_hint, NULL, on_record}};
    if (cn_member_init(&member, &config, &host) < 0 ||
        cn_engine_pg_new(&loop, &engine_config, &engine, &err) < 0) {
        fprintf(stderr, "node %u: %s\n", me, err.text);
        return 2;
    }
    fd = wire_open(dir, me);
    load_all();
    uv_timer_init(&loop, &timer);
    uv_timer_init(&loop, &checkpoint_timer);
    uv_poll_init(&loop, &poll_handle, fd);
    uv_poll_start(&poll_handle, UV_READABLE, on_message);
    if (!config.allow_flaws) /* else its disk would have what the engine loses: the control */
        uv_timer_start(&checkpoint_timer, on_checkpoint, CHECKPOINT_MS, CHECKPOINT_MS);
    cn_member_start(&member, now());
    after();
    uv_run(&loop, UV_RUN_DEFAULT);
    return 0;
}
