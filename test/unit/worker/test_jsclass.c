/* SPDX-License-Identifier: Apache-2.0 */
/* Durable Objects written in JavaScript: numbers and whose they are (J1), what a reset tells its
 * callers, bounds, and what goes with an object. */
#include "worker/jsclass.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "object/id.h"
#include "test/lib/worker_rig.h"
#include "worker/instance.h"

static struct worker_rig rig;

/* The worker asks the object of that name what it is asked. What the call fails with is the
 * answer. */
#define WORKER                                                                                \
    "default: { fetch(request, env) { const url = new URL(request.url);"                      \
    " const name = url.searchParams.get('name') ?? 'a';"                                      \
    " return env.ROOM.get(env.ROOM.idFromName(name)).fetch(request).then((answer) => answer," \
    "  (e) => new Response([e.name, e.message, !!e.retryable, !!e.overloaded,"                \
    "   !!e.durableObjectReset].join('|'))); } },"

/* /wait answers when /go comes; /rows keeps a cursor open. */
#define ROOM                                                                                  \
    WORKER                                                                                    \
    "Room: class { constructor(ctx) { this.ctx = ctx; this.count = 0; }"                      \
    " fetch(request) { const path = new URL(request.url).pathname; this.count++;"             \
    "  if (path === '/wait') return new Promise((go) => { this.go = go; });"                  \
    "  if (path === '/go') this.go(new Response('gone on'));"                                 \
    "  if (path === '/loop') for (;;);"                                                       \
    "  if (path === '/throw') throw new RangeError('too far');"                               \
    "  if (path === '/rows') { this.rows = this.ctx.storage.sql.exec("                        \
    "   'SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3'); this.rows.next(); }"          \
    "  if (path === '/more') return new Response([...this.rows].map((row) => row.n).join());" \
    "  return new Response(`${path} ${this.count}`); } }"

static void open_rig(const char *exports)
{
    rig = (struct worker_rig){.objects = true, .cpu_limit_ms = rig.cpu_limit_ms};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy(&rig, exports));
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* What the lane's tables have, one of each at most. */
struct found {
    struct cn_jsobject *js;
    struct cn_jscursor *cursor;
    struct cn_call *call;
    double object_number, cursor_number, call_number;
    unsigned objects, cursors, calls;
};

static void look(struct cn_lane *lane, void *data)
{
    struct found *found = data;
    uint32_t a = 0, b = 0, c = 0;
    *found = (struct found){.js = cn_handles_next(&lane->objects, &a),
                            .cursor = cn_handles_next(&lane->cursors, &b),
                            .call = cn_handles_next(&lane->calls, &c),
                            .objects = lane->objects.live,
                            .cursors = lane->cursors.live,
                            .calls = lane->calls.live};
    if (found->js)
        found->object_number = (double)found->js->handle;
    if (found->cursor)
        found->cursor_number = (double)found->cursor->handle;
    if (found->call)
        found->call_number = (double)found->call->tag;
}

static bool one_call(struct cn_lane *lane, void *data)
{
    (void)data;
    return lane->calls.live == 1;
}

static bool nothing_left(struct cn_lane *lane, void *data)
{
    (void)data;
    return lane->calls.live + lane->cursors.live + lane->objects.live == 0;
}

/* The host's script answers; the lane has two. */
static void ask_host(const char *host, const char *path, const char *expected)
{
    const char *answer = worker_rig_receive(worker_rig_send(&rig, host, path));
    const char *body = strstr(answer, "\r\n\r\n");
    CHECK(body);
    CHECK_STR(expected, body + 4);
}

static void check_J1(struct cn_lane *lane, void *data)
{
    struct found *found = data;
    struct cn_instance *own = lane->current[0], *other = lane->current[1];
    CHECK(cn_jsobject_find(own, found->object_number) == found->js);
    CHECK(cn_jscursor_find(own, found->cursor_number) == found->cursor);
    CHECK(cn_jscall_find(own, found->call_number) == found->call);
    CHECK(!cn_jsobject_find(other, found->object_number));
    CHECK(!cn_jscursor_find(other, found->cursor_number));
    CHECK(!cn_jscall_find(other, found->call_number));
    static const double wrong[] = {0, -1, 1e300, 0.5};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(!cn_jsobject_find(own, wrong[i]) && !cn_jscursor_find(own, wrong[i]) &&
              !cn_jscall_find(own, wrong[i]));
    }
}

