/* SPDX-License-Identifier: Apache-2.0 */
/* Encrypted bodies: every range comes back, every change of the file is found out. */
#include "service/r2/r2_seal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "store/blob.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static const uint8_t key[CN_R2_KEY_SIZE] = "0123456789abcdef0123456789abcde";

static struct cn_blobs *open_blobs(struct simdisk **disk)
{
    struct cn_blobs *blobs;
    struct cn_err err;
    *disk = simdisk_new();
    CHECK_INT(0, cn_blobs_open(simdisk_disk(*disk), "blobs", &blobs, &err));
    return blobs;
}

static uint8_t *make_body(size_t size)
{
    uint8_t *body = cn_alloc(size + 1);
    for (size_t i = 0; i < size; i++)
        body[i] = (uint8_t)(i * 7 + i / 251);
    return body;
}

static struct cn_blob_id seal(struct cn_blobs *blobs, const uint8_t *body, size_t size, size_t step)
{
    struct cn_err err;
    struct cn_blob_writer *writer;
    struct cn_blob_id id;
    struct cn_r2_sealer *sealer = cn_r2_sealer_new(key);
    CHECK_INT(0, cn_blob_create(blobs, &writer, &err));
    for (size_t at = 0; at < size; at += step)
        CHECK_INT(0, cn_r2_sealer_write(sealer, writer, body + at,
                                        size - at < step ? size - at : step, &err));
    CHECK_INT(0, cn_r2_sealer_end(sealer, writer, &err));
    CHECK_INT(0, cn_blob_finish(writer, &id, &err));
    cn_r2_sealer_free(sealer);
    return id;
}

static int unseal(struct cn_blobs *blobs, const struct cn_blob_id *id, const uint8_t *with,
                  uint64_t body_size, uint8_t *out, size_t size, uint64_t offset)
{
    struct cn_err err;
    struct cn_blob_reader *reader;
    int rc = cn_blob_open(blobs, id, &reader, &err);
    if (rc < 0)
        return rc;
    rc = cn_r2_unseal(reader, with, body_size, out, size, offset, &err);
    cn_blob_close(reader);
    return rc;
}

TEST(r2_seal, bodies_of_all_sizes_come_back)
{
    struct simdisk *disk;
    struct cn_blobs *blobs = open_blobs(&disk);
    const size_t c = CN_R2_SEAL_CHUNK;
    const size_t sizes[] = {0, 1, 1000, c - 1, c, c + 1, 2 * c, 3 * c + 17};
    const size_t steps[] = {777, c, 5 * c};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        uint8_t *body = make_body(size), *out = cn_alloc(size + 1);
        for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            struct cn_blob_id id = seal(blobs, body, size, steps[k]);
            CHECK_INT(0, unseal(blobs, &id, key, size, out, size, 0));
            CHECK(memcmp(out, body, size) == 0);
            struct cn_blob_reader *reader;
            struct cn_err err;
            CHECK_INT(0, cn_blob_open(blobs, &id, &reader, &err));
            CHECK_INT((int64_t)cn_r2_sealed_size(size), (int64_t)cn_blob_size(reader));
            cn_blob_close(reader);
        }
        cn_free(body);
        cn_free(out);
    }
    cn_blobs_close(blobs);
    simdisk_free(disk);
}

TEST(r2_seal, any_range_comes_back)
{
    struct simdisk *disk;
    struct cn_blobs *blobs = open_blobs(&disk);
    size_t size = 3 * CN_R2_SEAL_CHUNK + 99;
    uint8_t *body = make_body(size), *out = cn_alloc(size);
    struct cn_blob_id id = seal(blobs, body, size, 100000);
    struct cn_rand rand;
    cn_rand_init(&rand, 5);
    for (int i = 0; i < 300; i++) {
        uint64_t offset = cn_rand_next(&rand) % size;
        size_t part = (size_t)(cn_rand_next(&rand) % (size - offset + 1));
        CHECK_INT(0, unseal(blobs, &id, key, size, out, part, offset));
        CHECK(memcmp(out, body + offset, part) == 0);
    }
    cn_free(body);
    cn_free(out);
    cn_blobs_close(blobs);
    simdisk_free(disk);
}

