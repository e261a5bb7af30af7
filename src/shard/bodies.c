/* SPDX-License-Identifier: Apache-2.0 */
/* shard/bodies.c - questions and answers about bodies, and what is behind blobs. See bodies.h. */
#include "shard/bodies.h"

#include <string.h>

#include "base/assert.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "shard/bodies_private.h"

enum { KEEP_MS = 2000, CALL_MS = 15000 };

static_assert(sizeof(struct cn_blob_id) == CN_FRAME_ID_SIZE, "ids in frames");

struct job {
    struct cn_list link;
    uint64_t disk;
    struct cn_frame_body ask;
    struct cn_buf bytes;
};

struct busy {
    struct cn_list link;
    struct cn_blob_id id;
};

int64_t cn_bodies_now_ms(void)
{
    return cn_cond_now_ms();
}

void cn_bodies_wait(struct cn_bodies *bodies, int64_t until_ms)
{
    (void)cn_cond_wait_ms(&bodies->changed, &bodies->lock, until_ms - cn_bodies_now_ms());
}

static void lock(struct cn_bodies *bodies)
{
    pthread_mutex_lock(&bodies->lock);
}

static void unlock(struct cn_bodies *bodies)
{
    pthread_mutex_unlock(&bodies->lock);
}

/* --- files of this disk ----------------------------------------------------------------------- */

/* One at a time writes or deletes a file. */
static void busy_begin(struct cn_bodies *bodies, struct busy *busy, const struct cn_blob_id *id)
{
    busy->id = *id;
    lock(bodies);
again:
    for (struct cn_list *node = bodies->busy.next; node != &bodies->busy; node = node->next)
        if (memcmp(&CN_CONTAINER_OF(node, struct busy, link)->id, id, sizeof(*id)) == 0) {
            pthread_cond_wait(&bodies->changed, &bodies->lock);
            goto again;
        }
    cn_list_push_back(&bodies->busy, &busy->link);
    unlock(bodies);
}

static void busy_end(struct cn_bodies *bodies, struct busy *busy)
{
    lock(bodies);
    cn_list_remove(&busy->link);
    pthread_cond_broadcast(&bodies->changed);
    unlock(bodies);
}

/* It has come, or gone. */
static void count(struct cn_bodies *bodies, const struct cn_blob_id *id, int by)
{
    struct cn_bodies_digest *digest = &bodies->shards[cn_blob_id_shard(id)].digest;
    lock(bodies);
    digest->count += (uint64_t)(int64_t)by;
    bodies->stats.count += (uint64_t)(int64_t)by;
    for (unsigned i = 0; i < CN_BLOB_ID_SIZE; i++)
        digest->sum[i] ^= id->bytes[i];
    unlock(bodies);
}

int cn_bodies_delete(struct cn_bodies *bodies, const struct cn_blob_id *id, struct cn_err *err)
{
    struct busy busy;
    busy_begin(bodies, &busy, id);
    bool here = cn_blob_is_here(bodies->config.blobs, id);
    int rc = here ? cn_blob_delete(bodies->config.blobs, id, err) : 0;
    if (here && rc == 0)
        count(bodies, id, -1);
    busy_end(bodies, &busy);
    return rc;
}

static bool is_damaged(const struct cn_bodies *bodies, const struct cn_blob_id *id)
{
    for (unsigned i = 0; i < bodies->damaged_count; i++)
        if (memcmp(&bodies->damaged[i], id, sizeof(*id)) == 0)
            return true;
    return false;
}

/* The keeper repairs it. When too many are, the next one who reads it tells. */
static void on_damaged(void *data, const struct cn_blob_id *id)
{
    struct cn_bodies *bodies = data;
    lock(bodies);
    bool is_new = !is_damaged(bodies, id);
    if (is_new && bodies->damaged_count < CN_BODIES_DAMAGED_MAX)
        bodies->damaged[bodies->damaged_count++] = *id;
    bodies->hurry = true;
    pthread_cond_broadcast(&bodies->changed);
    unlock(bodies);
    if (is_new)
        cn_warn("cluster: a body of shard %u is damaged on this disk; it is read from another and "
                "repaired",
                cn_blob_id_shard(id));
}

/* --- questions of ours ------------------------------------------------------------------------ */

static bool send_body(struct cn_bodies *bodies, uint64_t disk, enum cn_frame_kind kind,
                      const struct cn_frame_body *body)
{
    uint8_t head[CN_FRAME_BODY_SIZE];
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    cn_frame_put_body(head, body);
    return hands->send(hands->data, disk, kind, head, sizeof(head), body->bytes, body->byte_count);
}

static int away(struct cn_err *err)
{
    return cn_err_set(err, CN_ECLOSED, CN_BLOB_AWAY);
}

