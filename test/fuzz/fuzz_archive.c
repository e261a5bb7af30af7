/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an archive or as a database set aside: read whole, or refused. The first byte
 * chooses; checksums of header and directory are made right, so that the fuzzer gets behind them.
 */
#include <string.h>

#include "base/crc32c.h"
#include "store/archive.h"
#include "test/lib/simdisk.h"
#include "test/lib/simdisk.c" /* fuzz targets link with the library alone */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend_archive(uint8_t *bytes, size_t size)
{
    struct cn_archive_header header;
    if (size < sizeof(header))
        return;
    memcpy(&header, bytes, sizeof(header));
    if (header.directory_offset <= size && header.directory_size <= size - header.directory_offset)
        header.directory_crc = cn_crc32c(0, bytes + header.directory_offset, header.directory_size);
    header.magic = CN_ARCHIVE_MAGIC;
    header.crc = cn_crc32c(0, (uint8_t *)&header + 8, sizeof(header) - 8);
    memcpy(bytes, &header, sizeof(header));
}

static void mend_image(uint8_t *bytes, size_t size)
{
    struct cn_archive_image image;
    if (size < sizeof(image))
        return;
    memcpy(&image, bytes, sizeof(image));
    image.magic = CN_ARCHIVE_IMAGE_MAGIC;
    image.crc = cn_crc32c(0, (uint8_t *)&image + 8, sizeof(image) - 8);
    memcpy(bytes, &image, sizeof(image));
}

static int ignore_page(void *data, uint32_t page_no, const uint8_t *page)
{
    (void)data, (void)page_no, (void)page;
    return 0;
}

static void read_archive(struct cn_disk *disk)
{
    struct cn_archive archive;
    struct cn_err err;
    if (cn_archive_open(&archive, disk, "f", &err) < 0)
        return;
    struct cn_archive_object object;
    struct cn_object_key key = {.namespace_id = 1};
    struct cn_buf records = {0};
    (void)cn_archive_verify(&archive, &err);
    if (cn_archive_find(&archive, &key, &object))
        (void)cn_archive_read(&archive, &object, &records, &err);
    if (archive.header.last_lsn - archive.header.first_lsn < 1000000) {
        (void)cn_archive_lsn_at(&archive, archive.header.last_ms);
        (void)cn_archive_time_of(&archive, archive.header.last_lsn);
    }
    cn_buf_fini(&records);
    cn_archive_close(&archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t *bytes = cn_memdup(data + 1, size - 1);
    struct cn_archive_image image;
    struct cn_err err;
    bool is_image = data[0] & 1;
    if (data[0] & 2)
        (is_image ? mend_image : mend_archive)(bytes, size - 1);
    struct simdisk *sim = simdisk_new();
    if (cn_disk_replace(simdisk_disk(sim), "f", bytes, size - 1) == 0) {
        if (is_image)
            (void)cn_archive_image_read(simdisk_disk(sim), "f", ignore_page, NULL, &image, &err);
        else
            read_archive(simdisk_disk(sim));
    }
    simdisk_free(sim);
    cn_free(bytes);
    return 0;
}
