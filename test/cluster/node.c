/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/node.c - a node: the host of the server (shard/host.h) with the stores of
 * test/cluster/store.h, and one lane, which is the main thread: it takes operations, and answers
 * them when the gate says so. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "peer/link.h"
#include "shard/host.h"
#include "test/cluster/store.h"
#include "test/cluster/wire.h"

enum { OUTS = 4096 };

struct out {
    uint32_t op, shard, len;
    bool dump;
    uint64_t lsn, ticket, hash;
};

/* What the host wants of the lane, and the lane of itself. */
struct shard {
    bool served, stopping; /* the lane's */
    bool want_serve, want_close, want_resume;
    uint64_t want_stop; /* a ticket; 0: none */
    uint64_t ticket;
};

static struct cn_host *host;
static const struct stores *stores;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `shards`, the wishes */
static struct shard shards[SHARDS];
static struct out outs[OUTS];
static unsigned out_count;
static const char *dir;
static unsigned me;
static int fd, event;
static atomic_uint cut;
static atomic_bool left, ending;
static struct wire in, out_wire;
static uint32_t dumped[SHARD_OPS], dump_count; /* the test asks for one at a time */

/* --- what does not arrive --------------------------------------------------------------------- */

/* By the engine's word the disk is on that node. */
static unsigned node_of(uint64_t disk)
{
    char name[CN_ENGINE_PG_NODE_MAX + 1];
    return cn_host_name(host, disk, name) ? (unsigned)strtoul(name + strlen("node-"), NULL, 10)
                                          : NODES;
}

void __real_cn_engine_pg_send(struct cn_engine_pg *pg, const struct cn_engine_statement *statement);
void __wrap_cn_engine_pg_send(struct cn_engine_pg *pg, const struct cn_engine_statement *statement);
void __real_cn_engine_pg_connect(struct cn_engine_pg *pg, uint64_t link);
void __wrap_cn_engine_pg_connect(struct cn_engine_pg *pg, uint64_t link);
bool __real_cn_links_send(struct cn_links *links, uint64_t disk, enum cn_frame_kind kind,
                          const void *body, size_t body_size, const void *more, size_t more_size);
bool __wrap_cn_links_send(struct cn_links *links, uint64_t disk, enum cn_frame_kind kind,
                          const void *body, size_t body_size, const void *more, size_t more_size);

void __wrap_cn_engine_pg_send(struct cn_engine_pg *pg, const struct cn_engine_statement *statement)
{
    if (!(cut >> 31))
        __real_cn_engine_pg_send(pg, statement);
}

void __wrap_cn_engine_pg_connect(struct cn_engine_pg *pg, uint64_t link)
{
    if (!(cut >> 31))
        __real_cn_engine_pg_connect(pg, link);
}

bool __wrap_cn_links_send(struct cn_links *links, uint64_t disk, enum cn_frame_kind kind,
                          const void *body, size_t body_size, const void *more, size_t more_size)
{
    unsigned to = node_of(disk);
    if (to < NODES && (cut >> to & 1))
        return true; /* lost on the way */
    return __real_cn_links_send(links, disk, kind, body, body_size, more, more_size);
}

static void tell(unsigned to, struct wire *wire)
{
    wire->from = me;
    if (to == CONTROL || (to < NODES && !(cut >> to & 1)))
        wire_send(fd, dir, to, wire);
}

/* --- the front: on the host's threads ----------------------------------------------------------
 */

void node_wake(void)
{
    uint64_t one = 1;
    (void)!write(event, &one, sizeof(one));
}

static int front_serve(void *data, uint32_t shard, struct cn_err *err)
{
    pthread_mutex_lock(&lock);
    shards[shard].want_serve = true;
    pthread_mutex_unlock(&lock);
    node_wake();
    return 0;
}

static void front_stop(void *data, uint32_t shard, uint64_t ticket)
{
    pthread_mutex_lock(&lock);
    shards[shard].want_stop = ticket;
    shards[shard].want_resume = false;
    pthread_mutex_unlock(&lock);
    node_wake();
}

static void front_resume(void *data, uint32_t shard)
{
    pthread_mutex_lock(&lock);
    shards[shard].want_stop = 0;
    shards[shard].want_resume = true;
    pthread_mutex_unlock(&lock);
    node_wake();
}

static void front_close(void *data, uint32_t shard)
{
    pthread_mutex_lock(&lock);
    shards[shard].want_close = true;
    pthread_mutex_unlock(&lock);
    node_wake();
}

static void front_wake(void *data)
{
    node_wake();
}

static const struct cn_host_front front = {NULL,         front_serve, front_stop,
                                           front_resume, front_close, front_wake};

/* --- answers -----------------------------------------------------------------------------------
 */

