/* SPDX-License-Identifier: Apache-2.0 */
/* A distributed lock that somebody holds for a limited time, and the ledger that it protects.
 *
 * Who holds it is in storage, never only in memory: an object that leaves memory and comes back
 * still knows it. An alarm frees it when its time is up. Every grant has a fencing token, larger
 * than all before it: whoever acts on the locked thing passes it along, and the thing refuses a
 * token older than one it has seen.
 *
 *     const grant = await env.LOCKS.getByName("door").acquire("ada", 10_000, 5_000);
 *     await env.LEDGERS.getByName("door").write({ token: grant.token, owner: "ada", text: "..." });
 *
 * Teaches: events that are answered later (those who wait do so inside their call), timers, null.
 */
#include <cairn.h>
#include <stdlib.h>
#include <string.h>

#define WAITERS_MAX 100

struct grant {
    const char *owner;
    int64_t token, expires;
};

/* A call of acquire() that waits; its arguments are good until it is answered. */
struct waiter {
    struct waiter *next;
    cairn_event *event;
    const char *owner;
    int64_t ttl, timer;
};

struct lock {
    struct waiter *first;
    int count;
};

static const cairn_value *argument(cairn_event *event, size_t index)
{
    return cairn->value_at(cairn->event_arguments(event), index);
}

/* --- storage ---------------------------------------------------------------------------------- */

static void build(cairn_builder *out, const struct grant *grant)
{
    cairn->build_object(out);
    cairn->build_name(out, "owner");
    cairn->build_text(out, grant->owner, strlen(grant->owner));
    cairn->build_name(out, "token");
    cairn->build_int(out, grant->token);
    cairn->build_name(out, "expiresAt");
    cairn->build_int(out, grant->expires);
    cairn->build_end(out);
}

/* 1: somebody holds it, or did until the alarm, which may be late. */
static int stored(cairn_object *object, struct grant *grant)
{
    const cairn_value *value = cairn->kv_get(object, "holder");
    *grant = (struct grant){cairn->value_text(cairn->value_get(value, "owner"), NULL), 0, 0};
    cairn->value_int(cairn->value_get(value, "token"), &grant->token);
    cairn->value_int(cairn->value_get(value, "expiresAt"), &grant->expires);
    return grant->owner != NULL;
}

/* A holder whose time is up is none. */
static int holder(cairn_object *object, struct grant *grant)
{
    return stored(object, grant) && grant->expires > cairn->now(object);
}

static int keep(cairn_object *object, const struct grant *grant)
{
    cairn_builder *kept = cairn->builder(object);
    build(kept, grant);
    int rc = cairn->kv_put(object, "holder", kept);
    return rc < 0 ? rc : cairn->alarm_set(object, grant->expires);
}

/* Gives it to whoever asks, and builds the answer. */
static int give(cairn_object *object, const char *owner, int64_t ttl, cairn_builder *out)
{
    struct grant grant = {owner, 0, cairn->now(object) + ttl};
    cairn->value_int(cairn->kv_get(object, "token"), &grant.token);
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, ++grant.token);
    int rc = cairn->kv_put(object, "token", kept);
    if (rc == 0)
        rc = keep(object, &grant);
    build(out, &grant);
    return rc;
}

/* --- the lock --------------------------------------------------------------------------------- */

static int create(cairn_object *object, void **instance)
{
    *instance = calloc(1, sizeof(struct lock));
    return *instance ? 0 : cairn->error(object, NULL, "there is no memory left");
}

static void destroy(cairn_object *object, void *instance)
{
    struct lock *lock = instance;
    while (lock && lock->first) {
        struct waiter *next = lock->first->next;
        free(lock->first); /* its event has failed already */
        lock->first = next;
    }
    free(lock);
}

static void leave_queue(struct lock *lock, struct waiter *waiter)
{
    struct waiter **at = &lock->first;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    lock->count--;
}

