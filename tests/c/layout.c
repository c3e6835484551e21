/* What programs that were compiled with version 0.1 rely on. Numbers here may be added to, and never
 * change: this file not compiling is a broken ABI. */
#include "check.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define GROWS(type, bytes) _Static_assert(sizeof(type) >= (bytes), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)

SIZE(pace_status_t, 4);
SIZE(pace_task_t, 8);
SIZE(pace_strand_t, 8);
SIZE(pace_handle_t, 8);
SIZE(pace_timer_t, 8);

SIZE(pace_work_t, 24);
AT(pace_work_t, run, 0);
AT(pace_work_t, user_data, 8);
AT(pace_work_t, drop, 16);

SIZE(pace_event_t, 24);
AT(pace_event_t, kind, 0);
AT(pace_event_t, ready, 4);
AT(pace_event_t, token, 8);
AT(pace_event_t, handle, 16);

GROWS(pace_pool_config_t, 128);
AT(pace_pool_config_t, struct_size, 0);
AT(pace_pool_config_t, threads, 4);
AT(pace_pool_config_t, max_joined, 8);
AT(pace_pool_config_t, leaders, 12);
AT(pace_pool_config_t, source, 16);
AT(pace_pool_config_t, promotion, 20);
AT(pace_pool_config_t, watch_period_ns, 24);
AT(pace_pool_config_t, spin_ns, 32);
AT(pace_pool_config_t, lane_capacity, 40);
AT(pace_pool_config_t, strand_capacity, 44);
AT(pace_pool_config_t, max_handles, 48);
AT(pace_pool_config_t, pin_strict, 52);
AT(pace_pool_config_t, pin, 56);
AT(pace_pool_config_t, name, 64);
AT(pace_pool_config_t, stack_size, 72);
AT(pace_pool_config_t, on_start, 80);
AT(pace_pool_config_t, on_stop, 88);
AT(pace_pool_config_t, on_slow, 96);
AT(pace_pool_config_t, slow_ns, 104);
AT(pace_pool_config_t, hook_data, 112);
AT(pace_pool_config_t, hook_drop, 120);

AT(pace_pool_config_t, reserve, 128);
AT(pace_pool_config_t, ageing_ns, 144);
AT(pace_pool_config_t, log, 152);

GROWS(pace_workers_config_t, 72);
AT(pace_workers_config_t, max_waiting, 4);
AT(pace_workers_config_t, max_pulled, 8);
AT(pace_workers_config_t, max_tasks, 12);
AT(pace_workers_config_t, seed, 16);
AT(pace_workers_config_t, scaling, 24);
AT(pace_workers_config_t, metrics, 25);
AT(pace_workers_config_t, min_active, 28);
AT(pace_workers_config_t, scaling_high_ns, 32);
AT(pace_workers_config_t, scaling_low_ns, 40);
AT(pace_workers_config_t, scaling_period_ns, 48);
AT(pace_workers_config_t, scaling_percentile, 56);
AT(pace_workers_config_t, scaling_patience, 60);
AT(pace_workers_config_t, name, 64);
AT(pace_workers_config_t, full, 72);
AT(pace_workers_config_t, max_droppable, 76);
AT(pace_workers_config_t, full_wait_ns, 80);
AT(pace_workers_config_t, middleware, 88);
AT(pace_workers_config_t, middleware_count, 96);
AT(pace_workers_config_t, log, 104);

SIZE(pace_label_t, 16);

SIZE(pace_middleware_t, 40);
AT(pace_middleware_t, after, 8);
AT(pace_middleware_t, on_error, 16);
AT(pace_middleware_t, user_data, 24);
AT(pace_middleware_t, drop, 32);

GROWS(pace_log_config_t, 64);
AT(pace_log_config_t, capacity, 4);
AT(pace_log_config_t, levels, 8);
AT(pace_log_config_t, file, 16);
AT(pace_log_config_t, max_size, 24);
AT(pace_log_config_t, files, 32);
AT(pace_log_config_t, pull_capacity, 36);
AT(pace_log_config_t, on_record, 40);
AT(pace_log_config_t, user_data, 48);
AT(pace_log_config_t, drop, 56);

