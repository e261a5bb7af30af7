/* SPDX-License-Identifier: Apache-2.0 */
#include "analytics/points_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"

#define WINDOW_SIZE ((size_t)256 << 10) /* blocks up to this size are read whole */
#define HEAD_SIZE_MAX \
    (sizeof(struct cn_points_block) + CN_POINTS_COLUMN_COUNT * sizeof(struct cn_points_part))
#define BLOCK_SIZE_MAX ((uint32_t)1 << 30)

/* Whether points of the wanted time can be in a segment of the day that its name tells. Its points
 * may be of the evening before, and clocks are set: a day is allowed for. */
static bool segment_fits(const struct cn_points_scan *scan, const char *name)
{
    int year, month, day;
    size_t size = strlen(name);
    if (size < 14 || strcmp(name + size - 4, ".seg") != 0 ||
        sscanf(name, "%4d%2d%2d-", &year, &month, &day) != 3)
        return false;
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    int64_t begin_ms = (int64_t)timegm(&tm) * 1000, day_ms = 86400000;
    return begin_ms + 2 * day_ms > scan->first_ms && begin_ms - day_ms <= scan->last_ms;
}

int cn_points_scan_open(struct cn_points_scan *scan, struct cn_disk *disk, const char *dataset,
                        uint64_t columns, int64_t first_ms, int64_t last_ms, struct cn_err *err)
{
    struct cn_disk_entries segments;
    if (cn_points_name_check(dataset, NULL) < 0)
        return cn_err_set(err, CN_ENOTFOUND, "there is no dataset \"%.80s\"", dataset);
    char *folder = cn_sprintf(CN_POINTS_DIR "/%s", dataset);
    int rc = cn_disk_entries(disk, folder, &segments);
    if (rc < 0) {
        if (rc == -ENOENT)
            rc = cn_err_set(err, CN_ENOTFOUND, "there is no dataset \"%s\"", dataset);
        else
            cn_err_errno(err, -rc, "cannot list %s", folder);
        cn_free(folder);
        return rc;
    }
    *scan = (struct cn_points_scan){.disk = disk,
                                    .folder = folder,
                                    .columns = columns,
                                    .first_ms = first_ms,
                                    .last_ms = last_ms,
                                    .segments = segments};
    return 0;
}

void cn_points_scan_close(struct cn_points_scan *scan)
{
    if (scan->file)
        cn_disk_close(scan->file);
    cn_disk_entries_fini(&scan->segments);
    cn_buf_fini(&scan->window);
    cn_buf_fini(&scan->body);
    cn_free(scan->folder);
    *scan = (struct cn_points_scan){0};
}

/* Opens the next segment that fits: 1, or 0 if there is none. */
static int open_next(struct cn_points_scan *scan, struct cn_err *err)
{
    while (scan->next_segment < scan->segments.count) {
        const char *name = scan->segments.items[scan->next_segment++].name;
        if (!segment_fits(scan, name))
            continue;
        char *path = cn_sprintf("%s/%s", scan->folder, name);
        int rc = cn_disk_open(scan->disk, path, CN_DISK_READONLY, &scan->file);
        int64_t size = rc == 0 ? cn_disk_size(scan->file) : 0;
        if (rc < 0 && rc != -ENOENT) /* one that has become too old meanwhile is gone */
            cn_err_errno(err, -rc, "cannot open %s", path);
        cn_free(path);
        if (rc < 0 && rc != -ENOENT)
            return rc;
        if (rc < 0)
            continue;
        scan->offset = 0;
        scan->size = size < 0 ? 0 : (uint64_t)size;
        scan->window.size = 0;
        return 1;
    }
    return 0;
}

/* The bytes at `offset`, through the window; NULL if the file does not have them. */
static const uint8_t *peek(struct cn_points_scan *scan, uint64_t offset, size_t size)
{
    CN_ASSERT(size <= WINDOW_SIZE && offset % 8 == 0);
    if (offset + size > scan->size)
        return NULL;
    if (offset < scan->window_offset || offset + size > scan->window_offset + scan->window.size) {
        scan->window.size = 0;
        cn_buf_reserve(&scan->window, WINDOW_SIZE);
        int64_t got = cn_disk_read(scan->file, scan->window.data, WINDOW_SIZE, offset);
        scan->window.size = got < 0 ? 0 : (size_t)got;
        scan->window_offset = offset;
        if (scan->window.size < size)
            return NULL;
    }
    return scan->window.data + (offset - scan->window_offset);
}

/* The header of a block at `offset`, and its parts, if one begins there. */
static bool read_head(struct cn_points_scan *scan, uint64_t offset, struct cn_points_block *block,
                      struct cn_points_part parts[CN_POINTS_COLUMN_COUNT])
{
    const uint8_t *at = peek(scan, offset, sizeof(*block));
    if (!at)
        return false;
    memcpy(block, at, sizeof(*block));
    if (block->magic != CN_POINTS_MAGIC || block->columns >> CN_POINTS_COLUMN_COUNT ||
        block->row_count == 0 || block->row_count > CN_POINTS_BLOCK_ROWS_MAX ||
        block->size % 8 != 0 || block->size > BLOCK_SIZE_MAX)
        return false;
    size_t part_count = (size_t)__builtin_popcountll(block->columns);
    size_t head_size = sizeof(*block) + part_count * sizeof(*parts);
    at = peek(scan, offset, head_size);
    size_t skip = offsetof(struct cn_points_block, size);
    if (!at || cn_crc32c(0, at + skip, head_size - skip) != block->crc)
        return false;
    memcpy(parts, at + sizeof(*block), part_count * sizeof(*parts));
    size_t size = head_size;
    for (size_t i = 0; i < part_count; i++)
        size += ((size_t)parts[i].size + 7) & ~(size_t)7;
    return size == block->size && offset + size <= scan->size;
}

