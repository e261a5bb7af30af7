/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of one byte per character: what is made is what the C API would have made. */
#include "js/engine/string8.h"

#include <string.h>

#include "base/mem.h"
#include "js/value.h"
#include "test/lib/js_rig.h"

/* P1 of patch.h, before anything is set up. */
TEST(js_string8, off_it_offers_nothing)
{
    const uint8_t text[] = "text";
    CHECK(!cn_js_string8_new(text, 4));
    CHECK(!cn_js_string8_static(text, 4));
    JSStringRef string = JSStringCreateWithUTF8CString("text");
    CHECK(!cn_js_string8_peek(string));
    JSStringRelease(string);
}

static bool is_on(void)
{
    size_t count;
    const struct cn_js_patch_status *all = cn_js_engine_patches(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].patch == &cn_js_patch_strings)
            return all[i].on;
    return false;
}

static void check_string(JSContextRef ctx, JSStringRef string, const uint8_t *bytes, size_t size)
{
    CHECK(string);
    CHECK_INT(size, JSStringGetLength(string));
    const JSChar *units = JSStringGetCharactersPtr(string);
    for (size_t i = 0; i < size; i++)
        CHECK_INT(bytes[i], units[i]);
    JSValueRef value = JSValueMakeString(ctx, string);
    JSStringRef back = JSValueToStringCopy(ctx, value, NULL);
    CHECK(JSStringIsEqual(back, string));
    JSStringRelease(back);
    JSStringRelease(string);
}

/* Every character from U+0000 to U+00FF, at every length around the sizes that engines treat
 * otherwise. */
TEST(js_string8, a_byte_is_a_character_whatever_it_is)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!is_on())
        test_skip("the patch is off here");
    static uint8_t bytes[5000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(255 - i % 256);
    static const size_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 255, 256, 257, 4095, 4096, 5000};
    cn_js_enter(rig.context);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_string(rig.context->ref, cn_js_string8_new(bytes, sizes[i]), bytes, sizes[i]);
        check_string(rig.context->ref, cn_js_string8_static(bytes, sizes[i]), bytes, sizes[i]);
    }
    check_string(rig.context->ref, cn_js_string8_new(bytes, 0), bytes, 0);
    CHECK(!cn_js_string8_static(bytes, 0)); /* the library has none */
    CHECK(!cn_js_string8_new(bytes, (size_t)INT32_MAX + 1));
    CHECK(!cn_js_string8_static(bytes, (size_t)INT32_MAX + 1));
    CHECK(!cn_js_string8_new(bytes, SIZE_MAX));
    cn_js_leave(rig.context);
    js_rig_close(&rig);
}

/* A copy is a copy; what is static is not copied. */
TEST(js_string8, only_static_characters_are_not_copied)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!is_on())
        test_skip("the patch is off here");
    uint8_t bytes[] = "changes";
    static const uint8_t stays[] = "stays where it is";
    JSStringRef copy = cn_js_string8_new(bytes, 7);
    JSStringRef same = cn_js_string8_static(stays, sizeof(stays) - 1);
    memset(bytes, 'x', 7);
    CHECK(cn_js_string8_peek(copy) != bytes && memcmp(cn_js_string8_peek(copy), "changes", 7) == 0);
    CHECK(cn_js_string8_peek(same) == stays);
    JSStringRelease(copy);
    JSStringRelease(same);
    js_rig_close(&rig);
}

TEST(js_string8, only_narrow_strings_can_be_peeked_into)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!is_on())
        test_skip("the patch is off here");
    static const JSChar wide[] = {'a', 0x416, 'b'};
    JSStringRef string = JSStringCreateWithCharacters(wide, 3);
    CHECK(!cn_js_string8_peek(string));
    JSStringRelease(string);
    string = JSStringCreateWithUTF8CString("");
    const uint8_t *at = cn_js_string8_peek(string);
    CHECK(!at || JSStringGetLength(string) == 0);
    JSStringRelease(string);
    /* Those that a script has made, of pieces (a rope) and as part of another. */
    cn_js_enter(rig.context);
    struct cn_err err;
    static const char *const made[] = {"'abc' + String(1234567).slice(1)", "'xxabc234567'.slice(2)",
                                       "['abc', 234567].join('')"};
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        JSValueRef value;
        CHECK_INT(0, cn_js_evaluate(rig.context, made[i], "test", &value, &err));
        string = JSValueToStringCopy(rig.context->ref, value, NULL);
        at = cn_js_string8_peek(string);
        CHECK(at && memcmp(at, "abc234567", 9) == 0);
        JSStringRelease(string);
    }
    cn_js_leave(rig.context);
    js_rig_close(&rig);
}

/* As the library lays a StringImpl out: references, length, characters, flags. */
struct impl {
    unsigned ref_count, length;
    const void *characters;
    unsigned flags;
};

TEST(js_string8, a_name_of_the_engine_is_compared_whole)
{
    struct impl narrow = {1, 5, "stacks", 4}, wide = {1, 5, L"stack", 0};
    CHECK(cn_js_string8_impl_equals(&narrow, "stack"));
    CHECK(!cn_js_string8_impl_equals(&narrow, "stac"));
    CHECK(!cn_js_string8_impl_equals(&narrow, "stacks"));
    CHECK(!cn_js_string8_impl_equals(&narrow, "stick"));
    CHECK(!cn_js_string8_impl_equals(&narrow, ""));
    CHECK(!cn_js_string8_impl_equals(&wide, "stack"));
    CHECK(!cn_js_string8_impl_equals(NULL, "stack")); /* a symbol has none */
}

TEST(js_string8, is_proven_only_while_it_is_used)
{
    struct js_rig rig;
    js_rig_open(&rig);
    if (!is_on())
        test_skip("the patch is off here");
    CHECK(!cn_js_patch_strings.prove(rig.vm));
    cn_js_patch_strings.use(false);
    const char *wrong = cn_js_patch_strings.prove(rig.vm);
    CHECK(wrong && strstr(wrong, "not what they should be"));
    CHECK(!cn_js_string8_new((const uint8_t *)"a", 1));
    /* Without it texts are the same. */
    cn_js_enter(rig.context);
    size_t size;
    char *text =
        cn_js_to_text(rig.context->ref, cn_js_text_z(rig.context->ref, "\xc3\xa4 a"), &size);
    CHECK_STR("\xc3\xa4 a", text);
    cn_free(text);
    cn_js_leave(rig.context);
    cn_js_patch_strings.use(true);
    CHECK(!cn_js_patch_strings.prove(rig.vm));
    js_rig_close(&rig);
}
