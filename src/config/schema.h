/* SPDX-License-Identifier: Apache-2.0 */
/* config/schema.h - fills plain C structs from configuration nodes.
 *
 * A schema lists the keys of a table: their kind, where in the struct the
 * value goes, and what holds for it. One reader then does for every key of
 * every table what must never be forgotten: refuse a wrong kind, a missing
 * required key, a value out of range, and above all a key nobody knows.
 *
 * Ownership: texts in the filled struct are borrowed from the node tree, which
 * must outlive it. Arrays are owned; cn_schema_fini() frees them. */
#ifndef CN_CONFIG_SCHEMA_H
#define CN_CONFIG_SCHEMA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_confnode;
struct cn_err;
struct cn_schema;

/* An array of texts. */
struct cn_strings {
    const char **items; /* owned; the texts are borrowed */
    size_t count;
};

/* An array of structs: declare `struct { struct x *items; size_t count; }`. */
struct cn_schema_list {
    void *items;
    size_t count;
};

enum cn_schema_kind {
    CN_FIELD_STRING,            /* const char * */
    CN_FIELD_DATE,              /* const char *: a string, or a date of TOML */
    CN_FIELD_INT,               /* int64_t, within [min, max] */
    CN_FIELD_NUMBER,            /* double */
    CN_FIELD_BOOL,              /* bool */
    CN_FIELD_STRINGS,           /* struct cn_strings */
    CN_FIELD_STRING_OR_STRINGS, /* struct cn_strings */
    CN_FIELD_BOOL_OR_STRINGS,   /* const struct cn_confnode *, one of the two kinds */
    CN_FIELD_NODE,              /* const struct cn_confnode *: anything */
    CN_FIELD_TABLE,             /* the sub-schema's struct, in place */
    CN_FIELD_LIST,              /* struct cn_schema_list of the sub-schema's struct */
    CN_FIELD_MAP, /* the same, from a table: each key goes to the first field of the struct */
    CN_FIELD_STRING_MAP, /* const struct cn_confnode *: a table of strings */
};

enum cn_schema_flags {
    CN_FIELD_REQUIRED = 1,
    CN_FIELD_HOSTED = 2,   /* only means something on the hosted platform: reported, not read */
    CN_FIELD_UNBUILT = 4,  /* known and read, but refused unless it asks for nothing */
    CN_FIELD_TOP_ONLY = 8, /* must not stand in [env.NAME] */
    CN_FIELD_OWN = 16,     /* [env.NAME] does not inherit it from the top level */
    CN_FIELD_QUIET = 32,   /* says nothing that matters here: accepted, not read */
};

struct cn_schema_field {
    const char *name;
    enum cn_schema_kind kind;
    unsigned flags;
    size_t offset;     /* of the value in the struct */
    size_t set_offset; /* of a bool that says "was given"; 0: none */
    const struct cn_schema *sub;
    int64_t min, max;           /* INT; both 0: any */
    const char *const *choices; /* STRING: NULL-terminated list of what is allowed, or NULL */
};

struct cn_schema {
    size_t size; /* of the struct */
    const struct cn_schema_field *fields;
    size_t count;
};

/* What the reader tells while it reads. */
struct cn_schema_reader {
    const char *file; /* for "file:line:column: " */
    /* A key of the hosted platform was met: "path.to.key". May be NULL. */
    void (*on_hosted)(struct cn_schema_reader *reader, const char *key);
    /* One that is refused was met, so that all of them can be told at once. NULL: reading fails. */
    void (*on_refused)(struct cn_schema_reader *reader, const char *key,
                       const struct cn_confnode *node);
    /* A key that nobody knows was met; `meant` (may be NULL) is what was probably meant. True: it is
     * passed over. False, or no such function: reading fails. */
    bool (*on_unknown)(struct cn_schema_reader *reader, const char *key,
                       const struct cn_confnode *node, const char *meant);
    /* A key that its schema does not have was met: 1 if it is somebody else's and was read, 0 if it
     * is unknown. NULL: every such key is unknown. */
    int (*on_other)(struct cn_schema_reader *reader, const char *key,
                    const struct cn_confnode *node, struct cn_err *err);
    void *data;
};

/* Fills `out` (zeroed by the caller) from `table`. `path` is the dotted name of
 * the table, "" at the top. On failure `out` may be half filled: fini it. */
int cn_schema_read(struct cn_schema_reader *reader, const struct cn_schema *schema,
                   const struct cn_confnode *table, const char *path, void *out,
                   struct cn_err *err);
/* One value, whose key is `field`; the checks of cn_schema_read() for it. */
int cn_schema_read_field(struct cn_schema_reader *reader, const struct cn_schema_field *field,
                         const struct cn_confnode *node, const char *path, void *out,
                         struct cn_err *err);
/* A key that nobody knows: passed over (0) or refused, as the reader has it. */
int cn_schema_unknown(struct cn_schema_reader *reader, const char *key,
                      const struct cn_confnode *node, const char *meant, struct cn_err *err);
const struct cn_schema_field *cn_schema_find(const struct cn_schema *schema, const char *name);
void cn_schema_fini(const struct cn_schema *schema, void *out);

/* False, null, nothing in it: a key with such a value asks for nothing. */
bool cn_schema_is_nothing(const struct cn_confnode *node);

/* "file:line:column: sentence"; returns CN_EINVALID. */
int cn_schema_fail(const struct cn_schema_reader *reader, const struct cn_confnode *node,
                   struct cn_err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The word of `words` that is most likely meant by `word`, or NULL if none is
 * near enough. `next` yields the words one by one, then NULL. */
const char *cn_suggest(const char *word, const char *(*next)(const void *data, size_t index),
                       const void *data);

#endif
