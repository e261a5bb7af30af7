/* SPDX-License-Identifier: Apache-2.0 */
/* module/api.c - the functions of struct cairn_api about the object itself, and of what its events
 * are. */
#include "module/api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "module/internal.h"
#include "module/tracer.h"
#include "object/node.h"

#define LINE_SIZE_MAX 8192

const char *cn_api_object_id(cairn_object *self)
{
    return self->id;
}

const char *cn_api_object_name(cairn_object *self)
{
    const struct cn_object *object = self->object;
    return object && object->name && object->name_size <= CN_OBJECT_NAME_MAX ? object->name : NULL;
}

int64_t cn_api_now(cairn_object *self)
{
    const struct cn_object_lane *lane = !self          ? NULL
                                        : self->object ? self->object->lane
                                                       : self->host->objects;
    return cn_clock_wall_ms(lane ? cn_node_clock(lane->node) : cn_clock_system());
}

static enum cn_diag_level level_of(enum cairn_level level)
{
    switch (level) {
    case CAIRN_DEBUG:
        return CN_DIAG_DEBUG;
    case CAIRN_WARN:
        return CN_DIAG_WARN;
    case CAIRN_FAILURE:
        return CN_DIAG_ERROR;
    default:
        return CN_DIAG_INFO;
    }
}

void cn_api_logv(cairn_object *self, enum cairn_level level, const char *format, va_list args)
{
    char line[LINE_SIZE_MAX], request[17], trace[33], span[17];
    int size = vsnprintf(line, sizeof(line), format, args);
    if (size < 0)
        return;
    size_t length = (size_t)size < sizeof(line) ? (size_t)size : sizeof(line) - 1;
    struct cn_diag_field fields[7] = {{"worker", NULL, 0, false}};
    size_t count = 1;
    if (self) {
        fields[0].text = cn_modules_worker(self->class_->modules);
        fields[1] = (struct cn_diag_field){"class", self->class_->name, 0, false};
        fields[2] = (struct cn_diag_field){"object", self->object ? self->id : NULL, 0, false};
        fields[3] = (struct cn_diag_field){"name", cn_api_object_name(self),
                                           self->object ? self->object->name_size : 0, false};
        count = 4;
        if (self->origin.request) {
            snprintf(request, sizeof(request), "%016" PRIx64, self->origin.request);
            fields[count++] = (struct cn_diag_field){"request", request, 0, false};
        }
        if (self->trace && self->host->tracer->is_exported(self->host->data)) {
            snprintf(trace, sizeof(trace), "%016" PRIx64 "%016" PRIx64, self->origin.trace[0],
                     self->origin.trace[1]);
            snprintf(span, sizeof(span), "%016" PRIx64, self->origin.span);
            fields[count++] = (struct cn_diag_field){"trace", trace, 0, false};
            fields[count++] = (struct cn_diag_field){"span", span, 0, false};
        }
        cn_compiled_trace_log(self, level, line, length);
    }
    cn_diag_fields(level_of(level), fields, count, line, length);
}

void cn_api_log(cairn_object *self, enum cairn_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cn_api_logv(self, level, format, args);
    va_end(args);
}

void cn_api_errorv(cairn_object *self, const char *type, const char *format, va_list args)
{
    char text[CN_ERR_TEXT_MAX];
    vsnprintf(text, sizeof(text), format, args);
    cn_compiled_refuse(self, CAIRN_ERROR, text);
    if (type)
        snprintf(self->error->type, sizeof(self->error->type), "%s", type);
}

int cn_api_error(cairn_object *self, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cn_api_errorv(self, type, format, args);
    va_end(args);
    return CAIRN_ERROR;
}

const char *cn_api_error_text(cairn_object *self)
{
    return self->error ? self->error->text : "";
}

void cn_api_abort(cairn_object *self, const char *reason)
{
    if (!reason)
        reason = "abort() was called.";
    if (self->going)
        return; /* it is on its way out */
    if (self->object)
        cn_object_reset(self->object, CN_FAULT_RESET, CN_EABORTED, "%s", reason);
    else
        cn_api_log(self, CAIRN_FAILURE, "a worker cannot be reset: %s", reason);
}

const char *cn_api_event_method(const cairn_event *event)
{
    return event->method;
}

const cairn_value *cn_api_event_arguments(const cairn_event *event)
{
    return event->kind == CN_COMPILED_CALL ? event->document.root : NULL;
}

cairn_builder *cn_api_event_result(cairn_event *event)
{
    return &event->result;
}

int64_t cn_api_alarm_scheduled(const cairn_event *event)
{
    return event->scheduled_ms;
}

unsigned cn_api_alarm_retries(const cairn_event *event)
{
    return event->retries;
}
