/* SPDX-License-Identifier: Apache-2.0 */
/* object/shard.c - the set of shards: states, letters, answers. See shard.h.
 *
 * One lock guards all of it: changes are rare, and whoever serves calls does not come here. What a
 * lane does about a change is in object/lane_shard.c, and done without the lock.
 *
 * A change is over when every lane that has joined has answered it and, for those that let go, when
 * no thread holds the shard. Whoever brings that about finishes it. */
#include "object/shard.h"

#include "base/assert.h"
#include "base/mem.h"
#include "object/internal.h"
#include "object/node_db.h"
#include "object/restore.h"

struct joined {
    struct cn_object_lane *lane; /* NULL: it has not started, or has ended */
    struct cn_lane_shard *own;   /* owned: one for each shard; a late letter may still come */
};

struct cn_shards {
    struct cn_shards_options options;
    pthread_mutex_t lock;
    struct cn_shard *shards; /* options.count */
    struct joined *lanes;    /* by index */
    unsigned lane_count;
    void (*closed)(void *data, unsigned index);
    void *closed_data;
};

/* A callback to be made when the lock has been given back. */
struct told {
    cn_shard_done done;
    void *data;
    unsigned index;
    bool reached;
};

#define TO(state) (1u << (state))
static const unsigned moves[CN_SHARD_STATES] = {
    [CN_SHARD_CLOSED] = TO(CN_SHARD_OPENING),
    [CN_SHARD_OPENING] = TO(CN_SHARD_OPEN) | TO(CN_SHARD_STOPPING) | TO(CN_SHARD_CLOSING),
    [CN_SHARD_OPEN] = TO(CN_SHARD_STOPPING) | TO(CN_SHARD_CLOSING),
    [CN_SHARD_STOPPING] = TO(CN_SHARD_STOPPED) | TO(CN_SHARD_OPENING) | TO(CN_SHARD_CLOSING),
    [CN_SHARD_STOPPED] = TO(CN_SHARD_OPENING) | TO(CN_SHARD_CLOSING),
    [CN_SHARD_CLOSING] = TO(CN_SHARD_CLOSED),
};

static void set_state(struct cn_shard *shard, enum cn_shard_state state)
{
    CN_ASSERT(moves[shard->state] & TO(state));
    shard->state = state;
}

struct cn_shards *cn_shards_new(const struct cn_shards_options *options)
{
    CN_ASSERT(options->count > 0 && options->count <= CN_SHARD_COUNT_MAX);
    CN_ASSERT(options->number || options->count == 1);
    struct cn_shards *shards = CN_NEW(struct cn_shards);
    shards->options = *options;
    pthread_mutex_init(&shards->lock, NULL);
    shards->shards = cn_alloc_zero(options->count * sizeof(*shards->shards));
    for (unsigned i = 0; i < options->count; i++) {
        struct cn_shard *shard = &shards->shards[i];
        shard->shards = shards;
        shard->index = i;
        atomic_init(&shard->shut, true);
        cn_list_init(&shard->restores);
    }
    return shards;
}

/* Nobody knows its store any more. */
static void forget_store(struct cn_shard *shard)
{
    cn_node_db_close(shard->db);
    cn_restore_entries_free(&shard->restores);
    shard->db = NULL;
    shard->store = NULL;
    shard->history = NULL;
}

void cn_shards_free(struct cn_shards *shards)
{
    if (!shards)
        return;
    for (unsigned i = 0; i < shards->lane_count; i++) {
        CN_ASSERT(!shards->lanes[i].lane);
        cn_free(shards->lanes[i].own);
    }
    for (unsigned i = 0; i < shards->options.count; i++) {
        CN_ASSERT(!shards->shards[i].holds);
        forget_store(&shards->shards[i]);
    }
    cn_free(shards->lanes);
    cn_free(shards->shards);
    pthread_mutex_destroy(&shards->lock);
    cn_free(shards);
}

int cn_shards_single(struct cn_store *store, struct cn_history *history, struct cn_shards **out,
                     struct cn_err *err)
{
    struct cn_shards *shards = cn_shards_new(&(struct cn_shards_options){.count = 1});
    int rc = cn_shards_open(shards, 0, store, history, NULL, NULL, err);
    if (rc < 0)
        cn_shards_free(shards);
    else
        *out = shards;
    return rc;
}

