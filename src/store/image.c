/* SPDX-License-Identifier: Apache-2.0 */
/* store/image.c - committed pages in memory and in files.
 *
 *       commit             write-back                 sync
 *     log + memory  --->  file, unsynced  --->  file, synced: the log may forget
 *     (dirty)             (unsynced)
 *
 * I1  A page goes to its file only after the record of its last change is durable.
 * I2  Bytes of a dirty page are never changed, only replaced. Write-back pins
 *     what it is about to write; who replaces a pinned page leaves its bytes to the
 *     writer, who frees them.
 * I3  file_limit is how many pages at the start of the file belong to the
 *     present database; beyond it a page that is not in memory is zeros. It falls at
 *     once when a commit shrinks the database, and rises when write-back has written.
 * I4  A reset keeps the old pages as `aside` until they are written to the old
 *     file, which is synced and then renamed; only then does the present
 *     database get a file. The renamed file stays until a checkpoint has passed
 *     the reset, so recovery can tell by its presence whether the rename happened.
 * I5  An image leaves memory only when it is closed, written, synced and in the catalog.
 * I6  One thread writes an image's file at a time (`busy`).
 * I7  `sums` has the checksum of every page that the file has (up to file_limit). They change with
 *     the pages, in the step in which written pages leave memory; so a page that is not in memory
 *     has the checksum in `sums`, and it is compared whenever one is read from the file. The
 *     catalog keeps them: a checkpoint flushes it after it has written the pages, and whatever
 *     changed since the checkpoint is written anew by recovery, sums included, so that neither a
 *     crash nor the order of catalog and file matters. The catalog has those of what is in the
 *     file: until the old database of a reset is set aside (I4), its own, pages included that were
 *     written just before the reset or while it came, for recovery may have to set it aside; then
 *     those of the new one.
 *
 * Locks, outermost first: commit_gate, the catalog's, an image's, images->lock,
 * the log's. No disk operation happens under images->lock, and under an image's
 * lock only a commit's read of a page that it changes. */
#include "store/image_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/buf.h"
#include "base/cond.h"
#include "base/mem.h"
#include "store/catalog.h"
#include "store/log.h"
#include "store/pagediff.h"
#include "store/store.h"
#include "text/hex.h"

/* ---- Memory ---- */

uint8_t *cn_image_page_new(void)
{
    return cn_alloc(CN_PAGE_SIZE);
}

void cn_image_page_free(uint8_t *bytes)
{
    cn_free(bytes);
}

void cn_image_page_drop(struct cn_image *image, struct cn_pagemap *map, struct cn_page *page)
{
    if (!page->pinned)
        cn_image_page_free(page->bytes);
    cn_pagemap_remove(map, page);
    cn_images_count_dirty(image->images, -1);
}

static void pages_drop_all(struct cn_image *image, struct cn_pagemap *map)
{
    uint32_t cursor = 0;
    for (struct cn_page *page; (page = cn_pagemap_next(map, &cursor));) {
        if (!page->pinned)
            cn_image_page_free(page->bytes);
    }
    cn_images_count_dirty(image->images, -(int64_t)map->count);
    cn_pagemap_clear(map);
}

void cn_image_aside_free(struct cn_image *image, struct cn_aside *aside)
{
    if (!aside)
        return;
    pages_drop_all(image, &aside->pages);
    cn_sums_fini(&aside->sums);
    cn_free(aside);
}

static struct cn_image *image_new(struct cn_images *images, const struct cn_object_key *key)
{
    struct cn_image *image = CN_NEW(struct cn_image);
    image->images = images;
    image->key = *key;
    image->meta.alarm_ms = CN_ALARM_NONE;
    pthread_mutex_init(&image->lock, NULL);
    cn_list_init(&image->dirty_link);
    cn_list_init(&image->large_link);
    cn_list_init(&image->unsynced_link);
    cn_list_init(&image->changed_link);
    cn_list_init(&image->file_link);
    return image;
}

static void image_free(struct cn_image *image)
{
    CN_ASSERT(image->file_users == 0);
    if (image->file)
        cn_disk_close(image->file);
    pages_drop_all(image, &image->pages);
    cn_image_aside_free(image, image->aside);
    cn_sums_fini(&image->sums);
    cn_free(image->meta.name);
    pthread_mutex_destroy(&image->lock);
    cn_free(image);
}

void cn_image_settle_unlock(struct cn_image *image)
{
    struct cn_images *images = image->images;
    bool needed = image->open || image->busy || image->holds > 0 ||
                  !cn_list_empty(&image->dirty_link) || !cn_list_empty(&image->unsynced_link) ||
                  !cn_list_empty(&image->changed_link);
    if (!needed) {
        CN_ASSERT(image->pages.count == 0 && !image->aside);
        if (image->file) {
            cn_list_remove(&image->file_link);
            cn_images_count_files(images, -1);
        }
        (void)cn_map_take(&images->table, &image->key, sizeof(image->key));
    }
    pthread_mutex_unlock(&images->lock);
    if (!needed)
        image_free(image);
}

