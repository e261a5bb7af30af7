/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/node_x509.c - certificates of node:crypto (crypto/certificate.h): read once into plain
 * values, and asked by their DER from then on. The class is in prelude/node/internal/x509.js. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "border/node_x509.h"
#include "crypto/certificate.h"
#include "js/native.h"

/* undefined: it is not there. */
static JSValueRef text_value(JSContextRef ctx, const struct cn_buf *text)
{
    return text->size ? cn_js_text(ctx, (const char *)text->data, text->size)
                      : JSValueMakeUndefined(ctx);
}

static JSValueRef der_value(JSContextRef ctx, const struct cn_buf *der)
{
    return der->size ? cn_js_uint8array(ctx, der->data, der->size) : JSValueMakeNull(ctx);
}

static JSValueRef usages_value(JSContextRef ctx, const struct cn_certificate *certificate,
                               JSValueRef *exception)
{
    if (!certificate->has_usages)
        return JSValueMakeUndefined(ctx);
    JSValueRef items[CN_CERTIFICATE_USAGE_MAX];
    size_t count = 0;
    const char *at = (const char *)certificate->usages.data;
    const char *end = at + certificate->usages.size;
    for (; at < end && count < CN_CERTIFICATE_USAGE_MAX; at += strlen(at) + 1)
        items[count++] = cn_js_text_z(ctx, at);
    return JSObjectMakeArray(ctx, count, items, exception);
}

/* nodeX509Read(PEM or DER) -> [DER, subject, issuer, subjectAltName, infoAccess, validFrom,
 * validTo, serialNumber, ca, extended key usage, public key as DER], or null */
static JSValueRef native_node_x509_read(CN_JS_NATIVE_ARGS)
{
    uint8_t *bytes;
    size_t size;
    if (!cn_js_bytes(ctx, cn_js_arg(0), &bytes, &size))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "nodeX509Read: not a buffer");
    struct cn_certificate certificate;
    if (cn_certificate_read((struct cn_bytes){bytes, size}, &certificate, NULL) < 0)
        return JSValueMakeNull(ctx);
    JSValueRef items[] = {
        der_value(ctx, &certificate.der),
        text_value(ctx, &certificate.subject),
        text_value(ctx, &certificate.issuer),
        text_value(ctx, &certificate.alternative_names),
        text_value(ctx, &certificate.info_access),
        text_value(ctx, &certificate.valid_from),
        text_value(ctx, &certificate.valid_to),
        text_value(ctx, &certificate.serial),
        JSValueMakeBoolean(ctx, certificate.is_authority),
        usages_value(ctx, &certificate, exception),
        der_value(ctx, &certificate.key),
    };
    cn_certificate_fini(&certificate);
    return JSObjectMakeArray(ctx, CN_ARRAY_COUNT(items), items, exception);
}

/* nodeX509Ask(DER, question, text or DER, flags) -> boolean */
static JSValueRef native_node_x509_ask(CN_JS_NATIVE_ARGS)
{
    uint8_t *der, *about = NULL;
    size_t size, about_size = 0;
    char *text = NULL;
    uint32_t question = cn_js_to_uint32(ctx, cn_js_arg(1));
    uint32_t flags = cn_js_to_uint32(ctx, cn_js_arg(3));
    if (question > CN_CERTIFICATE_VERIFY)
        return JSValueMakeBoolean(ctx, false);
    if (question <= CN_CERTIFICATE_IP)
        about = (uint8_t *)(text = cn_js_to_text(ctx, cn_js_arg(2), &about_size));
    bool answer = cn_js_bytes(ctx, cn_js_arg(0), &der, &size) &&
                  (text || cn_js_bytes(ctx, cn_js_arg(2), &about, &about_size));
    answer = answer && cn_certificate_ask((struct cn_bytes){der, size},
                                          (enum cn_certificate_question)question,
                                          (struct cn_bytes){about, about_size}, flags);
    cn_free(text);
    return JSValueMakeBoolean(ctx, answer);
}
