/* SPDX-License-Identifier: Apache-2.0 */
/* worker/address.h - who has sent a request.
 *
 * A1  CF-Connecting-IP is what the server itself knows: the address of the socket, or, if that is
 *     a proxy in [cairn] trusted_proxies, the last one in X-Forwarded-For that is none of them.
 *     What a client has sent under that name never reaches a worker.
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_ADDRESS_H
#define CN_WORKER_ADDRESS_H
#include <netinet/in.h>
#include <stdbool.h>

struct cn_event;

#define CN_ADDRESS_HEADER "cf-connecting-ip"
enum { CN_ADDRESS_SIZE = INET6_ADDRSTRLEN };

/* Of an event that has come by HTTP. False: it is not known (a socket of the file system). */
bool cn_event_address(const struct cn_event *event, char text[CN_ADDRESS_SIZE]);

#endif
