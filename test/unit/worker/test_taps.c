/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners: who hears what, what they must not see, and how they end (L1 to L4 of worker/taps.h).
 */
#include "worker/taps.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "worker/script.h"
#include "worker/trace.h"

static struct cn_taps taps;
static int told;

static void on_notify(void *data)
{
    (void)data;
    told++;
}

static void open_taps(void)
{
    told = 0;
    cn_taps_init(&taps);
    cn_taps_set_notify(&taps, on_notify, NULL);
}

/* The secret of a new tap. */
static char *add(const char *worker, const char *filters, int64_t now_ms)
{
    struct cn_buf shown = {0};
    struct cn_err err = {0};
    struct cn_json *list = filters ? cn_json_parse(filters, strlen(filters), &err) : NULL;
    struct cn_tap_wish wish = {worker, "token", list, "ws://h/", false};
    int rc = cn_taps_add(&taps, &wish, now_ms, &shown, &err);
    cn_json_free(list);
    if (rc < 0) {
        cn_buf_fini(&shown);
        return NULL;
    }
    struct cn_json *json = cn_json_parse((const char *)shown.data, shown.size, &err);
    char *secret = cn_strdup(cn_json_text(json, "url") + strlen("ws://h/"));
    cn_json_free(json);
    cn_buf_fini(&shown);
    return secret;
}

static struct cn_tap *attach(const char *worker, const char *filters)
{
    char *secret = add(worker, filters, 0);
    CHECK(secret);
    struct cn_tap *tap = cn_taps_attach(&taps, secret, strlen(secret), "10.0.0.1", 1);
    CHECK(tap);
    CHECK(!cn_taps_attach(&taps, secret, strlen(secret), "10.0.0.1", 1)); /* once */
    cn_free(secret);
    return tap;
}

static void give(const char *event, const char *logs, const char *outcome)
{
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup("w");
    script->version = cn_strdup("v-1");
    struct cn_trace trace = {.script = script, .outcome = outcome, .status = 200};
    cn_buf_append_str(&trace.event, event);
    cn_buf_append_str(&trace.logs, logs);
    cn_taps_give(&taps, &trace);
    cn_buf_fini(&trace.event);
    cn_buf_fini(&trace.logs);
    cn_script_unref(script);
}

static int count(struct cn_tap *tap)
{
    int messages = 0;
    struct cn_buf text = {0};
    while (cn_tap_take(&taps, tap, 1, &text) == 1)
        messages++;
    cn_buf_fini(&text);
    return messages;
}

static const char request[] =
    "\"request\":{\"url\":\"http://h/a?id=0123456789abcdef0123456789abcdef&"
    "x=1\",\"method\":\"POST\",\"headers\":{\"Cookie\":\"c\",\"x-api-key\":"
    "\"k\",\"cf-connecting-ip\":\"10.0.0.1\",\"accept\":\"*/*\"}}";
static const char log_line[] = "{\"level\":\"log\",\"message\":[\"hello \\\"you\\\"\"]}";

/* L3 */
TEST(taps, a_listener_does_not_see_what_looks_like_a_secret)
{
    open_taps();
    struct cn_tap *tap = attach("w", NULL);
    give(request, log_line, "ok");
    CHECK_INT(1, told);
    struct cn_buf text = {0};
    CHECK_INT(1, cn_tap_take(&taps, tap, 1, &text));
    struct cn_err err = {0};
    struct cn_json *json = cn_json_parse((const char *)text.data, text.size, &err);
    CHECK(json);
    const struct cn_json *shown = cn_json_find(cn_json_find(json, "event"), "request");
    CHECK_STR("http://h/a?id=REDACTED&x=1", cn_json_text(shown, "url"));
    const struct cn_json *headers = cn_json_find(shown, "headers");
    CHECK_STR("REDACTED", cn_json_text(headers, "Cookie"));
    CHECK_STR("REDACTED", cn_json_text(headers, "x-api-key"));
    CHECK_STR("*/*", cn_json_text(headers, "accept"));
    CHECK_STR("v-1", cn_json_text(cn_json_find(json, "scriptVersion"), "id"));
    cn_json_free(json);
    cn_buf_fini(&text);
    cn_taps_detach(&taps, tap);
    cn_taps_fini(&taps);
}

TEST(taps, filters_choose)
{
    static const struct {
        const char *filters;
        int heard;
    } cases[] = {
        {"[]", 1},
        {"[{\"outcome\":[\"ok\"]}]", 1},
        {"[{\"outcome\":[\"exception\"]}]", 0},
        {"[{\"method\":[\"GET\",\"post\"]}]", 1},
        {"[{\"method\":[\"GET\"]}]", 0},
        {"[{\"header\":{\"key\":\"Accept\"}}]", 1},
        {"[{\"header\":{\"key\":\"accept\",\"query\":\"json\"}}]", 0},
        {"[{\"header\":{\"key\":\"absent\"}}]", 0},
        {"[{\"client_ip\":[\"self\"]}]", 1},
        {"[{\"client_ip\":[\"10.0.0.2\"]}]", 0},
        {"[{\"query\":\"hello \\\"you\"}]", 1},
        {"[{\"query\":\"level\"}]", 0},
        {"[{\"scriptVersion\":\"v-1\"}]", 1},
        {"[{\"scriptVersion\":\"v-2\"}]", 0},
        {"[{\"sampling_rate\":1}]", 1},
        {"[{\"sampling_rate\":0}]", 0},
        {"[{\"method\":[\"POST\"]},{\"outcome\":[\"canceled\"]}]", 0},
    };
    open_taps();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct cn_tap *tap = attach("w", cases[i].filters), *other = attach("x", NULL);
        give(request, log_line, "ok");
        CHECK_INT(cases[i].heard, count(tap));
        CHECK_INT(0, count(other));
        cn_taps_detach(&taps, tap);
        cn_taps_detach(&taps, other);
    }
    CHECK(!add("w", "{}", 0));
    CHECK(!add("w", "[{}]", 0));
    CHECK(!add("w", "[{\"method\":\"GET\"}]", 0));
    CHECK(!add("w", "[{\"query\":\"a\",\"method\":[]}]", 0));
    cn_taps_fini(&taps);
}

