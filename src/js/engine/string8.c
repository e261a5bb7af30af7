/* SPDX-License-Identifier: Apache-2.0 */
#include "js/engine/string8.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "js/vm.h"

/* Ref<StringImpl> WTF::StringImpl::create(std::span<const unsigned char>)
 * Ref<StringImpl> WTF::StringImpl::createWithoutCopyingNonEmpty(std::span<const unsigned char>)
 * RefPtr<OpaqueJSString> OpaqueJSString::tryCreate(WTF::String&&)
 * What they return is a class of one pointer, which C++ passes through memory: the first
 * parameter here. A WTF::String is such a class too; the last one takes it over. */
#define CREATE "_ZN3WTF10StringImpl6createESt4spanIKhLm18446744073709551615EE"
#define CREATE_STATIC \
    "_ZN3WTF10StringImpl28createWithoutCopyingNonEmptyESt4spanIKhLm18446744073709551615EE"
#define TRY_CREATE "_ZN14OpaqueJSString9tryCreateEON3WTF6StringE"
static struct {
    void (*create)(void **result, const uint8_t *characters, size_t length);
    void (*create_static)(void **result, const uint8_t *characters, size_t length);
    void (*try_create)(JSStringRef *result, void **string);
} library;

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

static bool usable;

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

/* Made here, a string is what the C API would have made, and the engine takes it for that. */
static bool makes_right(JSContextRef ctx, JSStringRef made, const char *text, size_t length)
{
    if (!made)
        return false;
    JSStringRef usual = JSStringCreateWithUTF8CString(text);
    bool good = looks_right(made, text, length, true) && JSStringIsEqual(made, usual);
    JSStringRef back = JSValueToStringCopy(ctx, JSValueMakeString(ctx, made), NULL);
    good = good && back && JSStringIsEqual(back, usual);
    JSStringRelease(usual);
    JSStringRelease(made);
    if (back)
        JSStringRelease(back);
    return good;
}

static const char *prove(struct cn_js_vm *vm)
{
    static const char narrow[] = "eight bits each";
    static const JSChar wide[] = {0x2603, 'x', 0x416, 0xd83d, 0xde00};
    JSStringRef narrow_string = JSStringCreateWithUTF8CString(narrow);
    JSStringRef wide_string = JSStringCreateWithCharacters(wide, CN_ARRAY_COUNT(wide));
    bool good = looks_right(narrow_string, narrow, sizeof(narrow) - 1, true) &&
                looks_right(wide_string, wide, CN_ARRAY_COUNT(wide), false);
    JSStringRelease(narrow_string);
    JSStringRelease(wide_string);
    if (!good)
        return "strings are laid out otherwise";
    const uint8_t *bytes = (const uint8_t *)narrow;
    JSLock(vm->bare);
    good = makes_right(vm->bare, cn_js_string8_new(bytes, sizeof(narrow) - 1), narrow,
                       sizeof(narrow) - 1) &&
           makes_right(vm->bare, cn_js_string8_static(bytes, sizeof(narrow) - 1), narrow,
                       sizeof(narrow) - 1);
    JSUnlock(vm->bare);
    return good ? NULL : "strings that are made are not what they should be";
}

static void found(void *const functions[])
{
    *(void **)&library.create = functions[0];
    *(void **)&library.create_static = functions[1];
    *(void **)&library.try_create = functions[2];
}

static void use(bool on)
{
    usable = on;
}

const struct cn_js_patch cn_js_patch_strings = {
    .name = "strings",
    .replaces = "nothing: calls StringImpl::create, reads StringImpl",
    .why = "the C API would widen and narrow every text, or convert it character by character",
    .gain = "CPU of a request that reads and sends 100 kB of text 196 -> 144 us",
    .without = "texts are copied and converted on their way",
    .symbols = {CREATE, CREATE_STATIC, TRY_CREATE},
    .found = found,
    .use = use,
    .prove = prove,
};

JSStringRef cn_js_string8_new(const uint8_t *characters, size_t length)
{
    if (!usable || length > INT32_MAX) /* the engine's own limit */
        return NULL;
    void *impl;
    JSStringRef string;
    library.create(&impl, characters, length);
    library.try_create(&string, &impl);
    return string;
}

JSStringRef cn_js_string8_static(const uint8_t *characters, size_t length)
{
    if (!usable || length == 0 || length > INT32_MAX)
        return NULL;
    void *impl;
    JSStringRef string;
    library.create_static(&impl, characters, length);
    library.try_create(&string, &impl);
    return string;
}

bool cn_js_string8_impl_equals(const void *string, const char *text)
{
    const struct string_impl *impl = string;
    size_t length = strlen(text);
    return impl && impl->length == length && impl->flags & FLAG_8BIT &&
           memcmp(impl->characters, text, length) == 0;
}

const uint8_t *cn_js_string8_peek(JSStringRef string)
{
    const struct string_impl *impl = usable ? impl_of(string) : NULL;
    return impl && impl->flags & FLAG_8BIT ? impl->characters : NULL;
}
