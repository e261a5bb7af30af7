/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host_copy.c - copies of shards, those that go and those that come.
 *
 * A copy that goes is a thread that reads its store and hands pieces to the host's thread, which
 * sends them. The other side says how far it has written (COPIED); the thread is never more than
 * WINDOW ahead of that, so neither memory here, nor the link's queue, nor the disk there gets more
 * than that of one copy, and feeds on the same link do not wait behind it.
 *
 *     going:   thread ── piece (blocks: WINDOW) ──► host ── COPY ──►  coming: step TAKE
 *              acked ◄──────────────────────────── host ◄─ COPIED ──          after it is written
 *              ends ── END, or FAILED ──────────►  host ── COPY ──►           step END, the member
 *
 * Q1  A copy has a number of its sender's; what comes of another one than the last that began, or
 *     not where the last piece ended, is refused (FAILED). A receiver that gave up says so
 *     likewise.
 * Q2  A copy that goes ends early when its shard is lost, its link breaks, or the other side says
 *     FAILED. Its thread is joined by the host, after its last letter. */
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "membership/member_private.h"
#include "shard/host_private.h"

enum { WINDOW = 2 << 20, PIECE = 256 << 10 };

struct piece {
    struct cn_list link; /* of copy->pieces, once it has come to the host */
    struct cn_mail mail;
    struct cn_host_copy *copy;
    enum cn_frame_copy_part part;
    uint64_t offset;
    struct cn_buf bytes;
};

struct cn_host_copy {
    struct cn_list link; /* of host->copies */
    struct cn_host *host;
    struct cn_host_shard *shard;
    uint64_t disk, number;
    pthread_t thread;
    uint64_t offset;       /* of the thread: how much it has handed over */
    struct cn_list pieces; /* of the host: to be sent, oldest first */
    bool over;             /* of the host: the last letter has come */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t acked; /* guarded by lock */
    bool stopped;   /* the same */
};

/* --- going: the thread ------------------------------------------------------------------------ */

static void on_piece(struct cn_mail *mail, void *data);

static void hand_over(struct cn_host_copy *copy, enum cn_frame_copy_part part, const void *bytes,
                      size_t size)
{
    struct piece *piece = CN_NEW(struct piece);
    piece->copy = copy;
    piece->part = part;
    piece->offset = copy->offset;
    piece->mail.deliver = on_piece;
    cn_buf_append(&piece->bytes, bytes, size);
    copy->offset += size;
    CN_ASSERT(
        cn_mailbox_send(&copy->host->mailbox, &piece->mail)); /* open while there are copies */
}

/* Waits until there is room for one piece. False: it is given up. */
static bool wait_for_room(struct cn_host_copy *copy)
{
    pthread_mutex_lock(&copy->lock);
    while (!copy->stopped && copy->offset + PIECE > copy->acked + WINDOW)
        pthread_cond_wait(&copy->moved, &copy->lock);
    bool stopped = copy->stopped;
    pthread_mutex_unlock(&copy->lock);
    return !stopped;
}

static int give_piece(void *data, const void *bytes, size_t size)
{
    struct cn_host_copy *copy = data;
    for (size_t at = 0; at < size;) {
        size_t part = size - at < PIECE ? size - at : PIECE;
        if (!wait_for_room(copy))
            return CN_EABORTED;
        hand_over(copy, CN_COPY_PIECE, (const uint8_t *)bytes + at, part);
        at += part;
    }
    return 0;
}

static void *copy_main(void *data)
{
    struct cn_host_copy *copy = data;
    const struct cn_host_disk *disk = copy->host->config.disk_hands;
    struct cn_err err = {0};
    int rc = disk->copy_out(disk->data, copy->shard->index, give_piece, copy, &err);
    hand_over(copy, rc < 0 ? CN_COPY_FAILED : CN_COPY_END, NULL, 0);
    return NULL;
}

/* --- going: the host -------------------------------------------------------------------------- */

static void stop(struct cn_host_copy *copy)
{
    pthread_mutex_lock(&copy->lock);
    copy->stopped = true;
    pthread_cond_signal(&copy->moved);
    pthread_mutex_unlock(&copy->lock);
}

