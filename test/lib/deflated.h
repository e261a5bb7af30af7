/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/deflated.h - bytes as zlib packs them, for tests of who unpacks them. */
#ifndef CN_TEST_DEFLATED_H
#define CN_TEST_DEFLATED_H
#include "base/buf.h"

enum { DEFLATED_GZIP = 31, DEFLATED_ZLIB = 15, DEFLATED_RAW = -15 };

/* The caller's to free. `window_bits` as deflateInit2() takes them. */
struct cn_buf deflated(const void *bytes, size_t size, int window_bits);

#endif
