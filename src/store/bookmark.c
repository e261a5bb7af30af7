/* SPDX-License-Identifier: Apache-2.0 */
#include "store/bookmark.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"

#define KIND_AFTER 0u
#define KIND_BEFORE_RESTORE 0xffffffffu /* sorts behind what happened up to the same LSN */

static uint32_t object_sum(const struct cn_object_key *key)
{
    return cn_crc32c(0, key, sizeof(*key));
}

/* Over the text up to the check field. */
static uint32_t text_sum(const char *text)
{
    return cn_crc32c(0, text, CN_BOOKMARK_SIZE - 1 - 8);
}

void cn_bookmark_format(const struct cn_bookmark *bookmark, const struct cn_object_key *key,
                        char text[CN_BOOKMARK_SIZE])
{
    char check[9];
    snprintf(text, CN_BOOKMARK_SIZE,
             "%08" PRIx32 "-%08" PRIx32 "-%08x-%016" PRIx64 "%08" PRIx32 "%08x",
             (uint32_t)(bookmark->lsn >> 32), (uint32_t)bookmark->lsn,
             bookmark->before_restore ? KIND_BEFORE_RESTORE : KIND_AFTER,
             (uint64_t)bookmark->time_ms, object_sum(key), 0u);
    snprintf(check, sizeof(check), "%08" PRIx32, text_sum(text));
    memcpy(text + CN_BOOKMARK_SIZE - 1 - 8, check, 8);
}

/* Reads `digits` lower-case hexadecimal digits; false if there are others. */
static bool read_hex(const char *text, int digits, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < digits; i++) {
        char c = text[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        *value = *value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

int cn_bookmark_parse(const char *text, size_t size, const struct cn_object_key *key,
                      struct cn_bookmark *bookmark, struct cn_err *err)
{
    uint64_t high, low, kind, time, object, check;
    if (size != CN_BOOKMARK_SIZE - 1 || text[8] != '-' || text[17] != '-' || text[26] != '-' ||
        !read_hex(text, 8, &high) || !read_hex(text + 9, 8, &low) ||
        !read_hex(text + 18, 8, &kind) || !read_hex(text + 27, 16, &time) ||
        !read_hex(text + 43, 8, &object) || !read_hex(text + 51, 8, &check) ||
        check != text_sum(text) || (kind != KIND_AFTER && kind != KIND_BEFORE_RESTORE))
        return cn_err_set(err, CN_EINVALID, "not a bookmark");
    if (object != object_sum(key))
        return cn_err_set(err, CN_EINVALID, "the bookmark belongs to another object");
    *bookmark = (struct cn_bookmark){.lsn = high << 32 | low,
                                     .time_ms = (int64_t)time,
                                     .before_restore = kind == KIND_BEFORE_RESTORE};
    return 0;
}
