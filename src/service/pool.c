/* SPDX-License-Identifier: Apache-2.0 */
#include "service/pool.h"

#include <pthread.h>

#include "base/assert.h"
#include "base/cond.h"
#include "base/mem.h"

#define NUDGE_MS 10

struct cn_pool {
    pthread_mutex_t lock;   /* guards all below and the jobs' state */
    pthread_cond_t changed; /* a job is DONE, a thread has ended, or is wanted */
    struct cn_list pending; /* of struct cn_pool_job, oldest first */
    unsigned thread_count, threads_max;
    bool idle; /* the first one waits, and no job was promised to it */
    bool closing;
};

static void *first_main(void *data);

struct cn_pool *cn_pool_new(unsigned threads_max)
{
    CN_ASSERT(threads_max > 0);
    struct cn_pool *pool = CN_NEW(struct cn_pool);
    pool->threads_max = threads_max;
    pthread_mutex_init(&pool->lock, NULL);
    cn_cond_init(&pool->changed);
    cn_list_init(&pool->pending);
    pthread_t thread;
    pool->thread_count = 1;
    if (pthread_create(&thread, NULL, first_main, pool) == 0) {
        pthread_detach(thread);
        return pool;
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    cn_free(pool);
    return NULL;
}

void cn_pool_free(struct cn_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->changed);
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

/* The one that stays. */
static void *first_main(void *data)
{
    struct cn_pool *pool = data;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing || !cn_list_empty(&pool->pending)) {
        struct cn_list *node = cn_list_take_front(&pool->pending);
        pool->idle = !node;
        if (node)
            run_job(pool, CN_CONTAINER_OF(node, struct cn_pool_job, link));
        else
            pthread_cond_wait(&pool->changed, &pool->lock);
    }
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
    if (pool->idle) {
        pool->idle = false;
        pthread_cond_broadcast(&pool->changed);
    } else if (pool->thread_count < pool->threads_max &&
               pthread_create(&thread, NULL, thread_main, pool) == 0) {
        pthread_detach(thread);
        pool->thread_count++;
    }
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
        (void)cn_cond_wait_ms(&pool->changed, &pool->lock, NUDGE_MS); /* looks again */
    }
    pthread_mutex_unlock(&pool->lock);
    return ran;
}
