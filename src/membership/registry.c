/* SPDX-License-Identifier: Apache-2.0 */
#include "membership/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "membership/engine_pg.h"

enum { RETRY_MS = 100, LINK_MS = 2000, TIMEOUT_MS = 10000 };

struct question {
    const struct cn_registry *registry;
    const char *sql;
    const char *const *values;
    size_t count;
    struct cn_buf *text;
    uv_loop_t loop;
    uv_timer_t timer;
    struct cn_engine_pg *engine;
    uint64_t link, end_ms;
    bool over;
    int rc; /* 1, 0, or why not */
    char why[CN_ERR_TEXT_MAX];
};

static void on_time(uv_timer_t *timer)
{
    struct question *question = CN_CONTAINER_OF(timer, struct question, timer);
    if (question->over || uv_now(&question->loop) >= question->end_ms) {
        question->over = true;
        uv_close((uv_handle_t *)timer, NULL);
        cn_engine_pg_free(question->engine, NULL, NULL);
        return;
    }
    cn_engine_pg_connect(question->engine, ++question->link);
    uv_timer_start(timer, on_time, LINK_MS, 0);
}

/* A hook may not free the engine. */
static void end(struct question *question, int rc)
{
    question->over = true;
    question->rc = rc;
    uv_timer_start(&question->timer, on_time, 0, 0);
}

static void on_up(void *data, uint64_t link, const struct cn_engine_pg_info *info)
{
    struct question *question = data;
    unsigned flaws = info->link.flaws & ~question->registry->allow_flaws;
    for (unsigned bit = 1; flaws && bit <= CN_ENGINE_OTHER_MAJOR; bit <<= 1)
        if (flaws & bit) {
            snprintf(question->why, sizeof(question->why), "%s",
                     cn_engine_flaw_text((enum cn_engine_flaw)bit));
            end(question, bit == CN_ENGINE_OTHER_MAJOR ? CN_EVERSION : CN_EDENIED);
            return;
        }
    cn_engine_pg_ask(question->engine, link, question->sql, question->values, question->count);
}

static void on_down(void *data, uint64_t link, const char *why)
{
    struct question *question = data;
    snprintf(question->why, sizeof(question->why), "%.*s", (int)strcspn(why, "\n"), why);
    if (!question->over)
        uv_timer_start(&question->timer, on_time, RETRY_MS, 0);
}

static void on_told(void *data, const char *text)
{
    struct question *question = data;
    if (text)
        cn_buf_append_str(question->text, text);
    end(question, text != NULL);
}

static void on_answer(void *data, const struct cn_engine_answer *answer,
                      const struct cn_engine_record *records, size_t count)
{
}

static void on_hint(void *data)
{
}

int cn_registry_ask(const struct cn_registry *registry, const char *sql, const char *const *values,
                    size_t count, struct cn_buf *text, struct cn_err *err)
{
    cn_may_block_here();
    struct question question = {.registry = registry,
                                .sql = sql,
                                .values = values,
                                .count = count,
                                .text = text,
                                .rc = CN_ETIMEOUT,
                                .why = "it does not answer"};
    int rc = cn_loop_init(&question.loop, err);
    if (rc < 0)
        return rc;
    struct cn_engine_pg_config config = {.conninfo = registry->conninfo,
                                         .node = registry->node,
                                         .cluster = registry->cluster,
                                         .allow_flaws = registry->allow_flaws,
                                         .existing = registry->existing,
                                         .shard_count = registry->shard_count,
                                         .replicas = registry->replicas,
                                         .hooks = {.data = &question,
                                                   .up = on_up,
                                                   .down = on_down,
                                                   .answer = on_answer,
                                                   .hint = on_hint,
                                                   .told = on_told}};
    rc = cn_engine_pg_new(&question.loop, &config, &question.engine, err);
    if (rc == 0) {
        uv_timer_init(&question.loop, &question.timer);
        question.end_ms =
            uv_now(&question.loop) + (registry->timeout_ms ? registry->timeout_ms : TIMEOUT_MS);
        uv_timer_start(&question.timer, on_time, 0, 0);
        uv_run(&question.loop, UV_RUN_DEFAULT);
        rc = question.rc < 0
                 ? cn_err_set(err, question.rc, "the engine of the cluster: %s", question.why)
                 : question.rc;
    }
    CN_ASSERT(uv_loop_close(&question.loop) == 0);
    return rc;
}

int cn_registry_number(const struct cn_registry *registry, const char *name, uint32_t *number,
                       struct cn_err *err)
{
    struct cn_buf text = {0};
    const char *values[] = {name};
    int rc = cn_registry_ask(registry, "cairn.number($1::text)", values, 1, &text, err);
    if (rc == 1)
        *number = (uint32_t)strtoul(cn_buf_text(&text), NULL, 10);
    if (rc >= 0 && (rc == 0 || !*number))
        rc = cn_err_set(err, CN_EPROTOCOL, "the engine has no number for a namespace");
    cn_buf_fini(&text);
    return rc < 0 ? rc : 0;
}

int cn_registry_rename(const struct cn_registry *registry, uint32_t number, const char *name,
                       struct cn_err *err)
{
    struct cn_buf text = {0};
    char id[16];
    const char *values[] = {id, name};
    snprintf(id, sizeof(id), "%" PRIu32, number);
    int rc = cn_registry_ask(registry, "cairn.rename($1::int, $2::text)", values, 2, &text, err);
    cn_buf_fini(&text);
    if (rc == 0)
        return cn_err_set(err, CN_ENOTFOUND, "the engine has no namespace %" PRIu32, number);
    return rc < 0 ? rc : 0;
}

int cn_registry_recall(const struct cn_registry *registry, const char *name, struct cn_buf *text,
                       uint64_t *version, struct cn_err *err)
{
    struct cn_buf told = {0};
    const char *values[] = {name};
    *version = 0;
    int rc = cn_registry_ask(registry, "cairn.recall($1::text)", values, 1, &told, err);
    if (rc == 1) {
        char *body;
        *version = strtoull(cn_buf_text(&told), &body, 10);
        if (*version && *body == ' ')
            cn_buf_append_str(text, body + 1);
        else
            rc = cn_err_set(err, CN_EPROTOCOL, "the engine's document %s has no version", name);
    }
    cn_buf_fini(&told);
    return rc;
}

int cn_registry_keep(const struct cn_registry *registry, const char *name, const char *text,
                     uint64_t *version, struct cn_err *err)
{
    struct cn_buf told = {0};
    char known[24];
    const char *values[] = {name, known, text};
    snprintf(known, sizeof(known), "%" PRIu64, *version);
    int rc = cn_registry_ask(registry, "cairn.keep($1::text, $2::bigint, $3::text)", values, 3,
                             &told, err);
    if (rc == 1)
        *version = strtoull(cn_buf_text(&told), NULL, 10);
    cn_buf_fini(&told);
    if (rc == 0)
        return cn_err_set(err, CN_EEXISTS, "another node has changed %s meanwhile", name);
    return rc < 0 ? rc : 0;
}
