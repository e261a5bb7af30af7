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

TEST(object_lent, a_note_says_who_holds_which_number)
{
    static const double numbers[] = {0,     1,          111,          112,
                                     70000, 2147483647, 4294967296.0, 281474976710655.0};
    uint8_t bytes[CN_LENT_NUMBER_SIZE];
    for (size_t i = 0; i < CN_ARRAY_COUNT(numbers); i++) {
        size_t size = cn_lent_number_write(numbers[i], bytes);
        struct cn_lent_note note = cn_lent_note_read("~retain", bytes, size);
        CHECK(note.kind == CN_LENT_RETAIN && note.number == numbers[i]);
        CHECK_INT(CN_LENT_NO_NOTE, cn_lent_note_read("~retain", bytes, size - 1).kind);
    }
    /* As JavaScript writes small ones. */
    struct cn_lent_note small = cn_lent_note_read("~release", (const uint8_t *)"\x01\x95", 2);
    CHECK(small.kind == CN_LENT_RELEASE && small.number == 5);
    small = cn_lent_note_read("~release", (const uint8_t *)"\x01\x04\xe0\x01", 4);
    CHECK(small.kind == CN_LENT_RELEASE && small.number == 112);
    size_t size = cn_lent_number_write(7, bytes);
    struct cn_lent_note lend = cn_lent_note_read("~lend@1f.ffffffffffffffff", bytes, size);
    CHECK(lend.kind == CN_LENT_LEND && lend.disk == 0x1f && lend.session == UINT64_MAX);
    static const char *const none[] = {"",          "~",          "retain",     "~retains",
                                       "~lend@",    "~lend@1",    "~lend@1.",   "~lend@.1",
                                       "~lend@0.1", "~lend@1.0",  "~lend@1.2x", "~lend@1.2.3",
                                       "7:",        "~lend@ 1.2", "~lend@-1.2"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(none); i++)
        CHECK_INT(CN_LENT_NO_NOTE, cn_lent_note_read(none[i], bytes, size).kind);
    static const char *const bad[] = {"",
                                      "\x01",
                                      "\x02\x95",
                                      "\x01\x81",
                                      "\x01\x04\x03",
                                      "\x01\x04\x80",
                                      "\x01\x04\xff\xff\xff\xff\xff\x7f"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(bad); i++)
        CHECK_INT(CN_LENT_NO_NOTE,
                  cn_lent_note_read("~retain", (const uint8_t *)bad[i], strlen(bad[i])).kind);
    CHECK_INT(CN_LENT_NO_NOTE,
              cn_lent_note_read("~retain", bytes, cn_lent_number_write(-1, bytes)).kind);
}

TEST(object_lent, a_list_is_kept_for_those_who_want_it)
{
    struct cn_lent_list from = {.wanted = true}, to = {0};
    for (unsigned i = 0; i < 9; i++)
        cn_lent_list_add(&from, cn_strdup("w0:1"), i);
    CHECK_INT(9, from.count);
    cn_lent_list_move(&to, &from);
    CHECK(!from.count && !to.count);
    for (unsigned i = 0; i < 9; i++)
        cn_lent_list_add(&from, cn_strdup("w0:1"), i);
    to.wanted = true;
    cn_lent_list_move(&to, &from);
    CHECK(!from.count && to.count == 9 && to.items[8].number == 8);
    cn_lent_list_fini(&to);
    cn_lent_list_add(&(struct cn_lent_list){0}, cn_strdup("w0:1"), 1); /* nobody wants it */
}
