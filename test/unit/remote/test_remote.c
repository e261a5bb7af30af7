/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between nodes, each a lane of objects in this process: where they arrive, in which order,
 * how often, and what becomes of those that find nobody. */
#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/stream.h"
#include "net/tls.h"
#include "object/message.h"
#include "remote/private.h"
#include "remote/question.h"
#include "test/unit/object/shard_world.h"
#include "worker/lane.h"

static const char CLUSTER[] = "01234567-89ab-cdef-0123-456789abcdef";
enum { NODES = 3, SHARD = 1 };

struct node {
    struct shard_world world; /* first */
    struct cn_remote *remote;
    struct cn_links *links;
    uint16_t port;
    uint64_t owner; /* of every shard, as it believes; 0: nobody */
    struct cn_buf log;
    struct cn_call *parked;
    bool deaf, open, links_closed;
    unsigned given_up;
};
static struct node nodes[NODES];

/* --- a class that writes down what it is asked ------------------------------------------------ */

static int log_create(struct cn_object *object, void *class_data, void **instance,
                      struct cn_err *err)
{
    *instance = class_data;
    return 0;
}

/* Its answer has a reference of its own. */
static void lend_number(struct cn_call *call, double number)
{
    struct cn_message *message = call->payload;
    char hex[CN_OBJECT_HEX_SIZE + 1];
    cn_id_to_hex(call->key.id, hex);
    cn_lent_list_add(&message->lent, cn_sprintf("o%u:%s", call->ns->id, hex), number);
}

static void log_deliver(struct cn_object *object, void *instance, struct cn_call *call)
{
    struct node *node = instance;
    struct cn_message *message = call->payload;
    const char *method = message->method;
    if (call->kind == CN_CALL_OTHER) { /* what is lent, and notes about it */
        struct cn_lent_note note = cn_lent_note_read(method, message->bytes, message->size);
        cn_buf_printf(&node->log, "%s", method);
        if (note.kind)
            cn_buf_printf(&node->log, " %.0f", note.number);
        cn_buf_printf(&node->log, ";");
        cn_call_reply(call, message);
        return;
    }
    cn_buf_printf(&node->log, "%.*s;", (int)(message->size < 20 ? message->size : 20),
                  (const char *)message->bytes);
    if (strcmp(method, "park") == 0) {
        node->parked = call;
    } else if (strncmp(method, "lend ", 5) == 0) {
        lend_number(call, strtod(method + 5, NULL));
        message->result = cn_memdup("lent", 4);
        message->result_size = 4;
        cn_call_reply(call, message);
    } else if (strcmp(method, "fail") == 0) {
        message->result = cn_memdup("thrown", 6);
        message->result_size = 6;
        cn_call_fail(call, CN_FAULT_REMOTE, CN_EJS, "depth %u of %.*s", call->envelope.origin.depth,
                     (int)call->name_size, call->name);
    } else {
        message->result = message->bytes;
        message->result_size = message->size;
        message->bytes = NULL;
        cn_call_reply(call, message);
    }
}

static void log_destroy(struct cn_object *object, void *instance)
{
}

static const struct cn_class log_class = {
    .create = log_create, .deliver = log_deliver, .destroy = log_destroy};

/* --- nodes ------------------------------------------------------------------------------------ */

static struct cn_remote_owner find_owner(void *data, unsigned shard)
{
    struct node *node = data;
    return (struct cn_remote_owner){node->owner, node->owner == (uint64_t)(node - nodes) + 1};
}

static bool find_address(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1])
{
    if (!disk || disk > NODES || !nodes[disk - 1].open)
        return false;
    snprintf(address, CN_LINK_ADDRESS_MAX, "127.0.0.1:%u", nodes[disk - 1].port);
    return true;
}

static void give_up(void *data, struct cn_call *call)
{
    ((struct node *)data)->given_up++;
    cn_call_turn_away(call, CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_ECLOSED, CN_SHARD_AWAY);
}

static void on_pipe(void *data, struct cn_stream_moved *moved, const uint8_t *body, size_t size)
{
    struct node *node = data;
    if (node->deaf)
        cn_stream_moved_drop(moved);
    else
        cn_remote_pipe(node->remote, moved, body, size);
}

static void no_up(void *data, uint64_t disk)
{
}
static void no_down(void *data, uint64_t disk, bool silent, const char *why)
{
}
static bool no_frame(void *data, uint64_t disk, const struct cn_frame *frame)
{
    return false;
}
static void no_room(void *data, uint64_t disk)
{
}

