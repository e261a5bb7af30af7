/* SPDX-License-Identifier: Apache-2.0 */
/* What services say to other nodes (service/wire.h): every operation travels, every field of every
 * table comes back as it was, and bytes that nobody wrote are refused or are a call that the class
 * can be given. What the fields mean is tested by the tests of each service with CAIRN_TEST_WIRE.
 */
#include "service/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "object/node.h"
#include "service/cron/cron.h"
#include "service/d1/d1.h"
#include "service/kv/kv.h"
#include "service/queue/queue.h"
#include "service/r2/r2.h"
#include "service/ratelimit/ratelimit.h"
#include "service/service.h"
#include "test/lib/test.h"

static unsigned operations_of(const struct cn_service_def *def)
{
    unsigned count = 0;
    while (count < CN_OBJECT_OPS && def->operations[count])
        count++;
    return count;
}

/* R6 of service/wire.h. */
TEST(service_wire, every_operation_travels)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_def *def = cn_service_table[i];
        if (!def->class_) {
            CHECK(!def->wire);
            continue;
        }
        if (!def->wire)
            test_fail(__FILE__, __LINE__, "%s has no wire", def->name);
        unsigned count = operations_of(def);
        for (unsigned op = 0; op < CN_OBJECT_OPS; op++) {
            if (cn_service_wire_has(def->wire, op) != (op < count))
                test_fail(__FILE__, __LINE__, "%s: operation %u (%s)", def->name, op,
                          op < count ? def->operations[op] : "which has no name");
        }
        CHECK(def->wire->size > sizeof(struct cn_service_call));
        CHECK(def->wire->asked && def->wire->answered);
    }
}

/* --- every field ------------------------------------------------------------------------------ */

static void fill(const struct cn_wire_field *fields, uint8_t *of, struct cn_rand *random);

static uint64_t draw(struct cn_rand *random, uint64_t below)
{
    uint64_t value = cn_rand_next(random) >> (cn_rand_next(random) % 64);
    return below ? value % below : value;
}

static uint8_t *draw_bytes(struct cn_rand *random, size_t size, uint8_t least)
{
    uint8_t *bytes = cn_alloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(least + draw(random, 256u - least));
    bytes[size] = 0;
    return bytes;
}

static void fill_field(const struct cn_wire_field *field, uint8_t *of, struct cn_rand *random)
{
    uint8_t *at = of + field->offset;
    uint64_t bound = field->max < 40 ? field->max : 40;
    size_t size = (size_t)draw(random, bound + 1);
    uint64_t number;
    void *pointer;
    if (field->type != CN_WIRE_TYPE_GROUP && draw(random, 4) == 0)
        return; /* not there */
    switch ((enum cn_wire_type)field->type) {
    case CN_WIRE_TYPE_BOOL:
    case CN_WIRE_TYPE_UINT:
        number = draw(random, field->max == UINT64_MAX ? 0 : field->max + 1);
        memcpy(at, &number, field->width);
        break;
    case CN_WIRE_TYPE_INT:
        number = cn_rand_next(random);
        memcpy(at, &number, field->width);
        break;
    case CN_WIRE_TYPE_TEXT:
        pointer = draw_bytes(random, size, 1);
        memcpy(at, &pointer, sizeof(pointer));
        break;
    case CN_WIRE_TYPE_BYTES:
        pointer = draw_bytes(random, size, 0);
        memcpy(at, &pointer, sizeof(pointer));
        memcpy(of + field->offset_size, &size, sizeof(size));
        break;
    case CN_WIRE_TYPE_BUF:
        *(struct cn_buf *)(void *)at = (struct cn_buf){draw_bytes(random, size, 0), size, size + 1};
        break;
    case CN_WIRE_TYPE_FIXED:
        for (size_t i = 0; i < field->width; i++)
            at[i] = (uint8_t)cn_rand_next(random);
        break;
    case CN_WIRE_TYPE_GROUP:
        fill(field->fields, at, random);
        break;
    case CN_WIRE_TYPE_LIST:
        pointer = cn_alloc_zero(size * field->width + 1);
        for (size_t i = 0; i < size; i++)
            fill(field->fields, (uint8_t *)pointer + i * field->width, random);
        memcpy(at, &pointer, sizeof(pointer));
        memcpy(of + field->offset_size, &size, sizeof(size));
        break;
    case CN_WIRE_TYPE_OWN: /* of the tests of its service */
    case CN_WIRE_NONE:
        break;
    }
}

