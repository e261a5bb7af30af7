/* SPDX-License-Identifier: Apache-2.0 */
/* object/internal.h - what the files of object/ share among themselves. */
#ifndef CN_OBJECT_INTERNAL_H
#define CN_OBJECT_INTERNAL_H
#include "object/node.h"

struct cn_object *cn_object_new(struct cn_object_lane *lane, struct cn_namespace *ns,
                                const struct cn_object_key *key);
/* What stands for code that runs for no object, where an object's gate is asked for (O5). It is in
 * no table and has no database. */
struct cn_object *cn_object_new_nobody(struct cn_object_lane *lane);
void cn_object_free_nobody(struct cn_object *nobody);
/* L4 of lane.c: it is GONE from now on, and freed by the next sweep. Nothing is under way for it.
 */
void cn_object_retire(struct cn_object *object);
void cn_object_free(struct cn_object *object);
/* A call has arrived at its owner's lane. */
void cn_object_receive(struct cn_object *object, struct cn_call *call);
/* Delivers what waits in the inbox, as far as the input gate lets it. */
void cn_object_deliver_all(struct cn_object *object);
/* The restore that had to come first is over, or has failed. */
void cn_object_restored(struct cn_object *object, const struct cn_err *err);
/* A visitor has its database from now on: calls wait. */
void cn_object_suspend(struct cn_object *object);
/* A visit has ended: starts the object if calls wait for it, else lets it go. */
void cn_object_resume(struct cn_object *object);
/* Puts an object that has nothing to do on the list of idle ones. */
void cn_object_rest(struct cn_object *object);

/* O8 (press.c): it waits for the disk from now on. */
void cn_object_press(struct cn_object *object);
/* It waits no longer, for whatever reason. */
void cn_object_press_forget(struct cn_object *object);
/* One that waits may go on: true, and it is woken. */
bool cn_object_lane_unpress(struct cn_object_lane *lane);
/* Outside of turns: its class is told what it has not heard. False: there is nothing to tell. */
bool cn_object_press_tell(struct cn_object *object);
/* Says so if somebody has waited for long. */
void cn_object_press_tick(struct cn_object_lane *lane);

/* Whether all that it has committed is durable. */
bool cn_object_is_durable(const struct cn_object *object);

/* The output gate: sends at once if durable, else holds. */
void cn_object_lane_hold(struct cn_object_lane *lane, struct cn_output *output);
/* Sends up to `budget` of what is held and has become durable; returns how many. */
unsigned cn_object_lane_release(struct cn_object_lane *lane, unsigned budget);
/* L3 of lane.c: waits. What is sent may bring more. */
void cn_object_lane_release_all(struct cn_object_lane *lane);
/* Has the flusher wake the lane for the oldest output held. True: it may leave already. */
bool cn_object_lane_want(struct cn_object_lane *lane);
/* The object has taken part in the turn number lane->stray_last, in which something strayed. */
void cn_object_lane_note_stray(struct cn_object_lane *lane, const struct cn_object *object);
void cn_object_lane_drop_strays(struct cn_object_lane *lane);
/* The object's inbox is to be looked at in the next step. */
void cn_object_lane_wake(struct cn_object_lane *lane, struct cn_object *object);
/* There is something for the next step. */
void cn_object_lane_kick(struct cn_object_lane *lane);

bool cn_node_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                   const struct cn_object_key *key, const struct cn_class **class_,
                   void **class_data);
/* The index of the lane that owns the object. */
unsigned cn_node_owner_index(struct cn_node *node, const struct cn_object_key *key);
/* Whether an object of the shard that is not in memory may start: false if it has stored nothing
 * yet and its namespace has had its share of new objects in this minute. */
bool cn_node_admits(struct cn_node *node, struct cn_namespace *ns, const struct cn_object_key *key,
                    struct cn_store *store);
void cn_node_register_lane(struct cn_node *node, struct cn_object_lane *lane);

/* --- shards of a lane: lane_shard.c ---------------------------------------------------------- */

void cn_lane_shard_init(struct cn_lane_shard *own, struct cn_shard *shard,
                        struct cn_object_lane *lane);
/* A letter has come: the shard is in this state by this change. Outside of turns. */
void cn_lane_shard_look(struct cn_lane_shard *own, enum cn_shard_state state, uint64_t change);
/* The lane ends, and has ended its objects. */
void cn_lane_shard_detach(struct cn_lane_shard *own);
/* Answers for those shards that have nothing left. */
void cn_lane_shards_drain(struct cn_object_lane *lane);
/* Whether the store knows the name of the namespace. */
bool cn_lane_shard_knows(const struct cn_lane_shard *own, const struct cn_namespace *ns);
/* It is told, by a thread (O9): then cn_object_learnt() for each object that waits for it. */
void cn_lane_shard_learn(struct cn_lane_shard *own, struct cn_namespace *ns);
void cn_object_learnt(struct cn_object *object, const struct cn_err *err);
static inline struct cn_lane_shard *cn_lane_shard_of(struct cn_object_lane *lane,
                                                     const struct cn_object_key *key)
{
    return &lane->shards[cn_shard_index(key, lane->shard_count)];
}
/* Fails outputs of the shard that are held, and those that wait for what strayed into it. */
void cn_object_lane_fail_held(struct cn_object_lane *lane, const struct cn_lane_shard *own,
                              const struct cn_err *err);
/* Whether any are held. */
bool cn_object_lane_holds(const struct cn_object_lane *lane, const struct cn_lane_shard *own);
/* Ends an object that has nothing to do: retires it, or resets it with the sentence if its class
 * does not let go. */
void cn_object_end(struct cn_object *object, const char *why);

/* A call of the kind CN_CALL_ACCESS, in a turn of the object. */
void cn_access_deliver(struct cn_object *object, struct cn_call *call);

void cn_node_idle_times(struct cn_node *node, unsigned *idle_ms, unsigned *idle_long_ms);

#endif
