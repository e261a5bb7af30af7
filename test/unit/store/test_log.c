/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what is durable can be read back in order; what fails stays failed. */
#include "store/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/block.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/sink.h"
#include "test/lib/simdisk.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct cn_log *log_open_for(struct cn_disk *disk, bool manual, uint64_t pending_max)
{
    struct cn_log_config config = {
        .disk = disk,
        .clock = cn_clock_system(),
        .segment_size = 64 << 10,
        .pending_max = pending_max,
        .live_max = 64 << 20,
        .manual = manual,
        .next_lsn = 1,
        .next_number = 1,
    };
    struct cn_log *log;
    CHECK_INT(0, cn_log_open(&config, &log, NULL));
    return log;
}

static struct cn_log *log_open(struct cn_disk *disk, bool manual)
{
    return log_open_for(disk, manual, 256 << 10);
}

static int append(struct cn_log *log, const void *body, size_t size, uint64_t *lsn,
                  struct cn_err *err)
{
    int64_t time_ms;
    struct cn_log_entry entry = {
        .kind = CN_RECORD_NAMESPACE, .body = body, .size = size, .boundary = cn_log_boundary(log)};
    return cn_log_append(log, &entry, lsn, &time_ms, err);
}

/* Reads all segments; every record must follow its predecessor. Returns the last LSN. */
static uint64_t read_all(struct cn_disk *disk, void (*each)(void *, const struct cn_record *),
                         void *data)
{
    uint64_t last = 0;
    for (uint64_t number = 1;; number++) {
        struct cn_segment_reader reader;
        struct cn_record record;
        char path[CN_SEGMENT_PATH_MAX];
        int rc;
        cn_segment_path(number, path);
        if (cn_segment_reader_open(&reader, disk, path, NULL) < 0)
            return last;
        CHECK_INT((long long)last + 1, (long long)reader.header.first_lsn);
        while ((rc = cn_segment_reader_next(&reader, &record, NULL)) == 1) {
            CHECK_INT((long long)last + 1, (long long)record.header.lsn);
            last = record.header.lsn;
            if (each)
                each(data, &record);
        }
        CHECK_INT(0, rc);
        CHECK_INT(0, cn_segment_reader_damaged(&reader, NULL));
        cn_segment_reader_close(&reader);
    }
}

enum { WRITERS = 4, EACH = 3000 };

struct writer {
    struct cn_log *log;
    pthread_t thread;
    uint32_t number;
};

struct listener {
    struct cn_log_listener base;
    atomic_uint_fast64_t last;
    atomic_int calls, failures;
};

static void on_durable(struct cn_log_listener *base, uint64_t lsn, int status)
{
    struct listener *listener = (struct listener *)base;
    if (lsn < atomic_load(&listener->last))
        atomic_store(&listener->failures, 1000); /* went back */
    atomic_store(&listener->last, lsn);
    atomic_fetch_add(&listener->calls, 1);
    if (status < 0)
        atomic_fetch_add(&listener->failures, 1);
}

static void *write_many(void *arg)
{
    struct writer *writer = arg;
    uint8_t body[700] = {0};
    for (uint32_t i = 0; i < EACH; i++) {
        uint64_t lsn;
        memcpy(body, &writer->number, 4);
        memcpy(body + 4, &i, 4);
        if (append(writer->log, body, 8 + i % 600, &lsn, NULL) < 0)
            return "append";
        if (i % 100 == 0 && cn_log_wait(writer->log, lsn, NULL) < 0)
            return "wait";
    }
    return NULL;
}

struct seen {
    uint32_t next[WRITERS];
    int count;
};

static void on_record(void *data, const struct cn_record *record)
{
    struct seen *seen = data;
    uint32_t words[2];
    memcpy(words, record->body, sizeof(words));
    CHECK(words[0] < WRITERS);
    CHECK_INT(seen->next[words[0]], words[1]); /* one writer's records in its order */
    seen->next[words[0]]++;
    seen->count++;
}

