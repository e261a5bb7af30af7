/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/string8.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

/* Ref<StringImpl> WTF::StringImpl::create(std::span<const unsigned char>)
 * Ref<StringImpl> WTF::StringImpl::createWithoutCopyingNonEmpty(std::span<const unsigned char>)
 * RefPtr<OpaqueJSString> OpaqueJSString::tryCreate(WTF::String&&)
 * What they return is a class of one pointer, which C++ passes through memory: the first
 * parameter here. A WTF::String is such a class too; the second call takes it over. */
void cn_js_engine_string_impl(void **result, const uint8_t *characters, size_t length) __asm__(
    "_ZN3WTF10StringImpl6createESt4spanIKhLm18446744073709551615EE") __attribute__((weak));
void cn_js_engine_string_impl_static(
    void **result, const uint8_t *characters,
    size_t length) __asm__("_ZN3WTF10StringImpl28createWithoutCopyingNonEmptyESt4spanIKhLm184467440"
                           "73709551615EE") __attribute__((weak));
void cn_js_engine_string(JSStringRef *result,
                         void **string) __asm__("_ZN14OpaqueJSString9tryCreateEON3WTF6StringE")
    __attribute__((weak));

/* As in the library's StringImpl.h and OpaqueJSString.h. */
struct string_impl {
    unsigned ref_count;
    unsigned length;
    const void *characters;
    unsigned flags;
};
#define FLAG_8BIT 4u
struct opaque_string {
    unsigned ref_count;
    const struct string_impl *impl; /* NULL: empty */
};

static bool can_make, can_peek;

static const struct string_impl *impl_of(JSStringRef string)
{
    return ((const struct opaque_string *)(const void *)string)->impl;
}

/* Whether a string that the C API has made looks as expected. */
static bool looks_right(JSStringRef string, const void *characters, size_t length, bool is_8bit)
{
    const struct string_impl *impl = impl_of(string);
    return impl && impl->length == length && JSStringGetLength(string) == length &&
           !!(impl->flags & FLAG_8BIT) == is_8bit &&
           memcmp(impl->characters, characters, length << !is_8bit) == 0;
}

void cn_js_string8_setup(void)
{
    static const char narrow[] = "eight bits each";
    static const JSChar wide[] = {0x2603, 'x', 0x416, 0xd83d, 0xde00};
    JSStringRef narrow_string = JSStringCreateWithUTF8CString(narrow);
    JSStringRef wide_string = JSStringCreateWithCharacters(wide, CN_ARRAY_COUNT(wide));
    can_peek = looks_right(narrow_string, narrow, sizeof(narrow) - 1, true) &&
               looks_right(wide_string, wide, CN_ARRAY_COUNT(wide), false);
    JSStringRelease(narrow_string);
    JSStringRelease(wide_string);
    can_make = can_peek && cn_js_engine_string_impl && cn_js_engine_string_impl_static &&
               cn_js_engine_string;
    if (!can_make)
        return;
    JSStringRef copied = cn_js_string8_new((const uint8_t *)narrow, sizeof(narrow) - 1);
    JSStringRef borrowed = cn_js_string8_static((const uint8_t *)narrow, sizeof(narrow) - 1);
    can_make = looks_right(copied, narrow, sizeof(narrow) - 1, true) &&
               looks_right(borrowed, narrow, sizeof(narrow) - 1, true);
    JSStringRelease(copied);
    JSStringRelease(borrowed);
}

JSStringRef cn_js_string8_new(const uint8_t *characters, size_t length)
{
    if (!can_make || length > INT32_MAX) /* the engine's own limit */
        return NULL;
    void *impl;
    JSStringRef string;
    cn_js_engine_string_impl(&impl, characters, length);
    cn_js_engine_string(&string, &impl);
    return string;
}

JSStringRef cn_js_string8_static(const uint8_t *characters, size_t length)
{
    if (!can_make || length == 0 || length > INT32_MAX)
        return NULL;
    void *impl;
    JSStringRef string;
    cn_js_engine_string_impl_static(&impl, characters, length);
    cn_js_engine_string(&string, &impl);
    return string;
}

const uint8_t *cn_js_string8_peek(JSStringRef string)
{
    const struct string_impl *impl = can_peek ? impl_of(string) : NULL;
    return impl && impl->flags & FLAG_8BIT ? impl->characters : NULL;
}
