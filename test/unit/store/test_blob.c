/* SPDX-License-Identifier: Apache-2.0 */
/* A blob reads back, survives every crash after finish, and leaves nothing behind before it. */
#include "store/blob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/rand.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static struct cn_blobs *open_blobs(struct simdisk *sim)
{
    struct cn_blobs *blobs;
    CHECK_INT(0, cn_blobs_open(simdisk_disk(sim), "blobs", &blobs, NULL));
    return blobs;
}

static int put(struct cn_blobs *blobs, const void *bytes, size_t size, struct cn_blob_id *id,
               struct cn_err *err)
{
    struct cn_blob_writer *writer;
    int rc = cn_blob_create(blobs, &writer, err);
    if (rc < 0)
        return rc;
    rc = cn_blob_write(writer, bytes, size, err);
    if (rc < 0) {
        cn_blob_abandon(writer);
        return rc;
    }
    return cn_blob_finish(writer, id, err);
}

static int count_blob(void *data, const struct cn_blob_id *id)
{
    (void)id;
    ++*(int *)data;
    return 0;
}

static int blob_count(struct cn_blobs *blobs)
{
    int count = 0;
    CHECK_INT(0, cn_blobs_walk(blobs, count_blob, &count, NULL));
    return count;
}

static bool is_one(void *data, const struct cn_blob_id *id)
{
    return memcmp(data, id, sizeof(*id)) == 0;
}

TEST(blob, reads_back_whole_and_in_ranges)
{
    static uint8_t body[700000], back[700000];
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)cn_rand_next(&rand);
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs = open_blobs(sim);
    struct cn_blob_writer *writer;
    struct cn_blob_id id, empty;
    CHECK_INT(0, cn_blob_create(blobs, &writer, NULL));
    for (size_t at = 0, part; at < sizeof(body); at += part) {
        part = cn_rand_below(&rand, 300000) + 1;
        part = part < sizeof(body) - at ? part : sizeof(body) - at;
        CHECK_INT(0, cn_blob_write(writer, body + at, part, NULL));
    }
    CHECK_INT(0, cn_blob_finish(writer, &id, NULL));
    CHECK_INT(0, put(blobs, "", 0, &empty, NULL));
    struct cn_blob_reader *reader;
    CHECK_INT(0, cn_blob_open(blobs, &id, &reader, NULL));
    CHECK_INT(sizeof(body), cn_blob_size(reader));
    CHECK_INT(sizeof(body), cn_blob_read(reader, back, sizeof(back), 0, NULL));
    CHECK(memcmp(body, back, sizeof(body)) == 0);
    CHECK_INT(10, cn_blob_read(reader, back, 100, sizeof(body) - 10, NULL));
    CHECK(memcmp(body + sizeof(body) - 10, back, 10) == 0);
    CHECK_INT(0, cn_blob_read(reader, back, 100, sizeof(body) + 5, NULL));
    CHECK_INT(0, cn_blob_verify(reader, NULL));
    CHECK_INT(0, cn_blob_delete(blobs, &id, NULL));
    CHECK_INT(0, cn_blob_delete(blobs, &id, NULL));
    CHECK_INT(5, cn_blob_read(reader, back, 5, 0, NULL)); /* an open reader goes on */
    cn_blob_close(reader);
    CHECK_INT(CN_ENOTFOUND, cn_blob_open(blobs, &id, &reader, NULL));
    CHECK_INT(0, cn_blob_open(blobs, &empty, &reader, NULL));
    CHECK_INT(0, cn_blob_size(reader));
    cn_blob_close(reader);
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

