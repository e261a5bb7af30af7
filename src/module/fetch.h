/* SPDX-License-Identifier: Apache-2.0 */
/* module/fetch.h - the functions of struct cairn_api that ask for a response; include/cairn.h says
 * what they do. */
#ifndef CN_MODULE_FETCH_H
#define CN_MODULE_FETCH_H
#include "include/cairn.h"
#include "module/internal.h"

int cn_api_http_fetch(cairn_object *object, const struct cairn_request *request, cairn_done done,
                      void *data);
int cn_api_service_fetch(cairn_object *object, const char *binding,
                         const struct cairn_request *request, cairn_done done, void *data);
int cn_api_object_fetch(cairn_object *object, const char *binding, const char *name,
                        const struct cairn_request *request, cairn_done done, void *data);
const char *cn_api_response_find(const cairn_value *response, const char *name);

/* X4: how many requests of workers to themselves came before one that has this CDN-Loop. */
unsigned cn_fetch_loops(const char *header);
/* A method of another worker (services.c). */
int cn_worker_call(cairn_object *self, const cairn_value *binding, const char *method,
                   cairn_builder *arguments, cairn_done done, void *data);
/* Adds to a builder what the parts of a response, as JavaScript sends them, are for C. */
int cn_response_build(cairn_builder *builder, const cairn_value *parts, struct cn_err *err);
/* [name, value], the name in lower case. */
void cn_build_pair(cairn_builder *builder, const char *name, size_t name_size, const char *value,
                   size_t value_size);
/* A copy, checked: what an older module does not have is zero. Negative: it cannot be asked for. */
#define CN_REQUEST_HEADERS_MAX 256
int cn_request_read(cairn_object *self, const struct cairn_request *given,
                    struct cairn_request *request);

#endif
