/* SPDX-License-Identifier: Apache-2.0 */
/* store/writeback.c - from memory to files: write-back, sync, setting aside.
 *
 * Runs on the keeper's thread, and on a lane that must finish a reset first. The
 * invariants I1 to I6 are in image.c. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/image_private.h"
#include "store/log.h"

enum {
    SYNC_SINGLY_MAX = 32, /* more unsynced files than this are synced by one sync_all */
    WRITE_RUN_MAX = 64,   /* neighbouring pages written by one call */
};

/* ---- Write-back ---- */

int cn_page_write_order(const void *a, const void *b)
{
    uint32_t x = ((const struct cn_page_write *)a)->page_no,
             y = ((const struct cn_page_write *)b)->page_no;
    return x < y ? -1 : x > y;
}

/* Pins the pages of a map and lists them in order; under the image's lock. */
static struct cn_page_write *writes_collect(struct cn_pagemap *map, size_t *count,
                                            uint64_t *lsn_max)
{
    struct cn_page_write *writes = cn_alloc((map->count + 1) * sizeof(*writes));
    uint32_t cursor = 0;
    *count = 0;
    *lsn_max = 0;
    for (struct cn_page *page; (page = cn_pagemap_next(map, &cursor));) {
        page->pinned = true;
        writes[(*count)++] = (struct cn_page_write){
            .page_no = page->page_no, .lsn = page->lsn, .bytes = page->bytes};
        if (page->lsn > *lsn_max)
            *lsn_max = page->lsn;
    }
    qsort(writes, *count, sizeof(*writes), cn_page_write_order);
    return writes;
}

/* Unpins what was collected. With `written`, a page that was not replaced meanwhile leaves memory.
 */
static void writes_finish(struct cn_image *image, struct cn_page_write *writes, size_t count,
                          bool written)
{
    struct cn_pagemap *maps[2] = {&image->pages, image->aside ? &image->aside->pages : NULL};
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (int m = 0; m < 2 && maps[m] && !found; m++) {
            struct cn_page *page = cn_pagemap_find(maps[m], writes[i].page_no);
            found = page && page->bytes == writes[i].bytes;
            if (found) {
                page->pinned = false;
                if (written)
                    cn_image_page_drop(image, maps[m], page);
            }
        }
        if (!found)
            cn_image_page_free(writes[i].bytes);
    }
    cn_free(writes);
}

void cn_page_writes_sum(struct cn_page_write *writes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        writes[i].sum = cn_sum_of(writes[i].bytes);
}

void cn_page_writes_enter(const struct cn_page_write *writes, size_t count, uint32_t page_count,
                          struct cn_sums *sums)
{
    cn_sums_resize(sums, page_count); /* what was not written and is new is zeros */
    for (size_t i = 0; i < count && writes[i].page_no <= page_count; i++)
        cn_sums_set(sums, writes[i].page_no, writes[i].sum);
}

int cn_image_file_write(struct cn_disk_file *file, const struct cn_page_write *writes, size_t count,
                        uint32_t file_limit, uint32_t page_count)
{
    int64_t size = cn_disk_size(file);
    if (size < 0)
        return (int)size;
    int rc = 0;
    if (size > (int64_t)file_limit * CN_PAGE_SIZE) {
        size = (int64_t)file_limit * CN_PAGE_SIZE;
        rc = cn_disk_truncate(file, (uint64_t)size);
    }
    for (size_t i = 0; i < count && rc == 0;) {
        struct iovec parts[WRITE_RUN_MAX];
        int n = 0;
        uint64_t offset = (uint64_t)(writes[i].page_no - 1) * CN_PAGE_SIZE;
        do {
            parts[n++] = (struct iovec){.iov_base = writes[i].bytes, .iov_len = CN_PAGE_SIZE};
            i++;
        } while (n < WRITE_RUN_MAX && i < count && writes[i].page_no == writes[i - 1].page_no + 1);
        int64_t end = (int64_t)offset + (int64_t)n * CN_PAGE_SIZE;
        rc = cn_disk_writev_all(file, parts, n, offset);
        if (end > size)
            size = end;
    }
    if (rc == 0 && size != (int64_t)page_count * CN_PAGE_SIZE)
        rc = cn_disk_truncate(file, (uint64_t)page_count * CN_PAGE_SIZE);
    return rc;
}

