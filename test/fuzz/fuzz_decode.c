/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a Content-Encoding, the rest a body that claims to have it. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "net/decode.h"

#define OUTPUT_MAX (4u << 20) /* enough to see; a bomb may go on for gigabytes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = memchr(data, '\n', size);
    if (!line)
        return 0;
    char *coding = cn_strndup((const char *)data, (size_t)(line - data));
    struct cn_decode *decode = cn_decode_new(coding, NULL);
    cn_free(coding);
    if (!decode)
        return 0;
    const uint8_t *at = line + 1, *end = data + size, *bytes;
    size_t made = 0;
    int rc = 0;
    while (at < end && rc == 0 && made < OUTPUT_MAX) {
        size_t piece = (size_t)(end - at) < 61 ? (size_t)(end - at) : 61;
        cn_decode_feed(decode, at, piece);
        at += piece;
        while (made < OUTPUT_MAX && (rc = cn_decode_next(decode, &bytes, NULL)) > 0) {
            CN_ASSERT(rc <= CN_DECODE_CHUNK);
            made += (size_t)rc;
        }
    }
    (void)cn_decode_finish(decode, NULL); /* either answer is right here */
    cn_decode_free(decode);
    return 0;
}
