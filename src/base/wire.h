/* SPDX-License-Identifier: Apache-2.0 */
/* base/wire.h - structs as bytes for another process, each described once.
 *
 * A table says which fields of a struct travel: a number that stays theirs for ever, a type, and
 * where they are. The same table writes the struct, reads it, and frees what it owns:
 *
 *     static const struct cn_wire_field point[] = {
 *         CN_WIRE_UINT(1, struct point, color, 255),
 *         CN_WIRE_TEXT(2, struct point, name),
 *         CN_WIRE_END};
 *
 *     cn_wire_put(point, &p, &out);         cn_wire_get(point, &p, bytes, size, NULL);
 *
 * As bytes: a run of fields, each with a key, its number times 4 plus two bits, as a varint
 * (groups of seven bits, the lowest first, the eighth says that more follow).
 *
 *     bit 0   0: a varint follows (signed ones folded: 0, -1, 1, -2, ...); 1: a size and so many
 *             bytes
 *     bit 1   critical: a reader that does not know the number rejects the message
 *
 * W1  A field that is zero, NULL or false is not written, and one that is not there is that when it
 *     is read: a new field of a later release has a meaning when it is missing.
 * W2  A reader skips numbers that it does not know, unless they are critical (CN_EVERSION). So two
 *     releases understand each other. A number never gets another type or another meaning.
 * W3  Bytes of a peer are input like any other: every size is checked before it is believed, lists
 *     and numbers have a bound in the table, a number comes once. What breaks that is CN_EPROTOCOL.
 * W4  Reading first clears every field of the table (and frees what they had), and leaves a struct
 *     that cn_wire_clear() can clear, whatever it returns.
 * W5  What is written is read as the same, byte for byte: there is one way to write a struct.
 *
 * Threads:   none of its own.
 * Ownership: pointers of a struct are its own, from cn_alloc(). */
#ifndef CN_BASE_WIRE_H
#define CN_BASE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum cn_wire_type {
    CN_WIRE_NONE,       /* ends a table */
    CN_WIRE_TYPE_BOOL,  /* bool */
    CN_WIRE_TYPE_UINT,  /* unsigned of 1, 2, 4 or 8 bytes; enums too */
    CN_WIRE_TYPE_INT,   /* signed of 4 or 8 bytes */
    CN_WIRE_TYPE_TEXT,  /* char *, with a NUL at its end and none inside */
    CN_WIRE_TYPE_BYTES, /* any pointer to bytes, and a size_t */
    CN_WIRE_TYPE_BUF,   /* struct cn_buf; that it has no data at all is kept */
    CN_WIRE_TYPE_FIXED, /* an array of bytes in the struct itself; all zero is not written */
    CN_WIRE_TYPE_GROUP, /* a struct in the struct, by a table of its own */
    CN_WIRE_TYPE_LIST,  /* a pointer to structs, and a size_t: how many */
    CN_WIRE_TYPE_OWN    /* by functions */
};

struct cn_wire_own {
    /* False: it is not written. */
    bool (*put)(const void *field, struct cn_buf *out);
    /* The field is zero. `data` is what cn_wire_get() was given. */
    bool (*get)(void *field, const uint8_t *bytes, size_t size, void *data);
    void (*clear)(void *field); /* NULL: it owns nothing */
};

struct cn_wire_field {
    uint16_t number;                     /* from 1, rising in a table */
    uint8_t type;                        /* enum cn_wire_type */
    bool must;                           /* bit 1 */
    uint32_t offset, offset_size, width; /* width: of a number, an array, a struct of a list */
    uint64_t max;                        /* of a number; of a list or run of bytes: how many */
    const struct cn_wire_field *fields;  /* of a group or list */
    const struct cn_wire_own *own;
};

#define CN_WIRE_WIDTH(type_, field) sizeof(((type_ *)0)->field)
#define CN_WIRE_FIELD(number_, kind, type_, field)                                      \
    .number = (number_), .type = CN_WIRE_TYPE_##kind, .offset = offsetof(type_, field), \
    .width = CN_WIRE_WIDTH(type_, field)

#define CN_WIRE_BOOL(n, type_, field)                  \
    {                                                  \
        CN_WIRE_FIELD(n, BOOL, type_, field), .max = 1 \
    }
#define CN_WIRE_UINT(n, type_, field, max_)                 \
    {                                                       \
        CN_WIRE_FIELD(n, UINT, type_, field), .max = (max_) \
    }
#define CN_WIRE_INT(n, type_, field)        \
    {                                       \
        CN_WIRE_FIELD(n, INT, type_, field) \
    }
#define CN_WIRE_TEXT(n, type_, field, max_)                 \
    {                                                       \
        CN_WIRE_FIELD(n, TEXT, type_, field), .max = (max_) \
    }
#define CN_WIRE_BYTES(n, type_, field, size, max_)                                                 \
    {                                                                                              \
        CN_WIRE_FIELD(n, BYTES, type_, field), .offset_size = offsetof(type_, size), .max = (max_) \
    }
#define CN_WIRE_BUF(n, type_, field, max_)                 \
    {                                                      \
        CN_WIRE_FIELD(n, BUF, type_, field), .max = (max_) \
    }
#define CN_WIRE_FIXED(n, type_, field)        \
    {                                         \
        CN_WIRE_FIELD(n, FIXED, type_, field) \
    }
#define CN_WIRE_GROUP(n, type_, field, table)                    \
    {                                                            \
        CN_WIRE_FIELD(n, GROUP, type_, field), .fields = (table) \
    }
#define CN_WIRE_LIST(n, type_, field, count, table, max_)                             \
    {                                                                                 \
        .number = (n), .type = CN_WIRE_TYPE_LIST, .offset = offsetof(type_, field),   \
        .offset_size = offsetof(type_, count), .width = sizeof(*((type_ *)0)->field), \
        .max = (max_), .fields = (table)                                              \
    }
#define CN_WIRE_OWN(n, type_, field, functions)                 \
    {                                                           \
        CN_WIRE_FIELD(n, OWN, type_, field), .own = (functions) \
    }
#define CN_WIRE_END          \
    {                        \
        .type = CN_WIRE_NONE \
    }

/* Appends the struct. */
void cn_wire_put(const struct cn_wire_field *fields, const void *from, struct cn_buf *out);
/* 0, CN_EPROTOCOL (W3), CN_EVERSION (W2), CN_ENOMEM. `data` is for CN_WIRE_OWN. */
int cn_wire_get(const struct cn_wire_field *fields, void *to, const uint8_t *bytes, size_t size,
                void *data);
/* A struct before bytes that are not its own: its size in four bytes, the struct; the rest follows.
 * get: as above; `rest` is borrowed from `bytes`. */
void cn_wire_put_head(const struct cn_wire_field *fields, const void *from, struct cn_buf *out);
int cn_wire_get_head(const struct cn_wire_field *fields, void *to, const uint8_t *bytes,
                     size_t size, const uint8_t **rest, size_t *rest_size);
/* Frees what the fields own, and makes them zero. */
void cn_wire_clear(const struct cn_wire_field *fields, void *of);

/* Single numbers. get: moves *at on; false: there is none. */
void cn_wire_put_varint(struct cn_buf *out, uint64_t value);
bool cn_wire_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);

#endif
