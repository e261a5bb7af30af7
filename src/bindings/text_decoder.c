/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/text_decoder.c - https://encoding.spec.whatwg.org/#legacy-single-byte-encodings and
 * the sections after it.
 *
 * D1  A decoder takes one byte at a time and answers with what it emits, so that a stream may be
 *     cut anywhere.
 * D2  Where the standard puts bytes back before the input, `again` says how many of the last ones:
 *     they are ASCII and cannot start a sequence. */
#include "bindings/text_decoder.h"

#include <string.h>
#include <unicode/ucnv.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"

#define UNMAPPED 0xffff /* in a table; a noncharacter that no encoding contains */

struct encoding {
    const char *name;
    const char *icu; /* converter the table comes from */
    int64_t (*decode)(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                      size_t size, bool flush, bool fatal, uint16_t *out);
};

static const struct encoding encodings[];

/* Counts a mistake: emits U+FFFD or leaves the function. */
#define MISTAKE()                                                                                  \
    do {                                                                                           \
        if (fatal)                                                                                 \
            return CN_EINVALID;                                                                    \
        *at++ = 0xfffd;                                                                            \
    } while (0)

static UConverter *converter_open(const char *name)
{
    UErrorCode status = U_ZERO_ERROR;
    UConverter *converter = ucnv_open(name, &status);
    if (U_FAILURE(status))
        return NULL;
    ucnv_setToUCallBack(converter, UCNV_TO_U_CALLBACK_STOP, NULL, NULL, NULL, &status);
    return converter;
}

/* The code point that ICU sees in exactly these bytes, or UNMAPPED. */
static uint32_t converter_lookup(UConverter *converter, const uint8_t *bytes, int32_t size)
{
    UErrorCode status = U_ZERO_ERROR;
    UChar units[4];
    ucnv_reset(converter);
    int32_t count = ucnv_toUChars(converter, units, 4, (const char *)bytes, size, &status);
    if (U_FAILURE(status))
        return UNMAPPED;
    if (count == 1 && units[0] != 0xfffd)
        return units[0];
    if (count == 2 && U16_IS_LEAD(units[0]) && U16_IS_TRAIL(units[1]))
        return (uint32_t)U16_GET_SUPPLEMENTARY(units[0], units[1]);
    return UNMAPPED;
}