GROWS(pace_log_stats_t, 48);
AT(pace_log_stats_t, told, 8);
AT(pace_log_stats_t, last_error, 32);
AT(pace_log_stats_t, pullable, 40);

SIZE(pace_log_field_t, 48);
AT(pace_log_field_t, kind, 8);
AT(pace_log_field_t, u64, 16);
AT(pace_log_field_t, i64, 24);
AT(pace_log_field_t, f64, 32);
AT(pace_log_field_t, text, 40);

SIZE(pace_log_record_t, 56);
AT(pace_log_record_t, level, 8);
AT(pace_log_record_t, component, 12);
AT(pace_log_record_t, event, 16);
AT(pace_log_record_t, pool, 24);
AT(pace_log_record_t, message, 32);
AT(pace_log_record_t, fields, 40);
AT(pace_log_record_t, field_count, 48);

GROWS(pace_http_end_t, 64);
AT(pace_http_end_t, status, 0);
AT(pace_http_end_t, reserved, 4);
AT(pace_http_end_t, method, 8);
AT(pace_http_end_t, target, 24);
AT(pace_http_end_t, duration_ns, 40);
AT(pace_http_end_t, peer, 48);

GROWS(pace_workers_report_t, 32);
AT(pace_workers_report_t, requested, 4);
AT(pace_workers_report_t, drained, 5);
AT(pace_workers_report_t, completed, 8);
AT(pace_workers_report_t, cancelled, 16);
AT(pace_workers_report_t, stuck, 24);
AT(pace_workers_report_t, failed_hooks, 28);

SIZE(pace_retry_t, 40);
AT(pace_retry_t, jitter, 4);
AT(pace_retry_t, retries, 8);
AT(pace_retry_t, first_ns, 16);
AT(pace_retry_t, cap_ns, 24);
AT(pace_retry_t, within_ns, 32);

GROWS(pace_task_type_config_t, 168);
AT(pace_task_type_config_t, overlap_retries, 168);
AT(pace_task_type_config_t, lease_ns, 176);
AT(pace_task_type_config_t, max_running, 132);
AT(pace_task_type_config_t, soft_timeout_ns, 136);
AT(pace_task_type_config_t, grace_ns, 144);
AT(pace_task_type_config_t, full, 152);
AT(pace_task_type_config_t, full_wait_ns, 160);
AT(pace_task_type_config_t, lane, 4);
AT(pace_task_type_config_t, retry, 8);
AT(pace_task_type_config_t, timeout_ns, 48);
AT(pace_task_type_config_t, queue_timeout_ns, 56);
AT(pace_task_type_config_t, deadline_ns, 64);
AT(pace_task_type_config_t, retry_delay, 72);
AT(pace_task_type_config_t, retry_data, 80);
AT(pace_task_type_config_t, retry_drop, 88);
AT(pace_task_type_config_t, retry_budget, 96);
AT(pace_task_type_config_t, budget_per_second, 100);
AT(pace_task_type_config_t, budget_ratio, 104);
AT(pace_task_type_config_t, budget_burst, 112);
AT(pace_task_type_config_t, rate_starts, 116);
AT(pace_task_type_config_t, rate_per_ns, 120);
AT(pace_task_type_config_t, rate_burst, 128);

GROWS(pace_task_options_t, 96);
AT(pace_task_options_t, lane, 4);
AT(pace_task_options_t, retry, 8);
AT(pace_task_options_t, timeout_ns, 48);
AT(pace_task_options_t, queue_timeout_ns, 56);
AT(pace_task_options_t, deadline_ns, 64);
AT(pace_task_options_t, delay_ns, 72);
AT(pace_task_options_t, key, 80);
AT(pace_task_options_t, keyed, 88);
AT(pace_task_options_t, soft_timeout_ns, 96);
AT(pace_task_options_t, grace_ns, 104);
AT(pace_task_options_t, full, 112);
AT(pace_task_options_t, full_wait_ns, 120);

