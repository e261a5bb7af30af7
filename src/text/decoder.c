/* SPDX-License-Identifier: Apache-2.0 */
/* text/decoder.c - https://encoding.spec.whatwg.org/#legacy-single-byte-encodings and
 * the sections after it.
 *
 * D1  A decoder of a multi-byte encoding takes one byte at a time (EOF at the end) and keeps what
 *     it must remember in the state, so that a stream may be cut anywhere.
 * D2  Where the standard puts bytes back before the input, they go onto run->again and are taken
 *     from there before the next byte of the input: between calls nothing is left there. */
#include "text/decoder.h"

#include <string.h>
#include <unicode/ucnv.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"

#define REPLACEMENT 0xfffd /* for what is no text */
#define UNMAPPED 0xffff    /* in a table; a noncharacter, which only gb18030 can write */

struct run; /* one call of cn_text_decode() for a multi-byte encoding */

struct encoding {
    const char *name;
    const char *icu; /* converter the table comes from */
    int64_t (*decode)(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                      size_t size, bool flush, bool fatal, uint16_t *out);
    int (*step)(struct run *run, int byte); /* multi-byte: see D1 */
};

static const struct encoding encodings[];

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
    if (count == 1 && units[0] != REPLACEMENT)
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
    {"koi8-u", 0xae, 0x045e},
    {"koi8-u", 0xbe, 0x040e},
    {"windows-874", 0xdb, UNMAPPED},
    {"windows-874", 0xdc, UNMAPPED},
    {"windows-874", 0xdd, UNMAPPED},
    {"windows-874", 0xde, UNMAPPED},
    {"windows-874", 0xfc, UNMAPPED},
    {"windows-874", 0xfd, UNMAPPED},
    {"windows-874", 0xfe, UNMAPPED},
    {"windows-874", 0xff, UNMAPPED},
    {"windows-1253", 0xaa, UNMAPPED},
    {"windows-1255", 0xca, 0x05ba},
    {"iso-8859-16", 0xa1, 0x0104},
    {"iso-8859-16", 0xa2, 0x0105},
    {"iso-8859-16", 0xa3, 0x0141},
    {"iso-8859-16", 0xa4, 0x20ac},
    {"iso-8859-16", 0xa5, 0x201e},
    {"iso-8859-16", 0xa6, 0x0160},
    {"iso-8859-16", 0xa8, 0x0161},
    {"iso-8859-16", 0xaa, 0x0218},
    {"iso-8859-16", 0xac, 0x0179},
    {"iso-8859-16", 0xae, 0x017a},
    {"iso-8859-16", 0xaf, 0x017b},
    {"iso-8859-16", 0xb2, 0x010c},
    {"iso-8859-16", 0xb3, 0x0142},
    {"iso-8859-16", 0xb4, 0x017d},
    {"iso-8859-16", 0xb5, 0x201d},
    {"iso-8859-16", 0xb8, 0x017e},
    {"iso-8859-16", 0xb9, 0x010d},
    {"iso-8859-16", 0xba, 0x0219},
    {"iso-8859-16", 0xbc, 0x0152},
    {"iso-8859-16", 0xbd, 0x0153},
    {"iso-8859-16", 0xbe, 0x0178},
    {"iso-8859-16", 0xbf, 0x017c},
    {"iso-8859-16", 0xc3, 0x0102},
    {"iso-8859-16", 0xc5, 0x0106},
    {"iso-8859-16", 0xd0, 0x0110},
    {"iso-8859-16", 0xd1, 0x0143},
    {"iso-8859-16", 0xd5, 0x0150},
    {"iso-8859-16", 0xd7, 0x015a},
    {"iso-8859-16", 0xd8, 0x0170},
    {"iso-8859-16", 0xdd, 0x0118},
    {"iso-8859-16", 0xde, 0x021a},
    {"iso-8859-16", 0xe3, 0x0103},
    {"iso-8859-16", 0xe5, 0x0107},
    {"iso-8859-16", 0xf0, 0x0111},
    {"iso-8859-16", 0xf1, 0x0144},
    {"iso-8859-16", 0xf5, 0x0151},
    {"iso-8859-16", 0xf7, 0x015b},
    {"iso-8859-16", 0xf8, 0x0171},
    {"iso-8859-16", 0xfd, 0x0119},
    {"iso-8859-16", 0xfe, 0x021b},
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
        if (unit == UNMAPPED && fatal)
            return CN_EINVALID;
        *at++ = unit == UNMAPPED ? REPLACEMENT : unit;
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
            if (fatal)
                return CN_EINVALID;
            *at++ = REPLACEMENT;
        }
        if (U16_IS_LEAD(unit)) {
            state->have_surrogate = true;
            state->surrogate = unit;
        } else if (U16_IS_TRAIL(unit) && fatal) {
            return CN_EINVALID;
        } else {
            *at++ = U16_IS_TRAIL(unit) ? REPLACEMENT : unit;
        }
    }
    if (flush && (state->lead[1] || state->have_surrogate)) {
        if (fatal)
            return CN_EINVALID;
        *at++ = REPLACEMENT;
    }
    return at - out;
}

