/* SPDX-License-Identifier: Apache-2.0 */
/* html/selector.h - CSS selectors matched while a document streams by.
 *
 * What can be decided when a start tag is seen is supported: type, universal,
 * class, id and attribute selectors, :first-child, :nth-child(), :first-of-type,
 * :nth-of-type(), :not() of compounds, descendant and child combinators, lists.
 *
 * A selector is a chain of compounds. Every compound of every selector has a
 * number; for each open element the caller keeps two sets of such numbers:
 * `matched`, the compounds whose chain ends at this element, and `inherited`,
 * those whose chain ends at it or at an ancestor. Both follow from the parent's
 * sets and the tag alone, so nothing of an ancestor but its sets is kept.
 *
 * Ownership: the set owns everything; texts are borrowed during add(). */
#ifndef CN_HTML_SELECTOR_H
#define CN_HTML_SELECTOR_H
#include "base/err.h"
#include "html/tokenizer.h"

#define CN_HTML_COMPOUND_MAX 4096 /* in one set */
#define CN_HTML_SIMPLE_MAX 65536  /* conditions of all its compounds */

struct cn_html_compound;

struct cn_html_selectors {
    struct cn_html_compound *compounds;
    size_t count, capacity;
    size_t simple_count;
    bool uses_type_index; /* somebody asks for :nth-of-type */
};

void cn_html_selectors_fini(struct cn_html_selectors *set);

/* Adds a selector list; what matches it belongs to `handler`. CN_EINVALID with the platform's
 * sentence for what is not a selector or not supported; CN_ELIMIT for too many. */
int cn_html_selectors_add(struct cn_html_selectors *set, const char *text, size_t size,
                          unsigned handler, struct cn_err *err);

/* Words in a set of compounds. */
static inline size_t cn_html_selectors_words(const struct cn_html_selectors *set)
{
    return (set->count + 63) / 64;
}

struct cn_html_element {
    const struct cn_html_token *tag;
    uint32_t child_index; /* among its siblings, from 1 */
    uint32_t type_index;  /* among those of its name, from 1 */
    uint64_t work_left;   /* steps; at 0 the search is given up */
};

/* Fills `matched` from the parent's sets; both are NULL for the document. Of no use if
 * element->work_left is 0 then: what selectors look at is their number times the tag's size. */
void cn_html_selectors_match(const struct cn_html_selectors *set, struct cn_html_element *element,
                             const uint64_t *parent_matched, const uint64_t *parent_inherited,
                             uint64_t *matched);

/* The handler that the compound numbered `compound` completes, or -1. */
int cn_html_selectors_handler(const struct cn_html_selectors *set, size_t compound);

#endif
