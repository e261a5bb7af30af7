/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of stores on their way out: whole and in order to who asks, ended at once when the shard
 * goes, and never more than a bound of them. */
#include "shard/backup_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "test/lib/test.h"

enum { FRAME = 100 << 10, FRAMES = 30 };

static struct cn_backup_streams *streams;
static atomic_int holds, copies;
static atomic_bool away, fails;

static void *hold(void *data, uint32_t shard, uint64_t *epoch)
{
    (void)data;
    if (atomic_load(&away))
        return NULL;
    *epoch = shard + 40;
    atomic_fetch_add(&holds, 1);
    return &holds;
}

static void release(void *data, void *held)
{
    (void)data;
    CHECK(held == &holds);
    atomic_fetch_sub(&holds, 1);
}

static int copy(void *data, uint32_t shard, int (*write)(void *, const void *, size_t), void *to,
                struct cn_err *err)
{
    (void)data;
    uint8_t *bytes = cn_alloc(FRAME);
    int rc = 0;
    atomic_fetch_add(&copies, 1);
    for (int i = 0; i < FRAMES && rc == 0; i++) {
        memset(bytes, (int)(shard + (uint32_t)i), FRAME);
        rc = write(to, bytes, FRAME);
        if (rc == 0 && i == 10 && atomic_load(&fails))
            rc = cn_err_set(err, CN_EREADONLY, "the disk is bad");
    }
    cn_free(bytes);
    return rc;
}

static void begin(void)
{
    struct cn_backup_streams_host hands = {NULL, hold, release, copy};
    atomic_store(&away, false);
    atomic_store(&fails, false);
    streams = cn_backup_streams_new(&hands);
}

static void end(void)
{
    cn_backup_streams_stop(streams);
    cn_backup_streams_free(streams);
    CHECK_INT(0, atomic_load(&holds));
}

static struct cn_backup_stream_ask ask_of(uint64_t disk, uint32_t shard, uint8_t id)
{
    return (struct cn_backup_stream_ask){
        .disk = disk, .shard = shard, .id = {id}, .size = CN_BACKUP_STREAM_PIECE_MAX};
}

static int next(struct cn_backup_stream_ask *ask, struct cn_backup_stream_piece *piece,
                struct cn_err *err)
{
    size_t before = piece->bytes.size;
    int rc = cn_backup_stream_next(streams, ask, piece, err);
    ask->offset += piece->bytes.size - before;
    return rc;
}

TEST(stream, gives_all_of_it_in_order)
{
    begin();
    struct cn_backup_stream_ask ask = ask_of(1, 3, 1);
    struct cn_backup_stream_piece piece = {0};
    struct cn_err err = {0};
    while (!piece.ended)
        CHECK_INT(0, next(&ask, &piece, &err));
    CHECK_INT(43, piece.epoch);
    CHECK_INT(FRAME * FRAMES, piece.bytes.size);
    for (size_t i = 0; i < piece.bytes.size; i++)
        CHECK_INT((uint8_t)(3 + i / FRAME), piece.bytes.data[i]);
    CHECK_INT(CN_ENOTFOUND, next(&ask, &piece, &err)); /* it has ended */
    cn_buf_fini(&piece.bytes);
    end();
}

/* Y2: a cut does not wait for who asks. */
TEST(stream, that_is_cut_lets_go_of_its_shard)
{
    begin();
    struct cn_backup_stream_ask ask = ask_of(1, 3, 1), other = ask_of(1, 4, 2);
    struct cn_backup_stream_piece piece = {0};
    struct cn_err err = {0};
    CHECK_INT(0, next(&ask, &piece, &err));
    CHECK_INT(0, next(&other, &piece, &err));
    CHECK_INT(2, atomic_load(&holds));
    atomic_store(&away, true);
    cn_backup_streams_cut(streams, 3);
    while (atomic_load(&holds) != 1) /* the other one goes on */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_INT(CN_ECLOSED, next(&ask, &piece, &err));
    CHECK_INT(0, next(&other, &piece, &err));
    struct cn_backup_stream_ask again = ask_of(1, 3, 3);
    CHECK_INT(CN_ECLOSED, next(&again, &piece, &err)); /* Y1 */
    cn_buf_fini(&piece.bytes);
    end();
}

/* Y3, Y4 */
TEST(stream, is_bounded_and_has_no_gaps)
{
    begin();
    struct cn_backup_stream_piece piece = {0};
    struct cn_err err = {0};
    struct cn_backup_stream_ask asks[CN_BACKUP_STREAMS_MAX + 1];
    for (uint8_t i = 0; i <= CN_BACKUP_STREAMS_MAX; i++) {
        asks[i] = ask_of(1, i, i);
        CHECK_INT(i < CN_BACKUP_STREAMS_MAX ? 0 : CN_EOVERLOADED, next(&asks[i], &piece, &err));
    }
    asks[0].offset++;
    CHECK_INT(CN_EINVALID, next(&asks[0], &piece, &err));
    struct cn_backup_stream_ask stranger = ask_of(2, 1, 1); /* another's id is of no use */
    stranger.offset = asks[1].offset;
    CHECK_INT(CN_ENOTFOUND, next(&stranger, &piece, &err));
    /* The one that was lost goes; who begins a shard anew gives up what he had of it. */
    while (atomic_load(&holds) != CN_BACKUP_STREAMS_MAX - 1)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    struct cn_backup_stream_ask again = ask_of(1, 1, 77);
    int rc;
    while ((rc = next(&again, &piece, &err)) == CN_EOVERLOADED)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_INT(0, rc);
    CHECK_INT(CN_ECLOSED, next(&asks[1], &piece, &err));
    cn_buf_fini(&piece.bytes);
    end();
}

TEST(stream, tells_what_the_copy_failed_with)
{
    begin();
    atomic_store(&fails, true);
    struct cn_backup_stream_ask ask = ask_of(1, 3, 1);
    struct cn_backup_stream_piece piece = {0};
    struct cn_err err = {0};
    int rc = 0;
    while (rc == 0)
        rc = next(&ask, &piece, &err);
    CHECK_INT(CN_EREADONLY, rc);
    CHECK_STR("the disk is bad", err.text);
    CHECK(!piece.ended);
    cn_buf_fini(&piece.bytes);
    end();
}
