/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/url.c - internationalised domain names (UTS #46) through ICU. */
#include <unicode/uidna.h>

#include "base/mem.h"
#include "border/url.h"
#include "js/native.h"

/* https://url.spec.whatwg.org/#concept-domain-to-ascii with beStrict false: CheckHyphens and
 * VerifyDnsLength are off, so what ICU says about those is not an error. */
#define TOLERATED                                                                              \
    (UIDNA_ERROR_EMPTY_LABEL | UIDNA_ERROR_LABEL_TOO_LONG | UIDNA_ERROR_DOMAIN_NAME_TOO_LONG | \
     UIDNA_ERROR_LEADING_HYPHEN | UIDNA_ERROR_TRAILING_HYPHEN | UIDNA_ERROR_HYPHEN_3_4)

/* A longer name can be no domain, and Punycode takes quadratic time. */
#define DOMAIN_MAX 4096

/* The converter is immutable and may be shared by threads; ICU keeps its data. */
static const UIDNA *idna(void)
{
    static UIDNA *shared;
    UIDNA *found = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    UErrorCode status = U_ZERO_ERROR;
    UIDNA *made =
        uidna_openUTS46(UIDNA_CHECK_BIDI | UIDNA_CHECK_CONTEXTJ | UIDNA_NONTRANSITIONAL_TO_ASCII |
                            UIDNA_NONTRANSITIONAL_TO_UNICODE,
                        &status);
    if (U_FAILURE(status))
        return NULL;
    if (!__atomic_compare_exchange_n(&shared, &found, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        uidna_close(made); /* another lane was first */
        return found;
    }
    return made;
}

static JSValueRef convert(JSContextRef ctx, JSValueRef value, JSValueRef *exception, bool to_ascii)
{
    const UIDNA *converter = idna();
    if (!converter)
        return cn_js_throw(ctx, exception, CN_JS_ERROR, "ICU has no IDNA data");
    JSStringRef name = JSValueToStringCopy(ctx, value, exception);
    if (!name)
        return JSValueMakeUndefined(ctx);
    JSValueRef result = JSValueMakeNull(ctx);
    size_t length = JSStringGetLength(name);
    if (length <= DOMAIN_MAX) {
        const UChar *source = (const UChar *)JSStringGetCharactersPtr(name);
        UIDNAInfo info = UIDNA_INFO_INITIALIZER;
        UErrorCode status = U_ZERO_ERROR;
        int32_t capacity = (int32_t)length * 8 + 256;
        UChar *out = cn_alloc((size_t)capacity * sizeof(*out));
        int32_t size = (to_ascii ? uidna_nameToASCII : uidna_nameToUnicode)(
            converter, source, (int32_t)length, out, capacity, &info, &status);
        if (U_SUCCESS(status) && size <= capacity && (!to_ascii || !(info.errors & ~TOLERATED)))
            result = cn_js_utf16(ctx, (const uint16_t *)out, (size_t)size);
        cn_free(out);
    }
    JSStringRelease(name);
    return result;
}

/* domainToASCII(domain) -> string, or null if it is none */
static JSValueRef native_domain_to_ascii(CN_JS_NATIVE_ARGS)
{
    return convert(ctx, cn_js_arg(0), exception, true);
}

/* domainToUnicode(domain) -> string; labels that are wrong stay as they are */
static JSValueRef native_domain_to_unicode(CN_JS_NATIVE_ARGS)
{
    return convert(ctx, cn_js_arg(0), exception, false);
}
