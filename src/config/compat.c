/* SPDX-License-Identifier: Apache-2.0 */
#include "config/compat.h"

#include <string.h>

#include "base/assert.h"
#include "config/schema.h"

#define ON CN_COMPAT_ON
#define OFF CN_COMPAT_OFF
#define BOTH CN_COMPAT_BOTH

/* In the order in which the platform introduced them. */
/* clang-format off */
static const struct cn_compat_flag flags[] = {
    {"formdata_parser_supports_files", "formdata_parser_converts_files_to_strings", "2021-11-03", NULL, NULL, BOTH},
    {"fetch_refuses_unknown_protocols", "fetch_treats_unknown_protocols_as_http", "2021-11-10", NULL, NULL, ON},
    {"html_rewriter_treats_esi_include_as_void_tag", NULL, NULL, NULL, NULL, ON},
    {"durable_object_fetch_requires_full_url", "durable_object_fetch_allows_relative_url", "2021-11-10", NULL, NULL, OFF},
    {"streams_byob_reader_detaches_buffer", "streams_byob_reader_does_not_detach_buffer", "2021-11-10", NULL, NULL, BOTH},
    {"streams_enable_constructors", "streams_disable_constructors", "2022-11-30", NULL, NULL, BOTH},
    {"workers_api_getters_setters_on_prototype", "workers_api_getters_setters_on_instance", "2022-01-31", NULL, NULL, ON},
    {"minimal_subrequests", "no_minimal_subrequests", "2022-04-05", NULL, NULL, ON},
    {"no_cots_on_external_fetch", "cots_on_external_fetch", "2022-03-08", NULL, NULL, ON},
    {"url_standard", "url_original", "2022-10-31", NULL, NULL, ON},
    {"global_navigator", "no_global_navigator", "2022-03-21", NULL, NULL, BOTH},
    {"capture_async_api_throws", "do_not_capture_async_api_throws", "2022-10-31", NULL, NULL, ON},
    {"r2_public_beta_bindings", "r2_internal_beta_bindings", NULL, NULL, NULL, ON},
    {"durable_object_alarms", NULL, NULL, NULL, NULL, ON},
    {"dont_substitute_null_on_type_error", "substitute_null_on_type_error", "2022-06-01", NULL, NULL, ON},
    {"transformstream_enable_standard_constructor", "transformstream_disable_standard_constructor", "2022-11-30", NULL, NULL, BOTH},
    {"r2_list_honor_include", NULL, "2022-08-04", NULL, NULL, ON},
    {"export_commonjs_default", "export_commonjs_namespace", "2022-10-31", NULL, NULL, ON},
    {"durable_object_rename", NULL, NULL, NULL, NULL, ON},
    {"web_socket_compression", "no_web_socket_compression", "2023-08-15", NULL, NULL, ON},
    {"nodejs_compat", "no_nodejs_compat", "2026-08-04", NULL, NULL, BOTH},
    {"tcp_sockets_support", NULL, NULL, NULL, NULL, ON},
    {"response_redirect_url_standard", "response_redirect_url_original", "2023-03-14", NULL, NULL, BOTH},
    {"experimental", NULL, NULL, NULL, NULL, OFF},
    {"durable_object_get_existing", NULL, NULL, NULL, NULL, OFF},
    {"http_headers_getsetcookie", "no_http_headers_getsetcookie", "2023-03-01", NULL, NULL, BOTH},
    {"dynamic_dispatch_tunnel_exceptions", "dynamic_dispatch_treat_exceptions_as_500", "2023-03-01", NULL, NULL, OFF},
    {"service_binding_extra_handlers", NULL, NULL, NULL, NULL, BOTH},
    {"no_cf_botmanagement_default", "cf_botmanagement_default", "2023-08-01", NULL, NULL, ON},
    {"urlsearchparams_delete_has_value_arg", "no_urlsearchparams_delete_has_value_arg", "2023-07-01", NULL, NULL, BOTH},
    {"strict_compression_checks", "no_strict_compression_checks", "2023-08-01", NULL, NULL, BOTH},
    {"brotli_content_encoding", "no_brotli_content_encoding", "2024-04-29", NULL, NULL, ON},
    {"strict_crypto_checks", "no_strict_crypto_checks", "2023-08-01", NULL, NULL, ON},
    {"rtti_api", NULL, NULL, NULL, NULL, OFF},
    {"webgpu", NULL, NULL, NULL, NULL, OFF},
    {"crypto_preserve_public_exponent", "no_crypto_preserve_public_exponent", "2023-12-01", NULL, NULL, ON},
    {"vectorize_query_metadata_optional", "vectorize_query_original", "2023-11-08", NULL, NULL, OFF},
    {"unsafe_module", NULL, NULL, NULL, NULL, OFF},
    {"js_rpc", NULL, NULL, NULL, NULL, BOTH},
    {"no_global_importscripts", "global_importscripts", "2024-03-04", NULL, NULL, ON},
    {"nodejs_als", "no_nodejs_als", NULL, NULL, NULL, BOTH},
    {"queues_json_messages", "no_queues_json_messages", "2024-03-18", NULL, NULL, ON},
    {"python_workers", NULL, NULL, NULL, NULL, OFF},
    {"fetcher_no_get_put_delete", "fetcher_has_get_put_delete", "2024-03-26", NULL, NULL, BOTH},
    {"unwrap_custom_thenables", "no_unwrap_custom_thenables", "2024-04-01", NULL, NULL, ON},
    {"rpc", "no_rpc", "2024-04-03", NULL, NULL, ON},
    {"internal_stream_byob_return_view", "internal_stream_byob_return_undefined", "2024-05-13", NULL, NULL, BOTH},
    {"blob_standard_mime_type", "blob_legacy_mime_type", "2024-06-03", NULL, NULL, BOTH},
    {"fetch_standard_url", "fetch_legacy_url", "2024-06-03", NULL, NULL, BOTH},
    {"nodejs_compat_v2", "no_nodejs_compat_v2", "2026-08-04", "nodejs_compat", "2024-09-23", BOTH},
    {"global_fetch_strictly_public", "global_fetch_private_origin", NULL, NULL, NULL, OFF},
    {"new_module_registry", "legacy_module_registry", NULL, NULL, NULL, OFF},
    {"cache_option_enabled", "cache_option_disabled", "2024-11-11", NULL, NULL, BOTH},
    {"kv_direct_binding", NULL, NULL, NULL, NULL, OFF},
    {"allow_custom_ports", "ignore_custom_ports", "2024-09-02", NULL, NULL, ON},
    {"increase_websocket_message_size", NULL, NULL, NULL, NULL, OFF},
    {"internal_writable_stream_abort_clears_queue", "internal_writable_stream_abort_does_not_clear_queue", "2024-09-02", NULL, NULL, BOTH},
    {"python_workers_development", NULL, NULL, NULL, NULL, OFF},
    {"nodejs_zlib", "no_nodejs_zlib", NULL, "nodejs_compat", "2024-09-23", BOTH},
    {"replica_routing", NULL, NULL, NULL, NULL, OFF},
    {"enable_d1_with_sessions_api", NULL, NULL, NULL, NULL, ON},
    {"handle_cross_request_promise_resolution", "no_handle_cross_request_promise_resolution", "2024-10-14", NULL, NULL, ON},
    {"set_tostring_tag", "do_not_set_tostring_tag", "2024-09-26", NULL, NULL, ON},
    {"upper_case_all_http_methods", "no_upper_case_all_http_methods", "2024-10-14", NULL, NULL, BOTH},
    {"python_external_packages", NULL, NULL, NULL, NULL, OFF},
    {"disable_top_level_await_in_require", "enable_top_level_await_in_require", "2024-12-02", NULL, NULL, ON},
    {"fixup-transform-stream-backpressure", "original-transform-stream-backpressure", "2024-12-16", NULL, NULL, BOTH},
    {"tail_worker_user_spans", NULL, NULL, NULL, NULL, OFF},
    {"cache_no_cache_enabled", "cache_no_cache_disabled", NULL, "cache_option_enabled", "2025-08-07", BOTH},
    {"python_workers_20250116", "no_python_workers_20250116", NULL, "python_workers", "2025-09-29", OFF},
    {"request_cf_overrides_cache_rules", "no_request_cf_overrides_cache_rules", "2025-04-02", NULL, NULL, OFF},
    {"memory_cache_delete", NULL, NULL, NULL, NULL, OFF},
    {"unique_ctx_per_invocation", NULL, "2025-03-10", NULL, NULL, ON},
    {"queue_consumer_no_wait_for_wait_until", "queue_consumer_wait_for_wait_until", NULL, NULL, NULL, BOTH},
    {"nodejs_compat_populate_process_env", "nodejs_compat_do_not_populate_process_env", NULL, "nodejs_compat", "2025-04-01", BOTH},
    {"cache_api_request_cf_overrides_cache_rules", "no_cache_api_request_cf_overrides_cache_rules", "2025-05-19", NULL, NULL, OFF},
    {"disallow_importable_env", "allow_importable_env", NULL, NULL, NULL, ON},
    {"assets_navigation_prefers_asset_serving", "assets_navigation_has_no_effect", "2025-04-01", NULL, NULL, BOTH},
    {"cache_api_compat_flags", "no_cache_api_compat_flags", "2025-04-19", NULL, NULL, OFF},
    {"python_workers_durable_objects", NULL, NULL, NULL, NULL, OFF},
    {"streaming_tail_worker", NULL, NULL, NULL, NULL, OFF},
    {"urlpattern_standard", "urlpattern_original", "2025-05-01", NULL, NULL, ON},
    {"enable_weak_ref", "disable_weak_ref", "2025-05-05", NULL, NULL, BOTH},
    {"request_signal_passthrough", "no_request_signal_passthrough", NULL, NULL, NULL, BOTH},
    {"enable_navigator_language", "disable_navigator_language", "2025-05-19", NULL, NULL, BOTH},
    {"enable_web_file_system", NULL, NULL, NULL, NULL, OFF},
    {"enable_abortsignal_rpc", NULL, NULL, NULL, NULL, ON},
    {"allow_eval_during_startup", "disallow_eval_during_startup", "2025-06-01", NULL, NULL, ON},
    {"enable_request_signal", "disable_request_signal", NULL, NULL, NULL, ON},
    {"connect_pass_through", NULL, NULL, NULL, NULL, OFF},
    {"nonclass_entrypoint_reuses_ctx_across_invocations", NULL, NULL, NULL, NULL, BOTH},
    {"bind_asynclocalstorage_snapshot_to_request", "do_not_bind_asynclocalstorage_snapshot_to-request", "2025-06-16", NULL, NULL, ON},
    {"throw_on_unrecognized_import_assertion", "ignore_unrecognized_import_assertion", "2025-06-16", NULL, NULL, ON},
    {"python_workflows", "disable_python_workflows", NULL, "python_workers", "2025-09-20", OFF},
    {"unsupported_process_actual_platform", NULL, NULL, NULL, NULL, OFF},
    {"enable_nodejs_process_v2", "disable_nodejs_process_v2", NULL, "nodejs_compat", "2025-09-15", BOTH},
    {"set_event_target_this", "no_set_event_target_this", "2025-08-01", NULL, NULL, BOTH},
    {"set_forwardable_email_full_headers", "set_forwardable_email_single_headers", "2025-08-01", NULL, NULL, OFF},
    {"enable_nodejs_http_modules", "disable_nodejs_http_modules", NULL, "nodejs_compat", "2025-08-15", ON},
    {"pedantic_wpt", "non_pedantic_wpt", NULL, NULL, NULL, OFF},
    {"expose_global_message_channel", "no_expose_global_message_channel", "2025-08-15", NULL, NULL, BOTH},
    {"enable_nodejs_http_server_modules", "disable_nodejs_http_server_modules", NULL, "enable_nodejs_http_modules", "2025-09-01", ON},
    {"python_no_global_handlers", "disable_python_no_global_handlers", "2025-08-14", NULL, NULL, OFF},
    {"enable_nodejs_fs_module", "disable_nodejs_fs_module", NULL, "nodejs_compat", "2025-09-15", ON},
    {"enable_nodejs_os_module", "disable_nodejs_os_module", NULL, "nodejs_compat", "2025-09-15", ON},
    {"python_workers_force_new_vendor_path", NULL, "2025-08-11", NULL, NULL, OFF},
    {"remove_nodejs_compat_eol", "add_nodejs_compat_eol", NULL, "nodejs_compat", "2025-09-01", OFF},
    {"enable_validate_workflow_entrypoint", "disable_validate_workflow_entrypoint", "2025-09-20", NULL, NULL, OFF},
    {"python_dedicated_snapshot", "disable_python_dedicated_snapshot", NULL, "python_workers_20250116", "2025-10-16", OFF},
    {"typescript_strip_types", NULL, NULL, NULL, NULL, OFF},
    {"enable_nodejs_http2_module", "disable_nodejs_http2_module", NULL, "nodejs_compat", "2025-09-01", ON},
    {"allow_insecure_inefficient_logged_eval", NULL, NULL, NULL, NULL, OFF},
    {"strip_authorization_on_cross_origin_redirect", "retain_authorization_on_cross_origin_redirect", "2025-09-01", NULL, NULL, BOTH},
    {"enhanced_error_serialization", "legacy_error_serialization", "2026-04-21", NULL, NULL, ON},
    {"enable_email_sending_queuing", "disable_email_sending_queuing", NULL, NULL, NULL, OFF},
    {"remove_nodejs_compat_eol_v22", "add_nodejs_compat_eol_v22", NULL, "remove_nodejs_compat_eol", "2027-04-30", OFF},
    {"remove_nodejs_compat_eol_v23", "add_nodejs_compat_eol_v23", NULL, "remove_nodejs_compat_eol_v24", "2025-09-01", OFF},
    {"remove_nodejs_compat_eol_v24", "add_nodejs_compat_eol_v24", NULL, "remove_nodejs_compat_eol", "2028-04-30", OFF},
    {"enable_nodejs_console_module", "disable_nodejs_console_module", NULL, "nodejs_compat", "2025-09-21", ON},
    {"enable_nodejs_vm_module", "disable_nodejs_vm_module", NULL, "nodejs_compat", "2025-10-01", ON},
    {"enable_nodejs_perf_hooks_module", "disable_nodejs_perf_hooks_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_global_performance_classes", "disable_global_performance_classes", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_domain_module", "disable_nodejs_domain_module", NULL, "nodejs_compat", "2025-12-04", ON},
    {"enable_nodejs_v8_module", "disable_nodejs_v8_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_tty_module", "disable_nodejs_tty_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_punycode_module", "disable_nodejs_punycode_module", NULL, "nodejs_compat", "2025-12-04", ON},
    {"enable_nodejs_cluster_module", "disable_nodejs_cluster_module", NULL, "nodejs_compat", "2025-12-04", ON},
    {"enable_nodejs_child_process_module", "disable_nodejs_child_process_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_worker_threads_module", "disable_nodejs_worker_threads_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_stream_wrap_module", "disable_nodejs_stream_wrap_module", NULL, "nodejs_compat", "2026-01-29", ON},
    {"enable_nodejs_wasi_module", "disable_nodejs_wasi_module", NULL, "nodejs_compat", "2025-12-04", ON},
    {"enable_nodejs_dgram_module", "disable_nodejs_dgram_module", NULL, "nodejs_compat", "2026-01-29", ON},
    {"enable_nodejs_inspector_module", "disable_nodejs_inspector_module", NULL, "nodejs_compat", "2026-01-29", ON},
    {"enable_nodejs_trace_events_module", "disable_nodejs_trace_events_module", NULL, "nodejs_compat", "2025-12-04", ON},
    {"enable_nodejs_readline_module", "disable_nodejs_readline_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_repl_module", "disable_nodejs_repl_module", NULL, "nodejs_compat", "2026-03-17", ON},
    {"enable_nodejs_sqlite_module", "disable_nodejs_sqlite_module", NULL, "nodejs_compat", "2026-01-29", ON},
    {"enable_ctx_exports", "disable_ctx_exports", "2025-11-17", NULL, NULL, ON},
    {"enable_python_external_sdk", "disable_python_external_sdk", "2026-04-21", NULL, NULL, OFF},
    {"enable_fast_jsg_struct", "disable_fast_jsg_struct", "2025-12-03", NULL, NULL, BOTH},
    {"cache_reload_enabled", "cache_reload_disabled", NULL, NULL, NULL, BOTH},
    {"enable_streams_nodejs_v24_compat", "disable_streams_nodejs_v24_compat", NULL, NULL, NULL, ON},
    {"python_check_rng_state", "disable_python_check_rng_state", NULL, "python_workers", "2025-12-16", OFF},
    {"immutable_api_prototypes", "mutable_api_prototypes", NULL, NULL, NULL, ON},
    {"fetch_iterable_type_support", "no_fetch_iterable_type_support", "2026-02-19", NULL, NULL, BOTH},
    {"env_module_nullable_support", "no_env_module_nullable_support", NULL, NULL, NULL, BOTH},
    {"precise_timers", "no_precise_timers", NULL, NULL, NULL, OFF},
    {"fetch_iterable_type_support_override_adjustment", "no_fetch_iterable_type_support_override_adjustment", NULL, "fetch_iterable_type_support", "2026-01-15", ON},
    {"strip_bom_in_read_all_text", "do_not_strip_bom_in_read_all_text", "2026-01-13", "pedantic_wpt", "2026-01-13", BOTH},
    {"allow_irrevocable_stub_storage", NULL, NULL, NULL, NULL, ON},
    {"rpc_params_dup_stubs", "rpc_params_transfer_stubs", "2026-01-20", NULL, NULL, BOTH},
    {"enable_nodejs_global_timers", "no_nodejs_global_timers", NULL, "nodejs_compat", "2026-02-10", ON},
    {"streams_no_default_auto_allocate_chunk_size", "streams_auto_allocate_chunk_size_default", NULL, NULL, NULL, BOTH},
    {"python_workflows_implicit_dependencies", "no_python_workflows_implicit_dependencies", NULL, "python_workers", "2026-02-25", OFF},
    {"require_returns_default_export", "require_returns_namespace", "2026-01-22", NULL, NULL, ON},
    {"python_request_headers_preserve_commas", "disable_python_request_headers_preserve_commas", "2026-02-17", NULL, NULL, OFF},
    {"queue_expose_error_codes", "no_queue_expose_error_codes", "2026-03-12", NULL, NULL, ON},
    {"text_decoder_replace_surrogates", "disable_text_decoder_replace_surrogates", "2026-02-24", "pedantic_wpt", "2026-02-24", ON},
    {"containers_pid_namespace", "no_containers_pid_namespace", "2026-04-01", NULL, NULL, OFF},
    {"delete_all_deletes_alarm", "delete_all_preserves_alarm", "2026-02-24", NULL, NULL, ON},
    {"unhandled_rejection_after_microtask_checkpoint", "no_unhandled_rejection_after_microtask_checkpoint", "2026-03-03", NULL, NULL, ON},
    {"text_decoder_cjk_decoder", "disable_text_decoder_cjk_decoder", "2026-03-03", NULL, NULL, ON},
    {"websocket_close_reason_byte_limit", "no_websocket_close_reason_byte_limit", "2026-03-03", NULL, NULL, BOTH},
    {"enable_version_api", NULL, NULL, NULL, NULL, OFF},
    {"websocket_standard_binary_type", "no_websocket_standard_binary_type", "2026-03-17", NULL, NULL, BOTH},
    {"writable_stream_spec_compliant_writer", "no_writable_stream_spec_compliant_writer", "2026-03-24", NULL, NULL, BOTH},
    {"encoder_stream_spec_compliant_backpressure", "no_encoder_stream_spec_compliant_backpressure", "2026-03-24", NULL, NULL, ON},
    {"spec_compliant_property_attributes", "no_spec_compliant_property_attributes", NULL, NULL, NULL, ON},
    {"workflows_preserve_non_retryable_error_message", "workflows_replace_non_retryable_error_message", "2026-05-14", NULL, NULL, OFF},
    {"web_socket_auto_reply_to_close", "web_socket_manual_reply_to_close", "2026-04-07", NULL, NULL, BOTH},
    {"enable_ctx_version_metadata", NULL, NULL, NULL, NULL, OFF},
    {"no_resizable_array_buffer_in_blob", "resizable_array_buffer_in_blob", NULL, NULL, NULL, BOTH},
    {"diagnostics_channel_has_subscribers_getter", "no_diagnostics_channel_has_subscribers_getter", "2026-05-19", NULL, NULL, BOTH},
    {"workflows_step_rollback", NULL, NULL, NULL, NULL, OFF},
    {"python_process_pth_files", "disable_python_process_pth_files", "2026-05-26", NULL, NULL, OFF},
    {"throw_on_not_implemented_tls_options", "no_throw_on_not_implemented_tls_options", "2026-06-16", NULL, NULL, ON},
    {"auto_grpc_convert", NULL, NULL, NULL, NULL, OFF},
    {"python_workers_20260610", "no_python_workers_20260610", NULL, NULL, NULL, OFF},
    {"enable_nodejs_inspector_local_dev", NULL, NULL, NULL, NULL, BOTH},
    {"d1_binding_jsrpc", NULL, NULL, NULL, NULL, OFF},
    {"workflows_bindings_rpc", NULL, NULL, NULL, NULL, OFF},
    {"typescript_implemented_streams", NULL, NULL, NULL, NULL, OFF},
    {"expose_draining_reader", NULL, NULL, NULL, NULL, OFF},
    {"workflows_enable_fast_engine_creation", "workflows_disable_fast_engine_creation", "2026-08-11", NULL, NULL, OFF},
    {"wasm_memory_discard", NULL, NULL, NULL, NULL, OFF},
    {"python_workers_314", "no_python_workers_314", NULL, "python_workers", "2026-09-08", OFF},
    {"spec_compliant_dispatch_exceptions", "no_spec_compliant_dispatch_exceptions", "2026-09-15", NULL, NULL, OFF},
    {"auto_inject_python_workers", "no_auto_inject_python_workers", NULL, NULL, NULL, OFF},
    {"durable_object_io_tasks_prevent_eviction", "durable_object_io_tasks_do_not_prevent_eviction", "2026-10-01", NULL, NULL, ON},
    {"webcrypto_modern_algorithms", NULL, NULL, NULL, NULL, OFF},
    {"wasm_esm_integration_builtins", NULL, NULL, NULL, NULL, OFF},
    {"pipe_to_backward_propagation", "no_pipe_to_backward_propagation", "2026-11-17", NULL, NULL, BOTH},
    {"cache_option_preserves_cache_control", "cache_option_overrides_cache_control", "2026-11-17", NULL, NULL, OFF},
    {"durable_object_snapshots", NULL, NULL, NULL, NULL, OFF},
    {"connect_handler_starttls", NULL, NULL, NULL, NULL, OFF},
    {"offpeak_location_hint", NULL, NULL, NULL, NULL, OFF},
    {"python_shared_standard_library", NULL, NULL, "python_workers", "2026-11-19", OFF},
    {"wasm_source_url_support", "no_wasm_source_url_support", "2026-12-01", NULL, NULL, OFF},
    {"python_zstd_snapshot", NULL, NULL, NULL, NULL, OFF},
    {"nodejs_process_version_24", "no_nodejs_process_version_24", "2026-11-24", NULL, NULL, BOTH},
    {"r2_binding_jsrpc", NULL, NULL, NULL, NULL, OFF},
    {"temporal", "no_temporal", "2026-12-01", NULL, NULL, OFF},
};
/* clang-format on */

const struct cn_compat_flag *cn_compat_find(const char *name, bool *enables)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(flags); i++) {
        *enables = strcmp(flags[i].enable, name) == 0;
        if (*enables || (flags[i].disable && strcmp(flags[i].disable, name) == 0))
            return &flags[i];
    }
    return NULL;
}

