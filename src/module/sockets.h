/* SPDX-License-Identifier: Apache-2.0 */
/* module/sockets.h - the functions of struct cairn_api that are about WebSockets; include/cairn.h
 * says what they do. */
#ifndef CN_MODULE_SOCKETS_H
#define CN_MODULE_SOCKETS_H
#include "include/cairn.h"

struct cn_call;

/* An event of a WebSocket, for the object. */
void cn_compiled_deliver_socket(cairn_object *object, struct cn_call *call);

cairn_socket *cn_api_socket_accept(cairn_event *event, const char *const tags[], size_t tag_count);
int cn_api_socket_send(cairn_object *object, cairn_socket *socket, int is_text, const void *bytes,
                       size_t size);
int64_t cn_api_socket_broadcast(cairn_object *object, const char *tag, int is_text,
                                const void *bytes, size_t size);
int cn_api_socket_end(cairn_object *object, cairn_socket *socket, int code, const char *reason);
int cn_api_socket_list(cairn_object *object, const char *tag,
                       int (*each)(void *data, cairn_socket *socket), void *data);
size_t cn_api_socket_count(cairn_object *object, const char *tag);
const char *cn_api_socket_tag(cairn_object *object, cairn_socket *socket, size_t index,
                              size_t *size);
int cn_api_socket_attach(cairn_object *object, cairn_socket *socket, cairn_builder *value);
const cairn_value *cn_api_socket_attachment(cairn_object *object, cairn_socket *socket);
int cn_api_socket_auto_response(cairn_object *object, const char *request, const char *response);

#endif
