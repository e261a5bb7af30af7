/* SPDX-License-Identifier: Apache-2.0 */
/* test/bench/bench_append.c - what an append costs in the engine of a cluster, by the smallest
 * program: one connection, one batch under way, the next one when the answer is there.
 *
 *     bench_append CONNINFO [SIZE [ROWS [SECONDS [WRITERS]]]]
 *
 * Two statements, each on tables of a schema of its own:
 *
 *     least   the least that is fenced by a session and kept: an UPDATE and an INSERT in one
 *     cairn   the one that nodes send (membership/engine_pg_call.c), made by the very functions
 *
 * SIZE (512) bytes of a record, ROWS (1) shards of a batch with one each. WRITERS (1): the second
 * alone, by as many processes, each a session of its own, as nodes are. For either form a line of
 * JSON: appends per second, p50 and p99 in milliseconds, bytes of the engine's log for an append,
 * and microseconds of processor time of the server's process that serves us (0: on another
 * machine). Nobody else should use the engine meanwhile. The cluster's tables have to be there,
 * without nodes: a node that was stopped leaves them so. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "membership/engine_pg_private.h"

enum {
    SIZE_MAX_BYTES = 8000,
    ROWS_MAX = CN_ENGINE_ITEMS_MAX,
    TIMES_MAX = 1 << 20,
    WRITERS_MAX = 64
};

static const struct cn_pq *pq;
static PGconn *conn;
static uint8_t record[SIZE_MAX_BYTES];
static size_t record_size = 512;
static unsigned rows = 1;

static void die(const char *what)
{
    fprintf(stderr, "bench_append: %s: %s\n", what, conn ? pq->PQerrorMessage(conn) : "");
    exit(1);
}

static void connect_to(const char *conninfo)
{
    const char *const keys[] = {"dbname", NULL}, *const values[] = {conninfo, NULL};
    conn = pq->PQconnectStartParams(keys, values, 1);
    for (PostgresPollingStatusType step = PGRES_POLLING_WRITING; step != PGRES_POLLING_OK;
         step = pq->PQconnectPoll(conn)) {
        if (step == PGRES_POLLING_FAILED || pq->PQstatus(conn) == CONNECTION_BAD)
            die("connect");
        struct pollfd wait = {.fd = pq->PQsocket(conn),
                              .events = step == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        if (poll(&wait, 1, 10000) != 1)
            die("connect");
    }
}

/* The last result of what was sent; all have to be good. */
static PGresult *results(const char *what)
{
    PGresult *last = NULL;
    for (PGresult *result; (result = pq->PQgetResult(conn));) {
        ExecStatusType status = pq->PQresultStatus(result);
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            die(what);
        pq->PQclear(last);
        last = result;
    }
    return last;
}

static uint64_t ask(const char *sql)
{
    if (!pq->PQsendQuery(conn, sql))
        die(sql);
    PGresult *result = results(sql);
    uint64_t value = pq->PQntuples(result) ? strtoull(pq->PQgetvalue(result, 0, 0), NULL, 10) : 0;
    pq->PQclear(result);
    return value;
}

static void prepare(const char *name, const char *sql)
{
    if (!pq->PQsendPrepare(conn, name, sql, 0, NULL))
        die(sql);
    pq->PQclear(results(sql));
}

/* --- the least -------------------------------------------------------------------------------- */

static const char least_tables[] =
    "DROP SCHEMA IF EXISTS bench_append CASCADE; CREATE SCHEMA "
    "bench_append; "
    "CREATE TABLE bench_append.session(id bigint PRIMARY KEY, live boolean NOT NULL, "
    "head bigint NOT NULL) WITH (fillfactor = 10); "
    "INSERT INTO bench_append.session VALUES (1, true, 0); "
    "CREATE TABLE bench_append.log(session bigint NOT NULL, seq bigint NOT NULL, "
    "part int NOT NULL, body bytea NOT NULL, PRIMARY KEY (session, seq, part)) "
    "WITH (autovacuum_enabled = false); "
    "ALTER TABLE bench_append.log ALTER body SET STORAGE PLAIN";