static void fill(const struct cn_wire_field *fields, uint8_t *of, struct cn_rand *random)
{
    for (; fields->type != CN_WIRE_NONE; fields++)
        fill_field(fields, of, random);
}

static void round_trip(const struct cn_service_def *def, const struct cn_wire_field *fields,
                       struct cn_rand *random)
{
    uint8_t *from = cn_alloc_zero(def->wire->size), *to = cn_alloc_zero(def->wire->size);
    struct cn_buf written = {0}, again = {0};
    fill(fields, from, random);
    cn_wire_put(fields, from, &written);
    int rc = cn_wire_get(fields, to, written.data, written.size, NULL);
    if (rc)
        test_fail(__FILE__, __LINE__, "%s: its own bytes are refused: %d", def->name, rc);
    cn_wire_put(fields, to, &again);
    if (again.size != written.size ||
        (again.size && memcmp(again.data, written.data, again.size) != 0))
        test_fail(__FILE__, __LINE__, "%s: what was read is not what was written", def->name);
    cn_wire_clear(fields, from);
    cn_wire_clear(fields, to);
    cn_buf_fini(&written);
    cn_buf_fini(&again);
    cn_free(from);
    cn_free(to);
}

TEST(service_wire, every_field_comes_back_as_it_was)
{
    struct cn_rand random;
    cn_rand_init(&random, 1);
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_def *def = cn_service_table[i];
        for (unsigned k = 0; def->wire && k < 300; k++) {
            round_trip(def, def->wire->asked, &random);
            round_trip(def, def->wire->answered, &random);
        }
    }
}

/* --- what a peer may not say ------------------------------------------------------------------ */

static struct cn_namespace ns = {.name = (char *)"$any/x"};

/* What the owner makes of a call, which is freed. */
static int ask(const struct cn_service_def *def, struct cn_service_call *call)
{
    struct cn_buf bytes = {0};
    struct cn_service_call *there = cn_alloc_zero(def->wire->size);
    cn_service_call_init(there, &ns, "0", call->call.op, def->wire->fini);
    cn_service_wire_ask(def->wire, call, &bytes);
    int rc = cn_service_wire_asked(def->wire, there, bytes.data, bytes.size, NULL);
    cn_service_call_free(there);
    cn_service_call_free(call);
    cn_buf_fini(&bytes);
    return rc;
}

/* And the caller of an answer to `call`; both are freed. */
static int answer(const struct cn_service_def *def, struct cn_service_call *call,
                  struct cn_service_call *answered)
{
    struct cn_buf bytes = {0};
    cn_wire_put(def->wire->answered, answered, &bytes);
    int rc = cn_service_wire_answered(def->wire, call, bytes.data, bytes.size, NULL);
    cn_service_call_free(answered);
    cn_service_call_free(call);
    cn_buf_fini(&bytes);
    return rc;
}

static struct cn_d1_call *d1_call(void)
{
    struct cn_d1_call *call = cn_d1_call_new(&ns, CN_D1_OBJECTS);
    cn_d1_call_query(call, "SELECT ?", 8);
    cn_d1_call_bytes(call, CN_SQL_TEXT, "abc", 3);
    return call;
}

TEST(service_wire, queries_of_d1_lie_inside_of_their_bytes)
{
    CHECK_INT(0, ask(&cn_service_d1, &d1_call()->base));
    struct cn_d1_call *call = d1_call();
    call->queries[0].size = 12;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_d1, &call->base));
    call = d1_call();
    call->queries[0].at = UINT32_MAX;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_d1, &call->base));
    call = d1_call();
    call->queries[0].count = 2;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_d1, &call->base));
    call = d1_call();
    call->values[0].size = 4;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_d1, &call->base));
    call = d1_call();
    call->values[0].type = (enum cn_sql_type)(CN_SQL_BLOB + 1);
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_d1, &call->base));
    call = d1_call();
    cn_buf_append(&call->metas, "1234567", 7);
    CHECK_INT(CN_EPROTOCOL, answer(&cn_service_d1, &d1_call()->base, &call->base));
}

