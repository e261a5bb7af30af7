/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that were made elsewhere are accepted in the namespace they have moved into, and in no other;
 * names lead to them (V1), new ids are the namespace's own (V2), and a damaged file is told. */
#include "object/moved.h"

#include <errno.h>
#include <string.h>

#include "base/disk.h"
#include "base/mem.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static const uint8_t secret[16] = "0123456789abcde";

static void read_hex(const char *hex, uint8_t id[CN_OBJECT_ID_SIZE])
{
    CHECK(cn_id_from_hex(hex, strlen(hex), id));
}

static struct cn_moved *load(struct simdisk *sim)
{
    struct cn_moved *moved = NULL;
    struct cn_err err = {0};
    CHECK_INT(0, cn_moved_load(simdisk_disk(sim), &moved, &err));
    return moved;
}

/* What workerd, by way of wrangler dev, has made for the class Room of the worker mover. */
#define LOBBY "e99f07ad3c584690456dcce46aba9ec7fffe67a630a124338874c34d9a039d0d"
#define UNIQUE "1fc7b4f0bb61b980a5d3c15464af226daeee0034f8f1d0fe4e856f79abe1e235"

TEST(object_moved, ids_of_a_simulator_are_those_that_it_makes)
{
    uint8_t key[CN_MOVED_KEY_SIZE], other[CN_MOVED_KEY_SIZE], want[32], id[32];
    cn_moved_key("mover-Room", 10, key);
    cn_moved_key("mover-Old", 9, other);
    cn_moved_from_name(key, "lobby", 5, id);
    read_hex(LOBBY, want);
    CHECK(memcmp(want, id, 32) == 0);
    CHECK(cn_moved_derived(key, id));
    CHECK(!cn_moved_derived(other, id));
    read_hex(UNIQUE, id);
    CHECK(cn_moved_derived(key, id));
    for (int bit = 0; bit < 256; bit++) {
        id[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!cn_moved_derived(key, id));
        id[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(object_moved, derived_ids_are_valid_in_their_namespace_alone)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    struct cn_moved_ids ids = {.namespace_id = 7, .derived = true};
    struct cn_id_keys keys, neighbour;
    uint8_t lobby[32], id[32], own[32];
    cn_moved_key("mover-Room", 10, ids.key);
    CHECK_INT(0, cn_moved_keep(simdisk_disk(sim), &ids, &err));
    cn_free(ids.by_name);
    struct cn_moved *moved = load(sim);
    CHECK(!cn_moved_find(moved, 8));
    CHECK(!cn_moved_find(NULL, 7));
    cn_id_keys_init(&keys, secret, 7);
    cn_id_keys_init(&neighbour, secret, 8);
    read_hex(LOBBY, lobby);
    CHECK(!cn_id_valid(&keys, lobby));
    keys.moved = cn_moved_find(moved, 7);
    CHECK(cn_id_valid(&keys, lobby));
    CHECK(!cn_id_valid(&neighbour, lobby));
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "lobby", 5, id);
    CHECK(memcmp(lobby, id, 32) == 0);
    CHECK_INT(CN_JURISDICTION_NONE, cn_id_jurisdiction(&keys, id));
    /* V2 */
    cn_id_unique(&keys, CN_JURISDICTION_NONE, own);
    CHECK(cn_id_valid(&keys, own));
    CHECK(!cn_moved_valid(keys.moved, own));
    cn_id_from_name(&keys, CN_JURISDICTION_EU, "lobby", 5, own);
    CHECK(cn_id_valid(&keys, own));
    CHECK_INT(CN_JURISDICTION_EU, cn_id_jurisdiction(&keys, own));
    cn_moved_free(moved);
    simdisk_free(sim);
}

static struct cn_moved_entry entry_of(const struct cn_id_keys *keys, int number, const char *name)
{
    struct cn_moved_entry entry = {.name = {0}};
    memset(entry.id, 0xe0 - number, sizeof(entry.id));
    if (name)
        cn_id_name_hash(keys, name, strlen(name), entry.name);
    return entry;
}

TEST(object_moved, listed_ids_are_found_by_id_and_by_name)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    struct cn_id_keys keys;
    uint8_t id[32], own[32];
    cn_id_keys_init(&keys, secret, 9);
    struct cn_moved_entry entries[] = {entry_of(&keys, 0, "a"), entry_of(&keys, 1, NULL),
                                       entry_of(&keys, 2, "b"), entry_of(&keys, 3, "")};
    struct cn_moved_ids ids = {.namespace_id = 9, .entries = entries, .count = 4};
    CHECK_INT(0, cn_moved_keep(simdisk_disk(sim), &ids, &err));
    cn_free(ids.by_name);
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "c", 1, own);
    struct cn_moved *moved = load(sim);
    keys.moved = cn_moved_find(moved, 9);
    for (int i = 0; i < 4; i++) {
        memset(id, 0xe0 - i, 32);
        CHECK(cn_id_valid(&keys, id));
    }
    memset(id, 0xd0, 32);
    CHECK(!cn_id_valid(&keys, id));
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "b", 1, id);
    CHECK_INT(0xde, id[0]);
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "", 0, id);
    CHECK_INT(0xdd, id[5]);
    /* Names that had no id have one of ours. */
    cn_id_from_name(&keys, CN_JURISDICTION_NONE, "c", 1, id);
    CHECK(memcmp(own, id, 32) == 0);
    cn_moved_free(moved);
    simdisk_free(sim);
}