/* The plain text is not in the file, and two files of one body have nothing in common. */
TEST(r2_seal, nothing_of_the_body_is_to_be_seen)
{
    struct simdisk *disk;
    struct cn_blobs *blobs = open_blobs(&disk);
    uint8_t body[4096];
    memset(body, 'A', sizeof(body));
    struct cn_blob_id ids[2] = {seal(blobs, body, sizeof(body), 4096),
                                seal(blobs, body, sizeof(body), 4096)};
    uint8_t files[2][5000];
    struct cn_err err;
    for (int i = 0; i < 2; i++) {
        struct cn_blob_reader *reader;
        CHECK_INT(0, cn_blob_open(blobs, &ids[i], &reader, &err));
        CHECK(cn_blob_read(reader, files[i], sizeof(files[i]), 0, &err) > 4096);
        cn_blob_close(reader);
        CHECK(!memmem(files[i], 4128, "AAAA", 4));
        CHECK(!memmem(files[i], 4128, key, 8));
    }
    CHECK(memcmp(files[0] + 16, files[1] + 16, 4000) != 0);
    cn_blobs_close(blobs);
    simdisk_free(disk);
}

/* Writes a blob with these bytes and tries to read it as a sealed one. */
static int try_bytes(struct cn_blobs *blobs, const uint8_t *bytes, size_t bytes_size, size_t size)
{
    struct cn_err err;
    struct cn_blob_writer *writer;
    struct cn_blob_id id;
    CHECK_INT(0, cn_blob_create(blobs, &writer, &err));
    CHECK_INT(0, cn_blob_write(writer, bytes, bytes_size, &err));
    CHECK_INT(0, cn_blob_finish(writer, &id, &err));
    uint8_t *out = cn_alloc(size + 1);
    int rc = unseal(blobs, &id, key, size, out, size, 0);
    cn_free(out);
    return rc;
}

TEST(r2_seal, whatever_was_changed_is_found_out)
{
    struct simdisk *disk;
    struct cn_blobs *blobs = open_blobs(&disk);
    size_t size = 2 * CN_R2_SEAL_CHUNK + 50, sealed = (size_t)cn_r2_sealed_size(size);
    const size_t stride = CN_R2_SEAL_CHUNK + CN_R2_SEAL_TAG, head = 32;
    uint8_t *body = make_body(size), *file = cn_alloc(sealed), *copy = cn_alloc(sealed);
    struct cn_blob_id id = seal(blobs, body, size, size);
    struct cn_blob_reader *reader;
    struct cn_err err;
    CHECK_INT(0, cn_blob_open(blobs, &id, &reader, &err));
    CHECK_INT((int64_t)sealed, cn_blob_read(reader, file, sealed, 0, &err));
    cn_blob_close(reader);
    CHECK_INT(0, try_bytes(blobs, file, sealed, size));
    /* a bit anywhere, but for those that are reserved */
    for (size_t at = 0; at < sealed; at += at < 64 ? 1 : 4099) {
        if (at >= 8 && at < 16)
            continue;
        memcpy(copy, file, sealed);
        copy[at] ^= 1;
        CHECK_INT(CN_ECORRUPT, try_bytes(blobs, copy, sealed, size));
    }
    /* chunks exchanged; the last one gone, with the index believing it */
    memcpy(copy, file, sealed);
    memcpy(copy + head, file + head + stride, stride);
    memcpy(copy + head + stride, file + head, stride);
    CHECK_INT(CN_ECORRUPT, try_bytes(blobs, copy, sealed, size));
    CHECK_INT(CN_ECORRUPT, try_bytes(blobs, file, head + 2 * stride, 2 * CN_R2_SEAL_CHUNK));
    CHECK_INT(CN_ECORRUPT, try_bytes(blobs, file, sealed - 1, size));
    /* another key */
    uint8_t other[CN_R2_KEY_SIZE], *out = cn_alloc(size);
    memcpy(other, key, sizeof(other));
    other[31] ^= 1;
    CHECK_INT(CN_ECORRUPT, unseal(blobs, &id, other, size, out, size, 0));
    cn_free(out);
    cn_free(body);
    cn_free(file);
    cn_free(copy);
    cn_blobs_close(blobs);
    simdisk_free(disk);
}
