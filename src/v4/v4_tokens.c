/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_tokens.c - /api/tokens: makes, lists and revokes tokens; for the operator. */
#include <string.h>

#include "base/diag.h"
#include "v4/tokens.h"
#include "v4/v4.h"

#define EXPIRES_IN_MAX 315360000 /* ten years */

static void append_account(struct cn_v4 *v4, struct cn_buf *json)
{
    if (!v4->depot)
        return;
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    cn_v4_put_text(json, "account", state->account);
    cn_depot_state_unref(state);
}

/* "expires_in": seconds; without it a token has no end. */
static int read_expiry(struct cn_control_call *call, struct cn_token_wish *wish, struct cn_err *err)
{
    const struct cn_json *given = cn_json_find(call->json, "expires_in");
    int64_t seconds = cn_json_int(call->json, "expires_in");
    if (!given)
        return 0;
    if (seconds < 1 || seconds > EXPIRES_IN_MAX)
        return cn_err_set(err, CN_EINVALID,
                          "\"expires_in\" must be a number of seconds from 1 to %d",
                          EXPIRES_IN_MAX);
    wish->expires_ms = wish->now_ms + seconds * 1000;
    return 0;
}

static int create(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    const char *name = cn_json_text(call->json, "name"),
               *scopes = cn_json_text(call->json, "scopes");
    char token[CN_TOKEN_SIZE], id[33];
    struct cn_token_wish wish = {.name = name ? name : "", .now_ms = cn_v4_now()};
    int asked = cn_tokens_scopes(scopes ? scopes : "", err);
    int rc = asked < 0 ? asked : read_expiry(call, &wish, err);
    if (rc < 0)
        return rc;
    wish.scopes = (unsigned)asked;
    rc = cn_tokens_create(v4->tokens, &wish, token, id, err);
    if (rc < 0)
        return rc;
    cn_info("the token %s (%s) was made", name, scopes);
    struct cn_buf json = {0};
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "id", id);
    cn_v4_put_text(&json, "name", name);
    cn_v4_put_text(&json, "token", token);
    append_account(v4, &json);
    cn_buf_append_byte(&json, '}');
    rc = cn_control_answer(call, &json);
    cn_buf_fini(&json);
    return rc;
}

static int list(struct cn_control_call *call)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_buf json = {0};
    cn_buf_append_str(&json, "{\"tokens\":");
    cn_tokens_list(v4->tokens, &json);
    append_account(v4, &json);
    cn_buf_append_byte(&json, '}');
    int rc = cn_control_answer(call, &json);
    cn_buf_fini(&json);
    return rc;
}

int cn_v4_api_tokens(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    if (!v4->tokens)
        return cn_err_set(err, CN_EUNSUPPORTED, "this server keeps no tokens");
    if (strcmp(call->method, "GET") == 0)
        return list(call);
    if (strcmp(call->method, "POST") == 0)
        return create(call, err);
    int rc = cn_tokens_revoke(v4->tokens, call->path[2], cn_v4_now(), err);
    if (rc < 0)
        return rc;
    cn_info("the token %s was revoked", call->path[2]);
    cn_buf_append_str(&call->scratch, "{\"revoked\":true}");
    return cn_control_answer(call, &call->scratch);
}
