/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mailbox.h"

#include "base/assert.h"
#include "base/loop.h"

static void deliver_all(struct cn_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    struct cn_mail *mail = mailbox->head;
    mailbox->head = NULL;
    mailbox->tail = &mailbox->head;
    pthread_mutex_unlock(&mailbox->lock);
    while (mail) {
        struct cn_mail *next = mail->next;
        mail->deliver(mail, mailbox->data);
        mail = next;
    }
}

static void on_async(uv_async_t *async)
{
    deliver_all(async->data);
}

int cn_mailbox_open(struct cn_mailbox *mailbox, uv_loop_t *loop, void *data)
{
    cn_loop_assert_owner(loop);
    *mailbox = (struct cn_mailbox){.data = data};
    mailbox->tail = &mailbox->head;
    int rc = uv_async_init(loop, &mailbox->async, on_async);
    if (rc < 0)
        return rc;
    mailbox->async.data = mailbox;
    pthread_mutex_init(&mailbox->lock, NULL);
    return 0;
}

bool cn_mailbox_send(struct cn_mailbox *mailbox, struct cn_mail *mail)
{
    CN_ASSERT(mail->deliver);
    mail->next = NULL;
    pthread_mutex_lock(&mailbox->lock);
    if (mailbox->closed) {
        pthread_mutex_unlock(&mailbox->lock);
        return false;
    }
    bool was_empty = !mailbox->head;
    *mailbox->tail = mail;
    mailbox->tail = &mail->next;
    /* Inside the lock, so that the receiver cannot close the handle meanwhile. */
    if (was_empty)
        uv_async_send(&mailbox->async);
    pthread_mutex_unlock(&mailbox->lock);
    return true;
}

static void on_close(uv_handle_t *handle)
{
    struct cn_mailbox *mailbox = handle->data;
    /* The lock stays: senders may come for as long as the memory is there. */
    if (mailbox->closed_cb)
        mailbox->closed_cb(mailbox);
}

void cn_mailbox_close(struct cn_mailbox *mailbox, void (*cb)(struct cn_mailbox *mailbox))
{
    cn_loop_assert_owner(mailbox->async.loop);
    pthread_mutex_lock(&mailbox->lock);
    CN_ASSERT(!mailbox->closed);
    mailbox->closed = true;
    pthread_mutex_unlock(&mailbox->lock);
    deliver_all(mailbox);
    mailbox->closed_cb = cb;
    uv_close((uv_handle_t *)&mailbox->async, on_close);
}
