/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/deflated.h"

#include <zlib.h>

#include "test/lib/test.h"

struct cn_buf deflated(const void *bytes, size_t size, int window_bits)
{
    z_stream z = {0};
    CHECK_INT(Z_OK, deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY));
    struct cn_buf out = {0};
    cn_buf_reserve(&out, deflateBound(&z, size) + 100);
    z.next_in = (Bytef *)bytes;
    z.avail_in = (uInt)size;
    z.next_out = out.data;
    z.avail_out = (uInt)out.capacity;
    CHECK_INT(Z_STREAM_END, deflate(&z, Z_FINISH));
    out.size = z.total_out;
    deflateEnd(&z);
    return out;
}
