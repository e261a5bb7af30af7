/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes in one process, with lanes on threads of their own, hand shards to and fro while they
 * are in use; they share nothing but the shards' files. Whatever was acknowledged is there. */
#include <stdlib.h>

#include "base/rand.h"
#include "object/alarm.h"
#include "store/database.h"
#include "test/unit/object/shard_world.h"

enum { NODES = 2, LANES = 2, OBJECTS = 24, CALLS = 8, MOVES = 60, AFTER = 20 };

/* What has been told of each object; one for all. */
static struct {
    pthread_mutex_t lock;
    int64_t told[OBJECTS]; /* the largest value in an answer */
    unsigned answers, failures, wrong;
    atomic_uint alarms;
} ledger = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct mover_node;

struct mover_lane {
    struct mover_node *node;
    unsigned index;
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    struct cn_desk desk;
    struct cn_object_lane lane;
    struct cn_mail start, stop;
    struct cn_rand rand;
    uv_timer_t pause;
    unsigned out; /* calls under way */
    bool stopping;
    pthread_t thread;
};

struct mover_node {
    struct cn_shards *shards;
    struct cn_node *node;
    struct cn_namespace *ns;
    struct mover_lane lanes[LANES];
};

/* --- the class: a cell that is raised, and now and then sets an alarm that raises it too ---------
 */

static int cell_create(struct cn_object *object, void *class_data, void **instance,
                       struct cn_err *err)
{
    struct cn_database *db = cn_object_database(object, err);
    *instance = class_data;
    return db ? cn_database_exec(db,
                                 "CREATE TABLE IF NOT EXISTS c(n INTEGER);"
                                 "INSERT INTO c SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM c)",
                                 err)
              : err->code;
}

static void cell_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    (void)instance;
    struct cn_err err;
    struct cn_database *db = cn_object_database(object, &err);
    int64_t n = -1;
    if (call->kind == CN_CALL_ALARM)
        cn_alarm_begin(object, call->payload);
    int rc = db ? cn_database_exec(db, "UPDATE c SET n = n + 1", &err) : err.code;
    if (rc == 0)
        rc = cn_database_number(db, "SELECT n FROM c", 15, &n, &err);
    if (rc == 0 && call->kind == CN_CALL_ALARM)
        cn_alarm_succeeded(object);
    else if (rc == 0 && n % 8 == 0)
        rc = cn_object_alarm_set(object, cn_clock_wall_ms(cn_clock_system()) + 3, &err);
    if (rc < 0) {
        cn_call_fail(call, CN_FAULT_RETRYABLE, rc, "%s", err.text);
        return;
    }
    if (call->kind == CN_CALL_ALARM)
        atomic_fetch_add(&ledger.alarms, 1);
    cn_call_reply(call, (void *)(intptr_t)n);
}

static void cell_destroy(struct cn_object *object, void *instance)
{
    (void)object, (void)instance;
}

static const struct cn_class cell = {
    .create = cell_create, .deliver = cell_deliver, .destroy = cell_destroy};

static bool find_cell(struct cn_object_lane *lane, struct cn_namespace *ns,
                      const struct cn_object_key *key, const struct cn_class **class_,
                      void **class_data)
{
    (void)ns, (void)key;
    *class_ = &cell;
    *class_data = lane;
    return true;
}

/* --- clients -----------------------------------------------------------------------------------
 */

struct raise {
    struct cn_call call;
    struct mover_lane *from;
    unsigned object;
    int64_t before; /* what had been told when it was sent */
};

static void send_more(struct mover_lane *lane);

static void on_pause(uv_timer_t *timer)
{
    struct mover_lane *lane = timer->data;
    if (!lane->stopping)
        send_more(lane);
    cn_object_lane_step(&lane->lane);
}

static void raise_done(struct cn_envelope *envelope)
{
    struct raise *raise = CN_CONTAINER_OF(cn_call_of(envelope), struct raise, call);
    struct mover_lane *lane = raise->from;
    int64_t value = (intptr_t)raise->call.result;
    pthread_mutex_lock(&ledger.lock);
    if (envelope->err.code) {
        ledger.failures++;
    } else {
        ledger.answers++;
        /* What was told before it was sent has happened before it. */
        ledger.wrong += value <= raise->before;
        if (value > ledger.told[raise->object])
            ledger.told[raise->object] = value;
    }
    pthread_mutex_unlock(&ledger.lock);
    bool failed = envelope->err.code;
    cn_free(raise->call.name);
    cn_free(raise);
    lane->out--;
    if (lane->stopping)
        return;
    if (!failed)
        send_more(lane);
    else if (!uv_is_active((uv_handle_t *)&lane->pause)) /* the shard is elsewhere: others first */
        uv_timer_start(&lane->pause, on_pause, 1, 0);
}

