/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host_step.c - what is done with a shard: one step after the other, on workers or here.
 *
 * Everything but run() is on the host's thread. A step belongs to its shard's list while it waits,
 * to the workers from when it is given to them until its mail has come back, and is freed then. */
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "shard/host_private.h"

/* --- workers ---------------------------------------------------------------------------------- */

static void run(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    const struct cn_host_disk *disk = shard->host->config.disk_hands;
    const struct cn_host_front *front = shard->host->config.front;
    uint32_t index = shard->index;
    struct cn_err *err = &step->err;
    switch (step->kind) {
    case CN_STEP_CREATE:
        step->rc = disk->create(disk->data, index, err);
        break;
    case CN_STEP_WRITE:
        step->rc = disk->write(disk->data, index, step->bytes.data, step->bytes.size, err);
        break;
    case CN_STEP_OPEN:
        step->rc = disk->open(disk->data, index, step->lsn, err);
        break;
    case CN_STEP_SERVE:
        step->rc = front->serve(front->data, index, err);
        break;
    case CN_STEP_SYNC:
        step->rc = disk->sync(disk->data, index, err);
        break;
    case CN_STEP_CLOSE:
        step->rc = disk->close(disk->data, index, err);
        break;
    case CN_STEP_DISCARD:
        step->rc = disk->discard(disk->data, index, err);
        break;
    case CN_STEP_BEGIN:
        step->rc = disk->copy_begin(disk->data, index, err);
        break;
    case CN_STEP_TAKE:
        step->rc = disk->copy_take(disk->data, index, step->bytes.data, step->bytes.size, err);
        break;
    case CN_STEP_END:
        step->rc = disk->copy_end(disk->data, index, &step->lsn, err);
        break;
    default:
        CN_ASSERT(false);
    }
}

static void *work(void *data)
{
    struct cn_host *host = data;
    pthread_mutex_lock(&host->lock);
    for (;;) {
        while (cn_list_empty(&host->ready) && !host->ending)
            pthread_cond_wait(&host->work, &host->lock);
        struct cn_list *node = cn_list_take_front(&host->ready);
        if (!node)
            break;
        pthread_mutex_unlock(&host->lock);
        struct cn_host_step *step = CN_CONTAINER_OF(node, struct cn_host_step, link);
        run(step);
        /* The mailbox is open for as long as there are steps. */
        CN_ASSERT(cn_mailbox_send(&host->mailbox, &step->mail));
        pthread_mutex_lock(&host->lock);
    }
    pthread_mutex_unlock(&host->lock);
    return NULL;
}

int cn_host_workers_start(struct cn_host *host, struct cn_err *err)
{
    unsigned count = host->config.workers ? host->config.workers : 2;
    while (host->worker_count < count && host->worker_count < CN_HOST_WORKERS_MAX) {
        int rc = pthread_create(&host->workers[host->worker_count], NULL, work, host);
        if (rc != 0)
            return cn_err_errno(err, rc, "cannot start a worker of the cluster");
        host->worker_count++;
    }
    return 0;
}

void cn_host_workers_end(struct cn_host *host)
{
    pthread_mutex_lock(&host->lock);
    host->ending = true;
    pthread_cond_broadcast(&host->work);
    pthread_mutex_unlock(&host->lock);
    for (unsigned i = 0; i < host->worker_count; i++)
        pthread_join(host->workers[i], NULL);
    host->worker_count = 0;
}

/* --- steps ------------------------------------------------------------------------------------ */

bool cn_host_is_full(const struct cn_host_shard *shard)
{
    const struct cn_host *host = shard->host;
    return shard->queued >= host->config.queue_max ||
           host->queued_total >= host->config.queue_total;
}

static bool is_void(enum cn_host_step_kind kind)
{
    return kind == CN_STEP_CREATE || kind == CN_STEP_DISCARD || kind == CN_STEP_BEGIN;
}

static void step_free(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    shard->queued -= step->bytes.size;
    shard->host->queued_total -= step->bytes.size;
    shard->closes -= step->kind == CN_STEP_CLOSE;
    shard->opens -= step->kind == CN_STEP_OPEN;
    shard->voids -= is_void(step->kind);
    cn_buf_fini(&step->bytes);
    cn_free(step);
}

/* H6: tails are asked for again when half of it is written. */
static void tell_busy(struct cn_host_shard *shard)
{
    struct cn_host *host = shard->host;
    bool busy = shard->queued >= host->config.queue_max / 2 ||
                (shard->queued && host->queued_total >= host->config.queue_total / 2);
    cn_member_busy(&host->member, cn_host_clock_ms(), shard->index, busy);
}

static bool is_left_out(const struct cn_host_step *step)
{
    const struct cn_host_shard *shard = step->shard;
    switch (step->kind) {
    case CN_STEP_SHUT:
        return !shard->served;
    case CN_STEP_CLOSE:
        return !shard->open;
    case CN_STEP_OPEN:
    case CN_STEP_SERVE:
        return shard->host->failed || shard->closes;
    case CN_STEP_STOP:
    case CN_STEP_RESUME:
        return shard->host->failed || shard->closes || !shard->served;
    case CN_STEP_TAKE:
    case CN_STEP_END:
        return shard->host->failed || shard->coming != step->copy;
    default:
        return shard->host->failed;
    }
}