/* Doubles travel as their bits. */
TEST(service_wire, numbers_of_d1_are_exact)
{
    static const double numbers[] = {0.1, -0.0, 5e-324, -1.7976931348623157e308};
    for (size_t i = 0; i < CN_ARRAY_COUNT(numbers); i++) {
        struct cn_d1_call *call = d1_call(), *there = d1_call();
        struct cn_buf bytes = {0};
        cn_d1_call_value(call, CN_SQL_REAL)->real = numbers[i];
        cn_service_wire_ask(cn_service_d1.wire, &call->base, &bytes);
        CHECK_INT(0, cn_service_wire_asked(cn_service_d1.wire, &there->base, bytes.data, bytes.size,
                                           NULL));
        CHECK(memcmp(&there->values[1].real, &numbers[i], sizeof(double)) == 0);
        cn_buf_fini(&bytes);
        cn_service_call_free(&call->base);
        cn_service_call_free(&there->base);
    }
}

static struct cn_queue_call *send_call(void)
{
    struct cn_queue_call *call = cn_queue_call_new(&ns, CN_QUEUE_SEND);
    cn_queue_add(call, "hello", 5, CN_QUEUE_TEXT, 0);
    return call;
}

static struct cn_queue_call *receive_call(size_t count_max)
{
    struct cn_queue_call *call = cn_queue_call_new(&ns, CN_QUEUE_RECEIVE);
    call->count_max = count_max;
    return call;
}

TEST(service_wire, messages_of_a_queue_lie_inside_of_their_bytes)
{
    CHECK_INT(0, ask(&cn_service_queue, &send_call()->base));
    struct cn_queue_call *call = send_call();
    call->messages[0].size = 6;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_queue, &call->base));
    call = send_call();
    call->messages[0].delay_s = INT64_MAX;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_queue, &call->base));
    CHECK_INT(0, ask(&cn_service_queue, &receive_call(10)->base));
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_queue, &receive_call(0)->base));
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_queue, &receive_call(1000000)->base));
    call = cn_queue_call_new(&ns, CN_QUEUE_CONFIGURE);
    call->retention_s = INT64_MAX;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_queue, &call->base));
    call = send_call();
    call->messages[0].offset = 1;
    CHECK_INT(CN_EPROTOCOL, answer(&cn_service_queue, &receive_call(1)->base, &call->base));
    call = send_call();
    memset(call->messages[0].id, 'a', sizeof(call->messages[0].id));
    CHECK_INT(CN_EPROTOCOL, answer(&cn_service_queue, &receive_call(1)->base, &call->base));
    CHECK_INT(0, answer(&cn_service_queue, &receive_call(1)->base, &send_call()->base));
    /* R5: nobody asked for messages. */
    CHECK_INT(CN_EPROTOCOL, answer(&cn_service_queue, &send_call()->base, &send_call()->base));
}

TEST(service_wire, bodies_of_r2_are_as_large_as_their_segments)
{
    struct cn_r2_call *call = cn_r2_call_new(&ns, CN_R2_ANNOUNCE);
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_r2, &call->base));
    for (unsigned size = 6; size < 9; size++) {
        call = cn_r2_call_new(&ns, CN_R2_PUT);
        call->etag = cn_strdup("0");
        call->body.segments = cn_alloc_zero(sizeof(struct cn_r2_segment));
        call->body.count = 1;
        call->body.segments[0].size = 7;
        call->body.size = size;
        CHECK_INT(size == 7 ? 0 : CN_EPROTOCOL, ask(&cn_service_r2, &call->base));
    }
    call = cn_r2_call_new(&ns, CN_R2_UPLOAD_COMPLETE);
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_r2, &call->base));
}