GROWS(pace_task_report_t, 64);
AT(pace_task_report_t, status, 4);
AT(pace_task_report_t, id, 8);
AT(pace_task_report_t, name, 16);
AT(pace_task_report_t, message, 24);
AT(pace_task_report_t, outcome, 32);
AT(pace_task_report_t, attempts, 36);
AT(pace_task_report_t, queue_time_ns, 40);
AT(pace_task_report_t, run_time_ns, 48);
AT(pace_task_report_t, worker, 56);

SIZE(pace_attempt_work_t, 24);
SIZE(pace_task_event_t, 40);
AT(pace_task_event_t, number, 4);
AT(pace_task_event_t, status, 8);
AT(pace_task_event_t, token, 16);
AT(pace_task_event_t, attempt, 24);
AT(pace_task_event_t, id, 32);
SIZE(pace_attempt_end_t, 40);
AT(pace_attempt_end_t, outcome, 8);
AT(pace_attempt_end_t, advice, 12);
AT(pace_attempt_end_t, after_ns, 16);
AT(pace_attempt_end_t, message, 24);
AT(pace_attempt_end_t, status, 32);
AT(pace_attempt_end_t, result, 36);

GROWS(pace_task_type_stats_t, 96);
GROWS(pace_workers_audit_t, 80);
GROWS(pace_health_t, 40);

GROWS(pace_report_t, 24);
AT(pace_report_t, drained, 4);
AT(pace_report_t, requested, 5);
AT(pace_report_t, cancelled, 8);
AT(pace_report_t, stuck, 16);
AT(pace_report_t, left, 24);
AT(pace_report_t, worker_tasks, 32);
AT(pace_report_t, connections, 40);

GROWS(pace_handle_options_t, 12);
AT(pace_handle_options_t, interest, 4);
AT(pace_handle_options_t, level, 8);
AT(pace_handle_options_t, may_block, 9);
AT(pace_handle_options_t, paused, 10);

GROWS(pace_pool_stats_t, 72);
AT(pace_pool_stats_t, threads, 4);
AT(pace_pool_stats_t, sets, 8);
AT(pace_pool_stats_t, parked, 12);
AT(pace_pool_stats_t, watch, 16);
AT(pace_pool_stats_t, handles, 24);
AT(pace_pool_stats_t, wakes, 32);
AT(pace_pool_stats_t, queued, 40);

GROWS(pace_thread_stats_t, 96);
AT(pace_thread_stats_t, role, 4);
AT(pace_thread_stats_t, cpu, 8);
AT(pace_thread_stats_t, pin_failed, 12);
AT(pace_thread_stats_t, terms, 16);
AT(pace_thread_stats_t, ticks, 88);

GROWS(pace_set_stats_t, 24);
AT(pace_set_stats_t, leader, 4);
AT(pace_set_stats_t, harvests, 8);
AT(pace_set_stats_t, surplus, 16);

GROWS(pace_audit_t, 64);
AT(pace_audit_t, balances, 4);
AT(pace_audit_t, submitted, 8);
AT(pace_audit_t, in_flight, 56);

SIZE(pace_conn_id_t, 8);

SIZE(pace_request_event_t, 40);
AT(pace_request_event_t, conn, 8);
AT(pace_request_event_t, kind, 16);
AT(pace_request_event_t, route, 20);
AT(pace_request_event_t, bytes, 24);
AT(pace_request_event_t, size, 32);

SIZE(pace_answer_t, 64);
AT(pace_answer_t, length, 8);
AT(pace_answer_t, headers, 16);
AT(pace_answer_t, headers_size, 24);
AT(pace_answer_t, bytes, 32);
AT(pace_answer_t, size, 40);
AT(pace_answer_t, status, 48);
AT(pace_answer_t, flags, 52);
AT(pace_answer_t, wrote, 56);
AT(pace_answer_t, outcome, 60);

