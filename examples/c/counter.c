/* SPDX-License-Identifier: Apache-2.0 */
/* A sharded counter: more writes than one object can take are spread over shards, each an object of
 * its own, and a coordinator adds them up.
 *
 * A shard counts durably and reports its value to the coordinator within a second, by alarm. It
 * reports the value, not the difference: a report that comes twice, or late, does no harm.
 *
 *     await env.SHARDS.getByName("likes/7").add(1);
 *     const { total } = await env.TOTALS.getByName("likes").total();
 *
 * Teaches: two classes in a module, calls from object to object, an event that is answered when all
 * of many calls have come back. */
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARDS_FIRST 100
#define SHARDS_MAX 10000 /* as many calls as an object may have under way */
#define REPORT_AFTER_MS 1000
#define NAME_MAX_SIZE 1200

static int put_int(cairn_object *object, const char *key, int64_t number)
{
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, number);
    return cairn->kv_put(object, key, kept);
}

static int64_t get_int(cairn_object *object, const char *key, int64_t otherwise)
{
    cairn->value_int(cairn->kv_get(object, key), &otherwise);
    return otherwise;
}

static int64_t int_argument(cairn_event *event, size_t index)
{
    int64_t number = 0;
    cairn->value_int(cairn->value_at(cairn->event_arguments(event), index), &number);
    return number;
}

static int no_method(cairn_object *object)
{
    return cairn->error(object, "TypeError", "there is no such method");
}

/* --- a shard ---------------------------------------------------------------------------------- */

static int shard_add(cairn_object *object, int64_t by)
{
    int rc = put_int(object, "value", get_int(object, "value", 0) + by);
    if (rc < 0 || get_int(object, "reporting", 0))
        return rc;
    rc = put_int(object, "reporting", 1);
    return rc < 0 ? rc : cairn->alarm_set(object, cairn->now(object) + REPORT_AFTER_MS);
}

static int shard_call(cairn_object *object, void *instance, cairn_event *event)
{
    if (strcmp(cairn->event_method(event), "add") == 0)
        return shard_add(object, int_argument(event, 0));
    if (strcmp(cairn->event_method(event), "value") != 0)
        return no_method(object);
    cairn->build_int(cairn->event_result(event), get_int(object, "value", 0));
    return 0;
}

/* The alarm's event waits for this: if the report has failed, so has the alarm, and it is tried
 * again. */
static void reported(cairn_object *object, void *instance, const struct cairn_reply *reply,
                     void *data)
{
    if (!reply->error) {
        cairn->event_answer(data);
        return;
    }
    cairn->error(object, NULL, "the report failed: %s", reply->error);
    cairn->event_fail(data);
}

