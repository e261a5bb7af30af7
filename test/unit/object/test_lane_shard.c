/* SPDX-License-Identifier: Apache-2.0 */
/* Shards that are opened, stopped and closed while a lane uses them. */
#include "store/catalog.h"
#include "test/unit/object/shard_world.h"

TEST(lane_shard, objects_of_each_shard_are_kept_in_its_store)
{
    struct shard_world own;
    struct cn_err err;
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    shard_world_open(&own, test_dir(), &counter);
    for (unsigned i = 0; i < SHARDS; i++) {
        struct answer *answer = post(&own.world, name_in(&own, i, 0), ADD);
        run_until(&own.world, answer);
        CHECK_INT(0, answer->call.envelope.err.code);
        for (unsigned k = 0; k < SHARDS; k++)
            CHECK_INT(i == k, cn_catalog_find(cn_store_catalog(own.under[k].store),
                                              &answer->call.key, &entry, name, &err));
        CHECK_INT(0, cn_store_namespace_name(own.under[i].store, own.world.ns->id, name, &err));
        CHECK_STR("test/Counter", name);
        cn_free(answer);
    }
    shard_world_close(&own);
}
