/* SPDX-License-Identifier: Apache-2.0 */
/* admin/relay_wire.c - the messages of admin/relay.h as bytes: the size of the fields in 4 bytes,
 * the lowest first, the fields (base/wire.h), and the piece of a body behind them. Numbers of
 * fields are for ever (W2). */
#include <string.h>

#include "admin/relay.h"
#include "base/wire.h"

enum { TEXT_MAX = 4096, FIELDS_MAX = 64 << 10 };

static const struct cn_wire_field ask_fields[] = {
    CN_WIRE_UINT(1, struct cn_relay_ask, step, CN_RELAY_CLOSE),
    CN_WIRE_UINT(2, struct cn_relay_ask, session, UINT64_MAX),
    CN_WIRE_BOOL(3, struct cn_relay_ask, body_ends),
    CN_WIRE_TEXT(4, struct cn_relay_ask, method, 32),
    CN_WIRE_TEXT(5, struct cn_relay_ask, target, CN_RELAY_TARGET_MAX),
    CN_WIRE_TEXT(6, struct cn_relay_ask, content_type, TEXT_MAX),
    CN_WIRE_TEXT(7, struct cn_relay_ask, host, TEXT_MAX),
    CN_WIRE_BOOL(8, struct cn_relay_ask, https),
    CN_WIRE_BUF(9, struct cn_relay_ask, sent, FIELDS_MAX),
    CN_WIRE_UINT(10, struct cn_relay_ask, scopes, 255),
    CN_WIRE_TEXT(11, struct cn_relay_ask, who, 32),
    CN_WIRE_TEXT(12, struct cn_relay_ask, name, 64),
    CN_WIRE_END};

static const struct cn_wire_field answer_fields[] = {
    CN_WIRE_BOOL(1, struct cn_relay_answer, head),
    CN_WIRE_UINT(2, struct cn_relay_answer, status, 999),
    CN_WIRE_TEXT(3, struct cn_relay_answer, type, TEXT_MAX),
    CN_WIRE_UINT(4, struct cn_relay_answer, length, INT64_MAX),
    CN_WIRE_BUF(5, struct cn_relay_answer, fields, FIELDS_MAX),
    CN_WIRE_BOOL(6, struct cn_relay_answer, ended),
    CN_WIRE_BOOL(7, struct cn_relay_answer, cut),
    CN_WIRE_BOOL(8, struct cn_relay_answer, refused),
    CN_WIRE_UINT(9, struct cn_relay_answer, owner, UINT64_MAX),
    CN_WIRE_BOOL(10, struct cn_relay_answer, more),
    CN_WIRE_END};

/* Pairs of a name and a value, each with its NUL; a name is not empty, and nothing in them ends a
 * line of a head. */
static bool is_pairs(const struct cn_buf *pairs)
{
    const char *text = (const char *)pairs->data; /* NULL: there are none */
    bool name = true;
    for (size_t at = 0; at < pairs->size;) {
        const char *nul = memchr(text + at, 0, pairs->size - at);
        if (!nul || (name && nul == text + at) || text[at + strcspn(text + at, "\r\n")])
            return false;
        name = !name;
        at = (size_t)(nul - text) + 1;
    }
    return name;
}

void cn_relay_ask_put(const struct cn_relay_ask *ask, struct cn_buf *out)
{
    cn_wire_put_head(ask_fields, ask, out);
}

void cn_relay_answer_put(const struct cn_relay_answer *answer, struct cn_buf *out)
{
    cn_wire_put_head(answer_fields, answer, out);
}

int cn_relay_ask_get(struct cn_relay_ask *ask, const uint8_t *bytes, size_t size,
                     const uint8_t **piece, size_t *piece_size)
{
    int rc = cn_wire_get_head(ask_fields, ask, bytes, size, piece, piece_size);
    bool good = ask->step && ask->session &&
                (ask->step != CN_RELAY_OPEN ||
                 (ask->method && ask->target && ask->target[0] == '/' && ask->scopes)) &&
                is_pairs(&ask->sent);
    return rc < 0 || good ? rc : CN_EPROTOCOL;
}

int cn_relay_answer_get(struct cn_relay_answer *answer, const uint8_t *bytes, size_t size,
                        const uint8_t **piece, size_t *piece_size)
{
    int rc = cn_wire_get_head(answer_fields, answer, bytes, size, piece, piece_size);
    bool good = (!answer->head || (answer->status >= 200 && answer->type &&
                                   !answer->type[strcspn(answer->type, "\r\n")])) &&
                is_pairs(&answer->fields);
    return rc < 0 || good ? rc : CN_EPROTOCOL;
}

void cn_relay_ask_clear(struct cn_relay_ask *ask)
{
    cn_wire_clear(ask_fields, ask);
}

void cn_relay_answer_clear(struct cn_relay_answer *answer)
{
    cn_wire_clear(answer_fields, answer);
}
