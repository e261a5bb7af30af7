/* SPDX-License-Identifier: Apache-2.0 */
/* remote/node_calls.h - what carries questions of services to other nodes (service/node_calls.h): questions
 * of the type NODE, whose method is the service's name, or CN_REMOTE_DOOR. Never held, never tried
 * again. */
#ifndef CN_REMOTE_NODE_CALLS_H
#define CN_REMOTE_NODE_CALLS_H

struct cn_object_lane;
struct cn_node_calls_door;
struct cn_remote;
struct cn_node_calls_question;

#define CN_REMOTE_DOOR "$admin" /* no service is called so */

/* For struct cn_node_calls. */
void cn_remote_others_ask(void *data, struct cn_object_lane *lane,
                          struct cn_node_calls_question *question);
void cn_remote_others_serve(struct cn_remote *remote, const struct cn_node_calls_door *door);

#endif