static void node_open(struct node *node, void (*change)(struct cn_remote_options *options))
{
    struct cn_err err;
    char dir[300];
    uint64_t disk = (uint64_t)(node - nodes) + 1;
    *node = (struct node){.open = true};
    snprintf(dir, sizeof(dir), "%s/%u", test_dir(), (unsigned)disk);
    (void)mkdir(dir, 0700);
    shard_world_start(&node->world, cn_strdup(dir), &log_class);
    struct cn_remote_options options = {.disk = disk,
                                        .life = 1,
                                        .lane_count = 1,
                                        .data = node,
                                        .owner = find_owner,
                                        .address = find_address,
                                        .give_up = give_up};
    memcpy(options.cluster, CLUSTER, sizeof(CLUSTER));
    if (change)
        change(&options);
    CHECK_INT(0, cn_remote_new(&options, &node->remote, &err));
    cn_remote_lane_open(node->remote, &node->world.world.lane);
    struct cn_links_config links = {
        .disk = disk, .life = 1, .hooks = {node, no_up, no_down, no_frame, no_room, on_pipe}};
    memcpy(links.cluster, CLUSTER, sizeof(CLUSTER));
    links.listen_fd = cn_links_bind("127.0.0.1", 0, &node->port, &err);
    CHECK_INT(0, cn_links_new(&node->world.world.loop, &links, &node->links, &err));
}

static void open_nodes(void (*change)(struct cn_remote_options *options))
{
    for (unsigned i = 0; i < NODES; i++)
        node_open(&nodes[i], change);
}

static void step(void)
{
    for (unsigned i = 0; i < NODES; i++)
        if (nodes[i].open)
            uv_run(&nodes[i].world.world.loop, UV_RUN_NOWAIT);
}

#define UNTIL(condition) \
    while (!(condition)) \
    step()

static void set_true(void *data)
{
    *(bool *)data = true;
}

static void node_close(struct node *node)
{
    if (!node->open)
        return;
    cn_links_free(node->links, set_true, &node->links_closed);
    UNTIL(node->links_closed);
    cn_remote_lane_close(&node->world.world.lane);
    char *dir = (char *)node->world.dir;
    struct cn_object_lane *lane = &node->world.world.lane;
    struct cn_remote *remote = node->remote;
    for (unsigned i = 0; i < 20; i++)
        step(); /* pipes close */
    node->open = false;
    cn_remote_lane_free(lane);
    cn_remote_free(remote);
    shard_world_close(&node->world);
    cn_buf_fini(&node->log);
    cn_free(dir);
}

static void close_nodes(void)
{
    for (unsigned i = 0; i < NODES; i++)
        node_close(&nodes[i]);
}

/* The node has the shard from now on, and everybody in `who` (bits) knows. */
static void own(unsigned node, unsigned who)
{
    shard_open(&nodes[node].world, SHARD);
    while (cn_shards_state(nodes[node].world.world.shards, SHARD) != CN_SHARD_OPEN)
        step();
    for (unsigned i = 0; i < NODES; i++)
        if (who & 1u << i)
            nodes[i].owner = node + 1;
}

static void disown(unsigned node)
{
    struct outcome outcome = {0};
    cn_shards_close(nodes[node].world.world.shards, SHARD, on_outcome, &outcome);
    UNTIL(atomic_load(&outcome.count));
    under_close(&nodes[node].world.under[SHARD]);
}

/* --- calls ------------------------------------------------------------------------------------ */

struct sent {
    struct cn_message message;
    bool done;
};

static void on_answer(struct cn_envelope *envelope)
{
    struct sent *sent = CN_CONTAINER_OF(cn_message_of(envelope), struct sent, message);
    CHECK(!sent->done);
    cn_message_settle(&sent->message);
    sent->done = true;
}

static unsigned which_object; /* of the shard */

static struct sent *call_kind(unsigned from, enum cn_call_kind kind, const char *method,
                              const char *text, size_t size)
{
    struct node *node = &nodes[from];
    struct sent *sent = CN_NEW(struct sent);
    struct cn_call *call = &sent->message.call;
    const char *name = name_in(&node->world, SHARD, which_object);
    sent->message.method = cn_strdup(method);
    sent->message.bytes = cn_alloc_zero(size);
    memcpy(sent->message.bytes, text, kind == CN_CALL_OTHER ? size : strlen(text));
    sent->message.size = call->size = size;
    call->kind = kind;
    call->payload = &sent->message;
    call->ns = node->world.world.ns;
    call->name = cn_strdup(name);
    call->name_size = strlen(name);
    call->key.namespace_id = call->ns->id;
    cn_id_from_name(&call->ns->keys, CN_JURISDICTION_NONE, name, strlen(name), call->key.id);
    call->envelope.from = cn_desk_place(&node->world.world.desk);
    call->envelope.on_done = on_answer;
    call->envelope.origin = (struct cn_origin){.request = 5, .depth = 7};
    cn_call_send(call, NULL);
    return sent;
}