static void call_begin(struct cn_bodies *bodies, uint64_t disk,
                       const struct cn_frame_body *question, struct cn_bodies_call *call)
{
    struct cn_frame_body ask = *question;
    *call = (struct cn_bodies_call){.disk = disk, .op = ask.op, .shard = ask.shard};
    memcpy(&call->id, ask.id, sizeof(call->id));
    lock(bodies);
    call->number = ask.number = ++bodies->number;
    call->until_ms = cn_bodies_now_ms() + bodies->config.call_ms;
    call->rc = CN_ECLOSED;
    call->done = bodies->stopping;
    cn_list_push_back(&bodies->calls, &call->link);
    unlock(bodies);
    if (call->done || send_body(bodies, disk, CN_FRAME_BODY_ASK, &ask))
        return;
    lock(bodies);
    call->done = true;
    unlock(bodies);
}

static int call_end(struct cn_bodies *bodies, struct cn_bodies_call *call, struct cn_err *err)
{
    lock(bodies);
    while (!call->done && cn_bodies_now_ms() < call->until_ms)
        cn_bodies_wait(bodies, call->until_ms);
    cn_list_remove(&call->link);
    unlock(bodies);
    if (call->rc == CN_ECLOSED)
        return away(err);
    if (call->rc == CN_ENOTFOUND)
        return cn_err_set(err, call->rc, "another node does not have a body");
    return call->rc < 0
               ? cn_err_set(err, call->rc, "another node failed with a body: error %d", -call->rc)
               : 0;
}

int cn_bodies_ask(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame_body *question,
                  struct cn_bodies_call *call, struct cn_err *err)
{
    call_begin(bodies, disk, question, call);
    return call_end(bodies, call, err);
}

void cn_bodies_call_fini(struct cn_bodies_call *call)
{
    cn_buf_fini(&call->bytes);
}

static void on_answer(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame_body *answer)
{
    lock(bodies);
    for (struct cn_list *node = bodies->calls.next; node != &bodies->calls; node = node->next) {
        struct cn_bodies_call *call = CN_CONTAINER_OF(node, struct cn_bodies_call, link);
        if (call->number != answer->number || call->disk != disk || call->done)
            continue;
        call->done = true;
        call->rc = answer->rc;
        call->answer = *answer;
        cn_buf_append(&call->bytes, answer->bytes, answer->byte_count);
        call->answer.bytes = call->bytes.data;
        pthread_cond_broadcast(&bodies->changed);
        break;
    }
    unlock(bodies);
}

/* The other side works at what was asked of it: it asks back. */
static void touch(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame_body *ask)
{
    lock(bodies);
    for (struct cn_list *node = bodies->calls.next; node != &bodies->calls; node = node->next) {
        struct cn_bodies_call *call = CN_CONTAINER_OF(node, struct cn_bodies_call, link);
        if (call->disk != disk)
            continue;
        if ((call->op == CN_BODY_TAKE && memcmp(&call->id, ask->id, sizeof(call->id)) == 0) ||
            (call->op == CN_BODY_CATCH_UP && call->shard == ask->shard))
            call->until_ms = cn_bodies_now_ms() + bodies->config.call_ms;
    }
    unlock(bodies);
}

void cn_bodies_link(struct cn_bodies *bodies, uint64_t disk, bool up)
{
    lock(bodies);
    for (struct cn_list *node = bodies->calls.next; node != &bodies->calls && !up;
         node = node->next) {
        struct cn_bodies_call *call = CN_CONTAINER_OF(node, struct cn_bodies_call, link);
        if (call->disk == disk)
            call->done = true; /* with its first rc */
    }
    bodies->hurry = bodies->hurry || up;
    pthread_cond_broadcast(&bodies->changed);
    unlock(bodies);
}

