/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sums.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "store/record.h"

/* Behind the list of a file that is set aside. */
struct trailer {
    uint32_t magic;
    uint32_t crc; /* of the rest of this and of the list */
    uint32_t page_count;
    uint32_t reserved;
};
_Static_assert(sizeof(struct trailer) == 16, "docs/reference/data-format.md");

#define TRAILER_MAGIC 0x314d5553u /* "SUM1" */

uint32_t cn_sum_of(const void *page)
{
    uint32_t crc = cn_crc32c(0, page, CN_PAGE_SIZE);
    return crc == CN_SUM_UNKNOWN ? 1 : crc;
}

static uint32_t sum_of_zeros(void)
{
    static const uint8_t zeros[CN_PAGE_SIZE];
    return cn_sum_of(zeros);
}

void cn_sums_fini(struct cn_sums *sums)
{
    cn_free(sums->list);
    cn_free(sums->more);
    *sums = (struct cn_sums){0};
}

uint32_t cn_sums_get(const struct cn_sums *sums, uint32_t page_no)
{
    return page_no <= sums->count ? sums->list[page_no - 1] : CN_SUM_UNKNOWN;
}

static void mark(struct cn_sums *sums, uint32_t part)
{
    if (part < 64) {
        sums->dirty |= 1ull << part;
        return;
    }
    uint32_t word = part / 64 - 1;
    if (word >= sums->more_words) {
        uint32_t words = word + word / 2 + 1;
        sums->more = cn_realloc(sums->more, words * sizeof(uint64_t));
        memset(sums->more + sums->more_words, 0, (words - sums->more_words) * sizeof(uint64_t));
        sums->more_words = words;
    }
    sums->more[word] |= 1ull << part % 64;
}

static void reserve(struct cn_sums *sums, uint32_t count)
{
    if (count <= sums->capacity)
        return;
    uint32_t capacity = count + count / 4 + 4;
    sums->list = cn_realloc(sums->list, (size_t)capacity * sizeof(uint32_t));
    sums->capacity = capacity;
}

void cn_sums_set(struct cn_sums *sums, uint32_t page_no, uint32_t sum)
{
    CN_ASSERT(page_no > 0 && page_no <= sums->count);
    if (sums->list[page_no - 1] == sum)
        return;
    sums->list[page_no - 1] = sum;
    mark(sums, (page_no - 1) / CN_SUMS_PART);
}

void cn_sums_resize(struct cn_sums *sums, uint32_t count)
{
    if (count < sums->count) {
        sums->count = count;
        sums->cut = true;
        if (count % CN_SUMS_PART)
            mark(sums, count / CN_SUMS_PART); /* the last part has become shorter */
        return;
    }
    reserve(sums, count);
    for (uint32_t i = sums->count; i < count; i++) {
        sums->list[i] = sum_of_zeros();
        mark(sums, i / CN_SUMS_PART);
    }
    sums->count = count;
}

/* ---- in the catalog ---- */

uint32_t cn_sums_part_count(uint32_t page_count)
{
    return (uint32_t)(((uint64_t)page_count + CN_SUMS_PART - 1) / CN_SUMS_PART);
}

bool cn_sums_load(struct cn_sums *sums, uint32_t number, const void *bytes, size_t size)
{
    if (size == 0 || size % sizeof(uint32_t) != 0 || size > CN_SUMS_PART * sizeof(uint32_t) ||
        number > UINT32_MAX / CN_SUMS_PART - 1 || sums->count > number * CN_SUMS_PART)
        return false;
    cn_sums_fit(sums, number * CN_SUMS_PART);
    uint32_t count = (uint32_t)(size / sizeof(uint32_t));
    reserve(sums, sums->count + count);
    memcpy(sums->list + sums->count, bytes, size);
    sums->count += count;
    return true;
}

void cn_sums_fit(struct cn_sums *sums, uint32_t count)
{
    reserve(sums, count);
    for (uint32_t i = sums->count; i < count; i++)
        sums->list[i] = CN_SUM_UNKNOWN;
    sums->count = count;
}

static uint64_t *word_of(struct cn_sums *sums, uint32_t word)
{
    if (word == 0)
        return &sums->dirty;
    return word <= sums->more_words ? &sums->more[word - 1] : NULL;
}

bool cn_sums_changed(const struct cn_sums *sums)
{
    bool changed = sums->cut || sums->dirty;
    for (uint32_t i = 0; i < sums->more_words && !changed; i++)
        changed = sums->more[i] != 0;
    return changed;
}

void cn_sums_changed_all(struct cn_sums *sums)
{
    sums->cut = true;
    for (uint32_t part = 0; part < cn_sums_part_count(sums->count); part++)
        mark(sums, part);
}

