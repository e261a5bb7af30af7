/* SPDX-License-Identifier: Apache-2.0 */
#include "membership/report_dead.h"

#include <uv.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/loop.h"
#include "membership/engine_pg.h"

enum { RETRY_MS = 100, LINK_MS = 1000 };

struct burial {
    const struct cn_report_dead *bury;
    uv_loop_t loop;
    uv_timer_t timer;
    struct cn_engine_pg *engine;
    uint64_t link, end_ms;
    bool done, over;
};

static void on_time(uv_timer_t *timer)
{
    struct burial *burial = CN_CONTAINER_OF(timer, struct burial, timer);
    if (burial->over || uv_now(&burial->loop) >= burial->end_ms) {
        burial->over = true;
        uv_close((uv_handle_t *)timer, NULL);
        cn_engine_pg_free(burial->engine, NULL, NULL);
        return;
    }
    cn_engine_pg_connect(burial->engine, ++burial->link);
    uv_timer_start(timer, on_time, LINK_MS, 0);
}

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    struct burial *burial = data;
    struct cn_engine_statement statement = {.kind = CN_ENGINE_BURY,
                                            .link = link,
                                            .number = 1,
                                            .disk = burial->bury->disk,
                                            .life = burial->bury->life};
    if (!(info->link.flaws & ~burial->bury->allow_flaws))
        cn_engine_pg_send(burial->engine, &statement);
}

static void on_down(void *data, uint64_t link, const char *why)
{
    struct burial *burial = data;
    if (!burial->over)
        uv_timer_start(&burial->timer, on_time, RETRY_MS, 0);
}

static void on_answer(void *data, const struct cn_engine_answer *answer,
                      const struct cn_engine_record *records, size_t count)
{
    struct burial *burial = data;
    burial->done = burial->over = true;            /* whether there was a session to end or not */
    uv_timer_start(&burial->timer, on_time, 0, 0); /* a hook may not free the engine */
}

static void on_hint(void *data)
{
}

int cn_report_dead(const struct cn_report_dead *bury, unsigned timeout_ms, struct cn_err *err)
{
    struct burial burial = {.bury = bury};
    int rc = cn_loop_init(&burial.loop, err);
    if (rc < 0)
        return rc;
    struct cn_engine_pg_config config = {
        .conninfo = bury->conninfo,
        .node = bury->node,
        .cluster = bury->cluster,
        .allow_flaws = bury->allow_flaws,
        .hooks = {
            .data = &burial, .up = on_up, .down = on_down, .answer = on_answer, .hint = on_hint}};
    rc = cn_engine_pg_new(&burial.loop, &config, &burial.engine, err);
    if (rc == 0) {
        uv_timer_init(&burial.loop, &burial.timer);
        burial.end_ms = uv_now(&burial.loop) + timeout_ms;
        uv_timer_start(&burial.timer, on_time, 0, 0);
        uv_run(&burial.loop, UV_RUN_DEFAULT);
        if (!burial.done)
            rc = cn_err_set(err, CN_ETIMEOUT,
                            "the engine was not told of the end of this node's process: others "
                            "take over when its session has been silent for long enough");
    }
    CN_ASSERT(uv_loop_close(&burial.loop) == 0);
    return rc;
}
