/* SPDX-License-Identifier: Apache-2.0 */
/* module/checked.c - the table that modules are given: each function of it first asks guard.h
 * whether it may be called with what it is given, and then calls the one that does the work.
 * What that is given are addresses, what modules have are handles (G5). */
#include <stdarg.h>
#include <stdbool.h>

#include "module/api.h"
#include "module/async.h"
#include "module/counters.h"
#include "module/fetch.h"
#include "module/forward.h"
#include "module/guard.h"
#include "module/http.h"
#include "module/internal.h"
#include "module/json.h"
#include "module/lent.h"
#include "module/services.h"
#include "module/sockets.h"
#include "module/storage.h"
#include "module/stream.h"
#include "module/worker_api.h"

/* What a function asks of its arguments; `function` and `caller` are of the call. A handle becomes
 * what it is of, for what follows. */
#define IS(kind, handle) ((handle) = cn_guard_take(handle, CN_GUARD_##kind, function, caller))
#define NONE_OR(kind, handle) (!(handle) || IS(kind, handle))
/* At any time: without G2. */
#define KNOWN(kind, handle) ((handle) = cn_guard_find(handle, CN_GUARD_##kind, function, caller))
#define GIVEN(pointer) ((pointer) || cn_guard_tell(function, caller, #pointer " is NULL"))
/* A stream that is not passed on by stream_pipe(). */
#define ITS_OWN(stream) \
    (!(stream)->piped || cn_guard_tell(function, caller, "the stream was given to stream_pipe()"))
