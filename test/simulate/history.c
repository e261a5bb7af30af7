/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/history.c - whether a history is linearizable: test/simulate/world.h. */
#include <stdarg.h>
#include <stdio.h>

#include "test/simulate/world.h"

struct op ops[OPS + 1];
unsigned op_count;
bool failed, stuck;
char failure[300];

void fail(const char *format, ...)
{
    if (failed)
        return;
    failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(failure, sizeof(failure), format, args);
    va_end(args);
    TRACE("WRONG: %s", failure);
}

uint64_t hash_step(uint64_t hash, unsigned op)
{
    hash ^= op + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdull;
}

void history_check(unsigned shard, unsigned object, const uint16_t *writes, unsigned total)
{
    uint64_t hashes[OPS + 1];
    uint16_t at[OPS + 1] = {0};
    unsigned len = 0;
    hashes[0] = 0;
    for (unsigned i = 0; i < total; i++) {
        unsigned op = writes[i];
        if (ops[op].shard != shard) {
            fail("shard %u has write %u of another", shard, op);
            return;
        }
        if (ops[op].object != object)
            continue;
        if (at[op]) {
            fail("write %u of shard %u is there twice", op, shard);
            return;
        }
        hashes[len + 1] = hash_step(hashes[len], op);
        at[op] = (uint16_t)++len;
    }
    for (unsigned a = 1; a <= op_count; a++) {
        const struct op *x = &ops[a];
        if (x->shard != shard || x->object != object)
            continue;
        if (x->write && x->status == STATUS_OK && !at[a])
            fail("acknowledged write %u of shard %u is lost", a, shard);
        if (x->write && x->status == STATUS_REFUSED && at[a])
            fail("write %u of shard %u was refused and is there", a, shard);
        if (x->status == STATUS_OK && (x->len > len || hashes[x->len] != x->hash))
            fail("answer %u of shard %u tells a state that never was", a, shard);
        if (x->status == STATUS_OK && x->write && at[a] != x->len)
            fail("write %u of shard %u is not where it was said to be", a, shard);
    }
    for (unsigned a = 1; a <= op_count && !failed; a++) {
        const struct op *x = &ops[a];
        if (x->shard != shard || x->object != object || x->status != STATUS_OK)
            continue;
        for (unsigned b = 1; b <= op_count; b++) {
            const struct op *y = &ops[b];
            if (y->shard != shard || y->object != object || a == b)
                continue;
            if (y->status == STATUS_OK && y->answered < x->asked && y->len > x->len)
                fail("stale: %u of shard %u tells %u writes, after %u told %u", a, shard, x->len, b,
                     y->len);
            if (y->write && at[b] && y->asked > x->answered && at[b] <= x->len)
                fail("answer %u of shard %u knows write %u of later", a, shard, b);
        }
    }
}
