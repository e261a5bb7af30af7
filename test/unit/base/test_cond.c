/* SPDX-License-Identifier: Apache-2.0 */
/* A wait ends with its time, not before it, or with a signal. */
#include "base/cond.h"

#include "base/clock.h"
#include "test/lib/test.h"

struct door {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

static void *open_door(void *data)
{
    struct door *door = data;
    pthread_mutex_lock(&door->lock);
    door->open = true;
    pthread_cond_broadcast(&door->changed);
    pthread_mutex_unlock(&door->lock);
    return NULL;
}

TEST(cond, waits_no_less_than_its_time)
{
    struct door door = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct cn_clock *clock = cn_clock_system();
    cn_cond_init(&door.changed);
    pthread_mutex_lock(&door.lock);
    for (int64_t ms = -1; ms <= 2; ms++) {
        uint64_t from;
        do
            from = cn_clock_mono_ns(clock);
        while (cn_cond_wait_ms(&door.changed, &door.lock, ms)); /* woken by nobody */
        CHECK(cn_clock_mono_ns(clock) - from >= (ms > 0 ? (uint64_t)ms * 1000000 : 0));
    }
    pthread_mutex_unlock(&door.lock);
    pthread_cond_destroy(&door.changed);
}

TEST(cond, is_woken_before_its_time)
{
    struct door door = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    cn_cond_init(&door.changed);
    pthread_mutex_lock(&door.lock);
    CHECK_INT(0, pthread_create(&thread, NULL, open_door, &door));
    bool in_time = true;
    while (!door.open && in_time)
        in_time = cn_cond_wait_ms(&door.changed, &door.lock, 59999);
    CHECK(door.open);
    CHECK(in_time);
    pthread_mutex_unlock(&door.lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&door.changed);
}