/* ---- Multi-byte encodings ---- */

enum { END_OF_INPUT = -1 };
enum { STEP_DONE, STEP_MISTAKE, STEP_FINISHED, STEP_PAIR };

struct run {
    struct cn_decoder_state *state;
    uint16_t *at;
    uint8_t again[3]; /* bytes put back, the next one last */
    int again_count;
    UConverter *converter; /* gb18030: for sequences of four bytes; opened on demand */
};

static void emit(struct run *run, uint32_t c)
{
    if (c >= 0x10000) {
        *run->at++ = U16_LEAD(c);
        *run->at++ = U16_TRAIL(c);
    } else {
        *run->at++ = (uint16_t)c;
    }
}

static void put_back(struct run *run, int byte)
{
    CN_ASSERT(run->again_count < (int)sizeof(run->again));
    if (byte != END_OF_INPUT)
        run->again[run->again_count++] = (uint8_t)byte;
}

static bool in(int byte, int low, int high)
{
    return byte >= low && byte <= high;
}

/* Where the standard's indexes differ from ICU's converters: characters that were private when
 * the converters were made and have a code point of their own since. */
struct addition {
    uint16_t pointer;
    uint16_t unit;
};
static const struct addition big5_additions[] = {
    {1008, 0x9f97},  {1016, 0x9f96},
    {1099, 0x31c0},  {1100, 0x31c1},
    {1101, 0x31c2},  {1102, 0x31c3},
    {1103, 0x31c4},  {1105, 0x31c5},
    {1108, 0x31c6},  {1109, 0x31c7},
    {1112, 0x31c8},  {1114, 0x31c9},
    {1115, 0x31ca},  {1116, 0x31cb},
    {1117, 0x31cc},  {1119, 0x31cd},
    {1120, 0x31ce},  {1170, 0x23da},
    {1171, 0x23db},  {1730, 0x9fa6},
    {1772, 0x9fa7},  {1779, 0x9fa8},
    {1812, 0x9fa9},  {1814, 0x9faa},
    {1816, 0x9fab},  {1821, 0x9fac},
    {1844, 0x9fad},  {1845, 0x9fae},
    {1847, 0x9faf},  {1866, 0x9fb2},
    {1892, 0x9fb3},  {2082, 0x7bb8},
    {2088, 0x7c06},  {2103, 0x7cce},
    {2114, 0x7dd2},  {2123, 0x7e1d},
    {2148, 0x8005},  {2151, 0x8028},
    {2221, 0x83c1},  {2239, 0x84a8},
    {2244, 0x840f},  {2303, 0x89a6},
    {2304, 0x89a9},  {2354, 0x8d77},
    {2400, 0x90fd},  {2413, 0x92b9},
    {2477, 0x975c},  {2498, 0x97ff},
    {2605, 0x9f16},  {2673, 0x8503},
    {2746, 0x5159},  {2747, 0x515b},
    {2748, 0x515d},  {2749, 0x515e},
    {2771, 0x936e},  {2780, 0x7479},
    {2990, 0x6d67},  {3087, 0x799b},
    {3259, 0x9097},  {3301, 0x975d},
    {3436, 0x701e},  {3451, 0x5b28},
    {4136, 0x7201},  {4138, 0x77d7},
    {4141, 0x7e87},  {4182, 0x99d6},
    {4206, 0x91d4},  {4220, 0x60de},
    {4230, 0x6fb6},  {4241, 0x8f36},
    {4258, 0x4fbb},  {4273, 0x71df},
    {4279, 0x9104},  {4282, 0x9df0},
    {4294, 0x83cf},  {4329, 0x5c10},
    {4330, 0x79e3},  {4349, 0x5a67},
    {4419, 0x8f0b},  {4422, 0x7b51},
    {4494, 0x62d0},  {4624, 0x6062},
    {4694, 0x75f9},  {4708, 0x6c4a},
    {4742, 0x9b2e},  {4748, 0x9f17},
    {4815, 0x50ed},  {4828, 0x5f0c},
    {4902, 0x880f},  {4922, 0x62ce},
    {4982, 0x7468},  {4992, 0x7162},
    {4997, 0x7250},  {5432, 0x2400},
    {5433, 0x2401},  {5434, 0x2402},
    {5435, 0x2403},  {5436, 0x2404},
    {5437, 0x2405},  {5438, 0x2406},
    {5439, 0x2407},  {5440, 0x2408},
    {5441, 0x2409},  {5442, 0x240a},
    {5443, 0x240b},  {5444, 0x240c},
    {5445, 0x240d},  {5446, 0x240e},
    {5447, 0x240f},  {5448, 0x2410},
    {5449, 0x2411},  {5450, 0x2412},
    {5451, 0x2413},  {5452, 0x2414},
    {5453, 0x2415},  {5454, 0x2416},
    {5455, 0x2417},  {5456, 0x2418},
    {5457, 0x2419},  {5458, 0x241a},
    {5459, 0x241b},  {5460, 0x241c},
    {5461, 0x241d},  {5462, 0x241e},
    {5463, 0x241f},  {5464, 0x2421},
    {10942, 0x5ef4}, {10946, 0x65e0},
    {10948, 0x7676}, {10950, 0x96b6},
    {10957, 0x3003}, {10958, 0x4edd},
    {11204, 0x31cf}, {11210, 0x9fb0},
    {11212, 0x9fb1}, {19028, 0x5029},
    {19035, 0x507d}, {19088, 0x5305},
    {19096, 0x5344}, {19112, 0x537f},
    {19162, 0x5605}, {19240, 0x5a77},
    {19299, 0x5e75}, {19305, 0x5ed0},
    {19326, 0x5f58}, {19355, 0x60a4},
    {19398, 0x6490}, {19439, 0x6674},
    {19454, 0x675e}, {19553, 0x6c9c},
    {19554, 0x6e1d}, {19557, 0x6e2f},
    {19611, 0x716e}, {19643, 0x732a},
    {19672, 0x745c}, {19697, 0x74e9},
    {19748, 0x7809}, {0},
};
static const struct addition gb18030_additions[] = {
    {6555, 0x3000},  {7182, 0xfe10},  {7183, 0xfe12},  {7184, 0xfe11},  {7185, 0xfe13},
    {7186, 0xfe14},  {7187, 0xfe15},  {7188, 0xfe16},  {7201, 0xfe17},  {7202, 0xfe18},
    {7208, 0xfe19},  {23775, 0x9fb4}, {23783, 0x9fb5}, {23788, 0x9fb6}, {23789, 0x9fb7},
    {23795, 0x9fb8}, {23812, 0x9fb9}, {23829, 0x9fba}, {23845, 0x9fbb}, {0},
};

