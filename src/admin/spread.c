/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/spread.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin/handler.h"
#include "admin/relay.h"
#include "base/clock.h"
#include "base/mem.h"
#include "object/id.h"
#include "object/shard.h"
#include "text/hex.h"
#include "text/percent.h"

#define AGAIN_US 50000

bool cn_spread_is(const struct cn_control_call *call)
{
    return call->control->relay && !call->relayed;
}

/* --- marks ----------------------------------------------------------------------------------- */

void cn_spread_marks_take(struct cn_spread_marks *marks, const struct cn_control_call *call)
{
    struct cn_shards *shards = call->control->shards;
    *marks = (struct cn_spread_marks){0};
    if (!call->relayed)
        return;
    marks->marks = cn_alloc_zero(cn_shards_count(shards) * sizeof(*marks->marks));
    for (unsigned i = 0; i < cn_shards_count(shards); i++)
        marks->marks[i] = cn_shards_mark(shards, i);
}

void cn_spread_marks_append(struct cn_spread_marks *marks, const struct cn_control_call *call,
                            struct cn_buf *out)
{
    struct cn_shards *shards = call->control->shards;
    if (!marks->marks)
        return;
    size_t size = (cn_shards_count(shards) + 7) / 8;
    uint8_t *bits = cn_alloc_zero(size);
    for (unsigned i = 0; i < cn_shards_count(shards); i++) {
        if (marks->marks[i] && marks->marks[i] == cn_shards_mark(shards, i)) /* P2 */
            bits[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    cn_buf_append_str(out, ",\"shards\":\"");
    cn_hex_append(out, bits, size);
    cn_buf_append_byte(out, '"');
    cn_free(bits);
    cn_spread_marks_fini(marks);
}

void cn_spread_marks_fini(struct cn_spread_marks *marks)
{
    cn_free(marks->marks);
    marks->marks = NULL;
}

/* --- a round --------------------------------------------------------------------------------- */

struct part {
    struct cn_control_call call; /* first. Of this node; of others what is asked */
    struct cn_other other;
    struct cn_relay_line *line; /* NULL: it has ended, or is this node's */
    struct cn_buf body;
    struct cn_err err;
    struct cn_json *json;
};

struct round {
    struct cn_control_call *call;
    const struct cn_relay_net *net;
    struct cn_relay_waiter waiter;
    struct part *parts; /* owned; the first is this node's */
    size_t count;
    uint64_t deadline_ns;
};

static int on_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    struct part *part = (struct part *)call;
    if (part->body.size + size > CN_SPREAD_PART_MAX)
        return cn_err_set(&part->err, CN_ELIMIT, "the list is too large");
    cn_buf_append(&part->body, bytes, size);
    return 0;
}

static bool is_cancelled(const struct round *round)
{
    struct cn_control_call *call = round->call;
    return call->cancelled && call->cancelled(call);
}

static void prepare(struct part *part, const struct cn_control_call *call, const char *target)
{
    part->call = (struct cn_control_call){.control = call->control,
                                          .method = "GET",
                                          .target = target,
                                          .body_size = 0,
                                          .relayed = true,
                                          .write = on_write};
    cn_guard_operator(&part->call.who); /* who asks may: his route was checked */
}

static void end_line(struct part *part)
{
    cn_relay_line_drop(part->line);
    part->line = NULL;
}

/* Takes what has come of another node. */
static void take_piece(struct part *part)
{
    struct cn_relay_line *line = part->line;
    if (line->err.code) {
        cn_err_set(&part->err, CN_ECLOSED, "node %s: %s", part->other.name, line->err.text);
        return end_line(part);
    }
    if (line->answer.head)
        part->call.status = (int)line->answer.status;
    if (line->answer.cut || on_write(&part->call, line->piece, line->piece_size) < 0) {
        if (!part->err.code)
            cn_err_set(&part->err, CN_ECLOSED, "node %s: its answer is not whole",
                       part->other.name);
        return end_line(part);
    }
    if (line->answer.ended)
        end_line(part);
    else
        cn_relay_line_step(line, NULL, 0, true);
}

/* Until all have ended, or may not go on. */
static void await_parts(struct round *round)
{
    for (;;) {
        bool waits = false;
        bool over = cn_clock_mono_ns(cn_clock_system()) > round->deadline_ns || is_cancelled(round);
        for (size_t i = 1; i < round->count; i++) {
            struct part *part = &round->parts[i];
            while (part->line && !cn_relay_line_waits(part->line))
                take_piece(part);
            if (part->line && over) {
                cn_err_set(&part->err, CN_ETIMEOUT, "node %s does not answer", part->other.name);
                end_line(part);
            }
            waits |= part->line != NULL;
        }
        if (!waits)
            return;
        cn_relay_waiter_wait(&round->waiter);
    }
}

static void parse_part(struct part *part)
{
    struct cn_err err = {0};
    if (part->err.code)
        return;
    part->json = cn_json_parse((const char *)part->body.data, part->body.size, &err);
    cn_buf_fini(&part->body);
    if (!part->json) {
        cn_err_set(&part->err, CN_EPROTOCOL, "node %s: its answer cannot be read",
                   part->other.name);
    } else if (part->call.status != 200) {
        const char *text = cn_json_text(cn_json_find(part->json, "error"), "message");
        int status = part->call.status;
        cn_err_set(&part->err,
                   status == 404   ? CN_ENOTFOUND
                   : status == 413 ? CN_ELIMIT
                   : status < 500  ? CN_EINVALID
                                   : CN_ECLOSED,
                   "%s", text ? text : "it failed");
    }
}

static void ask_all(struct round *round, const char *target)
{
    struct cn_other others[CN_OTHERS_MAX];
    const struct cn_node_calls *net = round->net->others;
    size_t count = net->list(net->data, others, CN_OTHERS_MAX);
    round->count = count + 1;
    round->parts = cn_alloc_zero(round->count * sizeof(*round->parts));
    for (size_t i = 0; i < round->count; i++) {
        struct part *part = &round->parts[i];
        prepare(part, round->call, target);
        if (i == 0) {
            snprintf(part->other.name, sizeof(part->other.name), "%s", round->net->name);
            continue;
        }
        part->other = others[i - 1];
        part->line =
            cn_relay_line_new(round->net, part->other.disk, cn_relay_waiter_wake, &round->waiter);
        cn_relay_line_open(part->line, &part->call, NULL, 0, true);
    }
    cn_control_run(&round->parts[0].call);
    cn_buf_fini(&round->parts[0].call.fields);
    await_parts(round);
    for (size_t i = 0; i < round->count; i++)
        parse_part(&round->parts[i]);
}

static void free_parts(struct round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        cn_json_free(round->parts[i].json);
        cn_buf_fini(&round->parts[i].body);
    }
    cn_free(round->parts);
    round->parts = NULL;
    round->count = 0;
}