static void give_up(cairn_object *object, void *instance, void *data)
{
    struct waiter *waiter = data;
    leave_queue(instance, waiter);
    cairn->build_null(cairn->event_result(waiter->event));
    cairn->event_answer(waiter->event);
    free(waiter);
}

/* First come, first served. */
static int acquire(cairn_object *object, struct lock *lock, cairn_event *event)
{
    struct grant grant;
    int64_t ttl = 0, wait = 0;
    const char *owner = cairn->value_text(argument(event, 0), NULL);
    cairn->value_int(argument(event, 1), &ttl);
    cairn->value_int(argument(event, 2), &wait);
    if (!owner)
        return cairn->error(object, "TypeError", "acquire(owner, ttlMs, waitMs) needs an owner");
    if (!holder(object, &grant) && !lock->first)
        return give(object, owner, ttl, cairn->event_result(event));
    if (wait <= 0 || lock->count >= WAITERS_MAX) {
        cairn->build_null(cairn->event_result(event));
        return 0;
    }
    struct waiter *waiter = malloc(sizeof(*waiter)), **last = &lock->first;
    if (!waiter)
        return cairn->error(object, NULL, "there is no memory left");
    *waiter = (struct waiter){NULL, event, owner, ttl, 0};
    waiter->timer = cairn->timer_start(object, wait, give_up, waiter);
    if (waiter->timer < 0) {
        free(waiter);
        return CAIRN_ERROR;
    }
    while (*last)
        last = &(*last)->next;
    *last = waiter;
    lock->count++;
    return CAIRN_LATER;
}

/* The next one gets it. */
static int set_free(cairn_object *object, struct lock *lock)
{
    struct waiter *next = lock->first;
    int rc = cairn->kv_delete(object, "holder");
    if (rc >= 0)
        rc = cairn->alarm_delete(object);
    if (rc < 0 || !next)
        return rc;
    leave_queue(lock, next);
    cairn->timer_stop(object, next->timer);
    rc = give(object, next->owner, next->ttl, cairn->event_result(next->event));
    if (rc < 0)
        cairn->event_fail(next->event);
    else
        cairn->event_answer(next->event);
    free(next);
    return 0;
}

/* False if the token is no longer the holder's: somebody else may be at work. */
static int release(cairn_object *object, struct lock *lock, cairn_event *event)
{
    struct grant grant;
    int64_t token = 0;
    cairn->value_int(argument(event, 0), &token);
    int held = holder(object, &grant) && grant.token == token;
    cairn->build_bool(cairn->event_result(event), held);
    return held ? set_free(object, lock) : 0;
}

static int extend(cairn_object *object, cairn_event *event)
{
    struct grant grant;
    int64_t token = 0, ttl = 0;
    cairn->value_int(argument(event, 0), &token);
    cairn->value_int(argument(event, 1), &ttl);
    if (!holder(object, &grant) || grant.token != token) {
        cairn->build_null(cairn->event_result(event));
        return 0;
    }
    grant.expires = cairn->now(object) + ttl;
    build(cairn->event_result(event), &grant);
    return keep(object, &grant);
}

static int status(cairn_object *object, const struct lock *lock, cairn_event *event)
{
    struct grant grant;
    cairn_builder *out = cairn->event_result(event);
    cairn->build_object(out);
    cairn->build_name(out, "holder");
    if (holder(object, &grant))
        build(out, &grant);
    else
        cairn->build_null(out);
    cairn->build_name(out, "waiting");
    cairn->build_array(out);
    for (const struct waiter *waiter = lock->first; waiter; waiter = waiter->next)
        cairn->build_text(out, waiter->owner, strlen(waiter->owner));
    cairn->build_end(out);
    cairn->build_end(out);
    return 0;
}

static int lock_call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (strcmp(method, "acquire") == 0)
        return acquire(object, instance, event);
    if (strcmp(method, "release") == 0)
        return release(object, instance, event);
    if (strcmp(method, "extend") == 0)
        return extend(object, event);
    if (strcmp(method, "status") == 0)
        return status(object, instance, event);
    return cairn->error(object, "TypeError", "there is no such method");
}