/* An index of the standard: code points by pointer. */
struct index {
    const char *icu;
    size_t size;
    /* The bytes that have this pointer in the converter's encoding; returns how many. */
    int32_t (*bytes)(unsigned pointer, uint8_t bytes[4]);
    const struct addition *additions; /* ends with a zero; or NULL */
    void *table;                      /* of uint32_t */
};

static int32_t bytes_sjis(unsigned pointer, uint8_t bytes[4])
{
    unsigned lead = pointer / 188, trail = pointer % 188;
    bytes[0] = (uint8_t)(lead + (lead < 0x1f ? 0x81 : 0xc1));
    bytes[1] = (uint8_t)(trail + (trail < 0x3f ? 0x40 : 0x41));
    return 2;
}

static int32_t bytes_jis0212(unsigned pointer, uint8_t bytes[4])
{
    bytes[0] = 0x8f;
    bytes[1] = (uint8_t)(pointer / 94 + 0xa1);
    bytes[2] = (uint8_t)(pointer % 94 + 0xa1);
    return 3;
}

static int32_t bytes_big5(unsigned pointer, uint8_t bytes[4])
{
    unsigned trail = pointer % 157;
    bytes[0] = (uint8_t)(pointer / 157 + 0x81);
    bytes[1] = (uint8_t)(trail + (trail < 0x3f ? 0x40 : 0x62));
    return 2;
}

