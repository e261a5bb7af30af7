/* SPDX-License-Identifier: Apache-2.0 */
/* store/catalog.h - which objects exist: name, alarm, size, times, without opening them.
 *
 * Derived from the metadata of commits: every committed change is visible here
 * at once, durable or not (compare `lsn`), and survives exactly as its commit
 * does. Kept in an SQLite file of its own, so a million entries cost no memory
 * and no time at start.
 *
 * Threads: any; calls take turns on one lock. */
#ifndef CN_STORE_CATALOG_H
#define CN_STORE_CATALOG_H
#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"

struct cn_catalog;
struct cn_sums_part;

struct cn_catalog_entry {
    struct cn_object_key key;
    int64_t created_ms;
    int64_t changed_ms; /* last commit */
    int64_t alarm_ms;   /* CN_ALARM_NONE: no alarm */
    uint64_t size;      /* bytes of the database */
    uint64_t lsn;       /* of the last commit seen */
    uint16_t name_size;
    const char *name; /* borrowed during the callback; NULL: none. Not terminated */
};

/* Returning nonzero ends the listing. The entry is borrowed; the callback must
 * not call the store. */
typedef int (*cn_catalog_each)(void *data, const struct cn_catalog_entry *entry);

/* 1 and the entry (with `name` copied to name_buffer), or 0 if there is none. */
int cn_catalog_find(struct cn_catalog *catalog, const struct cn_object_key *key,
                    struct cn_catalog_entry *entry, char name_buffer[CN_OBJECT_NAME_MAX + 1],
                    struct cn_err *err);

/* Objects of a namespace by id, after `after` (NULL: from the first), at most
 * `limit`. Returns how many; the last key is the cursor for the next call. */
int cn_catalog_list(struct cn_catalog *catalog, uint32_t namespace_id,
                    const uint8_t after[CN_OBJECT_ID_SIZE], int limit, cn_catalog_each each,
                    void *data, struct cn_err *err);

/* Which objects are listed, and to whom. */
struct cn_catalog_listing {
    uint32_t namespace_id;
    int limit; /* at most so many */
    cn_catalog_each each;
    void *data;
};

/* Those whose name begins with `prefix`, by name, after `after` (NULL: from the first). Returns how
 * many, as all lists do. */
int cn_catalog_list_names(struct cn_catalog *catalog, const struct cn_catalog_listing *listing,
                          const char *prefix, size_t prefix_size, const char *after,
                          size_t after_size, struct cn_err *err);

/* Objects with an alarm at or before `until_ms`, in order of (time, key), after
 * the given pair (NULL: from the first). */
struct cn_alarm_cursor {
    int64_t alarm_ms;
    struct cn_object_key key;
};
int cn_catalog_list_alarms(struct cn_catalog *catalog, int64_t until_ms,
                           const struct cn_alarm_cursor *after, int limit, cn_catalog_each each,
                           void *data, struct cn_err *err);

/* In another order, after the given place (NULL: from the first). Those of
 * CN_CATALOG_NEXT_ALARM are the ones that have an alarm. */
enum cn_catalog_order {
    CN_CATALOG_SMALLEST,
    CN_CATALOG_LARGEST,
    CN_CATALOG_OLDEST, /* by the last commit */
    CN_CATALOG_LATEST,
    CN_CATALOG_NEXT_ALARM,
};
struct cn_catalog_cursor {
    int64_t value; /* size, changed_ms or alarm_ms of the last entry */
    uint8_t id[CN_OBJECT_ID_SIZE];
};
int cn_catalog_list_sorted(struct cn_catalog *catalog, const struct cn_catalog_listing *listing,
                           enum cn_catalog_order order, const struct cn_catalog_cursor *after,
                           struct cn_err *err);

/* Number of objects of a namespace (0: of all) and the sum of their sizes. Reads every entry
 * of it. */
int cn_catalog_count(struct cn_catalog *catalog, uint32_t namespace_id, uint64_t *count,
                     uint64_t *size, struct cn_err *err);

/* ---- For the store ---- */

/* What one or several commits of an object changed. */
struct cn_catalog_change {
    struct cn_object_key key;
    uint64_t lsn; /* of the last of them */
    int64_t time_ms;
    uint32_t page_count;
    bool deleted;        /* the entry goes */
    uint64_t reborn_lsn; /* deleted by this record before: nothing older stays; 0: not */
    bool has_alarm;      /* otherwise what was there stays */
    int64_t alarm_ms;
    const char *name; /* borrowed; NULL: what was there stays */
    uint16_t name_size;
    /* Checksums of pages that were written (sums.h), whatever the LSN; borrowed. */
    const struct cn_sums_part *parts;
    size_t part_count;
    bool sums_cut; /* there are none behind those of `sums_pages` pages */
    uint32_t sums_pages;
};

struct cn_disk;
struct cn_images;
struct cn_log;
struct cn_sums;

int cn_catalog_open(struct cn_disk *disk, struct cn_catalog **catalog, struct cn_err *err);
/* Rises by two with each change of the file, and is odd while one is under way: whoever copies it
 * sees the same even number before and after. */
unsigned cn_catalog_changes(const struct cn_catalog *catalog);
/* For one of many: keeps less of the file in memory. */
void cn_catalog_keep_small(struct cn_catalog *catalog);
/* Drops what was not flushed. */
void cn_catalog_close(struct cn_catalog *catalog);
/* Reads the whole file and calls back for every page that does not match its checksum; for one that
 * is up to date (opened once) and not in use. */
int cn_catalog_check(struct cn_disk *disk, void (*bad)(void *data, uint32_t page_no), void *data,
                     struct cn_err *err);
/* From now on every call first takes over the changes that wait in `images`. */
void cn_catalog_attach(struct cn_catalog *catalog, struct cn_images *images);
/* Like cn_catalog_find() without taking changes over first: for loading an image, which has none
 * waiting, because with one it would be in memory. The checksums of its pages come with it. */
int cn_catalog_find_settled(struct cn_catalog *catalog, const struct cn_object_key *key,
                            struct cn_catalog_entry *entry,
                            char name_buffer[CN_OBJECT_NAME_MAX + 1], struct cn_sums *sums,
                            struct cn_err *err);
/* Only the checksums. */
int cn_catalog_sums(struct cn_catalog *catalog, const struct cn_object_key *key,
                    struct cn_sums *sums, struct cn_err *err);
/* Enters a change, unless the entry has seen a later one. Not durable before a flush. */
int cn_catalog_apply(struct cn_catalog *catalog, const struct cn_catalog_change *change,
                     struct cn_err *err);
/* Makes all changes so far durable: waits for the log (which may be NULL during
 * recovery) to have them, so that the catalog is never ahead of it. */
int cn_catalog_flush(struct cn_catalog *catalog, struct cn_log *log, struct cn_err *err);

/* Namespaces: 1 if found, 0 if not. */
int cn_catalog_namespace_find(struct cn_catalog *catalog, const char *name, size_t name_size,
                              uint32_t *namespace_id, struct cn_err *err);
int cn_catalog_namespace_name(struct cn_catalog *catalog, uint32_t namespace_id,
                              char name[CN_OBJECT_NAME_MAX + 1], struct cn_err *err);
/* The largest number given out; 0 if there is none. */
int cn_catalog_namespace_last(struct cn_catalog *catalog, uint32_t *namespace_id,
                              struct cn_err *err);
/* Enters or renames. */
int cn_catalog_namespace_set(struct cn_catalog *catalog, uint32_t namespace_id, const char *name,
                             size_t name_size, uint64_t lsn, struct cn_err *err);

#endif
