/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as processes on a real engine, under faults: nothing acknowledged is lost, no answer is
 * stale, and all is served again when the faults stop. CLUSTER_SECONDS says how long. The control
 * shows that it would find a loss: with an engine that does not wait for its standby there is one.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "membership/report_dead.h"
#include "test/cluster/wire.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

enum { OPS = 60000, OP_LOST_MS = 8000 };

struct op {
    uint32_t shard, object;
    bool write, dump;
    enum wire_status status;
    int64_t asked, answered;
    uint32_t len;
    uint64_t hash;
};

static struct op *ops; /* from 1 */
static uint32_t op_count;
static uint32_t *dumps[SHARDS], dump_counts[SHARDS];
static struct node {
    pid_t pid;
    bool stopped;
    uint32_t cut;
    int64_t heal_at;
    unsigned generation;
} nodes[NODES];
static struct test_postgres servers[2];
static unsigned primary; /* of servers */
static char base[64], conninfo[300];
static int fd;
static uint64_t random_state;
static unsigned kills, freezes, cuts, promotions, restarts, cancels, disks;
static struct wire in;
static bool verified, async, faults, real; /* this run */
static unsigned ended;                     /* nodes that have found the engine to have lost data */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000ll + time.tv_nsec / 1000;
}

static uint32_t rnd(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 20) % n);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static void node_disk(unsigned n)
{
    char path[200];
    uint64_t identity[2] = {(uint64_t)++nodes[n].generation << 8 | (n + 1), 0};
    snprintf(path, sizeof(path), "%s/node%u", base, n);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/node%u/disk0", base, n);
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(identity, sizeof(identity), 1, file) == 1);
    fclose(file);
}

static void node_start(unsigned n)
{
    char number[12];
    const char *program = getenv("CLUSTER_NODE");
    if (nodes[n].pid)
        return;
    snprintf(number, sizeof(number), "%u", n);
    nodes[n].pid = fork();
    CHECK(nodes[n].pid >= 0);
    if (!nodes[n].pid) {
        if (async) /* else its disk would have what the engine loses: the control */
            setenv("NO_CHECKPOINTS", "1", 1);
        execl(program ? program : "build/cluster/node", "node", base, number, conninfo,
              async ? "2" : "0", verified ? "verified" : "leased", real ? "real" : "list",
              (char *)NULL);
        _exit(127);
    }
    nodes[n].stopped = false;
    nodes[n].cut = 0;
}

static void node_kill(unsigned n)
{
    if (!nodes[n].pid)
        return;
    kill(nodes[n].pid, SIGKILL);
    while (waitpid(nodes[n].pid, NULL, 0) < 0 && errno == EINTR)
        ;
    nodes[n].pid = 0;
}

/* One that ends by itself has found something. */
static void nodes_watch(void)
{
    for (unsigned n = 0; n < NODES; n++) {
        int status;
        if (nodes[n].pid && waitpid(nodes[n].pid, &status, WNOHANG) == nodes[n].pid) {
            nodes[n].pid = 0;
            ended++;
            if (!async)
                test_fail(__FILE__, __LINE__, "node %u ended: %x", n, status);
        }
    }
}

static void node_cut(unsigned n, uint32_t cut)
{
    struct wire wire = {.kind = WIRE_CUT, .from = CONTROL, .cut = cut};
    nodes[n].cut = cut;
    wire_send(fd, base, n, &wire);
}

static void node_heal(unsigned n)
{
    if (nodes[n].stopped)
        kill(nodes[n].pid, SIGCONT);
    nodes[n].stopped = false;
    node_start(n);
    if (nodes[n].cut)
        node_cut(n, 0);
    nodes[n].heal_at = 0;
}

/* --- the engine ------------------------------------------------------------------------------ */

static void engine_name(unsigned server)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/pg%u", base, server);
    unlink(path);
    CHECK_INT(0, symlink(servers[server].dir, path));
}

