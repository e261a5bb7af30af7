/* SPDX-License-Identifier: Apache-2.0 */
/* cluster/haul.c - see haul.h. One lock for all; a thread for each haul. */
#include "cluster/haul.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"

struct haul {
    struct cn_list link; /* of hauls->all */
    struct cn_hauls *hauls;
    uint64_t disk, epoch;
    uint32_t shard;
    uint8_t id[CN_HAUL_ID_SIZE];
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

struct cn_hauls {
    struct cn_hauls_hands hands;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cn_list all; /* of struct haul */
    unsigned count;
    bool stopping;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* With the lock held. */
static void wait_until(struct cn_hauls *hauls, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    (void)pthread_cond_timedwait(&hauls->changed, &hauls->lock, &until);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* What does not fit waits until what is there was taken. */
static int write_piece(void *data, const void *bytes, size_t size)
{
    struct haul *haul = data;
    struct cn_hauls *hauls = haul->hauls;
    pthread_mutex_lock(&hauls->lock);
    while (!haul->cut && haul->ready.size >= CN_HAUL_PIECE_MAX) {
        if (now_ms() - haul->asked_ms >= CN_HAUL_IDLE_MS)
            haul->cut = true; /* Y4 */
        else
            wait_until(hauls, haul->asked_ms + CN_HAUL_IDLE_MS);
    }
    bool cut = haul->cut;
    if (!cut)
        cn_buf_append(&haul->ready, bytes, size);
    pthread_cond_broadcast(&hauls->changed);
    pthread_mutex_unlock(&hauls->lock);
    return cut ? CN_EABORTED : 0;
}

static void *haul_main(void *data)
{
    struct haul *haul = data;
    struct cn_hauls *hauls = haul->hauls;
    struct cn_err err = {0};
    int rc = hauls->hands.copy(hauls->hands.data, haul->shard, write_piece, haul, &err);
    hauls->hands.release(hauls->hands.data, haul->hold);
    pthread_mutex_lock(&hauls->lock);
    haul->over = true;
    haul->rc = rc;
    haul->err = err;
    pthread_cond_broadcast(&hauls->changed);
    pthread_mutex_unlock(&hauls->lock);
    return NULL;
}

/* --- those who ask ---------------------------------------------------------------------------- */

static int closed(struct cn_err *err, uint32_t shard)
{
    return cn_err_set(err, CN_ECLOSED, "the node does not answer for shard %u at the moment",
                      shard);
}

static void haul_free(struct haul *haul)
{
    pthread_join(haul->thread, NULL);
    cn_list_remove(&haul->link);
    haul->hauls->count--;
    cn_buf_fini(&haul->ready);
    cn_free(haul);
}

/* With the lock held: those that nobody wants and whose threads have ended, or are about to return.
 */
static void reap(struct cn_hauls *hauls)
{
    for (struct cn_list *node = hauls->all.next; node != &hauls->all;) {
        struct haul *haul = CN_CONTAINER_OF(node, struct haul, link);
        node = node->next;
        bool idle = now_ms() - haul->asked_ms >= CN_HAUL_IDLE_MS;
        if (haul->over && !haul->askers && (haul->cut || haul->taken || idle))
            haul_free(haul);
    }
}

/* With the lock held. */
static struct haul *find(struct cn_hauls *hauls, const struct cn_haul_ask *ask)
{
    for (struct cn_list *node = hauls->all.next; node != &hauls->all; node = node->next) {
        struct haul *haul = CN_CONTAINER_OF(node, struct haul, link);
        if (haul->disk == ask->disk && haul->shard == ask->shard &&
            memcmp(haul->id, ask->id, sizeof(haul->id)) == 0)
            return haul;
    }
    return NULL;
}

/* With the lock held, so that a cut that comes after the hold finds it (Y2). */
static int begin(struct cn_hauls *hauls, const struct cn_haul_ask *ask, struct haul **result,
                 struct cn_err *err)
{
    if (hauls->stopping)
        return closed(err, ask->shard);
    reap(hauls);
    if (hauls->count >= CN_HAULS_MAX)
        return cn_err_set(err, CN_EOVERLOADED, "too many backups are taken from the node at once");
    for (struct cn_list *node = hauls->all.next; node != &hauls->all; node = node->next) {
        struct haul *old = CN_CONTAINER_OF(node, struct haul, link);
        old->cut |= old->disk == ask->disk && old->shard == ask->shard; /* he has given it up */
    }
    pthread_cond_broadcast(&hauls->changed);
    uint64_t epoch;
    void *hold = hauls->hands.hold(hauls->hands.data, ask->shard, &epoch);
    if (!hold)
        return closed(err, ask->shard);
    struct haul *haul = CN_NEW(struct haul);
    haul->hauls = hauls;
    haul->disk = ask->disk;
    haul->shard = ask->shard;
    haul->epoch = epoch;
    haul->hold = hold;
    haul->asked_ms = now_ms();
    memcpy(haul->id, ask->id, sizeof(haul->id));
    if (pthread_create(&haul->thread, NULL, haul_main, haul) != 0) {
        hauls->hands.release(hauls->hands.data, hold);
        cn_free(haul);
        return cn_err_set(err, CN_ENOMEM, "cannot start a thread");
    }
    cn_list_push_back(&hauls->all, &haul->link);
    hauls->count++;
    *result = haul;
    return 0;
}

/* With the lock held: until there is a piece, or there will be none. */
static int take(struct haul *haul, const struct cn_haul_ask *ask, struct cn_haul_piece *piece,
                struct cn_err *err)
{
    struct cn_hauls *hauls = haul->hauls;
    size_t want = ask->size < CN_HAUL_PIECE_MAX ? ask->size : CN_HAUL_PIECE_MAX;
    int64_t until = now_ms() + CN_HAUL_WAIT_MS;
    haul->asked_ms = now_ms();
    while (!haul->cut && !haul->over && haul->ready.size < want && now_ms() < until)
        wait_until(hauls, until);
    haul->asked_ms = now_ms();
    if (haul->cut)
        return closed(err, haul->shard);
    if (haul->over && haul->rc < 0) {
        haul->cut = true;
        if (haul->rc == CN_EABORTED)
            return closed(err, haul->shard);
        if (err)
            *err = haul->err;
        return haul->rc;
    }
    size_t size = haul->ready.size < want ? haul->ready.size : want;
    cn_buf_append(&piece->bytes, haul->ready.data, size);
    cn_buf_consume(&haul->ready, size);
    haul->offset += size;
    piece->epoch = haul->epoch;
    piece->ended = haul->taken = haul->over && haul->ready.size == 0;
    pthread_cond_broadcast(&hauls->changed);
    return 0;
}

int cn_haul_next(struct cn_hauls *hauls, const struct cn_haul_ask *ask, struct cn_haul_piece *piece,
                 struct cn_err *err)
{
    pthread_mutex_lock(&hauls->lock);
    struct haul *haul = find(hauls, ask);
    int rc = 0;
    if (!haul && ask->offset == 0)
        rc = begin(hauls, ask, &haul, err);
    else if (!haul || haul->taken)
        rc = cn_err_set(err, CN_ENOTFOUND, "the copy of shard %u has ended", ask->shard);
    if (rc == 0 && haul->offset != ask->offset) { /* Y3 */
        haul->cut = true;
        pthread_cond_broadcast(&hauls->changed);
        rc = cn_err_set(err, CN_EINVALID, "the copy of shard %u is at another place", ask->shard);
    }
    if (rc == 0) {
        haul->askers++;
        rc = take(haul, ask, piece, err);
        haul->askers--;
    }
    pthread_mutex_unlock(&hauls->lock);
    return rc;
}

void cn_hauls_cut(struct cn_hauls *hauls, uint32_t shard)
{
    pthread_mutex_lock(&hauls->lock);
    for (struct cn_list *node = hauls->all.next; node != &hauls->all; node = node->next) {
        struct haul *haul = CN_CONTAINER_OF(node, struct haul, link);
        /* What is written whole was settled while the shard was ours: it may be taken (Y1). */
        if (haul->shard == shard && !haul->over)
            haul->cut = true;
    }
    pthread_cond_broadcast(&hauls->changed);
    pthread_mutex_unlock(&hauls->lock);
}

/* --- its life --------------------------------------------------------------------------------- */

struct cn_hauls *cn_hauls_new(const struct cn_hauls_hands *hands)
{
    struct cn_hauls *hauls = CN_NEW(struct cn_hauls);
    pthread_condattr_t clock;
    hauls->hands = *hands;
    pthread_mutex_init(&hauls->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&hauls->changed, &clock);
    pthread_condattr_destroy(&clock);
    cn_list_init(&hauls->all);
    return hauls;
}

void cn_hauls_stop(struct cn_hauls *hauls)
{
    pthread_mutex_lock(&hauls->lock);
    hauls->stopping = true;
    for (struct cn_list *node = hauls->all.next; node != &hauls->all; node = node->next)
        CN_CONTAINER_OF(node, struct haul, link)->cut = true;
    pthread_cond_broadcast(&hauls->changed);
    for (struct cn_list *node = hauls->all.next; node != &hauls->all; node = node->next)
        while (!CN_CONTAINER_OF(node, struct haul, link)->over)
            pthread_cond_wait(&hauls->changed, &hauls->lock);
    pthread_mutex_unlock(&hauls->lock);
}

void cn_hauls_free(struct cn_hauls *hauls)
{
    if (!hauls)
        return;
    while (!cn_list_empty(&hauls->all)) {
        struct haul *haul = CN_CONTAINER_OF(hauls->all.next, struct haul, link);
        CN_ASSERT(haul->over); /* stopped before */
        haul_free(haul);
    }
    pthread_mutex_destroy(&hauls->lock);
    pthread_cond_destroy(&hauls->changed);
    cn_free(hauls);
}
