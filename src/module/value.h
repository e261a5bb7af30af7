/* SPDX-License-Identifier: Apache-2.0 */
/* module/value.h - structured values (docs/reference/structured-clone.md) in C: read into a tree,
 * built from calls.
 *
 * Reading makes a document: an arena with a node for each value. Bytes of buffers stay where they
 * are; texts are copied, as UTF-8 with a NUL behind them.
 *
 * V1  Bytes may come from anywhere. A document is made of all of them or not at all; nothing is
 *     allocated because a number in them says so, only for what is there.
 * V2  A tree ends: what refers to something that it is inside of is refused. What is referred to
 *     twice is one node, and counts as often as it can be reached: a document has
 *     CN_VALUE_COUNT_MAX values for someone who walks all of it.
 * V3  What is by reference is a node of the kind CAIRN_FUNCTION, CAIRN_STREAM or CAIRN_STUB, or
 *     CAIRN_OTHER, and listed in the document: whoever was sent it lets go of it (lent.h).
 *
 * A builder writes bytes as it is called. A mistake is kept, and told by cn_builder_take().
 *
 * Threads:   any, one at a time.
 * Ownership: a document owns its nodes and borrows the bytes. */
#ifndef CN_MODULE_VALUE_H
#define CN_MODULE_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "include/cairn.h"
#include "object/lent.h"

#define CN_VALUE_COUNT_MAX (1u << 20)
#define CN_VALUE_DEPTH_MAX 2000

struct cn_value_block;

/* What a node refers to: V3. */
struct cn_value_remote {
    struct cn_value_remote *next; /* of the document */
    const char *address; /* whose it is, as bindings/object.c has it; NULL: an object's stub */
    double number;       /* by which its owner knows it */
    bool lent;           /* for a call: its owner takes it back by itself */
    bool taken;          /* somebody lets go of it later */
    uint32_t ns;         /* of a stub: the number of its namespace, */
    const char *hex;     /* the id, */
    const char *name;    /* and the name, or NULL */
};

struct cn_document {
    const cairn_value *root;
    struct cn_value_block *blocks;   /* owned: the arena, newest first */
    struct cn_value_remote *remotes; /* in the arena */
};

/* All zero: an empty one. */
int cn_document_read(struct cn_document *document, const uint8_t *bytes, size_t size,
                     struct cn_err *err);
void cn_document_fini(struct cn_document *document);

enum cairn_kind cn_value_kind(const cairn_value *value);
int cn_value_bool(const cairn_value *value);
int cn_value_int(const cairn_value *value, int64_t *number);
int cn_value_number(const cairn_value *value, double *number);
const char *cn_value_text(const cairn_value *value, size_t *size);
const void *cn_value_bytes(const cairn_value *value, size_t *size);
size_t cn_value_count(const cairn_value *value);
const cairn_value *cn_value_at(const cairn_value *value, size_t index);
const cairn_value *cn_value_key(const cairn_value *value, size_t index);
const cairn_value *cn_value_get(const cairn_value *value, const char *name);
/* Of a function, stream or stub; else NULL. */
struct cn_value_remote *cn_value_remote(const cairn_value *value);

/* ---- building ---- */

struct cn_builder_frame;

struct cairn_builder {
    uintptr_t handle; /* G5 of guard.h; 0: no module has it */
    struct cn_buf bytes;
    struct cn_builder_frame *frames; /* owned: what is open, outermost first */
    unsigned depth, room;
    size_t limit;              /* of the bytes */
    const char *mistake;       /* static; NULL: none */
    struct cn_lent_list given; /* what it has by reference */
};

void cn_builder_init(cairn_builder *builder, size_t limit);
void cn_builder_fini(cairn_builder *builder);
void cn_builder_clear(cairn_builder *builder);
bool cn_builder_is_empty(const cairn_builder *builder);
/* The finished bytes (nothing built is `undefined`), which become the caller's (cn_free()); the
 * builder is empty again. NULL: a mistake was made, which `err` tells. */
uint8_t *cn_builder_take(cairn_builder *builder, size_t *size, struct cn_err *err);
/* Whether finished bytes are those of an array. */
bool cn_builder_is_array(const uint8_t *bytes, size_t size);
/* The same as cn_builder_take(), borrowed until the builder is used again. */
int cn_builder_finish(cairn_builder *builder, struct cn_err *err);

/* Something cannot be built: cn_builder_take() says so. `text` is static. */
void cn_build_mistake(cairn_builder *builder, const char *text);
void cn_build_undefined(cairn_builder *builder);
void cn_build_null(cairn_builder *builder);
void cn_build_bool(cairn_builder *builder, int value);
void cn_build_int(cairn_builder *builder, int64_t value);
void cn_build_number(cairn_builder *builder, double value);
void cn_build_bigint(cairn_builder *builder, int64_t value);
void cn_build_text(cairn_builder *builder, const char *text, size_t size);
void cn_build_bytes(cairn_builder *builder, const void *bytes, size_t size);
void cn_build_date(cairn_builder *builder, double time);
void cn_build_array(cairn_builder *builder);
void cn_build_object(cairn_builder *builder);
void cn_build_map(cairn_builder *builder);
void cn_build_name(cairn_builder *builder, const char *name);
void cn_build_end(cairn_builder *builder);
void cn_build_value(cairn_builder *builder, const cairn_value *value);
/* Something that the receiver calls at `address` by `number`; `tag` says what it is (text/clone.h).
 */
void cn_build_reference(cairn_builder *builder, unsigned tag, const char *address, double number);
/* The stub of an object; `name` may be NULL. */
void cn_build_object_stub(cairn_builder *builder, uint32_t ns, const char *hex, const char *name);
/* An Error of one of JavaScript's own types ("TypeError"; others become a property `name`), with
 * the object's id beside it unless that is NULL. Opens nothing. */
void cn_build_error(cairn_builder *builder, const char *type, const char *message, const char *id);

#endif
