/* SPDX-License-Identifier: Apache-2.0 */
/* Identities are stable, differ by namespace and jurisdiction, and cannot be made up. */
#include "object/id.h"

#include <string.h>

#include "test/lib/test.h"

static const uint8_t secret[16] = "0123456789abcde";

TEST(object_id, DO_NS_2_is_the_same_for_the_same_name)
{
    struct cn_id_keys keys;
    cn_id_keys_init(&keys, secret, 7);
    uint8_t a[32], b[32];
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "room", 4, a);
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "room", 4, b);
    CHECK(memcmp(a, b, 32) == 0);
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "rooms", 5, b);
    CHECK(memcmp(a, b, 32) != 0);
    cn_id_from_name(&keys, CN_JURISDICTION_EU, "room", 4, b);
    CHECK(memcmp(a + 1, b + 1, 15) != 0);
    CHECK_INT(CN_JURISDICTION_EU, cn_id_jurisdiction(&keys, b));
    char long_name[5000];
    memset(long_name, 'x', sizeof(long_name));
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, long_name, sizeof(long_name), b);
    CHECK(cn_id_valid(&keys, b));
}

TEST(object_id, DO_NS_3_of_another_namespace_or_altered_is_refused)
{
    struct cn_id_keys ours, other;
    cn_id_keys_init(&ours, secret, 7);
    cn_id_keys_init(&other, secret, 8);
    uint8_t id[32];
    cn_id_unique(&ours, CN_JURISDICTION_NONE, id);
    CHECK(cn_id_valid(&ours, id));
    CHECK(!cn_id_valid(&other, id));
    for (int bit = 0; bit < 256; bit++) {
        id[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!cn_id_valid(&ours, id));
        id[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(object_id, DO_NS_1_shows_as_64_hex_digits)
{
    struct cn_id_keys keys;
    cn_id_keys_init(&keys, secret, 1);
    uint8_t id[32], back[32];
    char hex[65];
    cn_id_unique(&keys, CN_JURISDICTION_US, id);
    cn_id_to_hex(id, hex);
    CHECK_INT(64, strlen(hex));
    CHECK(cn_id_from_hex(hex, 64, back));
    CHECK(memcmp(id, back, 32) == 0);
    CHECK(!cn_id_from_hex(hex, 63, back));
    hex[5] = 'g';
    CHECK(!cn_id_from_hex(hex, 64, back));
}
