/* SPDX-License-Identifier: Apache-2.0 */
/* shard/host_seen.c - what the member has seen of the engine, kept with the disk (H10, C15).
 *
 * A thread that waits for files, so that the host's does not. `wanted` is the newest; what came
 * between two writes is left out. */
#include "base/assert.h"
#include "base/cond.h"
#include "base/mem.h"
#include "shard/host_private.h"

enum { TIDY_MS = 60000 };

struct written {
    struct cn_mail mail;
    struct cn_engine_seen seen;
    int rc;
    struct cn_err err;
};

static void on_written(struct cn_mail *mail, void *data)
{
    struct cn_host *host = data;
    struct written *written = CN_CONTAINER_OF(mail, struct written, mail);
    if (written->rc < 0)
        cn_host_fail(host, &written->err); /* H7 */
    else
        cn_member_remembered(&host->member, cn_host_clock_ms(), &written->seen);
    cn_free(written);
    cn_host_after(host);
}

/* With the lock, which it lets go of meanwhile. */
static void write_wanted(struct cn_host *host)
{
    const struct cn_host_disk *disk = host->config.disk_hands;
    struct written *written = CN_NEW(struct written);
    struct cn_engine_seen seen = host->seen.wanted;
    host->seen.waits = false;
    pthread_mutex_unlock(&host->seen.lock);
    *written = (struct written){.mail.deliver = on_written, .seen = seen};
    written->rc = disk->remember ? disk->remember(disk->data, &seen, &written->err) : 0;
    pthread_mutex_lock(&host->seen.lock);
    host->seen.busy = host->seen.waits;
    if (!cn_mailbox_send(&host->mailbox, &written->mail))
        cn_free(written); /* the host has ended */
}

/* With the lock, which it lets go of meanwhile. */
static void tidy(struct cn_host *host)
{
    const struct cn_host_disk *disk = host->config.disk_hands;
    pthread_mutex_unlock(&host->seen.lock);
    if (disk->tidy)
        disk->tidy(disk->data);
    pthread_mutex_lock(&host->seen.lock);
}

/* Tidies by the clock, not when it is quiet: a node that is written to never is. */
static void *keep(void *data)
{
    struct cn_host *host = data;
    int64_t every_ms = host->config.tidy_ms ? host->config.tidy_ms : TIDY_MS;
    int64_t tidy_at_ms = cn_host_clock_ms() + every_ms;
    pthread_mutex_lock(&host->seen.lock);
    while (!host->seen.ending || host->seen.waits) {
        int64_t left_ms = tidy_at_ms - cn_host_clock_ms();
        if (host->seen.waits)
            write_wanted(host);
        else if (left_ms > 0)
            (void)cn_cond_wait_ms(&host->seen.changed, &host->seen.lock, left_ms);
        if (left_ms > 0 || host->seen.ending)
            continue;
        tidy(host);
        tidy_at_ms = cn_host_clock_ms() + every_ms;
    }
    pthread_mutex_unlock(&host->seen.lock);
    return NULL;
}

void cn_host_seen_put(struct cn_host *host, const struct cn_engine_seen *seen)
{
    pthread_mutex_lock(&host->seen.lock);
    host->seen.wanted = *seen;
    host->seen.waits = host->seen.busy = true;
    pthread_cond_signal(&host->seen.changed);
    pthread_mutex_unlock(&host->seen.lock);
}

bool cn_host_seen_is_written(struct cn_host *host)
{
    pthread_mutex_lock(&host->seen.lock);
    bool busy = host->seen.busy;
    pthread_mutex_unlock(&host->seen.lock);
    return !busy;
}

void cn_host_seen_init(struct cn_host *host)
{
    pthread_mutex_init(&host->seen.lock, NULL);
    cn_cond_init(&host->seen.changed);
}

int cn_host_seen_start(struct cn_host *host, struct cn_err *err)
{
    int rc = pthread_create(&host->seen.thread, NULL, keep, host);
    host->seen.started = rc == 0;
    return rc ? cn_err_errno(err, rc, "cannot start a thread of the cluster") : 0;
}

void cn_host_seen_end(struct cn_host *host)
{
    pthread_mutex_lock(&host->seen.lock);
    host->seen.ending = true;
    pthread_cond_signal(&host->seen.changed);
    pthread_mutex_unlock(&host->seen.lock);
    if (host->seen.started)
        pthread_join(host->seen.thread, NULL);
    pthread_mutex_destroy(&host->seen.lock);
    pthread_cond_destroy(&host->seen.changed);
}