static int32_t bytes_euc_kr(unsigned pointer, uint8_t bytes[4])
{
    bytes[0] = (uint8_t)(pointer / 190 + 0x81);
    bytes[1] = (uint8_t)(pointer % 190 + 0x41);
    return 2;
}

static int32_t bytes_gb18030(unsigned pointer, uint8_t bytes[4])
{
    unsigned trail = pointer % 190;
    bytes[0] = (uint8_t)(pointer / 190 + 0x81);
    bytes[1] = (uint8_t)(trail + (trail < 0x3f ? 0x40 : 0x41));
    return 2;
}

static struct index index_jis0208 = {"ibm-943_P15A-2003", 60 * 188, bytes_sjis, NULL, NULL};
static struct index index_jis0212 = {"euc-jp", 82 * 94, bytes_jis0212, NULL, NULL};
static struct index index_big5 = {"Big5-HKSCS", 126 * 157, bytes_big5, big5_additions, NULL};
static struct index index_euc_kr = {"windows-949", 126 * 190, bytes_euc_kr, NULL, NULL};
static struct index index_gb18030 = {"gb18030", 126 * 190, bytes_gb18030, gb18030_additions, NULL};

/* The table of an index, or NULL if ICU lacks the converter. */
static const uint32_t *index_table(struct index *index)
{
    uint32_t *table = __atomic_load_n(&index->table, __ATOMIC_ACQUIRE);
    if (table)
        return table;
    UConverter *converter = converter_open(index->icu);
    if (!converter)
        return NULL;
    table = cn_alloc(index->size * sizeof(*table));
    for (unsigned pointer = 0; pointer < index->size; pointer++) {
        uint8_t bytes[4];
        int32_t size = index->bytes(pointer, bytes);
        uint32_t c = converter_lookup(converter, bytes, size);
        /* Private characters are the converter's own; the standard's indexes have few (below). */
        table[pointer] = index != &index_gb18030 && c >= 0xe000 && c < 0xf900 ? UNMAPPED : c;
    }
    ucnv_close(converter);
    for (const struct addition *a = index->additions; a && a->unit; a++)
        table[a->pointer] = a->unit;
    return publish(&index->table, table);
}

/* Only after decode_multi_byte() has made sure that the table is there. */
static uint32_t lookup(struct index *index, unsigned pointer)
{
    const uint32_t *table = __atomic_load_n(&index->table, __ATOMIC_ACQUIRE);
    return pointer < index->size ? table[pointer] : UNMAPPED;
}

/* The end of every two-byte decoder: what the pair means, or a mistake that spares ASCII. */
static int finish_pair(struct run *run, uint32_t c, int byte)
{
    if (c != UNMAPPED) {
        emit(run, c);
        return STEP_DONE;
    }
    if (byte < 0x80)
        put_back(run, byte);
    return STEP_MISTAKE;
}

/* The code point of a sequence of four bytes, or one beyond all. What the converter cannot say, or
 * says by an older edition, is here. */
static uint32_t four_bytes(struct run *run, const uint8_t bytes[4])
{
    static const struct {
        uint8_t bytes[4];
        uint16_t unit;
    } given[] = {
        {{0x81, 0x35, 0xf4, 0x37}, 0xe7c7},
        {{0x84, 0x31, 0xa4, 0x37}, 0xfffd},
        {{0x84, 0x31, 0xa4, 0x39}, 0xffff},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(given); i++) {
        if (memcmp(bytes, given[i].bytes, 4) == 0)
            return given[i].unit;
    }
    if (!run->converter)
        run->converter = converter_open("gb18030");
    uint32_t c = run->converter ? converter_lookup(run->converter, bytes, 4) : UNMAPPED;
    return c == UNMAPPED ? UINT32_MAX : c;
}

