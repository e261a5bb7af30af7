/* SPDX-License-Identifier: Apache-2.0 */
/* store/image.h - the committed pages of databases: those in files, and those still in memory.
 *
 * An image is the file of one database and, over it, the pages that were committed
 * since they were last written to it. Commits go to the log and into memory; the
 * keeper (store/checkpoint.c) writes pages back once they are durable and syncs
 * files. An image exists in memory only while its database is open or something of
 * it is not yet in a synced file or in the catalog. Invariants are in image.c.
 *
 * Threads:   a database's lane opens, reads, commits and closes its image; the
 *            keeper writes it back. Functions say which.
 * Ownership: struct cn_images owns all images. */
#ifndef CN_STORE_IMAGE_H
#define CN_STORE_IMAGE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/disk.h"
#include "base/list.h"
#include "base/map.h"
#include "store/log.h"
#include "store/pagemap.h"
#include "store/record.h"

struct cn_catalog;
struct cn_catalog_change;
struct cn_image;
struct cn_page_source;

/* One bound for the images of many stores. */
struct cn_images_budget {
    uint64_t dirty_pages_max; /* as that of one store: soft, and hard at four times as many */
    uint32_t open_files_max;
    atomic_uint_fast64_t dirty_pages;
    atomic_uint_fast32_t open_files;
};

struct cn_images_config {
    struct cn_disk *disk;
    struct cn_log *log;
    /* Soft: the keeper starts; commits wait at four times as many. A sixteenth in one image makes
     * it large: it is written at once, since pages of one file cost little each. */
    uint64_t dirty_pages_max;
    uint32_t open_files_max;
    uint32_t commit_pages_max;
    bool manual;      /* no keeper thread: commits write back themselves at the limit */
    unsigned planted; /* enum cn_planted */
    struct cn_images_budget *budget; /* borrowed; NULL: the limits here are all there are */
    void (*wake_keeper)(void *data);
    void *data;
};

struct cn_images {
    struct cn_images_config config;
    /* Held for reading from append until the commit shows in memory and in the
     * lists below, for writing while a checkpoint starts: so a checkpoint at
     * boundary B finds in the lists whatever has an LSN up to B. */
    pthread_rwlock_t commit_gate;

    pthread_mutex_t lock;   /* guards the rest; taken inside an image's lock */
    pthread_cond_t written; /* dirty_pages went down, or writing failed */
    struct cn_map table;    /* key -> struct cn_image */
    struct cn_list dirty;   /* images with pages to write, longest first */
    uint64_t dirty_count;
    struct cn_list large;    /* those of them that are */
    struct cn_list unsynced; /* images whose file was written since its last sync */
    uint64_t unsynced_count;
    struct cn_list changed; /* images whose catalog entry is behind */
    uint64_t changed_count;
    struct cn_list entered; /* images whose entry is up to date but not yet committed */
    struct cn_list files;   /* images with an open file, last used first */
    uint32_t open_files;
    uint64_t open_count; /* images open by a database */
    bool names_unsynced; /* a file or folder was made since the last sync_all */

    unsigned writers;        /* images being written back now, by whomever */
    uint64_t write_failures; /* so far, and the last one's code */
    int write_failure;

    atomic_uint_fast64_t dirty_pages;
    atomic_bool has_large;
    atomic_bool no_space; /* the last write-back met a full disk */
};

/* What a commit changes besides pages; also kept by the image as its committed metadata. */
struct cn_image_meta {
    bool has_alarm, has_name;
    int64_t alarm_ms;
    char *name; /* owned by whoever owns the struct */
    uint16_t name_size;
};

struct cn_image_change {
    struct cn_pagemap *pages; /* taken: bytes move into the image on success, the map is emptied */
    uint32_t pages_after;
    uint16_t flags;                   /* enum cn_commit_flags */
    const struct cn_image_meta *meta; /* borrowed; NULL: none */
};

void cn_images_init(struct cn_images *images, const struct cn_images_config *config);
/* Every image must be closed; pages not written back are dropped. */
void cn_images_fini(struct cn_images *images);

/* ---- The owner of one database ---- */

/* Takes the image for one owner. CN_ELOCKED if it has one; CN_ENOTFOUND with
 * `must_exist` if there is no such object. Loads metadata from the catalog. */