static int lock_alarm(cairn_object *object, void *instance, cairn_event *event)
{
    struct grant grant;
    if (!stored(object, &grant))
        return 0;
    /* It may have been extended since the alarm was set off. */
    return grant.expires > cairn->now(object) ? cairn->alarm_set(object, grant.expires)
                                              : set_free(object, instance);
}

/* --- what it protects: a ledger that trusts no clock and no client -----------------------------
 */

static int ledger_create(cairn_object *object, void **instance)
{
    return cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, "
                                   "token INTEGER NOT NULL, owner TEXT NOT NULL, text TEXT NOT "
                                   "NULL)");
}

static int bind_text(cairn_object *object, cairn_statement *statement, int index,
                     const cairn_value *value)
{
    size_t size;
    const char *text = cairn->value_text(value, &size);
    return text ? cairn->sql_bind_text(statement, index, text, size)
                : cairn->error(object, "TypeError", "write({ token, owner, text }) takes texts");
}

/* Inserts unless a later token has been seen; false: fenced off. */
static int ledger_write(cairn_object *object, cairn_event *event)
{
    const cairn_value *entry = argument(event, 0);
    int64_t token = 0;
    cairn->value_int(cairn->value_get(entry, "token"), &token);
    cairn_statement *insert = cairn->sql_prepare(
        object, "INSERT INTO entries (token, owner, text) SELECT ?1, ?2, ?3 WHERE ?1 >= "
                "(SELECT ifnull(max(token), 0) FROM entries)");
    if (!insert)
        return CAIRN_ERROR;
    int rc = cairn->sql_bind_int(insert, 1, token);
    if (rc == 0)
        rc = bind_text(object, insert, 2, cairn->value_get(entry, "owner"));
    if (rc == 0)
        rc = bind_text(object, insert, 3, cairn->value_get(entry, "text"));
    if (rc == 0)
        rc = cairn->sql_step(insert);
    cairn->sql_finalize(insert);
    cairn->build_bool(cairn->event_result(event), rc == 0 && cairn->sql_changes(object) == 1);
    return rc;
}

static int ledger_latest(cairn_object *object, cairn_event *event)
{
    int64_t count = 10;
    cairn_builder *out = cairn->event_result(event);
    cairn_statement *rows = cairn->sql_prepare(
        object, "SELECT token, owner, text FROM entries ORDER BY id DESC LIMIT ?");
    cairn->value_int(argument(event, 0), &count);
    int rc = rows ? cairn->sql_bind_int(rows, 1, count) : CAIRN_ERROR;
    cairn->build_array(out);
    while (rc == 0 && (rc = cairn->sql_step(rows)) == 1) {
        cairn->build_object(out);
        cairn->build_name(out, "token");
        cairn->build_int(out, cairn->sql_column_int(rows, 0));
        for (int i = 1; i < 3; i++) {
            size_t size;
            const char *text = cairn->sql_column_text(rows, i, &size);
            cairn->build_name(out, cairn->sql_column_name(rows, i));
            cairn->build_text(out, text, size);
        }
        cairn->build_end(out);
        rc = 0;
    }
    cairn->build_end(out);
    cairn->sql_finalize(rows);
    return rc;
}

static int ledger_call(cairn_object *object, void *instance, cairn_event *event)
{
    if (strcmp(cairn->event_method(event), "write") == 0)
        return ledger_write(object, event);
    if (strcmp(cairn->event_method(event), "latest") == 0)
        return ledger_latest(object, event);
    return cairn->error(object, "TypeError", "there is no such method");
}

static const struct cairn_class classes[] = {
    {.name = "Lock", .create = create, .destroy = destroy, .call = lock_call, .alarm = lock_alarm},
    {.name = "Ledger", .create = ledger_create, .call = ledger_call},
};
CAIRN_MODULE(classes)
