/* SPDX-License-Identifier: Apache-2.0 */
/* module/api.c - the table that modules are given, and its functions about the object itself. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/mem.h"
#include "module/async.h"
#include "module/counters.h"
#include "module/fetch.h"
#include "module/forward.h"
#include "module/http.h"
#include "module/internal.h"
#include "module/json.h"
#include "module/lent.h"
#include "module/services.h"
#include "module/sockets.h"
#include "module/storage.h"
#include "module/tracer.h"
#include "module/worker_api.h"
#include "object/node.h"

#define LINE_SIZE_MAX 8192

static const char *object_id(cairn_object *self)
{
    return self->id;
}

static const char *object_name(cairn_object *self)
{
    const struct cn_object *object = self->object;
    return object && object->name && object->name_size <= CN_OBJECT_NAME_MAX ? object->name : NULL;
}

static int64_t now(cairn_object *self)
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

static void log_line(cairn_object *self, enum cairn_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void log_line(cairn_object *self, enum cairn_level level, const char *format, ...)
{
    char line[LINE_SIZE_MAX], request[17], trace[33], span[17];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (size < 0)
        return;
    size_t length = (size_t)size < sizeof(line) ? (size_t)size : sizeof(line) - 1;
    struct cn_diag_field fields[7] = {{"worker", NULL, 0, false}};
    size_t count = 1;
    if (self) {
        fields[0].text = cn_modules_worker(self->class_->modules);
        fields[1] = (struct cn_diag_field){"class", self->class_->name, 0, false};
        fields[2] = (struct cn_diag_field){"object", self->object ? self->id : NULL, 0, false};
        fields[3] = (struct cn_diag_field){"name", object_name(self),
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

static int error(cairn_object *self, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int error(cairn_object *self, const char *type, const char *format, ...)
{
    char text[CN_ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    cn_compiled_refuse(self, CAIRN_ERROR, text);
    if (type)
        snprintf(self->error->type, sizeof(self->error->type), "%s", type);
    return CAIRN_ERROR;
}

static const char *error_text(cairn_object *self)
{
    return self->error ? self->error->text : "";
}

static void reset_object(cairn_object *self, const char *reason)
{
    if (self->object)
        cn_object_reset(self->object, CN_FAULT_RESET, CN_EABORTED, "%s", reason);
    else
        log_line(self, CAIRN_FAILURE, "a worker cannot be reset: %s", reason);
}

static const char *event_method(const cairn_event *event)
{
    return event->method;
}

static const cairn_value *event_arguments(const cairn_event *event)
{
    return event->kind == CN_COMPILED_CALL ? event->document.root : NULL;
}

static cairn_builder *event_result(cairn_event *event)
{
    return &event->result;
}

static int64_t alarm_scheduled(const cairn_event *event)
{
    return event->scheduled_ms;
}

static unsigned alarm_retries(const cairn_event *event)
{
    return event->retries;
}

const struct cairn_api cn_compiled_api = {
    .size = sizeof(struct cairn_api),
    .version = CN_VERSION,
    .object_id = object_id,
    .object_name = object_name,
    .now = now,
    .log = log_line,
    .error = error,
    .error_text = error_text,
    .abort = reset_object,
    .event_answer = cn_compiled_answer,
    .event_fail = cn_compiled_fail,
    .event_method = event_method,
    .event_arguments = event_arguments,
    .event_result = event_result,
    .request_method = cn_api_request_method,
    .request_url = cn_api_request_url,
    .request_header = cn_api_request_header,
    .request_header_count = cn_api_request_header_count,
    .request_header_at = cn_api_request_header_at,
    .request_body = cn_api_request_body,
    .response_status = cn_api_response_status,
    .response_header = cn_api_response_header,
    .response_write = cn_api_response_write,
    .alarm_scheduled = alarm_scheduled,
    .alarm_retries = alarm_retries,
    .value_kind = cn_value_kind,
    .value_bool = cn_value_bool,
    .value_int = cn_value_int,
    .value_number = cn_value_number,
    .value_text = cn_value_text,
    .value_bytes = cn_value_bytes,
    .value_count = cn_value_count,
    .value_at = cn_value_at,
    .value_key = cn_value_key,
    .value_get = cn_value_get,
    .builder = cn_compiled_lend_builder,
    .build_undefined = cn_build_undefined,
    .build_null = cn_build_null,
    .build_bool = cn_build_bool,
    .build_int = cn_build_int,
    .build_number = cn_build_number,
    .build_bigint = cn_build_bigint,
    .build_text = cn_build_text,
    .build_bytes = cn_build_bytes,
    .build_date = cn_build_date,
    .build_array = cn_build_array,
    .build_object = cn_build_object,
    .build_map = cn_build_map,
    .build_name = cn_build_name,
    .build_end = cn_build_end,
    .build_value = cn_build_value,
    .kv_get = cn_api_kv_get,
    .kv_put = cn_api_kv_put,
    .kv_delete = cn_api_kv_delete,
    .kv_list = cn_api_kv_list,
    .delete_all = cn_api_delete_all,
    .sql_exec = cn_api_sql_exec,
    .sql_prepare = cn_api_sql_prepare,
    .sql_finalize = cn_api_sql_finalize,
    .sql_bind_null = cn_api_sql_bind_null,
    .sql_bind_int = cn_api_sql_bind_int,
    .sql_bind_real = cn_api_sql_bind_real,
    .sql_bind_text = cn_api_sql_bind_text,
    .sql_bind_blob = cn_api_sql_bind_blob,
    .sql_step = cn_api_sql_step,
    .sql_reset = cn_api_sql_reset,
    .sql_column_count = cn_api_sql_column_count,
    .sql_column_name = cn_api_sql_column_name,
    .sql_column_kind = cn_api_sql_column_kind,
    .sql_column_int = cn_api_sql_column_int,
    .sql_column_real = cn_api_sql_column_real,
    .sql_column_text = cn_api_sql_column_text,
    .sql_column_blob = cn_api_sql_column_blob,
    .sql_changes = cn_api_sql_changes,
    .sql_last_rowid = cn_api_sql_last_rowid,
    .database_size = cn_api_database_size,
    .transaction_begin = cn_api_transaction_begin,
    .transaction_commit = cn_api_transaction_commit,
    .transaction_rollback = cn_api_transaction_rollback,
    .alarm_get = cn_api_alarm_get,
    .alarm_set = cn_api_alarm_set,
    .alarm_delete = cn_api_alarm_delete,
    .env = cn_api_env,
    .object_call = cn_api_object_call,
    .object_call_id = cn_api_object_call_id,
    .timer_start = cn_api_timer_start,
    .timer_stop = cn_api_timer_stop,
    .bookmark_now = cn_api_bookmark_now,
    .bookmark_at = cn_api_bookmark_at,
    .restore = cn_api_restore,
    .block_concurrency = cn_api_block_concurrency,
    .unblock_concurrency = cn_api_unblock_concurrency,
    .socket_accept = cn_api_socket_accept,
    .socket_send = cn_api_socket_send,
    .socket_broadcast = cn_api_socket_broadcast,
    .socket_end = cn_api_socket_end,
    .socket_list = cn_api_socket_list,
    .socket_count = cn_api_socket_count,
    .socket_tag = cn_api_socket_tag,
    .socket_attach = cn_api_socket_attach,
    .socket_attachment = cn_api_socket_attachment,
    .socket_auto_response = cn_api_socket_auto_response,
    .json_read = cn_api_json_read,
    .json_write = cn_api_json_write,
    .scheduled_time = cn_api_scheduled_time,
    .scheduled_cron = cn_api_scheduled_cron,
    .queue_name = cn_api_queue_name,
    .queue_count = cn_api_queue_count,
    .queue_message = cn_api_queue_message,
    .queue_ack = cn_api_queue_ack,
    .queue_retry = cn_api_queue_retry,
    .service_call = cn_api_service_call,
    .fetch = cn_api_http_fetch,
    .service_fetch = cn_api_service_fetch,
    .object_fetch = cn_api_object_fetch,
    .response_find = cn_api_response_find,
    .count = cn_api_count,
    .remote_keep = cn_api_remote_keep,
    .remote_release = cn_api_remote_release,
    .remote_call = cn_api_remote_call,
    .build_remote = cn_api_build_remote,
    .build_stub = cn_api_build_stub,
    .stream_open = cn_api_stream_open,
    .request_stream = cn_api_request_stream,
    .stream_read = cn_api_stream_read,
    .stream_new = cn_api_stream_new,
    .response_stream = cn_api_response_stream,
    .build_stream = cn_api_build_stream,
    .stream_write = cn_api_stream_write,
    .stream_end = cn_api_stream_end,
    .stream_fail = cn_api_stream_fail,
    .stream_pipe = cn_api_stream_pipe,
    .response_from = cn_api_response_from,
    .object_forward = cn_api_object_forward,
    .service_forward = cn_api_service_forward,
};