static struct cn_frame_body about(enum cn_frame_body_op op, const struct cn_blob_id *id)
{
    struct cn_frame_body body = {.op = op, .shard = cn_blob_id_shard(id)};
    memcpy(body.id, id, sizeof(*id));
    return body;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* A piece of a body of another disk; in the call. */
static int read_piece(struct cn_bodies *bodies, const struct cn_blob_id *id, uint64_t disk,
                      uint64_t offset, size_t size, struct cn_bodies_call *call, struct cn_err *err)
{
    struct cn_frame_body ask = about(CN_BODY_READ, id);
    ask.offset = offset;
    ask.size = size;
    int rc = cn_bodies_ask(bodies, disk, &ask, call, err);
    uint64_t total = call->answer.offset, left = offset < total ? total - offset : 0;
    if (rc == 0 && (total > CN_BLOB_SIZE_MAX || call->bytes.size != (left < size ? left : size)))
        rc = cn_err_set(err, CN_EPROTOCOL, "another node has sent a piece of the wrong size");
    return rc;
}

/* Z3: not faster than it may be. */
static void pace(struct cn_bodies *bodies, size_t size)
{
    int64_t until = cn_bodies_now_ms() + (int64_t)(size * 1000 / bodies->config.rate);
    lock(bodies);
    while (!bodies->stopping && cn_bodies_now_ms() < until)
        cn_bodies_wait(bodies, until);
    unlock(bodies);
}

static int pull_pieces(struct cn_bodies *bodies, const struct cn_blob_id *id, uint64_t disk,
                       bool slowly, struct cn_err *err)
{
    struct cn_blob_writer *writer = NULL;
    struct cn_blob_id written;
    uint64_t offset = 0, total = 0;
    uint32_t sum = 0;
    int rc = 0;
    do {
        struct cn_bodies_call call;
        rc = read_piece(bodies, id, disk, offset, CN_FRAME_BODY_PIECE_MAX, &call, err);
        if (rc == 0 && !writer) {
            total = call.answer.offset;
            sum = call.answer.sum;
            rc = cn_blob_create_as(bodies->config.blobs, id, &writer, err);
        } else if (rc == 0 && (call.answer.offset != total || call.answer.sum != sum)) {
            rc = cn_err_set(err, CN_EPROTOCOL, "a body has changed while it was copied");
        }
        if (rc == 0)
            rc = cn_blob_write(writer, call.bytes.data, call.bytes.size, err);
        size_t size = call.bytes.size;
        offset += size;
        cn_bodies_call_fini(&call);
        if (rc == 0 && slowly)
            pace(bodies, size);
    } while (rc == 0 && offset < total);
    if (rc == 0 && cn_blob_written_sum(writer) != sum) /* Z4 */
        rc = cn_err_set(err, CN_ECORRUPT, "a body is not what another node has");
    if (rc < 0 && writer)
        cn_blob_abandon(writer);
    return rc < 0 ? rc : cn_blob_finish(writer, &written, err);
}

int cn_bodies_pull(struct cn_bodies *bodies, const struct cn_blob_id *id, uint64_t disk, bool again,
                   bool slowly, struct cn_err *err)
{
    struct busy busy;
    busy_begin(bodies, &busy, id);
    bool here = cn_blob_is_here(bodies->config.blobs, id);
    int rc = here && !again ? 0 : pull_pieces(bodies, id, disk, slowly, err);
    if (rc == 0 && !here)
        count(bodies, id, 1);
    busy_end(bodies, &busy);
    return rc;
}

/* The bytes have come with the question. */
static int take_whole(struct cn_bodies *bodies, const struct cn_blob_id *id, const struct job *job,
                      struct cn_err *err)
{
    struct cn_blob_writer *writer;
    struct cn_blob_id written;
    struct busy busy;
    busy_begin(bodies, &busy, id);
    bool here = cn_blob_is_here(bodies->config.blobs, id);
    int rc = here ? 0 : cn_blob_create_as(bodies->config.blobs, id, &writer, err);
    if (rc == 0 && !here) {
        rc = cn_blob_write(writer, job->bytes.data, job->bytes.size, err);
        if (rc == 0 && cn_blob_written_sum(writer) != job->ask.sum)
            rc = cn_err_set(err, CN_ECORRUPT, "a body is not what another node has");
        if (rc < 0)
            cn_blob_abandon(writer);
        else
            rc = cn_blob_finish(writer, &written, err);
        if (rc == 0)
            count(bodies, id, 1);
    }
    busy_end(bodies, &busy);
    return rc;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int answer_take(struct cn_bodies *bodies, const struct job *job, struct cn_err *err)
{
    struct cn_blob_id id;
    memcpy(&id, job->ask.id, sizeof(id));
    int rc = job->bytes.size || !job->ask.size
                 ? take_whole(bodies, &id, job, err)
                 : cn_bodies_pull(bodies, &id, job->disk, false, false, err);
    if (rc == 0) {
        lock(bodies);
        bodies->stats.taken++;
        unlock(bodies);
    }
    return rc;
}

static int answer_read(struct cn_bodies *bodies, const struct job *job,
                       struct cn_frame_body *answer, struct cn_buf *out, struct cn_err *err)
{
    struct cn_blob_reader *reader;
    struct cn_blob_id id;
    memcpy(&id, job->ask.id, sizeof(id));
    int rc = cn_blob_open(bodies->config.blobs, &id, &reader, err);
    if (rc == 0) {
        answer->offset = cn_blob_size(reader);
        answer->sum = cn_blob_sum(reader);
        uint8_t *bytes = cn_alloc(job->ask.size + 1);
        int64_t got = job->ask.size
                          ? cn_blob_read(reader, bytes, (size_t)job->ask.size, job->ask.offset, err)
                          : 0;
        rc = got < 0 ? (int)got : 0;
        if (got > 0)
            cn_buf_append(out, bytes, (size_t)got);
        cn_free(bytes);
        cn_blob_close(reader);
    }
    if (rc == CN_ECORRUPT)
        on_damaged(bodies, &id);
    return rc;
}

static int answer_list(struct cn_bodies *bodies, const struct job *job, struct cn_buf *out,
                       struct cn_err *err)
{
    struct cn_blob_id after, *ids = cn_alloc(CN_BODIES_PAGE * sizeof(*ids));
    memcpy(&after, job->ask.id, sizeof(after));
    int64_t found =
        cn_blobs_list(bodies->config.blobs, job->ask.shard, &after, ids, CN_BODIES_PAGE, err);
    if (found > 0)
        cn_buf_append(out, ids, (size_t)found * sizeof(*ids));
    cn_free(ids);
    return found < 0 ? (int)found : 0;
}

static void answer_digests(struct cn_bodies *bodies, struct cn_buf *out)
{
    lock(bodies);
    for (uint32_t i = 0; i < bodies->config.shard_count; i++) {
        const struct cn_bodies_digest *digest = &bodies->shards[i].digest;
        uint8_t bytes[12];
        for (unsigned j = 0; j < 4; j++)
            bytes[j] = (uint8_t)(i >> (8 * j));
        for (unsigned j = 0; j < 8; j++)
            bytes[4 + j] = (uint8_t)(digest->count >> (8 * j));
        if (digest->count) {
            cn_buf_append(out, bytes, sizeof(bytes));
            cn_buf_append(out, digest->sum, sizeof(digest->sum));
        }
    }
    unlock(bodies);
}

/* Z5: what is about to leave is not here. */
static bool stays(struct cn_bodies *bodies, const struct cn_blob_id *id)
{
    bool here = cn_blob_is_here(bodies->config.blobs, id);
    lock(bodies);
    here = here && !is_damaged(bodies, id);
    for (size_t i = 0; i < bodies->leaving_count && here; i++)
        here = memcmp(&bodies->leaving[i], id, sizeof(*id)) != 0;
    unlock(bodies);
    return here;
}

static void answer_has(struct cn_bodies *bodies, const struct job *job, struct cn_buf *out)
{
    const struct cn_blob_id *ids = (const struct cn_blob_id *)job->bytes.data;
    for (size_t i = 0; i < job->bytes.size / sizeof(*ids); i++)
        cn_buf_append_byte(out, stays(bodies, &ids[i]));
}

static int answer_known(struct cn_bodies *bodies, const struct job *job, struct cn_buf *out,
                        struct cn_err *err)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    size_t count = job->bytes.size / sizeof(struct cn_blob_id);
    struct cn_host_view view;
    uint8_t known[CN_FRAME_IDS_MAX];
    if (!hands->view(hands->data, job->ask.shard, &view) || view.owner != bodies->config.disk)
        return cn_err_set(err, CN_EOVERLOADED, "this node does not own the shard");
    int rc = hands->known(hands->data, job->ask.shard, (const struct cn_blob_id *)job->bytes.data,
                          count, known, err);
    if (rc == 0)
        cn_buf_append(out, known, count);
    return rc;
}

/* Z8 */
static int answer_store(struct cn_bodies *bodies, const struct job *job,
                        struct cn_frame_body *answer, struct cn_buf *out, struct cn_err *err)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    struct cn_backup_stream_ask ask = {.disk = job->disk,
                                       .shard = job->ask.shard,
                                       .offset = job->ask.offset,
                                       .size = (size_t)job->ask.size};
    struct cn_backup_stream_piece piece = {0};
    memcpy(ask.id, job->ask.id, sizeof(ask.id));
    int rc = hands->store ? hands->store(hands->data, &ask, &piece, err) : CN_EUNSUPPORTED;
    answer->offset = piece.epoch;
    answer->size = piece.ended;
    if (rc == 0)
        cn_buf_append(out, piece.bytes.data, piece.bytes.size);
    cn_buf_fini(&piece.bytes);
    return rc;
}

