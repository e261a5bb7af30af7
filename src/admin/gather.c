/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/gather.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"

enum { NODES_MS = 250, AGAIN_MS = 500, READY_MS = 2000 };

struct source {
    struct cn_list link;
    struct cn_other other;
    struct cn_relay_line *line; /* NULL: LOST */
    struct cn_buf part;         /* of a line */
    bool listening, was_listening, first, over;
    int64_t again_ms;
};

struct cn_gather_subject {
    struct cn_list link;
    uint64_t id;
    const struct cn_gather_ops *ops;
    void *data;
    struct cn_list sources;
    unsigned wanted;
    int64_t begun_ms;
    bool looked; /* its first sources are there */
    bool ready;
};

static int64_t now_ms(void)
{
    return (int64_t)(cn_clock_mono_ns(cn_clock_system()) / 1000000);
}

/* --- sources --------------------------------------------------------------------------------- */

static void lose(struct source *source)
{
    if (source->line)
        cn_relay_line_drop(source->line);
    source->line = NULL;
    source->listening = false;
    source->again_ms = now_ms() + AGAIN_MS;
    cn_buf_fini(&source->part);
}

static void source_free(struct source *source)
{
    lose(source);
    cn_list_remove(&source->link);
    cn_free(source);
}

static void subject_free(struct cn_gather *gather, struct cn_gather_subject *subject)
{
    while (!cn_list_empty(&subject->sources))
        source_free(CN_CONTAINER_OF(subject->sources.next, struct source, link));
    if (subject->ops->free)
        subject->ops->free(subject->data);
    cn_list_remove(&subject->link);
    gather->count--;
    cn_free(subject);
}

static void open_source(struct cn_gather *gather, struct cn_gather_subject *subject,
                        struct source *source)
{
    struct cn_buf body = {0};
    struct cn_control_call asked = {.method = subject->ops->method, .target = subject->ops->target};
    cn_guard_operator(&asked.who); /* who listens may: it was checked when he came */
    if (subject->ops->body)
        subject->ops->body(subject->data, &body);
    CN_ASSERT(body.size <= CN_RELAY_READY_MAX);
    source->line =
        cn_relay_line_new(gather->net, source->other.disk, cn_relay_waiter_wake, &gather->waiter);
    cn_relay_line_open(source->line, &asked, body.data, body.size, true);
    cn_buf_fini(&body);
}

/* H2 */
static void tell(struct cn_gather_subject *subject, const struct source *source, const char *format,
                 const char *why)
{
    char text[CN_ERR_TEXT_MAX + 128];
    snprintf(text, sizeof(text), format, source->other.name, why);
    subject->ops->note(subject->data, source->other.name, text);
}

static void take_line(struct cn_gather_subject *subject, struct source *source, const char *text,
                      size_t size)
{
    if (source->listening) {
        subject->ops->line(subject->data, source->other.name, text, size);
        return;
    }
    source->listening = true; /* the first says no more */
    if (source->was_listening)
        tell(subject, source, "node %s is heard again%s", "");
    else if (!source->first)
        tell(subject, source, "node %s has joined, and is heard%s", "");
    source->was_listening = true;
}

static void take_piece(struct cn_gather_subject *subject, struct source *source)
{
    const char *at = (const char *)source->line->piece, *end = at + source->line->piece_size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((newline ? newline : end) - at);
        if (source->part.size + size <= CN_GATHER_LINE_MAX) /* H1 */
            cn_buf_append(&source->part, at, size);
        if (newline) {
            take_line(subject, source, (const char *)source->part.data, source->part.size);
            cn_buf_clear(&source->part);
        }
        at = newline ? newline + 1 : end;
    }
}