TEST(log, keeps_the_records_of_many_threads_in_order)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_log *log = log_open(disk, false);
    struct listener listener = {.base.on_durable = on_durable};
    cn_log_listen(log, &listener.base);
    struct writer writers[WRITERS];
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.log = log, .number = i};
        pthread_create(&writers[i].thread, NULL, write_many, &writers[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        void *failed;
        pthread_join(writers[i].thread, &failed);
        CHECK(failed == NULL);
    }
    CHECK_INT(0, cn_log_wait(log, cn_log_appended(log), NULL));
    CHECK_INT(WRITERS * EACH, cn_log_durable(log));
    cn_log_unlisten(log, &listener.base); /* the last call is over when this returns */
    CHECK(atomic_load(&listener.calls) > 0 && atomic_load(&listener.failures) == 0);
    cn_log_close(log);
    struct seen seen = {0};
    CHECK_INT(WRITERS * EACH, read_all(disk, on_record, &seen));
    CHECK_INT(WRITERS * EACH, seen.count);
    cn_disk_system_free(disk);
}

TEST(log, a_record_larger_than_a_segment_gets_one_of_its_own)
{
    for (int manual = 0; manual < 2; manual++) {
        struct cn_disk *disk = storetest_disk();
        struct cn_log *log = log_open(disk, manual);
        uint8_t *body = cn_alloc_zero(300 << 10);
        uint64_t lsn;
        CHECK_INT(0, append(log, body, 100, &lsn, NULL));
        CHECK_INT(0, append(log, body, 300 << 10, &lsn, NULL));
        CHECK_INT(0, append(log, body, 100, &lsn, NULL));
        CHECK_INT(0, cn_log_wait(log, lsn, NULL));
        cn_log_close(log);
        CHECK_INT(3, read_all(disk, NULL, NULL));
        cn_free(body);
        cn_disk_system_free(disk);
    }
}

/* Every byte of a body is the record's number. */
static void on_filled(void *data, const struct cn_record *record)
{
    uint64_t *bytes = data;
    const uint8_t *body = record->body;
    for (uint32_t i = 0; i < record->header.body_size; i++)
        CHECK(body[i] == record->header.lsn);
    *bytes += record->header.body_size;
}

static int append_owned(struct cn_log *log, struct cn_buf *owner, size_t size, int number,
                        uint64_t *lsn)
{
    int64_t time_ms;
    cn_buf_clear(owner);
    cn_buf_reserve(owner, CN_LOG_ROOM + size);
    owner->size = CN_LOG_ROOM + size;
    memset(owner->data + CN_LOG_ROOM, number, size);
    struct cn_log_entry entry = {.kind = CN_RECORD_NAMESPACE,
                                 .body = owner->data + CN_LOG_ROOM,
                                 .size = size,
                                 .boundary = cn_log_boundary(log),
                                 .owner = owner};
    return cn_log_append(log, &entry, lsn, &time_ms, NULL);
}

TEST(log, a_large_record_is_taken_only_if_nothing_waits_before_it)
{
    const size_t large = (1 << 20) + 3, small = 5000;
    for (int manual = 0; manual < 2; manual++) {
        struct cn_disk *disk = storetest_disk();
        struct cn_log *log = log_open_for(disk, manual, 8 << 20);
        struct cn_buf owner = {0};
        uint64_t lsn, bytes = 0;
        CHECK_INT(0, append_owned(log, &owner, large, 1, &lsn));
        CHECK(owner.data == NULL);
        CHECK_INT(0, append_owned(log, &owner, small, 2, &lsn));
        CHECK(owner.data != NULL);
        CHECK_INT(0, append_owned(log, &owner, large, 3, &lsn));
        CHECK(!manual || owner.data != NULL); /* the flusher may have taken the others */
        CHECK_INT(0, cn_log_wait(log, lsn, NULL));
        CHECK_INT(0, append_owned(log, &owner, large, 4, &lsn));
        CHECK(owner.data == NULL);
        CHECK_INT(0, append_owned(log, &owner, small, 5, &lsn));
        CHECK_INT(0, cn_log_wait(log, lsn, NULL));
        cn_buf_fini(&owner);
        cn_log_close(log);
        CHECK_INT(5, read_all(disk, on_filled, &bytes));
        CHECK_INT((long long)(3 * large + 2 * small), (long long)bytes);
        cn_disk_system_free(disk);
    }
}

