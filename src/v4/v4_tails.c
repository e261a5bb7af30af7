/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_tails.c - wrangler tail: who listens to a worker (worker/taps.h). The answer names the
 * address of a WebSocket on this listener, as the client has reached it (admin/live.h). In a
 * cluster the other nodes are listened to as well (admin/gather.h): each has a copy of the tap, by
 * POST /node/taps, which is for nodes alone and answers with its messages as lines. */
#include <string.h>
#include <unistd.h>

#include "admin/gather.h"
#include "admin/live.h"
#include "base/mem.h"
#include "v4/v4.h"
#include "worker/taps.h"

/* The worker of the path must be there: as a script, or as a project of this server. */
static int check_worker(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    cn_depot_state_unref(state);
    return script ? 0 : err->code;
}

/* --- other nodes ------------------------------------------------------------------------------ */

struct far {
    struct cn_taps *taps;
    char id[33];
};

static void append_wish(void *data, struct cn_buf *out)
{
    struct far *far = data;
    cn_taps_append_wish(far->taps, far->id, out);
}

static void on_line(void *data, const char *node, const char *text, size_t size)
{
    struct far *far = data;
    (void)node; /* the message says it */
    if (size > 2 && text[0] == '{' && text[size - 1] == '}')
        cn_taps_pass(far->taps, far->id, text, size);
}

static void on_note(void *data, const char *node, const char *text)
{
    struct far *far = data;
    (void)node; /* so does the sentence */
    cn_taps_pass_note(far->taps, far->id, text, cn_v4_now());
}

static unsigned is_wanted(void *data)
{
    struct far *far = data;
    return cn_taps_wanted(far->taps, far->id);
}

static const struct cn_gather_ops far_ops = {.method = "POST",
                                             .target = "/node/taps",
                                             .body = append_wish,
                                             .line = on_line,
                                             .note = on_note,
                                             .wanted = is_wanted,
                                             .free = cn_free};

/* Who gets the address may use it at once: everybody listens by then. */
static void listen_everywhere(struct cn_control_call *call, const struct cn_buf *shown)
{
    struct cn_gather *gather = call->control->gather;
    struct cn_json *json = cn_json_parse((const char *)shown->data, shown->size, NULL);
    const char *id = cn_json_text(json, "id");
    if (gather && gather->net && id) {
        struct far *far = CN_NEW(struct far);
        far->taps = cn_v4_of(call)->taps;
        memcpy(far->id, id, strlen(id) < sizeof(far->id) ? strlen(id) : sizeof(far->id) - 1);
        uint64_t subject = cn_gather_add(gather, &far_ops, far);
        if (subject)
            cn_gather_await(gather, subject);
        else
            cn_free(far); /* this node alone is heard */
    }
    cn_json_free(json);
}

#define LOOK_US 20000 /* between two looks at what has come */

/* Lines for as long as somebody reads them. */
static void give_messages(struct cn_control_call *call, struct cn_taps *taps, struct cn_tap *tap)
{
    struct cn_buf lines = {0};
    int rc = 0;
    call->type = "application/x-ndjson";
    cn_buf_append_str(&lines, "{\"listening\":true}\n");
    while (rc >= 0 && call->write(call, lines.data, lines.size) == 0 && !call->cancelled(call)) {
        struct cn_buf message = {0};
        cn_buf_clear(&lines);
        while (lines.size < CN_TAP_PENDING_MAX / 4 &&
               (rc = cn_tap_take(taps, tap, cn_v4_now(), &message)) > 0) {
            cn_buf_append(&lines, message.data, message.size);
            cn_buf_append_byte(&lines, '\n');
        }
        cn_buf_fini(&message);
        if (!lines.size)
            usleep(LOOK_US);
    }
    cn_buf_fini(&lines);
}

int cn_v4_taps_relay(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_taps *taps = cn_v4_of(call)->taps;
    const char *worker = cn_json_text(call->json, "worker"),
               *self = cn_json_text(call->json, "self");
    struct cn_buf shown = {0};
    if (!call->relayed || !taps)
        return cn_err_set(err, CN_EUNSUPPORTED, "this is for nodes of a cluster");
    if (!worker)
        return cn_err_set(err, CN_EINVALID, "\"worker\" must be a text");
    struct cn_tap_wish wish = {.worker = worker,
                               .by = "",
                               .filters = cn_json_find(call->json, "filters"),
                               .base = "",
                               .far = true};
    int rc = cn_taps_add(taps, &wish, cn_v4_now(), &shown, err);
    struct cn_json *json =
        rc < 0 ? NULL : cn_json_parse((const char *)shown.data, shown.size, NULL);
    const char *secret = cn_json_text(json, "url");
    struct cn_tap *tap =
        secret ? cn_taps_attach(taps, secret, strlen(secret), self ? self : "", cn_v4_now()) : NULL;
    if (tap) {
        give_messages(call, taps, tap);
        cn_taps_detach(taps, tap);
    } else if (rc == 0) {
        rc = cn_err_set(err, CN_ECLOSED, "the tail has ended");
    }
    cn_json_free(json);
    cn_buf_fini(&shown);
    return rc;
}

/* --- tails ------------------------------------------------------------------------------------ */

static int make_tail(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_buf json = {0};
    if (!call->host || !*call->host)
        return cn_v4_fail(call, err, CN_EINVALID, 10023,
                          "a tail is asked for over HTTP, with a Host");
    char *base = cn_sprintf("%s://%s" CN_LIVE_PATH, call->https ? "wss" : "ws", call->host);
    bool is_operator = call->who.scopes & CN_SCOPE_ADMIN;
    struct cn_tap_wish wish = {call->path[6], is_operator ? "" : call->who.id,
                               cn_json_find(call->json, "filters"), base, false};
    int rc = cn_taps_add(v4->taps, &wish, cn_v4_now(), &json, err);
    cn_free(base);
    if (rc < 0) {
        cn_buf_fini(&json);
        if (!call->platform_code)
            call->platform_code = rc == CN_ELIMIT ? 10057 : 10023;
        return rc;
    }
    listen_everywhere(call, &json);
    return cn_control_result(call, &json);
}

int cn_v4_tails(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_buf json = {0};
    size_t last = call->path_count - 1;
    if (!v4->taps)
        return cn_v4_fail(call, err, CN_EUNSUPPORTED, 10023, "nobody can listen here");
    int rc = check_worker(call, err);
    if (rc < 0)
        return rc;
    if (strcmp(call->method, "POST") == 0)
        return make_tail(call, err);
    if (strcmp(call->method, "GET") == 0) {
        cn_taps_append(v4->taps, call->path[6], &json);
        return cn_control_result(call, &json);
    }
    if (!cn_taps_remove(v4->taps, call->path[6], call->path[last]))
        return cn_v4_fail(call, err, CN_ENOTFOUND, 10024, "there is no such tail");
    return cn_v4_answer_null(call);
}
