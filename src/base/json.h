/* SPDX-License-Identifier: Apache-2.0 */
/* base/json.h - a strict reader of JSON (RFC 8259) into a tree.
 *
 * For texts that come over a socket: depth and number of members are bounded, a name that appears
 * twice in an object is refused, and so is anything behind the value. Writing is done with
 * cn_buf_append_json().
 *
 * Threads:   none of its own.
 * Ownership: cn_json_parse() allocates the tree as one; cn_json_free() frees it. */
#ifndef CN_BASE_JSON_H
#define CN_BASE_JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cn_buf;

enum cn_json_kind {
    CN_JSON_NULL,
    CN_JSON_BOOL,
    CN_JSON_INT,    /* a whole number that fits 64 bits, written without fraction or exponent */
    CN_JSON_NUMBER, /* any other number */
    CN_JSON_STRING,
    CN_JSON_ARRAY,
    CN_JSON_OBJECT,
};

struct cn_json {
    enum cn_json_kind kind;
    bool boolean;
    int64_t integer;
    double number; /* of a CN_JSON_INT too */
    char *text;    /* of a string: UTF-8, terminated; may hold NUL: use size */
    size_t size;
    char *name;            /* of a member of an object, terminated */
    struct cn_json *first; /* of an array or object */
    struct cn_json *next;  /* after this one in its array or object */
    void *owner;           /* of the root: private */
};

#define CN_JSON_DEPTH_MAX 64
#define CN_JSON_MEMBER_MAX (1 << 17) /* of one object */

/* NULL with a sentence if it is malformed; the caller bounds `size`. */
struct cn_json *cn_json_parse(const char *text, size_t size, struct cn_err *err);
/* The same, refused if it has more than so many values: one of two bytes becomes a hundred. */
struct cn_json *cn_json_parse_some(const char *text, size_t size, size_t values_max,
                                   struct cn_err *err);
/* What the tree of a text takes at the most, for who accounts for it before there is one. */
size_t cn_json_cost(const char *text, size_t size, size_t values_max);
#define CN_JSON_ASKED_MAX (1u << 20)     /* values of what comes over a socket */
void cn_json_free(struct cn_json *root); /* NULL is fine */

/* Appends a tree as text on one line. */
void cn_json_write(struct cn_buf *out, const struct cn_json *json);

/* The member `name` of an object; NULL if it is not there, or if `object` is none (or NULL). */
const struct cn_json *cn_json_find(const struct cn_json *object, const char *name);
/* The text of a member that is a string, else NULL. */
const char *cn_json_text(const struct cn_json *object, const char *name);
/* The number of a member that is a whole one, else 0. */
int64_t cn_json_int(const struct cn_json *object, const char *name);

#endif