/* https://encoding.spec.whatwg.org/#gb18030-decoder */
static int step_gb18030(struct run *run, int byte)
{
    uint8_t *lead = run->state->lead;
    if (byte == END_OF_INPUT) {
        bool waits = lead[0] != 0;
        lead[0] = lead[1] = lead[2] = 0;
        return waits ? STEP_MISTAKE : STEP_FINISHED;
    }
    if (lead[2]) {
        uint8_t bytes[4] = {lead[0], lead[1], lead[2], (uint8_t)byte};
        lead[0] = lead[1] = lead[2] = 0;
        if (!in(byte, 0x30, 0x39)) {
            put_back(run, byte);
            put_back(run, bytes[2]);
            put_back(run, bytes[1]);
            return STEP_MISTAKE;
        }
        uint32_t c = four_bytes(run, bytes);
        if (c > 0x10ffff)
            return STEP_MISTAKE;
        emit(run, c);
        return STEP_DONE;
    }
    if (lead[1]) {
        if (in(byte, 0x81, 0xfe)) {
            lead[2] = (uint8_t)byte;
            return STEP_DONE;
        }
        put_back(run, byte);
        put_back(run, lead[1]);
        lead[0] = lead[1] = 0;
        return STEP_MISTAKE;
    }
    if (lead[0]) {
        if (in(byte, 0x30, 0x39)) {
            lead[1] = (uint8_t)byte;
            return STEP_DONE;
        }
        unsigned first = lead[0];
        lead[0] = 0;
        uint32_t c = UNMAPPED;
        if (in(byte, 0x40, 0x7e) || in(byte, 0x80, 0xfe))
            c = lookup(&index_gb18030,
                       (first - 0x81) * 190 + (unsigned)byte - (byte < 0x7f ? 0x40 : 0x41));
        return finish_pair(run, c, byte);
    }
    if (byte < 0x80)
        emit(run, (uint32_t)byte);
    else if (byte == 0x80)
        emit(run, 0x20ac);
    else if (byte == 0xff)
        return STEP_MISTAKE;
    else
        lead[0] = (uint8_t)byte;
    return STEP_DONE;
}

/* What the two-byte decoders below share: takes the waiting lead byte, 0 if there is none. */
static unsigned take_lead(struct run *run)
{
    unsigned lead = run->state->lead[0];
    run->state->lead[0] = 0;
    return lead;
}

static int start(struct run *run, int byte, bool is_lead)
{
    if (byte < 0x80)
        emit(run, (uint32_t)byte);
    else if (is_lead)
        run->state->lead[0] = (uint8_t)byte;
    else
        return STEP_MISTAKE;
    return STEP_DONE;
}

/* The beginning of the two-byte decoders: STEP_PAIR if `byte` follows the lead byte *lead. */
static int begin_pair(struct run *run, int byte, bool is_lead, unsigned *lead)
{
    *lead = take_lead(run);
    if (byte == END_OF_INPUT)
        return *lead ? STEP_MISTAKE : STEP_FINISHED;
    return *lead ? STEP_PAIR : start(run, byte, is_lead);
}

/* https://encoding.spec.whatwg.org/#big5-decoder */
static int step_big5(struct run *run, int byte)
{
    unsigned lead;
    int rc = begin_pair(run, byte, in(byte, 0x81, 0xfe), &lead);
    if (rc != STEP_PAIR)
        return rc;
    uint32_t c = UNMAPPED;
    if (in(byte, 0x40, 0x7e) || in(byte, 0xa1, 0xfe)) {
        unsigned pointer = (lead - 0x81) * 157 + (unsigned)byte - (byte < 0x7f ? 0x40 : 0x62);
        if (pointer == 1133 || pointer == 1135 || pointer == 1164 || pointer == 1166) {
            emit(run, pointer < 1150 ? 0xca : 0xea);
            c = pointer == 1133 || pointer == 1164 ? 0x304 : 0x30c;
        } else {
            c = lookup(&index_big5, pointer);
        }
    }
    return finish_pair(run, c, byte);
}

