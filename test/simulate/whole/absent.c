/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/absent.c - what the code under test can call and never does here, since
 * nobody asks for it: services, WebSockets, workers in JavaScript, exports. */
#include <stdio.h>
#include <stdlib.h>

#define ABSENT(name)                                        \
    void name(void);                                        \
    void name(void)                                         \
    {                                                       \
        fprintf(stderr, #name "() is not in this world\n"); \
        abort();                                            \
    }

ABSENT(cn_dispatch_free)
ABSENT(cn_dispatch_has_taker)
ABSENT(cn_dispatch_new)
ABSENT(cn_dispatch_send)
ABSENT(cn_node_calls_ticket_free)
ABSENT(cn_pool_start)
ABSENT(cn_service_call_free)
ABSENT(cn_service_call_init)
ABSENT(cn_service_call_of)
ABSENT(cn_service_named)
ABSENT(cn_service_namespace)
ABSENT(cn_service_wire_answer)
ABSENT(cn_service_wire_answered)
ABSENT(cn_service_wire_ask)
ABSENT(cn_service_wire_asked)
ABSENT(cn_service_wire_has)
ABSENT(cn_ws_end_claim)
ABSENT(cn_ws_end_close)
ABSENT(cn_ws_end_hold)
ABSENT(cn_ws_end_let_go)
ABSENT(cn_ws_end_put_back)
ABSENT(cn_ws_end_ref)
ABSENT(cn_ws_end_release)
ABSENT(cn_ws_end_send)
ABSENT(cn_ws_end_take)
ABSENT(cn_ws_end_unref)
ABSENT(cn_ws_far_asked)
ABSENT(cn_ws_far_break)
ABSENT(cn_ws_item_free)
ABSENT(cn_ws_message_new)
ABSENT(cn_ws_message_ref)
ABSENT(cn_ws_message_unref)
ABSENT(cn_ws_move_tie)