TEST(log, an_append_that_is_refused_leaves_its_buffer)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log *log = log_open(simdisk_disk(sim), true);
    struct cn_buf owner = {0};
    uint64_t lsn;
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 200 << 10});
    CHECK_INT(CN_EREADONLY, append_owned(log, &owner, 2 << 20, 1, &lsn));
    CHECK_INT((long long)(CN_LOG_ROOM + (2 << 20)), (long long)owner.size);
    simdisk_set_fault(sim, NULL);
    CHECK_INT(0, append_owned(log, &owner, 2 << 20, 1, &lsn));
    CHECK(owner.data == NULL);
    cn_log_close(log);
    uint64_t bytes = 0;
    CHECK_INT(1, read_all(simdisk_disk(sim), on_filled, &bytes));
    simdisk_free(sim);
}

TEST(log, an_append_encoded_before_a_checkpoint_began_is_sent_back)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_log *log = log_open(disk, true);
    uint64_t lsn, boundary = cn_log_boundary(log);
    int64_t time_ms;
    CHECK_INT(0, append(log, "x", 1, &lsn, NULL));
    CHECK_INT(1, cn_log_checkpoint_start(log));
    struct cn_log_entry entry = {
        .kind = CN_RECORD_COMMIT, .body = "y", .size = 1, .boundary = boundary};
    CHECK_INT(-EAGAIN, cn_log_append(log, &entry, &lsn, &time_ms, NULL));
    CHECK_INT(1, cn_log_appended(log));
    CHECK_INT(0, append(log, "y", 1, &lsn, NULL));
    cn_log_close(log);
    cn_disk_system_free(disk);
}

TEST(log, segments_are_released_oldest_first_and_their_files_used_again)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_log *log = log_open(disk, false);
    uint8_t body[1000] = {0};
    uint64_t lsn;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 300; i++)
            CHECK_INT(0, append(log, body, sizeof(body), &lsn, NULL));
        CHECK_INT(0, cn_log_wait(log, lsn, NULL));
        struct cn_segment_info segment;
        uint64_t last = 0;
        while (cn_log_segments_before(log, lsn + 1, &segment, 1) == 1) {
            CHECK(segment.number > last && segment.last_lsn <= lsn);
            last = segment.number;
            CHECK_INT(0, cn_log_release(log, segment.number, NULL));
        }
        CHECK(last > 0);
        CHECK(cn_log_live_size(log) <= 2 * (64 << 10)); /* the current one is left */
    }
    cn_log_close(log);
    cn_disk_system_free(disk);
}

TEST(log, refuses_as_overload_what_is_past_the_bound_of_the_live_log)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_log_config config = {
        .disk = disk,
        .clock = cn_clock_system(),
        .segment_size = 64 << 10,
        .pending_max = 256 << 10,
        .live_max = 256 << 10,
        .next_lsn = 1,
        .next_number = 1,
    };
    struct cn_log *log;
    CHECK_INT(0, cn_log_open(&config, &log, NULL));
    uint8_t body[1000] = {0};
    struct cn_err err = {0};
    uint64_t lsn = 0;
    int rc = 0, count = 0;
    for (; count < 2000 && rc == 0; count++)
        rc = append(log, body, sizeof(body), &lsn, &err);
    CHECK_INT(CN_EOVERLOADED, rc);
    CHECK(count > 200 && cn_log_live_size(log) < 512 << 10);
    CHECK_INT(0, cn_log_wait(log, lsn, NULL)); /* what was taken becomes durable */
    struct cn_segment_info segment;
    while (cn_log_segments_before(log, lsn + 1, &segment, 1) == 1)
        CHECK_INT(0, cn_log_release(log, segment.number, NULL));
    CHECK_INT(0, append(log, body, sizeof(body), &lsn, &err)); /* a checkpoint made room */
    cn_log_close(log);
    cn_disk_system_free(disk);
}