/* ---- Opening ---- */

/* The name of an object in messages. */
static void key_text(const struct cn_object_key *key, char text[CN_IMAGE_PATH_MAX])
{
    int at = snprintf(text, CN_IMAGE_PATH_MAX, "%" PRIu32 "/", key->namespace_id);
    cn_hex_encode(key->id, CN_OBJECT_ID_SIZE, text + at);
}

/* The file must be as long as the catalog says: an image that is not in memory is in both. */
static int size_check(const struct cn_image *image, bool exists, uint64_t expected, uint64_t size,
                      struct cn_err *err)
{
    char name[CN_IMAGE_PATH_MAX];
    if (size % CN_PAGE_SIZE == 0 && size / CN_PAGE_SIZE <= UINT32_MAX - 1 &&
        size == (exists ? expected : 0))
        return 0;
    key_text(&image->key, name);
    return cn_err_set(err, CN_ECORRUPT,
                      "the database file of object %s is damaged: it has %" PRIu64
                      " bytes instead of %" PRIu64,
                      name, size, exists ? expected : 0);
}

/* Size from the file, metadata and checksums from the catalog. */
static int image_load(struct cn_image *image, struct cn_catalog *catalog, struct cn_err *err)
{
    char name[CN_OBJECT_NAME_MAX + 1];
    struct cn_catalog_entry entry = {0};
    int found = cn_catalog_find_settled(catalog, &image->key, &entry, name, &image->sums, err);
    if (found < 0)
        return found;
    if (found) {
        image->exists = true;
        image->meta.alarm_ms = entry.alarm_ms;
        if (entry.name) {
            image->meta.name = cn_strndup(entry.name, entry.name_size);
            image->meta.name_size = entry.name_size;
        }
    }
    struct cn_disk_file *file;
    int64_t size = 0;
    int rc = cn_image_file_use(image, false, &file);
    if (rc < 0 && rc != -ENOENT)
        return cn_err_errno(err, -rc, "cannot open a database file");
    if (rc == 0) {
        size = cn_disk_size(file);
        cn_image_file_done(image);
    }
    if (size < 0)
        return cn_err_errno(err, (int)-size, "cannot read the size of a database file");
    rc = size_check(image, found, entry.size, (uint64_t)size, err);
    if (rc < 0)
        return rc;
    image->page_count = image->file_limit = (uint32_t)(size / CN_PAGE_SIZE);
    cn_sums_fit(&image->sums, image->page_count);
    return 0;
}

/* Finds or loads the image and holds it. */
static int image_hold(struct cn_images *images, struct cn_catalog *catalog,
                      const struct cn_object_key *key, struct cn_image **result, struct cn_err *err)
{
    pthread_mutex_lock(&images->lock);
    struct cn_image *image = cn_map_find(&images->table, key, sizeof(*key));
    bool fresh = !image;
    if (fresh) {
        image = image_new(images, key);
        image->busy = true; /* others wait below while it loads */
        (void)cn_map_set(&images->table, key, sizeof(*key), image);
    }
    image->holds++;
    while (!fresh && !image->loaded && image->busy)
        pthread_cond_wait(&images->written, &images->lock);
    pthread_mutex_unlock(&images->lock);

    int rc = 0;
    if (fresh)
        rc = image_load(image, catalog, err);
    pthread_mutex_lock(&images->lock);
    if (fresh) {
        image->busy = false;
        image->loaded = rc == 0;
        pthread_cond_broadcast(&images->written);
    }
    if (image->loaded) {
        *result = image;
        pthread_mutex_unlock(&images->lock);
        return 0;
    }
    if (rc == 0)
        rc = cn_err_set(err, CN_ECLOSED, "the database could not be opened by another thread");
    image->holds--;
    cn_image_settle_unlock(image);
    return rc;
}

int cn_image_open(struct cn_images *images, struct cn_catalog *catalog,
                  const struct cn_object_key *key, bool must_exist, struct cn_image **result,
                  struct cn_err *err)
{
    struct cn_image *image;
    int rc = image_hold(images, catalog, key, &image, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&images->lock);
    image->holds--;
    if (image->open) {
        rc = cn_err_set(err, CN_ELOCKED, "the object's database is open already");
    } else if (must_exist && !image->exists) { /* nobody commits to it: it is not open */
        rc = cn_err_set(err, CN_ENOTFOUND, "no such object");
    } else {
        image->open = true;
        images->open_count++;
        *result = image;
    }
    if (rc < 0)
        cn_image_settle_unlock(image);
    else
        pthread_mutex_unlock(&images->lock);
    return rc;
}