static void look(struct cn_gather_subject *subject, struct source *source)
{
    while (source->line && !cn_relay_line_waits(source->line)) {
        struct cn_relay_line *line = source->line;
        bool bad = line->answer.head && line->answer.status != 200;
        const char *why = line->err.code ? line->err.text : bad ? "it refuses" : "it has stopped";
        if (!line->err.code && !bad)
            take_piece(subject, source);
        if (line->err.code || bad || line->answer.ended) {
            if (source->listening)
                tell(subject, source,
                     "node %s is not heard any more (%s); what happens there is missing", why);
            lose(source);
            source->over = true; /* H3: it was tried */
        } else {
            cn_relay_line_step(line, NULL, 0, true);
        }
    }
}

/* --- subjects -------------------------------------------------------------------------------- */

static struct source *find_source(struct cn_gather_subject *subject, uint64_t disk)
{
    CN_LIST_FOREACH(&subject->sources, node)
    {
        struct source *source = CN_CONTAINER_OF(node, struct source, link);
        if (source->other.disk == disk)
            return source;
    }
    return NULL;
}

/* One for each node that is part of the cluster. */
static void match_nodes(struct cn_gather *gather, struct cn_gather_subject *subject,
                        const struct cn_other *others, size_t count)
{
    CN_LIST_FOREACH(&subject->sources, node)
    {
        struct source *source = CN_CONTAINER_OF(node, struct source, link);
        size_t i = 0;
        while (i < count && others[i].disk != source->other.disk)
            i++;
        if (i < count)
            continue;
        if (source->listening)
            tell(subject, source, "node %s has left: it is not heard any more%s", "");
        source_free(source);
    }
    for (size_t i = 0; i < count; i++) {
        struct source *source = find_source(subject, others[i].disk);
        if (!source) {
            source = CN_NEW(struct source);
            source->other = others[i];
            source->first = !subject->looked;
            cn_list_push_back(&subject->sources, &source->link);
        }
        if (!source->line && now_ms() >= source->again_ms)
            open_source(gather, subject, source);
    }
    subject->looked = true;
}

static void check_ready(struct cn_gather *gather, struct cn_gather_subject *subject)
{
    bool ready = subject->looked;
    CN_LIST_FOREACH(&subject->sources, node)
    {
        const struct source *source = CN_CONTAINER_OF(node, struct source, link);
        ready &= source->listening || source->over;
    }
    if (subject->ready || (!ready && now_ms() - subject->begun_ms < READY_MS))
        return;
    subject->ready = true;
    if (subject->ops->ready)
        subject->ops->ready(subject->data);
    pthread_cond_broadcast(&gather->change);
}

/* Whether it goes on. */
static bool is_wanted(struct cn_gather_subject *subject)
{
    unsigned wanted = subject->ops->wanted ? subject->ops->wanted(subject->data) : 1;
    if (wanted && wanted != subject->wanted) {
        CN_LIST_FOREACH(&subject->sources, node)
        {
            struct source *source = CN_CONTAINER_OF(node, struct source, link);
            lose(source);
            source->again_ms = 0;
            source->first = true; /* nothing is said of it */
            source->was_listening = false;
        }
    }
    subject->wanted = wanted;
    return wanted;
}

static void look_at_all(struct cn_gather *gather, const struct cn_other *others, size_t count)
{
    CN_LIST_FOREACH(&gather->subjects, node)
    {
        struct cn_gather_subject *subject = CN_CONTAINER_OF(node, struct cn_gather_subject, link);
        if (!is_wanted(subject)) {
            subject_free(gather, subject);
            continue;
        }
        match_nodes(gather, subject, others, count);
        CN_LIST_FOREACH(&subject->sources, at)
        look(subject, CN_CONTAINER_OF(at, struct source, link));
        check_ready(gather, subject);
    }
}

