/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/address.h"

#include <string.h>

#include "net/egress.h"
#include "net/server.h"
#include "worker/event.h"
#include "worker/instance.h"
#include "worker/lane.h"

static bool parse_address(const char *text, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof(*address));
    address->ss_family = AF_INET;
    if (uv_inet_pton(AF_INET, text, &v4->sin_addr) == 0)
        return true;
    address->ss_family = AF_INET6;
    return uv_inet_pton(AF_INET6, text, &v6->sin6_addr) == 0;
}

static bool is_trusted(const struct cn_event *event, const char *text)
{
    struct cn_egress *proxies = event->instance->lane->options.proxies;
    struct sockaddr_storage address;
    return proxies && parse_address(text, &address) &&
           !cn_egress_allowed((const struct sockaddr *)&address, proxies);
}

/* The next address from the right of a list that ends at *end; false: there is none, or what is
 * there is no address. */
static bool take_last(const char *list, size_t *end, char text[CN_ADDRESS_SIZE])
{
    while (*end > 0 && (list[*end - 1] == ' ' || list[*end - 1] == '\t' || list[*end - 1] == ','))
        (*end)--;
    size_t begin = *end;
    while (begin > 0 && list[begin - 1] != ',' && list[begin - 1] != ' ' && list[begin - 1] != '\t')
        begin--;
    size_t size = *end - begin;
    if (size == 0 || size >= CN_ADDRESS_SIZE)
        return false;
    memcpy(text, list + begin, size);
    text[size] = 0;
    *end = begin;
    struct sockaddr_storage address;
    return parse_address(text, &address);
}

bool cn_event_address(const struct cn_event *event, char text[CN_ADDRESS_SIZE])
{
    const char *remote = cn_http_request_remote(event->http, NULL);
    if (!remote || !*remote)
        return false;
    size_t size = strnlen(remote, CN_ADDRESS_SIZE - 1);
    memcpy(text, remote, size);
    text[size] = 0;
    if (!is_trusted(event, text))
        return true;
    for (size_t i = event->http->header_count; i-- > 0;) {
        const struct cn_http_header *header = &event->http->headers[i];
        static const char name[] = "x-forwarded-for";
        if (header->name_size != sizeof(name) - 1 || memcmp(header->name, name, sizeof(name) - 1))
            continue;
        size_t end = header->value_size;
        char next[CN_ADDRESS_SIZE];
        while (take_last(header->value, &end, next)) {
            memcpy(text, next, CN_ADDRESS_SIZE);
            if (!is_trusted(event, text))
                return true;
        }
    }
    return true;
}
