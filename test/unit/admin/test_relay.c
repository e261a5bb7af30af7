/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a call whose shard is not here (R1 of admin/relay.h): it is refused if another
 * node has passed it on, whatever the map says; it waits for an owner for as long as calls do; and
 * it runs here when the shard has come. Calls that cross nodes: test/cluster/server/admin.test.mjs.
 */
#include "admin/relay.h"

#include <string.h>

#include "admin/handler.h"
#include "object/shard.h"
#include "test/lib/test.h"

static struct cn_control control;
static struct cn_relay_net net;
static struct cn_buf written;
static unsigned runs, asked, away_for; /* the shard is not here for so many runs */
static bool is_here;                   /* says the map */

static int run_about_object(struct cn_control_call *call, struct cn_err *err)
{
    static const struct cn_object_key key = {.namespace_id = 1, .id = {0}};
    runs++;
    if (runs <= away_for)
        return cn_control_hold(call, &key, err); /* no shard is open */
    cn_buf_append_str(&call->scratch, "{}");
    return cn_control_answer(call, &call->scratch);
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "about"}, run_about_object, CN_ROUTE_BARE},
    {"POST", {"api", "about"}, run_about_object, CN_ROUTE_BARE},
    {0},
};

static uint64_t owner(void *data, unsigned shard, bool *here)
{
    (void)data;
    CHECK(shard < 4);
    asked++;
    *here = is_here;
    return 0;
}

static int on_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    (void)call;
    cn_buf_append(&written, bytes, size);
    return 0;
}

static struct cn_control_call ask(const char *method, bool relayed)
{
    struct cn_control_call call = {.control = &control,
                                   .method = method,
                                   .target = "/api/about",
                                   .relayed = relayed,
                                   .write = on_write};
    cn_guard_operator(&call.who);
    runs = asked = 0;
    cn_buf_clear(&written);
    cn_control_run(&call);
    cn_buf_fini(&call.fields);
    return call;
}

static int number(void *data, const char *name, uint32_t *id, struct cn_err *err)
{
    (void)data;
    (void)name;
    (void)err;
    *id = 1;
    return 0;
}

static void begin(void)
{
    struct cn_shards_options options = {.count = 4, .number = number};
    net = (struct cn_relay_net){.name = "a", .disk = 1, .wait_ms = 60, .owner = owner};
    control = (struct cn_control){.shards = cn_shards_new(&options), .relay = &net, .more = routes};
    is_here = false;
    away_for = UINT32_MAX;
}

static void end(void)
{
    cn_shards_free(control.shards);
    cn_buf_fini(&written);
}

TEST(relay, what_another_node_has_passed_on_is_refused_and_never_passed_on)
{
    begin();
    is_here = true; /* a stale map */
    struct cn_control_call call = ask("POST", true);
    CHECK(call.refused && runs == 1 && asked == 0 && written.size == 0);
    end();
}

TEST(relay, without_an_owner_a_call_waits_and_is_told_so)
{
    begin();
    struct cn_control_call call = ask("POST", false);
    CHECK(!call.refused && runs == 1 && asked > 1);
    CHECK_INT(503, call.status);
    CHECK(strstr(cn_buf_text(&written), "no node answers for it at the moment; try again"));
    end();
}

TEST(relay, a_shard_that_has_come_here_meanwhile_is_used)
{
    begin();
    is_here = true;
    away_for = 3;
    struct cn_control_call call = ask("GET", false);
    CHECK_INT(200, call.status);
    CHECK(runs == 4 && written.size == 3);
    end();
}

TEST(relay, a_single_server_passes_nothing_on)
{
    begin();
    control.relay = NULL;
    struct cn_control_call call = ask("GET", false);
    CHECK(call.status == 503 && runs == 1 && asked == 0 && !call.refused);
    end();
}
