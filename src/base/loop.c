/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

_Thread_local char cn_thread_mark;

static void set_owner(uv_loop_t *loop, const void *owner)
{
    __atomic_store_n(&loop->data, (void *)owner, __ATOMIC_RELAXED);
}

int cn_loop_init(uv_loop_t *loop, struct cn_err *err)
{
    int rc = uv_loop_init(loop);
    if (rc < 0)
        return cn_err_set(err, rc, "cannot make an event loop: %s", uv_strerror(rc));
    set_owner(loop, cn_thread_self());
    return 0;
}

void cn_loop_give(uv_loop_t *loop)
{
    cn_loop_assert_owner(loop);
    set_owner(loop, NULL);
}

void cn_loop_take(uv_loop_t *loop)
{
    CN_ASSERT(!cn_loop_owner(loop)); /* W1 */
    set_owner(loop, cn_thread_self());
}