TEST(service_wire, what_the_others_rely_on_is_checked)
{
    struct cn_kv_call *kv = cn_kv_call_new(&ns, CN_KV_PUT, "k", 1);
    kv->expires_s = INT64_MAX;
    CHECK_INT(CN_EPROTOCOL, ask(&cn_service_kv, &kv->base));
    kv = cn_kv_call_new(&ns, CN_KV_GET, "k", 1);
    kv->found = true; /* without a value */
    CHECK_INT(CN_EPROTOCOL,
              answer(&cn_service_kv, &cn_kv_call_new(&ns, CN_KV_GET, "k", 1)->base, &kv->base));
    CHECK_INT(0, ask(&cn_service_ratelimit, &cn_ratelimit_call_new(&ns, "k", 1, 5, 10)->base));
    CHECK_INT(CN_EPROTOCOL,
              ask(&cn_service_ratelimit, &cn_ratelimit_call_new(&ns, "k", 1, 5, 0)->base));
    CHECK_INT(0, ask(&cn_service_cron, &cn_cron_call_new(&ns, CN_CRON_OPEN, "* * * * *")->base));
    CHECK_INT(CN_EPROTOCOL,
              ask(&cn_service_cron, &cn_cron_call_new(&ns, CN_CRON_FINISH, "* * * * *")->base));
}

/* R5 */
TEST(service_wire, what_was_only_asked_does_not_come_back)
{
    struct cn_buf bytes = {0};
    struct cn_kv_call *kv = cn_kv_call_new(&ns, CN_KV_PUT, "k", 1);
    kv->value = cn_alloc_zero(100000);
    kv->value_size = 100000;
    cn_service_wire_answer(cn_service_kv.wire, &kv->base, &bytes);
    CHECK_INT(0, bytes.size);
    cn_service_call_free(&kv->base);
    struct cn_queue_call *queue = send_call();
    cn_service_wire_answer(cn_service_queue.wire, &queue->base, &bytes);
    CHECK_INT(0, bytes.size);
    cn_service_call_free(&queue->base);
    cn_buf_fini(&bytes);
}

/* Bytes of a call with some of them changed: refused, or a call. Sanitizers watch. */
TEST(service_wire, changed_bytes_are_refused_or_are_a_call)
{
    struct cn_rand random;
    unsigned taken = 0;
    cn_rand_init(&random, 2);
    for (unsigned k = 0; k < 20000; k++) {
        const struct cn_service_def *defs[] = {&cn_service_d1,    &cn_service_kv,
                                               &cn_service_queue, &cn_service_r2,
                                               &cn_service_cron,  &cn_service_ratelimit};
        const struct cn_service_def *def = defs[k % CN_ARRAY_COUNT(defs)];
        bool answers = draw(&random, 2);
        const struct cn_wire_field *fields = answers ? def->wire->answered : def->wire->asked;
        uint8_t *from = cn_alloc_zero(def->wire->size);
        struct cn_service_call *call = cn_alloc_zero(def->wire->size);
        struct cn_buf bytes = {0};
        cn_service_call_init(call, &ns, "0", (unsigned)draw(&random, operations_of(def)),
                             def->wire->fini);
        fill(fields, from, &random);
        cn_wire_put(fields, from, &bytes);
        for (uint64_t changes = draw(&random, 4); bytes.size && changes; changes--)
            bytes.data[draw(&random, bytes.size)] = (uint8_t)cn_rand_next(&random);
        size_t size = draw(&random, 3) ? bytes.size : (size_t)draw(&random, bytes.size + 1);
        int rc = answers ? cn_service_wire_answered(def->wire, call, bytes.data, size, NULL)
                         : cn_service_wire_asked(def->wire, call, bytes.data, size, NULL);
        CHECK(rc == 0 || rc == CN_EPROTOCOL || rc == CN_EVERSION || rc == CN_ENOMEM);
        taken += rc == 0;
        cn_wire_clear(fields, from);
        cn_service_call_free(call);
        cn_buf_fini(&bytes);
        cn_free(from);
    }
    CHECK(taken > 500); /* or nothing behind the tables was reached */
}
