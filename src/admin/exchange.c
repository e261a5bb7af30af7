/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/exchange.h"

#include <errno.h>
#include <string.h>

#include "admin/control.h"
#include "base/assert.h"
#include "base/cond.h"
#include "base/rand.h"
#include "text/hex.h"

enum { LOOK_MS = 200 }; /* between two looks whether who asked is still there */

void cn_exchanges_init(struct cn_exchanges *table)
{
    pthread_mutex_init(&table->lock, NULL);
    cn_list_init(&table->all);
}

void cn_exchanges_fini(struct cn_exchanges *table)
{
    CN_ASSERT(cn_list_empty(&table->all));
    pthread_mutex_destroy(&table->lock);
}

static int send_frame(struct cn_exchange *exchange, char letter, const void *bytes, size_t size)
{
    uint8_t head[5] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16),
                       (uint8_t)(size >> 24), (uint8_t)letter};
    struct cn_control_call *call = exchange->call;
    struct cn_buf frame = {0};
    cn_buf_append(&frame, head, sizeof(head));
    cn_buf_append(&frame, bytes, size);
    int rc = call->write(call, frame.data, frame.size);
    cn_buf_fini(&frame);
    return rc;
}

int cn_exchange_begin(struct cn_exchange *exchange, struct cn_exchanges *table,
                      struct cn_control_call *call)
{
    uint8_t random[(CN_EXCHANGE_NAME_SIZE - 1) / 2];
    *exchange = (struct cn_exchange){.table = table, .call = call};
    cn_rand_secure(random, sizeof(random));
    cn_hex_encode(random, sizeof(random), exchange->name);
    cn_cond_init(&exchange->changed);
    pthread_mutex_lock(&table->lock);
    cn_list_push_back(&table->all, &exchange->link);
    pthread_mutex_unlock(&table->lock);
    call->status = 200;
    call->type = "application/octet-stream";
    call->length = -1;
    return send_frame(exchange, CN_EXCHANGE_NAME, exchange->name, strlen(exchange->name));
}

/* With the lock held. */
static int wait_for_answer(struct cn_exchange *exchange)
{
    struct cn_control_call *call = exchange->call;
    for (int waited_ms = 0; !exchange->answered; waited_ms += LOOK_MS) {
        if (call->cancelled && call->cancelled(call))
            return -ECONNRESET;
        if (waited_ms >= CN_EXCHANGE_PATIENCE_MS)
            return -ETIMEDOUT;
        cn_cond_wait_ms(&exchange->changed, &exchange->table->lock, LOOK_MS);
    }
    return 0;
}

int cn_exchange_ask(struct cn_exchange *exchange, const struct cn_buf *question,
                    struct cn_buf *answer)
{
    pthread_mutex_t *lock = &exchange->table->lock;
    pthread_mutex_lock(lock);
    exchange->asking = true;
    exchange->answered = false;
    pthread_mutex_unlock(lock);
    int rc = send_frame(exchange, CN_EXCHANGE_QUESTION, question->data, question->size);
    pthread_mutex_lock(lock);
    rc = rc < 0 ? -ECONNRESET : wait_for_answer(exchange);
    exchange->asking = false;
    if (rc == 0) {
        *answer = exchange->answer;
        exchange->answer = (struct cn_buf){0};
    }
    pthread_mutex_unlock(lock);
    return rc;
}

void cn_exchange_end(struct cn_exchange *exchange, int rc, const struct cn_buf *json,
                     const struct cn_err *err)
{
    struct cn_buf text = {0};
    pthread_mutex_lock(&exchange->table->lock);
    cn_list_remove(&exchange->link);
    pthread_mutex_unlock(&exchange->table->lock);
    if (rc < 0) {
        cn_buf_append_str(&text, "{\"error\":{\"code\":\"failed\",\"message\":");
        cn_buf_append_json(&text, err->text, strlen(err->text));
        cn_buf_append_str(&text, "}}");
    } else {
        cn_buf_append(&text, json->data, json->size);
    }
    /* or nobody listens: X3 */
    (void)send_frame(exchange, rc < 0 ? CN_EXCHANGE_FAILED : CN_EXCHANGE_END, text.data, text.size);
    cn_buf_fini(&text);
    cn_buf_fini(&exchange->answer);
    pthread_cond_destroy(&exchange->changed);
}

static struct cn_exchange *find(struct cn_exchanges *table, const char *name)
{
    CN_LIST_FOREACH(&table->all, link)
    {
        struct cn_exchange *exchange = CN_CONTAINER_OF(link, struct cn_exchange, link);
        if (strcmp(exchange->name, name) == 0)
            return exchange;
    }
    return NULL;
}

int cn_exchange_answer(struct cn_exchanges *table, const char *name, const void *bytes, size_t size,
                       struct cn_err *err)
{
    pthread_mutex_lock(&table->lock);
    struct cn_exchange *exchange = find(table, name);
    bool wanted = exchange && exchange->asking && !exchange->answered;
    if (wanted) {
        cn_buf_clear(&exchange->answer);
        cn_buf_append(&exchange->answer, bytes, size);
        exchange->answered = true;
        pthread_cond_signal(&exchange->changed);
    }
    pthread_mutex_unlock(&table->lock);
    return wanted ? 0 : cn_err_set(err, CN_ENOTFOUND, "nobody waits for this answer");
}
