/* SPDX-License-Identifier: Apache-2.0 */
/* Structured values in C: what is built is read again, every byte of
 * docs/reference/structured-clone.md is checked, and nothing that bytes say can make a reader go
 * on for ever (V1, V2). */
#include "module/value.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/rand.h"
#include "module/json.h"
#include "test/lib/test.h"
#include "text/clone.h"

static int read_bytes(struct cn_document *document, const void *bytes, size_t size)
{
    struct cn_err err = {0};
    *document = (struct cn_document){0};
    return cn_document_read(document, bytes, size, &err);
}

#define READ(document, text) read_bytes(document, text, sizeof(text) - 1)

TEST(value, the_example_of_the_format)
{
    struct cn_document document;
    int64_t number = 0;
    CHECK_INT(0, READ(&document, "\x01\x11\x02\x10\x05"
                                 "a\x91\x00\x10\x03\x92\x00"));
    CHECK_INT(CAIRN_ARRAY, cn_value_kind(document.root));
    CHECK_INT(2, cn_value_count(document.root));
    CHECK_INT(0, cn_value_int(cn_value_get(cn_value_at(document.root, 1), "a"), &number));
    CHECK_INT(2, number);
    CHECK_STR("a", cn_value_text(cn_value_key(cn_value_at(document.root, 1), 0), NULL));
    cn_document_fini(&document);
}

static void refuses(const void *bytes, size_t size, const char *fault)
{
    struct cn_document document = {0};
    struct cn_err err = {0};
    CHECK(cn_document_read(&document, bytes, size, &err) < 0);
    CHECK(strstr(err.text, fault));
    CHECK(!document.root && !document.blocks);
}

#define REFUSES(text, fault) refuses(text, sizeof(text) - 1, fault)

