/* SPDX-License-Identifier: Apache-2.0 */
#include "net/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/mem.h"

/* Every address as 16 bytes, IPv4 ones mapped. */
struct range {
    uint8_t bytes[16];
    unsigned bits;
};

struct ranges {
    struct range *items; /* owned */
    size_t count;
};

struct cn_egress {
    struct ranges deny, allow;
};

/* What RFC 6890 and its like keep off the internet, multicast included. */
static const char *const private_ranges[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
    "::/127",        "100::/64",        "2001::/23",      "2001:db8::/32",  "fc00::/7",
    "fe80::/10",     "ff00::/8",
};

static bool parse_range(const char *text, struct range *range)
{
    char host[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    size_t size = slash ? (size_t)(slash - text) : strlen(text);
    if (size >= sizeof(host))
        return false;
    memcpy(host, text, size);
    host[size] = 0;
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned width;
    if (inet_pton(AF_INET, host, range->bytes + 12) == 1) {
        memcpy(range->bytes, mapped, sizeof(mapped));
        width = 32;
    } else if (inet_pton(AF_INET6, host, range->bytes) == 1) {
        width = 128;
    } else {
        return false;
    }
    char *end = NULL;
    unsigned long bits = slash ? strtoul(slash + 1, &end, 10) : width;
    if (slash && (end == slash + 1 || *end || slash[1] == '-' || bits > width))
        return false;
    range->bits = (unsigned)bits + (128 - width);
    return true;
}

static void add_range(struct ranges *ranges, const struct range *range)
{
    ranges->items = cn_realloc(ranges->items, (ranges->count + 1) * sizeof(*range));
    ranges->items[ranges->count++] = *range;
}

static int add_texts(struct ranges *ranges, const char *const *texts, size_t count,
                     struct cn_err *err)
{
    struct range range;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(texts[i], "private") == 0) {
            int rc = add_texts(ranges, private_ranges, CN_ARRAY_COUNT(private_ranges), err);
            CN_ASSERT(rc == 0);
        } else if (strcmp(texts[i], "all") == 0) {
            range = (struct range){.bits = 0};
            add_range(ranges, &range);
        } else if (parse_range(texts[i], &range)) {
            add_range(ranges, &range);
        } else {
            return cn_err_set(err, CN_EINVALID,
                              "\"%.60s\" is no range of addresses: write 10.0.0.0/8, fd00::/8, "
                              "private or all",
                              texts[i]);
        }
    }
    return 0;
}

struct cn_egress *cn_egress_new(const char *const *deny, size_t deny_count,
                                const char *const *allow, size_t allow_count, struct cn_err *err)
{
    struct cn_egress *egress = CN_NEW(struct cn_egress);
    if (add_texts(&egress->deny, deny, deny_count, err) == 0 &&
        add_texts(&egress->allow, allow, allow_count, err) == 0)
        return egress;
    cn_egress_free(egress);
    return NULL;
}

void cn_egress_free(struct cn_egress *egress)
{
    if (!egress)
        return;
    cn_free(egress->deny.items);
    cn_free(egress->allow.items);
    cn_free(egress);
}

static bool in_range(const struct range *range, const uint8_t bytes[16])
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(range->bytes, bytes, whole) != 0)
        return false;
    unsigned mask = 0xff00u >> rest & 0xffu;
    return rest == 0 || ((range->bytes[whole] ^ bytes[whole]) & mask) == 0;
}

static bool in_ranges(const struct ranges *ranges, const uint8_t bytes[16])
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (in_range(&ranges->items[i], bytes))
            return true;
    }
    return false;
}

/* E3: an IPv4 address that only travels as IPv6. */
static void unwrap(uint8_t bytes[16])
{
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t six_to_four[2] = {0x20, 0x02};
    uint8_t v4[4];
    if (memcmp(bytes, nat64, sizeof(nat64)) == 0)
        memcpy(v4, bytes + 12, 4);
    else if (memcmp(bytes, six_to_four, sizeof(six_to_four)) == 0)
        memcpy(v4, bytes + 2, 4);
    else
        return;
    memset(bytes, 0, 10);
    bytes[10] = bytes[11] = 0xff;
    memcpy(bytes + 12, v4, 4);
}

bool cn_egress_allowed(const struct sockaddr *address, void *data)
{
    const struct cn_egress *egress = data;
    uint8_t bytes[16] = {[10] = 0xff, [11] = 0xff};
    if (!egress)
        return true;
    if (address->sa_family == AF_INET) {
        memcpy(bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
        unwrap(bytes);
    } else {
        return false;
    }
    return !in_ranges(&egress->deny, bytes) || in_ranges(&egress->allow, bytes);
}
