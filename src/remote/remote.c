/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/stream.h"
#include "net/tls.h"
#include "object/node.h"
#include "remote/private.h"
#include "worker/dispatch.h"
#include "worker/lane.h"

/* --- mail of the host's thread --------------------------------------------------------------- */

struct letter {
    struct cn_mail mail;
    struct cn_object_lane *lane;
    bool breaks, told;
    uint64_t disk;                    /* that is silent */
    uint64_t own;                     /* told: as cn_remote_sessions() has them */
    struct cn_host_session *sessions; /* owned */
    unsigned session_count;
    struct cn_stream_moved moved;
    uint8_t *body; /* owned */
    size_t size;
};

static void letter_free(struct letter *letter)
{
    cn_free(letter->body);
    cn_free(letter->sessions);
    cn_free(letter);
}

static bool is_among(uint64_t disk, const struct cn_host_session *sessions, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (sessions[i].disk == disk)
            return true;
    }
    return false;
}

/* W3 of sockets.h */
static void break_ended(struct cn_remote_lane *lane, const struct cn_host_session *sessions,
                        unsigned count)
{
    struct cn_host_session before[CN_CLUSTER_NODES_MAX];
    unsigned before_count = lane->told_count;
    memcpy(before, lane->told, before_count * sizeof(*before));
    memcpy(lane->told, sessions, count * sizeof(*sessions));
    lane->told_count = count;
    for (unsigned i = 0; i < before_count; i++) {
        if (!is_among(before[i].disk, sessions, count))
            cn_remote_sockets_break(lane, before[i].disk);
    }
}

/* T10, S1, S4 */
static void tell(struct cn_remote_lane *lane, uint64_t own, const struct cn_host_session *sessions,
                 unsigned count)
{
    uint32_t term = lane->leases.term;
    cn_pipes_session(lane->pipes, own);
    cn_leases_told(lane, own, sessions, count);
    if (sessions)
        break_ended(lane, sessions, count);
    if (lane->worker && lane->leases.term != term)
        lane->worker->stub_term = lane->leases.term;
}

static void deliver(struct cn_mail *mail, void *data)
{
    struct letter *letter = CN_CONTAINER_OF(mail, struct letter, mail);
    struct cn_remote_lane *lane = cn_remote_lane_of(letter->lane);
    (void)data;
    if (letter->told) {
        if (lane->pipes)
            tell(lane, letter->own, letter->sessions, letter->session_count);
    } else if (letter->breaks && lane->pipes) {
        cn_pipes_break(lane->pipes, letter->disk);
        cn_remote_sockets_break(lane, letter->disk);
    } else if (!letter->breaks && lane->pipes) {
        cn_pipes_accept(lane->pipes, &letter->moved, letter->body, letter->size);
    } else if (!letter->breaks) {
        cn_stream_moved_drop(&letter->moved);
    }
    letter_free(letter);
}

/* False: the lane is not open, or closes. */
static bool post(struct cn_remote *remote, unsigned index, struct letter *letter)
{
    pthread_mutex_lock(&remote->lock);
    struct cn_remote_lane *lane = remote->lanes[index];
    letter->mail.deliver = deliver;
    if (lane)
        letter->lane = lane->objects;
    bool sent = lane && cn_mailbox_send(lane->objects->mailbox, &letter->mail);
    pthread_mutex_unlock(&remote->lock);
    return sent;
}

void cn_remote_pipe(struct cn_remote *remote, struct cn_stream_moved *moved, const uint8_t *body,
                    size_t size)
{
    int index = cn_pipe_hello_lane(body, size, remote->options.lane_count);
    if (index < 0) {
        cn_stream_moved_drop(moved);
        return;
    }
    struct letter *letter = CN_NEW(struct letter);
    letter->moved = *moved;
    letter->body = cn_memdup(body, size);
    letter->size = size;
    if (post(remote, (unsigned)index, letter))
        return;
    cn_stream_moved_drop(moved);
    letter_free(letter);
}

void cn_remote_silent(struct cn_remote *remote, uint64_t disk)
{
    for (unsigned i = 0; i < remote->options.lane_count; i++) {
        struct letter *letter = CN_NEW(struct letter);
        letter->breaks = true;
        letter->disk = disk;
        if (!post(remote, i, letter))
            letter_free(letter);
    }
}

void cn_remote_sessions(struct cn_remote *remote, uint64_t own,
                        const struct cn_host_session *sessions, unsigned count)
{
    pthread_mutex_lock(&remote->lock);
    remote->own = own;
    remote->told = remote->told || sessions;
    if (sessions) {
        memcpy(remote->sessions, sessions, count * sizeof(*sessions));
        remote->session_count = count;
    }
    pthread_mutex_unlock(&remote->lock);
    for (unsigned i = 0; i < remote->options.lane_count; i++) {
        struct letter *letter = CN_NEW(struct letter);
        letter->told = true;
        letter->own = own;
        letter->session_count = count;
        if (sessions)
            letter->sessions = cn_memdup(sessions, count * sizeof(*sessions));
        if (!post(remote, i, letter))
            letter_free(letter);
    }
}

/* --- lanes ----------------------------------------------------------------------------------- */

