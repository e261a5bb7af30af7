/* SPDX-License-Identifier: Apache-2.0 */
/* The node: namespaces by number and by name, and which lane owns what. */
#include "object/node.h"

#include <stdio.h>

#include "object/internal.h"
#include "test/unit/object/counter.h"

TEST(node, a_namespace_is_the_same_by_name_and_by_number_and_over_a_restart)
{
    struct world world;
    const char *dir = test_dir();
    struct cn_err err;
    struct cn_namespace *one, *two, *again;
    world_open(&world, dir, &counter);
    CHECK_INT(0, cn_node_namespace(world.node, "test/One", &one, &err));
    CHECK_INT(0, cn_node_namespace(world.node, "test/Two", &two, &err));
    CHECK(one != two && one->id != two->id);
    CHECK_INT(0, cn_node_namespace(world.node, "test/One", &again, &err));
    CHECK(one == again);
    CHECK(cn_node_namespace_find(world.node, two->id) == two);
    CHECK(!cn_node_namespace_find(world.node, 12345));
    CHECK_INT(3, cn_node_namespace_count(world.node)); /* with the world's own */
    uint32_t id = two->id;
    world_close(&world);
    world_open(&world, dir, &counter);
    CHECK_INT(1, cn_node_namespace_count(world.node));
    CHECK_INT(0, cn_node_namespace(world.node, "test/Two", &two, &err));
    CHECK_INT(id, two->id);
    world_close(&world);
}

TEST(node, one_that_is_renamed_keeps_its_number_and_the_old_name_stays_readable)
{
    struct world world;
    struct cn_err err;
    struct cn_namespace *ns;
    world_open(&world, test_dir(), &counter);
    const char *before = world.ns->name;
    CHECK_INT(0, cn_node_namespace_open(world.node, world.ns->id, "test/Renamed", &ns, &err));
    CHECK(ns == world.ns);
    CHECK_STR("test/Renamed", ns->name);
    CHECK_STR("test/Counter", before); /* a lane may be looking at it */
    CHECK_INT(0, cn_node_namespace_open(world.node, world.ns->id, "test/Renamed", &ns, &err));
    CHECK_INT(1, cn_node_namespace_count(world.node));
    CHECK(cn_node_namespace_open(world.node, 4711, "test/Nobody", &ns, &err) < 0);
    CHECK_INT(1, cn_node_namespace_count(world.node));
    world_close(&world);
}

/* O1: the owner follows from the id alone, and every lane gets about its share. */
TEST(node, O1_ids_are_spread_evenly_over_the_lanes)
{
    enum { LANES = 4, COUNT = 4000 };
    struct world world;
    world_lane_count = LANES;
    world_open(&world, test_dir(), &counter);
    world_lane_count = 0;
    CHECK_INT(LANES, cn_node_lane_count(world.node));
    CHECK(cn_node_lane(world.node, 0) == &world.lane);
    CHECK(!cn_node_lane(world.node, 1) && !cn_node_lane(world.node, LANES));
    unsigned counts[LANES] = {0};
    for (int i = 0; i < COUNT; i++) {
        struct cn_object_key key = {.namespace_id = world.ns->id};
        char name[16];
        int size = snprintf(name, sizeof(name), "%d", i);
        cn_id_from_name(&world.ns->keys, CN_JURISDICTION_NONE, name, (size_t)size, key.id);
        unsigned owner = cn_node_owner_index(world.node, &key);
        CHECK(owner < LANES);
        CHECK_INT(owner, cn_node_owner_index(world.node, &key));
        counts[owner]++;
    }
    for (int i = 0; i < LANES; i++)
        CHECK(counts[i] > COUNT / LANES * 8 / 10 && counts[i] < COUNT / LANES * 12 / 10);
    world_close(&world);
}

TEST(node, a_namespace_of_a_service_has_as_many_new_objects_as_it_wants)
{
    struct world world;
    struct cn_err err;
    struct cn_namespace *service;
    world_new_objects_per_minute = 1;
    world_open(&world, test_dir(), &counter);
    world_new_objects_per_minute = 0;
    CHECK_INT(0, cn_node_namespace(world.node, "$kv/test", &service, &err));
    for (unsigned i = 0; i < 10; i++) {
        struct cn_object_key key = {.namespace_id = service->id, .id = {(uint8_t)i}};
        CHECK(cn_node_admits(world.node, service, &key, world.store));
        key.namespace_id = world.ns->id;
        CHECK_INT(i == 0, cn_node_admits(world.node, world.ns, &key, world.store));
    }
    /* Of the next minute, and of one that is long past: a clock that was set back. */
    struct cn_object_key key = {.namespace_id = world.ns->id, .id = {99}};
    world.clock.wall_ms += 60000;
    CHECK(cn_node_admits(world.node, world.ns, &key, world.store));
    CHECK(!cn_node_admits(world.node, world.ns, &key, world.store));
    world.clock.wall_ms -= 600000;
    CHECK(cn_node_admits(world.node, world.ns, &key, world.store));
    world_close(&world);
}

struct names {
    unsigned count;
    bool has_counter;
};

static void note_name(void *data, const struct cn_namespace *ns)
{
    struct names *names = data;
    names->count++;
    names->has_counter |= strcmp(ns->name, "test/Counter") == 0;
}

TEST(node, every_namespace_is_shown_once)
{
    struct world world;
    struct cn_err err;
    struct cn_namespace *ns;
    struct names names = {0};
    world_open(&world, test_dir(), &counter);
    CHECK_INT(0, cn_node_namespace(world.node, "test/Other", &ns, &err));
    cn_node_each_namespace(world.node, note_name, &names);
    CHECK_INT(2, names.count);
    CHECK(names.has_counter);
    world_close(&world);
}