static struct sent *call_sized(unsigned from, const char *method, const char *text, size_t size)
{
    return call_kind(from, CN_CALL_RPC, method, text, size);
}

/* A call to something lent. */
static struct sent *call_lent(unsigned from, const char *method)
{
    return call_kind(from, CN_CALL_OTHER, method, "x", 1);
}

static struct sent *note(unsigned from, const char *method, double number)
{
    uint8_t bytes[CN_LENT_NUMBER_SIZE];
    size_t size = cn_lent_number_write(number, bytes);
    return call_kind(from, CN_CALL_OTHER, method, (const char *)bytes, size);
}

static struct sent *call_text(unsigned from, const char *method, const char *text)
{
    return call_sized(from, method, text, strlen(text));
}

static void sent_free(struct sent *sent)
{
    CHECK(sent->done);
    cn_message_fini(&sent->message);
    cn_free(sent);
}

static void check_ok(struct sent *sent, const char *text)
{
    UNTIL(sent->done);
    CHECK_STR("", sent->message.call.envelope.err.code ? sent->message.call.envelope.err.text : "");
    CHECK_INT(strlen(text), sent->message.result_size);
    CHECK(!*text || memcmp(sent->message.result, text, strlen(text)) == 0);
    sent_free(sent);
}

static void check_failed(struct sent *sent, unsigned faults, const char *text)
{
    UNTIL(sent->done);
    CHECK(sent->message.call.envelope.err.code);
    CHECK_STR(text, sent->message.call.envelope.err.text);
    CHECK_INT(faults, sent->message.call.envelope.faults);
    sent_free(sent);
}

static const char *log_of(unsigned node)
{
    return cn_buf_text(&nodes[node].log);
}

TEST(remote, carries_a_call_to_the_owner_and_its_answer_back)
{
    open_nodes(NULL);
    own(1, 7);
    check_ok(call_text(0, "echo", "hello"), "hello");
    struct sent *failed = call_text(0, "fail", "x");
    UNTIL(failed->done);
    CHECK(failed->message.result_size == 6 && !memcmp(failed->message.result, "thrown", 6));
    char text[80];
    snprintf(text, sizeof(text), "depth 7 of %s", name_in(&nodes[0].world, SHARD, 0));
    check_failed(failed, CN_FAULT_REMOTE, text);
    check_ok(call_text(1, "echo", "at home"), "at home");
    CHECK_STR("hello;x;at home;", log_of(1));
    close_nodes();
}

/* O3, with messages of every size. */
TEST(remote, keeps_the_order_of_calls_to_an_object)
{
    enum { COUNT = 300 };
    static struct sent *sent[COUNT];
    struct cn_buf want = {0};
    open_nodes(NULL);
    own(1, 7);
    for (unsigned i = 0; i < COUNT; i++) {
        char text[12];
        snprintf(text, sizeof(text), "%u", i);
        cn_buf_printf(&want, "%s;", text);
        sent[i] = call_sized(0, "echo", text, i % 10 ? 30 : 400000);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        UNTIL(sent[i]->done);
        CHECK_INT(0, sent[i]->message.call.envelope.err.code);
        sent_free(sent[i]);
    }
    CHECK_STR(cn_buf_text(&want), log_of(1));
    cn_buf_fini(&want);
    close_nodes();
}

/* O3: a large call is still on its way in a turn that the owner has begun to refuse, since it did not
 * have the shard yet, when a small one to the same object is sent in the next turn. */