TEST(blob, is_there_after_a_crash_and_orphans_are_collected)
{
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs = open_blobs(sim);
    struct cn_blob_id kept, orphan;
    struct cn_blob_writer *unfinished;
    CHECK_INT(0, put(blobs, "kept", 4, &kept, NULL));
    CHECK_INT(0, put(blobs, "orphan", 6, &orphan, NULL));
    CHECK_INT(0, cn_blob_create(blobs, &unfinished, NULL));
    CHECK_INT(0, cn_blob_write(unfinished, "x", 1, NULL));
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct simdisk *after = simdisk_crash(sim, seed);
        struct cn_blobs *again = open_blobs(after);
        CHECK_INT(2, blob_count(again));
        CHECK_INT(1, cn_blobs_collect(again, is_one, &kept, NULL));
        CHECK_INT(1, blob_count(again));
        struct cn_blob_reader *reader;
        char bytes[8];
        CHECK_INT(0, cn_blob_open(again, &kept, &reader, NULL));
        CHECK_INT(4, cn_blob_read(reader, bytes, 8, 0, NULL));
        CHECK(memcmp(bytes, "kept", 4) == 0);
        cn_blob_close(reader);
        cn_blobs_close(again);
        simdisk_free(after);
    }
    cn_blob_abandon(unfinished);
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

TEST(blob, fails_clean_at_every_operation)
{
    for (uint64_t at = 1;; at++) {
        struct simdisk *sim = simdisk_new();
        struct cn_blobs *blobs = open_blobs(sim);
        struct cn_blob_id id;
        struct cn_err err = {0};
        simdisk_set_fault(
            sim, &(struct simdisk_fault){.kinds = SIMDISK_CHANGES, .at = at, .code = -EIO});
        int rc = put(blobs, "body", 4, &id, &err);
        bool fault_reached = rc < 0;
        CHECK(rc == 0 || (rc == -EIO && err.text[0]));
        simdisk_set_fault(sim, NULL);
        CHECK_INT(rc == 0, blob_count(blobs));
        cn_blobs_close(blobs);
        simdisk_free(sim);
        if (!fault_reached) {
            CHECK(at > 5);
            break;
        }
    }
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs = open_blobs(sim);
    struct cn_blob_id id;
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 10});
    CHECK_INT(-ENOSPC, put(blobs, "body", 4, &id, NULL));
    CHECK_INT(0, blob_count(blobs));
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

TEST(blob, damage_is_noticed)
{
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs = open_blobs(sim);
    struct cn_blob_id id;
    CHECK_INT(0, put(blobs, "body", 4, &id, NULL));
    char path[64] = "blobs/", *to = path + 6;
    to += sprintf(to, "%02x/", id.bytes[0]);
    for (int i = 0; i < CN_BLOB_ID_SIZE; i++)
        to += sprintf(to, "%02x", id.bytes[i]);
    struct cn_blob_reader *reader;
    CHECK_INT(0, simdisk_damage(sim, path, 2, 3));
    CHECK_INT(0, cn_blob_open(blobs, &id, &reader, NULL));
    CHECK_INT(CN_ECORRUPT, cn_blob_verify(reader, NULL));
    cn_blob_close(reader);
    CHECK_INT(0, simdisk_damage(sim, path, 20, 3));
    CHECK_INT(CN_ECORRUPT, cn_blob_open(blobs, &id, &reader, NULL));
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

/* What is read is what was written, or an error: whole, in pieces, in ranges, of every length. */
TEST(blob, a_flipped_bit_is_never_given)
{
    static uint8_t body[200000], back[200000];
    static const size_t sizes[] = {1, 1000, 65535, 65536, 65537, 131072, 200000};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)cn_rand_next(&rand);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct simdisk *sim = simdisk_new();
        struct cn_blobs *blobs = open_blobs(sim);
        struct cn_blob_id id;
        char path[64];
        CHECK_INT(0, put(blobs, body, sizes[s], &id, NULL));
        snprintf(path, sizeof(path), "blobs/%02x/", id.bytes[0]);
        for (int i = 0; i < CN_BLOB_ID_SIZE; i++)
            snprintf(path + strlen(path), 3, "%02x", id.bytes[i]);
        for (int round = 0; round < 40; round++) {
            struct cn_blob_reader *reader;
            uint64_t length = sizes[s] + (sizes[s] + 65535) / 65536 * 4 + 24;
            uint64_t at = cn_rand_below(&rand, length);
            CHECK_INT(0, simdisk_damage(sim, path, at, (unsigned)(round % 8)));
            if (cn_blob_open(blobs, &id, &reader, NULL) == 0) {
                CHECK_INT(CN_ECORRUPT, cn_blob_verify(reader, NULL));
                for (uint64_t from = cn_rand_below(&rand, sizes[s]); from < sizes[s];) {
                    size_t piece = 1 + cn_rand_below(&rand, 100000);
                    int64_t got = (round & 1 ? cn_blob_read : cn_blob_read_now)(reader, back, piece,
                                                                                from, NULL);
                    CHECK(got == CN_ECORRUPT ||
                          (got > 0 && !memcmp(back, body + from, (size_t)got)));
                    from += piece;
                }
                cn_blob_close(reader);
            }
            CHECK_INT(0, simdisk_damage(sim, path, at, (unsigned)(round % 8)));
        }
        struct cn_blob_reader *reader;
        CHECK_INT(0, cn_blob_open(blobs, &id, &reader, NULL));
        for (int round = 0; round < 20; round++) {
            uint64_t from = cn_rand_below(&rand, sizes[s] + 10);
            int64_t want = from < sizes[s] ? (int64_t)(sizes[s] - from) : 0;
            CHECK_INT(want, cn_blob_read(reader, back, sizeof(back), from, NULL));
            CHECK(memcmp(back, body + (want ? from : 0), (size_t)want) == 0);
        }
        CHECK_INT(0, cn_blob_verify(reader, NULL));
        cn_blob_close(reader);
        cn_blobs_close(blobs);
        simdisk_free(sim);
    }
}

