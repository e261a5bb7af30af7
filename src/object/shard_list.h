/* SPDX-License-Identifier: Apache-2.0 */
/* object/shard_list.h - the catalogs of all open shards as one: lists, counts, names.
 *
 * With one shard these are the functions of store/catalog.h. With more, a list asks each for as
 * many as are wanted and keeps the first of all: what it has in memory is two pages. Shards that
 * are not open here are not in it; one that opens or closes between two pages comes or goes.
 *
 * Threads: any but a lane's: they read the disk, and each shard is held while it is asked. */
#ifndef CN_OBJECT_SHARD_LIST_H
#define CN_OBJECT_SHARD_LIST_H
#include "store/catalog.h"

struct cn_shards;

/* As cn_catalog_find(); CN_ECLOSED: the object's shard is not open. */
int cn_shards_find(struct cn_shards *shards, const struct cn_object_key *key,
                   struct cn_catalog_entry *entry, char name_buffer[CN_OBJECT_NAME_MAX + 1],
                   struct cn_err *err);

/* As the functions of the catalog with these names. */
int cn_shards_list(struct cn_shards *shards, const struct cn_catalog_listing *listing,
                   const uint8_t after[CN_OBJECT_ID_SIZE], struct cn_err *err);
int cn_shards_list_names(struct cn_shards *shards, const struct cn_catalog_listing *listing,
                         const char *prefix, size_t prefix_size, const char *after,
                         size_t after_size, struct cn_err *err);
int cn_shards_list_sorted(struct cn_shards *shards, const struct cn_catalog_listing *listing,
                          enum cn_catalog_order order, const struct cn_catalog_cursor *after,
                          struct cn_err *err);
int cn_shards_count_objects(struct cn_shards *shards, uint32_t namespace_id, uint64_t *count,
                            uint64_t *size, struct cn_err *err);

/* Namespaces that some open shard knows: 1 if found, 0 if not. */
int cn_shards_namespace_find(struct cn_shards *shards, const char *name, uint32_t *namespace_id,
                             struct cn_err *err);
int cn_shards_namespace_name(struct cn_shards *shards, uint32_t namespace_id,
                             char name[CN_OBJECT_NAME_MAX + 1], struct cn_err *err);
/* The largest number that one of them knows; 0: none. */
int cn_shards_namespace_last(struct cn_shards *shards, uint32_t *namespace_id, struct cn_err *err);

#endif