size_t cn_sums_take(struct cn_sums *sums, struct cn_sums_part **parts)
{
    uint32_t end = cn_sums_part_count(sums->count);
    size_t taken = 0, room = 0;
    *parts = NULL;
    for (uint32_t word = 0; word_of(sums, word); word++) {
        uint64_t *bits = word_of(sums, word);
        for (; *bits; *bits &= *bits - 1) {
            uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(*bits);
            if (number >= end)
                continue; /* cut off since */
            CN_GROW(*parts, taken, room);
            struct cn_sums_part *part = &(*parts)[taken++];
            uint32_t left = sums->count - number * CN_SUMS_PART;
            part->number = number;
            part->count = left < CN_SUMS_PART ? left : CN_SUMS_PART;
            memcpy(part->list, sums->list + (size_t)number * CN_SUMS_PART,
                   part->count * sizeof(uint32_t));
        }
    }
    sums->cut = false;
    return taken;
}

/* ---- behind the pages of a file that is set aside ---- */

/* Entries of the list: one more than pages where the file would be a multiple of a page long, which
 * is how a file of an older version is known. */
static uint32_t list_count(uint32_t page_count)
{
    return page_count + (page_count % 1024 == 1020);
}

static uint32_t trailer_crc(const struct trailer *trailer, const uint32_t *list)
{
    uint32_t crc = cn_crc32c(0, &trailer->page_count, sizeof(*trailer) - 8);
    return cn_crc32c(crc, list, (size_t)list_count(trailer->page_count) * sizeof(uint32_t));
}

int cn_sums_append(const struct cn_sums *sums, struct cn_disk_file *file, uint32_t page_count)
{
    struct trailer trailer = {.magic = TRAILER_MAGIC, .page_count = page_count};
    uint64_t offset = (uint64_t)page_count * CN_PAGE_SIZE;
    size_t size = (size_t)list_count(page_count) * sizeof(uint32_t);
    uint32_t *list = cn_alloc_zero(size + 1);
    for (uint32_t i = 0; i < page_count; i++)
        list[i] = cn_sums_get(sums, i + 1);
    trailer.crc = trailer_crc(&trailer, list);
    int rc = cn_disk_write_all(file, list, size, offset);
    if (rc == 0)
        rc = cn_disk_write_all(file, &trailer, sizeof(trailer), offset + size);
    if (rc == 0)
        rc =
            cn_disk_truncate(file, offset + size + sizeof(trailer)); /* one of an earlier attempt */
    cn_free(list);
    return rc;
}

static int damaged(struct cn_err *err)
{
    return cn_err_set(err, CN_ECORRUPT, "the checksums behind its pages are damaged");
}

/* A read that fails is no damage: the next one may succeed. */
static int read_all(struct cn_disk_file *file, void *to, size_t size, uint64_t at,
                    struct cn_err *err)
{
    int64_t count = cn_disk_read(file, to, size, at);
    if (count < 0)
        return cn_err_errno(err, (int)-count, "cannot read the checksums");
    return (size_t)count == size ? 0 : damaged(err);
}

int cn_sums_read(struct cn_sums *sums, struct cn_disk_file *file, uint32_t *page_count,
                 struct cn_err *err)
{
    struct trailer trailer;
    int64_t size = cn_disk_size(file);
    if (size < 0)
        return cn_err_errno(err, (int)-size, "cannot read its size");
    if (size / CN_PAGE_SIZE > UINT32_MAX - 1)
        return damaged(err);
    if (size % CN_PAGE_SIZE == 0) {
        *page_count = (uint32_t)(size / CN_PAGE_SIZE);
        cn_sums_fit(sums, *page_count);
        return 0;
    }
    if (size < (int64_t)sizeof(trailer))
        return damaged(err);
    uint64_t at = (uint64_t)size - sizeof(trailer);
    int rc = read_all(file, &trailer, sizeof(trailer), at, err);
    if (rc < 0)
        return rc;
    if (trailer.magic != TRAILER_MAGIC || trailer.page_count > (uint64_t)size / CN_PAGE_SIZE)
        return damaged(err);
    uint32_t count = list_count(trailer.page_count);
    size_t list_size = (size_t)count * sizeof(uint32_t);
    uint64_t offset = (uint64_t)trailer.page_count * CN_PAGE_SIZE;
    if (offset + list_size != at)
        return damaged(err);
    cn_sums_fit(sums, count);
    rc = read_all(file, sums->list, list_size, offset, err);
    if (rc < 0)
        return rc;
    if (trailer.crc != trailer_crc(&trailer, sums->list))
        return damaged(err);
    cn_sums_fit(sums, trailer.page_count);
    *page_count = trailer.page_count;
    return 0;
}

int cn_sums_check(const struct cn_sums *sums, uint32_t page_no, const void *page,
                  struct cn_err *err)
{
    uint32_t sum = cn_sums_get(sums, page_no);
    if (sum == CN_SUM_UNKNOWN || sum == cn_sum_of(page))
        return 0;
    return cn_err_set(err, CN_ECORRUPT, "page %" PRIu32 " does not match its checksum", page_no);
}