static void answer(const struct out *out, enum wire_status status)
{
    out_wire = (struct wire){.kind = WIRE_REPLY,
                             .op = out->op,
                             .shard = out->shard,
                             .status = status,
                             .len = out->len,
                             .hash = out->hash};
    if (out->dump && status == STATUS_OK) {
        out_wire.count = dump_count;
        memcpy(out_wire.records, dumped, dump_count * sizeof(uint32_t));
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

static bool may_leave(const struct out *out)
{
    return stores->durable(out->shard) >= out->lsn && /* K4: the lease after it */
           cn_host_confirmed(host, out->ticket) && cn_host_may_leave(host, out->shard);
}

static void gate(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < out_count; i++)
        if (may_leave(&outs[i]))
            answer(&outs[i], STATUS_OK);
        else
            outs[kept++] = outs[i];
    out_count = kept;
}

static bool has_outs(unsigned shard)
{
    for (unsigned i = 0; i < out_count; i++)
        if (outs[i].shard == shard)
            return true;
    return false;
}

/* --- the lane ----------------------------------------------------------------------------------
 */

/* Does what the host wants. */
static void look(unsigned index)
{
    struct shard *shard = &shards[index];
    bool shut = false;
    uint64_t stopped = 0;
    pthread_mutex_lock(&lock);
    if (shard->want_serve)
        *shard = (struct shard){
            .served = true, .want_close = shard->want_close, .want_stop = shard->want_stop};
    if (shard->want_stop) {
        shard->stopping = true;
        shard->ticket = shard->want_stop;
        shard->want_stop = 0;
    }
    if (shard->want_resume) {
        shard->stopping = shard->want_resume = false;
        shard->ticket = 0;
    }
    if (shard->want_close) {
        *shard = (struct shard){0};
        shut = true;
    } else if (shard->stopping && shard->ticket && !has_outs(index)) {
        stopped = shard->ticket;
        shard->ticket = 0;
    }
    pthread_mutex_unlock(&lock);
    if (shut) {
        drop_outs(index);
        stores->let_go(index);
        cn_host_shut(host, index);
    }
    if (stopped)
        cn_host_stopped(host, index, stopped);
}

static void serve(const struct wire *wire)
{
    struct out out = {.op = wire->op, .shard = wire->shard, .dump = wire->dump};
    const struct shard *shard = &shards[wire->shard];
    if (!shard->served || shard->stopping || !cn_host_may_take(host, wire->shard) ||
        out_count == OUTS ||
        (wire->write &&
         !stores->write(wire->shard, wire->object, wire->op * OBJECTS + wire->object, &out.lsn))) {
        answer(&out, STATUS_REFUSED);
        return;
    }
    if (!stores->read(wire->shard, wire->object, &out.len, &out.hash, &out.lsn)) {
        answer(&out, wire->write ? STATUS_UNKNOWN : STATUS_REFUSED);
        return;
    }
    if (wire->dump)
        dump_count = stores->dump(wire->shard, dumped, SHARD_OPS, &out.lsn);
    out.ticket = cn_host_ticket(host);
    outs[out_count++] = out;
}

static void on_op(struct wire *wire)
{
    struct out none = {.op = wire->op, .shard = wire->shard};
    struct cn_host_owner owner = cn_host_owner(host, wire->shard);
    if (wire->from != CONTROL || owner.here)
        serve(wire); /* one that was passed on is not passed on again */
    else if (!owner.disk)
        answer(&none, STATUS_REFUSED);
    else
        tell(node_of(owner.disk), wire);
}

static void on_messages(void)
{
    for (int i = 0; i < 64 && wire_receive(fd, &in); i++) {
        if (in.from < NODES && (cut >> in.from & 1))
            continue;
        if (in.kind == WIRE_CUT)
            cut = in.cut;
        else if (in.kind == WIRE_OP)
            on_op(&in);
    }
}

/* --- its life ----------------------------------------------------------------------------------
 */

static int on_joined(void *data, struct cn_host *of, const struct cn_engine_pg_info *info,
                     struct cn_err *err)
{
    if (info->shard_count != SHARDS)
        _exit(4);
    stores->found(of, info);
    return 0;
}

static void on_failed(void *data, const struct cn_err *err)
{
    fprintf(stderr, "node %u: %s\n", me, err->text);
    _exit(3);
}

static void on_left(void *data)
{
    left = true;
    node_wake();
}

static void on_signal(int number)
{
    ending = true;
    node_wake();
}

/* Where all have their sockets, its number, the engine, its flaws that are borne, kind of reads, of
 * stores. */
int main(int argc, char **argv)
{
    struct cn_err err;
    char path[200], address[40], name[20];
    uint16_t port;
    bool told = false;
    if (argc != 7 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return 2;
    dir = argv[1];
    me = (unsigned)strtoul(argv[2], NULL, 10);
    stores = !strcmp(argv[6], "real") ? &real_stores : &list_stores;
    snprintf(path, sizeof(path), "%s/node%u", dir, me);
    snprintf(name, sizeof(name), "node-%u", me);
    event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    struct cn_host_config config = {
        .conninfo = argv[3],
        .allow_flaws = (unsigned)strtoul(argv[4], NULL, 10),
        .verified = !strcmp(argv[5], "verified"),
        .node = name,
        .shard_count = SHARDS,
        .times = {.settle_ms = 2000, .replace_ms = 4000, .copy_ms = 5000},
        .disk_hands = stores->hands,
        .front = &front,
        .joined = on_joined,
        .failed = on_failed,
        .left = on_left};
    config.listen_fd = cn_links_bind("127.0.0.1", 0, &port, &err);
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    config.address = address;
    if (config.listen_fd < 0 || !stores->open(path, &config.disk, &config.life) ||
        cn_host_new(&config, &host, &err) < 0 || cn_host_start(host, &err) < 0) {
        fprintf(stderr, "node %u: %s\n", me, err.text);
        return 2;
    }
    fd = wire_open(dir, me);
    while (!left) {
        struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = event, .events = POLLIN}};
        uint64_t count;
        (void)poll(ready, 2, 100);
        (void)!read(event, &count, sizeof(count));
        if (ending && !told)
            cn_host_leave(host, true);
        told = ending;
        if (ready[0].revents)
            on_messages();
        gate();
        for (unsigned i = 0; i < SHARDS; i++)
            look(i);
    }
    cn_host_free(host);
    stores->close();
    return 0;
}
