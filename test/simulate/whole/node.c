/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/node.c - a node: what fleet/ and server/ put together, as far as objects go;
 * its shards come and go by fleet/cluster_front.c itself. And a class in C, whose objects are lists
 * of the writes that they took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/disk.h"
#include "base/loop.h"
#include "base/mem.h"
#include "fleet/witness.h"
#include "object/alarm.h"
#include "object/message.h"
#include "object/object.h"
#include "peer/link.h"
#include "service/service.h"
#include "shard/backup_stream.h"
#include "store/database.h"
#include "test/simulate/whole/whole.h"

struct whole wholes[NODES];

static struct whole *me(void)
{
    return &wholes[process_current()->index];
}

/* --- the class -------------------------------------------------------------------------------- */

/* Some questions and answers are large, and go in pieces. */
static size_t padding(unsigned op)
{
    return op % 13 == 5 ? 150000 : 0;
}

static void pad(uint8_t *bytes, size_t size, unsigned op)
{
    memset(bytes + size - padding(op), (int)(op | 1), padding(op));
}

static void check_pad(const uint8_t *bytes, size_t size, unsigned op)
{
    for (size_t i = size - padding(op); i < size; i++)
        if (bytes[i] != (uint8_t)(op | 1)) {
            fail("what came with op %u is not what was sent", op);
            return;
        }
}

/* An object, as it is in memory. */
struct list {
    uint16_t ops[OPS + 1];
    unsigned count;
};

static int list_read(struct cn_database *db, struct list *list, struct cn_err *err)
{
    static const char sql[] = "SELECT op FROM w ORDER BY at";
    struct cn_statement *statement;
    size_t used;
    int rc = cn_database_prepare(db, sql, sizeof(sql) - 1, 0, &statement, &used, err);
    list->count = 0;
    if (rc < 0)
        return rc;
    while ((rc = cn_statement_step(statement, err)) > 0 && list->count < OPS)
        list->ops[list->count++] = (uint16_t)cn_statement_column_int(statement, 0);
    cn_statement_release(statement);
    return rc;
}

static int list_create(struct cn_object *object, void *class_data, void **instance,
                       struct cn_err *err)
{
    (void)class_data;
    struct cn_database *db = cn_object_database(object, err);
    int rc =
        db ? cn_database_exec(
                 db, "CREATE TABLE IF NOT EXISTS w(at INTEGER PRIMARY KEY, op INTEGER, p BLOB)",
                 err)
           : err->code;
    struct list *list = rc < 0 ? NULL : cn_alloc_zero(sizeof(*list));
    if (list)
        rc = list_read(db, list, err);
    if (rc < 0)
        cn_free(list);
    else
        *instance = list;
    return rc;
}

static bool list_write(struct cn_object *object, struct list *list, unsigned op)
{
    struct cn_err err = {0};
    char sql[100];
    struct cn_database *db = cn_object_database(object, &err);
    snprintf(sql, sizeof(sql), "INSERT INTO w(op, p) VALUES(%u, zeroblob(%u))", op,
             op % 23 ? 10 : 9000);
    if (!db || cn_database_exec(db, sql, &err) < 0) {
        cn_object_reset(object, CN_FAULT_RESET, err.code, "%s", err.text);
        return false;
    }
    list->ops[list->count++] = (uint16_t)op;
    return true;
}

static void list_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct list *list = instance;
    struct cn_message *message = call->payload;
    struct cn_err err = {0};
    uint16_t op;
    if (call->kind != CN_CALL_RPC || message->size < sizeof(op)) {
        cn_call_fail(call, CN_FAULT_REMOTE, CN_EINVALID, "what is asked?");
        return;
    }
    memcpy(&op, message->bytes, sizeof(op));
    check_pad(message->bytes, message->size, op);
    if (*message->method == 'w' && !list_write(object, list, op))
        return; /* it was reset, and the call with it */
    TRACE("node %d: %s %u runs, with %u", process_current()->index,
          *message->method == 'w' ? "write" : "read", op, list->count);
    if (*message->method == 'q') { /* from the database, not from memory */
        struct list other;
        if (list_read(cn_object_database(object, &err), &other, &err) < 0 ||
            other.count != list->count || memcmp(other.ops, list->ops, 2 * list->count) != 0)
            fail("an object does not read what it wrote: %s", err.text);
    }
    message->result_size = list->count * sizeof(op) + padding(op);
    message->result = cn_alloc_zero(message->result_size + 1);
    memcpy(message->result, list->ops, list->count * sizeof(op));
    pad(message->result, message->result_size, op);
    cn_call_reply(call, message);
}

