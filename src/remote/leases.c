/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/leases.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "object/message.h"
#include "object/node.h"
#include "remote/private.h"
#include "worker/lent.h"

enum { UNSEEN_MS = 10000, LEASES_MAX = 1000000 };

struct row_key {
    uint64_t session;
    double number;
    struct cn_lease_owner owner;
};
static_assert(sizeof(struct row_key) == 16 + sizeof(struct cn_object_key) + 4, "no padding");

struct holder {
    uint64_t session, disk;
    uint64_t since_ms;
    bool seen; /* among those that are live */
};

struct ended {
    uint64_t session; /* the last of its disk */
};

void cn_leases_init(struct cn_leases *leases)
{
    cn_map_init(&leases->rows);
    cn_map_init(&leases->holders);
    cn_map_init(&leases->over);
}

static void free_values(struct cn_map *map)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(map, &cursor, &entry))
        cn_free(entry->value);
    cn_map_fini(map);
}

void cn_leases_fini(struct cn_leases *leases)
{
    cn_map_fini(&leases->rows); /* its values are numbers */
    free_values(&leases->holders);
    free_values(&leases->over);
}

size_t cn_leases_count(const struct cn_leases *leases)
{
    return leases->rows.count;
}

/* --- S2 -------------------------------------------------------------------------------------- */

static bool is_over(const struct cn_leases *leases, const struct cn_lease_holder *by)
{
    const struct ended *ended = cn_map_find(&leases->over, &by->disk, sizeof(by->disk));
    return by->session && ended && by->session <= ended->session;
}

static void mark_over(struct cn_leases *leases, uint64_t disk, uint64_t session)
{
    struct ended *ended = cn_map_find(&leases->over, &disk, sizeof(disk));
    if (!ended) {
        ended = CN_NEW(struct ended);
        (void)cn_map_set(&leases->over, &disk, sizeof(disk), ended);
    }
    if (ended->session < session)
        ended->session = session;
}

/* --- rows ------------------------------------------------------------------------------------ */

static void know_holder(struct cn_remote_lane *lane, const struct cn_lease_holder *by)
{
    struct cn_leases *leases = &lane->leases;
    if (cn_map_find(&leases->holders, &by->session, sizeof(by->session)))
        return;
    struct holder *holder = CN_NEW(struct holder);
    *holder = (struct holder){
        .session = by->session, .disk = by->disk, .since_ms = uv_now(lane->objects->loop)};
    for (unsigned i = 0; i < leases->live_count; i++)
        holder->seen = holder->seen || leases->live[i].id == by->session;
    (void)cn_map_set(&leases->holders, &by->session, sizeof(by->session), holder);
}

static void add(struct cn_remote_lane *lane, const struct cn_lease_holder *by,
                const struct cn_lease_owner *owner, double number, int count)
{
    struct cn_leases *leases = &lane->leases;
    struct row_key key = {by->session, number, *owner};
    if (!by->session || by->session == leases->own || is_over(leases, by))
        return;
    intptr_t before = (intptr_t)cn_map_take(&leases->rows, &key, sizeof(key));
    intptr_t now = before + count;
    if (now && leases->rows.count < LEASES_MAX) { /* S8 */
        know_holder(lane, by);
        (void)cn_map_set(&leases->rows, &key, sizeof(key), (void *)now);
        cn_remote_add(&lane->remote->numbers.leases, before ? 0 : 1);
    } else if (before) {
        cn_remote_add(&lane->remote->numbers.leases, -1);
    }
}

/* --- notes to owners ------------------------------------------------------------------------- */

static bool is_in_memory(const struct cn_remote_lane *lane, const struct cn_object_key *key)
{
    return cn_map_find(&lane->objects->objects, key, sizeof(*key)) != NULL;
}

/* To an owner of this lane. */
static void release_own(struct cn_remote_lane *lane, const struct cn_lease_owner *owner,
                        double number)
{
    uint8_t bytes[CN_LENT_NUMBER_SIZE];
    size_t size = cn_lent_number_write(number, bytes);
    if (owner->serial)
        cn_stubs_note(lane, owner->serial, "~release", bytes, size);
    else if (is_in_memory(lane, &owner->key)) /* S6 */
        cn_incoming_note(lane, &owner->key, "~release", bytes, size);
}

