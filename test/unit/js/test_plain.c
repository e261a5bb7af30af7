/* SPDX-License-Identifier: Apache-2.0 */
/* Plain values of JavaScript to bytes and back. */
#include "js/plain.h"

#include <math.h>
#include <string.h>

#include "js/context.h"
#include "js/value.h"
#include "test/lib/test.h"

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

/* The value alone, as it comes back: an array of one without its head. */
static JSValueRef round_trip(JSValueRef value)
{
    struct cn_buf bytes = {0};
    CHECK(cn_js_plain_write(context->ref, 1, &value, &bytes));
    CHECK_INT(1, bytes.data[0]);
    CHECK_INT(0x11, bytes.data[1]);
    CHECK_INT(1, bytes.data[2]);
    bytes.data[2] = 1; /* the version */
    JSValueRef back = cn_js_plain_read(context->ref, bytes.data + 2, bytes.size - 2);
    cn_buf_fini(&bytes);
    CHECK(back);
    return back;
}

TEST(js_plain, L1_numbers_come_back_as_they_were)
{
    static const double numbers[] = {0,   1,          -1,     111,        112,         -16,
                                     -17, 300,        -300,   2147483647, -2147483648, 1e15,
                                     1.5, 2147483648, 5e-324, INFINITY,   -INFINITY,   65535};
    begin();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        JSValueRef back = round_trip(JSValueMakeNumber(context->ref, numbers[i]));
        CHECK(cn_js_to_number(context->ref, back) == numbers[i]);
    }
    CHECK(isnan(cn_js_to_number(context->ref, round_trip(JSValueMakeNumber(context->ref, NAN)))));
    JSValueRef zero = round_trip(JSValueMakeNumber(context->ref, -0.0));
    CHECK(signbit(cn_js_to_number(context->ref, zero)));
    end();
}

TEST(js_plain, L1_what_is_no_number_comes_back_as_it_was)
{
    begin();
    JSContextRef ctx = context->ref;
    CHECK(JSValueIsUndefined(ctx, round_trip(JSValueMakeUndefined(ctx))));
    CHECK(JSValueIsNull(ctx, round_trip(JSValueMakeNull(ctx))));
    CHECK(JSValueToBoolean(ctx, round_trip(JSValueMakeBoolean(ctx, true))));
    CHECK(JSValueIsBoolean(ctx, round_trip(JSValueMakeBoolean(ctx, false))));
    char long_text[200];
    memset(long_text, 'x', sizeof(long_text));
    for (size_t size = 0; size < sizeof(long_text); size++) {
        JSValueRef text = cn_js_text(ctx, long_text, size);
        CHECK(JSValueIsStrictEqual(ctx, text, round_trip(text)));
    }
    end();
}

TEST(js_plain, L2_what_is_not_plain_is_left_to_the_prelude)
{
    begin();
    JSContextRef ctx = context->ref;
    struct cn_buf bytes = {0};
    JSValueRef values[] = {JSValueMakeNumber(ctx, 1), JSObjectMake(ctx, NULL, NULL)};
    CHECK(cn_js_plain_write(ctx, 1, values, &bytes));
    CHECK(!cn_js_plain_write(ctx, 2, values, &bytes));
    values[0] = cn_js_text_z(ctx, "\xc3\xa4"); /* no ASCII */
    CHECK(!cn_js_plain_write(ctx, 1, values, &bytes));
    cn_buf_clear(&bytes);
    CHECK(cn_js_plain_write(ctx, 0, NULL, &bytes));
    CHECK_INT(3, (long long)bytes.size);
    cn_buf_fini(&bytes);
    end();
}

TEST(js_plain, L2_damaged_bytes_are_no_value)
{
    static const struct {
        uint8_t bytes[12];
        size_t size;
    } damaged[] = {
        {{1}, 1},                                     /* nothing */
        {{2, 0}, 2},                                  /* another version */
        {{1, 0, 0}, 3},                               /* more than a value */
        {{1, 0x80, 0}, 3},                            /* the same behind a small number */
        {{1, 4}, 2},                                  /* no number */
        {{1, 4, 0x80}, 3},                            /* half of one */
        {{1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 8}, /* one of more than 32 bits */
        {{1, 5, 0, 0, 0}, 5},                         /* half a double */
        {{1, 8, 5, 'a'}, 4},                          /* a text that is not all there */
        {{1, 8, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'}, 8},
        {{1, 0x43, 'a', 'b'}, 4}, /* the same of a short one */
        {{1, 0x60}, 2},           /* no tag */
        {{1, 0x11, 0}, 3},        /* an array */
        {{1, 0x30, 0}, 3},        /* something by reference */
    };
    begin();
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        CHECK(!cn_js_plain_read(context->ref, damaged[i].bytes, damaged[i].size));
    end();
}
