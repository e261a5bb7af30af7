/* SPDX-License-Identifier: Apache-2.0 */
/* module/async.h - the functions of struct cairn_api whose end comes later: calls to other objects,
 * timers, bookmarks, the input gate; include/cairn.h says what they do. */
#ifndef CN_MODULE_ASYNC_H
#define CN_MODULE_ASYNC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/cairn.h"

const char *cn_api_env(cairn_object *object, const char *name);
int cn_api_object_call(cairn_object *object, const char *binding, const char *name,
                       const char *method, cairn_builder *arguments, cairn_done done, void *data);
int cn_api_object_call_id(cairn_object *object, const char *binding, const char *id,
                          const char *method, cairn_builder *arguments, cairn_done done,
                          void *data);
int cn_api_object_fetch(cairn_object *object, const char *binding, const char *name,
                        const struct cairn_request *request, cairn_done done, void *data);
int64_t cn_api_timer_start(cairn_object *object, int64_t delay, cairn_fired fired, void *data);
int cn_api_timer_stop(cairn_object *object, int64_t timer);
int cn_api_bookmark_now(cairn_object *object, cairn_done done, void *data);
int cn_api_bookmark_at(cairn_object *object, int64_t time, cairn_done done, void *data);
int cn_api_restore(cairn_object *object, const char *bookmark, cairn_done done, void *data);
int cn_api_block_concurrency(cairn_object *object);
int cn_api_unblock_concurrency(cairn_object *object);

/* Bytes that are sent, and who is told of the answer. */
struct cn_compiled_letter {
    uint8_t *bytes; /* given away */
    size_t size;
    bool streams; /* the body of the response is told as a stream */
    cairn_done done;
    void *data;
};
/* object_fetch() of fetch.c. */
int cn_compiled_object_fetch(cairn_object *object, const char *binding, const char *name,
                             const struct cn_compiled_letter *letter);

#endif
