/* SPDX-License-Identifier: Apache-2.0 */
#include "object/lent.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "object/id.h"
#include "object/node.h"

/* A number and what is behind it; NULL: there is none. */
static const char *read_number(const char *text, int base, uint64_t max, uint64_t *number)
{
    char *end;
    if (!isxdigit((unsigned char)*text) || (base == 10 && !isdigit((unsigned char)*text)))
        return NULL;
    unsigned long long value = strtoull(text, &end, base);
    if (value > max)
        return NULL;
    *number = value;
    return end;
}

/* Whose a worker is: nothing, the mark of this node, or that of another. */
static bool read_node(struct cn_node *node, const char *text, struct cn_lent_address *address)
{
    if (strcmp(text, node ? cn_node_mark(node) : "") == 0)
        return true;
    if (*text != '@' || !node || !*cn_node_mark(node))
        return false;
    text = read_number(text + 1, 16, UINT64_MAX, &address->disk);
    if (!text || *text != '.')
        return false;
    text = read_number(text + 1, 16, UINT64_MAX, &address->life);
    return text && !*text && address->disk;
}

struct cn_lent_address cn_lent_parse(struct cn_node *node, const char *text)
{
    struct cn_lent_address address = {.kind = CN_LENT_NOBODY};
    uint64_t number, serial;
    const char *rest = *text ? read_number(text + 1, 10, UINT32_MAX, &number) : NULL;
    if (!rest || *rest++ != ':')
        return address;
    if (*text == 'w') {
        rest = read_number(rest, 10, UINT32_MAX, &serial);
        if (!rest || !read_node(node, rest, &address))
            return (struct cn_lent_address){.kind = CN_LENT_NOBODY};
        address.kind = CN_LENT_WORKER;
        address.lane = (unsigned)number;
        address.serial = (uint32_t)serial;
    } else if (*text == 'o' && node && cn_id_from_hex(rest, strlen(rest), address.key.id)) {
        address.ns = cn_node_namespace_find(node, (uint32_t)number);
        address.key.namespace_id = (uint32_t)number;
        /* A service's own objects ("$...") are nobody's to call. */
        if (address.ns && address.ns->name[0] != '$' &&
            cn_id_valid(&address.ns->keys, address.key.id))
            address.kind = CN_LENT_OBJECT;
    }
    return address;
}