SIZE(pace_conn_event_t, 48);
AT(pace_conn_event_t, conn, 8);
AT(pace_conn_event_t, kind, 16);
AT(pace_conn_event_t, detail, 20);
AT(pace_conn_event_t, token, 24);
AT(pace_conn_event_t, bytes, 32);
AT(pace_conn_event_t, size, 40);

SIZE(pace_completion_t, 48);
AT(pace_completion_t, consumed, 8);
AT(pace_completion_t, bytes, 16);
AT(pace_completion_t, size, 24);
AT(pace_completion_t, flags, 32);
AT(pace_completion_t, wrote, 36);
AT(pace_completion_t, outcome, 40);
AT(pace_completion_t, reserved, 44);

SIZE(pace_piece_t, 16);
AT(pace_piece_t, bytes, 0);
AT(pace_piece_t, size, 8);

GROWS(pace_conn_hooks_t, 104);
AT(pace_conn_hooks_t, open, 8);
AT(pace_conn_hooks_t, data, 16);
AT(pace_conn_hooks_t, finished, 24);
AT(pace_conn_hooks_t, writable, 32);
AT(pace_conn_hooks_t, written, 40);
AT(pace_conn_hooks_t, timeout, 48);
AT(pace_conn_hooks_t, notified, 56);
AT(pace_conn_hooks_t, draining, 64);
AT(pace_conn_hooks_t, error, 72);
AT(pace_conn_hooks_t, close, 80);
AT(pace_conn_hooks_t, user_data, 88);
AT(pace_conn_hooks_t, drop, 96);

GROWS(pace_listener_options_t, 168);
AT(pace_listener_options_t, fd, 4);
AT(pace_listener_options_t, address, 8);
AT(pace_listener_options_t, max_connections, 16);
AT(pace_listener_options_t, refusal, 24);
AT(pace_listener_options_t, max_requests, 40);
AT(pace_listener_options_t, busy, 48);
AT(pace_listener_options_t, max_unconsumed, 64);
AT(pace_listener_options_t, output_low, 72);
AT(pace_listener_options_t, idle_timeout_ns, 96);
AT(pace_listener_options_t, keep_alive_ns, 128);
AT(pace_listener_options_t, send_buffer, 136);
AT(pace_listener_options_t, socket_mode, 152);
AT(pace_listener_options_t, backlog, 156);
AT(pace_listener_options_t, no_delay, 160);
AT(pace_listener_options_t, reuse_port, 162);
AT(pace_listener_options_t, allow_half_open, 163);
AT(pace_listener_options_t, filter, 168);

GROWS(pace_server_options_t, 48);
AT(pace_server_options_t, listeners, 8);
AT(pace_server_options_t, listener_count, 16);
AT(pace_server_options_t, outgoing, 24);
AT(pace_server_options_t, connect_timeout_ns, 32);
AT(pace_server_options_t, on_exhausted, 40);

GROWS(pace_drain_report_t, 24);
AT(pace_drain_report_t, drained, 4);
AT(pace_drain_report_t, requested, 5);
AT(pace_drain_report_t, cut_off, 8);
AT(pace_drain_report_t, open, 16);

GROWS(pace_server_stats_t, 184);
AT(pace_server_stats_t, balances, 4);
AT(pace_server_stats_t, accepted, 8);
AT(pace_server_stats_t, closed_peer, 40);
AT(pace_server_stats_t, closed_pool_ended, 120);
AT(pace_server_stats_t, requests, 144);
AT(pace_server_stats_t, in_work, 176);

SIZE(pace_text_t, 16);
SIZE(pace_field_t, 32);
AT(pace_text_t, size, 8);
AT(pace_field_t, value, 16);

GROWS(pace_request_body_hooks_t, 32);
AT(pace_request_body_hooks_t, begin, 8);
AT(pace_request_body_hooks_t, data, 16);
AT(pace_request_body_hooks_t, end, 24);

