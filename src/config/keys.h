/* SPDX-License-Identifier: Apache-2.0 */
/* config/keys.h - how tables of keys (config/schema.h) are written: a line per key, for the files
 * that have such tables and for nobody else.
 *
 *     struct entry { const char *binding, *name; };
 *     SCHEMA(entry_schema, struct entry,
 *         STRING(entry, binding, .flags = REQUIRED),
 *         STRING(entry, name)); */
#ifndef CN_CONFIG_KEYS_H
#define CN_CONFIG_KEYS_H
#include <stddef.h>

#include "base/assert.h"
#include "config/schema.h"

#define REQUIRED CN_FIELD_REQUIRED
#define HOSTED CN_FIELD_HOSTED
#define UNBUILT CN_FIELD_UNBUILT
#define QUIET CN_FIELD_QUIET
#define TOP CN_FIELD_TOP_ONLY
#define OWN CN_FIELD_OWN

#define AT(type, member) .offset = offsetof(struct type, member)
#define STRING(type, member, ...)                                               \
    {                                                                           \
        .name = #member, .kind = CN_FIELD_STRING, AT(type, member), __VA_ARGS__ \
    }
#define BOOL(type, member, ...)                                               \
    {                                                                         \
        .name = #member, .kind = CN_FIELD_BOOL, AT(type, member), __VA_ARGS__ \
    }
#define INT(type, member, low, high, ...)                                                 \
    {                                                                                     \
        .name = #member, .kind = CN_FIELD_INT, AT(type, member), .min = low, .max = high, \
        __VA_ARGS__                                                                       \
    }
#define STRINGS(type, member, ...)                                               \
    {                                                                            \
        .name = #member, .kind = CN_FIELD_STRINGS, AT(type, member), __VA_ARGS__ \
    }
#define NODE(type, member, ...)                                               \
    {                                                                         \
        .name = #member, .kind = CN_FIELD_NODE, AT(type, member), __VA_ARGS__ \
    }
#define LIST(type, member, schema, ...)                                                       \
    {                                                                                         \
        .name = #member, .kind = CN_FIELD_LIST, AT(type, member), .sub = &schema, __VA_ARGS__ \
    }
#define TABLE(type, member, schema, ...)                                                       \
    {                                                                                          \
        .name = #member, .kind = CN_FIELD_TABLE, AT(type, member), .sub = &schema, __VA_ARGS__ \
    }
/* A key of a sub-table that only concerns the hosted platform. */
#define SUB_HOSTED(text)                                     \
    {                                                        \
        .name = text, .kind = CN_FIELD_NODE, .flags = HOSTED \
    }
/* One whose table is refused as a whole, or that matters to tools alone. */
#define SUB_QUIET(text)                                     \
    {                                                       \
        .name = text, .kind = CN_FIELD_NODE, .flags = QUIET \
    }
#define SET(type, member) .set_offset = offsetof(struct type, member)
#define CHOICES(...)                 \
    .choices = (const char *const[]) \
    {                                \
        __VA_ARGS__, NULL            \
    }

#define SCHEMA(name, type, ...)                                          \
    static const struct cn_schema_field name##_fields[] = {__VA_ARGS__}; \
    static const struct cn_schema name = {sizeof(type), name##_fields,   \
                                          CN_ARRAY_COUNT(name##_fields)}

#endif
