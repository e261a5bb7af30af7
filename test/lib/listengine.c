/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/listengine.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "store/record.h"

void listengine_init(struct listengine *engine)
{
    *engine = (struct listengine){0};
    engine->ends = cn_alloc_zero(sizeof(size_t));
}

void listengine_fini(struct listengine *engine)
{
    cn_buf_fini(&engine->bytes);
    cn_free(engine->ends);
}

static void on_appended(void *data, uint32_t shard)
{
    (void)shard;
    ((struct listengine *)data)->hints++;
}

static void on_checkpointed(void *data, uint32_t shard, uint64_t lsn)
{
    struct listengine *engine = data;
    (void)shard;
    CN_ASSERT(lsn <= engine->last); /* P2: only what is settled */
    engine->checkpoints++;
    engine->checkpointed = lsn;
}

static void on_stall(void *data, uint32_t shard)
{
    (void)shard;
    struct listengine *engine = data;
    /* What fails shows in the store. */
    if (listengine_settle(engine, NULL) == 0 && engine->held)
        cn_replica_refuse(engine->owner, "the session is over");
}

struct cn_replica_hooks listengine_hooks(struct listengine *engine)
{
    return (struct cn_replica_hooks){.data = engine,
                                     .appended = on_appended,
                                     .checkpointed = on_checkpointed,
                                     .stall = on_stall};
}

void listengine_take(struct listengine *engine)
{
    uint64_t appended = cn_replica_appended(engine->owner);
    if (engine->held && appended > engine->held)
        appended = engine->held;
    while (engine->last < appended) {
        uint64_t got =
            cn_replica_records(engine->owner, engine->last + 1, appended, 4096, &engine->bytes);
        CN_ASSERT(got > engine->last);
        engine->ends = cn_realloc(engine->ends, (size_t)(got + 1) * sizeof(size_t));
        while (engine->last < got) {
            struct cn_record record;
            size_t at = engine->ends[engine->last++];
            uint64_t size =
                cn_record_read(engine->bytes.data + at, engine->bytes.size - at, &record);
            CN_ASSERT(size > 0 && record.header.lsn == engine->last);
            engine->ends[engine->last] = at + size;
        }
        CN_ASSERT(engine->ends[engine->last] == engine->bytes.size);
    }
}

int listengine_settle(struct listengine *engine, struct cn_err *err)
{
    listengine_take(engine);
    return cn_replica_settled(engine->owner, engine->last, err);
}

int listengine_feed(struct listengine *engine, struct cn_replica *replica, uint64_t lsn,
                    size_t piece, struct cn_err *err)
{
    struct cn_replica_state state;
    cn_replica_state(replica, &state);
    CN_ASSERT(lsn <= engine->last);
    for (uint64_t from = state.have; from < lsn;) {
        uint64_t to = from + 1;
        while (to < lsn && engine->ends[to] - engine->ends[from] < piece)
            to++;
        int rc = cn_replica_feed(replica, engine->bytes.data + engine->ends[from],
                                 engine->ends[to] - engine->ends[from], err);
        if (rc < 0)
            return rc;
        from = to;
    }
    return 0;
}
