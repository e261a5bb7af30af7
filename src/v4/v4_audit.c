/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_audit.c - who changed what: a note of each change goes into the state that the change
 * makes (depot.h, DA), and of tokens into their file (tokens.h, T5). GET /api/audit shows both, the
 * newest first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "v4/tokens.h"
#include "v4/v4.h"

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
    cn_buf_append_str(json, json->data[json->size - 1] == '[' ? "{" : ",{");
    cn_v4_put_text(json, "by", note->by);
    cn_v4_put_text(json, "token", note->token);
    cn_buf_printf(json, ",\"time\":%" PRId64, note->time_ms);
    cn_v4_put_text(json, "action", note->action);
    cn_v4_put_text(json, "worker", note->worker);
    cn_v4_put_text(json, "detail", note->detail);
    cn_buf_append_byte(json, '}');
}

/* Tokens are made and revoked by the operator alone. */
static void append_token_note(struct cn_buf *json, const struct cn_token_note *note)
{
    struct cn_guard_who who;
    char scopes[CN_TOKEN_SCOPES_SIZE], detail[CN_TOKEN_NAME_MAX + CN_TOKEN_SCOPES_SIZE + 4];
    cn_guard_operator(&who);
    cn_tokens_scopes_text(note->scopes, scopes);
    snprintf(detail, sizeof(detail), "%s (%s)", note->name, scopes);
    append_note(json,
                &(struct cn_depot_note){.time_ms = note->time_ms,
                                        .by = who.name,
                                        .action = note->revoked ? "token revoke" : "token create",
                                        .worker = "",
                                        .detail = detail});
}

/* Both lists are in order of time: from their ends on. */
static void append_notes(struct cn_v4 *v4, const struct cn_depot_state *state, const char *worker,
                         int64_t limit, struct cn_buf *json)
{
    struct cn_token_note *tokens = cn_alloc(CN_TOKENS_NOTE_MAX * sizeof(*tokens));
    size_t token_count = v4->tokens && !worker ? cn_tokens_notes(v4->tokens, tokens) : 0;
    size_t count = state->note_count;
    while (limit > 0 && (count || token_count)) {
        const struct cn_depot_note *note = count ? &state->notes[count - 1] : NULL;
        if (token_count && (!note || tokens[token_count - 1].time_ms > note->time_ms)) {
            append_token_note(json, &tokens[--token_count]);
            limit--;
            continue;
        }
        count--;
        if (worker && strcmp(note->worker, worker) != 0)
            continue;
        append_note(json, note);
        limit--;
    }
    cn_free(tokens);
}

int cn_v4_api_audit(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    int64_t limit;
    if (!v4->depot)
        return cn_err_set(err, CN_EUNSUPPORTED, "%s", v4->no_depot);
    int rc = cn_control_param_number(call, "limit", CN_DEPOT_NOTE_MAX, LIMIT_DEFAULT, &limit, err);
    if (rc < 0)
        return rc;
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "{\"entries\":[");
    append_notes(v4, state, cn_control_param(call, "worker"), limit, &json);
    cn_buf_append_str(&json, "]}");
    cn_depot_state_unref(state);
    rc = cn_control_answer(call, &json);
    cn_buf_fini(&json);
    return rc;
}