/* A zombie beside its successor lives on for a moment. */
static void engine_promote(bool zombie)
{
    unsigned old = primary;
    promotions++;
    if (!zombie)
        test_postgres_kill(&servers[old]);
    test_postgres_promote(&servers[1 - old]);
    primary = 1 - old;
    if (zombie)
        usleep(200000 + rnd(1000000));
    test_postgres_end(&servers[old]);
    test_postgres_copy(&servers[old], &servers[primary], "second");
    engine_name(old);
}

static void engine_fault(void)
{
    switch (rnd(6)) {
    case 0:
        engine_promote(rnd(2) == 0);
        break;
    case 1:
        restarts++;
        test_postgres_kill(&servers[primary]);
        test_postgres_start(&servers[primary]);
        break;
    case 2: /* waits that are cancelled while the standby is away */
        cancels++;
        kill(servers[1 - primary].pid, SIGSTOP);
        test_postgres_kill(&servers[1 - primary]);
        usleep(300000);
        test_postgres_ask(&servers[primary], "SELECT count(pg_cancel_backend(pid)) FROM "
                                             "pg_stat_activity WHERE wait_event = 'SyncRep'");
        test_postgres_start(&servers[1 - primary]);
        break;
    default:
        cancels++;
        test_postgres_ask(&servers[primary],
                          "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM "
                          "pg_stat_activity WHERE application_name LIKE 'cairn node%' ORDER BY "
                          "random() LIMIT 2) x");
        break;
    }
}

/* --- clients --------------------------------------------------------------------------------- */

static uint32_t ask(unsigned node, uint32_t shard, bool write, bool dump)
{
    CHECK(op_count + 1 < OPS);
    uint32_t number = ++op_count;
    ops[number] = (struct op){
        .shard = shard, .object = rnd(OBJECTS), .write = write, .dump = dump, .asked = now()};
    struct wire wire = {.kind = WIRE_OP,
                        .from = CONTROL,
                        .op = number,
                        .shard = shard,
                        .object = ops[number].object,
                        .write = write,
                        .dump = dump};
    wire_send(fd, base, node, &wire);
    return number;
}

static void take_answers(int timeout_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, timeout_ms) <= 0)
        return;
    while (wire_receive(fd, &in)) {
        struct op *op = in.kind == WIRE_REPLY && in.op <= op_count ? &ops[in.op] : NULL;
        if (!op || op->status != STATUS_OPEN)
            continue;
        op->status = in.status;
        op->answered = now();
        op->len = in.len;
        op->hash = in.hash;
        if (op->dump && op->status == STATUS_OK) {
            cn_free(dumps[op->shard]);
            dumps[op->shard] = cn_memdup(in.records, in.count * sizeof(uint32_t) + 1);
            dump_counts[op->shard] = in.count;
        }
    }
}

/* Asks every node until one answers. */
static void ask_until_answered(uint32_t shard, bool write, bool dump)
{
    for (int64_t end = now() + 90000000; now() < end; nodes_watch()) {
        uint32_t number = ask(rnd(NODES), shard, write, dump);
        for (int i = 0; i < 100 && ops[number].status == STATUS_OPEN; i++)
            take_answers(10);
        if (ops[number].status == STATUS_OK)
            return;
        usleep(50000);
    }
    test_fail(__FILE__, __LINE__, "shard %u is not served", shard);
}

/* --- faults ---------------------------------------------------------------------------------- */

static void lose_disk(unsigned n)
{
    char sql[600], path[200];
    snprintf(
        sql, sizeof(sql),
        "SELECT count(*) FROM cairn.shard s, cairn.disk d WHERE d.node = 'node-%u' AND d.id = "
        "ANY (s.disks) AND (SELECT count(*) FROM cairn.session x WHERE x.live AND x.disk = ANY "
        "(s.disks) AND x.disk <> d.id) < 1",
        n);
    for (unsigned i = 0; i < NODES; i++)
        if (nodes[i].heal_at)
            return;
    if (disks || strcmp(test_postgres_ask(&servers[primary], sql), "0") != 0)
        return;
    disks++;
    node_kill(n);
    snprintf(path, sizeof(path), "rm -rf %s/node%u", base, n);
    CHECK_INT(0, system(path));
    node_disk(n);
    nodes[n].heal_at = now() + 1000000;
}