GROWS(pace_http_options_t, 112);
AT(pace_http_options_t, max_headers, 4);
AT(pace_http_options_t, listeners, 8);
AT(pace_http_options_t, listener_count, 16);
AT(pace_http_options_t, max_head, 24);
AT(pace_http_options_t, max_body, 40);
AT(pace_http_options_t, max_requests, 56);
AT(pace_http_options_t, head_timeout_ns, 64);
AT(pace_http_options_t, keep_alive_timeout_ns, 80);
AT(pace_http_options_t, keep_alive_requests, 88);
AT(pace_http_options_t, on_exhausted, 96);
AT(pace_http_options_t, exhausted_data, 104);

GROWS(pace_http_stats_t, 216);
AT(pace_http_stats_t, balances, 4);
AT(pace_http_stats_t, begun, 8);
AT(pace_http_stats_t, answered_upgraded, 24);
AT(pace_http_stats_t, refused_bad_request, 64);
AT(pace_http_stats_t, aborted_disconnected, 168);
AT(pace_http_stats_t, panics, 208);

SIZE(pace_frame_t, 24);
AT(pace_frame_t, size, 8);
AT(pace_frame_t, length, 16);

SIZE(pace_ip_t, 24);
AT(pace_ip_t, port, 2);
AT(pace_ip_t, scope, 4);
AT(pace_ip_t, bytes, 8);

SIZE(pace_datagram_t, 48);
AT(pace_datagram_t, length, 16);
AT(pace_datagram_t, peer, 24);

GROWS(pace_udp_hooks_t, 48);
AT(pace_udp_hooks_t, data, 8);
AT(pace_udp_hooks_t, close, 24);
AT(pace_udp_hooks_t, user_data, 32);
AT(pace_udp_hooks_t, drop, 40);

GROWS(pace_udp_options_t, 56);
AT(pace_udp_options_t, fd, 4);
AT(pace_udp_options_t, bind, 8);
AT(pace_udp_options_t, connect, 16);
AT(pace_udp_options_t, batch, 24);
AT(pace_udp_options_t, send_buffer, 32);
AT(pace_udp_options_t, multicast_ttl, 48);
AT(pace_udp_options_t, multicast_loop, 55);

GROWS(pace_udp_stats_t, 72);
AT(pace_udp_stats_t, received, 8);
AT(pace_udp_stats_t, failed, 64);
AT(pace_udp_stats_t, dropped, 72);

SIZE(pace_udp_event_t, 56);
AT(pace_udp_event_t, os_error, 4);
AT(pace_udp_event_t, bytes, 8);
AT(pace_udp_event_t, size, 16);
AT(pace_udp_event_t, length, 24);
AT(pace_udp_event_t, peer, 32);

SIZE(pace_inherited_t, 260);
AT(pace_inherited_t, name, 4);

GROWS(pace_filter_hooks_t, 64);
AT(pace_filter_hooks_t, make, 8);
AT(pace_filter_hooks_t, received, 16);
AT(pace_filter_hooks_t, written, 24);
AT(pace_filter_hooks_t, finish, 32);
AT(pace_filter_hooks_t, cut_off, 40);
AT(pace_filter_hooks_t, free, 48);
AT(pace_filter_hooks_t, user_data, 56);
AT(pace_filter_hooks_t, drop, 64);

SIZE(pace_subscription_t, 8);

SIZE(pace_message_t, 88);
AT(pace_message_t, time_ns, 8);
AT(pace_message_t, lost_before, 16);
AT(pace_message_t, key, 24);
AT(pace_message_t, payload, 40);
AT(pace_message_t, size, 48);
AT(pace_message_t, headers, 56);
AT(pace_message_t, header_count, 64);
AT(pace_message_t, priority, 72);
AT(pace_message_t, attempt, 76);
AT(pace_message_t, subscription, 80);

GROWS(pace_publication_t, 32);
AT(pace_publication_t, priority, 4);
AT(pace_publication_t, headers, 8);
AT(pace_publication_t, header_count, 16);