/* P1: how many shards nobody has answered for; and why, of one who failed. */
static unsigned count_missing(const struct round *round, struct cn_err *why)
{
    unsigned shards = cn_shards_count(round->call->control->shards), missing = 0;
    size_t size = (shards + 7) / 8;
    uint8_t *all = cn_alloc_zero(size), *bits = cn_alloc(size);
    for (size_t i = 0; i < round->count; i++) {
        const struct part *part = &round->parts[i];
        const char *text = cn_json_text(part->json, "shards");
        if (part->err.code)
            *why = part->err;
        else if (text && strlen(text) == 2 * size && cn_hex_decode(text, size, bits))
            for (size_t k = 0; k < size; k++)
                all[k] |= bits[k];
    }
    for (unsigned i = 0; i < shards; i++)
        missing += !(all[i / 8] & (1u << (i % 8)));
    cn_free(all);
    cn_free(bits);
    return missing;
}

/* What is wrong with the request itself all say alike. */
static int find_fault(const struct round *round, struct cn_err *err)
{
    for (size_t i = 0; i < round->count; i++) {
        const struct cn_err *each = &round->parts[i].err;
        if (each->code == CN_EINVALID || each->code == CN_ENOTFOUND || each->code == CN_ELIMIT)
            return cn_err_set(err, each->code, "%s", each->text);
    }
    return 0;
}