/* https://encoding.spec.whatwg.org/#euc-kr-decoder */
static int step_euc_kr(struct run *run, int byte)
{
    unsigned lead;
    int rc = begin_pair(run, byte, in(byte, 0x81, 0xfe), &lead);
    if (rc != STEP_PAIR)
        return rc;
    uint32_t c = UNMAPPED;
    if (in(byte, 0x41, 0xfe))
        c = lookup(&index_euc_kr, (lead - 0x81) * 190 + (unsigned)byte - 0x41);
    return finish_pair(run, c, byte);
}

/* https://encoding.spec.whatwg.org/#shift_jis-decoder */
static int step_shift_jis(struct run *run, int byte)
{
    if (!run->state->lead[0] && (byte == 0x80 || in(byte, 0xa1, 0xdf))) {
        emit(run, byte == 0x80 ? 0x80 : 0xff61 - 0xa1 + (uint32_t)byte);
        return STEP_DONE;
    }
    unsigned lead;
    int rc = begin_pair(run, byte, in(byte, 0x81, 0x9f) || in(byte, 0xe0, 0xfc), &lead);
    if (rc != STEP_PAIR)
        return rc;
    uint32_t c = UNMAPPED;
    if (in(byte, 0x40, 0x7e) || in(byte, 0x80, 0xfc)) {
        unsigned pointer = (lead - (lead < 0xa0 ? 0x81 : 0xc1)) * 188 + (unsigned)byte -
                           (byte < 0x7f ? 0x40 : 0x41);
        c = in((int)pointer, 8836, 10715) ? 0xe000 - 8836 + pointer
                                          : lookup(&index_jis0208, pointer);
    }
    return finish_pair(run, c, byte);
}

/* https://encoding.spec.whatwg.org/#euc-jp-decoder */
static int step_euc_jp(struct run *run, int byte)
{
    unsigned lead;
    int rc = begin_pair(run, byte, byte == 0x8e || byte == 0x8f || in(byte, 0xa1, 0xfe), &lead);
    if (rc != STEP_PAIR)
        return rc;
    if (lead == 0x8e && in(byte, 0xa1, 0xdf)) {
        emit(run, 0xff61 - 0xa1 + (uint32_t)byte);
        return STEP_DONE;
    }
    if (lead == 0x8f && in(byte, 0xa1, 0xfe)) {
        run->state->jis0212 = true;
        run->state->lead[0] = (uint8_t)byte;
        return STEP_DONE;
    }
    uint32_t c = UNMAPPED;
    if (in((int)lead, 0xa1, 0xfe) && in(byte, 0xa1, 0xfe))
        c = lookup(run->state->jis0212 ? &index_jis0212 : &index_jis0208,
                   (lead - 0xa1) * 94 + (unsigned)byte - 0xa1);
    run->state->jis0212 = false;
    return finish_pair(run, c, byte);
}

/* https://encoding.spec.whatwg.org/#iso-2022-jp-decoder */
enum { JP_ASCII, JP_ROMAN, JP_KATAKANA, JP_LEAD, JP_TRAIL, JP_ESCAPE_START, JP_ESCAPE };

