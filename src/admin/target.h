/* SPDX-License-Identifier: Apache-2.0 */
/* admin/target.h - what a request of the admin listener asks for: the path of its target.
 *
 *   P1  A path is read by one function, cn_target_fits(): who decides whether a token is needed,
 *       who checks the account and who finds the route cannot read it differently. Nobody compares
 *       the text of a target with a prefix.
 *   P2  A segment is what is between slashes, as it was sent. Empty ones count for nothing,
 *       wherever they are ("//a/b/" is "/a/b"), but for those of a key ("**"). A word stands for
 *       itself: one that is encoded, or has other letters, is another word.
 *   P3  The query begins at the first '?' and is no part of the path.
 *
 * A pattern has words, "*" for any segment, and as its last one "**" for all that is left, slashes
 * and empty segments included; NULL ends it.
 *
 * Threads: any. */
#ifndef CN_ADMIN_TARGET_H
#define CN_ADMIN_TARGET_H
#include <stdbool.h>
#include <stddef.h>

#define CN_TARGET_SEGMENT_MAX 12 /* of a pattern */

bool cn_target_fits(const char *target, size_t size,
                    const char *const pattern[CN_TARGET_SEGMENT_MAX]);
/* The segment of that index as it was sent; its size is 0 if there is none. */
const char *cn_target_segment(const char *target, size_t size, size_t index, size_t *segment_size);
/* Whether the target is of the platform's API, /client/v4. */
bool cn_target_is_platform(const char *target, size_t size);
/* The same of a pattern. */
bool cn_target_pattern_is_platform(const char *const pattern[CN_TARGET_SEGMENT_MAX]);

#endif