static void list_destroy(struct cn_object *object, void *instance)
{
    (void)object;
    cn_free(instance);
}

static const struct cn_class list_class = {
    .create = list_create, .deliver = list_deliver, .destroy = list_destroy};

static bool find_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                       const struct cn_object_key *key, const struct cn_class **class_,
                       void **class_data)
{
    (void)lane, (void)ns, (void)key;
    *class_ = &list_class;
    *class_data = NULL;
    return true;
}

/* --- clients ---------------------------------------------------------------------------------- */

struct sent {
    struct cn_message message;
    unsigned op;
};

/* Whether the sentence promises that nothing has happened: CN_SHARD_UNKNOWN. */
static bool is_refused(const struct cn_err *err)
{
    return strncmp(err->text, CN_SHARD_AWAY, strlen(CN_SHARD_AWAY)) == 0 &&
           !strstr(err->text, CN_SHARD_UNKNOWN);
}

static void on_answer(struct cn_envelope *envelope)
{
    struct sent *sent = CN_CONTAINER_OF(cn_message_of(envelope), struct sent, message);
    const struct cn_err *err = &envelope->err;
    cn_message_settle(&sent->message);
    if (err->code)
        TRACE("node %d: op %u failed: %s", process_current()->index, sent->op, err->text);
    else
        check_pad(sent->message.result, sent->message.result_size, sent->op);
    if (err->code)
        whole_answered(sent->op, is_refused(err) ? STATUS_REFUSED : STATUS_UNKNOWN, NULL, 0);
    else
        whole_answered(sent->op, STATUS_OK, (const uint16_t *)sent->message.result,
                       (unsigned)(sent->message.result_size - padding(sent->op)) / 2);
    cn_message_fini(&sent->message);
    cn_free(sent);
}

static void on_drop(struct cn_envelope *envelope)
{
    struct sent *sent = CN_CONTAINER_OF(cn_message_of(envelope), struct sent, message);
    cn_message_fini(&sent->message);
    cn_free(sent);
}

/* The name of an object of the shard. */
static void name_in(struct cn_namespace *ns, unsigned shard, unsigned object,
                    struct cn_object_key *key, char name[32])
{
    key->namespace_id = ns->id;
    for (unsigned i = 0;; i++) {
        snprintf(name, 32, "object-%u-%u", object, i);
        cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, name, strlen(name), key->id);
        if (cn_shard_index(key, SHARDS) == shard)
            return;
    }
}

static void call(struct whole *whole, unsigned op)
{
    struct sent *sent = CN_NEW(struct sent);
    struct cn_call *call = &sent->message.call;
    uint16_t number = (uint16_t)op;
    char name[32];
    sent->op = op;
    name_in(whole->ns, ops[op].shard, ops[op].object, &call->key, name);
    sent->message.method = cn_strdup(ops[op].write ? "w" : op % 4 ? "r" : "q");
    sent->message.size = call->size = sizeof(number) + padding(op);
    sent->message.bytes = cn_alloc_zero(call->size);
    memcpy(sent->message.bytes, &number, sizeof(number));
    pad(sent->message.bytes, call->size, op);
    call->kind = CN_CALL_RPC;
    call->payload = &sent->message;
    call->ns = whole->ns;
    call->name = cn_strdup(name);
    call->name_size = strlen(name);
    call->envelope.from = cn_desk_place(&whole->desk);
    call->envelope.on_done = on_answer;
    call->envelope.drop = on_drop;
    cn_call_send(call, NULL);
}