TEST(object_moved, two_objects_of_one_name_or_id_are_refused)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    struct cn_id_keys keys;
    cn_id_keys_init(&keys, secret, 9);
    struct cn_moved_entry names[] = {entry_of(&keys, 0, "a"), entry_of(&keys, 1, "a")};
    struct cn_moved_entry same[] = {entry_of(&keys, 0, "a"), entry_of(&keys, 0, "b")};
    struct cn_moved_ids ids = {.namespace_id = 9, .entries = names, .count = 2};
    CHECK_INT(CN_EEXISTS, cn_moved_keep(simdisk_disk(sim), &ids, &err));
    ids.entries = same;
    CHECK_INT(CN_EEXISTS, cn_moved_keep(simdisk_disk(sim), &ids, &err));
    CHECK(!cn_disk_has(simdisk_disk(sim), "moved/00000009.ids"));
    cn_free(ids.by_name);
    simdisk_free(sim);
}

TEST(object_moved, every_damaged_bit_of_a_file_is_told)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    struct cn_err err = {0};
    struct cn_id_keys keys;
    struct cn_moved *moved;
    uint8_t bytes[64 + 48];
    struct cn_disk_file *file;
    cn_id_keys_init(&keys, secret, 9);
    struct cn_moved_entry entry = entry_of(&keys, 0, "a");
    struct cn_moved_ids ids = {.namespace_id = 9, .entries = &entry, .count = 1};
    CHECK_INT(0, cn_moved_keep(disk, &ids, &err));
    cn_free(ids.by_name);
    CHECK_INT(0, cn_disk_open(disk, "moved/00000009.ids", CN_DISK_READONLY, &file));
    CHECK_INT(sizeof(bytes), cn_disk_read(file, bytes, sizeof(bytes), 0));
    cn_disk_close(file);
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_INT(0, cn_disk_replace(disk, "moved/00000009.ids", bytes, sizeof(bytes)));
        int rc = cn_moved_load(disk, &moved, &err);
        CHECK(rc == CN_ECORRUPT || rc == CN_EVERSION);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < sizeof(bytes); size++) {
        CHECK_INT(0, cn_disk_replace(disk, "moved/00000009.ids", bytes, size));
        CHECK_INT(CN_ECORRUPT, cn_moved_load(disk, &moved, &err));
    }
    simdisk_free(sim);
}