int cn_spread_get(struct cn_control_call *call, const char *target, cn_spread_each each,
                  int (*after)(void *data, struct cn_err *err), void *data, struct cn_err *err)
{
    const struct cn_relay_net *net = call->control->relay;
    uint64_t wait_ns = (uint64_t)net->wait_ms * 1000000;
    uint64_t start_ns = cn_clock_mono_ns(cn_clock_system());
    struct round round = {.call = call, .net = net};
    int rc = 0;
    unsigned missing = 1;
    cn_relay_waiter_init(&round.waiter);
    while (rc == 0 && missing) {
        struct cn_err why = {0};
        round.deadline_ns = cn_clock_mono_ns(cn_clock_system()) + wait_ns;
        ask_all(&round, target);
        rc = find_fault(&round, err);
        missing = rc == 0 ? count_missing(&round, &why) : 0;
        for (size_t i = 0; rc == 0 && !missing && i < round.count; i++) {
            const struct part *part = &round.parts[i];
            if (!part->err.code)
                rc = each(data, part->other.name, part->json, err);
        }
        if (rc == 0 && !missing && after)
            rc = after(data, err);
        free_parts(&round);
        if (!missing || rc != 0)
            break;
        if (is_cancelled(&round) || cn_clock_mono_ns(cn_clock_system()) - start_ns > wait_ns)
            rc = cn_err_set(err, CN_ECLOSED,
                            "no node answers for %u of %u shards at the moment; try again%s%s%s",
                            missing, cn_shards_count(call->control->shards), why.code ? " (" : "",
                            why.text, why.code ? ")" : "");
        else
            usleep(AGAIN_US);
    }
    cn_relay_waiter_fini(&round.waiter);
    return rc;
}

/* --- names ----------------------------------------------------------------------------------- */

struct search {
    const char *name;
    uint32_t number;
    uint8_t *id;
    bool found;
};

static int match_namespace(void *data, const char *node, const struct cn_json *answer,
                           struct cn_err *err)
{
    struct search *search = data;
    const struct cn_json *list = cn_json_find(answer, "namespaces");
    (void)node;
    (void)err;
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        const char *name = cn_json_text(each, "name");
        int64_t number = cn_json_int(each, "number");
        if (!name || strcmp(name, search->name) != 0 || number < 1 || number > UINT32_MAX)
            continue;
        search->number = (uint32_t)number;
        search->found = true;
    }
    return 0;
}

int cn_spread_namespace(struct cn_control_call *call, const char *name, uint32_t *id,
                        struct cn_err *err)
{
    struct search search = {.name = name};
    int rc = cn_spread_get(call, "/api/namespaces", match_namespace, NULL, &search, err);
    if (rc < 0)
        return rc;
    *id = search.number;
    return search.found;
}

static int match_object(void *data, const char *node, const struct cn_json *answer,
                        struct cn_err *err)
{
    struct search *search = data;
    const struct cn_json *list = cn_json_find(answer, "objects");
    (void)node;
    (void)err;
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        const char *name = cn_json_text(each, "name"), *id = cn_json_text(each, "id");
        if (name && id && strcmp(name, search->name) == 0 &&
            cn_id_from_hex(id, strlen(id), search->id))
            search->found = true;
    }
    return 0;
}

int cn_spread_name(struct cn_control_call *call, const char *namespace_name, const char *name,
                   uint8_t id[CN_OBJECT_ID_SIZE], struct cn_err *err)
{
    struct search search = {.name = name, .id = id};
    struct cn_buf target = {0};
    cn_buf_append_str(&target, "/api/objects?limit=1&namespace=");
    cn_percent_encode(&target, namespace_name, strlen(namespace_name), "-_");
    cn_buf_append_str(&target, "&prefix=");
    cn_percent_encode(&target, name, strlen(name), "-_");
    int rc = cn_spread_get(call, cn_buf_text(&target), match_object, NULL, &search, err);
    cn_buf_fini(&target);
    return rc < 0 ? rc : search.found;
}