TEST(remote, keeps_the_order_of_calls_of_two_turns)
{
    struct cn_remote_counts counts = {0};
    open_nodes(NULL);
    for (unsigned i = 0; i < NODES; i++)
        nodes[i].owner = 2; /* which does not know it yet */
    struct sent *large = call_sized(0, "echo", "large", 31 << 20);
    which_object = 1;
    struct sent *other = call_text(0, "echo", "other");
    which_object = 0;
    for (; !counts.refused; cn_remote_count(nodes[0].remote, &counts))
        step();
    own(1, 7);
    UNTIL(strstr(log_of(1), "other;"));
    struct sent *small = call_text(0, "echo", "small");
    UNTIL(large->done && other->done && small->done);
    CHECK(strstr(log_of(1), "large;") && strstr(log_of(1), "small;"));
    CHECK(strstr(log_of(1), "large;") < strstr(log_of(1), "small;"));
    sent_free(large);
    sent_free(other);
    sent_free(small);
    close_nodes();
}

/* The shard moves in the middle of a stream of calls: all arrive, once, in order. */
TEST(remote, holds_calls_while_a_shard_moves)
{
    enum { COUNT = 120 };
    static struct sent *sent[COUNT];
    struct cn_buf want = {0};
    unsigned made = 0;
    open_nodes(NULL);
    own(1, 7);
    for (unsigned round = 0; round < 4; round++) {
        unsigned from = 1 + round % 2, to = 3 - from;
        for (unsigned i = 0; i < COUNT / 4; i++, made++) {
            char text[12];
            snprintf(text, sizeof(text), "%u", made);
            cn_buf_printf(&want, "%s;", text);
            sent[made] = call_sized(0, "echo", text, made % 7 ? 20 : 200000);
            if (i % 5 == 0)
                step();
            if (i == 10) { /* as a planned move does: nothing that was taken is lost */
                struct outcome outcome = {0};
                cn_shards_stop(nodes[from].world.world.shards, SHARD, on_outcome, &outcome);
                UNTIL(atomic_load(&outcome.count));
                CHECK(outcome.reached);
                disown(from);
                nodes[from].owner = 0; /* and nobody knows yet */
            }
            if (i == 20)
                own(to, round % 2 ? 7 : 6);
        }
        nodes[0].owner = to + 1;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        UNTIL(sent[i]->done);
        if (sent[i]->message.call.envelope.err.code)
            test_fail(__FILE__, __LINE__, "%u: %s", i, sent[i]->message.call.envelope.err.text);
        sent_free(sent[i]);
    }
    /* Each node saw a part, in order; together everything, once. */
    unsigned at[2] = {0, 0}, seen = 0;
    int last[2] = {-1, -1};
    bool has[COUNT] = {false};
    for (unsigned k = 0; k < 2; k++) {
        for (const char *text = log_of(1 + k); text[at[k]];) {
            int number = (int)strtol(text + at[k], NULL, 10);
            CHECK(number > last[k] && number < COUNT && !has[number]);
            has[number] = true;
            last[k] = number;
            seen++;
            at[k] = (unsigned)(strchr(text + at[k], ';') - text) + 1;
        }
    }
    CHECK_INT(COUNT, seen);
    cn_buf_fini(&want);
    close_nodes();
}

/* O4 */
TEST(remote, lets_held_calls_in_first_when_the_shard_comes_here)
{
    open_nodes(NULL);
    struct sent *first = call_text(0, "echo", "1"), *second = call_text(0, "echo", "2");
    for (unsigned i = 0; i < 5; i++)
        step();
    CHECK_INT(2, cn_remote_lane_of(&nodes[0].world.world.lane)->held_count);
    own(0, 7);
    struct sent *third = call_text(0, "echo", "3");
    check_ok(first, "1");
    check_ok(second, "2");
    check_ok(third, "3");
    CHECK_STR("1;2;3;", log_of(0));
    CHECK_INT(0, cn_remote_lane_of(&nodes[0].world.world.lane)->held_count);
    close_nodes();
}

/* O5: the first has a stale map, the second knows better. */
TEST(remote, follows_one_refusal_to_the_owner)
{
    open_nodes(NULL);
    own(2, 6);
    nodes[0].owner = 2;
    check_ok(call_text(0, "echo", "x"), "x");
    CHECK_STR("x;", log_of(2));
    struct cn_remote_counts counts;
    cn_remote_count(nodes[0].remote, &counts);
    CHECK(counts.refused == 1 && counts.sent == 2 && !counts.held);
    close_nodes();
}

static void wait_briefly(struct cn_remote_options *options)
{
    options->wait_ms = 60;
}