void cn_shards_on_close(struct cn_shards *shards, void (*closed)(void *data, unsigned index),
                        void *data)
{
    pthread_mutex_lock(&shards->lock);
    shards->closed = closed;
    shards->closed_data = data;
    pthread_mutex_unlock(&shards->lock);
}

unsigned cn_shards_count(const struct cn_shards *shards)
{
    return shards->options.count;
}

enum cn_shard_state cn_shards_state(struct cn_shards *shards, unsigned index)
{
    CN_ASSERT(index < shards->options.count);
    pthread_mutex_lock(&shards->lock);
    enum cn_shard_state state = shards->shards[index].state;
    pthread_mutex_unlock(&shards->lock);
    return state;
}

/* --- changes --------------------------------------------------------------------------------- */

/* With the lock held, as all of these. Takes the callback that waits. */
static struct told take_done(struct cn_shard *shard, bool reached)
{
    struct told told = {shard->done, shard->done_data, shard->index, reached};
    shard->done = NULL;
    return told;
}

/* Without it. */
static void tell(const struct told *told)
{
    if (told->done)
        told->done(told->data, told->index, told->reached);
}

/* Ends the change if nothing is awaited any more. */
static struct told finish(struct cn_shard *shard)
{
    bool lets_go = shard->state == CN_SHARD_STOPPING || shard->state == CN_SHARD_CLOSING;
    if (shard->awaited || (lets_go && shard->holds))
        return (struct told){0};
    switch (shard->state) {
    case CN_SHARD_OPENING:
        set_state(shard, CN_SHARD_OPEN);
        break;
    case CN_SHARD_STOPPING:
        set_state(shard, CN_SHARD_STOPPED);
        break;
    case CN_SHARD_CLOSING:
        if (shard->shards->closed)
            shard->shards->closed(shard->shards->closed_data, shard->index);
        set_state(shard, CN_SHARD_CLOSED);
        forget_store(shard);
        break;
    default:
        return (struct told){0};
    }
    return take_done(shard, true);
}

static void deliver_letter(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_lane_shard *own = CN_CONTAINER_OF(mail, struct cn_lane_shard, letter);
    struct cn_shards *shards = own->shard->shards;
    pthread_mutex_lock(&shards->lock);
    own->posted = false;
    enum cn_shard_state state = own->shard->state;
    uint64_t change = own->shard->change;
    bool joined = shards->lanes[own->lane->index].lane != NULL;
    pthread_mutex_unlock(&shards->lock);
    if (joined)
        cn_lane_shard_look(own, state, change);
}

/* Asks every lane to look. */
static void post_letters(struct cn_shard *shard)
{
    struct cn_shards *shards = shard->shards;
    shard->change++;
    shard->awaited = 0;
    for (unsigned i = 0; i < shards->lane_count; i++) {
        struct joined *joined = &shards->lanes[i];
        if (!joined->lane)
            continue;
        struct cn_lane_shard *own = &joined->own[shard->index];
        own->answered = false;
        shard->awaited++;
        if (own->posted)
            continue;
        own->letter.deliver = deliver_letter;
        own->posted = cn_mailbox_send(joined->lane->mailbox, &own->letter);
        CN_ASSERT(own->posted); /* a lane leaves before its mailbox closes */
    }
}

/* Begins a change, if the table has it from where the shard is. */
static void change_to(struct cn_shards *shards, unsigned index, enum cn_shard_state state,
                      cn_shard_done done, void *data)
{
    CN_ASSERT(index < shards->options.count);
    struct told overtaken = {0}, over = {done, data, index, false};
    pthread_mutex_lock(&shards->lock);
    struct cn_shard *shard = &shards->shards[index];
    if (moves[shard->state] & TO(state) && shard->state != CN_SHARD_CLOSED) {
        if (state == CN_SHARD_CLOSING)
            atomic_store(&shard->shut, true); /* S2 */
        overtaken = take_done(shard, false);
        set_state(shard, state);
        shard->done = done;
        shard->done_data = data;
        post_letters(shard);
        over = finish(shard);
    }
    pthread_mutex_unlock(&shards->lock);
    tell(&overtaken);
    tell(&over);
}