/* Publishes a table; if another thread was first, its table is used. */
static const void *publish(void **slot, void *made)
{
    void *expected = NULL;
    if (__atomic_compare_exchange_n(slot, &expected, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    cn_free(made);
    return expected;
}

/* Single-byte encodings. */

/* Where the standard's index differs from ICU's converter. */
struct patch {
    const char *name;
    uint8_t byte;
    uint16_t unit;
};
static const struct patch patches[] = {
    {0},
};

static const uint16_t *single_byte_table(int encoding)
{
    static void *tables[64];
    uint16_t *table = __atomic_load_n(&tables[encoding], __ATOMIC_ACQUIRE);
    if (table)
        return table;
    UConverter *converter = converter_open(encodings[encoding].icu);
    if (!converter)
        return NULL;
    table = cn_alloc(128 * sizeof(*table));
    for (unsigned i = 0; i < 128; i++) {
        uint8_t byte = (uint8_t)(128 + i);
        table[i] = (uint16_t)converter_lookup(converter, &byte, 1);
    }
    ucnv_close(converter);
    for (const struct patch *p = patches; p->name; p++) {
        if (!strcmp(p->name, encodings[encoding].name))
            table[p->byte - 128] = p->unit;
    }
    return publish(&tables[encoding], table);
}

static int64_t decode_single_byte(int encoding, struct cn_decoder_state *state,
                                  const uint8_t *bytes, size_t size, bool flush, bool fatal,
                                  uint16_t *out)
{
    const uint16_t *table = single_byte_table(encoding);
    if (!table)
        return CN_EUNSUPPORTED;
    uint16_t *at = out;
    for (size_t i = 0; i < size; i++) {
        uint16_t unit = bytes[i] < 128 ? bytes[i] : table[bytes[i] - 128];
        if (unit == UNMAPPED)
            MISTAKE();
        else
            *at++ = unit;
    }
    return at - out;
}

static int64_t decode_user_defined(int encoding, struct cn_decoder_state *state,
                                   const uint8_t *bytes, size_t size, bool flush, bool fatal,
                                   uint16_t *out)
{
    for (size_t i = 0; i < size; i++)
        out[i] = bytes[i] < 128 ? bytes[i] : (uint16_t)(0xf780 + bytes[i] - 128);
    return (int64_t)size;
}

/* UTF-16: https://encoding.spec.whatwg.org/#shared-utf-16-decoder */
static int64_t decode_utf16(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                            size_t size, bool flush, bool fatal, uint16_t *out)
{
    bool big_endian = !strcmp(encodings[encoding].name, "utf-16be");
    uint16_t *at = out;
    /* lead[0] holds the first byte of a unit plus a mark in lead[1], for it may be zero. */
    for (size_t i = 0; i < size; i++) {
        if (!state->lead[1]) {
            state->lead[0] = bytes[i];
            state->lead[1] = 1;
            continue;
        }
        state->lead[1] = 0;
        uint16_t unit = big_endian ? (uint16_t)(state->lead[0] << 8 | bytes[i])
                                   : (uint16_t)(bytes[i] << 8 | state->lead[0]);
        if (state->have_surrogate) {
            state->have_surrogate = false;
            if (U16_IS_TRAIL(unit)) {
                *at++ = state->surrogate;
                *at++ = unit;
                continue;
            }
            MISTAKE();
        }
        if (U16_IS_LEAD(unit)) {
            state->have_surrogate = true;
            state->surrogate = unit;
        } else if (U16_IS_TRAIL(unit)) {
            MISTAKE();
        } else {
            *at++ = unit;
        }
    }
    if (flush && (state->lead[1] || state->have_surrogate))
        MISTAKE();
    return at - out;
}

#define SINGLE(name, icu) {name, icu, decode_single_byte}

static const struct encoding encodings[] = {
    SINGLE("ibm866", "ibm-866"),
    SINGLE("iso-8859-2", "iso-8859-2"),
    SINGLE("iso-8859-3", "iso-8859-3"),
    SINGLE("iso-8859-4", "iso-8859-4"),
    SINGLE("iso-8859-5", "iso-8859-5"),
    SINGLE("iso-8859-6", "iso-8859-6"),
    SINGLE("iso-8859-7", "iso-8859-7"),
    SINGLE("iso-8859-8", "iso-8859-8"),
    SINGLE("iso-8859-8-i", "iso-8859-8"),
    SINGLE("iso-8859-10", "iso-8859-10"),
    SINGLE("iso-8859-13", "iso-8859-13"),
    SINGLE("iso-8859-14", "iso-8859-14"),
    SINGLE("iso-8859-15", "iso-8859-15"),
    SINGLE("iso-8859-16", "iso-8859-16"),
    SINGLE("koi8-r", "koi8-r"),
    SINGLE("koi8-u", "koi8-u"),
    SINGLE("macintosh", "macintosh"),
    SINGLE("windows-874", "windows-874"),
    SINGLE("windows-1250", "windows-1250"),
    SINGLE("windows-1251", "windows-1251"),
    SINGLE("windows-1252", "windows-1252"),
    SINGLE("windows-1253", "windows-1253"),
    SINGLE("windows-1254", "windows-1254"),
    SINGLE("windows-1255", "windows-1255"),
    SINGLE("windows-1256", "windows-1256"),
    SINGLE("windows-1257", "windows-1257"),
    SINGLE("windows-1258", "windows-1258"),
    SINGLE("x-mac-cyrillic", "x-mac-cyrillic"),
    {"utf-16be", NULL, decode_utf16},
    {"utf-16le", NULL, decode_utf16},
    {"x-user-defined", NULL, decode_user_defined},
};

_Static_assert(CN_ARRAY_COUNT(encodings) <= 64, "single_byte_table() has room for 64");

int cn_encoding_find(const char *name)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(encodings); i++) {
        if (!strcmp(encodings[i].name, name))
            return (int)i;
    }
    return -1;
}

int64_t cn_text_decode(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                       size_t size, bool flush, bool fatal, uint16_t *out)
{
    CN_ASSERT(encoding >= 0 && (size_t)encoding < CN_ARRAY_COUNT(encodings));
    int64_t count = encodings[encoding].decode(encoding, state, bytes, size, flush, fatal, out);
    CN_ASSERT(count <= (int64_t)cn_decode_bound(size));
    return count;
}