static void carry(struct cn_carrier *carrier, struct cn_envelope *envelope)
{
    struct cn_remote_lane *lane = CN_CONTAINER_OF(carrier, struct cn_remote_lane, carrier);
    if (envelope->to.disk)
        cn_stubs_carry(lane, cn_dispatch_of(envelope));
    else
        cn_outgoing_carry(lane, cn_call_of(envelope));
}

void cn_remote_lane_open(struct cn_remote *remote, struct cn_object_lane *objects)
{
    cn_loop_assert_owner(objects->loop);
    CN_ASSERT(!objects->desk->carrier && objects->index < remote->options.lane_count);
    const struct cn_remote_options *options = &remote->options;
    struct cn_remote_lane *lane = CN_NEW(struct cn_remote_lane);
    struct cn_pipes_config config = {.disk = options->disk,
                                     .life = options->life,
                                     .tls = remote->tls,
                                     .lane = objects->index,
                                     .lane_count = options->lane_count,
                                     .budget = &remote->budget,
                                     .hooks = {lane, NULL, cn_incoming_asked, cn_incoming_gone}};
    memcpy(config.cluster, options->cluster, sizeof(config.cluster));
    lane->remote = remote;
    lane->objects = objects;
    lane->carrier.carry = carry;
    config.hooks.address = cn_remote_address;
    cn_map_init(&lane->askers);
    cn_leases_init(&lane->leases);
    cn_outgoing_open(lane);
    cn_list_init(&lane->far_routes);
    uv_timer_init(objects->loop, &lane->timer);
    uv_timer_init(objects->loop, &lane->far_timer);
    lane->pipes = cn_pipes_new(objects->loop, &config);
    objects->desk->carrier = &lane->carrier;
    pthread_mutex_lock(&remote->lock);
    remote->lanes[objects->index] = lane;
    tell(lane, remote->own, remote->told ? remote->sessions : NULL, remote->session_count);
    pthread_mutex_unlock(&remote->lock);
}

bool cn_remote_address(void *data, uint64_t disk, char address[CN_LINK_ADDRESS_MAX + 1])
{
    const struct cn_remote_options *options =
        &((const struct cn_remote_lane *)data)->remote->options;
    return options->address(options->data, disk, address);
}

void cn_remote_lane_close(struct cn_object_lane *objects)
{
    struct cn_remote_lane *lane = cn_remote_lane_of(objects);
    struct cn_remote *remote = lane->remote;
    struct cn_pipes *pipes = lane->pipes;
    cn_loop_assert_owner(objects->loop);
    pthread_mutex_lock(&remote->lock);
    remote->lanes[objects->index] = NULL;
    pthread_mutex_unlock(&remote->lock);
    lane->pipes = NULL;
    cn_outgoing_close(lane);
    cn_remote_sockets_close(lane);
    cn_pipes_free(pipes, NULL, NULL); /* ends what was sent */
    uv_close((uv_handle_t *)&lane->timer, NULL);
    uv_close((uv_handle_t *)&lane->far_timer, NULL);
}

void cn_remote_lane_free(struct cn_object_lane *objects)
{
    struct cn_remote_lane *lane = cn_remote_lane_of(objects);
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&lane->askers, &cursor, &entry))
        cn_free(entry->value);
    cn_map_fini(&lane->askers);
    cn_leases_fini(&lane->leases);
    cn_free(lane->ways);
    cn_free(lane);
    objects->desk->carrier = NULL;
}

static uint64_t load(const atomic_uint_least64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

void cn_remote_count(struct cn_remote *remote, struct cn_remote_counts *counts)
{
    const struct cn_remote_numbers *numbers = &remote->numbers;
    *counts = (struct cn_remote_counts){.sent = load(&numbers->sent),
                                        .served = load(&numbers->served),
                                        .refused = load(&numbers->refused),
                                        .lost = load(&numbers->lost),
                                        .given_up = load(&numbers->given_up),
                                        .held = load(&numbers->held),
                                        .leases = load(&numbers->leases),
                                        .let_go = load(&numbers->let_go)};
}

/* --- the node -------------------------------------------------------------------------------- */

int cn_remote_new(const struct cn_remote_options *options, struct cn_remote **result,
                  struct cn_err *err)
{
    struct cn_remote *remote = CN_NEW(struct cn_remote);
    remote->options = *options;
    int rc = cn_tls_context_new_keyed(options->key, &remote->tls, err);
    if (rc < 0) {
        cn_free(remote);
        return rc;
    }
    if (!remote->options.wait_ms)
        remote->options.wait_ms = 5000;
    if (!remote->options.held_max)
        remote->options.held_max = 10000;
    if (!remote->options.held_bytes_max)
        remote->options.held_bytes_max = 64u << 20;
    pthread_mutex_init(&remote->lock, NULL);
    pthread_mutex_init(&remote->door_lock, NULL);
    remote->lanes = cn_alloc_zero(options->lane_count * sizeof(struct cn_remote_lane *));
    *result = remote;
    return 0;
}

void cn_remote_free(struct cn_remote *remote)
{
    if (!remote)
        return;
    for (unsigned i = 0; i < remote->options.lane_count; i++)
        CN_ASSERT(!remote->lanes[i]);
    CN_ASSERT(!remote->door);
    pthread_mutex_destroy(&remote->door_lock);
    pthread_mutex_destroy(&remote->lock);
    cn_tls_context_unref(remote->tls);
    cn_free(remote->lanes);
    cn_free(remote);
}