static void fault(void)
{
    unsigned n = rnd(NODES), down = 0;
    for (unsigned i = 0; i < NODES; i++)
        down += nodes[i].heal_at != 0;
    uint32_t what = rnd(10);
    if (what == 0) {
        engine_fault();
    } else if (nodes[n].heal_at || down > 2) {
        return;
    } else if (what == 1) {
        lose_disk(n);
    } else if (what < 5) {
        kills++;
        node_kill(n);
        nodes[n].heal_at = now() + rnd(3000000);
    } else if (what < 8) {
        freezes++;
        kill(nodes[n].pid, SIGSTOP);
        nodes[n].stopped = true;
        nodes[n].heal_at = now() + 200000 + rnd(6000000);
    } else {
        cuts++;
        node_cut(n, rnd(2) ? 1u << 31 : rnd(1u << NODES));
        nodes[n].heal_at = now() + 200000 + rnd(5000000);
    }
}

/* --- the history: the rules of test/simulate/check.c ----------------------------------------- */

static void found(unsigned *wrong, uint32_t op, const char *what, uint32_t other)
{
    if (++*wrong <= 10 && !async)
        fprintf(stderr, "%s %u of shard %u: %s %u\n", ops[op].write ? "write" : "read", op,
                ops[op].shard, what, other);
}

/* How many answers are wrong. */
static unsigned check_object(uint32_t shard, uint32_t object)
{
    uint32_t *at = cn_alloc_zero((op_count + 1) * sizeof(*at)), len = 0;
    uint64_t *hashes = cn_alloc_zero((dump_counts[shard] + 1) * sizeof(*hashes));
    unsigned wrong = 0;
    for (uint32_t i = 0; i < dump_counts[shard]; i++) {
        uint32_t record = dumps[shard][i], number = record / OBJECTS;
        CHECK(number <= op_count && ops[number].shard == shard && ops[number].write);
        if (wire_object(record) != object)
            continue;
        CHECK(!at[number]); /* there twice */
        hashes[len + 1] = wire_hash(hashes[len], record);
        at[number] = ++len;
    }
    for (uint32_t a = 1; a <= op_count; a++) {
        const struct op *x = &ops[a];
        if (x->shard != shard || x->object != object || x->dump)
            continue;
        if (x->write && x->status == STATUS_OK && !at[a])
            found(&wrong, a, "is lost, though acknowledged as", x->len);
        if (x->write && x->status == STATUS_REFUSED && at[a])
            found(&wrong, a, "was refused, and is", at[a]);
        if (x->status == STATUS_OK && (x->len > len || hashes[x->len] != x->hash))
            found(&wrong, a, "tells a state that never was, of", x->len);
        for (uint32_t b = 1; b <= op_count && x->status == STATUS_OK; b++) {
            const struct op *y = &ops[b];
            if (y->shard != shard || y->object != object || y->dump || a == b)
                continue;
            if (y->status == STATUS_OK && y->answered < x->asked && y->len > x->len)
                found(&wrong, a, "is stale, after", b);
            if (y->write && at[b] && y->asked > x->answered && at[b] <= x->len)
                found(&wrong, a, "knows of a later one,", b);
        }
    }
    cn_free(at);
    cn_free(hashes);
    return wrong;
}

static unsigned check_history(void)
{
    unsigned wrong = 0;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        for (uint32_t object = 0; object < OBJECTS; object++)
            wrong += check_object(shard, object);
    return wrong;
}

/* --- a run ----------------------------------------------------------------------------------- */

static void begin(void)
{
    test_postgres_need();
    snprintf(base, sizeof(base), "%s", test_dir());
    random_state = test_seed() | 1;
    cn_free(ops);
    ops = cn_alloc_zero(OPS * sizeof(*ops));
    op_count = ended = kills = freezes = cuts = promotions = restarts = cancels = disks = 0;
    memset(nodes, 0, sizeof(nodes));
    fd = wire_open(base, CONTROL);
    test_postgres_make(&servers[0], "*");
    test_postgres_copy(&servers[1], &servers[0], "second");
    primary = 0;
    engine_name(0);
    engine_name(1);
    snprintf(conninfo, sizeof(conninfo), "host=%s/pg0,%s/pg1 user=cairn dbname=postgres%s", base,
             base, async ? " options='-c synchronous_commit=local'" : "");
    for (unsigned n = 0; n < NODES; n++) {
        node_disk(n);
        node_start(n);
    }
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        ask_until_answered(shard, true, false);
}

