/* SPDX-License-Identifier: Apache-2.0 */
/* Chores: each is called, never beside itself, and not after it was removed. */
#include "store/chores.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "test/lib/test.h"

struct counted {
    struct cn_chore chore;
    atomic_int runs, inside, beside;
    sem_t done;
};

static void on_run(struct cn_chore *chore)
{
    struct counted *counted = CN_CONTAINER_OF(chore, struct counted, chore);
    if (atomic_fetch_add(&counted->inside, 1) != 0)
        atomic_fetch_add(&counted->beside, 1);
    atomic_fetch_add(&counted->runs, 1);
    atomic_fetch_sub(&counted->inside, 1);
    sem_post(&counted->done);
}

TEST(chores, everything_is_looked_after_without_being_woken)
{
    struct cn_chores *chores = cn_chores_new(2);
    struct counted counted[50];
    for (int i = 0; i < 50; i++) {
        counted[i] = (struct counted){0};
        sem_init(&counted[i].done, 0, 0);
        cn_chore_add(chores, &counted[i].chore, on_run);
    }
    for (int i = 0; i < 50; i++) {
        sem_wait(&counted[i].done);
        sem_wait(&counted[i].done);
    }
    for (int i = 0; i < 50; i++)
        cn_chore_remove(chores, &counted[i].chore);
    cn_chores_free(chores);
}

TEST(chores, one_that_is_woken_while_it_runs_runs_again_and_never_beside_itself)
{
    struct cn_chores *chores = cn_chores_new(3);
    struct counted counted = {0};
    sem_init(&counted.done, 0, 0);
    cn_chore_add(chores, &counted.chore, on_run);
    for (int i = 0; i < 2000; i++) {
        int before = atomic_load(&counted.runs);
        cn_chore_wake(chores, &counted.chore);
        while (atomic_load(&counted.runs) == before)
            sem_wait(&counted.done);
    }
    cn_chore_remove(chores, &counted.chore);
    int runs = atomic_load(&counted.runs);
    CHECK_INT(0, counted.beside);
    cn_chores_free(chores);
    CHECK_INT(runs, counted.runs);
}

struct blocked {
    struct cn_chore chore;
    sem_t inside, go;
};

static void on_block(struct cn_chore *chore)
{
    struct blocked *blocked = CN_CONTAINER_OF(chore, struct blocked, chore);
    sem_post(&blocked->inside);
    sem_wait(&blocked->go);
}

TEST(chores, a_long_one_does_not_keep_the_others_waiting)
{
    struct cn_chores *chores = cn_chores_new(2);
    struct blocked blocked = {0};
    struct counted counted = {0};
    sem_init(&blocked.inside, 0, 0);
    sem_init(&blocked.go, 0, 0);
    sem_init(&counted.done, 0, 0);
    cn_chore_add(chores, &blocked.chore, on_block);
    cn_chore_add(chores, &counted.chore, on_run);
    cn_chore_wake(chores, &blocked.chore);
    sem_wait(&blocked.inside);
    cn_chore_wake(chores, &counted.chore);
    sem_wait(&counted.done);
    for (int i = 0; i < 3; i++)
        sem_post(&blocked.go); /* it may have been called again meanwhile */
    cn_chore_remove(chores, &counted.chore);
    cn_chore_remove(chores, &blocked.chore);
    cn_chores_free(chores);
}