static void on_step(struct cn_mail *mail, void *data);

/* False: it is over already. */
static bool begin(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    struct cn_host *host = shard->host;
    const struct cn_host_front *front = host->config.front;
    if (is_left_out(step))
        return false;
    switch (step->kind) {
    case CN_STEP_STOP:
        shard->stopping = true;
        front->stop(front->data, shard->index, ++shard->ticket);
        return false;
    case CN_STEP_RESUME:
        shard->stopping = false;
        shard->ticket++;
        atomic_store(&shard->gate, true);
        front->resume(front->data, shard->index);
        return false;
    case CN_STEP_SHUT:
        front->close(front->data, shard->index);
        return true; /* cn_host_step_shut() */
    default:
        break;
    }
    step->mail.deliver = on_step;
    bool urgent = shard->opens || step->kind == CN_STEP_SERVE; /* H9 */
    pthread_mutex_lock(&host->lock);
    if (urgent)
        cn_list_push_front(&host->ready, &step->link);
    else
        cn_list_push_back(&host->ready, &step->link);
    pthread_cond_signal(&host->work);
    pthread_mutex_unlock(&host->lock);
    return true;
}

static void go_on(struct cn_host_shard *shard)
{
    while (!shard->running && !cn_list_empty(&shard->steps)) {
        struct cn_list *node = cn_list_take_front(&shard->steps);
        struct cn_host_step *step = CN_CONTAINER_OF(node, struct cn_host_step, link);
        if (begin(step))
            shard->running = step;
        else
            step_free(step);
    }
}

static void opened(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    shard->open = true;
    shard->stopping = false;
    if (!shard->closes && !shard->host->failed)
        atomic_store(&shard->gate, true); /* H2 */
}

/* What a step has done, on the host's thread. */
static void done(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    switch (step->kind) {
    case CN_STEP_OPEN:
        opened(step);
        break;
    case CN_STEP_SERVE:
        shard->served = true;
        shard->host->takeovers++;
        cn_host_appended(shard->host, shard->index); /* if it was before it was served */
        break;
    case CN_STEP_SYNC:
        cn_member_synced(&shard->host->member, cn_host_clock_ms(), shard->index, step->lsn);
        break;
    case CN_STEP_CLOSE:
        shard->open = false;
        break;
    default:
        break;
    }
}

static void on_step(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct cn_host_step *step = CN_CONTAINER_OF(mail, struct cn_host_step, mail);
    struct cn_host_shard *shard = step->shard;
    CN_ASSERT(shard->running == step);
    bool coming = step->kind == CN_STEP_TAKE || step->kind == CN_STEP_END;
    /* H8: a store that could not be closed is of no more use than one that was. */
    if (step->rc >= 0 || step->kind == CN_STEP_CLOSE)
        done(step);
    if (step->rc < 0 && (!coming || (step->rc != CN_EINVALID && step->rc != CN_ECORRUPT)))
        cn_host_fail(host, &step->err);
    shard->running = NULL;
    if (coming || step->kind == CN_STEP_BEGIN)
        cn_host_copy_stepped(step);
    step_free(step);
    go_on(shard);
    tell_busy(shard);
    cn_host_after(host);
}

void cn_host_step_shut(struct cn_host_shard *shard)
{
    struct cn_host_step *step = shard->running;
    if (!step || step->kind != CN_STEP_SHUT)
        return;
    shard->served = shard->stopping = false;
    shard->running = NULL;
    step_free(step);
    go_on(shard);
}

struct cn_host_step *cn_host_step_new(struct cn_host_shard *shard, enum cn_host_step_kind kind)
{
    struct cn_host_step *step = CN_NEW(struct cn_host_step);
    step->kind = kind;
    step->shard = shard;
    cn_list_init(&step->link);
    return step;
}

/* H9: what it does is given to the workers, and none has taken it up: it goes first. */
static void hurry(struct cn_host_shard *shard)
{
    struct cn_host *host = shard->host;
    struct cn_host_step *step = shard->running;
    pthread_mutex_lock(&host->lock);
    if (step && !cn_list_empty(&step->link)) {
        cn_list_remove(&step->link);
        cn_list_push_front(&host->ready, &step->link);
    }
    pthread_mutex_unlock(&host->lock);
}

void cn_host_step_add(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    if (step->kind == CN_STEP_OPEN) {
        shard->opens++;
        hurry(shard);
    }
    shard->queued += step->bytes.size;
    shard->host->queued_total += step->bytes.size;
    shard->closes += step->kind == CN_STEP_CLOSE;
    shard->voids += is_void(step->kind);
    cn_list_push_back(&shard->steps, &step->link);
    go_on(shard);
}

static void add(struct cn_host_shard *shard, enum cn_host_step_kind kind)
{
    cn_host_step_add(cn_host_step_new(shard, kind));
}

