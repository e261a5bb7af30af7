/* SPDX-License-Identifier: Apache-2.0 */
#include "object/lent.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "object/id.h"
#include "object/node.h"
#include "text/clone.h"

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

/* --- notes ------------------------------------------------------------------------------------ */

static bool read_int(const uint8_t *bytes, size_t size, double *number)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size && i < 5; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] & 0x80)
            continue;
        *number = (double)(value >> 1);
        return i + 1 == size && value <= UINT32_MAX && !(value & 1);
    }
    return false;
}

/* A number that is not negative, as structured-clone.md has it. */
static bool read_bytes(const uint8_t *bytes, size_t size, double *number)
{
    if (size < 2 || bytes[0] != FORMAT_VERSION)
        return false;
    if (bytes[1] == TAG_INT)
        return read_int(bytes + 2, size - 2, number);
    if (bytes[1] >= TAG_SMALL_INT - SMALL_INT_MIN && size == 2) {
        *number = bytes[1] - TAG_SMALL_INT + SMALL_INT_MIN;
        return true;
    }
    if (bytes[1] != TAG_DOUBLE || size != 2 + sizeof(*number))
        return false;
    memcpy(number, bytes + 2, sizeof(*number));
    return *number >= 0 && *number <= 9007199254740991.0;
}

size_t cn_lent_number_write(double number, uint8_t bytes[CN_LENT_NUMBER_SIZE])
{
    bytes[0] = FORMAT_VERSION;
    bytes[1] = TAG_DOUBLE;
    memcpy(bytes + 2, &number, sizeof(number));
    return 2 + sizeof(number);
}

bool cn_lent_mark_read(const char *text, uint64_t *disk, uint64_t *session)
{
    text = read_number(text, 16, UINT64_MAX, disk);
    if (!text || *text != '.')
        return false;
    text = read_number(text + 1, 16, UINT64_MAX, session);
    return text && !*text && *disk && *session;
}

struct cn_lent_note cn_lent_note_read(const char *method, const uint8_t *bytes, size_t size)
{
    static const char lend[] = "~lend@";
    struct cn_lent_note note = {.kind = CN_LENT_NO_NOTE};
    if (*method != '~' || !read_bytes(bytes, size, &note.number))
        return note;
    if (strcmp(method, "~retain") == 0)
        note.kind = CN_LENT_RETAIN;
    else if (strcmp(method, "~release") == 0)
        note.kind = CN_LENT_RELEASE;
    else if (strncmp(method, lend, sizeof(lend) - 1) == 0 &&
             cn_lent_mark_read(method + sizeof(lend) - 1, &note.disk, &note.session))
        note.kind = CN_LENT_LEND;
    return note;
}

/* --- what an answer has ----------------------------------------------------------------------- */

void cn_lent_list_add(struct cn_lent_list *list, char *address, double number)
{
    if (!list->wanted) {
        cn_free(address);
        return;
    }
    CN_GROW_COUNTED(list->items, list->count);
    list->items[list->count++] = (struct cn_lent_given){address, number};
}

void cn_lent_list_fini(struct cn_lent_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        cn_free(list->items[i].address);
    cn_free(list->items);
    list->items = NULL;
    list->count = 0;
}

void cn_lent_list_move(struct cn_lent_list *list, struct cn_lent_list *from)
{
    cn_lent_list_fini(list);
    if (!list->wanted) {
        cn_lent_list_fini(from);
        return;
    }
    list->items = from->items;
    list->count = from->count;
    from->items = NULL;
    from->count = 0;
}