static void on_wished(uv_async_t *async)
{
    struct whole *whole = CN_CONTAINER_OF(async, struct whole, wished);
    unsigned count = whole->wish_count;
    uint16_t wishes[WISHES];
    memcpy(wishes, whole->wishes, sizeof(wishes));
    whole->wish_count = 0;
    for (unsigned i = 0; i < count; i++)
        call(whole, wishes[i]);
}

void whole_ask(int n, unsigned op)
{
    struct whole *whole = &wholes[n];
    if (!nodes[n].up || !whole->lane_open || whole->wish_count == WISHES) {
        whole_answered(op, STATUS_REFUSED, NULL, 0);
        return;
    }
    whole->wishes[whole->wish_count++] = (uint16_t)op;
    uv_async_send(&whole->wished);
}

/* --- what the host and the remote ask --------------------------------------------------------- */

static bool may_take(void *data, unsigned index)
{
    return cn_host_may_take(((struct cn_cluster *)data)->host, index);
}

static int number(void *data, const char *name, uint32_t *namespace_id, struct cn_err *err)
{
    (void)data, (void)name, (void)err;
    *namespace_id = 11;
    return 0;
}

static struct cn_remote_owner find_owner(void *data, unsigned shard)
{
    struct cn_host_owner owner = cn_host_owner(((struct cn_cluster *)data)->host, shard);
    return (struct cn_remote_owner){owner.disk, owner.here};
}

static bool find_address(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1])
{
    return cn_host_address(((struct cn_cluster *)data)->host, disk, address);
}

static void give_up(void *data, struct cn_call *call)
{
    (void)data;
    cn_call_turn_away(call, CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_ECLOSED, CN_SHARD_AWAY);
}

static int on_joined(void *data, struct cn_host *host, const struct cn_engine_pg_info *info,
                     struct cn_err *err)
{
    struct cn_cluster *cluster = data;
    cluster->info = *info;
    int rc = cn_cluster_disk_join(&cluster->disk, host, info, err);
    me()->joined = rc == 0;
    fiber_wake(me(), true);
    return rc;
}

void cn_cluster_fail(void *data, const struct cn_err *err)
{
    (void)data;
    struct whole *whole = me();
    TRACE("node %d fails: %s", whole->process.index, err->text);
    if (err->code == CN_EOLDER)
        stats.ended++;
    whole->displaced = err->code == CN_ELOCKED;
    whole->leave = true;
    fiber_wake(whole, true);
}

static void on_left(void *data)
{
    (void)data;
    me()->ends = true;
    fiber_wake(me(), true);
}

static void on_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size)
{
    (void)data;
    cn_remote_pipe(me()->remote, moved, body, size);
}

static void on_silent(void *data, uint64_t disk)
{
    (void)data;
    cn_remote_silent(me()->remote, disk);
}

static void on_sessions(void *data, uint64_t own, const struct cn_host_session *sessions,
                        unsigned count)
{
    (void)data;
    cn_remote_sessions(me()->remote, own, sessions, count);
}

/* No namespace is a service's. */
const struct cn_service_def *cn_service_of(const char *namespace_name)
{
    (void)namespace_name;
    return NULL;
}

bool cn_service_owns(const char *namespace_name)
{
    (void)namespace_name;
    return false;
}

/* The front's, of N8. */
bool cn_witness_lives(const struct cn_witness *witness)
{
    (void)witness;
    return true;
}

/* --- its threads ------------------------------------------------------------------------------ */

static void die(const char *what, const struct cn_err *err)
{
    fail("%s: %s", what, err->text);
}

static void *lane_main(void *data)
{
    struct whole *whole = data;
    struct cn_err err = {0};
    CN_ASSERT(cn_loop_init(&whole->loop, NULL) == 0);
    cn_mailbox_open(&whole->mailbox, &whole->loop, &whole->lane);
    cn_desk_open(&whole->desk, 0, &whole->loop, &whole->mailbox, cn_object_lane_step_desk, whole);
    if (cn_object_lane_start(&whole->lane, whole->objects, &whole->desk, whole, &err) < 0)
        die("a lane", &err);
    cn_remote_lane_open(whole->remote, &whole->lane);
    uv_async_init(&whole->loop, &whole->wished, on_wished);
    whole->lane_open = true;
    cn_host_open(whole->cluster->host);
    cn_block_forbid(true);
    uv_run(&whole->loop, UV_RUN_DEFAULT);
    return NULL;
}