/* O2: maps that name each other, nobody at all, a node that cannot be reached. */
TEST(remote, gives_up_in_time)
{
    open_nodes(wait_briefly);
    nodes[0].owner = 2;
    nodes[1].owner = 3;
    nodes[2].owner = 2;
    check_failed(call_text(0, "echo", "x"), CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_SHARD_AWAY);
    struct cn_remote_counts counts;
    cn_remote_count(nodes[0].remote, &counts);
    CHECK(counts.refused < 40 && counts.given_up == 1);
    nodes[0].owner = 0;
    check_failed(call_text(0, "echo", "x"), CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_SHARD_AWAY);
    nodes[0].owner = 2;
    nodes[1].deaf = true;
    cn_remote_silent(nodes[0].remote, 2);
    step(); /* it hears of it */
    check_failed(call_text(0, "echo", "x"), CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_SHARD_AWAY);
    nodes[0].owner = 1; /* it is ours, and is not opened */
    check_failed(call_text(0, "echo", "x"), CN_FAULT_RETRYABLE | CN_FAULT_REMOTE, CN_SHARD_AWAY);
    CHECK_INT(4, nodes[0].given_up);
    CHECK(!nodes[1].log.size && !nodes[2].log.size);
    close_nodes();
}

/* O1 */
TEST(remote, says_what_may_have_happened)
{
    open_nodes(NULL);
    own(1, 7);
    struct sent *parked = call_text(0, "park", "1");
    UNTIL(nodes[1].parked);
    cn_remote_silent(nodes[0].remote, 2);
    check_failed(parked, CN_FAULT_RETRYABLE, "Network connection lost.");
    struct cn_message *message = nodes[1].parked->payload;
    message->result = NULL;
    cn_call_reply(nodes[1].parked, message); /* nobody waits */
    check_ok(call_text(0, "echo", "2"), "2");
    CHECK_STR("1;2;", log_of(1));
    close_nodes();
}

/* A node that starts anew in the middle: what was not sent waits for it. */
TEST(remote, waits_for_a_node_that_comes_back)
{
    open_nodes(NULL);
    own(1, 7);
    nodes[1].deaf = true;
    struct sent *sent = call_text(0, "echo", "late");
    for (unsigned i = 0; i < 2000; i++)
        step();
    CHECK(!sent->done);
    nodes[1].deaf = false;
    check_ok(sent, "late");
    close_nodes();
}

/* What waits of a node's own is no reason to turn others away: there is no order between the two.
 */
TEST(remote, takes_calls_of_others_while_its_own_wait_for_the_old_owner)
{
    open_nodes(NULL);
    own(1, 7);
    struct sent *stuck = call_text(0, "park", "old");
    UNTIL(nodes[1].parked);
    struct cn_call *parked = nodes[1].parked;
    shard_open(&nodes[0].world, SHARD); /* taken over: the old owner does not know yet */
    while (cn_shards_state(nodes[0].world.world.shards, SHARD) != CN_SHARD_OPEN)
        step();
    nodes[0].owner = nodes[2].owner = 1;
    check_ok(call_text(2, "echo", "theirs"), "theirs");
    check_ok(call_text(0, "echo", "ours"), "ours"); /* after a while: O4 */
    CHECK_STR("theirs;ours;", log_of(0));
    cn_call_reply(parked, parked->payload);
    UNTIL(stuck->done);
    sent_free(stuck);
    close_nodes();
}

static void hold_few(struct cn_remote_options *options)
{
    options->held_max = 2;
}

TEST(remote, holds_so_many_and_no_more)
{
    open_nodes(hold_few);
    struct sent *one = call_text(0, "echo", "1"), *two = call_text(0, "echo", "2"),
                *three = call_text(0, "echo", "3");
    check_failed(three, CN_FAULT_OVERLOADED | CN_FAULT_RETRYABLE,
                 "Too many calls wait for objects that no node answers for at the moment.");
    own(1, 7);
    check_ok(one, "1");
    check_ok(two, "2");
    close_nodes();
}

/* O7 */
TEST(remote, ends_what_is_held_and_sent_when_its_lane_ends)
{
    open_nodes(NULL);
    own(1, 7);
    struct sent *parked = call_text(0, "park", "1");
    UNTIL(nodes[1].parked);
    nodes[0].owner = 0;
    struct sent *held = call_text(0, "echo", "2");
    for (unsigned i = 0; i < 5; i++)
        step();
    cn_remote_lane_close(&nodes[0].world.world.lane);
    check_failed(parked, CN_FAULT_RETRYABLE, "the server is stopping");
    check_failed(held, CN_FAULT_RETRYABLE, "the server is stopping");
    check_failed(call_text(0, "echo", "3"), CN_FAULT_RETRYABLE, CN_SHARD_AWAY);
    struct cn_message *message = nodes[1].parked->payload;
    cn_call_reply(nodes[1].parked, message);
    /* As node_close(), without closing it twice. */
    cn_links_free(nodes[0].links, set_true, &nodes[0].links_closed);
    UNTIL(nodes[0].links_closed);
    for (unsigned i = 0; i < 20; i++)
        step();
    nodes[0].open = false;
    char *dir = (char *)nodes[0].world.dir;
    cn_remote_lane_free(&nodes[0].world.world.lane);
    cn_remote_free(nodes[0].remote);
    shard_world_close(&nodes[0].world);
    cn_free(dir);
    close_nodes();
}

