/* SPDX-License-Identifier: Apache-2.0 */
/* base/mailbox.h - messages between threads that move ownership. Terms:
 * docs/understand/glossary.md.
 *
 * A mailbox belongs to one event loop, which receives; any thread may send. A
 * message is a struct embedding cn_mail; sending hands the whole struct over.
 * Messages from one sender arrive in order. The receiver takes all that has
 * gathered in one wake-up, so cost per message falls as load rises.
 *
 * Threads:   cn_mailbox_send() from any; everything else on the loop's thread.
 * Ownership: after send the message is the receiver's; its callback frees it. */
#ifndef CN_BASE_MAILBOX_H
#define CN_BASE_MAILBOX_H
#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

struct cn_mail {
    struct cn_mail *next;
    void (*deliver)(struct cn_mail *mail, void *data); /* runs on the loop; owns `mail` */
};

struct cn_mailbox {
    uv_async_t async;
    pthread_mutex_t lock;  /* guards head, tail, closed */
    struct cn_mail *head;  /* oldest first */
    struct cn_mail **tail; /* where the next one is linked */
    bool closed;
    void *data; /* given to deliver */
    void (*closed_cb)(struct cn_mailbox *mailbox);
};

int cn_mailbox_open(struct cn_mailbox *mailbox, uv_loop_t *loop, void *data);
/* False if the mailbox is closed: the message stays the sender's. Any thread may ask for as long as
 * the memory of the mailbox is there, also when it is closed for good. */
bool cn_mailbox_send(struct cn_mailbox *mailbox, struct cn_mail *mail);
/* Delivers what has arrived, refuses the rest, then calls back once. */
void cn_mailbox_close(struct cn_mailbox *mailbox, void (*cb)(struct cn_mailbox *mailbox));

#endif