int cn_image_open(struct cn_images *images, struct cn_catalog *catalog,
                  const struct cn_object_key *key, bool must_exist, struct cn_image **image,
                  struct cn_err *err);
void cn_image_close(struct cn_image *image);
const struct cn_object_key *cn_image_key(const struct cn_image *image);
uint32_t cn_image_page_count(struct cn_image *image); /* committed size */
uint64_t cn_image_lsn(struct cn_image *image);        /* last commit since it is in memory, or 0 */
uint32_t cn_image_commit_pages_max(const struct cn_image *image); /* of one commit */
/* Committed metadata; borrowed until the next commit. */
const struct cn_image_meta *cn_image_meta(const struct cn_image *image);
/* Copies `size` bytes at `offset` inside a committed page; zeros beyond the end. */
int cn_image_read(struct cn_image *image, uint32_t page_no, uint32_t offset, uint32_t size,
                  void *bytes, struct cn_err *err);
/* Logs the change as one record and shows it. Pages equal to what is committed are
 * left out; a change of nothing is no record. On failure nothing has happened. */
int cn_image_commit(struct cn_image *image, struct cn_image_change *change, uint64_t *lsn,
                    struct cn_err *err);
/* All pages as of one commit. */
struct cn_image_snapshot {
    int (*each)(void *data, uint32_t page_no, const uint8_t *page);
    void *data;
    uint32_t page_count; /* told, as is the LSN: that commit or a later one */
    uint64_t lsn;
};
/* From any thread, open or not. */
int cn_image_snapshot(struct cn_images *images, struct cn_catalog *catalog,
                      const struct cn_object_key *key, struct cn_image_snapshot *snapshot,
                      struct cn_err *err);

/* See cn_store_heal(). */
int cn_images_heal(struct cn_images *images, struct cn_catalog *catalog,
                   const struct cn_object_key *key, const struct cn_page_source *source,
                   uint32_t *healed, struct cn_err *err);

/* Memory of a page. */
uint8_t *cn_image_page_new(void);
void cn_image_page_free(uint8_t *bytes);

/* ---- The keeper ---- */

/* Writes back the images that are dirty now (limit 0), or until at most `limit`
 * pages are dirty. -ENOSPC: the disk is full, pages stay in memory, try again. */
int cn_images_write_back(struct cn_images *images, uint64_t limit, struct cn_err *err);
/* Writes back the images that are large. */
int cn_images_write_back_large(struct cn_images *images, struct cn_err *err);
/* The pages in memory, as cn_log_pressure() has it. Threads that may not wait put in more than the
 * bound (L11 of log.c). */
enum cn_log_pressure cn_images_pressure(const struct cn_images *images);
/* Are there too many pages in memory, of all stores together? */
bool cn_images_over_budget(const struct cn_images *images);
/* Syncs every file written since the last time. */
int cn_images_sync(struct cn_images *images, struct cn_err *err);
/* Hands pending catalog changes over, at most `max` (negative: all there are); returns how
 * many. They count as entered until the catalog says that they are durable, or that
 * all of them are lost and must come again. */
int cn_images_drain(struct cn_images *images, int max,
                    int (*each)(void *data, const struct cn_catalog_change *change,
                                struct cn_err *err),
                    void *data, struct cn_err *err);
void cn_images_entered(struct cn_images *images, bool durable);
uint64_t cn_images_changed_count(struct cn_images *images);

/* ---- Files ---- */

#define CN_IMAGE_PATH_MAX 128
/* objects/<namespace, 8 hex>/<first byte of the id>/<id, 64 hex>.db */
void cn_image_path(const struct cn_object_key *key, char path[CN_IMAGE_PATH_MAX]);
/* aside/<lsn, 16 hex>-<namespace>-<id>.db: the file a reset at `lsn` left. */
void cn_image_aside_path(const struct cn_object_key *key, uint64_t lsn,
                         char path[CN_IMAGE_PATH_MAX]);
/* The reverse of the file name above; false if it is none. */
bool cn_image_aside_parse(const char *name, struct cn_object_key *key, uint64_t *lsn);
/* Opens the file of an image, making it and its folders if needed; `made` says so. */
int cn_image_file_create(struct cn_disk *disk, const struct cn_object_key *key,
                         struct cn_disk_file **file, bool *made);

#endif