static void load_for(int64_t seconds)
{
    int64_t end = now() + seconds * 1000000, next_op = 0, next_fault = now() + 3000000;
    while (now() < end) {
        nodes_watch();
        take_answers(2);
        if (now() >= next_op && op_count < OPS - 5000) {
            ask(rnd(NODES), rnd(SHARDS), rnd(2), false);
            next_op = now() + 4000;
        }
        for (unsigned n = 0; n < NODES; n++)
            if (nodes[n].heal_at && now() >= nodes[n].heal_at)
                node_heal(n);
        if (faults && now() >= next_fault) {
            fault();
            next_fault = now() + 200000 + rnd(1500000);
        }
    }
    for (unsigned n = 0; n < NODES; n++)
        node_heal(n);
}

static void finish(void)
{
    for (unsigned n = 0; n < NODES; n++)
        node_kill(n);
    test_postgres_end(&servers[0]);
    test_postgres_end(&servers[1]);
}

static void read_back(void)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        ask_until_answered(shard, true, false);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        ask_until_answered(shard, false, true);
}

static void run_under_faults(bool with_verified_reads, bool with_real_stores)
{
    const char *text = getenv("CLUSTER_SECONDS");
    unsigned counts[4] = {0}, writes = 0;
    verified = with_verified_reads;
    real = with_real_stores;
    async = false;
    faults = true;
    begin();
    load_for(text ? strtol(text, NULL, 10) : 60);
    read_back();
    for (uint32_t i = 1; i <= op_count; i++) {
        counts[ops[i].status]++;
        writes += ops[i].write && ops[i].status == STATUS_OK;
    }
    printf("%u operations: %u answered (%u writes), %u refused, %u unknown, %u without an answer; "
           "%u kills, %u freezes, %u cuts, %u lost disks; engine: %u promotions, %u restarts, %u "
           "cancelled or cut off\n",
           op_count, counts[STATUS_OK], writes, counts[STATUS_REFUSED], counts[STATUS_UNKNOWN],
           counts[STATUS_OPEN], kills, freezes, cuts, disks, promotions, restarts, cancels);
    CHECK_INT(0, check_history());
    CHECK(writes > 50);
    finish();
}

TEST(cluster, loses_nothing_it_acknowledged_and_answers_nothing_stale_under_faults)
{
    run_under_faults(false, false);
}

TEST(cluster, does_so_with_verified_reads)
{
    run_under_faults(true, false);
}

TEST(cluster, does_so_with_real_stores)
{
    run_under_faults(false, true);
}

/* --- how long it takes: told, not judged -------------------------------------------------------
 */

/* By the engine's tables. */
static void whole(void)
{
    char text[20];
    snprintf(text, sizeof(text), "%u", SHARDS);
    test_postgres_await(&servers[primary],
                        "SELECT count(*) FROM cairn.shard s WHERE (SELECT count(*) FROM "
                        "cairn.session x WHERE x.live AND x.disk = ANY (s.disks)) >= 2 AND EXISTS "
                        "(SELECT 1 FROM cairn.session x WHERE x.live AND x.id = s.owner)",
                        text);
}

/* A node that owns something, and which shard. */
static unsigned an_owner(uint32_t *shard)
{
    const char *text = test_postgres_ask(
        &servers[primary], "SELECT substr(d.node, 6) || ' ' || s.id FROM cairn.shard s JOIN "
                           "cairn.session x ON x.id = s.owner JOIN cairn.disk d ON d.id = x.disk "
                           "WHERE x.live ORDER BY random() LIMIT 1");
    unsigned node = 0;
    CHECK_INT(2, sscanf(text, "%u %u", &node, shard));
    return node;
}

