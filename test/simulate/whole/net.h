/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/whole/net.h - connections between nodes, in place of net/stream.c, net/tls.c and
 * peer/dial.c.
 *
 * A connection has two ends with bytes on their way to each. Bytes of one direction stay in order;
 * directions and connections know nothing of each other. What is cut (`no_peer`, world.h) is held
 * until it is joined again, or the connection breaks, at one end sooner than at the other. The
 * kernel of a machine takes bytes for a process that is frozen, and says nothing. */
#ifndef CN_TEST_WHOLE_NET_H
#define CN_TEST_WHOLE_NET_H
#include "test/simulate/whole/machine.h"

void net_reset(void);
void net_process_ends(struct process *process);
void net_fault(int n); /* one of its connections breaks, or goes slow */
void net_listens(struct process *process, bool listens);

#endif