int cn_shards_open(struct cn_shards *shards, unsigned index, struct cn_store *store,
                   struct cn_history *history, cn_shard_done done, void *data, struct cn_err *err)
{
    CN_ASSERT(index < shards->options.count && store);
    struct cn_shard *shard = &shards->shards[index];
    struct cn_list restores;
    struct cn_node_db *db;
    cn_list_init(&restores);
    int rc = cn_node_db_open(store, shards, &db, err);
    if (rc < 0)
        return rc;
    rc = cn_restore_read(db, &restores, err);
    struct told over = {0};
    pthread_mutex_lock(&shards->lock);
    if (rc == 0 && shard->state != CN_SHARD_CLOSED)
        rc = cn_err_set(err, CN_ELOCKED, "shard %u is open already", index);
    if (rc == 0) {
        shard->store = store;
        shard->history = history;
        shard->db = db;
        cn_list_splice(&shard->restores, &restores);
        atomic_store(&shard->shut, false);
        set_state(shard, CN_SHARD_OPENING);
        shard->done = done;
        shard->done_data = data;
        post_letters(shard);
        over = finish(shard);
    }
    pthread_mutex_unlock(&shards->lock);
    if (rc < 0) {
        cn_restore_entries_free(&restores);
        cn_node_db_close(db);
    }
    tell(&over);
    return rc;
}

unsigned cn_shards_turn(struct cn_shards *shards, unsigned index)
{
    return atomic_fetch_add(&shards->shards[index].stream_turn, 1);
}

bool cn_shards_streams(struct cn_shards *shards, unsigned index, unsigned turn)
{
    return atomic_load(&shards->shards[index].streams[turn & 1]) > 0;
}

void cn_shards_stop(struct cn_shards *shards, unsigned index, cn_shard_done done, void *data)
{
    change_to(shards, index, CN_SHARD_STOPPING, done, data);
}

void cn_shards_resume(struct cn_shards *shards, unsigned index, cn_shard_done done, void *data)
{
    change_to(shards, index, CN_SHARD_OPENING, done, data);
}

void cn_shards_close(struct cn_shards *shards, unsigned index, cn_shard_done done, void *data)
{
    change_to(shards, index, CN_SHARD_CLOSING, done, data);
}

void cn_shards_wake(struct cn_shards *shards)
{
    pthread_mutex_lock(&shards->lock);
    for (unsigned i = 0; i < shards->options.count; i++) {
        if (shards->shards[i].store)
            cn_store_wake(shards->shards[i].store);
    }
    pthread_mutex_unlock(&shards->lock);
}

/* --- other threads --------------------------------------------------------------------------- */

struct cn_shard *cn_shards_hold_index(struct cn_shards *shards, unsigned index)
{
    CN_ASSERT(index < shards->options.count);
    struct cn_shard *shard = &shards->shards[index];
    pthread_mutex_lock(&shards->lock);
    bool here = shard->state == CN_SHARD_OPENING || shard->state == CN_SHARD_OPEN;
    if (here)
        shard->holds++;
    pthread_mutex_unlock(&shards->lock);
    return here ? shard : NULL;
}

int cn_shards_hold(struct cn_shards *shards, const struct cn_object_key *key,
                   struct cn_shard **shard, struct cn_err *err)
{
    unsigned index = cn_shard_index(key, shards->options.count);
    *shard = cn_shards_hold_index(shards, index);
    return *shard ? 0 : cn_err_set(err, CN_ECLOSED, "%s", CN_SHARD_AWAY);
}

uint64_t cn_shards_mark(struct cn_shards *shards, unsigned index)
{
    CN_ASSERT(index < shards->options.count);
    const struct cn_shard *shard = &shards->shards[index];
    pthread_mutex_lock(&shards->lock);
    bool here = shard->state == CN_SHARD_OPENING || shard->state == CN_SHARD_OPEN;
    uint64_t mark = here ? shard->change + 1 : 0;
    pthread_mutex_unlock(&shards->lock);
    return mark;
}

void cn_shard_hold_more(struct cn_shard *shard)
{
    pthread_mutex_lock(&shard->shards->lock);
    CN_ASSERT(shard->store);
    shard->holds++;
    pthread_mutex_unlock(&shard->shards->lock);
}

void cn_shard_release(struct cn_shard *shard)
{
    struct cn_shards *shards = shard->shards;
    struct told over = {0};
    pthread_mutex_lock(&shards->lock);
    CN_ASSERT(shard->holds > 0);
    if (--shard->holds == 0)
        over = finish(shard);
    pthread_mutex_unlock(&shards->lock);
    tell(&over);
}

bool cn_shards_numbered(const struct cn_shards *shards)
{
    return shards->options.number;
}

