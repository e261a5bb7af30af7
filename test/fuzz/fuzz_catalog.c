/* SPDX-License-Identifier: Apache-2.0 */
/* A catalog file from outside: whatever its bytes, listing it ends or says what is wrong.
 *
 * The input replaces bytes of a real catalog: triples of a position (two bytes) and a
 * value, so that SQLite's own structure mostly stays and our reading of rows is reached. Pages are
 * sealed again afterwards: their checksums would keep the rest from being seen. */
#include <stdlib.h>
#include <string.h>

#include "store/catalog.h"
#include "store/sqlite.h"
#include "store/sums.h"
#include "test/lib/simdisk.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_entry(void *data, const struct cn_catalog_entry *entry)
{
    size_t *bytes = data;
    *bytes += entry->name_size;
    return entry->name_size > CN_OBJECT_NAME_MAX ? abort(), 1 : 0;
}

static struct simdisk *catalog_make(void)
{
    struct simdisk *sim = simdisk_new();
    struct cn_catalog *catalog;
    if (cn_sqlite_setup(NULL) < 0 || cn_catalog_open(simdisk_disk(sim), &catalog, NULL) < 0)
        abort();
    for (unsigned i = 0; i < 40; i++) {
        struct cn_catalog_change change = {
            .key.namespace_id = 1 + i % 2,
            .lsn = i + 1,
            .time_ms = i,
            .page_count = i,
            .has_alarm = i % 3 == 0,
            .alarm_ms = i * 10,
            .name = i % 2 ? "a name of an object" : NULL,
            .name_size = i % 2 ? 10 : 0,
        };
        memset(change.key.id, (int)i, sizeof(change.key.id));
        struct cn_sums_part parts[2] = {{.number = 0, .count = CN_SUMS_PART},
                                        {.number = 1, .count = i % CN_SUMS_PART + 1}};
        change.parts = parts;
        change.part_count = 2;
        if (cn_catalog_apply(catalog, &change, NULL) < 0)
            abort();
    }
    if (cn_catalog_namespace_set(catalog, 1, "one", 3, 1, NULL) < 0 ||
        cn_catalog_flush(catalog, NULL, NULL) < 0)
        abort();
    cn_catalog_close(catalog);
    return sim;
}

static void catalog_use(struct cn_catalog *catalog)
{
    struct cn_object_key key = {.namespace_id = 2};
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    uint64_t count, bytes;
    uint32_t number;
    size_t seen = 0;
    memset(key.id, 3, sizeof(key.id));
    (void)cn_catalog_find(catalog, &key, &entry, name, NULL);
    struct cn_sums sums = {0};
    (void)cn_catalog_find_settled(catalog, &key, &entry, name, &sums, NULL);
    cn_sums_fini(&sums);
    (void)cn_catalog_list(catalog, 1, NULL, 100, on_entry, &seen, NULL);
    (void)cn_catalog_list(catalog, 2, key.id, 100, on_entry, &seen, NULL);
    struct cn_catalog_listing listing = {
        .namespace_id = 2, .limit = 100, .each = on_entry, .data = &seen};
    (void)cn_catalog_list_names(catalog, &listing, "a", 1, NULL, 0, NULL);
    (void)cn_catalog_list_alarms(catalog, INT64_MAX, NULL, 100, on_entry, &seen, NULL);
    (void)cn_catalog_count(catalog, 0, &count, &bytes, NULL);
    (void)cn_catalog_namespace_find(catalog, "one", 3, &number, NULL);
    (void)cn_catalog_namespace_name(catalog, 1, name, NULL);
    (void)cn_catalog_namespace_last(catalog, &number, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct simdisk *original;
    if (!original)
        original = catalog_make();
    struct simdisk *sim = simdisk_copy(original);
    struct cn_disk_file *file;
    if (cn_disk_open(simdisk_disk(sim), "catalog/catalog.db", 0, &file) < 0)
        abort();
    for (size_t i = 0; i + 3 <= size; i += 3) {
        uint64_t offset = (uint64_t)(data[i] | data[i + 1] << 8) % (uint64_t)cn_disk_size(file);
        if (cn_disk_write_all(file, &data[i + 2], 1, offset) < 0)
            abort();
    }
    for (uint32_t no = 1; (int64_t)no * CN_PAGE_SIZE <= cn_disk_size(file); no++) {
        uint8_t page[CN_PAGE_SIZE];
        uint64_t at = (uint64_t)(no - 1) * CN_PAGE_SIZE;
        if (cn_disk_read(file, page, CN_PAGE_SIZE, at) != CN_PAGE_SIZE)
            abort();
        cn_diskvfs_page_seal(page, no);
        if (cn_disk_write_all(file, page, CN_PAGE_SIZE, at) < 0)
            abort();
    }
    cn_disk_close(file);
    struct cn_catalog *catalog;
    if (cn_catalog_open(simdisk_disk(sim), &catalog, NULL) == 0) {
        catalog_use(catalog);
        cn_catalog_close(catalog);
    }
    simdisk_free(sim);
    return 0;
}