TEST(jsclass, J1_a_number_is_good_for_the_instance_it_was_given_to)
{
    struct found found;
    rig = (struct worker_rig){.objects = true};
    worker_rig_open(&rig, 1);
    CHECK(!worker_rig_deploy_named(&rig, "one", ROOM, "two", ROOM, NULL));
    ask_host("one.test", "/rows", "/rows 1");
    int waits = worker_rig_send(&rig, "one.test", "/wait");
    worker_rig_until(&rig, 0, one_call, NULL);
    worker_rig_run(&rig, 0, look, &found);
    CHECK(found.objects == 1 && found.cursors == 1 && found.calls == 1);
    worker_rig_run(&rig, 0, check_J1, &found);
    ask_host("one.test", "/go", "/go 3");
    CHECK_INT(200, worker_rig_status(worker_rig_receive(waits)));
    ask_host("one.test", "/more", "2,3"); /* and the cursor ends with its last row */
    worker_rig_run(&rig, 0, look, &found);
    CHECK(found.cursors == 0 && found.calls == 0);
    worker_rig_close(&rig);
}

static bool evict(struct cn_lane *lane, void *data)
{
    (void)data;
    return cn_object_lane_evict(&lane->object_lane, 1) == 1;
}

static void check_gone(struct cn_lane *lane, void *data)
{
    struct found *found = data;
    struct cn_instance *own = worker_rig_instance(lane);
    CHECK(!cn_jsobject_find(own, found->object_number));
    CHECK(!cn_jscursor_find(own, found->cursor_number));
    CHECK(cn_list_empty(&own->objects));
    cn_lane_check(lane);
}

TEST(jsclass, an_object_that_goes_takes_its_cursors_and_numbers_along)
{
    struct found found;
    open_rig(ROOM);
    CHECK_STR("/rows 1", worker_rig_body(&rig, "/rows"));
    worker_rig_run(&rig, 0, look, &found);
    CHECK_INT(1, found.js->cursor_count);
    worker_rig_until(&rig, 0, evict, NULL);
    worker_rig_until(&rig, 0, nothing_left, NULL);
    worker_rig_run(&rig, 0, check_gone, &found);
    CHECK_STR("/ 1", worker_rig_body(&rig, "/")); /* another, from its beginning */
    worker_rig_close(&rig);
}

static void describe(struct cn_lane *lane, void *data)
{
    struct found found;
    char hex[CN_OBJECT_HEX_SIZE + 1], text[256], expected[256];
    look(lane, &found);
    cn_id_to_hex(found.js->object->key.id, hex);
    cn_jsobject_describe(found.js, text, sizeof(text));
    snprintf(expected, sizeof(expected), "object %s%s of class Room", hex, (const char *)data);
    CHECK_STR(expected, text);
    cn_jsobject_describe(found.js, text, 20); /* cut, not overrun */
    CHECK_INT(19, (int)strlen(text));
    CHECK(memcmp(text, expected, 19) == 0);
}

TEST(jsclass, it_is_described_by_id_name_and_class)
{
    open_rig(ROOM);
    CHECK_STR("/ 1", worker_rig_body(&rig, "/?name=lobby"));
    worker_rig_run(&rig, 0, describe, " (\"lobby\")");
    worker_rig_close(&rig);
}

/* --- resets ----------------------------------------------------------------------------------- */

