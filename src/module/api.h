/* SPDX-License-Identifier: Apache-2.0 */
/* module/api.h - the functions of struct cairn_api about the object itself; include/cairn.h says
 * what they do. */
#ifndef CN_MODULE_API_H
#define CN_MODULE_API_H
#include <stdarg.h>

#include "include/cairn.h"

const char *cn_api_object_id(cairn_object *object);
const char *cn_api_object_name(cairn_object *object);
int64_t cn_api_now(cairn_object *object);
void cn_api_log(cairn_object *object, enum cairn_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cn_api_logv(cairn_object *object, enum cairn_level level, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
void cn_api_errorv(cairn_object *object, const char *type, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
int cn_api_error(cairn_object *object, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *cn_api_error_text(cairn_object *object);
void cn_api_abort(cairn_object *object, const char *reason);
const char *cn_api_event_method(const cairn_event *event);
const cairn_value *cn_api_event_arguments(const cairn_event *event);
cairn_builder *cn_api_event_result(cairn_event *event);
int64_t cn_api_alarm_scheduled(const cairn_event *event);
unsigned cn_api_alarm_retries(const cairn_event *event);

#endif