/* --- what is lent: remote/leases.h -------------------------------------------------------------- */

/* Node `to` is told that these sessions are live: that of node i is `of[i]`; 0: none. */
static void tell(unsigned to, const uint64_t of[NODES])
{
    struct cn_host_session list[NODES];
    unsigned count = 0;
    for (unsigned i = 0; i < NODES; i++)
        if (of[i])
            list[count++] = (struct cn_host_session){of[i], i + 1};
    cn_remote_sessions(nodes[to].remote, of[to], of[to] ? list : NULL, of[to] ? count : 0);
    for (unsigned i = 0; i < 3; i++)
        step();
}

static void tell_all(const uint64_t of[NODES])
{
    for (unsigned i = 0; i < NODES; i++)
        tell(i, of);
}

static size_t loans_of(unsigned node)
{
    struct cn_remote_counts counts;
    cn_remote_count(nodes[node].remote, &counts);
    CHECK_INT(counts.leases,
              cn_leases_count(&cn_remote_lane_of(&nodes[node].world.world.lane)->leases));
    return counts.leases;
}

static void clear_log(unsigned node)
{
    cn_buf_clear(&nodes[node].log);
}

static void open_told(const uint64_t of[NODES])
{
    open_nodes(NULL);
    own(1, 7);
    tell_all(of);
}

/* S1, S3: what node 0 has is given back when its session is over, once, and nobody else's. */
TEST(lease, is_given_back_when_the_session_is_over)
{
    open_told((const uint64_t[]){10, 11, 12});
    check_ok(call_text(0, "lend 5", "a"), "lent");
    check_ok(call_text(2, "lend 6", "b"), "lent");
    check_ok(note(0, "~retain", 5), "");
    check_ok(note(0, "~retain", 6), "");
    CHECK_INT(3, loans_of(1));
    cn_remote_silent(nodes[1].remote, 1); /* a cut ends nothing, */
    cn_remote_silent(nodes[0].remote, 2); /* whoever notices */
    UNTIL(cn_remote_lane_of(&nodes[1].world.world.lane)->askers.count == 1);
    check_ok(call_text(0, "echo", "c"), "c");
    CHECK_INT(3, loans_of(1));
    clear_log(1);
    tell(1, (const uint64_t[]){0, 11, 12});
    UNTIL(nodes[1].log.size >= strlen("~release 5;~release 5;~release 6;"));
    const char *log = log_of(1);
    unsigned fives = 0, sixes = 0;
    for (const char *at = log; *at; at = strchr(at, ';') + 1) {
        fives += strncmp(at, "~release 5;", 11) == 0;
        sixes += strncmp(at, "~release 6;", 11) == 0;
    }
    CHECK(fives == 2 && sixes == 1);
    CHECK_INT(1, loans_of(1)); /* of node 2 */
    clear_log(1);
    tell(1, (const uint64_t[]){0, 11, 12});
    for (unsigned i = 0; i < 20; i++)
        step();
    CHECK_STR("", log_of(1));
    close_nodes();
}

/* What was let go of by its holder is not given back again. */
TEST(lease, ends_with_its_release)
{
    open_told((const uint64_t[]){10, 11, 12});
    check_ok(call_text(0, "lend 5", "a"), "lent");
    check_ok(note(0, "~release", 5), "");
    CHECK_INT(0, loans_of(1));
    CHECK_STR("a;~release 5;", log_of(1));
    clear_log(1);
    tell(1, (const uint64_t[]){0, 11, 12});
    for (unsigned i = 0; i < 20; i++)
        step();
    CHECK_STR("", log_of(1));
    close_nodes();
}