static void copy_free(struct cn_host_copy *copy)
{
    struct cn_host *host = copy->host;
    pthread_join(copy->thread, NULL);
    while (!cn_list_empty(&copy->pieces)) {
        struct cn_list *node = cn_list_take_front(&copy->pieces);
        struct piece *piece = CN_CONTAINER_OF(node, struct piece, link);
        cn_buf_fini(&piece->bytes);
        cn_free(piece);
    }
    cn_list_remove(&copy->link);
    if (copy->shard->going == copy)
        copy->shard->going = NULL;
    pthread_mutex_destroy(&copy->lock);
    pthread_cond_destroy(&copy->moved);
    cn_free(copy);
    host->copy_count--;
}

static bool send_part(struct cn_host *host, uint64_t disk, enum cn_frame_kind kind,
                      const struct cn_frame_copy *part)
{
    uint8_t body[CN_FRAME_COPY_SIZE];
    cn_frame_put_copy(body, part);
    return host->links &&
           cn_links_send(host->links, disk, kind, body, sizeof(body), part->bytes, part->size);
}

/* As much as the link takes; it goes when all is sent. */
static void send_pieces(struct cn_host_copy *copy)
{
    while (!cn_list_empty(&copy->pieces)) {
        struct piece *piece = CN_CONTAINER_OF(copy->pieces.next, struct piece, link);
        struct cn_frame_copy part = {.shard = copy->shard->index,
                                     .part = piece->part,
                                     .number = copy->number,
                                     .offset = piece->offset,
                                     .bytes = piece->bytes.data,
                                     .size = piece->bytes.size};
        if (!send_part(copy->host, copy->disk, CN_FRAME_COPY, &part))
            break;
        cn_list_remove(&piece->link);
        cn_buf_fini(&piece->bytes);
        cn_free(piece);
    }
    if (copy->over && cn_list_empty(&copy->pieces))
        copy_free(copy);
}

static void on_piece(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct piece *piece = CN_CONTAINER_OF(mail, struct piece, mail);
    struct cn_host_copy *copy = piece->copy;
    copy->over = piece->part != CN_COPY_PIECE;
    cn_list_push_back(&copy->pieces, &piece->link);
    if (copy->shard->going == copy)
        send_pieces(copy);
    else if (copy->over)
        copy_free(copy);
    cn_host_after(host);
}

/* It is of no use any more: nothing of it is sent, and it goes when its thread has ended. */
static void drop(struct cn_host_copy *copy)
{
    stop(copy);
    if (copy->shard->going == copy)
        copy->shard->going = NULL;
    if (copy->over)
        copy_free(copy);
}

static void refuse(struct cn_host *host, uint64_t disk, enum cn_frame_kind kind, uint32_t shard,
                   uint64_t number)
{
    struct cn_frame_copy part = {.shard = shard, .part = CN_COPY_FAILED, .number = number};
    (void)send_part(host, disk, kind, &part); /* else the other side finds out by its own time */
}

void cn_host_copy_stop(struct cn_host_shard *shard)
{
    if (!shard->going)
        return;
    refuse(shard->host, shard->going->disk, CN_FRAME_COPY, shard->index, shard->going->number);
    drop(shard->going);
}

void cn_host_copy_send(struct cn_host *host, uint64_t disk, uint32_t index)
{
    struct cn_host_shard *shard = &host->shards[index];
    if (shard->going && shard->going->disk == disk)
        return; /* on its way */
    if (shard->going || host->copy_count >= CN_HOST_COPIES_OUT_MAX || !shard->open ||
        shard->closes || host->failed) {
        refuse(host, disk, CN_FRAME_COPY, index, 0);
        return;
    }
    struct cn_host_copy *copy = CN_NEW(struct cn_host_copy);
    copy->host = host;
    copy->shard = shard;
    copy->disk = disk;
    copy->number = ++host->copy_number;
    cn_list_init(&copy->pieces);
    pthread_mutex_init(&copy->lock, NULL);
    pthread_cond_init(&copy->moved, NULL);
    if (pthread_create(&copy->thread, NULL, copy_main, copy) != 0) {
        pthread_mutex_destroy(&copy->lock);
        pthread_cond_destroy(&copy->moved);
        cn_free(copy);
        refuse(host, disk, CN_FRAME_COPY, index, 0);
        return;
    }
    shard->going = copy;
    host->copy_count++;
    cn_list_push_back(&host->copies, &copy->link);
}

