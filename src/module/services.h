/* SPDX-License-Identifier: Apache-2.0 */
/* module/services.h - the functions of struct cairn_api that are about services; include/cairn.h
 * says what they do. */
#ifndef CN_MODULE_SERVICES_H
#define CN_MODULE_SERVICES_H
#include "include/cairn.h"

int cn_api_service_call(cairn_object *object, const char *binding, const char *method,
                        cairn_builder *arguments, cairn_done done, void *data);

#endif