static void raise_drop(struct cn_envelope *envelope)
{
    struct raise *raise = CN_CONTAINER_OF(cn_call_of(envelope), struct raise, call);
    cn_free(raise->call.name);
    cn_free(raise);
}

static void send_more(struct mover_lane *lane)
{
    struct cn_namespace *ns = lane->node->ns;
    while (lane->out < CALLS) {
        char name[16];
        struct raise *raise = CN_NEW(struct raise);
        raise->from = lane;
        raise->object = (unsigned)cn_rand_below(&lane->rand, OBJECTS);
        snprintf(name, sizeof(name), "o%u", raise->object);
        struct cn_call *call = &raise->call;
        call->kind = CN_CALL_OTHER;
        call->ns = ns;
        call->key.namespace_id = ns->id;
        cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, name, strlen(name), call->key.id);
        call->name = cn_strdup(name);
        call->name_size = strlen(name);
        call->envelope.from = cn_desk_place(&lane->desk);
        call->envelope.on_done = raise_done;
        call->envelope.drop = raise_drop;
        pthread_mutex_lock(&ledger.lock);
        raise->before = ledger.told[raise->object];
        pthread_mutex_unlock(&ledger.lock);
        lane->out++;
        cn_call_send(call, NULL);
    }
}

/* --- lanes -------------------------------------------------------------------------------------
 */

static void lane_stopped(struct cn_object_lane *objects)
{
    struct mover_lane *lane = objects->data;
    cn_desk_close(&lane->desk);
    cn_mailbox_close(&lane->mailbox, NULL);
}

static void deliver_start(struct cn_mail *mail, void *data)
{
    (void)data;
    struct mover_lane *lane = CN_CONTAINER_OF(mail, struct mover_lane, start);
    send_more(lane);
    cn_object_lane_step(&lane->lane);
}

static void deliver_stop(struct cn_mail *mail, void *data)
{
    (void)data;
    struct mover_lane *lane = CN_CONTAINER_OF(mail, struct mover_lane, stop);
    lane->stopping = true;
    uv_close((uv_handle_t *)&lane->pause, NULL);
    cn_object_lane_stop(&lane->lane, lane_stopped);
}

