/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of several threads all arrive, those of one thread in order. */
#include "base/loop.h"
#include "base/mailbox.h"

#include <stdlib.h>

#include "test/lib/test.h"

enum { SENDERS = 3, EACH = 5000 };

struct note {
    struct cn_mail mail;
    int sender, number;
};
struct inbox {
    struct cn_mailbox box;
    int last[SENDERS], received, out_of_order;
};
struct sender {
    struct inbox *inbox;
    int index;
};

static void on_note(struct cn_mail *mail, void *data)
{
    struct inbox *inbox = data;
    struct note *note = (struct note *)mail;
    if (note->number != inbox->last[note->sender] + 1)
        inbox->out_of_order++;
    inbox->last[note->sender] = note->number;
    free(note);
    if (++inbox->received == SENDERS * EACH)
        cn_mailbox_close(&inbox->box, NULL);
}

static void send_all(void *arg)
{
    struct sender *sender = arg;
    for (int i = 1; i <= EACH; i++) {
        struct note *note = malloc(sizeof(*note));
        *note = (struct note){{NULL, on_note}, sender->index, i};
        if (!cn_mailbox_send(&sender->inbox->box, &note->mail))
            abort();
    }
}

TEST(mailbox, delivers_everything_in_order_per_sender)
{
    uv_loop_t loop;
    struct inbox inbox = {0};
    CHECK_INT(0, cn_loop_init(&loop, NULL));
    CHECK_INT(0, cn_mailbox_open(&inbox.box, &loop, &inbox));
    uv_thread_t threads[SENDERS];
    struct sender senders[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){&inbox, i};
        CHECK_INT(0, uv_thread_create(&threads[i], send_all, &senders[i]));
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    for (int i = 0; i < SENDERS; i++)
        uv_thread_join(&threads[i]);
    CHECK_INT(SENDERS * EACH, inbox.received);
    CHECK_INT(0, inbox.out_of_order);
    CHECK_INT(0, uv_loop_close(&loop));
}
