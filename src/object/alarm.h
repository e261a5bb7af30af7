/* SPDX-License-Identifier: Apache-2.0 */
/* object/alarm.h - alarms: one time per object, stored with it, fired at least once.
 *
 * The time is metadata of the object's commits (store/database.h), so it cannot
 * be lost apart from the write that set it. The catalog lists alarms by time; a
 * lane keeps in memory only those of its own objects that are due within
 * CN_ALARM_WINDOW_MS, and asks the catalog again as the window moves.
 *
 * A1  alarm() never runs twice at once for one object.
 * A2  The stored time goes only with the commit that ends a successful run, or
 *     when the handler (or anyone meanwhile) sets another; a crash during the
 *     run fires it again.
 * A3  A failed run is tried again after 2 s, 4 s, ... 64 s (plus up to 25 %), six
 *     times; then the alarm is dropped with a line in the log. Failures that are
 *     not the class's own (CN_FAULT_REMOTE not set) do not count; their delay
 *     grows to at most 1,024 s.
 * A4  An alarm that cannot be fired is not forgotten: one whose namespace is not known
 *     is looked at again when another becomes known, one that cannot be read after a while.
 * A5  Whoever takes a hint away without firing (A1, a visit) looks for the alarm afterwards by its
 *     key: the object may have left memory meanwhile.
 * A6  A shard that is not served fires nothing: a hint that becomes due then is dropped, and all of
 *     the shard's are read anew when it is served again. When it is closed, its hints go, and what
 *     was known of failed runs.
 * A7  Looking for an alarm opens no database: one that is not open may be another's just now, a
 *     restore's or a visitor's (O7 of object.h). While an object is restored its alarm waits.
 * A8  An alarm that was set or deleted in a transaction that is undone was not set: neither does it
 *     keep the end of the run from taking its own away, nor does a transaction that is undone after
 *     the run bring that back.
 *
 * Threads: the lane's. */
#ifndef CN_OBJECT_ALARM_H
#define CN_OBJECT_ALARM_H
#include <stdint.h>

#include <uv.h>

#include "object/object.h"

#define CN_ALARM_WINDOW_MS 60000
#define CN_ALARM_RETRIES_MAX 6

struct cn_lane_shard;
struct cn_object_lane;

/* Payload of a CN_CALL_ALARM call. */
struct cn_alarm_info {
    int64_t scheduled_ms;
    unsigned retry_count; /* runs of it that have failed, */
    unsigned own_count;   /* and those that count (A3) */
};

void cn_alarm_lane_init(struct cn_object_lane *lane);
/* The one handle to close before fini. */
uv_handle_t *cn_alarm_lane_handle(struct cn_object_lane *lane);
void cn_alarm_lane_fini(struct cn_object_lane *lane);
/* Fires what is due; looks at the catalog when the window has moved. */
void cn_alarm_tick(struct cn_object_lane *lane);
/* W3 of base/loop.h: the runs under way are those in the table, and the earliest hint is first. */
void cn_alarm_check(const struct cn_object_lane *lane);
/* How many run, and how many are due but wait: a storm goes in waves. */
void cn_alarm_counts(const struct cn_object_lane *lane, size_t *running, size_t *due);
/* For the class: its alarm handler starts; and, in its last turn, has succeeded. A run that fails
 * is ended by cn_call_fail(). */
void cn_alarm_begin(struct cn_object *object, const struct cn_alarm_info *info);
void cn_alarm_succeeded(struct cn_object *object);
/* The stored alarm of an object that is not in memory may have changed. */
void cn_alarm_look(struct cn_object_lane *lane, const struct cn_object_key *key);
/* A turn of the object was committed: its alarm may have changed. */
void cn_alarm_committed(struct cn_object *object);
/* The run under way, which a reset is about to interrupt, is not to be repeated: undoes the turn
 * and commits the alarm's end. */
void cn_alarm_give_up(struct cn_object *object);
/* Its shard goes: nothing of its alarms is left in memory. */
void cn_alarm_let_go(struct cn_lane_shard *own);
/* The object is being reset while its alarm ran. */
void cn_alarm_interrupted(struct cn_object *object);

#endif