GROWS(pace_hub_options_t, 16);
AT(pace_hub_options_t, max_payload, 8);
AT(pace_hub_options_t, dead_letters, 16);
AT(pace_hub_options_t, histories, 24);
AT(pace_hub_options_t, history_count, 32);
AT(pace_hub_options_t, name, 40);
AT(pace_hub_options_t, errors, 48);
AT(pace_hub_options_t, notice_interval_ns, 56);
AT(pace_hub_options_t, count_keys, 64);

GROWS(pace_error_filter_t, 48);
AT(pace_error_filter_t, severity, 4);
AT(pace_error_filter_t, event, 8);
AT(pace_error_filter_t, origin, 16);
AT(pace_error_filter_t, since_ns, 24);
AT(pace_error_filter_t, after, 32);
AT(pace_error_filter_t, limit, 40);

SIZE(pace_hub_error_t, 72);
AT(pace_hub_error_t, time_ns, 8);
AT(pace_hub_error_t, event, 16);
AT(pace_hub_error_t, origin, 32);
AT(pace_hub_error_t, message, 48);
AT(pace_hub_error_t, severity, 64);

GROWS(pace_hub_stats_t, 80);
AT(pace_hub_stats_t, keys, 8);
AT(pace_hub_stats_t, suspended, 24);
AT(pace_hub_stats_t, dead_letters, 40);
AT(pace_hub_stats_t, told, 48);
AT(pace_hub_stats_t, forgotten, 72);

GROWS(pace_threshold_t, 64);
AT(pace_threshold_t, part, 4);
AT(pace_threshold_t, severity, 8);
AT(pace_threshold_t, below, 12);
AT(pace_threshold_t, metric, 16);
AT(pace_threshold_t, labels, 24);
AT(pace_threshold_t, label_count, 32);
AT(pace_threshold_t, limit, 40);
AT(pace_threshold_t, back_at, 48);
AT(pace_threshold_t, quantile, 56);

SIZE(pace_crossing_t, 40);
AT(pace_crossing_t, figure, 16);
AT(pace_crossing_t, threshold, 24);
AT(pace_crossing_t, severity, 32);
AT(pace_crossing_t, crossed, 36);

GROWS(pace_watch_stats_t, 16);
AT(pace_watch_stats_t, crossed, 4);
AT(pace_watch_stats_t, looks, 8);

GROWS(pace_history_options_t, 136);
AT(pace_history_options_t, when_full, 4);
AT(pace_history_options_t, pattern, 8);
AT(pace_history_options_t, keep_count, 16);
AT(pace_history_options_t, archive, 40);
AT(pace_history_options_t, lines, 72);
AT(pace_history_options_t, lines_files, 88);
AT(pace_history_options_t, commit_messages, 92);
AT(pace_history_options_t, waiting_bytes, 112);
AT(pace_history_options_t, process_only, 128);
AT(pace_history_options_t, check, 129);

GROWS(pace_query_t, 56);
AT(pace_query_t, newest, 4);
AT(pace_query_t, pattern, 8);
AT(pace_query_t, first, 16);
AT(pace_query_t, until_ns, 40);
AT(pace_query_t, limit, 48);

SIZE(pace_history_stats_t, 144);
AT(pace_history_stats_t, recorded, 16);
AT(pace_history_stats_t, durable, 80);
AT(pace_history_stats_t, last_error, 96);

GROWS(pace_replay_stats_t, 40);
AT(pace_replay_stats_t, delivered, 8);
AT(pace_replay_stats_t, last, 32);
AT(pace_replay_stats_t, matched, 40);
AT(pace_replay_stats_t, running, 72);
AT(pace_replay_stats_t, number, 88);
AT(pace_replay_stats_t, suspended, 96);
AT(pace_replay_stats_t, redelivered, 104);

SIZE(pace_reply_t, 16 + sizeof(pace_message_t));
AT(pace_reply_t, status, 8);
AT(pace_reply_t, message, 16);