static int step_iso_2022_jp(struct run *run, int byte)
{
    struct cn_decoder_state *state = run->state;
    if (state->mode == JP_ESCAPE_START) {
        if (byte == 0x24 || byte == 0x28) {
            state->lead[0] = (uint8_t)byte;
            state->mode = JP_ESCAPE;
            return STEP_DONE;
        }
        put_back(run, byte);
        state->output = false;
        state->mode = state->output_mode;
        return STEP_MISTAKE;
    }
    if (state->mode == JP_ESCAPE) {
        unsigned lead = take_lead(run);
        int mode = lead == 0x28                   ? byte == 0x42   ? JP_ASCII
                                                    : byte == 0x4a ? JP_ROMAN
                                                    : byte == 0x49 ? JP_KATAKANA
                                                                   : -1
                   : byte == 0x40 || byte == 0x42 ? JP_LEAD
                                                  : -1;
        if (mode >= 0) {
            bool twice = state->output;
            state->mode = state->output_mode = (uint8_t)mode;
            state->output = true;
            return twice ? STEP_MISTAKE : STEP_DONE;
        }
        put_back(run, byte);
        put_back(run, (int)lead);
        state->output = false;
        state->mode = state->output_mode;
        return STEP_MISTAKE;
    }
    bool was_trail = state->mode == JP_TRAIL;
    if (byte == 0x1b) {
        state->mode = JP_ESCAPE_START;
        return was_trail ? STEP_MISTAKE : STEP_DONE;
    }
    if (was_trail) {
        state->mode = JP_LEAD;
        if (!in(byte, 0x21, 0x7e))
            return STEP_MISTAKE;
        uint32_t c = lookup(&index_jis0208, (take_lead(run) - 0x21u) * 94 + (unsigned)byte - 0x21);
        if (c == UNMAPPED)
            return STEP_MISTAKE;
        emit(run, c);
        return STEP_DONE;
    }
    if (byte == END_OF_INPUT)
        return STEP_FINISHED;
    state->output = false;
    switch (state->mode) {
    case JP_KATAKANA:
        if (!in(byte, 0x21, 0x5f))
            return STEP_MISTAKE;
        emit(run, 0xff61 - 0x21 + (uint32_t)byte);
        return STEP_DONE;
    case JP_LEAD:
        if (!in(byte, 0x21, 0x7e))
            return STEP_MISTAKE;
        state->lead[0] = (uint8_t)byte;
        state->mode = JP_TRAIL;
        return STEP_DONE;
    default:
        if (byte > 0x7f || byte == 0x0e || byte == 0x0f)
            return STEP_MISTAKE;
        emit(run, state->mode == JP_ROMAN && byte == 0x5c   ? 0xa5
                  : state->mode == JP_ROMAN && byte == 0x7e ? 0x203e
                                                            : (uint32_t)byte);
        return STEP_DONE;
    }
}

static bool tables_ready(int (*step)(struct run *run, int byte))
{
    if (step == step_gb18030)
        return index_table(&index_gb18030);
    if (step == step_big5)
        return index_table(&index_big5);
    if (step == step_euc_kr)
        return index_table(&index_euc_kr);
    return index_table(&index_jis0208) && (step != step_euc_jp || index_table(&index_jis0212));
}

static int64_t decode_multi_byte(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                                 size_t size, bool flush, bool fatal, uint16_t *out)
{
    int (*step)(struct run * run, int byte) = encodings[encoding].step;
    if (!tables_ready(step))
        return CN_EUNSUPPORTED;
    struct run run = {.state = state, .at = out};
    int64_t result = 0;
    for (size_t i = 0; i < size || run.again_count > 0 || flush;) {
        int byte = run.again_count > 0 ? run.again[--run.again_count]
                   : i < size          ? bytes[i++]
                                       : END_OF_INPUT;
        int rc = step(&run, byte);
        if (rc == STEP_FINISHED)
            break;
        if (rc == STEP_MISTAKE) {
            if (fatal) {
                result = CN_EINVALID;
                break;
            }
            *run.at++ = REPLACEMENT;
        }
    }
    if (run.converter)
        ucnv_close(run.converter);
    return result < 0 ? result : run.at - out;
}

#define SINGLE(name, icu)                   \
    {                                       \
        name, icu, decode_single_byte, NULL \
    }
#define MULTI(name, step)                   \
    {                                       \
        name, NULL, decode_multi_byte, step \
    }

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
    SINGLE("iso-8859-16", "iso-8859-1"), /* ICU has none: see patches */
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
    MULTI("gbk", step_gb18030),
    MULTI("gb18030", step_gb18030),
    MULTI("big5", step_big5),
    MULTI("euc-jp", step_euc_jp),
    MULTI("iso-2022-jp", step_iso_2022_jp),
    MULTI("shift_jis", step_shift_jis),
    MULTI("euc-kr", step_euc_kr),
    {"utf-16be", NULL, decode_utf16, NULL},
    {"utf-16le", NULL, decode_utf16, NULL},
    {"x-user-defined", NULL, decode_user_defined, NULL},
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

size_t cn_encoding_count(void)
{
    return CN_ARRAY_COUNT(encodings);
}

int64_t cn_text_decode(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                       size_t size, bool flush, bool fatal, uint16_t *out)
{
    CN_ASSERT(encoding >= 0 && (size_t)encoding < CN_ARRAY_COUNT(encodings));
    int64_t count = encodings[encoding].decode(encoding, state, bytes, size, flush, fatal, out);
    CN_ASSERT(count <= (int64_t)cn_decode_bound(size));
    return count;
}