TEST(jsclass, what_its_code_throws_is_its_callers_and_it_lives_on)
{
    open_rig(ROOM);
    CHECK_STR("RangeError|too far|false|false|false", worker_rig_body(&rig, "/throw"));
    CHECK_STR("/ 2", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

TEST(jsclass, what_its_constructor_throws_reaches_the_caller_whole)
{
    open_rig(WORKER
             "Room: class { constructor(ctx, env) { globalThis.tries = (globalThis.tries ?? 0)"
             " + 1; if (tries < 3) throw new SyntaxError('try ' + tries); }"
             " fetch() { return new Response('made'); } }");
    CHECK(strstr(worker_rig_body(&rig, "/"), "SyntaxError|try 1|"));
    worker_rig_until(&rig, 0, nothing_left, NULL);
    CHECK(strstr(worker_rig_body(&rig, "/"), "SyntaxError|try 2|"));
    CHECK_STR("made", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

static void read_limits(struct cn_lane *lane, void *data)
{
    *(uint64_t *)data = cn_counter_get(&worker_rig_instance(lane)->metrics->limits);
}

/* Every caller is told, those that waited too; the next call makes another. */
TEST(jsclass, one_that_runs_too_long_is_reset)
{
    uint64_t limits;
    rig.cpu_limit_ms = 50;
    open_rig(ROOM);
    rig.cpu_limit_ms = 0;
    int waits = worker_rig_send(&rig, NULL, "/wait");
    worker_rig_until(&rig, 0, one_call, NULL);
    static const char reset[] =
        "Error|Durable Object exceeded its CPU time limit and was reset.|false|false|true";
    CHECK_STR(reset, worker_rig_body(&rig, "/loop"));
    CHECK(strstr(worker_rig_receive(waits), reset));
    worker_rig_until(&rig, 0, nothing_left, NULL);
    worker_rig_run(&rig, 0, read_limits, &limits);
    CHECK_INT(1, limits);
    CHECK_STR("/ 1", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

/* --- bounds ----------------------------------------------------------------------------------- */

static uint64_t fillers[CN_HANDLES_MAX + 1];
static size_t filler_count;

static void fill(struct cn_handles *handles)
{
    filler_count = 0;
    while ((fillers[filler_count] = cn_handles_add(handles, fillers)) != 0)
        filler_count++;
}

static void empty(struct cn_handles *handles)
{
    while (filler_count > 0)
        cn_handles_remove(handles, fillers[--filler_count]);
}

static void fill_calls(struct cn_lane *lane, void *data)
{
    (void)data;
    fill(&lane->calls);
}

static void empty_calls(struct cn_lane *lane, void *data)
{
    (void)data;
    empty(&lane->calls);
}

static void fill_objects(struct cn_lane *lane, void *data)
{
    (void)data;
    fill(&lane->objects);
}

static void empty_objects(struct cn_lane *lane, void *data)
{
    (void)data;
    empty(&lane->objects);
}

TEST(jsclass, past_the_bound_of_calls_one_is_refused_as_overloaded)
{
    open_rig(ROOM);
    CHECK_STR("/ 1", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, fill_calls, NULL);
    CHECK_STR("Error|Durable Object is overloaded. Too many requests are under way."
              "|false|true|false",
              worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, empty_calls, NULL);
    CHECK_STR("/ 2", worker_rig_body(&rig, "/")); /* the same object */
    worker_rig_close(&rig);
}

TEST(jsclass, past_the_bound_of_objects_none_is_made)
{
    open_rig(ROOM);
    worker_rig_run(&rig, 0, fill_objects, NULL);
    CHECK(strstr(worker_rig_body(&rig, "/"), "Too many Durable Objects are in memory."));
    worker_rig_run(&rig, 0, empty_objects, NULL);
    CHECK_STR("/ 1", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

/* --- calls ------------------------------------------------------------------------------------ */

static struct cn_err answer_err;
static unsigned answer_faults;
static bool answered;

static void on_answer(struct cn_envelope *envelope)
{
    answer_err = envelope->err;
    answer_faults = envelope->faults;
    cn_jscall_free(cn_jscall_of(envelope));
    answered = true;
}

/* A call that stays in its instance, of an instance that is no more. */
static void send_home(struct cn_lane *lane, void *data)
{
    (void)data;
    struct found found;
    look(lane, &found);
    struct cn_jscall *jscall = cn_jscall_new();
    struct cn_call *call = &jscall->message.call;
    CHECK(call->payload == &jscall->message);
    call->kind = CN_CALL_FETCH;
    call->ns = found.js->object->ns;
    call->key = found.js->object->key;
    call->envelope.from = cn_desk_place(&lane->desk);
    call->envelope.on_done = on_answer;
    jscall->message.home_serial = worker_rig_instance(lane)->serial + 1;
    answered = false;
    cn_call_send(call, NULL);
    CHECK(!answered); /* C2 of object/call.h */
}

static bool is_answered(struct cn_lane *lane, void *data)
{
    (void)lane, (void)data;
    return answered;
}

TEST(jsclass, what_another_instance_keeps_is_not_asked_for_here)
{
    open_rig(ROOM);
    CHECK_STR("/ 1", worker_rig_body(&rig, "/"));
    worker_rig_run(&rig, 0, send_home, NULL);
    worker_rig_until(&rig, 0, is_answered, NULL);
    CHECK_STR("Durable Object reset because its code was updated.", answer_err.text);
    CHECK_INT(CN_FAULT_RESET | CN_FAULT_RETRYABLE, answer_faults);
    CHECK_STR("/ 2", worker_rig_body(&rig, "/"));
    worker_rig_close(&rig);
}

TEST(jsclass, an_alarm_is_told_how_often_it_was_tried)
{
    open_rig(WORKER
             "Room: class { constructor(ctx) { this.ctx = ctx; this.tried = []; }"
             " fetch(request) { if (request.url.endsWith('/set')) this.ctx.storage.setAlarm(1);"
             "  return new Response(this.tried.join() || 'none'); }"
             " alarm(info) { this.tried.push(`${info.retryCount}${info.isRetry}`); } }");
    CHECK_STR("none", worker_rig_body(&rig, "/set"));
    const char *tried = "none";
    for (int i = 0; i < 30000 && strcmp(tried, "none") == 0; i++)
        tried = worker_rig_body(&rig, "/");
    CHECK_STR("0false", tried);
    worker_rig_close(&rig);
}

/* --- which class ------------------------------------------------------------------------------ */

static void find_classes(struct cn_lane *lane, void *data)
{
    (void)data;
    const struct cn_class *class_ = NULL;
    void *class_data = NULL;
    struct cn_err err;
    struct cn_object_key key = {0};
    struct cn_namespace *room = lane->deployment->scripts[0]->classes[0].ns, *other;
    CHECK_INT(0, cn_node_namespace(rig.node, "worker/Other", &other, &err));
    CHECK(cn_jsclass_find(&lane->object_lane, room, &key, &class_, &class_data));
    CHECK(class_ == &cn_jsclass && class_data == worker_rig_instance(lane));
    CHECK(!cn_jsclass_find(&lane->object_lane, other, &key, &class_, &class_data));
    struct cn_instance *current = lane->current[0];
    lane->current[0] = NULL;
    CHECK(!cn_jsclass_find(&lane->object_lane, room, &key, &class_, &class_data));
    lane->current[0] = current;
    CHECK(!cn_jsclass_gate(lane)); /* no code runs */
}

static void find_too_early(struct cn_lane *lane, void *data)
{
    (void)data;
    const struct cn_class *class_;
    void *class_data;
    struct cn_err err;
    struct cn_object_key key = {0};
    struct cn_namespace *room;
    CHECK_INT(0, cn_node_namespace(rig.node, "worker/Room", &room, &err));
    CHECK(!cn_jsclass_find(&lane->object_lane, room, &key, &class_, &class_data));
}

/* N2 of worker/lane.h */
TEST(jsclass, a_class_is_found_in_the_current_instance_alone)
{
    struct cn_namespace *namespace;
    struct cn_err err;
    rig = (struct worker_rig){.objects = true};
    worker_rig_open(&rig, 1);
    /* Here, since a new one waits for the disk, which a lane may not. */
    CHECK_INT(0, cn_node_namespace(rig.node, "worker/Room", &namespace, &err));
    CHECK_INT(0, cn_node_namespace(rig.node, "worker/Other", &namespace, &err));
    worker_rig_run(&rig, 0, find_too_early, NULL);
    CHECK(!worker_rig_deploy(&rig, ROOM));
    worker_rig_run(&rig, 0, find_classes, NULL);
    worker_rig_close(&rig);
}
