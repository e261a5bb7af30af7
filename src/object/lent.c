/* SPDX-License-Identifier: Apache-2.0 */
#include "object/lent.h"

#include <stdlib.h>
#include <string.h>

#include "object/id.h"
#include "object/node.h"

/* A number and what ends it; NULL: there is none. */
static const char *read_number(const char *text, char ends, uint32_t *number)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end != ends || value > UINT32_MAX)
        return NULL;
    *number = (uint32_t)value;
    return end;
}

struct cn_lent_address cn_lent_parse(struct cn_node *node, const char *text)
{
    struct cn_lent_address address = {.kind = CN_LENT_NOBODY};
    uint32_t number;
    const char *rest = *text ? read_number(text + 1, ':', &number) : NULL;
    if (!rest)
        return address;
    rest++;
    if (*text == 'w' && read_number(rest, '\0', &address.serial)) {
        address.kind = CN_LENT_WORKER;
        address.lane = number;
    } else if (*text == 'o' && cn_id_from_hex(rest, strlen(rest), address.key.id)) {
        address.ns = cn_node_namespace_find(node, number);
        address.key.namespace_id = number;
        /* A service's own objects ("$...") are nobody's to call. */
        if (address.ns && address.ns->name[0] != '$' &&
            cn_id_valid(&address.ns->keys, address.key.id))
            address.kind = CN_LENT_OBJECT;
    }
    return address;
}