TEST(log, stops_for_good_after_a_failed_sync)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log *log = log_open(simdisk_disk(sim), true);
    struct listener listener = {.base.on_durable = on_durable};
    struct cn_err err = {0};
    uint64_t lsn;
    CHECK_INT(0, append(log, "a", 1, &lsn, NULL));
    CHECK_INT(0, cn_log_wait(log, lsn, NULL));
    cn_log_listen(log, &listener.base);
    simdisk_set_fault(sim, &(struct simdisk_fault){.kinds = SIMDISK_SYNC, .at = 1, .code = -EIO});
    CHECK_INT(0, append(log, "b", 1, &lsn, NULL));
    CHECK_INT(CN_EREADONLY, cn_log_wait(log, lsn, &err));
    CHECK(strstr(err.text, "Input/output error") != NULL);
    CHECK_INT(1, atomic_load(&listener.failures));
    simdisk_set_fault(sim, NULL); /* the disk works again, but nobody knows what it holds */
    CHECK_INT(CN_EREADONLY, append(log, "c", 1, &lsn, &err));
    CHECK_INT(CN_EREADONLY, cn_log_status(log, &err));
    CHECK(cn_log_failed(log, NULL));
    CHECK_INT(1, cn_log_durable(log));
    cn_log_unlisten(log, &listener.base);
    cn_log_close(log);
    simdisk_free(sim);
}

/* The thread that makes segments finds the failure; whoever waits for a commit is told all the same. */
TEST(log, L4_listeners_are_told_when_no_segment_can_be_made)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log *log = log_open(simdisk_disk(sim), false);
    struct listener listener = {.base.on_durable = on_durable};
    uint8_t body[1000] = {0};
    uint64_t lsn;
    cn_log_listen(log, &listener.base);
    struct simdisk_fault fault = {.kinds = SIMDISK_OPEN, .at = 1, .code = -EIO, .sticky = true};
    simdisk_set_fault(sim, &fault);
    while (append(log, body, sizeof(body), &lsn, NULL) == 0)
        ;
    CHECK(cn_log_failed(log, NULL));
    while (!atomic_load(&listener.failures))
        usleep(1000);
    cn_log_unlisten(log, &listener.base);
    simdisk_set_fault(sim, NULL);
    cn_log_close(log);
    simdisk_free(sim);
}

TEST(log, refuses_on_a_full_disk_and_goes_on_when_there_is_space)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log *log = log_open(simdisk_disk(sim), true);
    uint8_t body[1000] = {0};
    struct cn_err err = {0};
    uint64_t lsn, accepted = 0;
    simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 200 << 10});
    int rc;
    while ((rc = append(log, body, sizeof(body), &lsn, &err)) == 0)
        accepted = lsn;
    CHECK_INT(CN_EREADONLY, rc);
    CHECK(accepted > 100 && accepted < 200);
    CHECK(!cn_log_failed(log, NULL));
    CHECK_INT(0, cn_log_wait(log, accepted, NULL)); /* what was accepted is kept */
    simdisk_set_fault(sim, NULL);
    CHECK_INT(0, append(log, body, sizeof(body), &lsn, &err));
    CHECK_INT(0, cn_log_wait(log, lsn, NULL));
    cn_log_close(log);
    CHECK_INT((long long)accepted + 1, (long long)read_all(simdisk_disk(sim), NULL, NULL));
    simdisk_free(sim);
}

