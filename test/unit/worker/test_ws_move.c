/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets that go with their object: tags, attachment, settings and what clients had sent
 * arrive, the client does not notice, and the object is not woken for it. The object's new place is
 * its own lane: a call to it goes there, and letters to this node go by mail. */
#include "worker/ws_move.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "object/id.h"
#include "object/message.h"
#include "object/socket.h"
#include "test/lib/worker_rig.h"
#include "test/lib/ws_side.h"
#include "worker/websocket.h"
#include "worker/ws_far.h"

static struct worker_rig rig;
static struct ws_side client;
static struct cn_object_key key;
static struct cn_namespace *ns;
static char name[20];

static void never_ask(void *data, struct cn_lane *lane, const struct cn_ws_asking *asking)
{
    (void)data, (void)lane;
    cn_free(asking->bytes);
    CHECK(false); /* there is no other node */
}

static const struct cn_ws_carrier carrier = {5, 9, 10000, NULL, never_ask};

static void begin(struct cn_lane *lane, void *data)
{
    (void)data;
    cn_ws_move_tie(lane, &carrier);
    snprintf(name, sizeof(name), "%s", worker_rig_room(&rig, "worker", 0));
    uint32_t id = 1;
    while (!(ns = cn_node_namespace_find(rig.node, id)) || !strstr(ns->name, "Room"))
        id++;
    key = (struct cn_object_key){.namespace_id = ns->id};
    cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, name, strlen(name), key.id);
}

/* What an object had, which has just let go of it. */
static void depart(struct cn_lane *lane, void *data)
{
    (void)data;
    struct cn_ws_end *end;
    cn_ws_pair_new(&client.end, &end);
    CHECK(cn_websocket_number(lane, client.end) && cn_websocket_number(lane, end));
    cn_ws_end_claim(client.end, &ws_side_ops, &client);
    ws_side_say(&client, "early");
    end->attachment = cn_memdup("\x01", 1);
    end->attachment_size = 1;
    end->protocol = cn_strdup("chat");
    cn_ws_end_depart(end);
    struct cn_socket_party_member member = {.end = end,
                                            .auto_reply = true,
                                            .accepted_ms = 77,
                                            .tags = {{"lobby", 5}, {"", 0}},
                                            .tag_count = 2};
    struct cn_socket_party party = {.ns = ns,
                                    .key = key,
                                    .name = {name, strlen(name)},
                                    .request = {"ping", 4},
                                    .response = {"pong", 4},
                                    .event_timeout_ms = 4321,
                                    .members = &member,
                                    .count = 1};
    lane->object_lane.send_sockets(&lane->object_lane, &party);
}

static void nothing(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
}

static void settle(void)
{
    for (int i = 0; i < 8; i++)
        worker_rig_run(&rig, 0, nothing, NULL);
}

static void say(struct cn_lane *lane, void *data)
{
    (void)lane;
    ws_side_say(&client, data);
}

static void see_socket(const struct cn_object_socket *socket, void *data)
{
    (void)data;
    CHECK_INT(77, socket->accepted_ms);
    CHECK_INT(2, socket->tag_count);
    CHECK_INT(5, cn_object_socket_tag_name(socket->tags[0].tag).size);
    CHECK_INT(1, socket->end->attachment_size);
    CHECK_STR("chat", socket->end->protocol);
}

static void see(struct cn_lane *lane, void *data)
{
    bool hibernated;
    size_t count =
        cn_object_socket_survey(&lane->object_lane, &key, &hibernated, 10, see_socket, NULL);
    CHECK_INT(*(int *)data, (int)count);
    cn_object_lane_check(&lane->object_lane);
}

static bool has_answer(struct cn_lane *lane, void *data)
{
    (void)lane;
    return strstr(client.seen, data) != NULL;
}

static void let_go(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    cn_ws_end_release(client.end);
}

static const char room[] = "Room: class { constructor(ctx) { this.ctx = ctx; }\n"
                           "  webSocketMessage(ws, m) { ws.send(`${m} ${this.ctx.getTags(ws)[0]} "
                           "${this.ctx.getWebSockets().length}`); }\n"
                           "  webSocketClose() {} },\n"
                           "default: { fetch: () => new Response('hi') }";

TEST(ws_move, a_socket_arrives_with_all_that_was_known_of_it_and_its_client_does_not_notice)
{
    int one = 1;
    rig = (struct worker_rig){.objects = true};
    client = (struct ws_side){0};
    worker_rig_open(&rig, 1);
    const char *why = worker_rig_deploy(&rig, room);
    CHECK(!why);
    worker_rig_run(&rig, 0, begin, NULL);
    worker_rig_run(&rig, 0, depart, NULL);
    settle();
    worker_rig_run(&rig, 0, see, &one);
    worker_rig_until(&rig, 0, has_answer, "m:early lobby 1"); /* the first that was sent, */
    worker_rig_run(&rig, 0, say, "ping");                     /* the automatic response, */
    worker_rig_until(&rig, 0, has_answer, "m:pong");
    worker_rig_run(&rig, 0, say, "later"); /* and what comes then */
    worker_rig_until(&rig, 0, has_answer, "m:later lobby 1");
    CHECK(!strstr(client.seen, "c1"));
    worker_rig_run(&rig, 0, let_go, NULL);
    settle();
    worker_rig_close(&rig);
}

/* --- strangers: M3 ---------------------------------------------------------------------------- */

struct strange {
    struct cn_message message;
    int code;
    bool done;
};

static void strange_done(struct cn_envelope *envelope)
{
    struct strange *strange = CN_CONTAINER_OF(cn_message_of(envelope), struct strange, message);
    strange->code = envelope->err.code;
    strange->done = true;
}

static void send_strange(struct cn_lane *lane, void *data)
{
    struct strange *strange = data;
    struct cn_call *call = &strange->message.call;
    call->kind = CN_CALL_ADOPT;
    call->ns = ns;
    call->key = key;
    call->payload = &strange->message;
    call->envelope.from = cn_desk_place(&lane->desk);
    call->envelope.on_done = strange_done;
    cn_call_send(call, NULL);
}

static bool is_done(struct cn_lane *lane, void *data)
{
    (void)lane;
    return ((struct strange *)data)->done;
}

TEST(ws_move, what_is_no_luggage_is_refused_and_nothing_is_adopted)
{
    static const char *const texts[] = {"\x01", "\xff\xff\xff", "\x13\x05hello", "\x13\x02\x05\x01",
                                        "\x07\x01x"};
    int none = 0;
    rig = (struct worker_rig){.objects = true};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, room));
    worker_rig_run(&rig, 0, begin, NULL);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct strange strange = {
            .message = {.bytes = (uint8_t *)texts[i], .size = strlen(texts[i])}};
        worker_rig_run(&rig, 0, send_strange, &strange);
        worker_rig_until(&rig, 0, is_done, &strange);
        CHECK_INT(CN_EPROTOCOL, strange.code);
    }
    worker_rig_run(&rig, 0, see, &none);
    worker_rig_close(&rig);
}