struct note {
    struct cn_message message;
    struct cn_lent_letter letter;
};

static void note_free(struct note *note)
{
    cn_message_fini(&note->message);
    cn_free(note->letter.bytes);
    cn_free(note);
}

static void note_done(struct cn_envelope *envelope)
{
    note_free(CN_CONTAINER_OF(cn_message_of(envelope), struct note, message));
}

static void letter_done(struct cn_lent_letter *letter, const struct cn_envelope *envelope,
                        const uint8_t *result, size_t size)
{
    (void)envelope, (void)result, (void)size; /* whoever has it may be gone: nothing is owed */
    note_free(CN_CONTAINER_OF(letter, struct note, letter));
}

static void letter_dropped(struct cn_lent_letter *letter)
{
    note_free(CN_CONTAINER_OF(letter, struct note, letter));
}

/* To any owner, of this node or another. */
static void send_note(struct cn_remote_lane *lane, const struct cn_lent_address *to,
                      const char *method, double number)
{
    uint8_t bytes[CN_LENT_NUMBER_SIZE];
    size_t size = cn_lent_number_write(number, bytes);
    struct note *note = CN_NEW(struct note);
    struct cn_call *call = &note->message.call;
    if (to->kind == CN_LENT_OBJECT) {
        note->message.method = cn_strdup(method);
        note->message.bytes = cn_memdup(bytes, size);
        note->message.size = call->size = size;
        call->kind = CN_CALL_OTHER;
        call->ns = to->ns;
        call->key = to->key;
        call->payload = &note->message;
        call->envelope.from = cn_desk_place(lane->objects->desk);
        call->envelope.on_done = note_done;
        call->envelope.drop = note_done;
        cn_call_send(call, NULL);
        return;
    }
    note->letter = (struct cn_lent_letter){.lane = to->lane,
                                           .serial = to->serial,
                                           .disk = to->disk,
                                           .life = to->life,
                                           .method = method,
                                           .bytes = cn_memdup(bytes, size),
                                           .size = size,
                                           .done = letter_done,
                                           .dropped = letter_dropped};
    if (to->kind != CN_LENT_WORKER || !lane->objects->send_lent ||
        !lane->objects->send_lent(lane->objects, &note->letter, NULL))
        note_free(note);
}

/* --- what is asked and answered -------------------------------------------------------------- */

enum cn_lease_verdict cn_leases_asked(struct cn_remote_lane *lane, const struct cn_lease_holder *by,
                                      const struct cn_lease_owner *owner, const char *method,
                                      const uint8_t *bytes, size_t size)
{
    struct cn_lent_note note = cn_lent_note_read(method, bytes, size);
    bool over = is_over(&lane->leases, by);
    if (note.kind == CN_LENT_NO_NOTE)
        return over ? CN_LEASE_REFUSED : CN_LEASE_PASS;
    if (over) /* S2 */
        return CN_LEASE_NOTED;
    add(lane, by, owner, note.number, note.kind == CN_LENT_RETAIN ? 1 : -1);
    if (note.kind == CN_LENT_LEND) {
        struct cn_lease_holder to = {note.disk, note.session};
        add(lane, &to, owner, note.number, 1);
        return CN_LEASE_NOTED;
    }
    return owner->serial || is_in_memory(lane, &owner->key) ? CN_LEASE_PASS
                                                            : CN_LEASE_NOTED; /* S6 */
}

static bool is_owner(const struct cn_remote_lane *lane, const struct cn_lent_address *address,
                     const struct cn_lease_owner *owner)
{
    if (address->kind == CN_LENT_OBJECT)
        return !owner->serial && memcmp(&address->key, &owner->key, sizeof(owner->key)) == 0;
    return address->kind == CN_LENT_WORKER && !address->disk && owner->serial &&
           address->serial == owner->serial && address->lane == lane->objects->index;
}