TEST(log, tells_a_torn_tail_from_damage)
{
    struct simdisk *sim = simdisk_new();
    struct cn_log *log = log_open(simdisk_disk(sim), true);
    uint8_t body[1000] = {0};
    uint64_t lsn;
    for (int i = 0; i < 4; i++) { /* four flushes */
        CHECK_INT(0, append(log, body, sizeof(body), &lsn, NULL));
        CHECK_INT(0, cn_log_wait(log, lsn, NULL));
    }
    cn_log_close(log);
    const uint64_t start = sizeof(struct cn_segment_header), each = cn_record_size(sizeof(body));
    for (uint64_t n = 0; n < 4; n++) { /* damage the n-th */
        struct simdisk *copy = simdisk_copy(sim);
        struct cn_segment_reader reader;
        struct cn_record record;
        CHECK_INT(0, simdisk_damage(copy, "log/0000000001.seg", start + n * each + 500, 3));
        CHECK_INT(0,
                  cn_segment_reader_open(&reader, simdisk_disk(copy), "log/0000000001.seg", NULL));
        for (uint64_t i = 0; i < n; i++)
            CHECK_INT(1, cn_segment_reader_next(&reader, &record, NULL));
        CHECK_INT(0, cn_segment_reader_next(&reader, &record, NULL));
        /* Behind the last record nothing shows that it was ever durable. */
        CHECK_INT(n < 3, cn_segment_reader_damaged(&reader, NULL));
        cn_segment_reader_close(&reader);
        simdisk_free(copy);
    }
    simdisk_free(sim);
}

/* --- a sink: store/sink.h -------------------------------------------------------------------- */

struct sink_seen {
    struct cn_disk *disk;
    uint64_t last, refuse_from; /* 0: nothing is refused */
    unsigned batches;
};

/* K1: what is settled now is in no file yet. K3: it follows what was settled before. */
static int sink_settle(void *data, const struct cn_sink_batch *batch, struct cn_err *err)
{
    struct sink_seen *seen = data;
    uint64_t lsn = batch->first_lsn;
    CHECK_INT((long long)seen->last + 1, (long long)lsn);
    CHECK(read_all(seen->disk, NULL, NULL) < lsn);
    size_t at = 0;
    for (; at < batch->size; lsn++) {
        struct cn_record_header header;
        memcpy(&header, batch->bytes + at, sizeof(header));
        CHECK_INT((long long)lsn, (long long)header.lsn);
        at += cn_record_size(header.body_size);
    }
    CHECK_INT((long long)batch->last_lsn + 1, (long long)lsn);
    seen->batches++;
    if (seen->refuse_from && batch->last_lsn >= seen->refuse_from)
        return cn_err_set(err, CN_EREADONLY, "the session is over");
    seen->last = batch->last_lsn;
    return 0;
}

TEST(log, L7_is_durable_when_its_sink_has_it_and_writes_nothing_before)
{
    struct simdisk *sim = simdisk_new();
    struct cn_disk *disk = simdisk_disk(sim);
    struct sink_seen seen = {.disk = disk, .refuse_from = 40};
    struct cn_sink sink = {.data = &seen, .settle = sink_settle};
    struct cn_log_config config = {.disk = disk,
                                   .clock = cn_clock_system(),
                                   .sink = &sink,
                                   .segment_size = 64 << 10,
                                   .pending_max = 256 << 10,
                                   .live_max = 64 << 20,
                                   .manual = true,
                                   .next_lsn = 1,
                                   .next_number = 1};
    struct cn_log *log;
    struct cn_err err = {0};
    CHECK_INT(0, cn_log_open(&config, &log, NULL));
    uint8_t body[9000] = {1}; /* several segments */
    uint64_t lsn = 0;
    for (int i = 0; i < 13; i++) {
        for (int k = 0; k < 3; k++)
            CHECK_INT(0, append(log, body, sizeof(body), &lsn, NULL));
        CHECK(cn_log_durable(log) < lsn);
        cn_log_flush(log);
        CHECK_INT((long long)lsn, (long long)cn_log_durable(log));
        CHECK_INT((long long)lsn, (long long)read_all(disk, NULL, NULL));
    }
    CHECK_INT(13, seen.batches);
    CHECK_INT(0, append(log, body, sizeof(body), &lsn, NULL)); /* 40: refused */
    CHECK(cn_log_wait(log, lsn, &err) < 0);
    CHECK(strstr(err.text, "the session is over") != NULL);
    CHECK_INT(39, (long long)cn_log_durable(log));
    CHECK_INT(CN_EREADONLY, append(log, body, sizeof(body), &lsn, &err)); /* K2: for good */
    cn_log_close(log);
    CHECK_INT(39, (long long)read_all(disk, NULL, NULL));
    CHECK_INT(14, seen.batches);
    simdisk_free(sim);
}

