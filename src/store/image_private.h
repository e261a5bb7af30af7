/* SPDX-License-Identifier: Apache-2.0 */
/* store/image_private.h - shared by image.c (commits), imagefile.c (open files) and
 * writeback.c (the way to disk). The design and its invariants are in image.c. */
#ifndef CN_STORE_IMAGE_PRIVATE_H
#define CN_STORE_IMAGE_PRIVATE_H
#include "store/image.h"
#include "store/sums.h"

/* The database as it was before a reset. */
struct cn_aside {
    struct cn_pagemap pages;
    uint32_t page_count;
    uint32_t file_limit; /* I3, of the old file */
    uint32_t shrunk_to;  /* of the image when it was reset: for a write that was under way */
    struct cn_sums sums; /* I7, of the old file */
    uint64_t lsn;        /* of the reset */
};

struct cn_image {
    struct cn_images *images;
    struct cn_object_key key;

    pthread_mutex_t lock; /* guards down to the blank line */
    struct cn_pagemap pages;
    uint32_t page_count;    /* committed size */
    uint32_t file_limit;    /* I3 */
    struct cn_sums sums;    /* I7 */
    uint32_t shrunk_to;     /* least page_count since write-back last collected pages */
    struct cn_aside *aside; /* owned, or NULL */
    uint64_t lsn;           /* of the last commit; 0: none since it is in memory */
    int64_t time_ms;
    bool exists;         /* has a catalog entry: something was committed, and not deleted */
    uint64_t reborn_lsn; /* of the last deletion since it is in memory; 0: none */
    struct cn_image_meta meta;

    /* Guarded by images->lock. */
    struct cn_list dirty_link, large_link, unsynced_link, changed_link, file_link;
    struct cn_disk_file *file; /* owned; NULL: not open */
    unsigned file_users;
    bool loaded;    /* size and metadata are known; set once */
    bool open;      /* a database owns it */
    bool changed;   /* in images->changed */
    bool sums_lost; /* the catalog could not keep what it has taken of them */
    bool busy;      /* I6 */
    unsigned holds; /* threads that look at it */
};

/* Counts pages that came into memory or, negative, left it. */
static inline void cn_images_count_dirty(struct cn_images *images, int64_t pages)
{
    atomic_fetch_add_explicit(&images->dirty_pages, (uint64_t)pages, memory_order_relaxed);
    if (images->config.budget)
        atomic_fetch_add_explicit(&images->config.budget->dirty_pages, (uint64_t)pages,
                                  memory_order_relaxed);
}
/* Counts database files that were opened or, negative, closed; under images->lock. */
static inline void cn_images_count_files(struct cn_images *images, int count)
{
    images->open_files += (uint32_t)count;
    if (images->config.budget)
        atomic_fetch_add_explicit(&images->config.budget->open_files, (uint32_t)count,
                                  memory_order_relaxed);
}

/* Opens the image's file for use until cn_image_file_done(); -ENOENT if there is
 * none and not `create`. */
int cn_image_file_use(struct cn_image *image, bool create, struct cn_disk_file **file);
void cn_image_file_done(struct cn_image *image);
/* Forgets the open file: it is about to be renamed. Nobody uses it. */
void cn_image_file_forget(struct cn_image *image);

/* A page to be written; its bytes stay until it is. */
struct cn_page_write {
    uint32_t page_no;
    uint32_t sum;
    uint64_t lsn;
    uint8_t *bytes;
};
/* The checksums of the pages, into the writes; and from there, once they are written, to those of
 * the file, which is `page_count` pages long now. */
void cn_page_writes_sum(struct cn_page_write *writes, size_t count);
void cn_page_writes_enter(const struct cn_page_write *writes, size_t count, uint32_t page_count,
                          struct cn_sums *sums);
int cn_page_write_order(const void *a, const void *b); /* for qsort */
/* Cuts the file to `file_limit` pages, writes pages sorted by number, neighbours
 * together, and leaves it `page_count` pages long. */
int cn_image_file_write(struct cn_disk_file *file, const struct cn_page_write *writes, size_t count,
                        uint32_t file_limit, uint32_t page_count);

/* Takes a page out of a map of the image; frees its bytes unless they are pinned. */
void cn_image_page_drop(struct cn_image *image, struct cn_pagemap *map, struct cn_page *page);
void cn_image_aside_free(struct cn_image *image, struct cn_aside *aside);

/* Ends a hold or a change of state under images->lock, which it releases; frees
 * the image if nothing needs it any more (I5). */
void cn_image_settle_unlock(struct cn_image *image);

/* Puts the image into a list of `images` unless it is in it; `count` may be NULL. */
void cn_image_enlist(struct cn_list *list, struct cn_list *link, uint64_t *count);

/* The catalog's entry is behind. Under images->lock. */
void cn_image_changed_add(struct cn_image *image);

/* The owner waits until an earlier reset is done, doing it if need be. */
int cn_image_finish_reset(struct cn_image *image, struct cn_err *err);

#endif
