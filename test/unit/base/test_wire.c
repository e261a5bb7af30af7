/* SPDX-License-Identifier: Apache-2.0 */
/* Structs as bytes: there and back, from another release, and wrong. */
#include "base/wire.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "test/lib/test.h"

struct item {
    uint32_t number;
    char *text;
};

struct all {
    bool flag;
    uint8_t small;
    uint64_t large;
    int32_t below;
    int64_t far;
    char *text;
    uint8_t *bytes;
    size_t size;
    struct cn_buf buf;
    uint8_t fixed[4];
    struct item group;
    struct item *items;
    size_t count;
    uint32_t own;
};

static const struct cn_wire_field item[] = {CN_WIRE_UINT(1, struct item, number, 1000),
                                            CN_WIRE_TEXT(2, struct item, text, 100), CN_WIRE_END};

static bool own_put(const void *field, struct cn_buf *out)
{
    uint32_t value = *(const uint32_t *)field;
    if (value)
        cn_buf_append_byte(out, (uint8_t)(value + 1));
    return value != 0;
}

static bool own_get(void *field, const uint8_t *bytes, size_t size, void *data)
{
    CHECK_STR("data", data);
    *(uint32_t *)field = size == 1 ? bytes[0] - 1u : 0;
    return size == 1;
}

static const struct cn_wire_own own = {own_put, own_get, NULL};

static const struct cn_wire_field all[] = {CN_WIRE_BOOL(1, struct all, flag),
                                           CN_WIRE_UINT(2, struct all, small, 200),
                                           CN_WIRE_UINT(3, struct all, large, UINT64_MAX),
                                           CN_WIRE_INT(4, struct all, below),
                                           CN_WIRE_INT(5, struct all, far),
                                           CN_WIRE_TEXT(6, struct all, text, 20),
                                           CN_WIRE_BYTES(7, struct all, bytes, size, 20),
                                           CN_WIRE_BUF(8, struct all, buf, 20),
                                           CN_WIRE_FIXED(9, struct all, fixed),
                                           CN_WIRE_GROUP(10, struct all, group, item),
                                           CN_WIRE_LIST(11, struct all, items, count, item, 3),
                                           CN_WIRE_OWN(12, struct all, own, &own),
                                           CN_WIRE_END};

static void fill(struct all *a)
{
    *a = (struct all){.flag = true,
                      .small = 200,
                      .large = UINT64_MAX,
                      .below = INT32_MIN,
                      .far = INT64_MAX,
                      .text = cn_strdup("text"),
                      .bytes = cn_memdup("\0b", 2),
                      .size = 2,
                      .fixed = {0, 1},
                      .group = {7, cn_strdup("")},
                      .items = cn_alloc_zero(2 * sizeof(struct item)),
                      .count = 2,
                      .own = 41};
    cn_buf_append_str(&a->buf, "buf");
    a->items[1] = (struct item){1000, cn_strdup("second")};
}

static int get(struct all *a, const struct cn_buf *in)
{
    char data[] = "data";
    return cn_wire_get(all, a, in->data, in->size, data);
}

TEST(wire, reads_what_it_has_written)
{
    struct all a, b = {.text = cn_strdup("is replaced")};
    struct cn_buf out = {0}, again = {0};
    fill(&a);
    cn_wire_put(all, &a, &out);
    CHECK_INT(0, get(&b, &out));
    CHECK(b.flag && b.small == 200 && b.large == UINT64_MAX && b.below == INT32_MIN);
    CHECK(b.far == INT64_MAX && b.own == 41 && b.count == 2 && b.size == 2);
    CHECK_STR("text", b.text);
    CHECK(memcmp(b.bytes, "\0b", 2) == 0 && memcmp(b.fixed, a.fixed, 4) == 0);
    CHECK_STR("buf", cn_buf_text(&b.buf));
    CHECK_STR("", b.group.text);
    CHECK(!b.items[0].text && b.items[0].number == 0 && b.items[1].number == 1000);
    CHECK_STR("second", b.items[1].text);
    cn_wire_put(all, &b, &again);
    CHECK(out.size == again.size && memcmp(out.data, again.data, out.size) == 0); /* W5 */
    cn_wire_clear(all, &a);
    cn_wire_clear(all, &b);
    struct all zero = {0};
    CHECK(memcmp(&zero.text, &b.text, sizeof(zero) - offsetof(struct all, text)) == 0);
    cn_buf_fini(&out);
    cn_buf_fini(&again);
}