static void do_drop(struct cn_bodies *bodies, const struct job *job)
{
    const struct cn_blob_id *ids = (const struct cn_blob_id *)job->bytes.data;
    struct cn_err err;
    for (size_t i = 0; i < job->bytes.size / sizeof(*ids); i++)
        if (cn_blob_id_shard(&ids[i]) < bodies->config.shard_count)
            (void)cn_bodies_delete(bodies, &ids[i], &err); /* else the keeper finds it */
}

static void do_job(struct cn_bodies *bodies, const struct job *job)
{
    struct cn_frame_body answer = {
        .op = job->ask.op, .shard = job->ask.shard, .number = job->ask.number};
    struct cn_buf out = {0};
    struct cn_err err = {0};
    int rc = 0;
    switch (job->ask.op) {
    case CN_BODY_TAKE:
        rc = answer_take(bodies, job, &err);
        break;
    case CN_BODY_READ:
        rc = answer_read(bodies, job, &answer, &out, &err);
        break;
    case CN_BODY_LIST:
        rc = answer_list(bodies, job, &out, &err);
        break;
    case CN_BODY_DIGESTS:
        answer_digests(bodies, &out);
        break;
    case CN_BODY_HAS:
        answer_has(bodies, job, &out);
        break;
    case CN_BODY_KNOWN:
        rc = answer_known(bodies, job, &out, &err);
        break;
    case CN_BODY_CATCH_UP:
        rc = cn_bodies_catch_up(bodies, job->ask.shard, job->disk, &err);
        break;
    case CN_BODY_STORE:
        rc = answer_store(bodies, job, &answer, &out, &err);
        break;
    default:
        do_drop(bodies, job);
        return;
    }
    answer.rc = rc;
    answer.bytes = out.data;
    answer.byte_count = rc < 0 ? 0 : out.size;
    (void)send_body(bodies, job->disk, CN_FRAME_BODY_ANSWER, &answer); /* else nobody waits */
    cn_buf_fini(&out);
}

