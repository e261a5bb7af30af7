/* SPDX-License-Identifier: Apache-2.0 */
/* Text decoders (text/decoder.h). The first byte chooses the encoding, the second where
 * the rest is cut in two. Whatever the bytes are: output stays within its bound, a stream cut in
 * two gives what the whole gives, and a fatal decoder fails exactly where another puts U+FFFD. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "text/decoder.h"

static const char *const names[] = {
    "gb18030", "big5",      "euc-jp",   "iso-2022-jp",    "shift_jis",   "euc-kr",
    "gbk",     "utf-16le",  "utf-16be", "windows-1255",   "windows-874", "iso-8859-16",
    "koi8-u",  "macintosh", "ibm866",   "x-user-defined",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    int encoding = cn_encoding_find(names[data[0] % CN_ARRAY_COUNT(names)]);
    CN_ASSERT(encoding >= 0);
    const uint8_t *bytes = data + 2;
    size -= 2;
    size_t cut = size ? data[1] % (size + 1) : 0;

    uint16_t *whole = malloc(cn_decode_bound(size) * sizeof(*whole));
    struct cn_decoder_state state = {0};
    int64_t count = cn_text_decode(encoding, &state, bytes, size, true, false, whole);
    CN_ASSERT(count >= 0);

    uint16_t *first = malloc(cn_decode_bound(cut) * sizeof(*first));
    uint16_t *second = malloc(cn_decode_bound(size - cut) * sizeof(*second));
    state = (struct cn_decoder_state){0};
    int64_t a = cn_text_decode(encoding, &state, bytes, cut, false, false, first);
    int64_t b = cn_text_decode(encoding, &state, bytes + cut, size - cut, true, false, second);
    CN_ASSERT(a >= 0 && b >= 0 && a + b == count);
    CN_ASSERT(!memcmp(whole, first, (size_t)a * sizeof(*whole)));
    CN_ASSERT(!memcmp(whole + a, second, (size_t)b * sizeof(*whole)));

    state = (struct cn_decoder_state){0};
    uint16_t *out = malloc(cn_decode_bound(size) * sizeof(*out));
    int64_t strict = cn_text_decode(encoding, &state, bytes, size, true, true, out);
    bool replaced = false;
    for (int64_t i = 0; i < count; i++)
        replaced |= whole[i] == 0xfffd;
    /* gb18030 and UTF-16 can write U+FFFD itself. */
    CN_ASSERT(strict == count || replaced);
    free(whole);
    free(first);
    free(second);
    free(out);
    return 0;
}