TEST(value, bytes_that_are_none)
{
    REFUSES("", "ends too early");
    REFUSES("\x02\x00", "version");
    REFUSES("\x01", "ends too early");
    REFUSES("\x01\x80\x80", "something follows");
    REFUSES("\x01\x7f", "tag is not known");
    REFUSES("\x01\x11\x05\x80", "ends too early");
    REFUSES("\x01\x11\xff\xff\xff\xff\x0f\x80", "ends too early");
    REFUSES("\x01\x08\xff\xff\xff\xff\xff\xff\xff\x0f", "ends too early");
    REFUSES("\x01\x04\xff\xff\xff\xff\x7f", "integer is too large");
    REFUSES("\x01\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "number is too large");
    REFUSES("\x01\x0b\x00", "something outside");
    REFUSES("\x01\x20\x80", "something outside");
    REFUSES("\x01\x10\x03\x80\x00", "name is referred to before");
    REFUSES("\x01\x0a\x00", "object is referred to before");
    REFUSES("\x01\x1a\x01\x18\x02"
            "ab\x03\x01",
            "out of its buffer");
    REFUSES("\x01\x1a\x09\x18\x02"
            "ab\x00\x01",
            "out of its buffer");
    REFUSES("\x01\x1b\x0d\x00", "unknown type");
    REFUSES("\x01\x1c\x08\x00\x00", "unknown type");
    REFUSES("\x01\x17\x10\x00", "primitive is missing");
    REFUSES("\x01\x14\x80\x80", "string is missing");
}

TEST(value, V2_what_contains_itself_is_refused)
{
    REFUSES("\x01\x11\x01\x0a\x00", "contains itself");
    REFUSES("\x01\x10\x05"
            "a\x11\x01\x0a\x00\x00",
            "contains itself");
    REFUSES("\x01\x15\x01\x0a\x00\x80", "contains itself");
}

TEST(value, V2_what_is_reached_too_often_is_refused)
{
    struct cn_buf bytes = {0};
    cn_buf_append(&bytes, "\x01\x11\x1a\x11\x00", 5);
    for (unsigned i = 1; i < 26; i++) { /* each is an array of the one before, twice */
        uint8_t item[] = {0x11, 0x02, 0x0a, (uint8_t)i, 0x0a, (uint8_t)i};
        cn_buf_append(&bytes, item, sizeof(item));
    }
    refuses(bytes.data, bytes.size, "more than 1048576 values");
    cn_buf_fini(&bytes);
}

TEST(value, V1_a_length_alone_takes_no_memory)
{
    REFUSES("\x01\x12\xff\xff\xff\xff\x0f\x00", "more than 1048576 values");
    struct cn_buf bytes = {0};
    cn_buf_append_byte(&bytes, 1);
    for (int i = 0; i < 3000; i++)
        cn_buf_append(&bytes, "\x11\x01", 2);
    refuses(bytes.data, bytes.size, "nested too deeply");
    cn_buf_fini(&bytes);
}

TEST(value, sparse_arrays_have_their_length)
{
    struct cn_document document;
    CHECK_INT(0, READ(&document, "\x01\x12\x03\x05"
                                 "1\x85\x0d"
                                 "own\x86\x00"));
    CHECK_INT(3, cn_value_count(document.root));
    CHECK_INT(CAIRN_UNDEFINED, cn_value_kind(cn_value_at(document.root, 0)));
    CHECK_INT(CAIRN_NUMBER, cn_value_kind(cn_value_at(document.root, 1)));
    cn_document_fini(&document);
}

TEST(value, nothing_is_asked_of_nothing)
{
    int64_t number = 7;
    double real = 7;
    size_t size = 7;
    CHECK_INT(CAIRN_UNDEFINED, cn_value_kind(NULL));
    CHECK_INT(CAIRN_EMISMATCH, cn_value_int(NULL, &number));
    CHECK_INT(CAIRN_EMISMATCH, cn_value_number(NULL, &real));
    CHECK(number == 7 && real == 7);
    CHECK(!cn_value_text(NULL, &size) && size == 0);
    CHECK(!cn_value_bytes(NULL, NULL) && !cn_value_get(NULL, "a") && !cn_value_at(NULL, 0));
    CHECK(!cn_value_key(NULL, 0) && !cn_value_bool(NULL) && !cn_value_count(NULL));
}

/* --- building -------------------------------------------------------------------------------- */

static struct cn_document rebuilt;
static uint8_t *rebuilt_bytes;

/* What was built, read again. */
static const cairn_value *read_again(cairn_builder *builder)
{
    struct cn_err err;
    size_t size;
    cn_document_fini(&rebuilt);
    cn_free(rebuilt_bytes);
    rebuilt_bytes = cn_builder_take(builder, &size, &err);
    CHECK(rebuilt_bytes);
    CHECK_INT(0, cn_document_read(&rebuilt, rebuilt_bytes, size, &err));
    return rebuilt.root;
}

TEST(builder, integers_come_back)
{
    static const int64_t numbers[] = {0,
                                      -16,
                                      -17,
                                      111,
                                      112,
                                      INT32_MAX,
                                      INT32_MIN,
                                      (int64_t)INT32_MAX + 1,
                                      1LL << 52,
                                      -12345678,
                                      9007199254740991,
                                      -9007199254740991};
    cairn_builder builder;
    cn_builder_init(&builder, 1000);
    for (size_t i = 0; i < CN_ARRAY_COUNT(numbers); i++) {
        int64_t number = 1;
        cn_build_int(&builder, numbers[i]);
        CHECK_INT(0, cn_value_int(read_again(&builder), &number));
        CHECK(number == numbers[i]);
        cn_build_bigint(&builder, numbers[i]);
        const cairn_value *value = read_again(&builder);
        CHECK_INT(CAIRN_BIGINT, cn_value_kind(value));
        CHECK_INT(0, cn_value_int(value, &number));
        CHECK(number == numbers[i]);
    }
    cn_build_bigint(&builder, INT64_MIN);
    int64_t number = 0;
    CHECK_INT(0, cn_value_int(read_again(&builder), &number));
    CHECK(number == INT64_MIN);
    cn_builder_fini(&builder);
}

static void expect_mistake(cairn_builder *builder, const char *text)
{
    struct cn_err err = {0};
    size_t size;
    CHECK(!cn_builder_take(builder, &size, &err));
    CHECK(strstr(err.text, text));
    CHECK(cn_builder_is_empty(builder));
}

TEST(builder, mistakes_are_told_once_and_forgotten)
{
    cairn_builder builder;
    cn_builder_init(&builder, 1000);
    cn_build_int(&builder, 1);
    cn_build_int(&builder, 2);
    expect_mistake(&builder, "a second value");
    cn_build_name(&builder, "a");
    expect_mistake(&builder, "where none goes");
    cn_build_array(&builder);
    cn_build_name(&builder, "a");
    expect_mistake(&builder, "where none goes");
    cn_build_object(&builder);
    cn_build_name(&builder, "a");
    cn_build_end(&builder);
    expect_mistake(&builder, "has no value");
    cn_build_map(&builder);
    cn_build_null(&builder);
    cn_build_end(&builder);
    expect_mistake(&builder, "key of a map has no value");
    cn_build_end(&builder);
    expect_mistake(&builder, "nothing is open");
    cn_build_int(&builder, INT64_MAX);
    expect_mistake(&builder, "2^53");
    char large[2000] = {0};
    cn_build_bytes(&builder, large, sizeof(large));
    expect_mistake(&builder, "too large");
    cn_build_array(&builder);
    for (int i = 0; i < 2000; i++)
        cn_build_null(&builder);
    cn_build_end(&builder);
    expect_mistake(&builder, "too large");
    cn_build_null(&builder);
    CHECK_INT(CAIRN_NULL, cn_value_kind(read_again(&builder)));
    CHECK_INT(CAIRN_UNDEFINED, cn_value_kind(read_again(&builder))); /* nothing built */
    cn_builder_fini(&builder);
}

TEST(builder, arrays_of_any_length)
{
    cairn_builder builder;
    cn_builder_init(&builder, 32u << 20);
    static const size_t counts[] = {0, 1, 127, 128, 16384, 300000};
    for (size_t k = 0; k < CN_ARRAY_COUNT(counts); k++) {
        cn_build_array(&builder);
        for (size_t i = 0; i < counts[k]; i++)
            cn_build_int(&builder, (int64_t)i);
        cn_build_end(&builder);
        CHECK_INT(counts[k], cn_value_count(read_again(&builder)));
    }
    cn_builder_fini(&builder);
}

TEST(builder, errors_have_name_message_and_object)
{
    cairn_builder builder;
    cn_builder_init(&builder, 1000);
    cn_build_error(&builder, "RangeError", "too f\xc3\xa4r", "abc");
    const cairn_value *value = read_again(&builder);
    CHECK_INT(CAIRN_FAULT, cn_value_kind(value));
    CHECK_STR("RangeError", cn_value_text(cn_value_get(value, "name"), NULL));
    CHECK_STR("too f\xc3\xa4r", cn_value_text(cn_value_get(value, "message"), NULL));
    CHECK_STR("abc", cn_value_text(cn_value_get(value, "durableObjectId"), NULL));
    cn_build_error(&builder, "MyError", "", NULL);
    CHECK_STR("MyError", cn_value_text(cn_value_get(read_again(&builder), "name"), NULL));
    cn_builder_fini(&builder);
}

static void check_json(const char *text, const char *expected)
{
    cairn_builder builder;
    struct cn_buf out = {0};
    struct cn_err err = {0};
    cn_builder_init(&builder, 1u << 20);
    CHECK_INT(0, cn_build_json(&builder, text, strlen(text), &err));
    CHECK_INT(0, cn_value_append_json(read_again(&builder), &out, &err));
    CHECK_STR(expected, cn_buf_text(&out));
    cn_buf_fini(&out);
    cn_builder_fini(&builder);
}

TEST(json, comes_back)
{
    static const char *const same[] = {
        "null",
        "true",
        "[]",
        "{}",
        "0",
        "-1.5",
        "0.1",
        "1e+21",
        "\"a\\n\"",
        "[[]]",
        "[1,2]",
        "{\"a\":{\"b\":[null]}}",
        "9007199254740993",
    };
    for (size_t i = 0; i + 1 < CN_ARRAY_COUNT(same); i++)
        check_json(same[i], same[i]);
    check_json(" { \"x\" : 1e0 , \"y\":\"\\u00fc\" } ", "{\"x\":1,\"y\":\"\xc3\xbc\"}");
    check_json(same[CN_ARRAY_COUNT(same) - 1], "9007199254740992"); /* a double, as in JavaScript */
}

TEST(json, what_it_has_not_is_refused)
{
    cairn_builder builder;
    struct cn_buf out = {0};
    struct cn_err err = {0};
    cn_builder_init(&builder, 1000);
    CHECK(cn_build_json(&builder, "{", 1, &err) < 0);
    CHECK(cn_build_json(&builder, "", 0, &err) < 0);
    CHECK(cn_builder_is_empty(&builder));
    cn_build_date(&builder, 0);
    CHECK(cn_value_append_json(read_again(&builder), &out, &err) < 0);
    cn_build_object(&builder);
    cn_build_name(&builder, "gone");
    cn_build_undefined(&builder);
    cn_build_name(&builder, "none");
    cn_build_number(&builder, 0.0 / 0.0);
    cn_build_end(&builder);
    cn_buf_clear(&out);
    CHECK_INT(0, cn_value_append_json(read_again(&builder), &out, &err));
    CHECK_STR("{\"none\":null}", cn_buf_text(&out));
    cn_buf_fini(&out);
    cn_builder_fini(&builder);
}

/* A value that chance has made. */
static void build_any(cairn_builder *builder, struct cn_rand *rand, int depth)
{
    switch (cn_rand_below(rand, depth ? 10 : 7)) {
    case 0:
        cn_build_null(builder);
        return;
    case 1:
        cn_build_bool(builder, (int)cn_rand_below(rand, 2));
        return;
    case 2:
        cn_build_int(builder, (int64_t)cn_rand_below(rand, 1000000) - 500000);
        return;
    case 3:
        cn_build_number(builder, (double)cn_rand_below(rand, 1000) / 7);
        return;
    case 4:
        cn_build_text(builder, "Gr\xc3\xbc\xc3\x9f Gott, \xf0\x9f\x98\x80",
                      cn_rand_below(rand, 4) * 3);
        return;
    case 5:
        cn_build_bytes(builder, "0123456789", cn_rand_below(rand, 11));
        return;
    case 6:
        cn_build_date(builder, (double)cn_rand_below(rand, 1u << 30));
        return;
    case 7:
        cn_build_array(builder);
        break;
    case 8:
        cn_build_object(builder);
        for (uint64_t i = cn_rand_below(rand, 5); i > 0; i--) {
            char name[] = {(char)('a' + i), '\0'};
            cn_build_name(builder, name);
            build_any(builder, rand, depth - 1);
        }
        cn_build_end(builder);
        return;
    default:
        cn_build_map(builder);
        for (uint64_t i = 2 * cn_rand_below(rand, 3); i > 0; i--)
            build_any(builder, rand, depth - 1);
        cn_build_end(builder);
        return;
    }
    for (uint64_t i = cn_rand_below(rand, 5); i > 0; i--)
        build_any(builder, rand, depth - 1);
    cn_build_end(builder);
}

TEST(builder, a_copy_of_any_value_is_the_same)
{
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int round = 0; round < 2000; round++) {
        cairn_builder builder, copy;
        struct cn_document document = {0};
        struct cn_err err;
        size_t size, second;
        cn_builder_init(&builder, 1u << 20);
        cn_builder_init(&copy, 1u << 20);
        build_any(&builder, &rand, 4);
        uint8_t *bytes = cn_builder_take(&builder, &size, &err);
        CHECK(bytes);
        CHECK_INT(0, cn_document_read(&document, bytes, size, &err));
        cn_build_value(&copy, document.root);
        uint8_t *same = cn_builder_take(&copy, &second, &err);
        CHECK(same && size == second && memcmp(bytes, same, size) == 0);
        /* V1: any change of a byte is a value or a refusal. */
        for (int i = 0; i < 5 && size > 1; i++) {
            struct cn_document changed = {0};
            uint8_t *other = cn_memdup(bytes, size);
            other[1 + cn_rand_below(&rand, size - 1)] ^= (uint8_t)(1 + cn_rand_below(&rand, 255));
            (void)cn_document_read(&changed, other, size, &err);
            cn_document_fini(&changed);
            cn_free(other);
        }
        cn_document_fini(&document);
        cn_builder_fini(&builder);
        cn_builder_fini(&copy);
        cn_free(bytes);
        cn_free(same);
    }
    cn_document_fini(&rebuilt);
    cn_free(rebuilt_bytes);
    rebuilt_bytes = NULL;
}

