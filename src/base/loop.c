/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

_Thread_local char cn_thread_mark;

int cn_loop_init(uv_loop_t *loop)
{
    int rc = uv_loop_init(loop);
    if (rc == 0)
        loop->data = (void *)cn_thread_self();
    return rc;
}

void cn_loop_give(uv_loop_t *loop)
{
    cn_loop_assert_owner(loop);
    loop->data = NULL;
}

void cn_loop_take(uv_loop_t *loop)
{
    CN_ASSERT(!loop->data); /* W1 */
    loop->data = (void *)cn_thread_self();
}