/* Where the next block begins from `offset` on: after damage, they are looked for. */
static bool find_block(struct cn_points_scan *scan, struct cn_points_block *block,
                       struct cn_points_part parts[CN_POINTS_COLUMN_COUNT])
{
    bool damaged = false;
    for (; scan->offset + sizeof(*block) <= scan->size; scan->offset += 8) {
        if (read_head(scan, scan->offset, block, parts)) {
            scan->damaged += damaged;
            scan->holes += damaged || scan->suspect;
            scan->suspect = false;
            return true;
        }
        damaged = true;
    }
    scan->damaged += damaged || scan->offset < scan->size;
    return false;
}

/* Checks the bytes of a column and points at them. */
static bool take_column(const uint8_t *at, unsigned number, uint32_t row_count,
                        const struct cn_points_part *part, struct cn_points_values *values)
{
    if (cn_crc32c(0, at, part->size) != part->crc)
        return false;
    if (!cn_points_is_text(number)) {
        values->values = at;
        return part->size == (uint64_t)row_count * 8;
    }
    uint64_t ends_size = (uint64_t)row_count * 4;
    if (part->size < ends_size)
        return false;
    const uint32_t *ends = (const uint32_t *)at;
    uint32_t last = 0, text_size = part->size - (uint32_t)ends_size;
    for (uint32_t i = 0; i < row_count; i++) {
        if (ends[i] < last || ends[i] > text_size)
            return false;
        last = ends[i];
    }
    values->ends = ends;
    values->bytes = (const char *)at + ends_size;
    return true;
}

/* Reads one column of a large block to its place in `body`. */
static const uint8_t *read_part(struct cn_points_scan *scan, uint64_t offset, uint32_t size)
{
    uint8_t *to = scan->body.data + scan->body.size;
    if (cn_disk_read(scan->file, to, size, offset) != (int64_t)size)
        return NULL;
    scan->body.size += ((size_t)size + 7) & ~(size_t)7;
    return to;
}

/* False: damaged. */
static bool load_block(struct cn_points_scan *scan, const struct cn_points_block *block,
                       const struct cn_points_part *parts, struct cn_points_batch *batch)
{
    const uint8_t *whole =
        block->size <= WINDOW_SIZE ? peek(scan, scan->offset, block->size) : NULL;
    *batch = (struct cn_points_batch){.row_count = block->row_count};
    scan->body.size = 0;
    cn_buf_reserve(&scan->body, whole ? 0 : block->size);
    size_t at = sizeof(*block) +
                (size_t)__builtin_popcountll(block->columns) * sizeof(struct cn_points_part);
    for (unsigned i = 0; i < CN_POINTS_COLUMN_COUNT; i++) {
        if (!(block->columns >> i & 1))
            continue;
        if (scan->columns >> i & 1) {
            const uint8_t *bytes =
                whole ? whole + at : read_part(scan, scan->offset + at, parts->size);
            if (!bytes || !take_column(bytes, i, block->row_count, parts, &batch->columns[i]))
                return false;
        }
        at += ((size_t)parts->size + 7) & ~(size_t)7;
        parts++;
    }
    return true;
}

int cn_points_scan_next(struct cn_points_scan *scan, struct cn_points_batch *batch,
                        struct cn_err *err)
{
    struct cn_points_block block;
    struct cn_points_part parts[CN_POINTS_COLUMN_COUNT];
    for (;;) {
        if (!scan->file) {
            int rc = open_next(scan, err);
            if (rc <= 0)
                return rc;
        }
        if (!find_block(scan, &block, parts)) {
            cn_disk_close(scan->file);
            scan->file = NULL;
            scan->suspect = false;
            continue;
        }
        bool fits = block.last_ms >= scan->first_ms && block.first_ms <= scan->last_ms;
        bool good = !fits || load_block(scan, &block, parts, batch);
        scan->offset += block.size;
        scan->damaged += !good;
        scan->suspect = !good;
        if (fits && good)
            return 1;
    }
}

/* ---- checking ---- */

static int check_dataset(struct cn_disk *disk, const char *dataset, cn_points_bad bad, void *data,
                         struct cn_err *err)
{
    struct cn_points_scan scan;
    struct cn_points_batch batch;
    uint64_t all = (1ull << CN_POINTS_COLUMN_COUNT) - 1, told = 0;
    int rc = cn_points_scan_open(&scan, disk, dataset, all, INT64_MIN / 2, INT64_MAX / 2, err);
    if (rc < 0)
        return rc == CN_ENOTFOUND ? 0 : rc;
    do {
        rc = cn_points_scan_next(&scan, &batch, err);
        if (scan.holes > told) {
            char path[512];
            snprintf(path, sizeof(path), "%s/%s", dataset,
                     scan.segments.items[scan.next_segment - 1].name);
            bad(data, path, scan.holes - told);
            told = scan.holes;
        }
    } while (rc > 0);
    cn_points_scan_close(&scan);
    return rc;
}

int cn_points_check(struct cn_disk *disk, cn_points_bad bad, void *data, struct cn_err *err)
{
    struct cn_disk_entries entries;
    int rc = cn_disk_entries(disk, CN_POINTS_DIR, &entries);
    if (rc < 0)
        return rc == -ENOENT ? 0 : cn_err_errno(err, -rc, "cannot list " CN_POINTS_DIR);
    for (size_t i = 0; i < entries.count && rc >= 0; i++) {
        if (entries.items[i].is_dir)
            rc = check_dataset(disk, entries.items[i].name, bad, data, err);
    }
    cn_disk_entries_fini(&entries);
    return rc < 0 ? rc : 0;
}
