/* SPDX-License-Identifier: Apache-2.0 */
/* text/decoder.h - bytes of any encoding but UTF-8 to UTF-16.
 *
 * The decoders are those of the Encoding standard, step by step, because what
 * they do with mistakes is part of it. Only the tables ("indexes") come from
 * ICU's converters; each is made at its first use and kept.
 *
 * Threads:   any; tables are published atomically and never change.
 * Ownership: the state is the caller's, plain bytes, zeroed at the start of a stream. */
#ifndef CN_TEXT_DECODER_H
#define CN_TEXT_DECODER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_decoder_state {
    uint8_t lead[3];     /* bytes read of a sequence that is not complete, 0: none */
    uint8_t mode;        /* ISO-2022-JP: decoder state */
    uint8_t output_mode; /* ISO-2022-JP: decoder output state */
    bool output;         /* ISO-2022-JP: output flag */
    bool jis0212;        /* EUC-JP */
    bool have_surrogate; /* UTF-16 */
    uint16_t surrogate;  /* UTF-16: a lead surrogate that waits */
};

/* Number of the encoding with this lower-case name, or -1. UTF-8 is not among them. */
int cn_encoding_find(const char *name);
size_t cn_encoding_count(void);

/* The most UTF-16 units that `size` bytes can give. */
static inline size_t cn_decode_bound(size_t size)
{
    return size * 2 + 8;
}

/* Decodes into `out` (room for cn_decode_bound(size)) and returns the number of units. `flush`:
 * the stream ends here. A mistake becomes U+FFFD, or, if `fatal`, CN_EINVALID is returned.
 * CN_EUNSUPPORTED: the system's ICU lacks the table. */
int64_t cn_text_decode(int encoding, struct cn_decoder_state *state, const uint8_t *bytes,
                       size_t size, bool flush, bool fatal, uint16_t *out);

#endif