static enum cn_bodies_work work_of(enum cn_frame_body_op op)
{
    if (op == CN_BODY_TAKE || op == CN_BODY_CATCH_UP)
        return CN_WORK_TAKE;
    if (op == CN_BODY_STORE)
        return CN_WORK_STORE;
    return op == CN_BODY_KNOWN ? CN_WORK_ASK : CN_WORK_SERVE;
}

/* Z7 */
static void on_question(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame_body *ask)
{
    enum cn_bodies_work work = work_of(ask->op);
    struct job *job = CN_NEW(struct job);
    touch(bodies, disk, ask);
    job->disk = disk;
    job->ask = *ask;
    cn_buf_append(&job->bytes, ask->bytes, ask->byte_count);
    lock(bodies);
    bool full = bodies->stopping || bodies->job_count[work] >= CN_BODIES_JOBS_MAX ||
                bodies->job_bytes + ask->byte_count > CN_BODIES_BYTES_MAX;
    if (!full) {
        bodies->job_count[work]++;
        bodies->job_bytes += ask->byte_count;
        cn_list_push_back(&bodies->jobs[work], &job->link);
        pthread_cond_broadcast(&bodies->changed);
    }
    unlock(bodies);
    if (!full)
        return;
    struct cn_frame_body answer = {
        .op = ask->op, .shard = ask->shard, .number = ask->number, .rc = CN_EOVERLOADED};
    if (ask->op != CN_BODY_DROP)
        (void)send_body(bodies, disk, CN_FRAME_BODY_ANSWER, &answer);
    cn_buf_fini(&job->bytes);
    cn_free(job);
}

bool cn_bodies_frame(struct cn_bodies *bodies, uint64_t disk, const struct cn_frame *frame)
{
    struct cn_frame_body body;
    struct cn_blob_id id;
    if (!cn_frame_get_body(frame, &body))
        return false;
    memcpy(&id, body.id, sizeof(id));
    bool of_one = body.op == CN_BODY_TAKE || body.op == CN_BODY_READ;
    if (frame->kind == CN_FRAME_BODY_ANSWER) {
        on_answer(bodies, disk, &body);
        return true;
    }
    if (body.shard >= bodies->config.shard_count || (of_one && cn_blob_id_shard(&id) != body.shard))
        return false;
    on_question(bodies, disk, &body);
    return true;
}

/* --- workers ---------------------------------------------------------------------------------- */

static void worker(struct cn_bodies *bodies, enum cn_bodies_work work)
{
    lock(bodies);
    while (!bodies->stopping) {
        if (cn_list_empty(&bodies->jobs[work])) {
            pthread_cond_wait(&bodies->changed, &bodies->lock);
            continue;
        }
        struct job *job =
            CN_CONTAINER_OF(cn_list_take_front(&bodies->jobs[work]), struct job, link);
        unlock(bodies);
        do_job(bodies, job);
        lock(bodies);
        bodies->job_count[work]--;
        bodies->job_bytes -= job->ask.byte_count;
        cn_buf_fini(&job->bytes);
        cn_free(job);
    }
    unlock(bodies);
}

static void *server_main(void *data)
{
    worker(data, CN_WORK_SERVE);
    return NULL;
}

static void *taker_main(void *data)
{
    worker(data, CN_WORK_TAKE);
    return NULL;
}

static void *asker_main(void *data)
{
    worker(data, CN_WORK_ASK);
    return NULL;
}

static void *storer_main(void *data)
{
    worker(data, CN_WORK_STORE);
    return NULL;
}

/* --- for blobs -------------------------------------------------------------------------------- */