static void *run_lane(void *data)
{
    struct mover_lane *lane = data;
    cn_loop_take(&lane->loop);
    uv_run(&lane->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void node_open(struct mover_node *node, uint64_t seed)
{
    struct cn_err err;
    node->shards = cn_shards_new(&(struct cn_shards_options){.count = SHARDS, .number = number});
    struct cn_node_options options = {.shards = node->shards,
                                      .lane_count = LANES,
                                      .find_class = find_cell,
                                      .idle_ms = 20,
                                      .secret = "0123456789abcde"};
    node->node = cn_node_new(&options);
    CHECK_INT(0, cn_node_namespace(node->node, "test/Cell", &node->ns, &err));
    for (unsigned i = 0; i < LANES; i++) {
        struct mover_lane *lane = &node->lanes[i];
        *lane = (struct mover_lane){.node = node, .index = i};
        cn_rand_init(&lane->rand, seed + i);
        lane->start.deliver = deliver_start;
        lane->stop.deliver = deliver_stop;
        CHECK_INT(0, cn_loop_init(&lane->loop, NULL));
        CHECK_INT(0, cn_mailbox_open(&lane->mailbox, &lane->loop, lane));
        uv_timer_init(&lane->loop, &lane->pause);
        lane->pause.data = lane;
        cn_desk_open(&lane->desk, i, &lane->loop, &lane->mailbox, cn_object_lane_step_desk, lane);
        CHECK_INT(0, cn_object_lane_start(&lane->lane, node->node, &lane->desk, lane, &err));
        cn_loop_give(&lane->loop);
    }
    for (unsigned i = 0; i < LANES; i++) /* all are there before the first runs */
        CHECK_INT(0, pthread_create(&node->lanes[i].thread, NULL, run_lane, &node->lanes[i]));
}

static void node_close(struct mover_node *node)
{
    for (unsigned i = 0; i < LANES; i++)
        CHECK(cn_mailbox_send(&node->lanes[i].mailbox, &node->lanes[i].stop));
    for (unsigned i = 0; i < LANES; i++) {
        pthread_join(node->lanes[i].thread, NULL);
        CHECK_INT(0, uv_loop_close(&node->lanes[i].loop));
    }
    cn_node_free(node->node);
    cn_shards_free(node->shards);
}

/* --- moves -------------------------------------------------------------------------------------
 */

struct waiting {
    uv_sem_t done;
    bool reached;
};

static void on_change(void *data, unsigned index, bool reached)
{
    (void)index;
    struct waiting *waiting = data;
    waiting->reached = reached;
    uv_sem_post(&waiting->done);
}

static bool await_change(struct waiting *waiting)
{
    uv_sem_wait(&waiting->done);
    return waiting->reached;
}

/* The largest value of the object in its store. */
static int64_t read_cell(struct under *under, const struct cn_object_key *key)
{
    struct cn_database *db;
    struct cn_err err;
    struct cn_database_options options = {.must_exist = true};
    int64_t n = 0;
    int rc = cn_database_open(under->store, key, &options, &db, &err);
    if (rc == CN_ENOTFOUND)
        return 0;
    CHECK_INT(0, rc);
    CHECK_INT(0, cn_database_number(db, "SELECT n FROM c", 15, &n, &err));
    cn_database_close(db);
    return n;
}

static void wait_for_answers(unsigned more)
{
    pthread_mutex_lock(&ledger.lock);
    unsigned goal = ledger.answers + more;
    while (ledger.answers < goal) {
        pthread_mutex_unlock(&ledger.lock);
        uv_sleep(1);
        pthread_mutex_lock(&ledger.lock);
    }
    pthread_mutex_unlock(&ledger.lock);
}

TEST(shard_moves, what_was_acknowledged_is_there_wherever_its_shard_goes)
{
    static struct mover_node nodes[NODES];
    struct under under[SHARDS] = {{0}};
    unsigned owner[SHARDS];
    const char *dir = test_dir();
    struct cn_rand rand;
    struct cn_err err;
    struct waiting waiting;
    CHECK_INT(0, uv_sem_init(&waiting.done, 0));
    cn_rand_init(&rand, test_seed());
    for (unsigned i = 0; i < NODES; i++)
        node_open(&nodes[i], test_seed() + 10 * i);
    for (unsigned i = 0; i < SHARDS; i++) {
        owner[i] = i % NODES;
        under_open(&under[i], dir, i, NULL, NULL);
        CHECK_INT(0, cn_shards_open(nodes[owner[i]].shards, i, under[i].store, under[i].history,
                                    on_change, &waiting, &err));
        CHECK(await_change(&waiting));
    }
    for (unsigned i = 0; i < NODES * LANES; i++) {
        struct mover_lane *lane = &nodes[i / LANES].lanes[i % LANES];
        CHECK(cn_mailbox_send(&lane->mailbox, &lane->start));
    }
    for (unsigned move = 0; move < MOVES; move++) {
        unsigned shard = (unsigned)cn_rand_below(&rand, SHARDS);
        struct cn_shards *from = nodes[owner[shard]].shards;
        wait_for_answers(AFTER);
        unsigned how = (unsigned)cn_rand_below(&rand, 4);
        if (how > 0) {
            struct waiting stopped = {0};
            CHECK_INT(0, uv_sem_init(&stopped.done, 0));
            cn_shards_stop(from, shard, on_change, &stopped);
            if (how == 1) { /* planned, and nothing is lost */
                CHECK(await_change(&stopped));
            } else if (how == 2) { /* called off */
                cn_shards_resume(from, shard, on_change, &waiting);
                CHECK(await_change(&waiting));
                (void)await_change(&stopped);
                uv_sem_destroy(&stopped.done);
                continue;
            }
            cn_shards_close(from, shard, on_change, &waiting); /* of 3: at once all the same */
            CHECK(await_change(&waiting));
            if (how == 3)
                (void)await_change(&stopped);
            uv_sem_destroy(&stopped.done);
        } else {
            cn_shards_close(from, shard, on_change, &waiting);
            CHECK(await_change(&waiting));
        }
        under_close(&under[shard]);
        under_open(&under[shard], dir, shard, NULL, NULL);
        owner[shard] = (owner[shard] + 1) % NODES;
        CHECK_INT(0, cn_shards_open(nodes[owner[shard]].shards, shard, under[shard].store,
                                    under[shard].history, on_change, &waiting, &err));
        CHECK(await_change(&waiting));
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        cn_shards_close(nodes[owner[i]].shards, i, on_change, &waiting);
        CHECK(await_change(&waiting));
    }
    pthread_mutex_lock(&ledger.lock);
    CHECK_INT(0, ledger.wrong);
    CHECK(ledger.answers > MOVES && ledger.failures > 0 && ledger.alarms > 0);
    for (unsigned i = 0; i < OBJECTS; i++) {
        char name[16];
        struct cn_object_key key = {.namespace_id = nodes[0].ns->id};
        snprintf(name, sizeof(name), "o%u", i);
        cn_id_from_name(&nodes[0].ns->keys, CN_JURISDICTION_NONE, name, strlen(name), key.id);
        CHECK(read_cell(&under[cn_shard_index(&key, SHARDS)], &key) >= ledger.told[i]);
    }
    pthread_mutex_unlock(&ledger.lock);
    for (unsigned i = 0; i < NODES; i++)
        node_close(&nodes[i]);
    for (unsigned i = 0; i < SHARDS; i++)
        under_close(&under[i]);
    uv_sem_destroy(&waiting.done);
}