void cn_image_close(struct cn_image *image)
{
    struct cn_images *images = image->images;
    pthread_mutex_lock(&images->lock);
    CN_ASSERT(image->open);
    image->open = false;
    images->open_count--;
    cn_image_settle_unlock(image);
}

const struct cn_object_key *cn_image_key(const struct cn_image *image)
{
    return &image->key;
}

uint32_t cn_image_commit_pages_max(const struct cn_image *image)
{
    return image->images->config.commit_pages_max;
}

uint32_t cn_image_page_count(struct cn_image *image)
{
    return image->page_count; /* only its owner, who asks, changes it */
}

uint64_t cn_image_lsn(struct cn_image *image)
{
    return image->lsn;
}

const struct cn_image_meta *cn_image_meta(const struct cn_image *image)
{
    return &image->meta;
}

/* ---- Reading ---- */

/* Says that the page on disk is not what was written, and what can be done. */
static int page_damaged(const struct cn_image *image, uint32_t page_no, struct cn_err *err)
{
    char name[CN_IMAGE_PATH_MAX];
    key_text(&image->key, name);
    return cn_err_set(err, CN_ECORRUPT,
                      "page %" PRIu32
                      " of the database of object %s is damaged on disk: it does not"
                      " match its checksum. History may still have it: \"cairn objects restore"
                      " NAMESPACE %s --time TIME\" writes the page anew",
                      page_no, name, strchr(name, '/') + 1);
}