GROWS(pace_replay_options_t, 88);
AT(pace_replay_options_t, from, 4);
AT(pace_replay_options_t, at, 8);
AT(pace_replay_options_t, retry, 16);
AT(pace_replay_options_t, on_exhausted, 56);
AT(pace_replay_options_t, restarts, 60);
AT(pace_replay_options_t, within_ns, 64);
AT(pace_replay_options_t, supervisor, 72);
AT(pace_replay_options_t, on_restart, 80);
AT(pace_replay_options_t, suspension_ns, 88);
AT(pace_replay_options_t, longest_suspension_ns, 96);

GROWS(pace_receipt_t, 48);
AT(pace_receipt_t, sequence, 8);
AT(pace_receipt_t, matched, 16);
AT(pace_receipt_t, enqueued, 24);
AT(pace_receipt_t, dropped, 32);
AT(pace_receipt_t, rejected, 40);
AT(pace_receipt_t, dead_lettered, 48);

GROWS(pace_hub_audit_t, 96);
AT(pace_hub_audit_t, balances, 4);
AT(pace_hub_audit_t, published, 8);
AT(pace_hub_audit_t, matched, 16);
AT(pace_hub_audit_t, dead_lettered, 40);
AT(pace_hub_audit_t, running, 80);
AT(pace_hub_audit_t, redelivered, 88);

GROWS(pace_subscription_options_t, 48);
AT(pace_subscription_options_t, execution, 4);
AT(pace_subscription_options_t, threads, 8);
AT(pace_subscription_options_t, overflow, 12);
AT(pace_subscription_options_t, capacity, 16);
AT(pace_subscription_options_t, block_ns, 24);
AT(pace_subscription_options_t, lease_ns, 32);
AT(pace_subscription_options_t, by_priority, 40);
AT(pace_subscription_options_t, unique, 41);
AT(pace_subscription_options_t, retry, 48);
AT(pace_subscription_options_t, on_exhausted, 88);
AT(pace_subscription_options_t, restarts, 92);
AT(pace_subscription_options_t, within_ns, 96);
AT(pace_subscription_options_t, supervisor, 104);
AT(pace_subscription_options_t, on_restart, 112);
AT(pace_subscription_options_t, filter, 120);
AT(pace_subscription_options_t, group, 128);
AT(pace_subscription_options_t, balance_header, 136);
AT(pace_subscription_options_t, balance_seed, 144);
AT(pace_subscription_options_t, balance, 152);
AT(pace_subscription_options_t, measured, 160);
AT(pace_subscription_options_t, suspension_ns, 168);
AT(pace_subscription_options_t, longest_suspension_ns, 176);

GROWS(pace_subscription_stats_t, 104);
AT(pace_subscription_stats_t, matched, 8);
AT(pace_subscription_stats_t, dead_lettered, 32);
AT(pace_subscription_stats_t, running, 72);
AT(pace_subscription_stats_t, restarts, 96);
AT(pace_subscription_stats_t, number, 104);
AT(pace_subscription_stats_t, suspended, 112);

GROWS(pace_publisher_options_t, 40);
AT(pace_publisher_options_t, no_wait, 4);
AT(pace_publisher_options_t, quota, 8);
AT(pace_publisher_options_t, quota_burst, 12);
AT(pace_publisher_options_t, quota_per_ns, 16);
AT(pace_publisher_options_t, allow, 24);
AT(pace_publisher_options_t, allow_count, 32);

GROWS(pace_publisher_stats_t, 40);
AT(pace_publisher_stats_t, published, 8);
AT(pace_publisher_stats_t, lost, 32);

GROWS(pace_dead_filter_t, 56);
AT(pace_dead_filter_t, reason, 4);
AT(pace_dead_filter_t, pattern, 8);
AT(pace_dead_filter_t, subscription, 16);
AT(pace_dead_filter_t, first, 24);
AT(pace_dead_filter_t, last, 32);
AT(pace_dead_filter_t, since_ns, 40);
AT(pace_dead_filter_t, limit, 48);