static const char least[] =
    "WITH f AS (UPDATE bench_append.session SET head = $2::bigint WHERE id = $1::bigint AND live "
    "AND head = $2::bigint - 1 RETURNING 1) INSERT INTO bench_append.log(session, seq, part, body) "
    "SELECT $1::bigint, $2::bigint, i, b FROM f, unnest($3::bytea[]) WITH ORDINALITY u(b, i)";

static bool send_least(uint64_t seq)
{
    static struct cn_buf list;
    uint64_t id = htobe64(1), number = htobe64(seq);
    if (!list.size) {
        const uint32_t head[5] = {htonl(1), 0, htonl(17), htonl(rows), htonl(1)};
        uint32_t size = htonl((uint32_t)record_size);
        cn_buf_append(&list, head, sizeof(head));
        for (unsigned i = 0; i < rows; i++) {
            cn_buf_append(&list, &size, sizeof(size));
            cn_buf_append(&list, record, record_size);
        }
    }
    const char *values[3] = {(const char *)&id, (const char *)&number, (const char *)list.data};
    const int lengths[3] = {8, 8, (int)list.size}, formats[3] = {1, 1, 1};
    return pq->PQsendQueryPrepared(conn, "least", 3, values, lengths, formats, 1);
}

/* --- the cluster's ---------------------------------------------------------------------------- */

static uint64_t session;
static uint64_t base_lsn = 1ull << 40; /* LSNs that no shard of the cluster comes to */

static struct cn_engine_record on_record(void *data, uint32_t shard, uint64_t lsn)
{
    return (struct cn_engine_record){record, record_size};
}

static bool send_cairn(uint64_t seq)
{
    static struct cn_engine_pg_params params;
    static const struct cn_engine_pg_hooks hooks = {.record = on_record};
    struct cn_engine_item items[ROWS_MAX] = {{0}};
    for (unsigned i = 0; i < rows; i++)
        items[i] =
            (struct cn_engine_item){.shard = i, .from = base_lsn + seq - 1, .to = base_lsn + seq};
    struct cn_engine_statement statement = {.kind = CN_ENGINE_APPEND,
                                            .session = session,
                                            .link = 1,
                                            .seq = seq,
                                            .count = rows,
                                            .items = items};
    cn_engine_pg_encode(&params, &statement, &hooks);
    return pq->PQsendQueryPrepared(conn, cn_engine_pg_calls[CN_ENGINE_APPEND].name, params.count,
                                   params.values, params.lengths, params.formats, 0);
}

/* Processor time of the process behind the connection, in nanoseconds. */
static uint64_t server_cpu(void)
{
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof(path), "/proc/%llu/schedstat",
             (unsigned long long)ask("SELECT CASE WHEN inet_client_addr() IS NULL THEN "
                                     "pg_backend_pid() ELSE 0 END"));
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &ns) != 1)
        ns = 0;
    fclose(file);
    return ns;
}

/* --- measuring -------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

struct figures {
    double rate, p50, p99, wal, cpu;
};

static uint64_t wal_position(void)
{
    return ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
}

static struct figures measure(const char *name, bool (*send)(uint64_t seq), double seconds)
{
    static uint64_t times[TIMES_MAX];
    size_t count = 0;
    uint64_t seq = 0, wal = 0, began = 0, now = 0, cpu = 0;
    while (count < TIMES_MAX && (!began || now - began < (uint64_t)(seconds * 1e9))) {
        if (seq == 200) { /* what came before was to warm up */
            cpu = server_cpu();
            wal = wal_position();
            began = cn_clock_mono_ns(cn_clock_system());
        }
        uint64_t sent = cn_clock_mono_ns(cn_clock_system());
        if (!send(++seq))
            die(name);
        pq->PQclear(results(name));
        now = cn_clock_mono_ns(cn_clock_system());
        if (began)
            times[count++] = now - sent;
    }
    qsort(times, count, sizeof(times[0]), compare);
    return (struct figures){.rate = (double)count / ((double)(now - began) / 1e9),
                            .p50 = (double)times[count / 2] / 1e6,
                            .p99 = (double)times[count * 99 / 100] / 1e6,
                            .wal = (double)(wal_position() - wal) / (double)count,
                            .cpu = (double)(server_cpu() - cpu) / 1e3 / (double)count};
}

