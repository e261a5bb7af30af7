/* SPDX-License-Identifier: Apache-2.0 */
#include "membership/poller.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "membership/engine_pg.h"
#include "membership/registry.h"

enum { RETRY_MS = 200, LINK_MS = 3000, TIMEOUT_MS = 10000 };

enum link_state { DOWN, COMING, UP };

/* What the loop is run for. */
enum errand { NOTHING, ASKING, WAITING };

struct cn_poller {
    const struct cn_registry *registry;
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

static void end(struct cn_poller *poller, int rc)
{
    poller->rc = rc;
    poller->errand = NOTHING;
    uv_stop(&poller->loop);
}

static void on_retry(uv_timer_t *timer)
{
    struct cn_poller *poller = CN_CONTAINER_OF(timer, struct cn_poller, retry);
    poller->state = COMING;
    cn_engine_pg_connect(poller->engine, ++poller->link);
    uv_timer_start(timer, on_retry, LINK_MS, 0); /* one that does not come is given up */
}

static void on_limit(uv_timer_t *timer)
{
    end(CN_CONTAINER_OF(timer, struct cn_poller, limit), CN_ETIMEOUT);
}

static void on_woken(uv_async_t *async)
{
    struct cn_poller *poller = CN_CONTAINER_OF(async, struct cn_poller, woken);
    if (poller->errand != NOTHING)
        end(poller, CN_ECLOSED);
}

static void ask(struct cn_poller *poller)
{
    cn_engine_pg_ask(poller->engine, poller->link, poller->sql, poller->values, poller->count);
}

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    struct cn_poller *poller = data;
    unsigned flaws = info->link.flaws & ~poller->registry->allow_flaws;
    if (flaws) { /* it may be mended: tried again */
        snprintf(poller->why, sizeof(poller->why), "%s",
                 cn_engine_flaw_text((enum cn_engine_flaw)(flaws & -flaws)));
        poller->state = DOWN;
        uv_timer_start(&poller->retry, on_retry, LINK_MS, 0);
        return;
    }
    poller->state = UP;
    poller->hinted = true; /* what was notified meanwhile was not heard */
    uv_timer_stop(&poller->retry);
    if (poller->errand == ASKING)
        ask(poller);
    else if (poller->errand == WAITING)
        end(poller, 0);
}

static void on_down(void *data, uint64_t link, const char *why)
{
    struct cn_poller *poller = data;
    snprintf(poller->why, sizeof(poller->why), "%.*s", (int)strcspn(why, "\n"), why);
    poller->state = DOWN;
    uv_timer_start(&poller->retry, on_retry, RETRY_MS, 0);
}

static void on_told(void *data, const char *text)
{
    struct cn_poller *poller = data;
    if (poller->errand != ASKING)
        return; /* too late */
    if (text)
        cn_buf_append_str(poller->text, text);
    end(poller, text != NULL);
}

static void on_answer(void *data, const struct cn_engine_answer *answer,
                      const struct cn_engine_record *records, size_t count)
{
}

static void on_hint(void *data)
{
    struct cn_poller *poller = data;
    poller->hinted = true;
    if (poller->errand == WAITING)
        end(poller, 0);
}

int cn_poller_new(const struct cn_registry *registry, struct cn_poller **out, struct cn_err *err)
{
    struct cn_poller *poller = CN_NEW(struct cn_poller);
    poller->registry = registry;
    int rc = cn_loop_init(&poller->loop, err);
    if (rc < 0) {
        cn_free(poller);
        return rc;
    }
    struct cn_engine_pg_config config = {.conninfo = registry->conninfo,
                                         .node = registry->node,
                                         .cluster = registry->cluster,
                                         .allow_flaws = registry->allow_flaws,
                                         .shard_count = registry->shard_count,
                                         .replicas = registry->replicas,
                                         .hooks = {.data = poller,
                                                   .up = on_up,
                                                   .down = on_down,
                                                   .answer = on_answer,
                                                   .hint = on_hint,
                                                   .told = on_told}};
    rc = cn_engine_pg_new(&poller->loop, &config, &poller->engine, err);
    if (rc < 0) {
        CN_ASSERT(uv_loop_close(&poller->loop) == 0);
        cn_free(poller);
        return rc;
    }
    uv_timer_init(&poller->loop, &poller->retry);
    uv_timer_init(&poller->loop, &poller->limit);
    uv_async_init(&poller->loop, &poller->woken, on_woken);
    uv_timer_start(&poller->retry, on_retry, 0, 0);
    *out = poller;
    return 0;
}

void cn_poller_free(struct cn_poller *poller)
{
    if (!poller)
        return;
    uv_close((uv_handle_t *)&poller->retry, NULL);
    uv_close((uv_handle_t *)&poller->limit, NULL);
    uv_close((uv_handle_t *)&poller->woken, NULL);
    cn_engine_pg_free(poller->engine, NULL, NULL);
    uv_run(&poller->loop, UV_RUN_DEFAULT);
    CN_ASSERT(uv_loop_close(&poller->loop) == 0);
    cn_free(poller);
}

static void run(struct cn_poller *poller, enum errand errand, unsigned timeout_ms)
{
    if (atomic_load(&poller->ending)) {
        poller->rc = CN_ECLOSED;
        return;
    }
    poller->errand = errand;
    uv_update_time(&poller->loop);
    uv_timer_start(&poller->limit, on_limit, timeout_ms, 0);
    if (errand == ASKING && poller->state == UP)
        ask(poller);
    while (poller->errand != NOTHING)
        uv_run(&poller->loop, UV_RUN_DEFAULT);
    uv_timer_stop(&poller->limit);
}

/* A question whose answer did not come would be answered in the place of the next. */
static void drop_link(struct cn_poller *poller)
{
    poller->state = DOWN;
    uv_timer_start(&poller->retry, on_retry, 0, 0);
}

int cn_poller_ask(struct cn_poller *poller, const char *sql, const char *const *values,
                  size_t count, struct cn_buf *text, struct cn_err *err)
{
    cn_loop_assert_owner(&poller->loop);
    poller->sql = sql;
    poller->values = values;
    poller->count = count;
    poller->text = text;
    snprintf(poller->why, sizeof(poller->why), "it does not answer");
    run(poller, ASKING, poller->registry->timeout_ms ? poller->registry->timeout_ms : TIMEOUT_MS);
    if (poller->rc >= 0)
        return poller->rc;
    drop_link(poller);
    return cn_err_set(err, poller->rc, "the engine of the cluster: %s", poller->why);
}

void cn_poller_wait(struct cn_poller *poller, unsigned timeout_ms)
{
    cn_loop_assert_owner(&poller->loop);
    if (!poller->hinted)
        run(poller, WAITING, timeout_ms);
    poller->hinted = false;
}

void cn_poller_wake(struct cn_poller *poller)
{
    atomic_store(&poller->ending, true);
    uv_async_send(&poller->woken);
}