/* L1, L4 */
TEST(taps, end_with_their_reader_when_they_are_removed_and_when_nobody_reads_them)
{
    open_taps();
    CHECK(!cn_taps_want(&taps, "w"));
    struct cn_tap *tap = attach("w", NULL);
    CHECK(cn_taps_want(&taps, "w") && !cn_taps_want(&taps, "x"));
    CHECK(!cn_taps_remove(&taps, "x", tap->id));
    CHECK(cn_taps_remove(&taps, "w", tap->id));
    CHECK(!cn_taps_want(&taps, "w"));
    give(request, "", "ok"); /* goes nowhere */
    struct cn_buf text = {0};
    CHECK(cn_tap_take(&taps, tap, 1, &text) < 0);
    cn_taps_detach(&taps, tap);

    tap = attach("w", NULL);
    give(request, "", "ok");
    CHECK(cn_tap_take(&taps, tap, CN_TAP_MS + 1, &text) < 0);
    cn_taps_detach(&taps, tap);
    CHECK(!cn_taps_want(&taps, "w"));

    for (int i = 0; i < CN_TAPS_WORKER_MAX; i++)
        cn_free(add("w", NULL, 0));
    CHECK(!add("w", NULL, 0));
    cn_free(add("w", NULL, CN_TAP_UNREAD_MS)); /* those before are forgotten */
    CHECK_INT(1, (int)atomic_load(&taps.count));
    cn_taps_fini(&taps);
}

/* L2 */
TEST(taps, what_finds_no_room_is_counted)
{
    open_taps();
    struct cn_tap *tap = attach("w", NULL);
    char *longer = cn_alloc(100001);
    memset(longer, ' ', 100000);
    longer[100000] = 0;
    for (int i = 0; i < 30; i++)
        give("", longer, "ok");
    CHECK(tap->dropped > 10 && tap->pending_bytes <= CN_TAP_PENDING_MAX);
    CHECK_INT((int)(30 - tap->dropped) + 1, count(tap)); /* the last says how many */
    CHECK_INT(0, count(tap));
    cn_free(longer);
    cn_taps_detach(&taps, tap);
    cn_taps_fini(&taps);
}

/* L5 */
TEST(taps, of_a_cluster_say_their_node_and_take_what_other_nodes_say)
{
    struct cn_buf text = {0}, wish = {0}, list = {0};
    cn_taps_init(&taps);
    cn_taps_set_node(&taps, "n \"1\"");
    struct cn_tap *tap = attach("w", "[{\"client_ip\":[\"self\"]}]");
    cn_taps_append_wish(&taps, tap->id, &wish);
    CHECK_STR("{\"worker\":\"w\",\"self\":\"10.0.0.1\",\"filters\":[{\"client_ip\":[\"self\"]}]}",
              cn_buf_text(&wish));
    CHECK_INT(2, (int)cn_taps_wanted(&taps, tap->id)); /* its copies have to know the address */
    CHECK_INT(0, (int)cn_taps_wanted(&taps, "nobody"));
    give("\"request\":{\"headers\":{\"cf-connecting-ip\":\"10.0.0.1\"}}", "", "ok");
    CHECK_INT(1, cn_tap_take(&taps, tap, 1, &text));
    CHECK(strncmp(cn_buf_text(&text), "{\"node\":\"n \\\"1\\\"\",", 18) == 0);
    struct cn_json *json = cn_json_parse((const char *)text.data, text.size, NULL);
    CHECK(json);
    cn_json_free(json);
    cn_taps_pass(&taps, tap->id, "{\"node\":\"b\"}", 12);
    CHECK_INT(1, cn_tap_take(&taps, tap, 1, &text));
    CHECK_STR("{\"node\":\"b\"}", cn_buf_text(&text));
    cn_taps_pass_note(&taps, tap->id, "node b has left", 5);
    CHECK_INT(1, cn_tap_take(&taps, tap, 1, &text));
    CHECK(strstr(cn_buf_text(&text), "node b has left"));
    cn_taps_pass(&taps, "nobody", "{}", 2);
    CHECK_INT(0, count(tap));
    for (int i = 0; i < 3; i++) { /* its bounds are those of what happens here */
        char *large = cn_alloc(CN_TAP_PENDING_MAX / 2);
        memset(large, ' ', CN_TAP_PENDING_MAX / 2);
        cn_taps_pass(&taps, tap->id, large, CN_TAP_PENDING_MAX / 2);
        cn_free(large);
    }
    CHECK_INT(3, count(tap)); /* two, and that one was dropped */
    /* A copy is nobody's who asks this node. */
    struct cn_tap_wish far = {.worker = "w", .by = "", .base = "", .far = true};
    for (int i = 0; i < CN_TAPS_WORKER_MAX + 1; i++) {
        struct cn_buf shown = {0};
        CHECK_INT(0, cn_taps_add(&taps, &far, 1, &shown, NULL));
        cn_buf_fini(&shown);
    }
    cn_taps_append(&taps, "w", &list);
    CHECK(strstr(cn_buf_text(&list), tap->id) && !strstr(cn_buf_text(&list), "},{"));
    cn_taps_detach(&taps, tap);
    cn_taps_fini(&taps);
    cn_buf_fini(&text);
    cn_buf_fini(&wish);
    cn_buf_fini(&list);
}
