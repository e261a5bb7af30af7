/* SPDX-License-Identifier: Apache-2.0 */
/* base/list.h - intrusive doubly linked lists.
 *
 * A list head and its links are the same struct. An unlinked node that may be
 * removed twice is kept initialised (cn_list_init). Use CN_CONTAINER_OF to get
 * from a link to the struct that holds it. */
#ifndef CN_BASE_LIST_H
#define CN_BASE_LIST_H
#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"

struct cn_list {
    struct cn_list *next, *prev;
};

static inline void cn_list_init(struct cn_list *list)
{
    list->next = list->prev = list;
}

static inline bool cn_list_empty(const struct cn_list *list)
{
    return list->next == list;
}

static inline void cn_list_insert_between(struct cn_list *node, struct cn_list *prev,
                                          struct cn_list *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void cn_list_push_back(struct cn_list *list, struct cn_list *node)
{
    cn_list_insert_between(node, list->prev, list);
}

static inline void cn_list_push_front(struct cn_list *list, struct cn_list *node)
{
    cn_list_insert_between(node, list, list->next);
}

/* Leaves `node` initialised: removing it again is harmless. */
static inline void cn_list_remove(struct cn_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    cn_list_init(node);
}

/* The oldest node, unlinked, or NULL. */
static inline struct cn_list *cn_list_take_front(struct cn_list *list)
{
    if (cn_list_empty(list))
        return NULL;
    struct cn_list *node = list->next;
    cn_list_remove(node);
    return node;
}

/* Moves every node of `from` to the end of `to`; `from` becomes empty. */
static inline void cn_list_splice(struct cn_list *to, struct cn_list *from)
{
    if (cn_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    cn_list_init(from);
}

/* Walks over all of it: for checks. */
static inline size_t cn_list_length(const struct cn_list *list)
{
    size_t count = 0;
    for (const struct cn_list *node = list->next; node != list; node = node->next) {
        CN_ASSERT(node->next->prev == node);
        count++;
    }
    return count;
}

/* `node` may be removed inside the loop, and no other: whatever could remove the next one (code of
 * a guest, a callback that is not known here) is called with none of these on the stack. */
#define CN_LIST_FOREACH(list, node)                                                      \
    for (struct cn_list *node = (list)->next, *node##_next = node->next; node != (list); \
         node = node##_next, node##_next = node->next)

#endif
