/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/target.h"

#include <string.h>

static const char *const platform[CN_TARGET_SEGMENT_MAX] = {"client", "v4"};
static const char *const platform_below[CN_TARGET_SEGMENT_MAX] = {"client", "v4", "**"};

/* Moves past slashes, then past the segment that follows; its beginning, which is `end` if there is
 * none (P2). */
static const char *next_segment(const char **at, const char *end)
{
    while (*at < end && **at == '/')
        ++*at;
    const char *segment = *at;
    while (*at < end && **at != '/')
        ++*at;
    return segment;
}

static const char *path_end(const char *target, size_t size)
{
    const char *query = memchr(target, '?', size);
    return query ? query : target + size; /* P3 */
}

bool cn_target_fits(const char *target, size_t size,
                    const char *const pattern[CN_TARGET_SEGMENT_MAX])
{
    const char *at = target, *end = path_end(target, size);
    for (size_t i = 0;; i++) {
        const char *want = i < CN_TARGET_SEGMENT_MAX ? pattern[i] : NULL;
        if (want && strcmp(want, "**") == 0)
            return at < end && *at == '/';
        const char *segment = next_segment(&at, end);
        size_t length = (size_t)(at - segment);
        if (!want || !length)
            return !want && !length;
        if (strcmp(want, "*") != 0 &&
            (strlen(want) != length || memcmp(segment, want, length) != 0))
            return false;
    }
}

const char *cn_target_segment(const char *target, size_t size, size_t index, size_t *segment_size)
{
    const char *at = target, *end = path_end(target, size), *segment;
    do
        segment = next_segment(&at, end);
    while (index-- > 0);
    *segment_size = (size_t)(at - segment);
    return segment;
}

bool cn_target_is_platform(const char *target, size_t size)
{
    return cn_target_fits(target, size, platform) || cn_target_fits(target, size, platform_below);
}

bool cn_target_pattern_is_platform(const char *const pattern[CN_TARGET_SEGMENT_MAX])
{
    for (size_t i = 0; platform[i]; i++) {
        if (!pattern[i] || strcmp(pattern[i], platform[i]) != 0)
            return false;
    }
    return true;
}
