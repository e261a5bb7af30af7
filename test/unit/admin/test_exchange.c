/* SPDX-License-Identifier: Apache-2.0 */
/* A call that asks back: one answer for each question, none for nobody, and an end to waiting. */
#include "admin/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "admin/control.h"
#include "test/lib/test.h"

struct rig {
    struct cn_control_call call; /* first */
    struct cn_exchanges table;
    struct cn_exchange exchange;
    struct cn_buf frames;
    bool answers; /* at once, twice: the second is nobody's */
    atomic_bool gone;
};

static int on_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    struct rig *rig = (struct rig *)call;
    const uint8_t *at = bytes;
    CHECK_INT((int64_t)size - 5, at[0] | at[1] << 8 | at[2] << 16);
    cn_buf_append(&rig->frames, at + 4, size - 4);
    cn_buf_append_byte(&rig->frames, ' ');
    if (at[4] == CN_EXCHANGE_QUESTION && rig->answers) {
        CHECK_INT(0, cn_exchange_answer(&rig->table, rig->exchange.name, "yes", 3, NULL));
        CHECK_INT(CN_ENOTFOUND, cn_exchange_answer(&rig->table, rig->exchange.name, "no", 2, NULL));
    }
    return atomic_load(&rig->gone) ? CN_ECLOSED : 0;
}

static bool is_gone(struct cn_control_call *call)
{
    return atomic_load(&((struct rig *)call)->gone);
}

static void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    rig->call.write = on_write;
    rig->call.cancelled = is_gone;
    cn_exchanges_init(&rig->table);
    CHECK_INT(0, cn_exchange_begin(&rig->exchange, &rig->table, &rig->call));
    CHECK_INT(200, rig->call.status);
}

static void rig_close(struct rig *rig, int rc, const char *frames)
{
    struct cn_err err = {0};
    struct cn_buf json = {0};
    cn_err_set(&err, CN_EINVALID, "why \"not\"");
    cn_buf_append_str(&json, "{}");
    cn_exchange_end(&rig->exchange, rc, &json, &err);
    CHECK_STR(frames, cn_buf_text(&rig->frames) + 1 + CN_EXCHANGE_NAME_SIZE);
    CHECK_INT(CN_ENOTFOUND, cn_exchange_answer(&rig->table, rig->exchange.name, "x", 1, NULL));
    cn_exchanges_fini(&rig->table);
    cn_buf_fini(&rig->frames);
    cn_buf_fini(&json);
}

TEST(exchange, an_answer_counts_once)
{
    struct rig rig;
    struct cn_buf question = {0}, answer = {0};
    rig_open(&rig);
    CHECK_INT(CN_ENOTFOUND, cn_exchange_answer(&rig.table, rig.exchange.name, "early", 5, NULL));
    CHECK_INT(CN_ENOTFOUND, cn_exchange_answer(&rig.table, "another", "x", 1, NULL));
    cn_buf_append_str(&question, "really?");
    rig.answers = true;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(0, cn_exchange_ask(&rig.exchange, &question, &answer));
        CHECK_STR("yes", cn_buf_text(&answer));
        cn_buf_fini(&answer);
    }
    rig_close(&rig, 0, "Qreally? Qreally? E{} ");
    cn_buf_fini(&question);
}

static void *leave(void *data)
{
    atomic_store(&((struct rig *)data)->gone, true);
    return NULL;
}

TEST(exchange, who_is_gone_is_not_waited_for)
{
    struct rig rig;
    struct cn_buf question = {0}, answer = {0};
    pthread_t thread;
    rig_open(&rig);
    cn_buf_append_str(&question, "?");
    CHECK_INT(0, pthread_create(&thread, NULL, leave, &rig));
    CHECK_INT(-ECONNRESET, cn_exchange_ask(&rig.exchange, &question, &answer));
    pthread_join(thread, NULL);
    rig_close(&rig, CN_EINVALID,
              "Q? F{\"error\":{\"code\":\"failed\",\"message\":\"why \\\"not\\\"\"}} ");
    cn_buf_fini(&question);
}