static uint8_t *take(cairn_builder *builder, size_t *size)
{
    struct cn_err err;
    uint8_t *bytes = cn_builder_take(builder, size, &err);
    CHECK(bytes);
    cn_builder_fini(builder);
    return bytes;
}

TEST(value, V3_what_is_by_reference_is_listed)
{
    cairn_builder builder;
    struct cn_document document;
    size_t size;
    cn_builder_init(&builder, 1u << 20);
    cn_build_array(&builder);
    cn_build_reference(&builder, TAG_HOST_FUNCTION, "w0:1", 7);
    cn_build_reference(&builder, TAG_HOST_STREAM, "o3:abc", 281474976710655.0);
    cn_build_object_stub(&builder, 3, "0123", "its name");
    cn_build_reference(&builder, TAG_HOST_SINK, "w0:1", 8);
    cn_build_int(&builder, 5);
    cn_build_end(&builder);
    uint8_t *bytes = take(&builder, &size);
    CHECK_INT(0, read_bytes(&document, bytes, size));
    static const enum cairn_kind kinds[] = {CAIRN_FUNCTION, CAIRN_STREAM, CAIRN_STUB, CAIRN_OTHER,
                                            CAIRN_NUMBER};
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++)
        CHECK_INT(kinds[i], cn_value_kind(cn_value_at(document.root, i)));
    const struct cn_value_remote *stream = cn_value_remote(cn_value_at(document.root, 1));
    CHECK_STR("o3:abc", stream->address);
    CHECK(stream->number == 281474976710655.0 && !stream->lent && !stream->taken);
    const struct cn_value_remote *stub = cn_value_remote(cn_value_at(document.root, 2));
    CHECK(!stub->address);
    CHECK_INT(3, stub->ns);
    CHECK_STR("0123", stub->hex);
    CHECK_STR("its name", stub->name);
    CHECK(!cn_value_remote(cn_value_at(document.root, 4)));
    size_t listed = 0;
    for (const struct cn_value_remote *each = document.remotes; each; each = each->next)
        listed += each->address != NULL;
    CHECK_INT(3, listed); /* the sink too: it is let go of, although C cannot use it */
    cn_document_fini(&document);
    cn_free(bytes);
}

TEST(value, V3_a_reference_without_an_address_is_something_else)
{
    struct cn_document document;
    CHECK_INT(0, READ(&document, "\x01\x30\x10\x00")); /* {} */
    CHECK_INT(CAIRN_OTHER, cn_value_kind(document.root));
    CHECK(!document.remotes);
    cn_document_fini(&document);
    CHECK_INT(0, READ(&document, "\x01\x35\x91")); /* a number where a stub is described */
    CHECK_INT(CAIRN_OTHER, cn_value_kind(document.root));
    cn_document_fini(&document);
}
