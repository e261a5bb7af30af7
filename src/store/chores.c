/* SPDX-License-Identifier: Apache-2.0 */
#include "store/chores.h"

#include <pthread.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/cond.h"
#include "base/mem.h"

struct cn_chores {
    pthread_mutex_t lock; /* guards everything here and in the chores */
    pthread_cond_t wanted, done;
    struct cn_list idle, queued; /* of struct cn_chore; one that runs is in neither */
    int64_t look_ms;             /* when all that are idle are queued again */
    bool stopping;
    unsigned thread_count;
    pthread_t threads[];
};

static void look_later(struct cn_chores *chores)
{
    chores->look_ms = cn_cond_now_ms() + CN_CHORES_LOOK_MS;
}

/* Into the list that its state says. */
static void chore_put(struct cn_chores *chores, struct cn_chore *chore, bool queued)
{
    chore->state = queued ? CN_CHORE_QUEUED : CN_CHORE_IDLE;
    cn_list_push_back(queued ? &chores->queued : &chores->idle, &chore->link);
}

static void queue_all(struct cn_chores *chores)
{
    for (struct cn_list *link; (link = cn_list_take_front(&chores->idle));)
        chore_put(chores, CN_CONTAINER_OF(link, struct cn_chore, link), true);
    look_later(chores);
}

static void chore_run(struct cn_chores *chores, struct cn_chore *chore)
{
    CN_ASSERT(chore->state == CN_CHORE_QUEUED);
    chore->state = CN_CHORE_RUNNING;
    chore->again = false;
    pthread_mutex_unlock(&chores->lock);
    chore->run(chore);
    pthread_mutex_lock(&chores->lock);
    chore_put(chores, chore, chore->again);
    pthread_cond_broadcast(&chores->done);
}

static void *thread_run(void *arg)
{
    struct cn_chores *chores = arg;
    pthread_mutex_lock(&chores->lock);
    while (!chores->stopping) {
        struct cn_list *link = cn_list_take_front(&chores->queued);
        if (link)
            chore_run(chores, CN_CONTAINER_OF(link, struct cn_chore, link));
        else if (cn_cond_now_ms() >= chores->look_ms)
            queue_all(chores);
        else
            (void)cn_cond_wait_ms(&chores->wanted, &chores->lock,
                                  chores->look_ms - cn_cond_now_ms());
    }
    pthread_mutex_unlock(&chores->lock);
    return NULL;
}

struct cn_chores *cn_chores_new(unsigned threads)
{
    struct cn_chores *chores = cn_alloc_zero(sizeof(*chores) + threads * sizeof(pthread_t));
    pthread_mutex_init(&chores->lock, NULL);
    cn_cond_init(&chores->wanted);
    pthread_cond_init(&chores->done, NULL);
    cn_list_init(&chores->idle);
    cn_list_init(&chores->queued);
    look_later(chores);
    chores->thread_count = threads;
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&chores->threads[i], NULL, thread_run, chores) != 0)
            cn_assert_fail("a thread for chores starts", __FILE__, __LINE__);
        (void)pthread_setname_np(chores->threads[i], "cairn-keep"); /* only for those who look */
    }
    return chores;
}

void cn_chores_free(struct cn_chores *chores)
{
    pthread_mutex_lock(&chores->lock);
    chores->stopping = true;
    pthread_cond_broadcast(&chores->wanted);
    pthread_mutex_unlock(&chores->lock);
    for (unsigned i = 0; i < chores->thread_count; i++)
        pthread_join(chores->threads[i], NULL);
    CN_ASSERT(cn_list_empty(&chores->idle) && cn_list_empty(&chores->queued));
    pthread_mutex_destroy(&chores->lock);
    pthread_cond_destroy(&chores->wanted);
    pthread_cond_destroy(&chores->done);
    cn_free(chores);
}

void cn_chore_add(struct cn_chores *chores, struct cn_chore *chore,
                  void (*run)(struct cn_chore *chore))
{
    *chore = (struct cn_chore){.run = run};
    pthread_mutex_lock(&chores->lock);
    chore_put(chores, chore, false);
    pthread_mutex_unlock(&chores->lock);
}

void cn_chore_wake(struct cn_chores *chores, struct cn_chore *chore)
{
    pthread_mutex_lock(&chores->lock);
    chore->again = true;
    if (chore->state == CN_CHORE_IDLE) {
        cn_list_remove(&chore->link);
        chore_put(chores, chore, true);
        pthread_cond_signal(&chores->wanted);
    }
    pthread_mutex_unlock(&chores->lock);
}

void cn_chore_remove(struct cn_chores *chores, struct cn_chore *chore)
{
    pthread_mutex_lock(&chores->lock);
    while (chore->state == CN_CHORE_RUNNING)
        pthread_cond_wait(&chores->done, &chores->lock);
    cn_list_remove(&chore->link);
    pthread_mutex_unlock(&chores->lock);
}