/* S2: a session that is over and does not know it. */
TEST(lease, refuses_those_who_are_over)
{
    open_told((const uint64_t[]){10, 11, 12});
    check_ok(call_text(0, "lend 5", "a"), "lent");
    tell(1, (const uint64_t[]){0, 11, 12});
    UNTIL(strstr(log_of(1), "~release 5;"));
    clear_log(1);
    check_ok(note(0, "~release", 5), "");
    check_ok(note(0, "~retain", 5), "");
    check_failed(call_lent(0, "5:"), CN_FAULT_RETRYABLE | CN_FAULT_RESET, CN_PLACE_ENDED_TEXT);
    check_ok(call_text(0, "lend 7", "b"), "lent"); /* calls to objects are taken */
    CHECK_STR("b;", log_of(1));
    CHECK_INT(0, loans_of(1));
    /* It has joined anew, and the other one does not know yet: that counts, and stays. */
    tell(0, (const uint64_t[]){20, 11, 12});
    check_ok(call_text(0, "lend 8", "c"), "lent");
    CHECK_INT(1, loans_of(1));
    tell(1, (const uint64_t[]){20, 11, 12});
    check_ok(call_lent(0, "8:"), "");
    CHECK_STR("b;c;8:;", log_of(1));
    CHECK_INT(1, loans_of(1));
    close_nodes();
}

/* S1: another session of the same disk is live, the first was never seen. */
TEST(lease, knows_that_a_later_session_ends_the_one_before)
{
    open_told((const uint64_t[]){0, 11, 12});
    tell(0, (const uint64_t[]){10, 11, 12});
    check_ok(call_text(0, "lend 5", "a"), "lent");
    CHECK_INT(1, loans_of(1));
    tell(1, (const uint64_t[]){0, 11, 12}); /* not seen yet: it may be new */
    CHECK_INT(1, loans_of(1));
    tell(1, (const uint64_t[]){21, 11, 12});
    UNTIL(strstr(log_of(1), "~release 5;"));
    CHECK_INT(0, loans_of(1));
    close_nodes();
}

/* A third node is given what the first held; S5: in whatever order that is heard of. */
TEST(lease, goes_over_to_a_third_node)
{
    open_told((const uint64_t[]){10, 11, 12});
    check_ok(call_text(0, "lend 5", "a"), "lent");
    check_ok(note(0, "~lend@3.c", 5), "");
    CHECK_INT(1, loans_of(1));
    clear_log(1);
    tell(1, (const uint64_t[]){0, 11, 12});
    for (unsigned i = 0; i < 20; i++)
        step();
    CHECK_STR("", log_of(1)); /* it is node 2's now */
    tell(1, (const uint64_t[]){0, 11, 0});
    UNTIL(strstr(log_of(1), "~release 5;"));
    CHECK_INT(0, loans_of(1));
    tell_all((const uint64_t[]){30, 31, 32});
    clear_log(1);
    check_ok(note(2, "~release", 9), ""); /* overtakes */
    check_ok(note(0, "~retain", 9), "");
    check_ok(note(0, "~lend@3.20", 9), "");
    CHECK_INT(0, loans_of(1));
    check_ok(note(0, "~lend@2.1f", 9), ""); /* to the node that has it: nothing to count there */
    tell(1, (const uint64_t[]){0, 31, 0});
    for (unsigned i = 0; i < 20; i++)
        step();
    CHECK_STR("~release 9;~retain 9;", log_of(1));
    close_nodes();
}

/* S4 */
TEST(lease, terms_end_with_sessions)
{
    open_told((const uint64_t[]){10, 11, 12});
    const struct cn_leases *leases = &cn_remote_lane_of(&nodes[0].world.world.lane)->leases;
    CHECK_INT(0, leases->term);
    tell(0, (const uint64_t[]){0, 11, 12});
    CHECK_INT(1, leases->term);
    tell(0, (const uint64_t[]){20, 11, 12});
    CHECK_INT(1, leases->term);
    tell(0, (const uint64_t[]){21, 11, 12});
    CHECK_INT(2, leases->term);
    check_ok(call_text(0, "echo", "a"), "a");
    close_nodes();
}

/* S7 */
TEST(lease, is_not_made_by_an_answer_that_nobody_waits_for)
{
    open_told((const uint64_t[]){10, 11, 12});
    struct sent *parked = call_text(0, "park", "a");
    UNTIL(nodes[1].parked);
    cn_remote_silent(nodes[0].remote, 2);
    check_failed(parked, CN_FAULT_RETRYABLE, "Network connection lost.");
    UNTIL(!cn_remote_lane_of(&nodes[1].world.world.lane)->askers.count);
    struct cn_call *call = nodes[1].parked;
    struct cn_message *message = call->payload;
    lend_number(call, 5);
    message->result = cn_memdup("x", 1);
    message->result_size = 1;
    cn_call_reply(call, message);
    UNTIL(strstr(log_of(1), "~release 5;"));
    CHECK_INT(0, loans_of(1));
    close_nodes();
}