/* A sink that settles nothing until it may. */
struct slow_sink {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

static int slow_settle(void *data, const struct cn_sink_batch *batch, struct cn_err *err)
{
    struct slow_sink *slow = data;
    (void)batch, (void)err;
    pthread_mutex_lock(&slow->lock);
    while (!slow->open)
        pthread_cond_wait(&slow->changed, &slow->lock);
    pthread_mutex_unlock(&slow->lock);
    return 0;
}

TEST(log, L11_a_thread_that_serves_does_not_wait_for_room)
{
    enum { PENDING_MAX = 256 << 10, SIZE = 60000 }; /* a segment takes one record */
    struct cn_disk *disk = storetest_disk();
    struct slow_sink slow = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct cn_sink sink = {.data = &slow, .settle = slow_settle};
    struct cn_log_config config = {.disk = disk,
                                   .clock = cn_clock_system(),
                                   .sink = &sink,
                                   .segment_size = 64 << 10,
                                   .pending_max = PENDING_MAX,
                                   .live_max = 64 << 20,
                                   .next_lsn = 1,
                                   .next_number = 1};
    struct cn_log *log;
    struct cn_err err = {0};
    CHECK_INT(0, cn_log_open(&config, &log, NULL));
    static uint8_t body[SIZE] = {1};
    uint64_t lsn = 0, count = 0;
    int rc;
    cn_block_forbid(true);
    CHECK_INT(CN_LOG_ROOMY, cn_log_pressure(log));
    while ((rc = append(log, body, sizeof(body), &lsn, &err)) == 0) {
        count++;
        uint64_t pending = cn_log_pending(log);
        CHECK_INT(pending <= PENDING_MAX       ? CN_LOG_ROOMY
                  : pending <= 2 * PENDING_MAX ? CN_LOG_PRESSED
                                               : CN_LOG_CROWDED,
                  cn_log_pressure(log));
    }
    CHECK_INT(CN_EOVERLOADED, rc); /* more than that it does not take */
    CHECK(cn_log_pending(log) <= 4 * PENDING_MAX && cn_log_pending(log) > 3 * PENDING_MAX);
    CHECK_INT(0, cn_log_durable(log));
    cn_block_forbid(false);
    pthread_mutex_lock(&slow.lock);
    slow.open = true;
    pthread_cond_broadcast(&slow.changed);
    pthread_mutex_unlock(&slow.lock);
    CHECK_INT(0, cn_log_wait(log, lsn, NULL));
    CHECK_INT(CN_LOG_ROOMY, cn_log_pressure(log));
    cn_log_close(log);
    CHECK_INT((long long)count, (long long)read_all(disk, NULL, NULL)); /* segments owed, too */
    cn_disk_system_free(disk);
}

/* Records that need a file of their own each are owed one; those of a log that closes get it. */
TEST(log, L11_what_is_owed_a_segment_gets_it_when_the_log_closes)
{
    struct cn_disk *disk = storetest_disk();
    struct cn_log *log = log_open_for(disk, false, 64 << 20);
    static uint8_t body[200000] = {1};
    uint64_t lsn;
    cn_block_forbid(true);
    for (int i = 0; i < 40; i++)
        CHECK_INT(0, append(log, body, sizeof(body) - (size_t)i * 1000, &lsn, NULL));
    cn_block_forbid(false);
    cn_log_close(log);
    CHECK_INT(40, (long long)read_all(disk, NULL, NULL));
    cn_disk_system_free(disk);
}
