/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for long work: how many, who owns a job when, and that one is taken back or waited for.
 */
#include "service/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/threadless.h"

/* A job that runs until it is let go, or told to end. */
struct job {
    struct cn_pool_job base;
    struct world *world;
    atomic_bool go;
    atomic_uint nudges;
    bool ran, delivered, lost;
};

struct world {
    uv_loop_t loop;
    struct cn_mailbox mailbox;
    pthread_mutex_t lock; /* guards the counts */
    pthread_cond_t changed;
    unsigned running, most, started;
    unsigned delivered; /* of the loop */
    bool mailbox_closed;
    struct job *order[64];
};

static void run(struct cn_pool_job *base)
{
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    struct world *world = job->world;
    pthread_mutex_lock(&world->lock);
    world->order[world->started++] = job;
    world->running++;
    if (world->running > world->most)
        world->most = world->running;
    pthread_cond_broadcast(&world->changed);
    while (!atomic_load(&job->go))
        pthread_cond_wait(&world->changed, &world->lock);
    world->running--;
    job->ran = true;
    pthread_mutex_unlock(&world->lock);
}

static void deliver(struct cn_mail *mail, void *data)
{
    struct job *job =
        CN_CONTAINER_OF(CN_CONTAINER_OF(mail, struct cn_pool_job, mail), struct job, base);
    CHECK(data == job->world && !job->delivered);
    job->delivered = true;
    job->world->delivered++;
}

static void lost(struct cn_pool_job *base)
{
    CN_CONTAINER_OF(base, struct job, base)->lost = true;
}

static void let_go(struct job *job)
{
    pthread_mutex_lock(&job->world->lock);
    atomic_store(&job->go, true);
    pthread_cond_broadcast(&job->world->changed);
    pthread_mutex_unlock(&job->world->lock);
}

static void open_world(struct world *world)
{
    memset(world, 0, sizeof(*world));
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->changed, NULL);
    CHECK_INT(0, cn_loop_init(&world->loop, NULL));
    CHECK_INT(0, cn_mailbox_open(&world->mailbox, &world->loop, world));
}

static void on_closed(struct cn_mailbox *mailbox)
{
    ((struct world *)mailbox->data)->mailbox_closed = true;
}

static void close_world(struct world *world)
{
    if (!world->mailbox_closed)
        cn_mailbox_close(&world->mailbox, on_closed);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    CHECK(world->mailbox_closed);
    CHECK_INT(0, uv_loop_close(&world->loop));
    pthread_cond_destroy(&world->changed);
    pthread_mutex_destroy(&world->lock);
}

static void start(struct cn_pool *pool, struct world *world, struct job *job)
{
    memset(job, 0, sizeof(*job));
    job->world = world;
    job->base = (struct cn_pool_job){
        .run = run, .mail.deliver = deliver, .mailbox = &world->mailbox, .lost = lost};
    cn_pool_start(pool, &job->base);
}

static void wait_started(struct world *world, unsigned count)
{
    pthread_mutex_lock(&world->lock);
    while (world->started < count)
        pthread_cond_wait(&world->changed, &world->lock);
    pthread_mutex_unlock(&world->lock);
}

static void wait_delivered(struct world *world, unsigned count)
{
    while (world->delivered < count)
        uv_run(&world->loop, UV_RUN_ONCE);
}

static void nudge(struct cn_pool_job *base)
{
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    if (atomic_fetch_add(&job->nudges, 1) == 2) /* it is told more than once */
        let_go(job);
}

