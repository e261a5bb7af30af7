/* SPDX-License-Identifier: Apache-2.0 */
/* object/id.h - identities of objects within a namespace.
 *
 * 32 bytes, shown as 64 hexadecimal digits:
 *
 *     byte 0       kind: 0 from a name, 1 unique; plus 16 times the jurisdiction
 *     bytes 1..15  of a keyed hash of jurisdiction and name, or random
 *     bytes 16..31 keyed hash of bytes 0..15
 *
 * I1  The key is secret and differs by namespace, so an id of another namespace,
 *     or one that somebody made up, is recognised and refused.
 * I2  The same name gives the same id for ever; the key is kept with the data.
 *
 * A namespace that objects have moved into from elsewhere knows more ids: object/moved.h.
 *
 * Threads: any; a key set is immutable. */
#ifndef CN_OBJECT_ID_H
#define CN_OBJECT_ID_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/siphash.h"
#include "store/record.h"

#define CN_OBJECT_HEX_SIZE (2 * CN_OBJECT_ID_SIZE)

enum cn_jurisdiction {
    CN_JURISDICTION_NONE,
    CN_JURISDICTION_EU,
    CN_JURISDICTION_FEDRAMP,
    CN_JURISDICTION_FEDRAMP_HIGH,
    CN_JURISDICTION_US,
    CN_JURISDICTION_COUNT,
};

struct cn_moved_ids;

struct cn_id_keys {
    uint8_t name[CN_SIPHASH_KEY_SIZE];  /* hashes names */
    uint8_t proof[CN_SIPHASH_KEY_SIZE]; /* authenticates ids */
    const struct cn_moved_ids *moved;   /* borrowed; NULL: nothing has moved into the namespace */
};

/* The keys of a namespace from the node's secret; nothing has moved into it. */
void cn_id_keys_init(struct cn_id_keys *keys, const uint8_t secret[CN_SIPHASH_KEY_SIZE],
                     uint32_t namespace_id);

void cn_id_from_name(const struct cn_id_keys *keys, enum cn_jurisdiction jurisdiction,
                     const char *name, size_t size, uint8_t id[CN_OBJECT_ID_SIZE]);
void cn_id_unique(const struct cn_id_keys *keys, enum cn_jurisdiction jurisdiction,
                  uint8_t id[CN_OBJECT_ID_SIZE]);
/* True if the id is one of this namespace. */
bool cn_id_valid(const struct cn_id_keys *keys, const uint8_t id[CN_OBJECT_ID_SIZE]);
/* Of a valid one. */
enum cn_jurisdiction cn_id_jurisdiction(const struct cn_id_keys *keys,
                                        const uint8_t id[CN_OBJECT_ID_SIZE]);
/* What a name without a jurisdiction hashes to. */
void cn_id_name_hash(const struct cn_id_keys *keys, const char *name, size_t size,
                     uint8_t hash[CN_SIPHASH_SIZE]);

void cn_id_to_hex(const uint8_t id[CN_OBJECT_ID_SIZE], char hex[CN_OBJECT_HEX_SIZE + 1]);
/* False unless it is exactly 64 hexadecimal digits (either case). */
bool cn_id_from_hex(const char *hex, size_t size, uint8_t id[CN_OBJECT_ID_SIZE]);

#endif
