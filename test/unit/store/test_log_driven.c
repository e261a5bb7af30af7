/* SPDX-License-Identifier: Apache-2.0 */
/* A log that is driven from outside: what is settled is written, and nothing else. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/log.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static void count_hint(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

static struct cn_log *log_open(struct cn_disk *disk, const struct cn_log_driven *driven)
{
    struct cn_log_config config = {
        .disk = disk,
        .clock = cn_clock_system(),
        .sync = CN_LOG_OS,
        .driven = driven,
        .segment_size = 1 << 20,
        .pending_max = 4 << 20,
        .live_max = 64 << 20,
        .next_lsn = 1,
        .next_number = 1,
    };
    struct cn_log *log;
    CHECK_INT(0, cn_log_open(&config, &log, NULL));
    return log;
}

static int append(struct cn_log *log, size_t size, uint64_t *lsn, struct cn_err *err)
{
    static const uint8_t body[400 << 10] = {1, 2, 3};
    int64_t time_ms;
    struct cn_log_entry entry = {
        .kind = CN_RECORD_NAMESPACE, .body = body, .size = size, .boundary = cn_log_boundary(log)};
    return cn_log_append(log, &entry, lsn, &time_ms, err);
}

/* Records of all segments, one after the other. */
static uint64_t read_files(struct cn_disk *disk, struct cn_buf *bytes)
{
    uint64_t last = 0;
    for (uint64_t number = 1;; number++) {
        struct cn_segment_reader reader;
        struct cn_record record;
        static const uint8_t zeros[8];
        char path[CN_SEGMENT_PATH_MAX];
        cn_segment_path(number, path);
        if (cn_segment_reader_open(&reader, disk, path, NULL) < 0)
            return last;
        while (cn_segment_reader_next(&reader, &record, NULL) == 1) {
            CHECK_INT((long long)last + 1, (long long)record.header.lsn);
            last = record.header.lsn;
            size_t size = record.header.body_size;
            cn_buf_append(bytes, &record.header, sizeof(record.header));
            cn_buf_append(bytes, record.body, size);
            cn_buf_append(bytes, zeros, cn_record_size(size) - sizeof(record.header) - size);
        }
        cn_segment_reader_close(&reader);
    }
}

TEST(log_driven, L8_L9_writes_exactly_what_is_settled_and_gives_out_the_same_bytes)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log_driven driven = {0};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    struct cn_buf given = {0}, written = {0};
    uint64_t lsn = 0, settled = 0;
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 3; k++)
            CHECK_INT(0, append(log, (size_t)(i * 700 + k * 13), &lsn, NULL));
        /* Not always all of it: what was appended behind a batch stays in the window. */
        uint64_t to = lsn - (uint64_t)(i % 3);
        while (settled < to) {
            uint64_t got = cn_log_records(log, settled + 1, to, 20000, &given);
            CHECK(got > settled && got <= to);
            settled = got;
        }
        CHECK_INT(0, cn_log_settle(log, to, NULL));
        CHECK_INT((long long)to, (long long)cn_log_durable(log));
        CHECK_INT(0, cn_log_settle(log, to, NULL)); /* again */
        cn_buf_clear(&written);
        CHECK_INT((long long)to, (long long)read_files(simdisk_disk(sim), &written));
        CHECK_INT((long long)given.size, (long long)written.size);
        CHECK(memcmp(given.data, written.data, given.size) == 0);
    }
    /* From files, from any place, in pieces, up to the window and into it. */
    struct cn_buf again = {0};
    CHECK_INT(0, append(log, 10, &lsn, NULL));
    for (uint64_t from = 1; from <= lsn;) {
        uint64_t got = cn_log_records(log, from, lsn, 30000, &again);
        CHECK(got >= from);
        from = got + 1;
    }
    CHECK(again.size > given.size && memcmp(again.data, given.data, given.size) == 0);
    CHECK_INT(0, (long long)cn_log_records(log, lsn + 1, lsn + 5, 100, &again));
    cn_buf_clear(&again);
    CHECK_INT(100, (long long)cn_log_records(log, 100, 100, 1, &again));
    cn_log_close(log); /* L9: the last one was not settled */
    cn_buf_clear(&written);
    CHECK_INT((long long)settled, (long long)read_files(simdisk_disk(sim), &written));
    cn_buf_fini(&given);
    cn_buf_fini(&written);
    cn_buf_fini(&again);
    simdisk_free(sim);
}

TEST(log_driven, hints_once_until_it_is_asked)
{
    struct simdisk *sim = simdisk_new();
    atomic_int hints = 0;
    struct cn_log_driven driven = {.appended = count_hint, .data = &hints};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    uint64_t lsn;
    for (int i = 0; i < 5; i++)
        CHECK_INT(0, append(log, 10, &lsn, NULL));
    CHECK_INT(1, hints);
    CHECK_INT(5, (long long)cn_log_take_hint(log));
    CHECK_INT(0, append(log, 10, &lsn, NULL));
    CHECK_INT(0, append(log, 10, &lsn, NULL));
    CHECK_INT(2, hints);
    cn_log_close(log);
    simdisk_free(sim);
}