static int shard_alarm(cairn_object *object, void *instance, cairn_event *event)
{
    const char *name = cairn->object_name(object); /* "likes/7" */
    const char *slash = name ? strrchr(name, '/') : NULL;
    char total[NAME_MAX_SIZE];
    if (!slash)
        return cairn->error(object, NULL, "a shard is named COUNTER/NUMBER");
    snprintf(total, sizeof(total), "%.*s", (int)(slash - name), name);
    int rc = cairn->kv_delete(object, "reporting"); /* what is added meanwhile sets a new alarm */
    cairn_builder *arguments = cairn->builder(object);
    cairn->build_array(arguments);
    cairn->build_int(arguments, strtoll(slash + 1, NULL, 10));
    cairn->build_int(arguments, get_int(object, "value", 0));
    cairn->build_end(arguments);
    if (rc >= 0)
        rc = cairn->object_call(object, "TOTALS", total, "report", arguments, reported, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

/* --- the coordinator -------------------------------------------------------------------------- */

/* Sums that are being asked for, so that nothing is lost if the object leaves memory before the
 * answers are there: then none of its functions is called but destroy(). */
struct sum;
struct total {
    struct sum *sums;
};

static int total_create(cairn_object *object, void **instance)
{
    *instance = calloc(1, sizeof(struct total));
    if (!*instance)
        return cairn->error(object, NULL, "there is no memory left");
    return cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS shards (shard INTEGER PRIMARY KEY, "
                                   "value INTEGER NOT NULL)");
}

static int64_t shard_count(cairn_object *object)
{
    return get_int(object, "shards", SHARDS_FIRST);
}

/* Reports may arrive in any order; of a counter that only grows the larger one is the newer one. */
static int report(cairn_object *object, int64_t shard, int64_t value)
{
    cairn_statement *insert = cairn->sql_prepare(
        object, "INSERT INTO shards (shard, value) VALUES (?, ?) ON CONFLICT (shard) DO UPDATE "
                "SET value = max(value, excluded.value)");
    if (!insert)
        return CAIRN_ERROR;
    int rc = cairn->sql_bind_int(insert, 1, shard);
    if (rc == 0)
        rc = cairn->sql_bind_int(insert, 2, value);
    if (rc == 0)
        rc = cairn->sql_step(insert);
    cairn->sql_finalize(insert);
    return rc;
}

/* It only grows once it counts: what a shard has counted stays there. */
static int grow(cairn_object *object, cairn_event *event)
{
    int64_t count = int_argument(event, 0), now = shard_count(object);
    if (count > SHARDS_MAX)
        return cairn->error(object, "RangeError", "a counter has %d shards at most", SHARDS_MAX);
    cairn_statement *any = cairn->sql_prepare(object, "SELECT 1 FROM shards LIMIT 1");
    int rc = any ? cairn->sql_step(any) : CAIRN_ERROR;
    cairn->sql_finalize(any);
    if (rc < 0)
        return rc;
    if (rc == 0 && !cairn->kv_get(object, "shards"))
        now = 0;
    cairn->build_int(cairn->event_result(event), count > now ? count : now);
    return count > now ? put_int(object, "shards", count) : 0;
}

static int total(cairn_object *object, cairn_event *event)
{
    int64_t count = shard_count(object), sum = 0;
    int64_t *values = calloc((size_t)count, sizeof(*values));
    cairn_statement *rows = cairn->sql_prepare(object, "SELECT shard, value FROM shards");
    int rc = !values ? cairn->error(object, NULL, "there is no memory left")
             : rows  ? 0
                     : CAIRN_ERROR;
    while (rc == 0 && (rc = cairn->sql_step(rows)) == 1) {
        int64_t shard = cairn->sql_column_int(rows, 0);
        if (shard >= 0 && shard < count)
            values[shard] = cairn->sql_column_int(rows, 1);
        rc = 0;
    }
    cairn->sql_finalize(rows);
    cairn_builder *out = cairn->event_result(event);
    cairn->build_object(out);
    cairn->build_name(out, "values");
    cairn->build_array(out);
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        cairn->build_int(out, values[i]);
        sum += values[i];
    }
    cairn->build_end(out);
    cairn->build_name(out, "shards");
    cairn->build_int(out, count);
    cairn->build_name(out, "total");
    cairn->build_int(out, sum);
    cairn->build_end(out);
    free(values);
    return rc;
}

/* --- asking every shard ----------------------------------------------------------------------- */

struct question {
    struct sum *sum;
    int64_t shard;
};

struct sum {
    struct sum *next;   /* in total.sums */
    cairn_event *event; /* that waits for it */
    int64_t total, left;
    int failed;
    struct question questions[];
};

static void unlink_sum(struct total *total, struct sum *sum)
{
    struct sum **at = &total->sums;
    while (*at != sum)
        at = &(*at)->next;
    *at = sum->next;
    free(sum);
}

static void total_destroy(cairn_object *object, void *instance)
{
    struct total *total = instance;
    while (total && total->sums)
        unlink_sum(total, total->sums);
    free(total);
}

static void answered(cairn_object *object, void *instance, const struct cairn_reply *reply,
                     void *data)
{
    struct question *question = data;
    struct sum *sum = question->sum;
    int64_t value = 0;
    if (reply->error || cairn->value_int(reply->value, &value) < 0 ||
        (value && report(object, question->shard, value) < 0))
        sum->failed = 1;
    sum->total += value;
    if (--sum->left)
        return;
    if (sum->failed) {
        cairn->error(object, NULL, "a shard could not be asked");
        cairn->event_fail(sum->event);
    } else {
        cairn->build_int(cairn->event_result(sum->event), sum->total);
        cairn->event_answer(sum->event);
    }
    unlink_sum(instance, sum);
}

static int exact(cairn_object *object, struct total *total, cairn_event *event)
{
    int64_t count = shard_count(object);
    struct sum *sum = calloc(1, sizeof(*sum) + (size_t)count * sizeof(struct question));
    if (!sum)
        return cairn->error(object, NULL, "there is no memory left");
    sum->event = event;
    sum->next = total->sums;
    total->sums = sum;
    for (int64_t i = 0; i < count; i++) {
        char shard[NAME_MAX_SIZE + 24];
        sum->questions[i] = (struct question){sum, i};
        snprintf(shard, sizeof(shard), "%s/%lld", cairn->object_name(object), (long long)i);
        if (cairn->object_call(object, "SHARDS", shard, "value", NULL, answered,
                               &sum->questions[i]) < 0)
            sum->failed = 1;
        else
            sum->left++;
    }
    if (sum->left)
        return CAIRN_LATER;
    unlink_sum(total, sum);
    return CAIRN_ERROR;
}

static int total_call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (strcmp(method, "report") == 0)
        return report(object, int_argument(event, 0), int_argument(event, 1));
    if (strcmp(method, "grow") == 0)
        return grow(object, event);
    if (strcmp(method, "total") == 0)
        return total(object, event);
    if (strcmp(method, "exact") == 0)
        return exact(object, instance, event);
    if (strcmp(method, "shardCount") != 0)
        return no_method(object);
    cairn->build_int(cairn->event_result(event), shard_count(object));
    return 0;
}

static const struct cairn_class classes[] = {
    {.name = "Shard", .call = shard_call, .alarm = shard_alarm},
    {.name = "Total", .create = total_create, .destroy = total_destroy, .call = total_call},
};
CAIRN_MODULE(classes)