/* Asks the others until one acknowledges a write; milliseconds since `from`. */
static double first_write(unsigned but, uint32_t shard, int64_t from)
{
    for (int64_t end = now() + 60000000; now() < end;) {
        unsigned node = rnd(NODES);
        if (node == but)
            continue;
        uint32_t number = ask(node, shard, true, false);
        for (int i = 0; i < 50 && ops[number].status == STATUS_OPEN; i++)
            take_answers(2);
        if (ops[number].status == STATUS_OK)
            return (double)(ops[number].answered - from) / 1000;
    }
    test_fail(__FILE__, __LINE__, "shard %u is not served", shard);
    return 0;
}

static void bury(unsigned node)
{
    char sql[200];
    unsigned long long disk = 0, life = 0;
    struct cn_err err = {0};
    snprintf(sql, sizeof(sql), "SELECT id || ' ' || life FROM cairn.disk WHERE node = 'node-%u'",
             node);
    CHECK_INT(2, sscanf(test_postgres_ask(&servers[primary], sql), "%llu %llu", &disk, &life));
    struct cn_report_dead dead = {
        .conninfo = conninfo, .node = "parent", .disk = disk, .life = life};
    CHECK_INT(0, cn_report_dead(&dead, 10000, &err));
}

static void print_times(const char *what, double *times, unsigned count)
{
    double worst = 0, sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += times[i];
        worst = times[i] > worst ? times[i] : worst;
    }
    printf("%s: first durable write after %.0f ms (worst of %u: %.0f)\n", what, sum / count, count,
           worst);
}

/* A node dies and its parent says so, or is frozen; the engine's primary dies and its standby is
 * promoted. */
TEST(cluster, tells_how_soon_another_node_acknowledges_writes)
{
    enum { ROUNDS = 5 };
    double times[ROUNDS];
    uint32_t shard = 0;
    verified = async = faults = false;
    real = true;
    begin();
    for (unsigned i = 0; i < ROUNDS; i++) {
        whole();
        unsigned node = an_owner(&shard);
        node_kill(node);
        int64_t from = now();
        bury(node);
        times[i] = first_write(node, shard, from);
        node_heal(node);
    }
    print_times("killed, and buried by its parent", times, ROUNDS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        whole();
        unsigned node = an_owner(&shard);
        kill(nodes[node].pid, SIGSTOP);
        nodes[node].stopped = true;
        times[i] = first_write(node, shard, now());
        node_heal(node);
    }
    print_times("frozen", times, ROUNDS);
    for (unsigned i = 0; i < 3; i++) {
        whole();
        (void)an_owner(&shard);
        test_postgres_kill(&servers[primary]);
        int64_t from = now();
        test_postgres_promote(&servers[1 - primary]);
        printf("promoting took the engine %.0f ms; ", (double)(now() - from) / 1000);
        unsigned old = primary;
        primary = 1 - old;
        test_postgres_end(&servers[old]);
        test_postgres_copy(&servers[old], &servers[primary], "second");
        engine_name(old);
        from = now();
        times[i] = first_write(NODES, shard, from);
    }
    print_times("\nengine promoted, after its new standby is there", times, 3);
    read_back();
    CHECK_INT(0, check_history());
    finish();
}

/* An engine that acknowledges before its standby has it, and a standby that lags behind when it is
 * promoted: writes are lost, and this test knows. */
TEST(cluster_control, finds_what_an_engine_loses_that_does_not_wait_for_its_standby)
{
    verified = faults = real = false;
    async = true;
    begin();
    load_for(2);
    test_postgres_kill(&servers[1]);
    load_for(3);
    test_postgres_kill(&servers[0]);
    test_postgres_start(&servers[1]);
    test_postgres_promote(&servers[1]);
    primary = 1;
    for (unsigned n = 0; n < NODES; n++) /* what they have in memory goes too */
        node_kill(n);
    for (unsigned n = 0; n < NODES; n++)
        node_heal(n);
    load_for(3);
    unsigned wrong = ended;
    if (!ended) {
        read_back();
        wrong = check_history();
    }
    printf("the control: %u found\n", wrong);
    CHECK(wrong > 0);
    finish();
}