/* I1: nothing is in a file before it is durable in the log. */
static int wait_durable(struct cn_images *images, uint64_t lsn, struct cn_err *err)
{
    if (images->config.planted & CN_PLANTED_EARLY_WRITE_BACK)
        return 0;
    return cn_log_wait(images->config.log, lsn, err);
}

/* I4: completes the old file, syncs it and renames it. The image is busy. */
static int aside_write(struct cn_image *image, struct cn_err *err)
{
    struct cn_disk *disk = image->images->config.disk;
    pthread_mutex_lock(&image->lock);
    struct cn_aside *aside = image->aside;
    size_t count = 0;
    uint64_t lsn_max;
    struct cn_page_write *writes = aside ? writes_collect(&aside->pages, &count, &lsn_max) : NULL;
    pthread_mutex_unlock(&image->lock);
    if (!aside)
        return 0;

    char from[CN_IMAGE_PATH_MAX], to[CN_IMAGE_PATH_MAX];
    cn_image_path(&image->key, from);
    cn_image_aside_path(&image->key, aside->lsn, to);
    struct cn_disk_file *file;
    int rc = wait_durable(image->images, aside->lsn, err);
    if (rc < 0)
        goto finish;
    cn_image_file_forget(image);
    bool made;
    rc = cn_image_file_create(disk, &image->key, &file, &made);
    if (rc < 0)
        goto failed;
    cn_page_writes_sum(writes, count);
    rc = cn_image_file_write(file, writes, count, aside->file_limit, aside->page_count);
    pthread_mutex_lock(&image->lock); /* the catalog may be told of them (I7) */
    cn_page_writes_enter(writes, count, aside->page_count, &aside->sums);
    pthread_mutex_unlock(&image->lock);
    if (rc == 0)
        rc = cn_sums_append(&aside->sums, file, aside->page_count);
    bool written = rc == 0;
    if (rc == 0)
        rc = cn_disk_sync_data(file);
    cn_disk_close(file);
    if (rc == 0)
        rc = cn_disk_rename(disk, from, to);
    if (rc == 0)
        rc = cn_disk_sync_dir(disk, "aside");
    if (rc == 0)
        rc = cn_disk_sync_parent(disk, from);
    if (rc < 0 && written)
        rc = -EIO; /* even for want of space this cannot be done again as if it had not begun */
failed:
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot set %s aside", from);
finish:
    pthread_mutex_lock(&image->lock);
    writes_finish(image, writes, count, rc == 0);
    if (rc == 0) {
        image->aside = NULL;
        cn_image_aside_free(image, aside);
    }
    pthread_mutex_unlock(&image->lock);
    return rc;
}

/* The file has these pages now, but for those beyond what the database has shrunk to since. */
static void note_written(const struct cn_page_write *writes, size_t count, uint32_t page_count,
                         uint32_t shrunk_to, struct cn_sums *sums, uint32_t *file_limit)
{
    cn_page_writes_enter(writes, count, page_count, sums);
    *file_limit = shrunk_to < page_count ? shrunk_to : page_count;
    cn_sums_resize(sums, *file_limit);
}