static bool is_in(const uint64_t *disks, unsigned count, uint64_t disk)
{
    for (unsigned i = 0; i < count; i++)
        if (disks[i] == disk)
            return true;
    return false;
}

/* What is told to those who are to have it; `bytes` if all of it fits one frame. */
static int prepare(struct cn_bodies *bodies, const struct cn_blob_id *id,
                   struct cn_frame_body *take, struct cn_buf *bytes, struct cn_err *err)
{
    struct cn_blob_reader *reader;
    int rc = cn_blob_open(bodies->config.blobs, id, &reader, err);
    if (rc < 0)
        return rc;
    *take = about(CN_BODY_TAKE, id);
    take->size = cn_blob_size(reader);
    take->sum = cn_blob_sum(reader);
    if (take->size && take->size <= CN_FRAME_BODY_PIECE_MAX) {
        uint8_t *at = cn_alloc((size_t)take->size);
        int64_t got = cn_blob_read(reader, at, (size_t)take->size, 0, err);
        rc = got < 0 ? (int)got : 0;
        if (rc == 0)
            cn_buf_append(bytes, at, (size_t)take->size);
        cn_free(at);
        take->bytes = bytes->data;
        take->byte_count = bytes->size;
    }
    cn_blob_close(reader);
    return rc;
}

/* To all of these at once; how many have it. */
static unsigned give(struct cn_bodies *bodies, const struct cn_frame_body *take,
                     const uint64_t *disks, unsigned count)
{
    struct cn_bodies_call calls[CN_CLUSTER_REPLICAS_MAX];
    unsigned good = 0;
    for (unsigned i = 0; i < count; i++)
        call_begin(bodies, disks[i], take, &calls[i]);
    for (unsigned i = 0; i < count; i++) {
        struct cn_err err;
        int rc = call_end(bodies, &calls[i], &err);
        cn_bodies_call_fini(&calls[i]);
        good += rc == 0;
        if (rc < 0)
            cn_bodies_fell_behind(bodies, take->shard, disks[i]);
    }
    return good;
}

/* Others get no more of it, and lose what they have. */
static void withdraw(struct cn_bodies *bodies, const struct cn_blob_id *id)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    uint64_t linked[CN_CLUSTER_NODES_MAX];
    struct cn_frame_body drop = about(CN_BODY_DROP, id);
    drop.bytes = id->bytes;
    drop.byte_count = sizeof(*id);
    unsigned count = hands->linked(hands->data, linked);
    for (unsigned i = 0; i < count; i++)
        (void)send_body(bodies, linked[i], CN_FRAME_BODY_ASK, &drop); /* Z2: or they find out */
}

/* Z1: others in the place of replicas, from a place in the list that differs by body. */
static unsigned give_to_others(struct cn_bodies *bodies, const struct cn_frame_body *take,
                               const struct cn_host_view *view, unsigned lacks)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    uint64_t linked[CN_CLUSTER_NODES_MAX];
    unsigned count = hands->linked(hands->data, linked), good = 0;
    for (unsigned i = 0; i < count && good < lacks; i++) {
        uint64_t disk = linked[(i + take->id[0]) % count];
        if (!is_in(view->disks, view->count, disk))
            good += give(bodies, take, &disk, 1);
    }
    return good;
}

static int spread(void *data, const struct cn_blob_id *id, struct cn_err *err)
{
    struct cn_bodies *bodies = data;
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    struct cn_host_view view = {0};
    struct cn_frame_body take;
    struct cn_buf bytes = {0};
    uint64_t targets[CN_CLUSTER_REPLICAS_MAX], linked[CN_CLUSTER_NODES_MAX];
    unsigned target_count = 0, copies = 1, want = bodies->config.replicas > 1 ? 2 : 1;
    CN_ASSERT(cn_blob_id_shard(id) < bodies->config.shard_count);
    count(bodies, id, 1); /* before the map is asked: who is a replica later finds it in the list */
    int rc = prepare(bodies, id, &take, &bytes, err);
    if (rc == 0 && !hands->view(hands->data, take.shard, &view))
        rc = away(err);
    unsigned linked_count = hands->linked(hands->data, linked);
    for (unsigned i = 0; rc == 0 && i < view.count; i++) {
        if (view.disks[i] == bodies->config.disk)
            continue;
        if (is_in(linked, linked_count, view.disks[i]))
            targets[target_count++] = view.disks[i];
        else
            cn_bodies_fell_behind(bodies, take.shard, view.disks[i]);
    }
    if (rc == 0)
        copies += give(bodies, &take, targets, target_count);
    if (rc == 0 && copies < want)
        copies += give_to_others(bodies, &take, &view, want - copies);
    cn_buf_fini(&bytes);
    if (rc == 0 && copies >= want)
        return 0;
    struct cn_err other;
    (void)cn_bodies_delete(bodies, id, &other);
    withdraw(bodies, id);
    lock(bodies);
    bodies->stats.refused++;
    unlock(bodies);
    return rc < 0 ? rc
                  : cn_err_set(err, CN_EOVERLOADED,
                               "a body is stored when it is on two disks: " CN_BLOB_AWAY);
}