TEST(wire, writes_nothing_of_what_is_zero_and_keeps_what_is_empty)
{
    struct all a = {0}, b = {0};
    struct cn_buf out = {0};
    cn_wire_put(all, &a, &out);
    CHECK_INT(0, out.size); /* W1 */
    cn_buf_reserve(&a.buf, 1);
    a.text = cn_strdup("");
    a.bytes = cn_alloc(1);
    a.items = cn_alloc(1);
    cn_wire_put(all, &a, &out);
    CHECK_INT(0, get(&b, &out));
    CHECK(b.buf.data && !b.buf.size && b.bytes && !b.size && b.items && !b.count);
    CHECK_STR("", b.text);
    cn_wire_clear(all, &a);
    cn_wire_clear(all, &b);
    cn_buf_fini(&out);
}

/* W2: a later release has more fields. */
TEST(wire, skips_what_it_does_not_know_unless_it_must_be_known)
{
    struct later {
        uint8_t *between, *after;
        size_t between_size, after_size;
        unsigned number, third;
        bool must;
    } later = {.between = cn_memdup("abc", 3), .between_size = 3, .number = 5, .third = 9};
    struct cn_wire_field table[] = {CN_WIRE_BYTES(1, struct later, between, between_size, 9),
                                    CN_WIRE_UINT(2, struct later, number, 9),
                                    CN_WIRE_UINT(3, struct later, third, 9),
                                    CN_WIRE_BOOL(4, struct later, must), CN_WIRE_END};
    static const struct cn_wire_field now[] = {CN_WIRE_UINT(3, struct later, third, 9),
                                               CN_WIRE_END};
    struct cn_buf out = {0};
    struct later read = {0};
    table[3].must = true;
    cn_wire_put(table, &later, &out);
    CHECK_INT(0, cn_wire_get(now, &read, out.data, out.size, NULL));
    CHECK(read.third == 9 && !read.number && !read.between);
    later.must = true;
    cn_buf_clear(&out);
    cn_wire_put(table, &later, &out);
    CHECK_INT(CN_EVERSION, cn_wire_get(now, &read, out.data, out.size, NULL));
    cn_free(later.between);
    cn_buf_fini(&out);
}

static void refuse(const char *bytes, size_t size)
{
    struct all a = {0};
    char data[] = "data";
    CHECK_INT(CN_EPROTOCOL, cn_wire_get(all, &a, (const uint8_t *)bytes, size, data));
    cn_wire_clear(all, &a);
}

TEST(wire, refuses_what_breaks_a_rule)
{
    refuse("\x04", 1);             /* a key alone */
    refuse("\x04\x02", 2);         /* no bool */
    refuse("\x04\x00", 2);         /* a zero is not written */
    refuse("\x08\xc9\x01", 3);     /* above its bound */
    refuse("\x08\x81\x00", 3);     /* a longer way to write 1 */
    refuse("\x04\x01\x04\x01", 4); /* twice */
    refuse("\x08\x01\x04\x01", 4); /* out of order */
    refuse("\x05\x01x", 3);        /* bytes for a number */
    refuse("\x18\x01", 2);         /* a number for bytes */
    refuse("\x19\x05text", 6);     /* fewer bytes than it says */
    refuse("\x19\x03t\0t", 5);     /* a NUL in a text */
    refuse("\x25\x03"
           "123",
           5);                                                  /* an array of another size */
    refuse("\x2d\x01\x04", 3);                                  /* more items than the bound */
    refuse("\x2d\x02\x03\x00", 4);                              /* fewer items than it says */
    refuse("\x2d\x03\x01\x00\x00", 5);                          /* more bytes than items */
    refuse("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11); /* more than 64 bits */
}

/* W3 and W4 for any bytes. */
TEST(wire, reads_any_bytes_without_harm)
{
    struct all a;
    struct cn_buf good = {0};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    fill(&a);
    cn_wire_put(all, &a, &good);
    cn_wire_clear(all, &a);
    for (unsigned i = 0; i < 20000; i++) {
        struct cn_buf bytes = {0}, again = {0};
        cn_buf_append(&bytes, good.data, good.size);
        for (unsigned k = cn_rand_next(&rand) % 4; k > 0; k--)
            bytes.data[cn_rand_next(&rand) % bytes.size] = (uint8_t)cn_rand_next(&rand);
        bytes.size -= cn_rand_next(&rand) % 4;
        memset(&a, 0, sizeof(a));
        if (get(&a, &bytes) == 0)
            cn_wire_put(all, &a, &again);
        cn_wire_clear(all, &a);
        cn_buf_fini(&bytes);
        cn_buf_fini(&again);
    }
    cn_buf_fini(&good);
}
