/* SPDX-License-Identifier: Apache-2.0 */
/* v4/formtree.h - JSON that comes as fields of a form, as the API's own clients send it:
 *
 *     metadata[main_module]=index.js                {"main_module":"index.js",
 *     metadata[bindings][][name]=A                   "bindings":[{"name":"A","type":"json",
 *     metadata[bindings][][type]=json         ──►                 "json":[1,true]},
 *     metadata[bindings][][json][]=1                             {"name":"B"}]}
 *     metadata[bindings][][json][]=true
 *     metadata[bindings][][name]=B
 *
 * A name in brackets is a member, an empty pair or a number an element. An element of the empty
 * pair is the last one, or a new one if the last has that member already: fields come in order.
 *
 *   F1  A value is text. Under names that are never text here (formtree.c has the list) and below
 *       "json", true, false and numbers are what they look like.
 *   F2  What is a member cannot be an element or a text as well: that is refused.
 *   F3  Fields, and how deep they go, are bounded.
 *
 * Threads:   none of its own.
 * Ownership: the caller's memory. */
#ifndef CN_V4_FORMTREE_H
#define CN_V4_FORMTREE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define CN_FORMTREE_FIELD_MAX 5000
#define CN_FORMTREE_DEPTH_MAX 16

struct cn_formtree_node;

struct cn_formtree {
    struct cn_formtree_node *root; /* owned; NULL: there was no field */
    size_t count;                  /* of fields */
};

void cn_formtree_fini(struct cn_formtree *tree);
/* Whether a field of this name belongs to the tree called `root`: root[...]. */
bool cn_formtree_has(const char *root, const char *name, size_t size);
/* Adds a field for which that is so. CN_EINVALID and CN_ELIMIT with a sentence. */
int cn_formtree_add(struct cn_formtree *tree, const char *name, size_t name_size, const char *value,
                    size_t value_size, struct cn_err *err);
/* Appends the tree as JSON; there was a field. Values need not be UTF-8: who reads the text finds
 * out. */
void cn_formtree_write(const struct cn_formtree *tree, struct cn_buf *json);

#endif