#define BYTES(bytes, size) \
    ((bytes) || !(size) || cn_guard_tell(function, caller, #bytes " is NULL"))

/* `bad` is what a call that is refused returns. */
#define CHECKED(type, name, bad, checks, target, parameters, arguments) \
    static type checked_##name parameters                               \
    {                                                                   \
        const char *const function = #name;                             \
        const void *const caller = __builtin_return_address(0);         \
        return (checks) ? target arguments : bad;                       \
    }
/* What it returns is shown by its handle. */
#define SHOWN(type, name, bad, checks, target, parameters, arguments) \
    static type checked_##name parameters                             \
    {                                                                 \
        const char *const function = #name;                           \
        const void *const caller = __builtin_return_address(0);       \
        return (checks) ? cn_guard_show(target arguments) : bad;      \
    }
#define CHECKED_VOID(name, checks, target, parameters, arguments) \
    static void checked_##name parameters                         \
    {                                                             \
        const char *const function = #name;                       \
        const void *const caller = __builtin_return_address(0);   \
        if (checks)                                               \
            target arguments;                                     \
    }

CHECKED(const char *, object_id, "", KNOWN(OBJECT, object), cn_api_object_id,
        (cairn_object * object), (object))
CHECKED(const char *, object_name, NULL, KNOWN(OBJECT, object), cn_api_object_name,
        (cairn_object * object), (object))
CHECKED(const char *, error_text, "", KNOWN(OBJECT, object), cn_api_error_text,
        (cairn_object * object), (object))
CHECKED_VOID(abort, IS(OBJECT, object), cn_api_abort, (cairn_object * object, const char *reason),
             (object, reason))
CHECKED_VOID(event_answer, IS(EVENT, event), cn_compiled_answer, (cairn_event * event), (event))
CHECKED_VOID(event_fail, IS(EVENT, event), cn_compiled_fail, (cairn_event * event), (event))
CHECKED(const char *, event_method, "", IS(EVENT, event), cn_api_event_method,
        (const cairn_event *event), (event))
CHECKED(const cairn_value *, event_arguments, NULL, IS(EVENT, event), cn_api_event_arguments,
        (const cairn_event *event), (event))
SHOWN(cairn_builder *, event_result, NULL, IS(EVENT, event), cn_api_event_result,
      (cairn_event * event), (event))
CHECKED(const char *, request_method, NULL, IS(EVENT, event), cn_api_request_method,
        (const cairn_event *event), (event))
CHECKED(const char *, request_url, NULL, IS(EVENT, event), cn_api_request_url,
        (const cairn_event *event), (event))
CHECKED(const char *, request_header, NULL, IS(EVENT, event) && GIVEN(name), cn_api_request_header,
        (const cairn_event *event, const char *name), (event, name))
CHECKED(size_t, request_header_count, 0, IS(EVENT, event), cn_api_request_header_count,
        (const cairn_event *event), (event))
CHECKED(const char *, request_header_at, NULL, IS(EVENT, event), cn_api_request_header_at,
        (const cairn_event *event, size_t index, const char **value), (event, index, value))
CHECKED(const void *, request_body, NULL, IS(EVENT, event), cn_api_request_body,
        (const cairn_event *event, size_t *size), (event, size))
CHECKED(int, response_status, CAIRN_EMISUSE, IS(EVENT, event), cn_api_response_status,
        (cairn_event * event, int status), (event, status))
CHECKED(int, response_header, CAIRN_EMISUSE, IS(EVENT, event) && GIVEN(name) && GIVEN(value),
        cn_api_response_header, (cairn_event * event, const char *name, const char *value),
        (event, name, value))
CHECKED(int, response_write, CAIRN_EMISUSE, IS(EVENT, event) && BYTES(bytes, size),
        cn_api_response_write, (cairn_event * event, const void *bytes, size_t size),
        (event, bytes, size))
CHECKED(int64_t, alarm_scheduled, 0, IS(EVENT, event), cn_api_alarm_scheduled,
        (const cairn_event *event), (event))
CHECKED(unsigned, alarm_retries, 0, IS(EVENT, event), cn_api_alarm_retries,
        (const cairn_event *event), (event))
SHOWN(cairn_builder *, builder, NULL, IS(OBJECT, object), cn_compiled_lend_builder,
      (cairn_object * object), (object))
CHECKED_VOID(build_undefined, IS(BUILDER, builder), cn_build_undefined, (cairn_builder * builder),
             (builder))
CHECKED_VOID(build_null, IS(BUILDER, builder), cn_build_null, (cairn_builder * builder), (builder))
CHECKED_VOID(build_bool, IS(BUILDER, builder), cn_build_bool, (cairn_builder * builder, int value),
             (builder, value))
CHECKED_VOID(build_int, IS(BUILDER, builder), cn_build_int,
             (cairn_builder * builder, int64_t value), (builder, value))
CHECKED_VOID(build_number, IS(BUILDER, builder), cn_build_number,
             (cairn_builder * builder, double value), (builder, value))
CHECKED_VOID(build_bigint, IS(BUILDER, builder), cn_build_bigint,
             (cairn_builder * builder, int64_t value), (builder, value))
CHECKED_VOID(build_text, IS(BUILDER, builder) && BYTES(text, size), cn_build_text,
             (cairn_builder * builder, const char *text, size_t size), (builder, text, size))
CHECKED_VOID(build_bytes, IS(BUILDER, builder) && BYTES(bytes, size), cn_build_bytes,
             (cairn_builder * builder, const void *bytes, size_t size), (builder, bytes, size))
CHECKED_VOID(build_date, IS(BUILDER, builder), cn_build_date,
             (cairn_builder * builder, double time), (builder, time))
CHECKED_VOID(build_array, IS(BUILDER, builder), cn_build_array, (cairn_builder * builder),
             (builder))
CHECKED_VOID(build_object, IS(BUILDER, builder), cn_build_object, (cairn_builder * builder),
             (builder))
CHECKED_VOID(build_map, IS(BUILDER, builder), cn_build_map, (cairn_builder * builder), (builder))
CHECKED_VOID(build_name, IS(BUILDER, builder) && GIVEN(name), cn_build_name,
             (cairn_builder * builder, const char *name), (builder, name))
CHECKED_VOID(build_end, IS(BUILDER, builder), cn_build_end, (cairn_builder * builder), (builder))
CHECKED_VOID(build_value, IS(BUILDER, builder), cn_build_value,
             (cairn_builder * builder, const cairn_value *value), (builder, value))
CHECKED(const cairn_value *, kv_get, NULL, IS(OBJECT, object) && GIVEN(key), cn_api_kv_get,
        (cairn_object * object, const char *key), (object, key))
CHECKED(int, kv_put, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(key) && IS(BUILDER, value),
        cn_api_kv_put, (cairn_object * object, const char *key, cairn_builder *value),
        (object, key, value))
CHECKED(int, kv_delete, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(key), cn_api_kv_delete,
        (cairn_object * object, const char *key), (object, key))
CHECKED(int, kv_list, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(each), cn_api_kv_list,
        (cairn_object * object, const struct cairn_range *range,
         int (*each)(void *data, const char *key, const cairn_value *value), void *data),
        (object, range, each, data))
CHECKED(int, delete_all, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_delete_all,
        (cairn_object * object), (object))
CHECKED(int, sql_exec, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(sql), cn_api_sql_exec,
        (cairn_object * object, const char *sql), (object, sql))
SHOWN(cairn_statement *, sql_prepare, NULL, IS(OBJECT, object) && GIVEN(sql), cn_api_sql_prepare,
      (cairn_object * object, const char *sql), (object, sql))
/* As free(): NULL is fine. */
CHECKED_VOID(sql_finalize, statement &&IS(STATEMENT, statement), cn_api_sql_finalize,
             (cairn_statement * statement), (statement))
CHECKED(int, sql_bind_null, CAIRN_EMISUSE, IS(STATEMENT, statement), cn_api_sql_bind_null,
        (cairn_statement * statement, int index), (statement, index))
CHECKED(int, sql_bind_int, CAIRN_EMISUSE, IS(STATEMENT, statement), cn_api_sql_bind_int,
        (cairn_statement * statement, int index, int64_t value), (statement, index, value))
CHECKED(int, sql_bind_real, CAIRN_EMISUSE, IS(STATEMENT, statement), cn_api_sql_bind_real,
        (cairn_statement * statement, int index, double value), (statement, index, value))
CHECKED(int, sql_bind_text, CAIRN_EMISUSE, IS(STATEMENT, statement) && BYTES(text, size),
        cn_api_sql_bind_text,
        (cairn_statement * statement, int index, const char *text, size_t size),
        (statement, index, text, size))
CHECKED(int, sql_bind_blob, CAIRN_EMISUSE, IS(STATEMENT, statement) && BYTES(bytes, size),
        cn_api_sql_bind_blob,
        (cairn_statement * statement, int index, const void *bytes, size_t size),
        (statement, index, bytes, size))
CHECKED(int, sql_step, CAIRN_EMISUSE, IS(STATEMENT, statement), cn_api_sql_step,
        (cairn_statement * statement), (statement))
CHECKED_VOID(sql_reset, IS(STATEMENT, statement), cn_api_sql_reset, (cairn_statement * statement),
             (statement))
CHECKED(int, sql_column_count, 0, IS(STATEMENT, statement), cn_api_sql_column_count,
        (cairn_statement * statement), (statement))
CHECKED(const char *, sql_column_name, NULL, IS(STATEMENT, statement), cn_api_sql_column_name,
        (cairn_statement * statement, int column), (statement, column))
CHECKED(enum cairn_kind, sql_column_kind, CAIRN_UNDEFINED, IS(STATEMENT, statement),
        cn_api_sql_column_kind, (cairn_statement * statement, int column), (statement, column))
CHECKED(int64_t, sql_column_int, 0, IS(STATEMENT, statement), cn_api_sql_column_int,
        (cairn_statement * statement, int column), (statement, column))
CHECKED(double, sql_column_real, 0, IS(STATEMENT, statement), cn_api_sql_column_real,
        (cairn_statement * statement, int column), (statement, column))
CHECKED(const char *, sql_column_text, NULL, IS(STATEMENT, statement), cn_api_sql_column_text,
        (cairn_statement * statement, int column, size_t *size), (statement, column, size))
CHECKED(const void *, sql_column_blob, NULL, IS(STATEMENT, statement), cn_api_sql_column_blob,
        (cairn_statement * statement, int column, size_t *size), (statement, column, size))
CHECKED(int64_t, sql_changes, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_sql_changes,
        (cairn_object * object), (object))
CHECKED(int64_t, sql_last_rowid, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_sql_last_rowid,
        (cairn_object * object), (object))
CHECKED(int64_t, database_size, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_database_size,
        (cairn_object * object), (object))
CHECKED(int, transaction_begin, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_transaction_begin,
        (cairn_object * object), (object))
CHECKED(int, transaction_commit, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_transaction_commit,
        (cairn_object * object), (object))
CHECKED(int, transaction_rollback, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_transaction_rollback,
        (cairn_object * object), (object))
CHECKED(int, alarm_get, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(time), cn_api_alarm_get,
        (cairn_object * object, int64_t *time), (object, time))
CHECKED(int, alarm_set, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_alarm_set,
        (cairn_object * object, int64_t time), (object, time))
CHECKED(int, alarm_delete, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_alarm_delete,
        (cairn_object * object), (object))
CHECKED(const char *, env, NULL, IS(OBJECT, object) && GIVEN(name), cn_api_env,
        (cairn_object * object, const char *name), (object, name))
CHECKED(int, object_call, CAIRN_EMISUSE,
        IS(OBJECT, object) && GIVEN(binding) && GIVEN(name) && GIVEN(method) &&
            NONE_OR(BUILDER, arguments),
        cn_api_object_call,
        (cairn_object * object, const char *binding, const char *name, const char *method,
         cairn_builder *arguments, cairn_done done, void *data),
        (object, binding, name, method, arguments, done, data))
CHECKED(int, object_call_id, CAIRN_EMISUSE,
        IS(OBJECT, object) && GIVEN(binding) && GIVEN(id) && GIVEN(method) &&
            NONE_OR(BUILDER, arguments),
        cn_api_object_call_id,
        (cairn_object * object, const char *binding, const char *id, const char *method,
         cairn_builder *arguments, cairn_done done, void *data),
        (object, binding, id, method, arguments, done, data))
CHECKED(int64_t, timer_start, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(fired), cn_api_timer_start,
        (cairn_object * object, int64_t delay, cairn_fired fired, void *data),
        (object, delay, fired, data))
CHECKED(int, timer_stop, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_timer_stop,
        (cairn_object * object, int64_t timer), (object, timer))
CHECKED(int, bookmark_now, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(done), cn_api_bookmark_now,
        (cairn_object * object, cairn_done done, void *data), (object, done, data))
CHECKED(int, bookmark_at, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(done), cn_api_bookmark_at,
        (cairn_object * object, int64_t time, cairn_done done, void *data),
        (object, time, done, data))
CHECKED(int, restore, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(bookmark), cn_api_restore,
        (cairn_object * object, const char *bookmark, cairn_done done, void *data),
        (object, bookmark, done, data))
CHECKED(int, block_concurrency, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_block_concurrency,
        (cairn_object * object), (object))
CHECKED(int, unblock_concurrency, CAIRN_EMISUSE, IS(OBJECT, object), cn_api_unblock_concurrency,
        (cairn_object * object), (object))
CHECKED(cairn_socket *, socket_accept, NULL, IS(EVENT, event) && BYTES(tags, tag_count),
        cn_api_socket_accept, (cairn_event * event, const char *const tags[], size_t tag_count),
        (event, tags, tag_count))
CHECKED(int, socket_send, CAIRN_EMISUSE, IS(OBJECT, object) && BYTES(bytes, size),
        cn_api_socket_send,
        (cairn_object * object, cairn_socket *socket, int is_text, const void *bytes, size_t size),
        (object, socket, is_text, bytes, size))
CHECKED(int64_t, socket_broadcast, CAIRN_EMISUSE, IS(OBJECT, object) && BYTES(bytes, size),
        cn_api_socket_broadcast,
        (cairn_object * object, const char *tag, int is_text, const void *bytes, size_t size),
        (object, tag, is_text, bytes, size))
CHECKED(int, socket_end, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(reason), cn_api_socket_end,
        (cairn_object * object, cairn_socket *socket, int code, const char *reason),
        (object, socket, code, reason))
CHECKED(int, socket_list, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(each), cn_api_socket_list,
        (cairn_object * object, const char *tag, int (*each)(void *data, cairn_socket *socket),
         void *data),
        (object, tag, each, data))
CHECKED(size_t, socket_count, 0, IS(OBJECT, object), cn_api_socket_count,
        (cairn_object * object, const char *tag), (object, tag))
CHECKED(const char *, socket_tag, NULL, IS(OBJECT, object), cn_api_socket_tag,
        (cairn_object * object, cairn_socket *socket, size_t index, size_t *size),
        (object, socket, index, size))
CHECKED(int, socket_attach, CAIRN_EMISUSE, IS(OBJECT, object) && IS(BUILDER, value),
        cn_api_socket_attach, (cairn_object * object, cairn_socket *socket, cairn_builder *value),
        (object, socket, value))
CHECKED(const cairn_value *, socket_attachment, NULL, IS(OBJECT, object), cn_api_socket_attachment,
        (cairn_object * object, cairn_socket *socket), (object, socket))
CHECKED(int, socket_auto_response, CAIRN_EMISUSE,
        IS(OBJECT, object) && (!request || GIVEN(response)), cn_api_socket_auto_response,
        (cairn_object * object, const char *request, const char *response),
        (object, request, response))
CHECKED(const cairn_value *, json_read, NULL, IS(OBJECT, object) && BYTES(text, size),
        cn_api_json_read, (cairn_object * object, const char *text, size_t size),
        (object, text, size))
CHECKED(const char *, json_write, NULL, IS(OBJECT, object) && IS(BUILDER, value), cn_api_json_write,
        (cairn_object * object, cairn_builder *value, size_t *size), (object, value, size))
CHECKED(int64_t, scheduled_time, 0, IS(EVENT, event), cn_api_scheduled_time,
        (const cairn_event *event), (event))
CHECKED(const char *, scheduled_cron, "", IS(EVENT, event), cn_api_scheduled_cron,
        (const cairn_event *event), (event))
CHECKED(const char *, queue_name, "", IS(EVENT, event), cn_api_queue_name,
        (const cairn_event *event), (event))
CHECKED(size_t, queue_count, 0, IS(EVENT, event), cn_api_queue_count, (const cairn_event *event),
        (event))
CHECKED(int, queue_message, CAIRN_EMISUSE, IS(EVENT, event) && GIVEN(message), cn_api_queue_message,
        (cairn_event * event, size_t index, struct cairn_message *message), (event, index, message))
CHECKED(int, queue_ack, CAIRN_EMISUSE, IS(EVENT, event), cn_api_queue_ack,
        (cairn_event * event, size_t index), (event, index))
CHECKED(int, queue_retry, CAIRN_EMISUSE, IS(EVENT, event), cn_api_queue_retry,
        (cairn_event * event, size_t index, int64_t delay), (event, index, delay))
CHECKED(int, service_call, CAIRN_EMISUSE,
        IS(OBJECT, object) && GIVEN(binding) && GIVEN(method) && NONE_OR(BUILDER, arguments),
        cn_api_service_call,
        (cairn_object * object, const char *binding, const char *method, cairn_builder *arguments,
         cairn_done done, void *data),
        (object, binding, method, arguments, done, data))
CHECKED(int, fetch, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(request), cn_api_http_fetch,
        (cairn_object * object, const struct cairn_request *request, cairn_done done, void *data),
        (object, request, done, data))
CHECKED(int, service_fetch, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(binding) && GIVEN(request),
        cn_api_service_fetch,
        (cairn_object * object, const char *binding, const struct cairn_request *request,
         cairn_done done, void *data),
        (object, binding, request, done, data))
CHECKED(int, object_fetch, CAIRN_EMISUSE,
        IS(OBJECT, object) && GIVEN(binding) && GIVEN(name) && GIVEN(request), cn_api_object_fetch,
        (cairn_object * object, const char *binding, const char *name,
         const struct cairn_request *request, cairn_done done, void *data),
        (object, binding, name, request, done, data))
CHECKED(int, count, CAIRN_EMISUSE, IS(OBJECT, object) && GIVEN(name), cn_api_count,
        (cairn_object * object, const char *name, uint64_t amount), (object, name, amount))
SHOWN(cairn_remote *, remote_keep, NULL, IS(OBJECT, object), cn_api_remote_keep,
      (cairn_object * object, const cairn_value *value), (object, value))
CHECKED_VOID(remote_release, IS(REMOTE, remote), cn_api_remote_release, (cairn_remote * remote),
             (remote))
CHECKED(int, remote_call, CAIRN_EMISUSE, IS(REMOTE, remote) && NONE_OR(BUILDER, arguments),
        cn_api_remote_call,
        (cairn_remote * remote, const char *method, cairn_builder *arguments, cairn_done done,
         void *data),
        (remote, method, arguments, done, data))
CHECKED_VOID(build_remote, IS(BUILDER, builder) && IS(REMOTE, remote), cn_api_build_remote,
             (cairn_builder * builder, cairn_remote *remote), (builder, remote))
CHECKED_VOID(build_stub, IS(BUILDER, builder) && IS(OBJECT, object) && (!name || GIVEN(binding)),
             cn_api_build_stub,
             (cairn_builder * builder, cairn_object *object, const char *binding, const char *name),
             (builder, object, binding, name))
SHOWN(cairn_stream *, stream_open, NULL, IS(OBJECT, object), cn_api_stream_open,
      (cairn_object * object, const cairn_value *value), (object, value))
SHOWN(cairn_stream *, request_stream, NULL, IS(EVENT, event), cn_api_request_stream,
      (cairn_event * event), (event))
CHECKED(int, stream_read, CAIRN_EMISUSE, IS(STREAM, stream) && GIVEN(done), cn_api_stream_read,
        (cairn_stream * stream, cairn_done done, void *data), (stream, done, data))
SHOWN(cairn_stream *, stream_new, NULL, IS(OBJECT, object), cn_api_stream_new,
      (cairn_object * object, cairn_fired wanted, void *data), (object, wanted, data))
CHECKED(int, response_stream, CAIRN_EMISUSE, IS(EVENT, event) && IS(STREAM, stream),
        cn_api_response_stream, (cairn_event * event, cairn_stream *stream), (event, stream))
CHECKED_VOID(build_stream, IS(BUILDER, builder) && IS(STREAM, stream), cn_api_build_stream,
             (cairn_builder * builder, cairn_stream *stream), (builder, stream))
CHECKED(int, stream_write, CAIRN_EMISUSE,
        IS(STREAM, stream) && ITS_OWN(stream) && BYTES(bytes, size), cn_api_stream_write,
        (cairn_stream * stream, const void *bytes, size_t size), (stream, bytes, size))
CHECKED_VOID(stream_end, IS(STREAM, stream) && ITS_OWN(stream), cn_api_stream_end,
             (cairn_stream * stream), (stream))
CHECKED_VOID(stream_fail, IS(STREAM, stream) && ITS_OWN(stream), cn_api_stream_fail,
             (cairn_stream * stream, const char *reason), (stream, reason))
CHECKED(int, stream_pipe, CAIRN_EMISUSE, IS(STREAM, from) && IS(STREAM, to), cn_api_stream_pipe,
        (cairn_stream * from, cairn_stream *to), (from, to))
CHECKED(int, response_from, CAIRN_EMISUSE, IS(EVENT, event) && NONE_OR(STREAM, stream),
        cn_api_response_from,
        (cairn_event * event, const cairn_value *response, cairn_stream *stream),
        (event, response, stream))
CHECKED(int, object_forward, CAIRN_EMISUSE, IS(EVENT, event) && GIVEN(binding) && GIVEN(name),
        cn_api_object_forward, (cairn_event * event, const char *binding, const char *name),
        (event, binding, name))
CHECKED(int, service_forward, CAIRN_EMISUSE, IS(EVENT, event) && GIVEN(binding),
        cn_api_service_forward, (cairn_event * event, const char *binding), (event, binding))

/* Of any thread. */
CHECKED(int, value_int, CAIRN_EMISUSE, GIVEN(number), cn_value_int,
        (const cairn_value *value, int64_t *number), (value, number))
CHECKED(int, value_number, CAIRN_EMISUSE, GIVEN(number), cn_value_number,
        (const cairn_value *value, double *number), (value, number))
CHECKED(const cairn_value *, value_get, NULL, GIVEN(name), cn_value_get,
        (const cairn_value *value, const char *name), (value, name))
CHECKED(const char *, response_find, NULL, GIVEN(name), cn_api_response_find,
        (const cairn_value *response, const char *name), (response, name))
CHECKED(int64_t, now, cn_api_now(NULL), !object || KNOWN(OBJECT, object), cn_api_now,
        (cairn_object * object), (object))

static void checked_log(cairn_object *object, enum cairn_level level, const char *format, ...)
{
    const char *const function = "log";
    const void *const caller = __builtin_return_address(0);
    va_list args;
    if (!GIVEN(format))
        return;
    if (object)
        (void)KNOWN(OBJECT, object); /* else the line is nobody's */
    va_start(args, format);
    cn_api_logv(object, level, format, args);
    va_end(args);
}

static int checked_error(cairn_object *object, const char *type, const char *format, ...)
{
    const char *const function = "error";
    const void *const caller = __builtin_return_address(0);
    va_list args;
    if (!(IS(OBJECT, object) && GIVEN(format)))
        return CAIRN_ERROR;
    va_start(args, format);
    cn_api_errorv(object, type, format, args);
    va_end(args);
    return CAIRN_ERROR;
}

const struct cairn_api cn_compiled_api = {
    .size = sizeof(struct cairn_api),
    .version = CN_VERSION,
    .object_id = checked_object_id,
    .object_name = checked_object_name,
    .now = checked_now,
    .log = checked_log,
    .error = checked_error,
    .error_text = checked_error_text,
    .abort = checked_abort,
    .event_answer = checked_event_answer,
    .event_fail = checked_event_fail,
    .event_method = checked_event_method,
    .event_arguments = checked_event_arguments,
    .event_result = checked_event_result,
    .request_method = checked_request_method,
    .request_url = checked_request_url,
    .request_header = checked_request_header,
    .request_header_count = checked_request_header_count,
    .request_header_at = checked_request_header_at,
    .request_body = checked_request_body,
    .response_status = checked_response_status,
    .response_header = checked_response_header,
    .response_write = checked_response_write,
    .alarm_scheduled = checked_alarm_scheduled,
    .alarm_retries = checked_alarm_retries,
    .value_kind = cn_value_kind,
    .value_bool = cn_value_bool,
    .value_int = checked_value_int,
    .value_number = checked_value_number,
    .value_text = cn_value_text,
    .value_bytes = cn_value_bytes,
    .value_count = cn_value_count,
    .value_at = cn_value_at,
    .value_key = cn_value_key,
    .value_get = checked_value_get,
    .builder = checked_builder,
    .build_undefined = checked_build_undefined,
    .build_null = checked_build_null,
    .build_bool = checked_build_bool,
    .build_int = checked_build_int,
    .build_number = checked_build_number,
    .build_bigint = checked_build_bigint,
    .build_text = checked_build_text,
    .build_bytes = checked_build_bytes,
    .build_date = checked_build_date,
    .build_array = checked_build_array,
    .build_object = checked_build_object,
    .build_map = checked_build_map,
    .build_name = checked_build_name,
    .build_end = checked_build_end,
    .build_value = checked_build_value,
    .kv_get = checked_kv_get,
    .kv_put = checked_kv_put,
    .kv_delete = checked_kv_delete,
    .kv_list = checked_kv_list,
    .delete_all = checked_delete_all,
    .sql_exec = checked_sql_exec,
    .sql_prepare = checked_sql_prepare,
    .sql_finalize = checked_sql_finalize,
    .sql_bind_null = checked_sql_bind_null,
    .sql_bind_int = checked_sql_bind_int,
    .sql_bind_real = checked_sql_bind_real,
    .sql_bind_text = checked_sql_bind_text,
    .sql_bind_blob = checked_sql_bind_blob,
    .sql_step = checked_sql_step,
    .sql_reset = checked_sql_reset,
    .sql_column_count = checked_sql_column_count,
    .sql_column_name = checked_sql_column_name,
    .sql_column_kind = checked_sql_column_kind,
    .sql_column_int = checked_sql_column_int,
    .sql_column_real = checked_sql_column_real,
    .sql_column_text = checked_sql_column_text,
    .sql_column_blob = checked_sql_column_blob,
    .sql_changes = checked_sql_changes,
    .sql_last_rowid = checked_sql_last_rowid,
    .database_size = checked_database_size,
    .transaction_begin = checked_transaction_begin,
    .transaction_commit = checked_transaction_commit,
    .transaction_rollback = checked_transaction_rollback,
    .alarm_get = checked_alarm_get,
    .alarm_set = checked_alarm_set,
    .alarm_delete = checked_alarm_delete,
    .env = checked_env,
    .object_call = checked_object_call,
    .object_call_id = checked_object_call_id,
    .timer_start = checked_timer_start,
    .timer_stop = checked_timer_stop,
    .bookmark_now = checked_bookmark_now,
    .bookmark_at = checked_bookmark_at,
    .restore = checked_restore,
    .block_concurrency = checked_block_concurrency,
    .unblock_concurrency = checked_unblock_concurrency,
    .socket_accept = checked_socket_accept,
    .socket_send = checked_socket_send,
    .socket_broadcast = checked_socket_broadcast,
    .socket_end = checked_socket_end,
    .socket_list = checked_socket_list,
    .socket_count = checked_socket_count,
    .socket_tag = checked_socket_tag,
    .socket_attach = checked_socket_attach,
    .socket_attachment = checked_socket_attachment,
    .socket_auto_response = checked_socket_auto_response,
    .json_read = checked_json_read,
    .json_write = checked_json_write,
    .scheduled_time = checked_scheduled_time,
    .scheduled_cron = checked_scheduled_cron,
    .queue_name = checked_queue_name,
    .queue_count = checked_queue_count,
    .queue_message = checked_queue_message,
    .queue_ack = checked_queue_ack,
    .queue_retry = checked_queue_retry,
    .service_call = checked_service_call,
    .fetch = checked_fetch,
    .service_fetch = checked_service_fetch,
    .object_fetch = checked_object_fetch,
    .response_find = checked_response_find,
    .count = checked_count,
    .remote_keep = checked_remote_keep,
    .remote_release = checked_remote_release,
    .remote_call = checked_remote_call,
    .build_remote = checked_build_remote,
    .build_stub = checked_build_stub,
    .stream_open = checked_stream_open,
    .request_stream = checked_request_stream,
    .stream_read = checked_stream_read,
    .stream_new = checked_stream_new,
    .response_stream = checked_response_stream,
    .build_stream = checked_build_stream,
    .stream_write = checked_stream_write,
    .stream_end = checked_stream_end,
    .stream_fail = checked_stream_fail,
    .stream_pipe = checked_stream_pipe,
    .response_from = checked_response_from,
    .object_forward = checked_object_forward,
    .service_forward = checked_service_forward,
};
