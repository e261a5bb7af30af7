/* SPDX-License-Identifier: Apache-2.0 */
/* module/forward.h - the functions of struct cairn_api that pass on what comes; include/cairn.h
 * says what they do. */
#ifndef CN_MODULE_FORWARD_H
#define CN_MODULE_FORWARD_H
#include "include/cairn.h"

int cn_api_stream_pipe(cairn_stream *from, cairn_stream *to);
int cn_api_response_from(cairn_event *event, const cairn_value *response, cairn_stream *stream);
int cn_api_object_forward(cairn_event *event, const char *binding, const char *name);
int cn_api_service_forward(cairn_event *event, const char *binding);

#endif
