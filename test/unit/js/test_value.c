/* SPDX-License-Identifier: Apache-2.0 */
/* Texts on their way into JavaScript and out of it. */
#include "js/value.h"

#include <string.h>

#include "base/buf.h"
#include "js/context.h"
#include "test/lib/test.h"
#include "text/utf16.h"

static struct cn_js_vm *vm;
static struct cn_js_context *context;

static void begin(void)
{
    static bool set_up; /* once in a process: threads of the engine run from then on */
    if (!set_up)
        CHECK_INT(0, cn_js_setup(NULL));
    set_up = true;
    vm = cn_js_vm_new(NULL);
    context = cn_js_context_new(vm, NULL);
    cn_js_enter(context);
}

static void end(void)
{
    cn_js_leave(context);
    cn_js_context_free(context);
    cn_js_vm_free(vm);
}

static void check_text(const char *want, JSValueRef value)
{
    struct cn_buf text = {0};
    cn_js_append_any(context->ref, value, &text);
    CHECK_STR(want, cn_buf_text(&text));
    cn_buf_fini(&text);
}

TEST(js_value, V1_a_byte_that_is_no_utf8_does_not_empty_the_text)
{
    begin();
    JSContextRef ctx = context->ref;
    check_text("no such file: b\xef\xbf\xbd"
               "d",
               cn_js_text_z(ctx, "no such file: b\xe4"
                                 "d"));
    check_text("\xef\xbf\xbd", cn_js_text_z(ctx, "\xff"));
    check_text("\xc3\xa4 is fine", cn_js_text_z(ctx, "\xc3\xa4 is fine"));
    check_text("", cn_js_text_z(ctx, ""));
    end();
}

TEST(js_value, V1_errors_keep_their_message)
{
    begin();
    JSContextRef ctx = context->ref;
    JSValueRef error = cn_js_error(ctx, CN_JS_TYPE_ERROR, "cannot read %s: denied", "\xe9t\xe9");
    check_text("TypeError: cannot read \xef\xbf\xbdt\xef\xbf\xbd: denied", error);
    /* A long one is cut, perhaps inside a character. */
    char text[2048];
    memset(text, 'x', sizeof(text));
    for (size_t at = 900; at + 2 < sizeof(text); at += 2)
        memcpy(text + at, "\xc3\xa4", 2);
    text[sizeof(text) - 1] = 0;
    for (size_t skip = 0; skip < 2; skip++) {
        JSValueRef value = cn_js_get(
            ctx, (JSObjectRef)cn_js_error(ctx, CN_JS_ERROR, "%s", text + skip), "message");
        struct cn_buf message = {0};
        cn_js_append_utf8(ctx, value, &message);
        CHECK(message.size > 1000);
        cn_buf_fini(&message);
    }
    end();
}

TEST(js_value, V1_sources_and_json_are_read_however_they_are_written)
{
    begin();
    struct cn_err err;
    JSValueRef value;
    CHECK_INT(0, cn_js_evaluate(context, "'a\xff' + 'b'", "bad\xff.js", &value, &err));
    check_text("a\xef\xbf\xbd"
               "b",
               value);
    end();
}

/* Every arrangement of up to four of these after `ahead` of one of them, which makes strings of one
 * and of two bytes each, and of every length around the bounds of the conversions. */
static const uint16_t letters[] = {'a', 0, 0xe9, 0x6f22, 0xd800, 0xdbff, 0xdc00, 0xdfff};

static void check_units(const uint16_t *units, size_t count)
{
    uint8_t want[3 * 4200];
    size_t size = cn_utf16_to_utf8(units, count, want);
    struct cn_buf text = {0};
    cn_js_append_utf8(context->ref, cn_js_utf16(context->ref, units, count), &text);
    CHECK_INT(size, text.size);
    CHECK(size == 0 || memcmp(want, text.data, size) == 0);
    cn_buf_fini(&text);
}

TEST(js_value, V3_no_character_is_lost_wherever_it_stands)
{
    begin();
    static const size_t ahead[] = {0, 1, 15, 123, 127, 4093};
    for (size_t a = 0; a < CN_ARRAY_COUNT(ahead); a++) {
        for (size_t first = 0; first < CN_ARRAY_COUNT(letters); first++) {
            uint16_t units[4200];
            for (size_t i = 0; i < ahead[a]; i++)
                units[i] = letters[first];
            for (size_t code = 0; code < 8 * 8 * 8 * 8; code += ahead[a] < 100 ? 1 : 37) {
                for (size_t i = 0; i < 4; i++)
                    units[ahead[a] + i] = letters[code >> (3 * i) & 7];
                for (size_t count = 0; count <= 4; count++)
                    check_units(units, ahead[a] + count);
            }
        }
    }
    end();
}

TEST(js_value, V3_characters_of_a_byte_each_are_all_there)
{
    begin();
    for (size_t length = 0; length < 300; length++) {
        uint8_t bytes[300];
        uint16_t units[300];
        for (size_t i = 0; i < length; i++)
            units[i] = bytes[i] = (uint8_t)(i * 7 + length);
        uint8_t want[600];
        size_t size = cn_utf16_to_utf8(units, length, want);
        struct cn_buf text = {0};
        cn_js_append_utf8(context->ref, cn_js_latin1(context->ref, bytes, length), &text);
        CHECK_INT(size, text.size);
        CHECK(size == 0 || memcmp(want, text.data, size) == 0);
        cn_buf_fini(&text);
    }
    end();
}