static int (*disk_remember)(void *data, const struct cn_engine_seen *seen, struct cn_err *err);

/* What it has remembered for certain: the engine goes back no less (engine.c). */
static int remember(void *data, const struct cn_engine_seen *seen, struct cn_err *err)
{
    int rc = disk_remember(data, seen, err);
    if (rc == 0)
        nodes[process_current()->index].seen = *seen;
    return rc;
}

static int open_disk(struct whole *whole, struct cn_err *err)
{
    struct cn_replicas_config config = {.disk = simdisk_disk(whole->disk),
                                        .keepers = 1,
                                        .open_files_max = 16,
                                        .log_live_size = 64 << 10,
                                        .segment_size = 16 << 10};
    struct node *node = &nodes[whole->process.index];
    int rc = cn_cluster_disk_open(&whole->cluster->disk, &config, err);
    if (rc < 0)
        return rc;
    disk_remember = whole->cluster->disk.hands.remember;
    whole->cluster->disk.hands.remember = remember;
    node->disk_life = whole->cluster->disk.life >> 20;
    if (whole->cluster->disk.id != node->disk)
        fail("the disk is another");
    if (verified)
        cn_cluster_disk_verify(&whole->cluster->disk);
    return 0;
}

static int open_objects(struct whole *whole, struct cn_err *err)
{
    struct cn_cluster *cluster = whole->cluster;
    struct cn_shards_options shards = {
        .count = SHARDS, .number = number, .may_take = may_take, .data = cluster};
    struct cn_remote_options remote = {.disk = cluster->disk.id,
                                       .life = cluster->disk.life,
                                       .lane_count = 1,
                                       .wait_ms = 3000,
                                       .data = cluster,
                                       .owner = find_owner,
                                       .address = find_address,
                                       .give_up = give_up};
    memcpy(remote.cluster, WHOLE_CLUSTER, sizeof(remote.cluster));
    cluster->shards = cn_shards_new(&shards);
    struct cn_node_options options = {.shards = cluster->shards,
                                      .lane_count = 1,
                                      .secret = "0123456789abcde",
                                      .find_class = find_class,
                                      .idle_ms = 500,
                                      .idle_long_ms = 1500,
                                      .disk = cluster->disk.id,
                                      .life = cluster->disk.life};
    whole->objects = cn_node_new(&options);
    int rc = cn_node_namespace(whole->objects, "test/List", &whole->ns, err);
    return rc < 0 ? rc : cn_remote_new(&remote, &whole->remote, err);
}

static int open_host(struct whole *whole, struct cn_err *err)
{
    struct cn_cluster *cluster = whole->cluster;
    char name[20], address[20];
    uint16_t port;
    snprintf(name, sizeof(name), "node-%d", whole->process.index);
    snprintf(address, sizeof(address), "node-%d:1", whole->process.index);
    cluster->node = cn_strdup(name);
    struct cn_host_config config = {.conninfo = "none",
                                    .node = name,
                                    .address = address,
                                    .cluster =
                                        *cluster->disk.cluster ? cluster->disk.cluster : NULL,
                                    .disk = cluster->disk.id,
                                    .life = cluster->disk.life,
                                    .seen = cluster->disk.seen,
                                    .verified = verified,
                                    .shut = true,
                                    .workers = 1 + rnd(2),
                                    .times = {.settle_ms = 1500,
                                              .replace_ms = 2000,
                                              .copy_ms = 1500,
                                              .leave_ms = one_in(2) ? 200 : 2500,
                                              .feed_ms = one_in(2) ? 200 : 1000},
                                    .disk_hands = &cluster->disk.hands,
                                    .front = &cluster->front,
                                    .data = cluster,
                                    .joined = on_joined,
                                    .failed = cn_cluster_fail,
                                    .left = on_left,
                                    .pipe = on_pipe,
                                    .silent = on_silent,
                                    .sessions = on_sessions};
    config.listen_fd = cn_links_bind("any", 0, &port, err);
    int rc = cn_host_new(&config, &cluster->host, err);
    return rc < 0 ? rc : cn_host_start(cluster->host, err);
}

