/* SPDX-License-Identifier: Apache-2.0 */
/* remote/others.h - what carries questions of services to other nodes (service/others.h): questions
 * of the type NODE, whose method is the service's name. Never held, never tried again. */
#ifndef CN_REMOTE_OTHERS_H
#define CN_REMOTE_OTHERS_H

struct cn_object_lane;
struct cn_others_question;

/* For struct cn_others. */
void cn_remote_others_ask(void *data, struct cn_object_lane *lane,
                          struct cn_others_question *question);

#endif
