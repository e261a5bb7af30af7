/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/ws_side.h - an owner of one end of a WebSocket, which notes what it is told.
 *
 *     cn_ws_end_claim(side.end, &ws_side_ops, &side);
 *     ws_side_say(&side, "hello");
 *     CHECK_STR("m:hi c1000:bye:clean", side.seen);
 *
 * Threads: that of the end's lane. */
#ifndef CN_TEST_WS_SIDE_H
#define CN_TEST_WS_SIDE_H
#include "net/ws_end.h"

struct ws_side {
    struct cn_ws_end *end; /* NULL: it has let go */
    char seen[400];        /* "m:hello hold go c1000:bye:clean"; "b:..." is binary */
    const struct cn_ws_message *last;
};

extern const struct cn_ws_end_ops ws_side_ops;

/* "!": closes with 4001; "?": cuts with 1006; "#...": binary. */
void ws_side_say(struct ws_side *side, const char *text);

#endif