/* Writes every dirty page of the present database. The image is busy. */
static int pages_write(struct cn_image *image, struct cn_err *err)
{
    struct cn_images *images = image->images;
    size_t count;
    uint64_t lsn_max;
    pthread_mutex_lock(&image->lock);
    struct cn_page_write *writes = writes_collect(&image->pages, &count, &lsn_max);
    uint32_t page_count = image->page_count, file_limit = image->file_limit;
    uint64_t image_lsn = image->lsn;
    image->shrunk_to = UINT32_MAX;
    pthread_mutex_unlock(&image->lock);

    struct cn_disk_file *file;
    /* The size is part of what was committed: I1 holds for it too. */
    int rc = wait_durable(images, lsn_max > image_lsn ? lsn_max : image_lsn, err);
    if (rc < 0)
        goto finish;
    cn_page_writes_sum(writes, count);
    rc = cn_image_file_use(image, page_count > 0, &file);
    if (rc == 0) {
        rc = cn_image_file_write(file, writes, count, file_limit, page_count);
        cn_image_file_done(image);
        pthread_mutex_lock(&images->lock);
        cn_image_enlist(&images->unsynced, &image->unsynced_link, &images->unsynced_count);
        pthread_mutex_unlock(&images->lock);
    } else if (rc == -ENOENT && page_count == 0) {
        rc = 0; /* nothing to write and no file: so it shall be */
    }
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot write a database file");
finish:
    pthread_mutex_lock(&image->lock);
    if (rc == 0 && image->aside) /* I4: a reset came meanwhile, and this is the old database's */
        note_written(writes, count, page_count, image->aside->shrunk_to, &image->aside->sums,
                     &image->aside->file_limit);
    else if (rc == 0)
        note_written(writes, count, page_count, image->shrunk_to, &image->sums, &image->file_limit);
    writes_finish(image, writes, count, rc == 0);
    bool sums_changed =
        rc == 0 && cn_sums_changed(image->aside ? &image->aside->sums : &image->sums);
    pthread_mutex_unlock(&image->lock);
    if (sums_changed) {
        pthread_mutex_lock(&images->lock);
        cn_image_changed_add(image);
        pthread_mutex_unlock(&images->lock);
    }
    return rc;
}

/* Makes the image busy (I6); under images->lock. */
static void busy_wait(struct cn_image *image)
{
    image->holds++;
    while (image->busy)
        pthread_cond_wait(&image->images->written, &image->images->lock);
    image->holds--;
    image->busy = true;
}

/* Takes the image for writing, off the dirty list; under images->lock. */
static void busy_begin(struct cn_image *image)
{
    struct cn_images *images = image->images;
    busy_wait(image);
    images->writers++;
    if (!cn_list_empty(&image->dirty_link)) {
        cn_list_remove(&image->dirty_link);
        images->dirty_count--;
    }
    cn_list_remove(&image->large_link);
}

/* Writes back one busy image; back on the dirty list if that failed. */
static int busy_write(struct cn_image *image, struct cn_err *err)
{
    struct cn_images *images = image->images;
    struct cn_err own = {0};
    int rc = cn_log_failed(images->config.log, &own) ? CN_EREADONLY : 0;
    if (rc == 0)
        rc = aside_write(image, &own);
    if (rc == 0)
        rc = pages_write(image, &own);
    bool full = rc == -ENOSPC || rc == -EDQUOT;
    if (rc < 0 && !full && !cn_log_failed(images->config.log, NULL))
        cn_log_fail(images->config.log, own.text); /* it is not known what the file holds now */
    if (rc < 0 && err)
        *err = own;
    pthread_mutex_lock(&images->lock);
    image->busy = false;
    images->writers--;
    if (rc < 0) {
        cn_image_enlist(&images->dirty, &image->dirty_link, &images->dirty_count);
        images->write_failures++;
        images->write_failure = full ? -ENOSPC : rc;
    }
    atomic_store_explicit(&images->no_space, full, memory_order_relaxed);
    pthread_cond_broadcast(&images->written);
    cn_image_settle_unlock(image);
    return full ? -ENOSPC : rc;
}

int cn_image_finish_reset(struct cn_image *image, struct cn_err *err)
{
    struct cn_images *images = image->images;
    pthread_mutex_lock(&image->lock);
    bool needed = image->aside != NULL;
    pthread_mutex_unlock(&image->lock);
    if (!needed)
        return 0;
    pthread_mutex_lock(&images->lock);
    busy_begin(image);
    pthread_mutex_unlock(&images->lock);
    return busy_write(image, err);
}