struct heard {
    struct cn_log_listener base;
    uint64_t lsn;
    int status;
};

static void on_durable(struct cn_log_listener *base, uint64_t lsn, int status)
{
    struct heard *heard = (struct heard *)base;
    heard->lsn = lsn;
    heard->status = status;
}

TEST(log_driven, what_is_refused_never_was_and_whoever_listens_is_told)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log_driven driven = {0};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    struct heard heard = {.base.on_durable = on_durable};
    struct cn_err err = {0};
    struct cn_buf bytes = {0};
    uint64_t lsn;
    cn_log_listen(log, &heard.base);
    for (int i = 0; i < 4; i++)
        CHECK_INT(0, append(log, 100, &lsn, NULL));
    CHECK_INT(0, cn_log_settle(log, 2, NULL));
    CHECK_INT(2, (long long)heard.lsn);
    cn_log_refuse(log, "the session is over");
    CHECK_INT(CN_EREADONLY, heard.status);
    CHECK_INT(CN_EREADONLY, cn_log_wait(log, 3, &err));
    CHECK(strstr(err.text, "the session is over") != NULL);
    CHECK_INT(CN_EREADONLY, cn_log_settle(log, 4, NULL)); /* an answer that came too late */
    CHECK_INT(CN_EREADONLY, append(log, 100, &lsn, NULL));
    CHECK_INT(2, (long long)cn_log_durable(log));
    cn_log_unlisten(log, &heard.base);
    cn_log_close(log);
    CHECK_INT(2, (long long)read_files(simdisk_disk(sim), &bytes));
    cn_buf_fini(&bytes);
    simdisk_free(sim);
}

TEST(log_driven, R9_flags_the_first_record_after_an_open_and_after_a_checkpoint_began)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log_driven driven = {0};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    struct cn_buf bytes = {0};
    uint64_t lsn, flags = 0;
    for (int i = 1; i <= 8; i++) {
        CHECK_INT(0, append(log, 8, &lsn, NULL));
        if (i == 4 || i == 5)
            cn_log_checkpoint_start(log);
    }
    CHECK_INT(8, (long long)cn_log_records(log, 1, 8, 10000, &bytes));
    for (size_t at = 0; at < bytes.size;) {
        struct cn_record record;
        at += cn_record_read(bytes.data + at, bytes.size - at, &record);
        if (record.header.flags & CN_RECORD_BOUNDARY)
            flags |= 1ull << record.header.lsn;
    }
    CHECK_INT(1 << 1 | 1 << 5 | 1 << 6, (long long)flags);
    cn_buf_fini(&bytes);
    cn_log_close(log);
    simdisk_free(sim);
}

TEST(log_driven, is_fed_with_what_another_gave_out_and_with_nothing_else)
{
    struct simdisk *sims[2] = {simdisk_new(), simdisk_new()};
    struct cn_log_driven driven = {0};
    struct cn_log *owner = log_open(simdisk_disk(sims[0]), &driven);
    struct cn_log *log = log_open(simdisk_disk(sims[1]), &driven);
    struct cn_buf bytes = {0}, written = {0};
    size_t ends[41] = {0};
    uint64_t lsn;
    for (uint64_t i = 1; i <= 40; i++) {
        if (i == 30)
            cn_log_checkpoint_start(owner);
        CHECK_INT(0, append(owner, (size_t)(i * 4000), &lsn, NULL));
        CHECK_INT((long long)i, (long long)cn_log_records(owner, i, i, 0, &bytes));
        ends[i] = bytes.size;
    }
    CHECK_INT(0, cn_log_feed(log, bytes.data, ends[10], NULL));
    CHECK_INT(10, (long long)cn_log_durable(log));
    CHECK_INT(1, (long long)cn_log_fed_boundary(log));
    CHECK_INT(0, cn_log_feed(log, bytes.data, ends[10], NULL)); /* there already */
    CHECK_INT(0, cn_log_feed(log, bytes.data + ends[5], ends[12] - ends[5], NULL));
    CHECK_INT(12, (long long)cn_log_durable(log));
    /* A gap, no records, half of one, one that was changed: nothing of it is used. */
    CHECK_INT(CN_EINVALID, cn_log_feed(log, bytes.data + ends[13], ends[20] - ends[13], NULL));
    CHECK_INT(CN_EINVALID, cn_log_feed(log, "12345678", 8, NULL));
    CHECK_INT(CN_EINVALID, cn_log_feed(log, bytes.data + ends[12], ends[14] - ends[12] - 8, NULL));
    CHECK_INT(CN_EINVALID, cn_log_feed(log, bytes.data + ends[12], ends[14] - ends[12] - 1, NULL));
    bytes.data[ends[14] - 100] ^= 1;
    CHECK_INT(CN_EINVALID, cn_log_feed(log, bytes.data + ends[12], ends[20] - ends[12], NULL));
    bytes.data[ends[14] - 100] ^= 1;
    CHECK_INT(12, (long long)cn_log_durable(log));
    CHECK_INT(0, cn_log_feed(log, bytes.data + ends[12], ends[40] - ends[12], NULL));
    CHECK_INT(30, (long long)cn_log_fed_boundary(log));
    CHECK_INT(40, (long long)read_files(simdisk_disk(sims[1]), &written));
    CHECK_INT((long long)bytes.size, (long long)written.size);
    CHECK(memcmp(bytes.data, written.data, bytes.size) == 0);
    cn_log_close(owner);
    cn_log_close(log);
    cn_buf_fini(&bytes);
    cn_buf_fini(&written);
    simdisk_free(sims[0]);
    simdisk_free(sims[1]);
}