TEST(blob, a_read_that_would_wait_says_so_and_can_be_had_by_waiting)
{
    static uint8_t body[200000], back[200000];
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs = open_blobs(sim);
    struct cn_blob_id id;
    struct cn_blob_reader *reader;
    memset(body, 'b', sizeof(body));
    CHECK_INT(0, put(blobs, body, sizeof(body), &id, NULL));
    CHECK_INT(0, (int64_t)cn_blobs_reader_count(blobs));
    CHECK_INT(0, cn_blob_open(blobs, &id, &reader, NULL));
    CHECK_INT(1, (int64_t)cn_blobs_reader_count(blobs));
    for (uint64_t at = 1; at <= 3; at++) { /* the checksums, then chunks */
        struct simdisk_fault fault = {.kinds = SIMDISK_READ, .at = at, .code = -EAGAIN};
        simdisk_set_fault(sim, &fault);
        CHECK_INT(-EAGAIN, cn_blob_read_now(reader, back, sizeof(back), 10, NULL));
    }
    simdisk_set_fault(sim, &(struct simdisk_fault){0});
    CHECK_INT(sizeof(body), cn_blob_read(reader, back, sizeof(back), 0, NULL));
    CHECK(memcmp(body, back, sizeof(body)) == 0);
    CHECK_INT(sizeof(body) - 10, cn_blob_read_now(reader, back, sizeof(back), 10, NULL));
    cn_blob_close(reader);
    CHECK_INT(0, (int64_t)cn_blobs_reader_count(blobs));
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

/* The body and its CRC in the footer, as the first version wrote it. */
TEST(blob, one_of_the_first_version_reads_back)
{
    static const char body[] = "written long ago";
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs = open_blobs(sim);
    struct cn_blob_id id = {.bytes = {0xab}};
    struct cn_blob_footer footer = {.magic = CN_BLOB_MAGIC_1,
                                    .sums_crc = cn_crc32c(0, body, sizeof(body)),
                                    .size = sizeof(body)};
    footer.crc = cn_crc32c(0, &footer.sums_crc, sizeof(footer) - 8);
    uint8_t file[sizeof(body) + sizeof(footer)];
    memcpy(file, body, sizeof(body));
    memcpy(file + sizeof(body), &footer, sizeof(footer));
    CHECK_INT(0, cn_disk_mkdirs(simdisk_disk(sim), "blobs/ab"));
    CHECK_INT(0, cn_disk_replace(simdisk_disk(sim), "blobs/ab/ab000000000000000000000000000000",
                                 file, sizeof(file)));
    struct cn_blob_reader *reader;
    char back[sizeof(body)];
    CHECK_INT(0, cn_blob_open(blobs, &id, &reader, NULL));
    CHECK_INT(0, cn_blob_verify(reader, NULL));
    CHECK_INT(sizeof(body), cn_blob_read(reader, back, sizeof(back), 0, NULL));
    CHECK_STR(body, back);
    cn_blob_close(reader);
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

/* --- by shard, and with others ---------------------------------------------------------------- */

struct others {
    struct cn_blobs *theirs; /* the disk of another */
    int spread_rc;
    unsigned spreads, damaged, reads, removed;
};

static int others_spread(void *data, const struct cn_blob_id *id, struct cn_err *err)
{
    struct others *others = data;
    (void)id;
    others->spreads++;
    return others->spread_rc ? cn_err_set(err, others->spread_rc, "nobody") : 0;
}

static int others_find(void *data, const struct cn_blob_id *id, uint64_t *disk, uint64_t *size,
                       struct cn_err *err)
{
    struct others *others = data;
    struct cn_blob_reader *reader;
    int rc = cn_blob_open(others->theirs, id, &reader, err);
    if (rc < 0)
        return rc;
    *disk = 5;
    *size = cn_blob_size(reader);
    cn_blob_close(reader);
    return 0;
}

static int others_read(void *data, const struct cn_blob_id *id, uint64_t disk, void *bytes,
                       size_t size, uint64_t offset, struct cn_err *err)
{
    struct others *others = data;
    struct cn_blob_reader *reader;
    CHECK_INT(5, disk);
    others->reads++;
    int rc = cn_blob_open(others->theirs, id, &reader, err);
    if (rc < 0)
        return rc;
    int64_t got = cn_blob_read(reader, bytes, size, offset, err);
    cn_blob_close(reader);
    return got == (int64_t)size ? 0 : CN_ECORRUPT;
}

static void others_damaged(void *data, const struct cn_blob_id *id)
{
    (void)id;
    ((struct others *)data)->damaged++;
}

static int others_remove(void *data, const struct cn_blob_id *id, struct cn_err *err)
{
    (void)id;
    (void)err;
    ((struct others *)data)->removed++;
    return 0;
}

static void put_as(struct cn_blobs *blobs, const struct cn_blob_id *id, const void *bytes,
                   size_t size, int want)
{
    struct cn_blob_writer *writer;
    struct cn_blob_id written;
    CHECK_INT(0, cn_blob_create_as(blobs, id, &writer, NULL));
    CHECK_INT(0, cn_blob_write(writer, bytes, size, NULL));
    CHECK_INT(want, cn_blob_finish(writer, &written, NULL));
}

TEST(blob_by_shard, is_listed_by_its_shard_in_pages)
{
    struct simdisk *sim = simdisk_new();
    struct cn_blobs *blobs;
    struct cn_blob_id ids[50], page[7], last = {{0}}, id;
    CHECK_INT(0, cn_blobs_open_by_shard(simdisk_disk(sim), "blobs", &blobs, NULL));
    for (unsigned i = 0; i < 50; i++) {
        cn_blob_id_draw(&ids[i]);
        cn_blob_id_place(&ids[i], 0x01020304 + i, i % 2 ? 1000 : 3);
        CHECK_INT(i % 2 ? 1000 : 3, cn_blob_id_shard(&ids[i]));
        CHECK_INT(0x01020304 + i, cn_blob_id_namespace(&ids[i]));
        put_as(blobs, &ids[i], "body", 4, 0);
        CHECK(cn_blob_is_here(blobs, &ids[i]));
    }
    CHECK_INT(50, blob_count(blobs));
    unsigned found = 0;
    for (int64_t count;
         (count = cn_blobs_list(blobs, 1000, found ? &last : NULL, page, 7, NULL)) > 0;) {
        for (int64_t i = 0; i < count; i++, found++) {
            CHECK_INT(1000, cn_blob_id_shard(&page[i]));
            CHECK(memcmp(&page[i], &last, sizeof(last)) > 0);
            last = page[i];
        }
    }
    CHECK_INT(25, found);
    CHECK_INT(0, cn_blobs_list(blobs, 5, NULL, page, 7, NULL));
    id = ids[0];
    CHECK_INT(0, cn_blob_delete(blobs, &id, NULL));
    CHECK(!cn_blob_is_here(blobs, &id));
    CHECK_INT(49, blob_count(blobs));
    cn_blobs_close(blobs);
    simdisk_free(sim);
}

TEST(blob_among, reads_what_is_missing_or_damaged_here_from_others)
{
    static uint8_t body[200000], back[200000];
    struct simdisk *sim = simdisk_new(), *other = simdisk_new();
    struct cn_blobs *local, *among;
    struct others others = {0};
    struct cn_blob_peers peers = {&others,     others_spread,  others_find,
                                  others_read, others_damaged, others_remove};
    struct cn_blob_id id;
    struct cn_blob_reader *reader;
    struct cn_err err;
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)(i * 31 >> 3);
    CHECK_INT(0, cn_blobs_open_by_shard(simdisk_disk(sim), "blobs", &local, NULL));
    CHECK_INT(0, cn_blobs_open_by_shard(simdisk_disk(other), "blobs", &others.theirs, NULL));
    among = cn_blobs_among(local, &peers);
    CHECK_INT(cn_blobs_opening(local), cn_blobs_opening(among));

    /* Missing here. */
    cn_blob_id_draw(&id);
    cn_blob_id_place(&id, 1, 2);
    CHECK_INT(CN_ENOTFOUND, cn_blob_open(among, &id, &reader, &err));
    put_as(others.theirs, &id, body, sizeof(body), 0);
    CHECK_INT(0, cn_blob_open(among, &id, &reader, &err));
    CHECK_INT(sizeof(body), cn_blob_size(reader));
    CHECK_INT(-EAGAIN, cn_blob_read_now(reader, back, 100, 0, &err));
    CHECK_INT(100, cn_blob_read(reader, back, 500, sizeof(body) - 100, &err));
    CHECK_INT(0, memcmp(back, body + sizeof(body) - 100, 100));
    CHECK_INT(0, cn_blob_read(reader, back, 500, sizeof(body), &err));
    cn_blob_close(reader);
    CHECK_INT(0, others.damaged);

    /* Damaged here, in the middle: what is before it is read here. */
    put_as(among, &id, body, sizeof(body), 0);
    CHECK_INT(1, others.spreads);
    char path[100], hex[33];
    for (unsigned i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", id.bytes[i]);
    snprintf(path, sizeof(path), "blobs/2/%.2s/%s", hex, hex);
    struct cn_disk_file *file;
    CHECK_INT(0, cn_disk_open(simdisk_disk(sim), path, 0, &file));
    CHECK_INT(0, cn_disk_write_all(file, "\xff\xfe", 2, 150000));
    cn_disk_close(file);
    others.reads = 0;
    CHECK_INT(0, cn_blob_open(among, &id, &reader, &err));
    CHECK_INT(65536, cn_blob_read(reader, back, 65536, 0, &err));
    CHECK_INT(0, others.reads);
    CHECK_INT(-EAGAIN, cn_blob_read_now(reader, back, sizeof(back), 0, &err));
    CHECK_INT(sizeof(body), cn_blob_read(reader, back, sizeof(back), 0, &err));
    CHECK_INT(0, memcmp(back, body, sizeof(body)));
    CHECK_INT(1, others.damaged);
    CHECK(others.reads > 0);
    cn_blob_close(reader);

    /* Nobody else has it: the damage is told. */
    CHECK_INT(0, cn_blob_delete(others.theirs, &id, &err));
    CHECK_INT(0, cn_blob_open(among, &id, &reader, &err));
    CHECK_INT(CN_ECORRUPT, cn_blob_read(reader, back, sizeof(back), 0, &err));
    cn_blob_close(reader);
    CHECK_INT(0, cn_blob_delete(among, &id, &err));
    CHECK_INT(1, others.removed);

    /* One that could not be spread is none. */
    others.spread_rc = CN_EOVERLOADED;
    cn_blob_id_draw(&id);
    put_as(among, &id, body, 10, CN_EOVERLOADED);
    cn_blobs_close(among);
    cn_blobs_close(local);
    cn_blobs_close(others.theirs);
    simdisk_free(sim);
    simdisk_free(other);
}
