/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of what was lent: they name an object, a worker, or nobody. */
#include "object/lent.h"

#include <stdio.h>
#include <string.h>

#include "test/unit/object/counter.h"
#include "test/unit/object/world.h"

TEST(object_lent, an_address_names_an_object_or_a_worker)
{
    struct world world;
    char hex[CN_OBJECT_HEX_SIZE + 1], text[CN_OBJECT_HEX_SIZE + 32];
    world_open(&world, test_dir(), &counter);
    uint8_t id[CN_OBJECT_ID_SIZE];
    cn_id_unique(&world.ns->keys, CN_JURISDICTION_NONE, id);
    cn_id_to_hex(id, hex);
    snprintf(text, sizeof(text), "o%u:%s", world.ns->id, hex);
    struct cn_lent_address found = cn_lent_parse(world.node, text);
    CHECK_INT(CN_LENT_OBJECT, found.kind);
    CHECK(found.ns == world.ns && memcmp(found.key.id, id, sizeof(id)) == 0);
    found = cn_lent_parse(world.node, "w1:4294967295");
    CHECK_INT(CN_LENT_WORKER, found.kind);
    CHECK_INT(1, found.lane);
    CHECK_INT(4294967295, found.serial);
    hex[5] = hex[5] == '0' ? '1' : '0'; /* an id that nobody has made */
    snprintf(text, sizeof(text), "o%u:%s", world.ns->id, hex);
    CHECK_INT(CN_LENT_NOBODY, cn_lent_parse(world.node, text).kind);
    static const char *const nobody[] = {
        "",      "w",    "w1",    "w1:",   "w1:2x",          "w:2",     "o1", "o1:",
        "o1:12", "x1:2", "w-1:2", "w1:-2", "w1:99999999999", "o9999:00"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(nobody); i++)
        CHECK_INT(CN_LENT_NOBODY, cn_lent_parse(world.node, nobody[i]).kind);
    world_close(&world);
}