int cn_bodies_find(struct cn_bodies *bodies, const struct cn_blob_id *id, uint64_t *disk,
                   uint64_t *size, struct cn_err *err)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    uint64_t linked[CN_CLUSTER_NODES_MAX];
    struct cn_host_view view = {0};
    unsigned count = hands->linked(hands->data, linked);
    bool all = true;
    if (cn_blob_id_shard(id) < bodies->config.shard_count)
        (void)hands->view(hands->data, cn_blob_id_shard(id), &view);
    for (unsigned pass = 0; pass < 2; pass++) /* replicas first */
        for (unsigned i = 0; i < count; i++) {
            struct cn_bodies_call call;
            if (is_in(view.disks, view.count, linked[i]) != (pass == 0))
                continue;
            int rc = read_piece(bodies, id, linked[i], 0, 0, &call, err);
            *size = call.answer.offset;
            cn_bodies_call_fini(&call);
            *disk = linked[i];
            if (rc == 0)
                return 0;
            all = all && rc == CN_ENOTFOUND;
        }
    for (unsigned i = 0; i < view.count; i++)
        all = all && (view.disks[i] == bodies->config.disk || is_in(linked, count, view.disks[i]));
    return all ? cn_err_set(err, CN_ENOTFOUND, "no node has the body")
               : cn_err_set(err, CN_EOVERLOADED, CN_BLOB_AWAY);
}

static int find(void *data, const struct cn_blob_id *id, uint64_t *disk, uint64_t *size,
                struct cn_err *err)
{
    return cn_bodies_find(data, id, disk, size, err);
}

static int read_far(void *data, const struct cn_blob_id *id, uint64_t disk, void *bytes,
                    size_t size, uint64_t offset, struct cn_err *err)
{
    for (size_t done = 0; done < size;) {
        struct cn_bodies_call call;
        size_t part = size - done < CN_FRAME_BODY_PIECE_MAX ? size - done : CN_FRAME_BODY_PIECE_MAX;
        int rc = read_piece(data, id, disk, offset + done, part, &call, err);
        if (rc == 0 && call.bytes.size != part)
            rc = cn_err_set(err, CN_EPROTOCOL, "a body is shorter on another node");
        if (rc == 0)
            memcpy((uint8_t *)bytes + done, call.bytes.data, part);
        cn_bodies_call_fini(&call);
        if (rc < 0)
            return rc;
        done += part;
    }
    return 0;
}

static int remove_all(void *data, const struct cn_blob_id *id, struct cn_err *err)
{
    struct cn_bodies *bodies = data;
    if (cn_blob_id_shard(id) >= bodies->config.shard_count)
        return 0;
    int rc = cn_bodies_delete(bodies, id, err);
    if (rc == 0)
        withdraw(bodies, id);
    return rc;
}

int cn_bodies_known(struct cn_bodies *bodies, uint32_t shard, const struct cn_blob_id *ids,
                    size_t count, uint8_t *known, struct cn_err *err)
{
    const struct cn_bodies_hands *hands = &bodies->config.hands;
    struct cn_host_view view;
    if (!hands->view(hands->data, shard, &view) || !view.owner)
        return cn_err_set(err, CN_EOVERLOADED, "the owner of shard %u is not known", shard);
    if (view.owner == bodies->config.disk)
        return hands->known(hands->data, shard, ids, count, known, err);
    struct cn_frame_body ask = {.op = CN_BODY_KNOWN,
                                .shard = shard,
                                .bytes = (const uint8_t *)ids,
                                .byte_count = count * sizeof(*ids)};
    struct cn_bodies_call call;
    int rc = cn_bodies_ask(bodies, view.owner, &ask, &call, err);
    if (rc == 0 && call.bytes.size != count)
        rc = cn_err_set(err, CN_EPROTOCOL, "another node has answered about other bodies");
    if (rc == 0)
        memcpy(known, call.bytes.data, count);
    cn_bodies_call_fini(&call);
    return rc;
}

/* --- for backups ------------------------------------------------------------------------------ */

