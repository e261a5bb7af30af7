/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a loop is: W1 and W3 of base/loop.h, and that the assertion does fire. */
#include "base/loop.h"

#include <pthread.h>

#include "test/lib/test.h"

static void use(void *data)
{
    cn_loop_assert_owner(data);
}

static void give(void *data)
{
    cn_loop_give(data);
}

static void take(void *data)
{
    cn_loop_take(data);
}

static void *use_on_thread(void *data)
{
    use(data);
    return NULL;
}

/* In a child: the thread is made there, for a fork takes only the one that forks along. */
static void use_elsewhere(void *data)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_on_thread, data) == 0)
        pthread_join(thread, NULL);
}

struct lent {
    uv_loop_t loop;
    const void *self;
};

static void *run_lent(void *data)
{
    struct lent *lent = data;
    lent->self = cn_thread_self();
    cn_loop_take(&lent->loop);
    cn_loop_assert_owner(&lent->loop);
    uv_run(&lent->loop, UV_RUN_DEFAULT);
    cn_loop_give(&lent->loop);
    return NULL;
}

TEST(loop, is_its_makers)
{
    uv_loop_t loop;
    CHECK_INT(0, cn_loop_init(&loop, NULL));
    cn_loop_assert_owner(&loop);
    CHECK_ASSERTS("cn_loop_is_mine(loop)", use_elsewhere, &loop);
    CHECK_INT(0, uv_loop_close(&loop));
}

/* W1: from hand to hand, with nobody in between. */
TEST(loop, goes_to_the_thread_that_takes_it)
{
    struct lent lent;
    CHECK_INT(0, cn_loop_init(&lent.loop, NULL));
    CHECK_ASSERTS("!cn_loop_owner(loop)", take, &lent.loop); /* it is not nobody's */
    cn_loop_give(&lent.loop);
    CHECK_ASSERTS("cn_loop_is_mine(loop)", use, &lent.loop);
    CHECK_ASSERTS("cn_loop_is_mine(loop)", give, &lent.loop);
    pthread_t thread;
    CHECK_INT(0, pthread_create(&thread, NULL, run_lent, &lent));
    pthread_join(thread, NULL);
    CHECK(lent.self && lent.self != cn_thread_self());
    cn_loop_take(&lent.loop);
    cn_loop_assert_owner(&lent.loop);
    CHECK_INT(0, uv_loop_close(&lent.loop));
}

TEST(loop, a_thread_is_the_same_to_itself)
{
    CHECK(cn_thread_self() == cn_thread_self());
}

/* W3: a walk over n things comes once in n + 1 quiet moments, so that tables of any size cost the
 * same; and never in builds without checks. */
TEST(loop, checks_are_due_in_proportion)
{
    size_t pause = 0;
    unsigned due = 0;
    for (int i = 0; i < 1100; i++)
        due += cn_check_due(&pause, 10);
    CHECK_INT(CN_DEBUG_CHECKS ? 100 : 0, due);
    pause = 0;
    due = 0;
    for (int i = 0; i < 50; i++)
        due += cn_check_due(&pause, 0);
    CHECK_INT(CN_DEBUG_CHECKS ? 50 : 0, due);
}
