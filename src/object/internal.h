/* SPDX-License-Identifier: Apache-2.0 */
/* object/internal.h - what the files of object/ share among themselves. */
#ifndef CN_OBJECT_INTERNAL_H
#define CN_OBJECT_INTERNAL_H
#include "object/node.h"

struct cn_object *cn_object_new(struct cn_object_lane *lane, struct cn_namespace *ns,
                                const struct cn_object_key *key);
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

/* The output gate: sends at once if durable, else holds. */
void cn_object_lane_hold(struct cn_object_lane *lane, struct cn_output *output);
/* Sends what is held and has become durable. */
void cn_object_lane_release(struct cn_object_lane *lane);
/* The object's inbox is to be looked at in the next step. */
void cn_object_lane_wake(struct cn_object_lane *lane, struct cn_object *object);
/* There is something for the next step. */
void cn_object_lane_kick(struct cn_object_lane *lane);

bool cn_node_class(struct cn_object_lane *lane, struct cn_namespace *ns,
                   const struct cn_object_key *key, const struct cn_class **class_,
                   void **class_data);
struct cn_history *cn_node_history(struct cn_node *node);
/* The index of the lane that owns the object. */
unsigned cn_node_owner_index(struct cn_node *node, const struct cn_object_key *key);
/* Whether an object that is not in memory may start: false if it has stored nothing yet and its
 * namespace has had its share of new objects in this minute. */
bool cn_node_admits(struct cn_node *node, struct cn_namespace *ns, const struct cn_object_key *key);
void cn_node_register_lane(struct cn_node *node, struct cn_object_lane *lane);

/* A call of the kind CN_CALL_ACCESS, in a turn of the object. */
void cn_access_deliver(struct cn_object *object, struct cn_call *call);

void cn_node_idle_times(struct cn_node *node, unsigned *idle_ms, unsigned *idle_long_ms);

/* Ends a call that no turn answers: unlinked already. */
void cn_call_finish(struct cn_call *call, unsigned faults, int code, const char *text);

#endif