int cn_bodies_store(struct cn_bodies *bodies, uint64_t disk,
                    const struct cn_backup_stream_ask *want, struct cn_backup_stream_piece *piece,
                    struct cn_err *err)
{
    struct cn_frame_body ask = {
        .op = CN_BODY_STORE, .shard = want->shard, .offset = want->offset, .size = want->size};
    struct cn_bodies_call call;
    memcpy(ask.id, want->id, sizeof(ask.id));
    int rc = cn_bodies_ask(bodies, disk, &ask, &call, err);
    if (rc == 0 && call.bytes.size > want->size)
        rc = cn_err_set(err, CN_EPROTOCOL, "another node has sent a piece of the wrong size");
    else if (rc == CN_ECLOSED)
        rc = cn_err_set(err, rc, "it does not answer for the shard, or cannot be reached");
    else if (rc < 0)
        rc = cn_err_set(err, rc, "it fails with a copy of its store (%s)", cn_err_name(rc));
    if (rc == 0) {
        cn_buf_append(&piece->bytes, call.bytes.data, call.bytes.size);
        piece->epoch = call.answer.offset;
        piece->ended = call.answer.size != 0;
    }
    cn_bodies_call_fini(&call);
    return rc;
}

/* --- its life --------------------------------------------------------------------------------- */

static int count_found(void *data, const struct cn_blob_id *id)
{
    struct cn_bodies *bodies = data;
    if (cn_blob_id_shard(id) < bodies->config.shard_count)
        count(bodies, id, 1);
    return 0;
}

static int start_thread(struct cn_bodies *bodies, void *(*main)(void *), struct cn_err *err)
{
    int rc = pthread_create(&bodies->threads[bodies->thread_count], NULL, main, bodies);
    if (rc)
        return cn_err_errno(err, rc, "cannot start a thread for bodies");
    bodies->thread_count++;
    return 0;
}

int cn_bodies_new(const struct cn_bodies_config *config, struct cn_bodies **result,
                  struct cn_err *err)
{
    struct cn_bodies *bodies = CN_NEW(struct cn_bodies);
    bodies->config = *config;
    bodies->config.keep_ms = config->keep_ms ? config->keep_ms : KEEP_MS;
    bodies->config.call_ms = config->call_ms ? config->call_ms : CALL_MS;
    bodies->config.rate = config->rate ? config->rate : CN_BODIES_RATE;
    bodies->peers = (struct cn_blob_peers){bodies, spread, find, read_far, on_damaged, remove_all};
    bodies->shards = cn_alloc_zero(config->shard_count * sizeof(*bodies->shards));
    pthread_mutex_init(&bodies->lock, NULL);
    cn_cond_init(&bodies->changed);
    cn_list_init(&bodies->calls);
    cn_list_init(&bodies->busy);
    for (unsigned i = 0; i < CN_WORKS; i++)
        cn_list_init(&bodies->jobs[i]);
    int rc = cn_blobs_walk(config->blobs, count_found, bodies, err);
    for (unsigned i = 0; rc == 0 && i < CN_BODIES_SERVERS; i++)
        rc = start_thread(bodies, server_main, err);
    for (unsigned i = 0; rc == 0 && i < CN_BODIES_TAKERS; i++)
        rc = start_thread(bodies, taker_main, err);
    if (rc == 0)
        rc = start_thread(bodies, asker_main, err);
    if (rc == 0)
        rc = start_thread(bodies, storer_main, err);
    if (rc == 0)
        rc = start_thread(bodies, cn_bodies_keeper, err);
    if (rc < 0) {
        cn_bodies_stop(bodies);
        cn_bodies_free(bodies);
        return rc;
    }
    *result = bodies;
    return 0;
}

void cn_bodies_stop(struct cn_bodies *bodies)
{
    lock(bodies);
    bodies->stopping = true;
    for (struct cn_list *node = bodies->calls.next; node != &bodies->calls; node = node->next)
        CN_CONTAINER_OF(node, struct cn_bodies_call, link)->done = true;
    pthread_cond_broadcast(&bodies->changed);
    unlock(bodies);
    for (unsigned i = 0; i < bodies->thread_count; i++)
        pthread_join(bodies->threads[i], NULL);
    bodies->thread_count = 0;
}

void cn_bodies_free(struct cn_bodies *bodies)
{
    if (!bodies)
        return;
    CN_ASSERT(!bodies->thread_count);
    for (unsigned i = 0; i < CN_WORKS; i++)
        while (!cn_list_empty(&bodies->jobs[i])) {
            struct job *job =
                CN_CONTAINER_OF(cn_list_take_front(&bodies->jobs[i]), struct job, link);
            cn_buf_fini(&job->bytes);
            cn_free(job);
        }
    pthread_mutex_destroy(&bodies->lock);
    pthread_cond_destroy(&bodies->changed);
    cn_free(bodies->shards);
    cn_free(bodies);
}

const struct cn_blob_peers *cn_bodies_peers(struct cn_bodies *bodies)
{
    return &bodies->peers;
}

void cn_bodies_stats(struct cn_bodies *bodies, struct cn_bodies_stats *stats)
{
    lock(bodies);
    *stats = bodies->stats;
    stats->damaged = bodies->damaged_count;
    unlock(bodies);
}