TEST(log_driven, a_full_disk_refuses_appends_and_breaks_nothing)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log_driven driven = {0};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    struct cn_err err = {0};
    uint64_t lsn, last = 0;
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 1 << 20});
    while (append(log, 50000, &lsn, &err) == 0)
        last = lsn;
    CHECK(last > 0);
    CHECK(strstr(err.text, "cannot make a log segment") != NULL);
    CHECK_INT(0, cn_log_settle(log, last, NULL)); /* L5: what was taken has its place */
    CHECK_INT(CN_EREADONLY, cn_log_status(log, NULL));
    simdisk_set_fault(sim, NULL);
    cn_log_retry_space(log);
    CHECK_INT(0, cn_log_status(log, NULL));
    CHECK_INT(0, append(log, 50000, &lsn, NULL));
    CHECK_INT((long long)last + 1, (long long)lsn);
    CHECK_INT(0, cn_log_settle(log, lsn, NULL));
    cn_log_close(log);
    simdisk_free(sim);
}

TEST(log_driven, a_settlement_that_cannot_be_written_ends_the_log)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log_driven driven = {0};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    uint64_t lsn;
    CHECK_INT(0, append(log, 500, &lsn, NULL));
    CHECK_INT(0, cn_log_settle(log, 1, NULL));
    CHECK_INT(0, append(log, 500, &lsn, NULL));
    simdisk_set_fault(sim, &(struct simdisk_fault){.kinds = SIMDISK_WRITE, .at = 1, .code = -EIO});
    CHECK_INT(CN_EREADONLY, cn_log_settle(log, 2, NULL));
    CHECK_INT(1, (long long)cn_log_durable(log));
    CHECK(cn_log_failed(log, NULL));
    cn_log_close(log);
    simdisk_free(sim);
}

TEST(log_driven, a_sync_makes_what_is_before_it_survive_a_loss_of_power)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log_driven driven = {0};
    struct cn_log *log = log_open(simdisk_disk(sim), &driven);
    uint64_t lsn;
    for (uint64_t synced = 0; synced < 60; synced += 20) {
        for (int i = 0; i < 20; i++) {
            CHECK_INT(0, append(log, 40000, &lsn, NULL));
            CHECK_INT(0, cn_log_settle(log, lsn, NULL));
        }
        CHECK_INT(0, cn_log_sync(log, lsn - 5, NULL));
        for (uint64_t seed = 0; seed < 30; seed++) {
            struct simdisk *after = simdisk_crash(sim, seed);
            struct cn_buf bytes = {0};
            CHECK(read_files(simdisk_disk(after), &bytes) >= lsn - 5);
            cn_buf_fini(&bytes);
            simdisk_free(after);
        }
    }
    cn_log_close(log);
    simdisk_free(sim);
}

struct waiter {
    struct cn_log *log;
    pthread_t thread;
    int rc;
};

static void *append_more(void *arg)
{
    struct waiter *waiter = arg;
    uint64_t lsn;
    waiter->rc = append(waiter->log, 300 << 10, &lsn, NULL);
    return NULL;
}

/* L10: the second log waits for what the first has, and goes on when that is settled; or is told
 * when its own end comes first. */
TEST(log_driven, L10_appends_wait_for_the_budget_of_all)
{
    for (int refuse = 0; refuse < 2; refuse++) {
        struct simdisk *sims[2] = {simdisk_new(), simdisk_new()};
        struct cn_log_budget *budget = cn_log_budget_new(400 << 10);
        struct cn_log_driven driven = {.budget = budget};
        struct cn_log *first = log_open(simdisk_disk(sims[0]), &driven);
        struct cn_log *second = log_open(simdisk_disk(sims[1]), &driven);
        struct waiter waiter = {.log = second};
        uint64_t lsn;
        CHECK_INT(0, append(first, 300 << 10, &lsn, NULL));
        CHECK_INT(0, pthread_create(&waiter.thread, NULL, append_more, &waiter));
        if (refuse)
            cn_log_refuse(second, "the session is over");
        else
            CHECK_INT(0, cn_log_settle(first, 1, NULL));
        pthread_join(waiter.thread, NULL);
        CHECK_INT(refuse ? CN_EREADONLY : 0, waiter.rc);
        CHECK_INT(refuse ? 0 : 1, (long long)cn_log_appended(second));
        cn_log_close(first);
        cn_log_close(second);
        cn_log_budget_free(budget); /* asserts that all was given back */
        simdisk_free(sims[0]);
        simdisk_free(sims[1]);
    }
}