static void report(const char *name, unsigned writers, const struct figures *figures)
{
    printf("{\"append\":\"%s\",\"size\":%zu,\"rows\":%u,\"writers\":%u,\"rate\":%.0f,\"p50\":%.3f,"
           "\"p99\":%.3f,\"wal\":%.0f,\"cpu\":%.0f}\n",
           name, record_size, rows, writers, figures->rate, figures->p50, figures->p99,
           figures->wal, figures->cpu);
}

static struct figures measure_cairn(double seconds)
{
    char sql[300];
    session = ask("INSERT INTO cairn.session(id, disk, life, live, link, head, beat) VALUES "
                  "(nextval('cairn.session_id'), 0, 0, true, 1, 0, 0) RETURNING id");
    base_lsn += session << 24;
    prepare("append", cn_engine_pg_calls[CN_ENGINE_APPEND].sql);
    struct figures figures = measure("cairn", send_cairn, seconds);
    snprintf(sql, sizeof(sql), "DELETE FROM cairn.session WHERE id = %llu",
             (unsigned long long)session);
    ask(sql);
    return figures;
}

/* Several at once: each has a connection and a session of its own. */
static void measure_writers(const char *conninfo, unsigned writers, double seconds)
{
    struct figures *all = mmap(NULL, WRITERS_MAX * sizeof(*all), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct figures sum = {0};
    if (all == MAP_FAILED)
        die("mmap");
    uint64_t wal = wal_position();
    for (unsigned i = 0; i < writers; i++) {
        if (fork() != 0)
            continue;
        connect_to(conninfo);
        ask("SET plan_cache_mode = force_generic_plan");
        all[i] = measure_cairn(seconds);
        _exit(0);
    }
    for (unsigned i = 0; i < writers; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            die("a writer failed");
    }
    for (unsigned i = 0; i < writers; i++) {
        sum.rate += all[i].rate;
        sum.p50 += all[i].p50 / writers;
        sum.p99 += all[i].p99 / writers;
        sum.cpu += all[i].cpu / writers;
    }
    /* Those to warm up are in it, and counted. */
    sum.wal = (double)(wal_position() - wal) / (sum.rate * seconds + 200.0 * writers);
    report("cairn", writers, &sum);
}

static unsigned long argument(char **argv, int argc, int at, unsigned long otherwise,
                              unsigned long most)
{
    unsigned long value = at < argc ? strtoul(argv[at], NULL, 10) : otherwise;
    if (value < 1 || value > most) {
        fprintf(stderr, "bench_append: argument %d is from 1 to %lu\n", at, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    struct cn_err err;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_append CONNINFO [SIZE [ROWS [SECONDS [WRITERS]]]]\n");
        return 2;
    }
    record_size = argument(argv, argc, 2, record_size, SIZE_MAX_BYTES);
    rows = (unsigned)argument(argv, argc, 3, rows, ROWS_MAX);
    double seconds = (double)argument(argv, argc, 4, 3, 600);
    unsigned writers = (unsigned)argument(argv, argc, 5, 1, WRITERS_MAX);
    for (size_t i = 0; i < record_size; i++) /* nothing that could be pressed together */
        record[i] = (uint8_t)(rand() >> 7);
    if (cn_pq_load(&pq, &err) < 0) {
        fprintf(stderr, "bench_append: %s\n", err.text);
        return 1;
    }
    connect_to(argv[1]);
    if (ask("SELECT count(*) FROM cairn.session WHERE live") > 0) {
        fprintf(stderr, "bench_append: there are nodes\n");
        return 1;
    }
    ask("SET client_min_messages = warning; SET plan_cache_mode = force_generic_plan");
    if (writers > 1) {
        measure_writers(argv[1], writers, seconds);
    } else {
        ask(least_tables);
        prepare("least", least);
        struct figures figures = measure("least", send_least, seconds);
        report("least", 1, &figures);
        ask("DROP SCHEMA bench_append CASCADE");
        figures = measure_cairn(seconds);
        report("cairn", 1, &figures);
    }
    ask("DELETE FROM cairn.log WHERE upto > 1::bigint << 40");
    pq->PQfinish(conn);
    return 0;
}