static void obey(struct whole *whole)
{
    struct cn_err err = {0};
    char name[20];
    if (whole->leave)
        cn_host_leave(whole->cluster->host, whole->hand_over);
    whole->leave = false;
    if (whole->move_shard < 0 || !whole->joined)
        return;
    snprintf(name, sizeof(name), "node-%d", whole->move_to);
    unsigned shard = (unsigned)whole->move_shard;
    whole->move_shard = -1;
    (void)cn_host_move(whole->cluster->host, shard, name, &err);
}

static void node_main(void *data)
{
    struct whole *whole = data;
    struct cn_cluster *cluster = cn_alloc_zero(sizeof(*cluster));
    struct cn_backup_streams_host streams = {0};
    struct cn_err err = {0};
    pthread_t thread;
    bool serves = false;
    whole->cluster = cluster;
    pthread_mutex_init(&cluster->lock, NULL);
    pthread_cond_init(&cluster->changed, NULL);
    cn_cluster_front_init(cluster);
    cluster->streams = cn_backup_streams_new(&streams);
    int rc = open_disk(whole, &err);
    if (rc == 0)
        rc = open_objects(whole, &err);
    if (rc == 0)
        rc = open_host(whole, &err);
    if (rc < 0) {
        TRACE("node %d cannot start: %s", whole->process.index, err.text);
        whole_ended(whole->process.index);
        return;
    }
    while (!whole->ends) {
        obey(whole);
        if (whole->joined && !serves) {
            pthread_create(&thread, NULL, lane_main, whole);
            pthread_create(&thread, NULL, cn_cluster_watch, cluster);
            serves = true;
        }
        if (!whole->ends && !whole->leave && (whole->move_shard < 0 || !whole->joined))
            (void)fiber_wait(whole, INT64_MAX);
    }
    whole_ended(whole->process.index);
}

void whole_wake(int n)
{
    fiber_wake(&wholes[n], true);
}

/* --- its disk --------------------------------------------------------------------------------- */

static void on_disk(void *data, const char *name, const char *path)
{
    struct whole *whole = data;
    (void)name, (void)path;
    if (!process_current())
        return;
    int32_t most = calm ? 3 : whole->disk_slow_ms;
    if (most)
        fiber_sleep_ns((int64_t)rnd((uint32_t)most * 1000) * 1000);
}

/* An empty one has its name from here, since the engine's are small numbers. */
static void name_disk(struct whole *whole, uint64_t id)
{
    char text[80];
    struct cn_disk *disk = simdisk_disk(whole->disk);
    int size = snprintf(text, sizeof(text), "cairn disk %016x life 0\n", (unsigned)id);
    if (cn_disk_mkdirs(disk, "shards") < 0 ||
        cn_disk_replace(disk, "shards/DISK", text, (size_t)size) < 0)
        abort();
}

void whole_start(int n)
{
    struct whole *whole = &wholes[n];
    struct node *node = &nodes[n];
    if (!whole->disk) {
        whole->disk = simdisk_new();
        name_disk(whole, node->disk);
    }
    simdisk_set_hook(whole->disk, SIMDISK_SYNC, on_disk, whole);
    *whole = (struct whole){.disk = whole->disk,
                            .disk_slow_ms = one_in(3) ? 60 : 8,
                            .move_shard = -1,
                            .process = {.index = n,
                                        .rate = node->rate,
                                        .offset_ns = 1000000000ll * (1 + node->offset),
                                        .wall_ns = (int64_t)rnd(100000) * 1000000}};
    process_start(&whole->process, node_main, whole);
}
