/* SPDX-License-Identifier: Apache-2.0 */
/* shard/backup_stream.c - see backup_stream.h. One lock for all; a thread for each stream. */
#include "shard/backup_stream.h"

#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/cond.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"

struct stream {
    struct cn_list link; /* of streams->all */
    struct cn_backup_streams *streams;
    uint64_t disk, epoch;
    uint32_t shard;
    uint8_t id[CN_BACKUP_STREAM_ID_SIZE];
    void *hold;
    pthread_t thread;
    /* guarded by the lock of all */
    struct cn_buf ready;
    uint64_t offset;  /* of what is ready */
    int64_t asked_ms; /* last */
    bool cut, over;   /* over: the thread has nothing more to say */
    bool taken;       /* and all of it was given out */
    unsigned askers;  /* that wait in next() */
    int rc;
    struct cn_err err;
};

struct cn_backup_streams {
    struct cn_backup_streams_host hands;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cn_list all; /* of struct stream */
    unsigned count;
    bool stopping;
};

/* With the lock held. */
static void wait_until(struct cn_backup_streams *streams, int64_t until_ms)
{
    (void)cn_cond_wait_ms(&streams->changed, &streams->lock, until_ms - cn_cond_now_ms());
}

/* --- the thread ------------------------------------------------------------------------------- */

/* What does not fit waits until what is there was taken. */
static int write_piece(void *data, const void *bytes, size_t size)
{
    struct stream *stream = data;
    struct cn_backup_streams *streams = stream->streams;
    pthread_mutex_lock(&streams->lock);
    while (!stream->cut && stream->ready.size >= CN_BACKUP_STREAM_PIECE_MAX) {
        if (cn_cond_now_ms() - stream->asked_ms >= CN_BACKUP_STREAM_IDLE_MS)
            stream->cut = true; /* Y4 */
        else
            wait_until(streams, stream->asked_ms + CN_BACKUP_STREAM_IDLE_MS);
    }
    bool cut = stream->cut;
    if (!cut)
        cn_buf_append(&stream->ready, bytes, size);
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
    return cut ? CN_EABORTED : 0;
}

static void *stream_main(void *data)
{
    struct stream *stream = data;
    struct cn_backup_streams *streams = stream->streams;
    struct cn_err err = {0};
    int rc = streams->hands.copy(streams->hands.data, stream->shard, write_piece, stream, &err);
    streams->hands.release(streams->hands.data, stream->hold);
    pthread_mutex_lock(&streams->lock);
    stream->over = true;
    stream->rc = rc;
    stream->err = err;
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
    return NULL;
}

/* --- those who ask ---------------------------------------------------------------------------- */

static int closed(struct cn_err *err, uint32_t shard)
{
    return cn_err_set(err, CN_ECLOSED, "the node does not answer for shard %u at the moment",
                      shard);
}

static void stream_free(struct stream *stream)
{
    pthread_join(stream->thread, NULL);
    cn_list_remove(&stream->link);
    stream->streams->count--;
    cn_buf_fini(&stream->ready);
    cn_free(stream);
}

/* With the lock held: those that nobody wants and whose threads have ended, or are about to return.
 */
static void reap(struct cn_backup_streams *streams)
{
    for (struct cn_list *node = streams->all.next; node != &streams->all;) {
        struct stream *stream = CN_CONTAINER_OF(node, struct stream, link);
        node = node->next;
        bool idle = cn_cond_now_ms() - stream->asked_ms >= CN_BACKUP_STREAM_IDLE_MS;
        if (stream->over && !stream->askers && (stream->cut || stream->taken || idle))
            stream_free(stream);
    }
}

/* With the lock held. */
static struct stream *find(struct cn_backup_streams *streams,
                           const struct cn_backup_stream_ask *ask)
{
    for (struct cn_list *node = streams->all.next; node != &streams->all; node = node->next) {
        struct stream *stream = CN_CONTAINER_OF(node, struct stream, link);
        if (stream->disk == ask->disk && stream->shard == ask->shard &&
            memcmp(stream->id, ask->id, sizeof(stream->id)) == 0)
            return stream;
    }
    return NULL;
}

/* With the lock held, so that a cut that comes after the hold finds it (Y2). */
static int begin(struct cn_backup_streams *streams, const struct cn_backup_stream_ask *ask,
                 struct stream **result, struct cn_err *err)
{
    if (streams->stopping)
        return closed(err, ask->shard);
    reap(streams);
    if (streams->count >= CN_BACKUP_STREAMS_MAX)
        return cn_err_set(err, CN_EOVERLOADED, "too many backups are taken from the node at once");
    for (struct cn_list *node = streams->all.next; node != &streams->all; node = node->next) {
        struct stream *old = CN_CONTAINER_OF(node, struct stream, link);
        old->cut |= old->disk == ask->disk && old->shard == ask->shard; /* he has given it up */
    }
    pthread_cond_broadcast(&streams->changed);
    uint64_t epoch;
    void *hold = streams->hands.hold(streams->hands.data, ask->shard, &epoch);
    if (!hold)
        return closed(err, ask->shard);
    struct stream *stream = CN_NEW(struct stream);
    stream->streams = streams;
    stream->disk = ask->disk;
    stream->shard = ask->shard;
    stream->epoch = epoch;
    stream->hold = hold;
    stream->asked_ms = cn_cond_now_ms();
    memcpy(stream->id, ask->id, sizeof(stream->id));
    if (pthread_create(&stream->thread, NULL, stream_main, stream) != 0) {
        streams->hands.release(streams->hands.data, hold);
        cn_free(stream);
        return cn_err_set(err, CN_ENOMEM, "cannot start a thread");
    }
    cn_list_push_back(&streams->all, &stream->link);
    streams->count++;
    *result = stream;
    return 0;
}

