/* SPDX-License-Identifier: Apache-2.0 */
/* bindings/http.h - responses whose body JavaScript does not see: what bindings/http.c shares. */
#ifndef CN_BINDINGS_HTTP_H
#define CN_BINDINGS_HTTP_H

struct cn_event;

/* Ends the pipe of an event (event->pipe): its callback gets undefined, or the failure. The event
 * may be gone afterwards. */
void cn_http_pipe_end(struct cn_event *event, const char *failure);

#endif
