/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/v4_audit.c - who changed what: a note of each change goes into the state that the change
 * makes (depot.h, DA), and GET /api/audit shows them, the newest first. */
#include <inttypes.h>
#include <string.h>

#include "deploy/v4.h"

#define LIMIT_DEFAULT 100

void cn_v4_note(struct cn_control_call *call, struct cn_depot_state *state, const char *action,
                const char *worker, const char *detail)
{
    struct cn_depot_note note = {.time_ms = cn_v4_now(),
                                 .by = call->who.name,
                                 .action = (char *)action,
                                 .worker = (char *)worker,
                                 .detail = (char *)detail};
    memcpy(note.token, call->who.id, sizeof(note.token));
    cn_depot_add_note(state, &note);
}

static void append_note(struct cn_buf *json, const struct cn_depot_note *note)
{
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "by", note->by);
    cn_v4_put_text(json, "token", note->token);
    cn_buf_printf(json, ",\"time\":%" PRId64, note->time_ms);
    cn_v4_put_text(json, "action", note->action);
    cn_v4_put_text(json, "worker", note->worker);
    cn_v4_put_text(json, "detail", note->detail);
    cn_buf_append_byte(json, '}');
}

int cn_v4_api_audit(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    const char *worker = cn_control_param(call, "worker");
    int64_t limit;
    if (!v4->depot)
        return cn_err_set(err, CN_EUNSUPPORTED, "%s", v4->no_depot);
    int rc = cn_control_param_number(call, "limit", CN_DEPOT_NOTE_MAX, LIMIT_DEFAULT, &limit, err);
    if (rc < 0)
        return rc;
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "{\"entries\":[");
    for (size_t i = state->note_count; i-- > 0 && limit > 0;) {
        const struct cn_depot_note *note = &state->notes[i];
        if (worker && strcmp(note->worker, worker) != 0)
            continue;
        cn_buf_append_str(&json, json.data[json.size - 1] == '[' ? "" : ",");
        append_note(&json, note);
        limit--;
    }
    cn_buf_append_str(&json, "]}");
    cn_depot_state_unref(state);
    rc = cn_control_answer(call, &json);
    cn_buf_fini(&json);
    return rc;
}