void cn_host_copy_link(struct cn_host *host, uint64_t disk, bool up)
{
    for (struct cn_list *node = host->copies.next; node != &host->copies;) {
        struct cn_host_copy *copy = CN_CONTAINER_OF(node, struct cn_host_copy, link);
        node = node->next;
        if (copy->disk != disk || copy->shard->going != copy)
            continue;
        if (up)
            send_pieces(copy);
        else
            drop(copy);
    }
    for (unsigned i = 0; i < host->shard_count && !up; i++)
        if (host->shards[i].coming && host->shards[i].coming_disk == disk) {
            cn_host_copy_forget(&host->shards[i]);
            cn_member_copy_failed(&host->member, cn_host_clock_ms(), i);
        }
}

/* --- coming ----------------------------------------------------------------------------------- */

void cn_host_copy_forget(struct cn_host_shard *shard)
{
    if (shard->coming)
        refuse(shard->host, shard->coming_disk, CN_FRAME_COPIED, shard->index,
               shard->coming_number);
    shard->coming = 0;
}

static void give_up(struct cn_host_shard *shard)
{
    cn_host_copy_forget(shard);
    cn_member_copy_failed(&shard->host->member, cn_host_clock_ms(), shard->index);
}

static void begin(struct cn_host_shard *shard, uint64_t disk, const struct cn_frame_copy *part)
{
    struct cn_host *host = shard->host;
    cn_host_copy_forget(shard);
    shard->coming = ++host->coming_number;
    shard->coming_disk = disk;
    shard->coming_number = part->number;
    shard->coming_offset = 0;
    cn_member_copy_begun(&host->member, shard->index);
    cn_host_step_add(cn_host_step_new(shard, CN_STEP_BEGIN));
}

static void on_copy(struct cn_host *host, uint64_t disk, const struct cn_frame_copy *part)
{
    struct cn_host_shard *shard = &host->shards[part->shard];
    if (host->member.shards[part->shard].role != CN_ROLE_COPYING || host->failed) {
        refuse(host, disk, CN_FRAME_COPIED, part->shard, part->number);
        return;
    }
    if (part->part == CN_COPY_PIECE && part->offset == 0)
        begin(shard, disk, part);
    bool known = shard->coming && shard->coming_disk == disk &&
                 shard->coming_number == part->number && shard->coming_offset == part->offset;
    if (part->part == CN_COPY_FAILED || !known || cn_host_is_full(shard)) { /* Q1 */
        give_up(shard);
        return;
    }
    bool ends = part->part == CN_COPY_END;
    struct cn_host_step *step = cn_host_step_new(shard, ends ? CN_STEP_END : CN_STEP_TAKE);
    cn_buf_append(&step->bytes, part->bytes, part->size);
    shard->coming_offset += part->size;
    step->offset = shard->coming_offset;
    step->copy = shard->coming;
    cn_host_step_add(step);
}

void cn_host_copy_stepped(struct cn_host_step *step)
{
    struct cn_host_shard *shard = step->shard;
    struct cn_host *host = shard->host;
    if (step->kind == CN_STEP_BEGIN || !shard->coming || shard->coming != step->copy)
        return;
    if (step->rc < 0) {
        give_up(shard);
    } else if (step->kind == CN_STEP_TAKE) {
        struct cn_frame_copy credit = {.shard = shard->index,
                                       .part = CN_COPY_PIECE,
                                       .number = shard->coming_number,
                                       .offset = step->offset};
        if (!send_part(host, shard->coming_disk, CN_FRAME_COPIED, &credit))
            give_up(shard); /* the link is gone, or has no room for 50 bytes */
    } else {
        shard->coming = 0;
        cn_member_copied(&host->member, cn_host_clock_ms(), shard->index, step->lsn);
    }
}

static void on_copied(struct cn_host *host, uint64_t disk, const struct cn_frame_copy *part)
{
    struct cn_host_copy *copy = host->shards[part->shard].going;
    if (!copy || copy->disk != disk || copy->number != part->number)
        return;
    if (part->part == CN_COPY_FAILED) {
        drop(copy);
        return;
    }
    pthread_mutex_lock(&copy->lock);
    if (part->offset > copy->acked)
        copy->acked = part->offset;
    pthread_cond_signal(&copy->moved);
    pthread_mutex_unlock(&copy->lock);
}

bool cn_host_copy_frame(struct cn_host *host, uint64_t disk, const struct cn_frame *frame)
{
    struct cn_frame_copy part;
    if (!cn_frame_get_copy(frame, &part) || part.shard >= host->shard_count)
        return false;
    if (frame->kind == CN_FRAME_COPY)
        on_copy(host, disk, &part);
    else
        on_copied(host, disk, &part);
    return true;
}
