/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/question.h"

#include <assert.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/wire.h"
#include "object/call.h"

enum { FAULTS_ALL = 15 };

/* Q1: their numbers are on the wire. */
static_assert(CN_CALL_FETCH == 0 && CN_CALL_RPC == 1 && CN_CALL_OTHER == 3 && CN_CALL_ADOPT == 6,
              "kinds of calls");
static_assert(CN_FAULT_REMOTE == 1 && CN_FAULT_RETRYABLE == 2 && CN_FAULT_OVERLOADED == 4 &&
                  CN_FAULT_RESET == 8,
              "kinds of faults");

static const struct cn_wire_field origin_fields[] = {
    CN_WIRE_UINT(1, struct cn_origin, request, UINT64_MAX),
    CN_WIRE_UINT(2, struct cn_origin, trace[0], UINT64_MAX),
    CN_WIRE_UINT(3, struct cn_origin, trace[1], UINT64_MAX),
    CN_WIRE_UINT(4, struct cn_origin, span, UINT64_MAX),
    CN_WIRE_UINT(5, struct cn_origin, depth, UINT32_MAX),
    CN_WIRE_BOOL(6, struct cn_origin, unsampled),
    CN_WIRE_END};

static const struct cn_wire_field question_fields[] = {
    CN_WIRE_UINT(1, struct cn_question, type, CN_QUESTION_EVENT),
    CN_WIRE_UINT(2, struct cn_question, kind, CN_CALL_ADOPT),
    CN_WIRE_UINT(3, struct cn_question, namespace_id, UINT32_MAX),
    CN_WIRE_FIXED(4, struct cn_question, id),
    CN_WIRE_BYTES(5, struct cn_question, name, name_size, CN_QUESTION_TEXT_MAX),
    CN_WIRE_UINT(6, struct cn_question, turn, UINT32_MAX),
    CN_WIRE_UINT(7, struct cn_question, op, 31),
    CN_WIRE_UINT(8, struct cn_question, life, UINT64_MAX),
    CN_WIRE_UINT(9, struct cn_question, lane, UINT32_MAX),
    CN_WIRE_UINT(10, struct cn_question, serial, UINT32_MAX),
    CN_WIRE_TEXT(11, struct cn_question, method, CN_QUESTION_TEXT_MAX),
    CN_WIRE_GROUP(12, struct cn_question, origin, origin_fields),
    CN_WIRE_END};

static const struct cn_wire_field reply_fields[] = {
    CN_WIRE_UINT(1, struct cn_reply, type, CN_REPLY_REFUSED),
    CN_WIRE_INT(2, struct cn_reply, code),
    CN_WIRE_UINT(3, struct cn_reply, faults, FAULTS_ALL),
    CN_WIRE_TEXT(4, struct cn_reply, text, CN_QUESTION_TEXT_MAX),
    CN_WIRE_BOOL(5, struct cn_reply, has_bytes),
    CN_WIRE_UINT(6, struct cn_reply, owner, UINT64_MAX),
    CN_WIRE_END};

void cn_question_put(const struct cn_question *question, struct cn_buf *out)
{
    cn_wire_put_head(question_fields, question, out);
}

void cn_reply_put(const struct cn_reply *reply, struct cn_buf *out)
{
    cn_wire_put_head(reply_fields, reply, out);
}

/* Q2 */
static bool is_good(const struct cn_question *question)
{
    if (question->type == CN_QUESTION_SOCKETS)
        return true;
    if (question->type == CN_QUESTION_NODE)
        return question->method != NULL;
    if (question->type == CN_QUESTION_EVENT)
        return question->name && question->method;
    if (question->type == CN_QUESTION_TARGET)
        return question->serial && question->method;
    if (!question->type || !question->namespace_id)
        return false;
    switch (question->kind) {
    case CN_CALL_FETCH:
    case CN_CALL_ADOPT:
        return question->type == CN_QUESTION_CALL;
    case CN_CALL_RPC:
        return question->type == CN_QUESTION_CALL && question->method;
    case CN_CALL_OTHER:
        return question->type == CN_QUESTION_SERVICE || question->method;
    default:
        return false;
    }
}

int cn_question_get(struct cn_question *question, const uint8_t *bytes, size_t size,
                    const uint8_t **body, size_t *body_size)
{
    int rc = cn_wire_get_head(question_fields, question, bytes, size, body, body_size);
    return rc < 0 || is_good(question) ? rc : CN_EPROTOCOL;
}

int cn_reply_get(struct cn_reply *reply, const uint8_t *bytes, size_t size, const uint8_t **body,
                 size_t *body_size)
{
    int rc = cn_wire_get_head(reply_fields, reply, bytes, size, body, body_size);
    bool good = reply->type && reply->code <= 0 && (reply->type != CN_REPLY_FAILED || reply->code);
    return rc < 0 || good ? rc : CN_EPROTOCOL;
}

void cn_question_clear(struct cn_question *question)
{
    cn_wire_clear(question_fields, question);
}

void cn_reply_clear(struct cn_reply *reply)
{
    cn_wire_clear(reply_fields, reply);
}

/* --- events: Q3 -------------------------------------------------------------------------------- */

static const struct {
    const char *word, *handler;
} events[] = {{"batch", "queue"}, {"queue", "queue"}};

const char *cn_event_word(const char *handler)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(events); i++)
        if (strcmp(events[i].handler, handler) == 0)
            return events[i].word;
    return handler;
}

const char *cn_event_handler(const uint8_t *word, size_t size)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(events); i++)
        if (size == strlen(events[i].word) && memcmp(word, events[i].word, size) == 0)
            return events[i].handler;
    return NULL;
}
