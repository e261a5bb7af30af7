/* SPDX-License-Identifier: Apache-2.0 */
/* store/bookmark.h - a moment in the life of one object, as text.
 *
 *     00000000-000004d2-00000000-0000019a8b2c3d4e5f60718293a4b5c6
 *     |LSN, 64 bits   | |kind  | |time in ms    ||object||check |
 *
 * Bookmarks of one node are ordered as text as they are in time. A bookmark
 * belongs to one object; the last two fields tell one that was mistyped or is
 * another object's from a good one (they are checksums, not secrets).
 *
 * Threads: pure functions. */
#ifndef CN_STORE_BOOKMARK_H
#define CN_STORE_BOOKMARK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/record.h"

#define CN_BOOKMARK_SIZE 60 /* with the NUL */

struct cn_bookmark {
    uint64_t lsn; /* the state after every commit of the object up to this LSN */
    int64_t time_ms;
    /* Instead: the state just before the first restore of the object after `lsn`, or the
     * present one if there was none. So a restore that is yet to come can be undone. */
    bool before_restore;
};

void cn_bookmark_format(const struct cn_bookmark *bookmark, const struct cn_object_key *key,
                        char text[CN_BOOKMARK_SIZE]);
/* CN_EINVALID with a sentence if it is none, or none of this object. */
int cn_bookmark_parse(const char *text, size_t size, const struct cn_object_key *key,
                      struct cn_bookmark *bookmark, struct cn_err *err);

#endif