/* With the lock held: until there is a piece, or there will be none. */
static int take(struct stream *stream, const struct cn_backup_stream_ask *ask,
                struct cn_backup_stream_piece *piece, struct cn_err *err)
{
    struct cn_backup_streams *streams = stream->streams;
    size_t want = ask->size < CN_BACKUP_STREAM_PIECE_MAX ? ask->size : CN_BACKUP_STREAM_PIECE_MAX;
    int64_t until = cn_cond_now_ms() + CN_BACKUP_STREAM_WAIT_MS;
    stream->asked_ms = cn_cond_now_ms();
    while (!stream->cut && !stream->over && stream->ready.size < want && cn_cond_now_ms() < until)
        wait_until(streams, until);
    stream->asked_ms = cn_cond_now_ms();
    if (stream->cut)
        return closed(err, stream->shard);
    if (stream->over && stream->rc < 0) {
        stream->cut = true;
        if (stream->rc == CN_EABORTED)
            return closed(err, stream->shard);
        if (err)
            *err = stream->err;
        return stream->rc;
    }
    size_t size = stream->ready.size < want ? stream->ready.size : want;
    cn_buf_append(&piece->bytes, stream->ready.data, size);
    cn_buf_consume(&stream->ready, size);
    stream->offset += size;
    piece->epoch = stream->epoch;
    piece->ended = stream->taken = stream->over && stream->ready.size == 0;
    pthread_cond_broadcast(&streams->changed);
    return 0;
}

int cn_backup_stream_next(struct cn_backup_streams *streams, const struct cn_backup_stream_ask *ask,
                          struct cn_backup_stream_piece *piece, struct cn_err *err)
{
    pthread_mutex_lock(&streams->lock);
    struct stream *stream = find(streams, ask);
    int rc = 0;
    if (!stream && ask->offset == 0)
        rc = begin(streams, ask, &stream, err);
    else if (!stream || stream->taken)
        rc = cn_err_set(err, CN_ENOTFOUND, "the copy of shard %u has ended", ask->shard);
    if (rc == 0 && stream->offset != ask->offset) { /* Y3 */
        stream->cut = true;
        pthread_cond_broadcast(&streams->changed);
        rc = cn_err_set(err, CN_EINVALID, "the copy of shard %u is at another place", ask->shard);
    }
    if (rc == 0) {
        stream->askers++;
        rc = take(stream, ask, piece, err);
        stream->askers--;
    }
    pthread_mutex_unlock(&streams->lock);
    return rc;
}

void cn_backup_streams_cut(struct cn_backup_streams *streams, uint32_t shard)
{
    pthread_mutex_lock(&streams->lock);
    for (struct cn_list *node = streams->all.next; node != &streams->all; node = node->next) {
        struct stream *stream = CN_CONTAINER_OF(node, struct stream, link);
        /* What is written whole was settled while the shard was ours: it may be taken (Y1). */
        if (stream->shard == shard && !stream->over)
            stream->cut = true;
    }
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->lock);
}

/* --- its life --------------------------------------------------------------------------------- */

struct cn_backup_streams *cn_backup_streams_new(const struct cn_backup_streams_host *hands)
{
    struct cn_backup_streams *streams = CN_NEW(struct cn_backup_streams);
    streams->hands = *hands;
    pthread_mutex_init(&streams->lock, NULL);
    cn_cond_init(&streams->changed);
    cn_list_init(&streams->all);
    return streams;
}

void cn_backup_streams_stop(struct cn_backup_streams *streams)
{
    pthread_mutex_lock(&streams->lock);
    streams->stopping = true;
    for (struct cn_list *node = streams->all.next; node != &streams->all; node = node->next)
        CN_CONTAINER_OF(node, struct stream, link)->cut = true;
    pthread_cond_broadcast(&streams->changed);
    for (struct cn_list *node = streams->all.next; node != &streams->all; node = node->next)
        while (!CN_CONTAINER_OF(node, struct stream, link)->over)
            pthread_cond_wait(&streams->changed, &streams->lock);
    pthread_mutex_unlock(&streams->lock);
}

void cn_backup_streams_free(struct cn_backup_streams *streams)
{
    if (!streams)
        return;
    while (!cn_list_empty(&streams->all)) {
        struct stream *stream = CN_CONTAINER_OF(streams->all.next, struct stream, link);
        CN_ASSERT(stream->over); /* stopped before */
        stream_free(stream);
    }
    pthread_mutex_destroy(&streams->lock);
    pthread_cond_destroy(&streams->changed);
    cn_free(streams);
}