/* --- questions to workers --------------------------------------------------------------------- */

struct asked {
    struct cn_pipe_question question;
    struct cn_buf head;
    struct cn_reply reply;
    bool done;
};

static void on_reply(struct cn_pipe_question *question, enum cn_pipe_end end, uint8_t *bytes,
                     size_t size)
{
    struct asked *asked = CN_CONTAINER_OF(question, struct asked, question);
    const uint8_t *body;
    size_t body_size;
    CHECK_INT(CN_PIPE_ANSWERED, end);
    CHECK_INT(0, cn_reply_get(&asked->reply, bytes, size, &body, &body_size));
    CHECK_INT(0, body_size);
    asked->done = true;
    cn_free(bytes);
}

/* The type of node 1's answer to a question of node 0. */
static uint32_t ask_type(const struct cn_question *question)
{
    struct asked asked = {0};
    cn_question_put(question, &asked.head);
    asked.question = (struct cn_pipe_question){.head = asked.head.data,
                                               .head_size = asked.head.size,
                                               .body = (const uint8_t *)"batch",
                                               .body_size = 5,
                                               .done = on_reply};
    struct cn_pipes *pipes = cn_remote_lane_of(&nodes[0].world.world.lane)->pipes;
    CHECK_INT(0, cn_pipes_ask(pipes, 2, 0, &asked.question));
    UNTIL(asked.done);
    uint32_t type = asked.reply.type;
    CHECK(type != CN_REPLY_FAILED || asked.reply.code == CN_ECLOSED);
    cn_reply_clear(&asked.reply);
    cn_buf_fini(&asked.head);
    return type;
}

static uint32_t ask_event(const char *handler, size_t size)
{
    struct cn_question event = {.type = CN_QUESTION_EVENT,
                                .name = (uint8_t *)handler,
                                .name_size = size,
                                .method = (char *)"script"};
    return ask_type(&event);
}

static bool ready;

static bool is_ready(void *data)
{
    (void)data;
    return ready;
}

static void set_ready(struct cn_remote_options *options)
{
    options->is_ready = is_ready;
}

/* REFUSED says that it has not begun: whoever asks runs it himself (B2 of worker/background.h). */
TEST(event, is_refused_where_its_script_does_not_run)
{
    static struct cn_lane draining = {.draining = true};
    open_nodes(set_ready);
    struct cn_object_lane *lane = &nodes[1].world.world.lane;
    void *data = lane->data;
    lane->data = NULL; /* nobody looks for the script */
    ready = true;
    CHECK_INT(CN_REPLY_REFUSED, ask_event("scheduled", 9)); /* others run no other handler */
    CHECK_INT(CN_REPLY_REFUSED, ask_event("fetch", 5));
    CHECK_INT(CN_REPLY_REFUSED, ask_event("queues", 6));
    CHECK_INT(CN_REPLY_REFUSED, ask_event("queue", 4));
    CHECK_INT(CN_REPLY_REFUSED, ask_event("queue", 6)); /* and its NUL */
    CHECK_INT(CN_REPLY_REFUSED, ask_event("batch", 6));
    ready = false;
    CHECK_INT(CN_REPLY_REFUSED, ask_event("queue", 5));
    ready = true;
    lane->stopping = true;
    CHECK_INT(CN_REPLY_REFUSED, ask_event("queue", 5));
    lane->stopping = false;
    lane->data = &draining;
    CHECK_INT(CN_REPLY_REFUSED, ask_event("queue", 5));
    lane->data = data;
    CHECK_STR("", log_of(1));
    close_nodes();
}

TEST(target, of_another_life_or_lane_has_ended)
{
    open_nodes(NULL);
    struct cn_question question = {
        .type = CN_QUESTION_TARGET, .life = 2, .serial = 1, .method = (char *)"1:f"};
    CHECK_INT(CN_REPLY_FAILED, ask_type(&question));
    question.life = 1;
    question.lane = 7;
    CHECK_INT(CN_REPLY_FAILED, ask_type(&question));
    CHECK_STR("", log_of(1));
    close_nodes();
}