const struct cn_compat_flag *cn_compat_at(size_t index)
{
    return index < CN_ARRAY_COUNT(flags) ? &flags[index] : NULL;
}

bool cn_compat_is_built(const struct cn_compat_flag *flag, bool enables)
{
    return flag->side == BOTH || (flag->side == ON) == enables;
}

/* Both names of every flag, one by one. */
static const char *name_at(const void *data, size_t index)
{
    if (index / 2 >= CN_ARRAY_COUNT(flags))
        return NULL;
    const struct cn_compat_flag *flag = &flags[index / 2];
    return index % 2 && flag->disable ? flag->disable : flag->enable;
}

const char *cn_compat_suggest(const char *name)
{
    return cn_suggest(name, name_at, NULL);
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + text[1] - '0';
}

bool cn_compat_date_valid(const char *date)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (strlen(date) != 10)
        return false;
    for (int i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? date[i] != '-' : date[i] < '0' || date[i] > '9')
            return false;
    int month = two_digits(date + 5), day = two_digits(date + 8);
    int century = two_digits(date), of_century = two_digits(date + 2);
    bool leap = of_century % 4 == 0 && (of_century != 0 || century % 4 == 0);
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] - (month == 2 && !leap);
}

bool cn_compat_is_on(const char *enable, const char *date, const char *const *given,
                     size_t given_count)
{
    bool enables;
    const struct cn_compat_flag *flag = cn_compat_find(enable, &enables);
    CN_ASSERT(flag && enables);
    for (size_t i = 0; i < given_count; i++) {
        if (strcmp(given[i], flag->enable) == 0)
            return true;
        if (flag->disable && strcmp(given[i], flag->disable) == 0)
            return false;
    }
    if (!date)
        return false;
    /* Dates of this form sort as text. */
    if (flag->date && strcmp(date, flag->date) >= 0)
        return true;
    return flag->implied_by && strcmp(date, flag->implied_date) >= 0 &&
           cn_compat_is_on(flag->implied_by, date, given, given_count);
}
