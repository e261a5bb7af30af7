/* SPDX-License-Identifier: Apache-2.0 */
/* config/confnode.h - one tree for every configuration format.
 *
 * The TOML and the JSONC parser both produce it, so that whatever reads a
 * configuration knows neither. Each node remembers where it stands in its
 * file, because every complaint about it must say so.
 *
 * Ownership: a table or array owns its children; cn_confnode_free() of the
 * root frees all. Texts may hold NUL bytes ("\u0000"): use the length. */
#ifndef CN_CONFIG_CONFNODE_H
#define CN_CONFIG_CONFNODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct cn_buf;
struct cn_err;

enum cn_confnode_kind {
    CN_CONF_TABLE,
    CN_CONF_ARRAY,
    CN_CONF_STRING,
    CN_CONF_INTEGER,
    CN_CONF_FLOAT,
    CN_CONF_BOOL,
    CN_CONF_DATETIME, /* TOML only; kept as the text that was written */
    CN_CONF_NULL,     /* JSON only */
};

struct cn_confnode {
    enum cn_confnode_kind kind;
    unsigned flags;   /* private to the parser that builds the node */
    int line, column; /* where the value (for a table in TOML: its header) stands, from 1 */
    char *key;        /* name in the parent table, owned; NULL in an array and at the root */
    union {
        struct {
            struct cn_confnode **items; /* owned, in the order of the file */
            size_t count;
            size_t capacity;
            struct cn_map *index; /* table with many keys: name to child; NULL otherwise */
        };
        struct {
            char *text; /* owned, NUL-terminated */
            size_t length;
        };
        int64_t integer;
        double number;
        bool boolean;
    };
};

/* Bounds for every format. A configuration past one of them is refused. */
#define CN_CONF_SIZE_MAX (4u << 20)
#define CN_CONF_DEPTH_MAX 64
#define CN_CONF_NODE_MAX 200000

struct cn_confnode *cn_confnode_new(enum cn_confnode_kind kind, int line, int column);
struct cn_confnode *cn_confnode_new_text(enum cn_confnode_kind kind, const char *text,
                                         size_t length, int line, int column);
void cn_confnode_free(struct cn_confnode *node); /* NULL is fine */

/* The child called `key`, or NULL. `table` must be a table. */
struct cn_confnode *cn_confnode_find(const struct cn_confnode *table, const char *key);
/* Adds a child that is not there yet and takes it over; `key` is copied. */
void cn_confnode_add(struct cn_confnode *table, const char *key, struct cn_confnode *child);
void cn_confnode_push(struct cn_confnode *array, struct cn_confnode *child);

/* "a string", "a table"...: for complaints. Static storage. */
const char *cn_confnode_kind_name(enum cn_confnode_kind kind);
/* Appends the node as JSON. Dates become strings; inf and nan become null. */
void cn_confnode_write_json(const struct cn_confnode *node, struct cn_buf *out);

/* Strict parsers: the whole text must be well formed. `name` is the file name
 * that errors begin with: "name:line:column: sentence". NULL on failure. */
struct cn_confnode *cn_toml_parse(const char *name, const char *text, size_t length,
                                  struct cn_err *err);
/* JSON with comments and trailing commas. The root may be any value. */
struct cn_confnode *cn_jsonc_parse(const char *name, const char *text, size_t length,
                                   struct cn_err *err);

#endif