static void gather_main(void *arg)
{
    struct cn_gather *gather = arg;
    const struct cn_node_calls *net = gather->net->others;
    struct cn_other others[CN_OTHERS_MAX];
    size_t count = 0;
    int64_t listed_ms = INT64_MIN;
    pthread_mutex_lock(&gather->lock);
    while (!gather->stopping) {
        if (now_ms() - NODES_MS >= listed_ms) {
            count = net->list(net->data, others, CN_OTHERS_MAX);
            listed_ms = now_ms();
        }
        look_at_all(gather, others, count);
        bool idle = cn_list_empty(&gather->subjects);
        if (idle && !gather->stopping) {
            pthread_cond_wait(&gather->change, &gather->lock);
            continue;
        }
        pthread_mutex_unlock(&gather->lock);
        cn_relay_waiter_wait(&gather->waiter);
        pthread_mutex_lock(&gather->lock);
    }
    while (!cn_list_empty(&gather->subjects))
        subject_free(gather,
                     CN_CONTAINER_OF(gather->subjects.next, struct cn_gather_subject, link));
    pthread_mutex_unlock(&gather->lock);
}

/* --- its life -------------------------------------------------------------------------------- */

void cn_gather_init(struct cn_gather *gather, const struct cn_relay_net *net)
{
    *gather = (struct cn_gather){.net = net};
    cn_list_init(&gather->subjects);
    cn_relay_waiter_init(&gather->waiter);
    pthread_mutex_init(&gather->lock, NULL);
    pthread_cond_init(&gather->change, NULL);
}

void cn_gather_fini(struct cn_gather *gather)
{
    pthread_mutex_lock(&gather->lock);
    bool running = gather->running;
    gather->stopping = true;
    pthread_cond_broadcast(&gather->change);
    pthread_mutex_unlock(&gather->lock);
    cn_relay_waiter_wake(&gather->waiter);
    if (running)
        uv_thread_join(&gather->thread);
    pthread_cond_destroy(&gather->change);
    pthread_mutex_destroy(&gather->lock);
    cn_relay_waiter_fini(&gather->waiter);
}

/* With the lock held. */
static struct cn_gather_subject *find(struct cn_gather *gather, uint64_t id)
{
    CN_LIST_FOREACH(&gather->subjects, node)
    {
        struct cn_gather_subject *subject = CN_CONTAINER_OF(node, struct cn_gather_subject, link);
        if (subject->id == id)
            return subject;
    }
    return NULL;
}

uint64_t cn_gather_add(struct cn_gather *gather, const struct cn_gather_ops *ops, void *data)
{
    uint64_t id = 0;
    if (!gather || !gather->net)
        return 0;
    pthread_mutex_lock(&gather->lock);
    if (!gather->running && !gather->stopping)
        gather->running = uv_thread_create(&gather->thread, gather_main, gather) == 0;
    if (gather->running && !gather->stopping && gather->count < CN_GATHER_SUBJECTS_MAX) {
        struct cn_gather_subject *subject = CN_NEW(struct cn_gather_subject);
        id = subject->id = ++gather->last_id;
        subject->ops = ops;
        subject->data = data;
        subject->begun_ms = now_ms();
        subject->wanted = ops->wanted ? ops->wanted(data) : 1;
        cn_list_init(&subject->sources);
        cn_list_push_back(&gather->subjects, &subject->link);
        gather->count++;
        pthread_cond_broadcast(&gather->change);
    }
    pthread_mutex_unlock(&gather->lock);
    cn_relay_waiter_wake(&gather->waiter);
    return id;
}

void cn_gather_remove(struct cn_gather *gather, uint64_t id)
{
    pthread_mutex_lock(&gather->lock);
    struct cn_gather_subject *subject = id ? find(gather, id) : NULL;
    if (subject)
        subject_free(gather, subject);
    pthread_mutex_unlock(&gather->lock);
}

void cn_gather_await(struct cn_gather *gather, uint64_t id)
{
    pthread_mutex_lock(&gather->lock);
    const struct cn_gather_subject *subject;
    while (!gather->stopping && (subject = find(gather, id)) && !subject->ready)
        pthread_cond_wait(&gather->change, &gather->lock); /* READY_MS at most */
    pthread_mutex_unlock(&gather->lock);
}