int cn_shards_number(struct cn_shards *shards, const char *name, uint32_t *namespace_id,
                     struct cn_err *err)
{
    if (shards->options.number)
        return shards->options.number(shards->options.data, name, namespace_id, err);
    struct cn_shard *only = cn_shards_hold_index(shards, 0);
    if (!only)
        return cn_err_set(err, CN_ECLOSED, "the store is closed");
    int rc = cn_store_namespace(only->store, name, namespace_id, err);
    cn_shard_release(only);
    return rc;
}

int cn_shards_named(struct cn_shards *shards, uint32_t namespace_id, const char *name,
                    struct cn_err *err)
{
    CN_ASSERT(shards->options.number);
    return shards->options.named
               ? shards->options.named(shards->options.data, namespace_id, name, err)
               : 0;
}

/* --- lanes ----------------------------------------------------------------------------------- */

static struct joined *make_room(struct cn_shards *shards, unsigned index)
{
    if (index >= shards->lane_count) {
        shards->lanes = cn_realloc(shards->lanes, (index + 1) * sizeof(*shards->lanes));
        for (unsigned i = shards->lane_count; i <= index; i++)
            shards->lanes[i] = (struct joined){0};
        shards->lane_count = index + 1;
    }
    return &shards->lanes[index];
}

void cn_shards_join(struct cn_shards *shards, struct cn_object_lane *lane)
{
    unsigned count = shards->options.count;
    pthread_mutex_lock(&shards->lock);
    struct joined *joined = make_room(shards, lane->index);
    CN_ASSERT(!joined->lane);
    cn_free(joined->own); /* of a lane before, whose mailbox has closed */
    struct cn_lane_shard *own = joined->own = cn_alloc_zero(count * sizeof(*own));
    joined->lane = lane;
    for (unsigned i = 0; i < count; i++) {
        own[i].answered = true; /* what came before it was not asked */
        cn_lane_shard_init(&own[i], &shards->shards[i], lane);
        own[i].may_take = shards->options.may_take;
        own[i].may_take_data = shards->options.data;
    }
    pthread_mutex_unlock(&shards->lock);
    lane->shards = own;
    lane->shard_count = count;
    for (unsigned i = 0; i < count; i++) {
        pthread_mutex_lock(&shards->lock);
        enum cn_shard_state state = shards->shards[i].state;
        uint64_t change = shards->shards[i].change;
        pthread_mutex_unlock(&shards->lock);
        if (state != CN_SHARD_CLOSED && state != CN_SHARD_CLOSING)
            cn_lane_shard_look(&own[i], state, change);
    }
}

void cn_shard_take_restores(struct cn_shard *shard, struct cn_object_lane *lane,
                            struct cn_list *mine)
{
    pthread_mutex_lock(&shard->shards->lock);
    CN_LIST_FOREACH(&shard->restores, node)
    {
        const struct cn_restore_entry *entry = CN_CONTAINER_OF(node, struct cn_restore_entry, link);
        if (cn_node_owner_index(lane->node, &entry->key) != lane->index)
            continue;
        cn_list_remove(node);
        cn_list_push_back(mine, node);
    }
    pthread_mutex_unlock(&shard->shards->lock);
}

void cn_lane_shard_answer(struct cn_lane_shard *own, uint64_t change)
{
    struct cn_shard *shard = own->shard;
    struct told over = {0};
    pthread_mutex_lock(&shard->shards->lock);
    if (shard->change == change && !own->answered) {
        own->answered = true;
        CN_ASSERT(shard->awaited > 0);
        shard->awaited--;
        over = finish(shard);
    }
    pthread_mutex_unlock(&shard->shards->lock);
    tell(&over);
}

void cn_shards_leave(struct cn_shards *shards, struct cn_object_lane *lane)
{
    pthread_mutex_lock(&shards->lock);
    CN_ASSERT(shards->lanes[lane->index].lane == lane);
    shards->lanes[lane->index].lane = NULL;
    pthread_mutex_unlock(&shards->lock);
    for (unsigned i = 0; i < shards->options.count; i++) {
        struct cn_shard *shard = &shards->shards[i];
        struct told over = {0};
        pthread_mutex_lock(&shards->lock);
        struct cn_lane_shard *own = &lane->shards[i];
        if (!own->answered) {
            own->answered = true;
            shard->awaited--;
            over = finish(shard);
        }
        pthread_mutex_unlock(&shards->lock);
        tell(&over);
    }
}