int cn_images_write_back(struct cn_images *images, uint64_t limit, struct cn_err *err)
{
    pthread_mutex_lock(&images->lock);
    uint64_t count = images->dirty_count; /* those that become dirty now come behind these */
    uint64_t failures = images->write_failures;
    pthread_mutex_unlock(&images->lock);
    for (; count > 0; count--) {
        if (limit > 0 && atomic_load(&images->dirty_pages) <= limit)
            break;
        pthread_mutex_lock(&images->lock);
        if (cn_list_empty(&images->dirty)) {
            pthread_mutex_unlock(&images->lock);
            break;
        }
        struct cn_image *image = CN_CONTAINER_OF(images->dirty.next, struct cn_image, dirty_link);
        busy_begin(image);
        pthread_mutex_unlock(&images->lock);
        int rc = busy_write(image, err);
        if (rc < 0)
            return rc;
    }
    if (limit > 0)
        return 0;
    /* What a lane is writing back by itself (a second reset finishes the first) is off the dirty
     * list, but not in its file yet: a checkpoint that did not wait would lose it. */
    pthread_mutex_lock(&images->lock);
    while (images->writers > 0)
        pthread_cond_wait(&images->written, &images->lock);
    int rc = images->write_failures == failures ? 0 : images->write_failure;
    if (rc == 0) /* also if what did not fit has been dropped since */
        atomic_store_explicit(&images->no_space, false, memory_order_relaxed);
    pthread_mutex_unlock(&images->lock);
    return rc < 0 ? cn_err_set(err, rc, "a database file could not be written") : 0;
}

int cn_images_write_back_large(struct cn_images *images, struct cn_err *err)
{
    for (;;) {
        pthread_mutex_lock(&images->lock);
        if (cn_list_empty(&images->large)) {
            atomic_store_explicit(&images->has_large, false, memory_order_relaxed);
            pthread_mutex_unlock(&images->lock);
            return 0;
        }
        struct cn_image *image = CN_CONTAINER_OF(images->large.next, struct cn_image, large_link);
        busy_begin(image);
        pthread_mutex_unlock(&images->lock);
        int rc = busy_write(image, err);
        if (rc < 0)
            return rc;
    }
}

/* ---- Sync ---- */

/* Syncs one file; nothing writes or renames it meanwhile (I6). */
static int sync_singly(struct cn_image *image)
{
    struct cn_images *images = image->images;
    struct cn_disk_file *file;
    pthread_mutex_lock(&images->lock);
    busy_wait(image);
    pthread_mutex_unlock(&images->lock);
    int rc = cn_image_file_use(image, false, &file);
    if (rc == 0) {
        rc = cn_disk_sync_data(file);
        cn_image_file_done(image);
    } else if (rc == -ENOENT) {
        rc = 0; /* set aside meanwhile, which syncs */
    }
    pthread_mutex_lock(&images->lock);
    image->busy = false;
    pthread_cond_broadcast(&images->written);
    pthread_mutex_unlock(&images->lock);
    return rc;
}

int cn_images_sync(struct cn_images *images, struct cn_err *err)
{
    pthread_mutex_lock(&images->lock);
    bool all = images->names_unsynced || images->unsynced_count > SYNC_SINGLY_MAX;
    size_t count = 0;
    struct cn_image **taken = cn_alloc((images->unsynced_count + 1) * sizeof(struct cn_image *));
    /* Off the list before the sync starts: what is written from now on comes back to it. */
    CN_LIST_FOREACH(&images->unsynced, link)
    {
        struct cn_image *image = CN_CONTAINER_OF(link, struct cn_image, unsynced_link);
        cn_list_remove(link);
        image->holds++;
        taken[count++] = image;
    }
    CN_ASSERT(count == images->unsynced_count);
    images->unsynced_count = 0;
    images->names_unsynced = false;
    pthread_mutex_unlock(&images->lock);

    int rc = all ? cn_disk_sync_all(images->config.disk) : 0;
    for (size_t i = 0; i < count; i++) {
        if (!all && rc == 0)
            rc = sync_singly(taken[i]);
        pthread_mutex_lock(&images->lock);
        taken[i]->holds--;
        cn_image_settle_unlock(taken[i]);
    }
    cn_free(taken);
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot sync database files");
    return rc < 0
               ? -EIO
               : 0; /* whatever the reason: the kernel may have dropped what it could not write */
}
