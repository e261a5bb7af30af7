/* SPDX-License-Identifier: Apache-2.0 */
/* The node's secret: made once, durable before it is used, and never taken for another. */
#include "object/secret.h"

#include <errno.h>
#include <string.h>

#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static void write_file(struct cn_disk *disk, const void *bytes, size_t size)
{
    CHECK_INT(0, cn_disk_replace(disk, CN_SECRET_FILE, bytes, size));
}

TEST(secret, is_made_once_and_is_durable_when_it_is_known)
{
    struct simdisk *sim = simdisk_new();
    uint8_t first[CN_SIPHASH_KEY_SIZE], again[CN_SIPHASH_KEY_SIZE];
    static const uint8_t zeros[CN_SIPHASH_KEY_SIZE];
    struct cn_err err;
    CHECK_INT(0, cn_secret_load(simdisk_disk(sim), first, &err));
    CHECK(memcmp(first, zeros, sizeof(first)) != 0);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct simdisk *found = simdisk_crash(sim, seed);
        CHECK_INT(0, cn_secret_load(simdisk_disk(found), again, &err));
        CHECK(memcmp(first, again, sizeof(first)) == 0);
        simdisk_free(found);
    }
    simdisk_free(sim);
}

TEST(secret, a_loss_of_power_while_it_is_made_leaves_a_whole_one_or_none)
{
    struct cn_err err;
    for (uint64_t at = 1; at < 12; at++) {
        struct simdisk *sim = simdisk_new();
        uint8_t secret[CN_SIPHASH_KEY_SIZE];
        simdisk_set_fault(sim,
                          &(struct simdisk_fault){
                              .kinds = SIMDISK_CHANGES, .at = at, .code = -EIO, .sticky = true});
        int rc = cn_secret_load(simdisk_disk(sim), secret, &err);
        if (rc < 0)
            CHECK(strstr(err.text, "SECRET"));
        struct simdisk *found = simdisk_crash(sim, at);
        CHECK_INT(0, cn_secret_check(simdisk_disk(found), &err));
        simdisk_free(found);
        simdisk_free(sim);
    }
}

TEST(secret, one_that_is_damaged_is_refused_whichever_bit_it_is)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    struct cn_err err;
    CHECK_INT(0, cn_secret_load(disk, secret, &err));
    for (unsigned bit = 0; bit < 20 * 8; bit++) {
        CHECK_INT(0, simdisk_damage(sim, CN_SECRET_FILE, bit / 8, bit % 8));
        CHECK_INT(CN_ECORRUPT, cn_secret_check(disk, &err));
        CHECK_INT(CN_ECORRUPT, cn_secret_load(disk, secret, &err));
        CHECK_INT(0, simdisk_damage(sim, CN_SECRET_FILE, bit / 8, bit % 8));
    }
    CHECK_INT(0, cn_secret_check(disk, &err));
    simdisk_free(sim);
}

TEST(secret, of_any_other_length_is_damaged_too)
{
    struct simdisk *sim = simdisk_new();
    uint8_t bytes[64] = {1, 2, 3}, secret[CN_SIPHASH_KEY_SIZE];
    struct cn_err err;
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        if (size == CN_SIPHASH_KEY_SIZE)
            continue; /* without a checksum: below */
        write_file(simdisk_disk(sim), bytes, size);
        CHECK_INT(CN_ECORRUPT, cn_secret_load(simdisk_disk(sim), secret, &err));
    }
    simdisk_free(sim);
}

TEST(secret, without_a_checksum_it_is_kept_and_gets_one)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    uint8_t old[CN_SIPHASH_KEY_SIZE] = "format one's own", secret[CN_SIPHASH_KEY_SIZE];
    struct cn_err err;
    write_file(disk, old, sizeof(old));
    CHECK_INT(0, cn_secret_check(disk, &err));
    CHECK_INT(0, cn_secret_load(disk, secret, &err));
    CHECK(memcmp(old, secret, sizeof(old)) == 0);
    CHECK_INT(0, simdisk_damage(sim, CN_SECRET_FILE, 3, 1));
    CHECK_INT(CN_ECORRUPT, cn_secret_load(disk, secret, &err));
    simdisk_free(sim);
}

TEST(secret, that_cannot_be_read_is_no_reason_to_make_another)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    uint8_t first[CN_SIPHASH_KEY_SIZE], again[CN_SIPHASH_KEY_SIZE];
    struct cn_err err;
    CHECK_INT(0, cn_secret_load(disk, first, &err));
    simdisk_set_fault(sim, &(struct simdisk_fault){.kinds = SIMDISK_READ, .at = 1, .code = -EIO});
    CHECK(cn_secret_load(disk, again, &err) < 0);
    CHECK(strstr(err.text, "cannot read SECRET"));
    CHECK_INT(0, cn_secret_load(disk, again, &err));
    CHECK(memcmp(first, again, sizeof(first)) == 0);
    simdisk_free(sim);
}