TEST(pool, as_many_run_as_it_was_made_with_and_the_rest_in_order)
{
    struct world world;
    struct job jobs[6];
    open_world(&world);
    struct cn_pool *pool = cn_pool_new(2);
    for (int i = 0; i < 6; i++)
        start(pool, &world, &jobs[i]);
    wait_started(&world, 2);
    CHECK_INT(0, world.delivered);
    /* Whoever ends makes room for one, which is the oldest. */
    for (unsigned i = 0; i < 6; i++) {
        let_go(world.order[i]);
        wait_delivered(&world, i + 1);
        CHECK(world.order[i]->ran && world.order[i]->delivered);
        wait_started(&world, i + 3 > 6 ? 6 : i + 3);
        if (i + 2 < 6)
            CHECK(world.order[i + 2] == &jobs[i + 2]);
    }
    CHECK_INT(2, world.most);
    cn_pool_free(pool);
    close_world(&world);
}

TEST(pool, without_a_thread_to_give_the_first_one_runs_all_jobs)
{
    struct world world;
    struct job jobs[3];
    open_world(&world);
    threadless = true;
    CHECK(!cn_pool_new(2));
    threadless = false;
    struct cn_pool *pool = cn_pool_new(2);
    threadless = true;
    for (int i = 0; i < 3; i++)
        start(pool, &world, &jobs[i]);
    for (unsigned i = 0; i < 3; i++) {
        wait_started(&world, i + 1);
        CHECK(world.order[i] == &jobs[i]);
        let_go(&jobs[i]);
        wait_delivered(&world, i + 1);
    }
    CHECK_INT(1, world.most);
    threadless = false;
    cn_pool_free(pool);
    close_world(&world);
}

TEST(pool, a_job_that_waits_is_taken_back_and_never_runs)
{
    struct world world;
    struct job first, second, third;
    open_world(&world);
    struct cn_pool *pool = cn_pool_new(1);
    start(pool, &world, &first);
    wait_started(&world, 1);
    start(pool, &world, &second);
    start(pool, &world, &third);
    CHECK(!cn_pool_finish(pool, &second.base, nudge));
    CHECK_INT(0, second.nudges);
    let_go(&first);
    let_go(&third);
    wait_delivered(&world, 2);
    CHECK(first.delivered && third.delivered && !second.ran && !second.delivered);
    cn_pool_free(pool);
    CHECK(!second.ran);
    close_world(&world);
}

TEST(pool, a_job_that_runs_is_told_to_end_until_it_does_and_its_mail_comes)
{
    struct world world;
    struct job job;
    open_world(&world);
    struct cn_pool *pool = cn_pool_new(1);
    start(pool, &world, &job);
    wait_started(&world, 1);
    CHECK(cn_pool_finish(pool, &job.base, nudge));
    CHECK(job.nudges >= 3 && job.ran && !job.delivered);
    wait_delivered(&world, 1);
    /* One that is over is not told anything. */
    unsigned nudges = job.nudges;
    CHECK(cn_pool_finish(pool, &job.base, nudge));
    CHECK_INT(nudges, job.nudges);
    cn_pool_free(pool);
    close_world(&world);
}

TEST(pool, what_ran_for_a_lane_that_has_ended_is_lost_and_said_to_be)
{
    struct world world;
    struct job job;
    open_world(&world);
    struct cn_pool *pool = cn_pool_new(1);
    start(pool, &world, &job);
    wait_started(&world, 1);
    cn_mailbox_close(&world.mailbox, on_closed);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    CHECK(world.mailbox_closed);
    let_go(&job);
    cn_pool_free(pool); /* waits for it */
    CHECK(job.ran && job.lost && !job.delivered);
    close_world(&world);
}

TEST(pool, threads_end_with_the_work_and_come_again)
{
    struct world world;
    struct job jobs[40];
    open_world(&world);
    struct cn_pool *pool = cn_pool_new(3);
    for (unsigned i = 0; i < 40; i++) {
        start(pool, &world, &jobs[i]);
        let_go(&jobs[i]);
        if (i % 7 == 0)
            wait_delivered(&world, i + 1);
    }
    wait_delivered(&world, 40);
    for (unsigned i = 0; i < 40; i++)
        CHECK(jobs[i].ran && jobs[i].delivered && !jobs[i].lost);
    CHECK(world.most <= 3);
    cn_pool_free(pool);
    close_world(&world);
}
