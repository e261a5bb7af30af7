/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/control.h - the handlers of control_browse.c, for the table of routes. */
#ifndef CN_SERVICE_QUEUE_CONTROL_H
#define CN_SERVICE_QUEUE_CONTROL_H
struct cn_control_call;
struct cn_err;

int cn_queue_control_list(struct cn_control_call *call, struct cn_err *err);
int cn_queue_control_peek(struct cn_control_call *call, struct cn_err *err);
int cn_queue_control_redrive(struct cn_control_call *call, struct cn_err *err);

#endif
