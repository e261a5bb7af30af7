/* SPDX-License-Identifier: Apache-2.0 */
#include "v4/formtree.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/mem.h"

enum kind { NOTHING, TEXT, OBJECT, ARRAY }; /* nothing: it was just made */

struct cn_formtree_node {
    enum kind kind;
    char *name;                            /* of a member or a numbered element; owned */
    struct cn_formtree_node *first, *last; /* of an object or array; owned */
    struct cn_formtree_node *next;
    struct cn_buf text;
};

/* One pair of brackets: its inside. */
struct step {
    const char *text;
    size_t size;
};

static struct cn_formtree_node *node_new(const struct step *step)
{
    struct cn_formtree_node *node = CN_NEW(struct cn_formtree_node);
    node->name = cn_strndup(step->text, step->size);
    return node;
}

/* No deeper than CN_FORMTREE_DEPTH_MAX. */
static void node_free(struct cn_formtree_node *node)
{
    while (node) {
        struct cn_formtree_node *next = node->next;
        node_free(node->first);
        cn_buf_fini(&node->text);
        cn_free(node->name);
        cn_free(node);
        node = next;
    }
}

void cn_formtree_fini(struct cn_formtree *tree)
{
    node_free(tree->root);
    *tree = (struct cn_formtree){0};
}

bool cn_formtree_has(const char *root, const char *name, size_t size)
{
    size_t root_size = strlen(root);
    return size > root_size && memcmp(name, root, root_size) == 0 && name[root_size] == '[';
}

/* The brackets of a name; how many, or negative. */
static int read_steps(const char *name, size_t size, struct step steps[CN_FORMTREE_DEPTH_MAX],
                      struct cn_err *err)
{
    const char *at = memchr(name, '[', size), *end = name + size;
    int count = 0;
    while (at < end) {
        const char *close = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
        if (!close || memchr(at, 0, (size_t)(close - at)))
            return cn_err_set(err, CN_EINVALID, "the name of a field is none: %.*s",
                              (int)(size < 60 ? size : 60), name);
        if (count == CN_FORMTREE_DEPTH_MAX)
            return cn_err_set(err, CN_ELIMIT, "a field is nested more than %d deep",
                              CN_FORMTREE_DEPTH_MAX);
        steps[count++] = (struct step){at + 1, (size_t)(close - at - 1)};
        at = close + 1;
    }
    return count;
}

static bool is_element(const struct step *step)
{
    return step->size < 6 && strspn(step->text, "0123456789") >= step->size;
}

static struct cn_formtree_node *find_child(const struct cn_formtree_node *node,
                                           const struct step *step)
{
    for (struct cn_formtree_node *child = node->first; child; child = child->next) {
        if (strlen(child->name) == step->size && memcmp(child->name, step->text, step->size) == 0)
            return child;
    }
    return NULL;
}

/* Whether these steps lead to something that is there. An empty pair leads to a new element. */
static bool has_path(const struct cn_formtree_node *node, const struct step *steps, int count)
{
    for (int i = 0; i < count; i++) {
        node = steps[i].size ? find_child(node, &steps[i]) : NULL;
        if (!node)
            return false;
    }
    return true;
}

static struct cn_formtree_node *append(struct cn_formtree_node *node, const struct step *step)
{
    struct cn_formtree_node *child = node_new(step);
    if (node->last)
        node->last->next = child;
    else
        node->first = child;
    node->last = child;
    return child;
}

/* The child that steps[0] names, which the others lead on from. NULL: F2. */
static struct cn_formtree_node *enter(struct cn_formtree_node *node, const struct step *steps,
                                      int count)
{
    enum kind kind = is_element(&steps[0]) ? ARRAY : OBJECT;
    if (node->kind == NOTHING)
        node->kind = kind;
    if (node->kind != kind)
        return NULL;
    if (steps[0].size) {
        struct cn_formtree_node *child = find_child(node, &steps[0]);
        return child ? child : append(node, &steps[0]);
    }
    bool is_new = !node->last || count == 1 || has_path(node->last, steps + 1, count - 1);
    return is_new ? append(node, &steps[0]) : node->last;
}

int cn_formtree_add(struct cn_formtree *tree, const char *name, size_t name_size, const char *value,
                    size_t value_size, struct cn_err *err)
{
    struct step steps[CN_FORMTREE_DEPTH_MAX];
    int count = read_steps(name, name_size, steps, err);
    if (count < 0)
        return count;
    CN_ASSERT(count > 0);
    if (++tree->count > CN_FORMTREE_FIELD_MAX)
        return cn_err_set(err, CN_ELIMIT, "there are more than %d fields", CN_FORMTREE_FIELD_MAX);
    if (!tree->root)
        tree->root = node_new(&(struct step){"", 0});
    struct cn_formtree_node *node = tree->root;
    for (int i = 0; i < count && node; i++)
        node = enter(node, &steps[i], count - i);
    if (!node || node->kind != NOTHING)
        return cn_err_set(err, CN_EINVALID, "a field is there twice, or is two things: %.*s",
                          (int)(name_size < 60 ? name_size : 60), name);
    node->kind = TEXT;
    cn_buf_append(&node->text, value, value_size);
    return 0;
}

/* --- writing -----------------------------------------------------------------------------------
 */

/* F1: what is no text, wherever it stands in the metadata of a script. */
static bool is_typed(const char *name)
{
    static const char *const names[] = {
        "enabled",        "invocation_logs",
        "persist",        "head_sampling_rate",
        "logpush",        "keep_assets",
        "cpu_ms",         "subrequests",
        "delivery_delay", "limit",
        "period",         "run_worker_first",
        "dimensions",     "size",
        "json",
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* true, false, null and numbers; everything else is text. */
static bool append_plain(struct cn_buf *json, const struct cn_buf *text)
{
    struct cn_json *value =
        text->size < 40 ? cn_json_parse((const char *)text->data, text->size, NULL) : NULL;
    bool plain = value && value->kind != CN_JSON_STRING && value->kind != CN_JSON_ARRAY &&
                 value->kind != CN_JSON_OBJECT;
    if (plain)
        cn_json_write(json, value);
    cn_json_free(value);
    return plain;
}

static void write_node(const struct cn_formtree_node *node, bool typed, struct cn_buf *json)
{
    CN_ASSERT(node->kind != NOTHING); /* every one that is made is entered, or given a text */
    if (node->kind == TEXT) {
        if (!typed || !node->text.size || !append_plain(json, &node->text))
            cn_buf_append_json(json, node->text.data ? (const char *)node->text.data : "",
                               node->text.size);
        return;
    }
    cn_buf_append_byte(json, node->kind == OBJECT ? '{' : '[');
    for (const struct cn_formtree_node *child = node->first; child; child = child->next) {
        if (child != node->first)
            cn_buf_append_byte(json, ',');
        if (node->kind == OBJECT) {
            cn_buf_append_json(json, child->name, strlen(child->name));
            cn_buf_append_byte(json, ':');
        }
        write_node(child, typed || (node->kind == OBJECT && is_typed(child->name)), json);
    }
    cn_buf_append_byte(json, node->kind == OBJECT ? '}' : ']');
}

void cn_formtree_write(const struct cn_formtree *tree, struct cn_buf *json)
{
    CN_ASSERT(tree->root);
    write_node(tree->root, false, json);
}
