/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/lookout.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "cluster/book.h"
#include "cluster/engine_pg.h"

enum { RETRY_MS = 200, LINK_MS = 3000, TIMEOUT_MS = 10000 };

enum link_state { DOWN, COMING, UP };

/* What the loop is run for. */
enum errand { NOTHING, ASKING, WAITING };

struct cn_lookout {
    const struct cn_book *book;
    uv_loop_t loop;
    uv_timer_t retry, limit; /* of a link; of the errand */
    uv_async_t woken;
    struct cn_engine_pg *engine;
    uint64_t link;
    enum link_state state;
    enum errand errand;
    bool hinted;
    atomic_bool ending;
    const char *sql;
    const char *const *values;
    size_t count;
    struct cn_buf *text;
    int rc; /* of the question: 1, 0, or why not */
    char why[CN_ERR_TEXT_MAX];
};

static void end(struct cn_lookout *lookout, int rc)
{
    lookout->rc = rc;
    lookout->errand = NOTHING;
    uv_stop(&lookout->loop);
}

static void on_retry(uv_timer_t *timer)
{
    struct cn_lookout *lookout = CN_CONTAINER_OF(timer, struct cn_lookout, retry);
    lookout->state = COMING;
    cn_engine_pg_connect(lookout->engine, ++lookout->link);
    uv_timer_start(timer, on_retry, LINK_MS, 0); /* one that does not come is given up */
}

static void on_limit(uv_timer_t *timer)
{
    end(CN_CONTAINER_OF(timer, struct cn_lookout, limit), CN_ETIMEOUT);
}

static void on_woken(uv_async_t *async)
{
    struct cn_lookout *lookout = CN_CONTAINER_OF(async, struct cn_lookout, woken);
    if (lookout->errand != NOTHING)
        end(lookout, CN_ECLOSED);
}

static void ask(struct cn_lookout *lookout)
{
    cn_engine_pg_ask(lookout->engine, lookout->link, lookout->sql, lookout->values, lookout->count);
}

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    struct cn_lookout *lookout = data;
    unsigned flaws = info->link.flaws & ~lookout->book->allow_flaws;
    if (flaws) { /* it may be mended: tried again */
        snprintf(lookout->why, sizeof(lookout->why), "%s",
                 cn_engine_flaw_text((enum cn_engine_flaw)(flaws & -flaws)));
        lookout->state = DOWN;
        uv_timer_start(&lookout->retry, on_retry, LINK_MS, 0);
        return;
    }
    lookout->state = UP;
    lookout->hinted = true; /* what was notified meanwhile was not heard */
    uv_timer_stop(&lookout->retry);
    if (lookout->errand == ASKING)
        ask(lookout);
    else if (lookout->errand == WAITING)
        end(lookout, 0);
}

static void on_down(void *data, uint64_t link, const char *why)
{
    struct cn_lookout *lookout = data;
    snprintf(lookout->why, sizeof(lookout->why), "%.*s", (int)strcspn(why, "\n"), why);
    lookout->state = DOWN;
    uv_timer_start(&lookout->retry, on_retry, RETRY_MS, 0);
}

static void on_told(void *data, const char *text)
{
    struct cn_lookout *lookout = data;
    if (lookout->errand != ASKING)
        return; /* too late */
    if (text)
        cn_buf_append_str(lookout->text, text);
    end(lookout, text != NULL);
}

static void on_answer(void *data, const struct cn_engine_answer *answer,
                      const struct cn_engine_record *records, size_t count)
{
}

static void on_hint(void *data)
{
    struct cn_lookout *lookout = data;
    lookout->hinted = true;
    if (lookout->errand == WAITING)
        end(lookout, 0);
}

int cn_lookout_new(const struct cn_book *book, struct cn_lookout **out, struct cn_err *err)
{
    struct cn_lookout *lookout = CN_NEW(struct cn_lookout);
    lookout->book = book;
    cn_loop_init(&lookout->loop);
    struct cn_engine_pg_config config = {.conninfo = book->conninfo,
                                         .node = book->node,
                                         .cluster = book->cluster,
                                         .allow_flaws = book->allow_flaws,
                                         .shard_count = book->shard_count,
                                         .replicas = book->replicas,
                                         .hooks = {.data = lookout,
                                                   .up = on_up,
                                                   .down = on_down,
                                                   .answer = on_answer,
                                                   .hint = on_hint,
                                                   .told = on_told}};
    int rc = cn_engine_pg_new(&lookout->loop, &config, &lookout->engine, err);
    if (rc < 0) {
        CN_ASSERT(uv_loop_close(&lookout->loop) == 0);
        cn_free(lookout);
        return rc;
    }
    uv_timer_init(&lookout->loop, &lookout->retry);
    uv_timer_init(&lookout->loop, &lookout->limit);
    uv_async_init(&lookout->loop, &lookout->woken, on_woken);
    uv_timer_start(&lookout->retry, on_retry, 0, 0);
    *out = lookout;
    return 0;
}

void cn_lookout_free(struct cn_lookout *lookout)
{
    if (!lookout)
        return;
    uv_close((uv_handle_t *)&lookout->retry, NULL);
    uv_close((uv_handle_t *)&lookout->limit, NULL);
    uv_close((uv_handle_t *)&lookout->woken, NULL);
    cn_engine_pg_free(lookout->engine, NULL, NULL);
    uv_run(&lookout->loop, UV_RUN_DEFAULT);
    CN_ASSERT(uv_loop_close(&lookout->loop) == 0);
    cn_free(lookout);
}

static void run(struct cn_lookout *lookout, enum errand errand, unsigned timeout_ms)
{
    if (atomic_load(&lookout->ending)) {
        lookout->rc = CN_ECLOSED;
        return;
    }
    lookout->errand = errand;
    uv_update_time(&lookout->loop);
    uv_timer_start(&lookout->limit, on_limit, timeout_ms, 0);
    if (errand == ASKING && lookout->state == UP)
        ask(lookout);
    while (lookout->errand != NOTHING)
        uv_run(&lookout->loop, UV_RUN_DEFAULT);
    uv_timer_stop(&lookout->limit);
}

/* A question whose answer did not come would be answered in the place of the next. */
static void drop_link(struct cn_lookout *lookout)
{
    lookout->state = DOWN;
    uv_timer_start(&lookout->retry, on_retry, 0, 0);
}

int cn_lookout_ask(struct cn_lookout *lookout, const char *sql, const char *const *values,
                   size_t count, struct cn_buf *text, struct cn_err *err)
{
    cn_loop_assert_owner(&lookout->loop);
    lookout->sql = sql;
    lookout->values = values;
    lookout->count = count;
    lookout->text = text;
    snprintf(lookout->why, sizeof(lookout->why), "it does not answer");
    run(lookout, ASKING, lookout->book->timeout_ms ? lookout->book->timeout_ms : TIMEOUT_MS);
    if (lookout->rc >= 0)
        return lookout->rc;
    drop_link(lookout);
    return cn_err_set(err, lookout->rc, "the engine of the cluster: %s", lookout->why);
}

void cn_lookout_wait(struct cn_lookout *lookout, unsigned timeout_ms)
{
    cn_loop_assert_owner(&lookout->loop);
    if (!lookout->hinted)
        run(lookout, WAITING, timeout_ms);
    lookout->hinted = false;
}

void cn_lookout_wake(struct cn_lookout *lookout)
{
    atomic_store(&lookout->ending, true);
    uv_async_send(&lookout->woken);
}
