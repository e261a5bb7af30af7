/* SPDX-License-Identifier: Apache-2.0 */
#include "service/pool.h"

#include <pthread.h>
#include <time.h>

#include "base/assert.h"
#include "base/mem.h"

#define NUDGE_NS 10000000

struct cn_pool {
    pthread_mutex_t lock;   /* guards all below and the jobs' state */
    pthread_cond_t changed; /* a job is DONE, or a thread has ended */
    struct cn_list pending; /* of struct cn_pool_job, oldest first */
    unsigned thread_count, threads_max;
};

struct cn_pool *cn_pool_new(unsigned threads_max)
{
    CN_ASSERT(threads_max > 0);
    struct cn_pool *pool = CN_NEW(struct cn_pool);
    pool->threads_max = threads_max;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    cn_list_init(&pool->pending);
    return pool;
}

void cn_pool_free(struct cn_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->thread_count)
        pthread_cond_wait(&pool->changed, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    cn_free(pool);
}

static void run_job(struct cn_pool *pool, struct cn_pool_job *job)
{
    job->state = CN_POOL_RUNNING;
    pthread_mutex_unlock(&pool->lock);
    job->run(job);
    /* Under the lock, so that finish() returns only when the mailbox is not touched any more. Once
     * sent, the job is the lane's. */
    pthread_mutex_lock(&pool->lock);
    job->state = CN_POOL_DONE;
    if (!cn_mailbox_send(job->mailbox, &job->mail))
        job->lost(job);
    pthread_cond_broadcast(&pool->changed);
}

static void *thread_main(void *data)
{
    struct cn_pool *pool = data;
    struct cn_list *node;
    pthread_mutex_lock(&pool->lock);
    while ((node = cn_list_take_front(&pool->pending)))
        run_job(pool, CN_CONTAINER_OF(node, struct cn_pool_job, link));
    pool->thread_count--;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void cn_pool_start(struct cn_pool *pool, struct cn_pool_job *job)
{
    pthread_t thread;
    job->state = CN_POOL_PENDING;
    pthread_mutex_lock(&pool->lock);
    cn_list_push_back(&pool->pending, &job->link);
    if (pool->thread_count < pool->threads_max &&
        pthread_create(&thread, NULL, thread_main, pool) == 0) {
        pthread_detach(thread);
        pool->thread_count++;
    }
    CN_ASSERT(pool->thread_count > 0); /* no thread at all: nothing would ever run */
    pthread_mutex_unlock(&pool->lock);
}

bool cn_pool_finish(struct cn_pool *pool, struct cn_pool_job *job,
                    void (*nudge)(struct cn_pool_job *job))
{
    pthread_mutex_lock(&pool->lock);
    bool ran = job->state != CN_POOL_PENDING;
    if (!ran)
        cn_list_remove(&job->link);
    while (job->state == CN_POOL_RUNNING) {
        nudge(job);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += NUDGE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&pool->changed, &pool->lock, &until); /* looks again */
    }
    pthread_mutex_unlock(&pool->lock);
    return ran;
}
