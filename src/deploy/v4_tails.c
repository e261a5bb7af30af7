/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/v4_tails.c - wrangler tail: who listens to a worker (worker/taps.h). The answer names the
 * address of a WebSocket on this listener, as the client has reached it (admin/live.h). */
#include <string.h>

#include "admin/live.h"
#include "base/mem.h"
#include "deploy/v4.h"
#include "worker/taps.h"

/* The worker of the path must be there: as a script, or as a project of this server. */
static int check_worker(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    cn_depot_state_unref(state);
    return script ? 0 : err->code;
}

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
                               cn_json_find(call->json, "filters"), base};
    int rc = cn_taps_add(v4->taps, &wish, cn_v4_now(), &json, err);
    cn_free(base);
    if (rc < 0) {
        cn_buf_fini(&json);
        if (!call->platform_code)
            call->platform_code = rc == CN_ELIMIT ? 10057 : 10023;
        return rc;
    }
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
