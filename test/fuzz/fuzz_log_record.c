/* SPDX-License-Identifier: Apache-2.0 */
/* Log records from outside: a store opens, or says what is wrong, whatever its log holds.
 *
 * The input is read as raw segment bytes first. Then it is cut into bodies (a length
 * byte pair before each), which are sealed with valid checksums and LSNs, so that the
 * checks behind the checksums are reached: a segment of them goes through recovery. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "store/pagediff.h"
#include "store/record.h"
#include "store/segment.h"
#include "store/store.h"
#include "test/lib/simdisk.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_commit(const uint8_t *data, size_t size)
{
    struct cn_record record = {.header.kind = CN_RECORD_COMMIT, .body = data};
    record.header.body_size = (uint32_t)size;
    struct cn_commit commit;
    struct cn_commit_page page;
    size_t offset = 0;
    uint8_t bytes[CN_PAGE_SIZE] = {0};
    if (cn_commit_read(&record, &commit, NULL) < 0)
        return;
    while (cn_commit_page(&commit, &offset, &page)) {
        if (page.image)
            (void)cn_pagediff_expand(bytes, sizeof(bytes), page.image, page.image_size);
        if (page.diff)
            (void)cn_pagediff_apply(bytes, sizeof(bytes), page.diff, page.diff_size);
    }
}

static void segment_build(struct cn_buf *segment, const uint8_t *data, size_t size)
{
    struct cn_segment_header header = {.number = 1, .first_lsn = 1, .file_size = 1 << 16};
    cn_segment_seal(&header);
    cn_buf_append(segment, &header, sizeof(header));
    for (uint64_t lsn = 1; size >= 3; lsn++) {
        size_t body_size = (size_t)(data[0] | data[1] << 8) % 2048;
        struct cn_record_header record = {.lsn = lsn, .kind = data[2]};
        data += 3;
        size -= 3;
        if (body_size > size)
            body_size = size;
        record.body_size = (uint32_t)body_size;
        cn_record_seal(&record, data);
        cn_buf_append(segment, &record, sizeof(record));
        cn_buf_append(segment, data, body_size);
        while (segment->size % 8)
            cn_buf_append_byte(segment, 0);
        data += body_size;
        size -= body_size;
    }
}

static void recover(const uint8_t *data, size_t size)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    struct cn_disk_file *file;
    struct cn_buf segment = {0};
    segment_build(&segment, data, size);
    if (cn_disk_mkdirs(disk, "log") < 0 ||
        cn_disk_open(disk, "log/0000000001.seg", CN_DISK_CREATE, &file) < 0 ||
        cn_disk_write_all(file, segment.data, segment.size, 0) < 0)
        abort();
    cn_disk_close(file);
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 16 << 20});
    struct cn_store_config config = {.disk = disk, .manual = true, .segment_size = 64 << 10};
    struct cn_store *store;
    struct cn_err err = {0};
    if (cn_store_open(&config, &store, &err) == 0)
        cn_store_close(store);
    else if (err.text[0] == '\0')
        abort(); /* a refusal without a reason */
    cn_buf_fini(&segment);
    simdisk_free(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_record record;
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR + 1); /* refusals are what we are here for */
    if (size > 16384)
        return 0;
    (void)cn_record_read(data, size, &record);
    read_commit(data, size);
    recover(data, size);
    return 0;
}