SIZE(pace_dead_letter_t, 152);
AT(pace_dead_letter_t, number, 88);
AT(pace_dead_letter_t, subscription, 96);
AT(pace_dead_letter_t, died_ns, 104);
AT(pace_dead_letter_t, pattern, 112);
AT(pace_dead_letter_t, failure, 128);
AT(pace_dead_letter_t, reason, 144);
AT(pace_dead_letter_t, attempts, 148);

GROWS(pace_dead_letter_stats_t, 40);
AT(pace_dead_letter_stats_t, buried, 8);
AT(pace_dead_letter_stats_t, removed, 32);

GROWS(pace_redelivered_t, 32);
AT(pace_redelivered_t, enqueued, 8);
AT(pace_redelivered_t, orphaned, 24);

int main(void) {
    /* The library agrees: it accepts the sizes of the first version, and none below. */
    union {
        pace_pool_config_t config;
        pace_handle_options_t options;
        pace_conn_hooks_t hooks;
        pace_listener_options_t listener;
        pace_server_options_t server;
        pace_request_body_hooks_t body;
        pace_http_options_t http;
        pace_udp_hooks_t datagrams;
        pace_udp_options_t udp;
        pace_filter_hooks_t filter;
        pace_hub_options_t hub;
        pace_publication_t publication;
        pace_subscription_options_t subscription;
        pace_publisher_options_t publisher;
        pace_history_options_t history;
        pace_threshold_t threshold;
    } first;
    check_begin();
    OK(pace_pool_config_init(&first.config, 128));
    SAYS(PACE_EVERSION, pace_pool_config_init(&first.config, 127));
    OK(pace_handle_options_init(&first.options, 12));
    SAYS(PACE_EVERSION, pace_handle_options_init(&first.options, 11));
    OK(pace_conn_hooks_init(&first.hooks, 104));
    SAYS(PACE_EVERSION, pace_conn_hooks_init(&first.hooks, 103));
    OK(pace_listener_options_init(&first.listener, 168));
    SAYS(PACE_EVERSION, pace_listener_options_init(&first.listener, 167));
    OK(pace_server_options_init(&first.server, 48));
    SAYS(PACE_EVERSION, pace_server_options_init(&first.server, 47));
    OK(pace_request_body_hooks_init(&first.body, 32));
    SAYS(PACE_EVERSION, pace_request_body_hooks_init(&first.body, 31));
    OK(pace_http_options_init(&first.http, 112));
    SAYS(PACE_EVERSION, pace_http_options_init(&first.http, 111));
    OK(pace_udp_hooks_init(&first.datagrams, 48));
    SAYS(PACE_EVERSION, pace_udp_hooks_init(&first.datagrams, 47));
    OK(pace_udp_options_init(&first.udp, 56));
    SAYS(PACE_EVERSION, pace_udp_options_init(&first.udp, 55));
    OK(pace_filter_hooks_init(&first.filter, 64));
    SAYS(PACE_EVERSION, pace_filter_hooks_init(&first.filter, 63));
    OK(pace_hub_options_init(&first.hub, 16));
    SAYS(PACE_EVERSION, pace_hub_options_init(&first.hub, 15));
    OK(pace_publication_init(&first.publication, 32));
    SAYS(PACE_EVERSION, pace_publication_init(&first.publication, 31));
    OK(pace_subscription_options_init(&first.subscription, 48));
    SAYS(PACE_EVERSION, pace_subscription_options_init(&first.subscription, 47));
    OK(pace_history_options_init(&first.history, 136));
    SAYS(PACE_EVERSION, pace_history_options_init(&first.history, 135));
    OK(pace_threshold_init(&first.threshold, 64));
    SAYS(PACE_EVERSION, pace_threshold_init(&first.threshold, 63));
    OK(pace_publisher_options_init(&first.publisher, 40));
    SAYS(PACE_EVERSION, pace_publisher_options_init(&first.publisher, 39));
    return 0;
}