bool cn_host_is_quiet(const struct cn_host *host)
{
    if (host->copy_count)
        return false;
    for (unsigned i = 0; i < host->shard_count; i++) {
        const struct cn_host_shard *shard = &host->shards[i];
        if (shard->running || !cn_list_empty(&shard->steps) || shard->open)
            return false;
    }
    return true;
}

/* --- records to be written -------------------------------------------------------------------- */

/* Those that wait to be written at the end of its list grow. */
static void write_records(struct cn_host_shard *shard, const uint8_t *bytes, size_t size)
{
    struct cn_list *node = shard->steps.prev;
    struct cn_host_step *last = CN_CONTAINER_OF(node, struct cn_host_step, link);
    if (!size)
        return;
    if (node == &shard->steps || last->kind != CN_STEP_WRITE) {
        struct cn_host_step *step = cn_host_step_new(shard, CN_STEP_WRITE);
        cn_buf_append(&step->bytes, bytes, size);
        cn_host_step_add(step);
        return;
    }
    cn_buf_append(&last->bytes, bytes, size);
    shard->queued += size;
    shard->host->queued_total += size;
}

void cn_host_tail_keep(struct cn_host_shard *shard, uint64_t from,
                       const struct cn_engine_record *records, size_t count)
{
    struct cn_host_tail *tail = &shard->tail;
    cn_buf_clear(&tail->bytes);
    cn_buf_clear(&tail->ends);
    tail->from = from;
    for (size_t i = 0; i < count; i++) {
        cn_buf_append(&tail->bytes, records[i].body, records[i].size);
        uint64_t end = tail->bytes.size;
        cn_buf_append(&tail->ends, &end, sizeof(end));
    }
}

static void tail_forget(struct cn_host_shard *shard)
{
    cn_buf_fini(&shard->tail.bytes);
    cn_buf_fini(&shard->tail.ends);
}

/* Of what was read, the records after `from` up to `lsn`. */
static void tail_write(struct cn_host_shard *shard, uint64_t from, uint64_t lsn)
{
    struct cn_host_tail *tail = &shard->tail;
    const uint64_t *ends = (const uint64_t *)tail->ends.data;
    size_t count = tail->ends.size / sizeof(*ends);
    CN_ASSERT(from >= tail->from && lsn - tail->from <= count && from < lsn);
    size_t first = from == tail->from ? 0 : ends[from - tail->from - 1];
    write_records(shard, tail->bytes.data + first, ends[lsn - tail->from - 1] - first);
}

/* --- what the member wants -------------------------------------------------------------------- */

static void lose(struct cn_host_shard *shard)
{
    const struct cn_host_disk *disk = shard->host->config.disk_hands;
    atomic_store(&shard->gate, false); /* H2 */
    shard->ticket++;
    if (shard->open)
        disk->refuse(disk->data, shard->index, "another node has taken this shard over");
    cn_host_copy_stop(shard);
    add(shard, CN_STEP_SHUT);
    add(shard, CN_STEP_CLOSE);
}

static void settle(struct cn_host_shard *shard, uint64_t lsn)
{
    const struct cn_host_disk *disk = shard->host->config.disk_hands;
    struct cn_err err = {0};
    CN_ASSERT(shard->open); /* H3 */
    if (!shard->host->failed && disk->settled(disk->data, shard->index, lsn, &err) < 0)
        cn_host_fail(shard->host, &err);
}

void cn_host_act(struct cn_host *host, enum cn_member_act act, uint32_t index, uint64_t epoch,
                 uint64_t from, uint64_t lsn)
{
    struct cn_host_shard *shard = &host->shards[index];
    struct cn_host_step *step;
    switch (act) {
    case CN_ACT_CREATE:
        add(shard, CN_STEP_CREATE);
        break;
    case CN_ACT_APPLY:
        tail_write(shard, from, lsn);
        break;
    case CN_ACT_FORGET:
        tail_forget(shard);
        break;
    case CN_ACT_FED:
        write_records(shard, host->fed_bytes, host->fed_size);
        break;
    case CN_ACT_SETTLE:
        settle(shard, lsn);
        break;
    case CN_ACT_SERVE:
        step = cn_host_step_new(shard, CN_STEP_OPEN);
        step->lsn = lsn;
        step->epoch = epoch;
        cn_host_step_add(step);
        add(shard, CN_STEP_SERVE);
        break;
    case CN_ACT_STOP:
        add(shard, CN_STEP_STOP);
        break;
    case CN_ACT_RESUME:
        add(shard, CN_STEP_RESUME);
        break;
    case CN_ACT_SYNC:
        step = cn_host_step_new(shard, CN_STEP_SYNC);
        step->lsn = lsn;
        cn_host_step_add(step);
        break;
    case CN_ACT_CLOSE:
        lose(shard);
        break;
    case CN_ACT_DISCARD:
        cn_host_copy_forget(shard);
        cn_host_copy_stop(shard);
        add(shard, CN_STEP_DISCARD);
        break;
    default:
        break;
    }
}