/* A part of a page from the file, which has it (I3), compared with its checksum (I7). */
static int file_read(struct cn_image *image, uint32_t page_no, uint32_t offset, uint32_t size,
                     uint32_t sum, void *bytes, struct cn_err *err)
{
    struct cn_disk_file *file;
    uint8_t scratch[CN_PAGE_SIZE];
    uint8_t *page = size == CN_PAGE_SIZE ? bytes : scratch;
    int rc = cn_image_file_use(image, false, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot open a database file");
    int64_t got = cn_disk_read(file, page, CN_PAGE_SIZE, (uint64_t)(page_no - 1) * CN_PAGE_SIZE);
    cn_image_file_done(image);
    if (got < 0)
        return cn_err_errno(err, (int)-got, "cannot read a database file");
    if (got < CN_PAGE_SIZE)
        return cn_err_set(err, CN_ECORRUPT, "a database file ends before page %" PRIu32, page_no);
    if (sum != CN_SUM_UNKNOWN && cn_sum_of(page) != sum)
        return page_damaged(image, page_no, err);
    if (page == scratch)
        memcpy(bytes, scratch + offset, size);
    return 0;
}

int cn_image_read(struct cn_image *image, uint32_t page_no, uint32_t offset, uint32_t size,
                  void *bytes, struct cn_err *err)
{
    CN_ASSERT(page_no > 0 && offset + size <= CN_PAGE_SIZE);
    pthread_mutex_lock(&image->lock);
    struct cn_page *page = cn_pagemap_find(&image->pages, page_no);
    bool in_file = !page && page_no <= image->file_limit;
    uint32_t sum = in_file ? cn_sums_get(&image->sums, page_no) : 0;
    if (page)
        memcpy(bytes, page->bytes + offset, size);
    pthread_mutex_unlock(&image->lock);
    /* Without the lock: a page leaves memory only after it was written, and only
     * our caller could commit a newer one. */
    if (in_file)
        return file_read(image, page_no, offset, size, sum, bytes, err);
    if (!page)
        memset(bytes, 0, size);
    return 0;
}

/* ---- Commit ---- */

static void append_meta(struct cn_buf *body, uint16_t tag, const void *bytes, uint16_t size)
{
    struct cn_meta_item item = {.tag = tag, .size = size};
    cn_buf_append(body, &item, sizeof(item));
    cn_buf_append(body, bytes, size);
}

/* Appends one page entry, unless the page did not change: then false. `before` and
 * `after` are NULL for a page of zeros beyond the database. */
static bool append_page(struct cn_buf *body, uint32_t page_no, const uint8_t *before,
                        const uint8_t *after, bool with_image)
{
    static const uint8_t zeros[CN_PAGE_SIZE];
    struct cn_page_entry entry = {.page_no = page_no};
    size_t start = body->size, room = CN_PAGE_SIZE + CN_PAGEDIFF_OVERHEAD;
    cn_buf_reserve(body, sizeof(entry) + (with_image ? 2 * room : room));
    uint8_t *out = body->data + start + sizeof(entry);
    uint8_t *diff = with_image ? out + room : out;
    if (before)
        entry.diff_size =
            (uint16_t)cn_pagediff_encode(before, after ? after : zeros, CN_PAGE_SIZE, diff);
    if (after && entry.diff_size == 1)
        return false; /* the encoding of no change, and of nothing else */
    if (with_image) {
        entry.image_size = (uint16_t)cn_pagediff_encode(NULL, after, CN_PAGE_SIZE, out);
        memmove(out + entry.image_size, diff, entry.diff_size);
    }
    memcpy(body->data + start, &entry, sizeof(entry));
    body->size = start + sizeof(entry) + entry.image_size + entry.diff_size;
    return true;
}

/* The committed bytes of a page, from memory or read into `scratch`; NULL for zeros
 * beyond the end of the database before. Under the image's lock. */
static int page_before(struct cn_image *image, uint32_t page_no, uint8_t scratch[CN_PAGE_SIZE],
                       const uint8_t **bytes, struct cn_err *err)
{
    *bytes = NULL;
    if (page_no > image->page_count)
        return 0;
    struct cn_page *page = cn_pagemap_find(&image->pages, page_no);
    *bytes = page ? page->bytes : scratch;
    if (page)
        return 0;
    if (page_no <= image->file_limit)
        return file_read(image, page_no, 0, CN_PAGE_SIZE, cn_sums_get(&image->sums, page_no),
                         scratch, err);
    memset(scratch, 0, CN_PAGE_SIZE);
    return 0;
}

/* What changes besides pages, and, for the way back, what it replaces. */
static void encode_meta(const struct cn_image *image, const struct cn_image_change *change,
                        struct cn_buf *body)
{
    const struct cn_image_meta *meta = change->meta, *before = &image->meta;
    bool deleted = change->flags & CN_COMMIT_DELETED;
    bool has_alarm = meta && meta->has_alarm;
    if (has_alarm)
        append_meta(body, CN_META_ALARM, &meta->alarm_ms, sizeof(int64_t));
    if (meta && meta->has_name)
        append_meta(body, CN_META_NAME, meta->name, meta->name_size);
    if (has_alarm || (deleted && before->alarm_ms != CN_ALARM_NONE))
        append_meta(body, CN_META_ALARM_BEFORE, &before->alarm_ms, sizeof(int64_t));
    if (deleted && before->name)
        append_meta(body, CN_META_NAME_BEFORE, before->name, before->name_size);
}

/* Encodes the record body, behind room for the log. Pages that did not change leave the map. */
static int encode(struct cn_image *image, struct cn_image_change *change, uint64_t boundary,
                  struct cn_buf *body, struct cn_err *err)
{
    bool reset = change->flags & CN_COMMIT_RESET;
    struct cn_commit_head head = {
        .key = image->key,
        .pages_before = reset ? 0 : image->page_count,
        .pages_after = change->pages_after,
        .flags = change->flags,
    };
    cn_buf_clear(body);
    /* Most commits are a few small differences: room for the next page beside them, once. */
    cn_buf_reserve(body, CN_LOG_ROOM + 3 * CN_PAGE_SIZE);
    body->size = CN_LOG_ROOM;
    cn_buf_append(body, &head, sizeof(head));
    encode_meta(image, change, body);
    head.meta_size = (uint16_t)(body->size - CN_LOG_ROOM - sizeof(head));

    uint8_t scratch[CN_PAGE_SIZE];
    const uint8_t *before;
    int rc = 0;
    uint32_t cursor = 0;
    for (struct cn_page *page; rc == 0 && (page = cn_pagemap_next(change->pages, &cursor));) {
        if (page->page_no > change->pages_after)
            continue; /* written and cut off again */
        before = NULL;
        if (!reset)
            rc = page_before(image, page->page_no, scratch, &before, err);
        if (rc < 0)
            break;
        struct cn_page *old = before ? cn_pagemap_find(&image->pages, page->page_no) : NULL;
        bool with_image = !old || old->image_lsn <= boundary; /* R7 */
        if (before && image->images->config.planted & CN_PLANTED_NO_IMAGE)
            with_image = false;
        if (!append_page(body, page->page_no, before, page->bytes, with_image)) {
            page->image_lsn = UINT64_MAX; /* unchanged: install() leaves it out */
            continue;
        }
        page->image_lsn = with_image || !old ? 0 : old->image_lsn; /* 0: this record's */
        head.page_count++;
    }
    for (uint32_t no = change->pages_after + 1; rc == 0 && no <= head.pages_before; no++) {
        rc = page_before(image, no, scratch, &before, err);
        if (rc == 0)
            append_page(body, no, before, NULL, false);
        head.page_count++;
    }
    memcpy(body->data + CN_LOG_ROOM, &head, sizeof(head));
    return rc;
}

void cn_image_enlist(struct cn_list *list, struct cn_list *link, uint64_t *count)
{
    if (!cn_list_empty(link))
        return;
    cn_list_push_back(list, link);
    if (count)
        (*count)++;
}

/* The old database of a reset becomes `aside`. */
static void install_reset(struct cn_image *image, uint64_t lsn)
{
    if (image->page_count > 0) {
        struct cn_aside *aside = CN_NEW(struct cn_aside);
        *aside = (struct cn_aside){
            .pages = image->pages,
            .page_count = image->page_count,
            .file_limit = image->file_limit,
            .shrunk_to = image->shrunk_to,
            .sums = image->sums,
            .lsn = lsn,
        };
        image->pages = (struct cn_pagemap){0};
        image->sums = (struct cn_sums){.cut = true};
        CN_ASSERT(!image->aside);
        image->aside = aside;
    }
    image->page_count = 0;
    image->file_limit = 0;
    image->shrunk_to = 0;
}

static void install_meta(struct cn_image *image, const struct cn_image_change *change, uint64_t lsn)
{
    const struct cn_image_meta *meta = change->meta;
    if (change->flags & CN_COMMIT_DELETED) {
        cn_free(image->meta.name);
        image->meta = (struct cn_image_meta){.alarm_ms = CN_ALARM_NONE};
        image->exists = false;
        image->reborn_lsn = lsn;
        return;
    }
    image->exists = true;
    if (meta && meta->has_alarm)
        image->meta.alarm_ms = meta->alarm_ms;
    if (meta && meta->has_name) {
        cn_free(image->meta.name);
        image->meta.name = cn_strndup(meta->name, meta->name_size);
        image->meta.name_size = meta->name_size;
    }
}

static void page_cut(void *data, const struct cn_page *page)
{
    struct cn_image *image = data;
    if (!page->pinned)
        cn_image_page_free(page->bytes);
    cn_images_count_dirty(image->images, -1);
}

/* An image that waits already keeps its place: a flush takes as many as waited when it began, the
 * first ones. */
void cn_image_changed_add(struct cn_image *image)
{
    struct cn_images *images = image->images;
    if (image->changed)
        return;
    image->changed = true;
    images->changed_count++;
    cn_list_remove(&image->changed_link); /* it may be among those entered */
    cn_list_push_back(&images->changed, &image->changed_link);
}

uint64_t cn_images_changed_count(struct cn_images *images)
{
    pthread_mutex_lock(&images->lock);
    uint64_t count = images->changed_count;
    pthread_mutex_unlock(&images->lock);
    return count;
}

/* Shows a logged change. Under the image's lock. */
static void install(struct cn_image *image, struct cn_image_change *change, uint64_t lsn,
                    int64_t time_ms)
{
    struct cn_images *images = image->images;
    if (change->flags & CN_COMMIT_RESET)
        install_reset(image, lsn);
    if (change->pages_after < image->page_count) {
        cn_pagemap_cut(&image->pages, change->pages_after, page_cut, image);
        if (image->file_limit > change->pages_after) {
            image->file_limit = change->pages_after;
            cn_sums_resize(&image->sums, image->file_limit);
        }
        if (image->shrunk_to > change->pages_after)
            image->shrunk_to = change->pages_after;
    }
    image->page_count = change->pages_after;
    image->lsn = lsn;
    image->time_ms = time_ms;
    install_meta(image, change, lsn);

    uint32_t cursor = 0;
    for (struct cn_page *from; (from = cn_pagemap_next(change->pages, &cursor));) {
        if (from->page_no > change->pages_after || from->image_lsn == UINT64_MAX) {
            cn_image_page_free(from->bytes);
            continue;
        }
        struct cn_page *page = cn_pagemap_add(&image->pages, from->page_no);
        if (!page->bytes)
            cn_images_count_dirty(images, 1);
        else if (!page->pinned)
            cn_image_page_free(page->bytes);
        page->bytes = from->bytes;
        page->pinned = false;
        page->lsn = lsn;
        page->image_lsn = from->image_lsn ? from->image_lsn : lsn;
    }
    cn_pagemap_clear(change->pages);

    pthread_mutex_lock(&images->lock);
    cn_image_enlist(&images->dirty, &image->dirty_link, &images->dirty_count);
    if (image->pages.count > images->config.dirty_pages_max / 16) {
        cn_image_enlist(&images->large, &image->large_link, NULL);
        atomic_store_explicit(&images->has_large, true, memory_order_relaxed);
    }
    cn_image_changed_add(image);
    pthread_mutex_unlock(&images->lock);
}

static int refuse_full(struct cn_err *err)
{
    return cn_err_set(err, CN_EREADONLY, "writes are refused: no space to write database files");
}

bool cn_images_over_budget(const struct cn_images *images)
{
    const struct cn_images_budget *budget = images->config.budget;
    return budget && atomic_load_explicit(&budget->dirty_pages, memory_order_relaxed) >
                         budget->dirty_pages_max;
}

/* Commits wait at so many times what the keeper allows. */
enum { HARD = 4 };

/* Are there more than so many times what the keeper allows? */
static bool exceeds(const struct cn_images *images, unsigned times)
{
    const struct cn_images_budget *budget = images->config.budget;
    return atomic_load_explicit(&images->dirty_pages, memory_order_relaxed) >
               times * images->config.dirty_pages_max ||
           (budget && atomic_load_explicit(&budget->dirty_pages, memory_order_relaxed) >
                          times * budget->dirty_pages_max);
}

static bool must_wait(const struct cn_images *images)
{
    return exceeds(images, HARD);
}

enum cn_log_pressure cn_images_pressure(const struct cn_images *images)
{
    return !must_wait(images)           ? CN_LOG_ROOMY
           : !exceeds(images, 2 * HARD) ? CN_LOG_PRESSED
                                        : CN_LOG_CROWDED;
}

/* Until pages of this store have left memory or, since those of others count too, for a while. */
static void written_wait(struct cn_images *images)
{
    if (images->config.budget)
        (void)cn_cond_wait_ms(&images->written, &images->lock, 20);
    else
        pthread_cond_wait(&images->written, &images->lock);
}

/* Keeps the number of dirty pages bounded. */
static int dirty_wait(struct cn_images *images, struct cn_err *err)
{
    const uint64_t soft = images->config.dirty_pages_max;
    uint64_t now = atomic_load_explicit(&images->dirty_pages, memory_order_relaxed);
    if (atomic_load_explicit(&images->no_space, memory_order_relaxed))
        return refuse_full(err);
    bool large = atomic_load_explicit(&images->has_large, memory_order_relaxed);
    if (now <= soft && (!large || images->config.manual) && !cn_images_over_budget(images))
        return 0;
    if (images->config.manual) {
        int rc = cn_images_write_back(images, soft / 2, err);
        return rc == -ENOSPC ? refuse_full(err) : rc;
    }
    images->config.wake_keeper(images->config.data);
    if (!must_wait(images))
        return 0;
    if (!cn_may_block())
        return exceeds(images, 4 * HARD)
                   ? cn_err_set(err, CN_EOVERLOADED,
                                "the disk does not keep up: too many pages wait in memory")
                   : 0;
    pthread_mutex_lock(&images->lock);
    while (must_wait(images) && !atomic_load_explicit(&images->no_space, memory_order_relaxed) &&
           cn_log_status(images->config.log, NULL) == 0)
        written_wait(images);
    pthread_mutex_unlock(&images->lock);
    return cn_log_status(images->config.log, err);
}

static bool change_is_empty(const struct cn_image *image, const struct cn_image_change *change,
                            const struct cn_buf *body)
{
    struct cn_commit_head head;
    memcpy(&head, body->data + CN_LOG_ROOM, sizeof(head));
    return head.page_count == 0 && head.meta_size == 0 && head.pages_before == head.pages_after &&
           !change->flags && image->exists;
}

/* An earlier reset must be done: one `aside` at a time. */
static int finish_reset(struct cn_image *image, struct cn_err *err)
{
    /* The exception (B3 of base/block.h): a lane waits here for one sync if an object empties its
     * database twice before the keeper has come by. */
    bool before = cn_block_except(false);
    int rc = cn_image_finish_reset(image, err);
    (void)cn_block_except(before);
    return rc;
}

int cn_image_commit(struct cn_image *image, struct cn_image_change *change, uint64_t *lsn,
                    struct cn_err *err)
{
    struct cn_images *images = image->images;
    if (change->pages->count > images->config.commit_pages_max)
        return cn_err_set(err, CN_ELIMIT,
                          "a transaction that changes %" PRIu32 " pages is larger than the %" PRIu32
                          " allowed",
                          change->pages->count, images->config.commit_pages_max);
    int rc = dirty_wait(images, err);
    if (rc == 0 && (change->flags & CN_COMMIT_RESET))
        rc = finish_reset(image, err);
    if (rc < 0)
        return rc;

    struct cn_buf body = {0};
    int64_t time_ms;
    pthread_rwlock_rdlock(&images->commit_gate);
    pthread_mutex_lock(&image->lock);
    do {
        uint64_t boundary = cn_log_boundary(images->config.log);
        rc = encode(image, change, boundary, &body, err);
        if (rc == 0 && change_is_empty(image, change, &body)) {
            *lsn = image->lsn;
            uint32_t cursor = 0;
            for (struct cn_page *page; (page = cn_pagemap_next(change->pages, &cursor));)
                cn_image_page_free(page->bytes);
            cn_pagemap_clear(change->pages);
            break;
        }
        if (rc == 0) {
            struct cn_log_entry entry = {CN_RECORD_COMMIT, body.data + CN_LOG_ROOM,
                                         body.size - CN_LOG_ROOM, boundary, &body};
            rc = cn_log_append(images->config.log, &entry, lsn, &time_ms, err);
        }
        if (rc == 0)
            install(image, change, *lsn, time_ms);
    } while (rc == -EAGAIN);
    pthread_mutex_unlock(&image->lock);
    pthread_rwlock_unlock(&images->commit_gate);
    cn_buf_fini(&body);
    return rc;
}

/* ---- Catalog and snapshots ---- */

/* The image's catalog entry; the name and the checksums are copies for the caller to free. */
static void change_describe(struct cn_image *image, bool sums_lost,
                            struct cn_catalog_change *change, char **name,
                            struct cn_sums_part **parts)
{
    pthread_mutex_lock(&image->lock);
    *name = image->meta.name ? cn_strndup(image->meta.name, image->meta.name_size) : NULL;
    *parts = NULL;
    *change = (struct cn_catalog_change){
        .key = image->key,
        .lsn = image->lsn,
        .time_ms = image->time_ms,
        .page_count = image->page_count,
        .deleted = !image->exists,
        .reborn_lsn = image->reborn_lsn,
        .has_alarm = true,
        .alarm_ms = image->meta.alarm_ms,
        .name = *name,
        .name_size = image->meta.name_size,
    };
    struct cn_sums *sums = image->aside ? &image->aside->sums : &image->sums; /* I7 */
    if (sums_lost)
        cn_sums_changed_all(sums);
    change->sums_cut = sums->cut;
    change->sums_pages = sums->count;
    change->part_count = cn_sums_take(sums, parts);
    change->parts = *parts;
    pthread_mutex_unlock(&image->lock);
}

int cn_images_drain(struct cn_images *images, int max,
                    int (*each)(void *data, const struct cn_catalog_change *change,
                                struct cn_err *err),
                    void *data, struct cn_err *err)
{
    int rc = 0, count = 0;
    pthread_mutex_lock(&images->lock);
    while (rc == 0 && (max < 0 || count < max) && !cn_list_empty(&images->changed)) {
        struct cn_image *image =
            CN_CONTAINER_OF(images->changed.next, struct cn_image, changed_link);
        cn_list_remove(&image->changed_link);
        cn_list_push_back(&images->entered, &image->changed_link);
        image->changed = false;
        images->changed_count--;
        image->holds++;
        bool sums_lost = image->sums_lost;
        image->sums_lost = false;
        pthread_mutex_unlock(&images->lock);

        struct cn_catalog_change change;
        struct cn_sums_part *parts;
        char *name;
        change_describe(image, sums_lost, &change, &name, &parts);
        rc = each(data, &change, err);
        cn_free(parts);
        cn_free(name);
        count++;

        pthread_mutex_lock(&images->lock);
        image->holds--;
        cn_image_settle_unlock(image);
        pthread_mutex_lock(&images->lock);
    }
    pthread_mutex_unlock(&images->lock);
    return rc < 0 ? rc : count;
}

void cn_images_entered(struct cn_images *images, bool durable)
{
    pthread_mutex_lock(&images->lock);
    while (!cn_list_empty(&images->entered)) {
        struct cn_image *image =
            CN_CONTAINER_OF(images->entered.next, struct cn_image, changed_link);
        cn_list_remove(&image->changed_link);
        if (durable) {
            cn_image_settle_unlock(image);
            pthread_mutex_lock(&images->lock);
        } else {
            image->sums_lost = true;
            cn_image_changed_add(image);
        }
    }
    pthread_mutex_unlock(&images->lock);
}

int cn_image_snapshot(struct cn_images *images, struct cn_catalog *catalog,
                      const struct cn_object_key *key, struct cn_image_snapshot *snapshot,
                      struct cn_err *err)
{
    struct cn_image *image;
    int rc = image_hold(images, catalog, key, &image, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&image->lock);
    for (uint32_t no = 1; no <= image->page_count && rc == 0; no++) {
        uint8_t scratch[CN_PAGE_SIZE];
        const uint8_t *bytes;
        rc = page_before(image, no, scratch, &bytes, err);
        if (rc == 0)
            rc = snapshot->each(snapshot->data, no, bytes);
    }
    snapshot->page_count = image->page_count;
    snapshot->lsn = image->lsn ? image->lsn : cn_log_durable(images->config.log);
    pthread_mutex_unlock(&image->lock);
    pthread_mutex_lock(&images->lock);
    image->holds--;
    cn_image_settle_unlock(image);
    return rc;
}

/* ---- Pages that the disk has spoilt ---- */

/* Whether the page must come from the file and does not match there; under the image's lock. */
static int page_look(struct cn_image *image, uint32_t page_no, bool *damaged, struct cn_err *err)
{
    uint8_t scratch[CN_PAGE_SIZE];
    struct cn_err own = {0};
    *damaged = false;
    if (page_no > image->file_limit || cn_pagemap_find(&image->pages, page_no))
        return 0;
    int rc = file_read(image, page_no, 0, CN_PAGE_SIZE, cn_sums_get(&image->sums, page_no), scratch,
                       &own);
    *damaged = rc == CN_ECORRUPT;
    if (rc < 0 && !*damaged && err)
        *err = own;
    return *damaged ? 0 : rc;
}

/* Shows the page as if it were about to be written back; under the image's lock. Nothing is logged:
 * it is what was committed. */
static void page_show(struct cn_image *image, uint32_t page_no, const uint8_t *bytes)
{
    struct cn_images *images = image->images;
    struct cn_page *page = cn_pagemap_add(&image->pages, page_no);
    page->bytes = cn_image_page_new();
    memcpy(page->bytes, bytes, CN_PAGE_SIZE);
    page->lsn = image->lsn;
    page->image_lsn = 0; /* its next change is logged whole */
    cn_images_count_dirty(images, 1);
    pthread_mutex_lock(&images->lock);
    cn_image_enlist(&images->dirty, &image->dirty_link, &images->dirty_count);
    pthread_mutex_unlock(&images->lock);
}

static int page_heal(struct cn_image *image, uint32_t page_no, const struct cn_page_source *source,
                     uint32_t *healed, struct cn_err *err)
{
    uint8_t bytes[CN_PAGE_SIZE];
    bool damaged;
    pthread_mutex_lock(&image->lock);
    int rc = page_look(image, page_no, &damaged, err);
    pthread_mutex_unlock(&image->lock);
    if (rc < 0 || !damaged)
        return rc;
    rc = source->read(source->data, page_no, bytes, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&image->lock);
    rc = page_look(image, page_no, &damaged, err); /* a commit may have replaced it meanwhile */
    if (rc == 0 && damaged) {
        if (cn_sums_get(&image->sums, page_no) == cn_sum_of(bytes)) {
            page_show(image, page_no, bytes);
            (*healed)++;
        } else {
            rc = page_damaged(image, page_no, err);
        }
    }
    pthread_mutex_unlock(&image->lock);
    return rc;
}

int cn_images_heal(struct cn_images *images, struct cn_catalog *catalog,
                   const struct cn_object_key *key, const struct cn_page_source *source,
                   uint32_t *healed, struct cn_err *err)
{
    struct cn_image *image;
    *healed = 0;
    int rc = image_hold(images, catalog, key, &image, err);
    if (rc < 0)
        return rc;
    for (uint32_t no = 1; rc == 0; no++) {
        pthread_mutex_lock(&image->lock);
        bool over = no > image->file_limit;
        pthread_mutex_unlock(&image->lock);
        if (over)
            break;
        rc = page_heal(image, no, source, healed, err);
    }
    pthread_mutex_lock(&images->lock);
    image->holds--;
    cn_image_settle_unlock(image);
    return rc;
}

/* ---- All of them ---- */

void cn_images_init(struct cn_images *images, const struct cn_images_config *config)
{
    *images = (struct cn_images){.config = *config};
    /* A checkpoint that wants to start goes before commits that come after it. */
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&images->commit_gate, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    pthread_mutex_init(&images->lock, NULL);
    cn_cond_init(&images->written);
    cn_map_init(&images->table);
    cn_list_init(&images->dirty);
    cn_list_init(&images->large);
    cn_list_init(&images->unsynced);
    cn_list_init(&images->changed);
    cn_list_init(&images->entered);
    cn_list_init(&images->files);
    atomic_init(&images->dirty_pages, 0);
    atomic_init(&images->no_space, false);
    atomic_init(&images->has_large, false);
}

void cn_images_fini(struct cn_images *images)
{
    const struct cn_map_entry *entry;
    size_t cursor = 0;
    CN_ASSERT(images->open_count == 0);
    while (cn_map_next(&images->table, &cursor, &entry))
        image_free(entry->value);
    cn_map_fini(&images->table);
    pthread_rwlock_destroy(&images->commit_gate);
    pthread_mutex_destroy(&images->lock);
    pthread_cond_destroy(&images->written);
}