void cn_leases_given(struct cn_remote_lane *lane, const struct cn_lease_holder *to,
                     const struct cn_lease_owner *owner, const struct cn_lent_list *lent,
                     bool waits)
{
    char lend[64];
    snprintf(lend, sizeof(lend), "~lend@%llx.%llx", (unsigned long long)to->disk,
             (unsigned long long)to->session);
    for (size_t i = 0; i < lent->count; i++) {
        struct cn_lent_address address = cn_lent_parse(lane->objects->node, lent->items[i].address);
        double number = lent->items[i].number;
        bool own = is_owner(lane, &address, owner);
        if (own && waits)
            add(lane, to, owner, number, 1);
        else if (own)
            release_own(lane, owner, number); /* S7 */
        else if (!waits)
            send_note(lane, &address, "~release", number);
        else if (to->session)
            send_note(lane, &address, lend, number);
    }
}

void cn_leases_lend(struct cn_remote_lane *lane, const struct cn_lease_owner *owner, double number,
                    const struct cn_lease_holder *to)
{
    add(lane, to, owner, number, 1);
}

/* --- S1, S3 ---------------------------------------------------------------------------------- */

static bool is_listed(const struct cn_host_session *sessions, unsigned count, uint64_t id)
{
    for (unsigned i = 0; i < count; i++)
        if (sessions[i].id == id)
            return true;
    return false;
}

/* Another session of the same disk is live. */
static bool is_followed(const struct cn_host_session *sessions, unsigned count, uint64_t disk,
                        uint64_t id)
{
    for (unsigned i = 0; i < count; i++)
        if (sessions[i].disk == disk && sessions[i].id > id)
            return true;
    return false;
}

/* S3. What it runs may add rows of others, not of this session (S2). */
static void let_go(struct cn_remote_lane *lane, uint64_t session)
{
    struct cn_leases *leases = &lane->leases;
    struct row_key *keys = cn_alloc((leases->rows.count + 1) * sizeof(*keys));
    size_t cursor = 0, count = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&leases->rows, &cursor, &entry)) {
        memcpy(&keys[count], entry->key, sizeof(*keys));
        count += keys[count].session == session;
    }
    for (size_t i = 0; i < count; i++) {
        intptr_t held = (intptr_t)cn_map_take(&leases->rows, &keys[i], sizeof(keys[i]));
        cn_remote_add(&lane->remote->numbers.leases, -1);
        for (; held > 0; held--) {
            cn_remote_add(&lane->remote->numbers.let_go, 1);
            release_own(lane, &keys[i].owner, keys[i].number);
        }
    }
    cn_free(keys);
}

/* A holder that is over; 0: none is. */
static uint64_t find_over(struct cn_leases *leases)
{
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&leases->holders, &cursor, &entry)) {
        const struct holder *holder = entry->value;
        struct cn_lease_holder by = {holder->disk, holder->session};
        if (is_over(leases, &by))
            return holder->session;
    }
    return 0;
}

static void see_holders(struct cn_remote_lane *lane, const struct cn_host_session *sessions,
                        unsigned count)
{
    struct cn_leases *leases = &lane->leases;
    uint64_t now = uv_now(lane->objects->loop);
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&leases->holders, &cursor, &entry)) {
        struct holder *holder = entry->value;
        if (is_listed(sessions, count, holder->session))
            holder->seen = true;
        else if (holder->seen || now - holder->since_ms >= UNSEEN_MS ||
                 is_followed(sessions, count, holder->disk, holder->session))
            mark_over(leases, holder->disk, holder->session);
    }
}

void cn_leases_told(struct cn_remote_lane *lane, uint64_t own,
                    const struct cn_host_session *sessions, unsigned count)
{
    struct cn_leases *leases = &lane->leases;
    if (leases->own != own && leases->own)
        leases->term++; /* S4 */
    leases->own = own;
    if (!sessions)
        return;
    for (unsigned i = 0; i < leases->live_count; i++)
        if (!is_listed(sessions, count, leases->live[i].id))
            mark_over(leases, leases->live[i].disk, leases->live[i].id);
    leases->live_count = count < CN_CLUSTER_NODES_MAX ? count : CN_CLUSTER_NODES_MAX;
    memcpy(leases->live, sessions, leases->live_count * sizeof(*sessions));
    see_holders(lane, sessions, count);
    uint64_t over;
    while ((over = find_over(leases))) {
        cn_free(cn_map_take(&leases->holders, &over, sizeof(over)));
        let_go(lane, over);
    }
}
