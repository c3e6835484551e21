/* Sizes and offsets, as src/ffi/layout.rs has them for Rust. Generated from the headers; not to be edited:
 * PACELINE_BLESS=1 cargo test --test header renews it. */

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)

SIZE(pace_text_t, 16);
AT(pace_text_t, text, 0); AT(pace_text_t, size, 8);

SIZE(pace_field_t, 32);
AT(pace_field_t, name, 0); AT(pace_field_t, value, 16);

SIZE(pace_piece_t, 16);
AT(pace_piece_t, bytes, 0); AT(pace_piece_t, size, 8);

SIZE(pace_task_t, 8);
AT(pace_task_t, id, 0);

SIZE(pace_strand_t, 8);
AT(pace_strand_t, id, 0);

SIZE(pace_handle_t, 8);
AT(pace_handle_t, id, 0);

SIZE(pace_timer_t, 8);
AT(pace_timer_t, id, 0);

SIZE(pace_conn_id_t, 8);
AT(pace_conn_id_t, id, 0);

SIZE(pace_retry_t, 40);
AT(pace_retry_t, shape, 0); AT(pace_retry_t, jitter, 4); AT(pace_retry_t, retries, 8);
AT(pace_retry_t, reserved, 12); AT(pace_retry_t, first_ns, 16); AT(pace_retry_t, cap_ns, 24);
AT(pace_retry_t, within_ns, 32);

SIZE(pace_log_field_t, 48);
AT(pace_log_field_t, name, 0); AT(pace_log_field_t, kind, 8); AT(pace_log_field_t, reserved, 12);
AT(pace_log_field_t, u64, 16); AT(pace_log_field_t, i64, 24); AT(pace_log_field_t, f64, 32);
AT(pace_log_field_t, text, 40);

SIZE(pace_log_record_t, 56);
AT(pace_log_record_t, time_ns, 0); AT(pace_log_record_t, level, 8);
AT(pace_log_record_t, component, 12); AT(pace_log_record_t, event, 16);
AT(pace_log_record_t, pool, 24); AT(pace_log_record_t, message, 32);
AT(pace_log_record_t, fields, 40); AT(pace_log_record_t, field_count, 48);

SIZE(pace_log_config_t, 64);
AT(pace_log_config_t, struct_size, 0); AT(pace_log_config_t, capacity, 4);
AT(pace_log_config_t, levels, 8); AT(pace_log_config_t, file, 16);
AT(pace_log_config_t, max_size, 24); AT(pace_log_config_t, files, 32);
AT(pace_log_config_t, cq_capacity, 36); AT(pace_log_config_t, on_record, 40);
AT(pace_log_config_t, user_data, 48); AT(pace_log_config_t, drop, 56);

SIZE(pace_log_stats_t, 48);
AT(pace_log_stats_t, struct_size, 0); AT(pace_log_stats_t, reserved, 4);
AT(pace_log_stats_t, told, 8); AT(pace_log_stats_t, dropped, 16); AT(pace_log_stats_t, errors, 24);
AT(pace_log_stats_t, last_error, 32); AT(pace_log_stats_t, queued, 40);

SIZE(pace_pool_config_t, 168);
AT(pace_pool_config_t, struct_size, 0); AT(pace_pool_config_t, threads, 4);
AT(pace_pool_config_t, max_joined, 8); AT(pace_pool_config_t, leaders, 12);
AT(pace_pool_config_t, source, 16); AT(pace_pool_config_t, promotion, 20);
AT(pace_pool_config_t, watch_period_ns, 24); AT(pace_pool_config_t, spin_ns, 32);
AT(pace_pool_config_t, lane_capacity, 40); AT(pace_pool_config_t, strand_capacity, 44);
AT(pace_pool_config_t, max_handles, 48); AT(pace_pool_config_t, pin_strict, 52);
AT(pace_pool_config_t, reserved, 53); AT(pace_pool_config_t, pin, 56);
AT(pace_pool_config_t, name, 64); AT(pace_pool_config_t, stack_size, 72);
AT(pace_pool_config_t, on_start, 80); AT(pace_pool_config_t, on_stop, 88);
AT(pace_pool_config_t, on_slow, 96); AT(pace_pool_config_t, slow_ns, 104);
AT(pace_pool_config_t, hook_data, 112); AT(pace_pool_config_t, hook_drop, 120);
AT(pace_pool_config_t, reserve, 128); AT(pace_pool_config_t, ageing_ns, 144);
AT(pace_pool_config_t, log, 152); AT(pace_pool_config_t, max_turn_ns, 160);

SIZE(pace_report_t, 48);
AT(pace_report_t, struct_size, 0); AT(pace_report_t, drained, 4); AT(pace_report_t, requested, 5);
AT(pace_report_t, reserved, 6); AT(pace_report_t, cancelled, 8); AT(pace_report_t, stuck, 16);
AT(pace_report_t, reserved2, 20); AT(pace_report_t, left, 24); AT(pace_report_t, worker_tasks, 32);
AT(pace_report_t, connections, 40);

SIZE(pace_work_t, 24);
AT(pace_work_t, run, 0); AT(pace_work_t, user_data, 8); AT(pace_work_t, drop, 16);

SIZE(pace_handle_options_t, 12);
AT(pace_handle_options_t, struct_size, 0); AT(pace_handle_options_t, interest, 4);
AT(pace_handle_options_t, level, 8); AT(pace_handle_options_t, may_block, 9);
AT(pace_handle_options_t, paused, 10); AT(pace_handle_options_t, reserved, 11);

SIZE(pace_pool_stats_t, 72);
AT(pace_pool_stats_t, struct_size, 0); AT(pace_pool_stats_t, threads, 4);
AT(pace_pool_stats_t, sets, 8); AT(pace_pool_stats_t, parked, 12); AT(pace_pool_stats_t, watch, 16);
AT(pace_pool_stats_t, reserved, 20); AT(pace_pool_stats_t, handles, 24);
AT(pace_pool_stats_t, wakes, 32); AT(pace_pool_stats_t, queued, 40);

SIZE(pace_thread_stats_t, 104);
AT(pace_thread_stats_t, struct_size, 0); AT(pace_thread_stats_t, role, 4);
AT(pace_thread_stats_t, cpu, 8); AT(pace_thread_stats_t, pin_failed, 12);
AT(pace_thread_stats_t, reserved, 13); AT(pace_thread_stats_t, terms, 16);
AT(pace_thread_stats_t, handovers, 24); AT(pace_thread_stats_t, rescues, 32);
AT(pace_thread_stats_t, events, 40); AT(pace_thread_stats_t, handled, 48);
AT(pace_thread_stats_t, tasks, 56); AT(pace_thread_stats_t, panics, 64);
AT(pace_thread_stats_t, stolen, 72); AT(pace_thread_stats_t, parked, 80);
AT(pace_thread_stats_t, ticks, 88); AT(pace_thread_stats_t, native_id, 96);
AT(pace_thread_stats_t, reserved2, 100);

SIZE(pace_set_stats_t, 24);
AT(pace_set_stats_t, struct_size, 0); AT(pace_set_stats_t, leader, 4);
AT(pace_set_stats_t, harvests, 8); AT(pace_set_stats_t, surplus, 16);

SIZE(pace_audit_t, 64);
AT(pace_audit_t, struct_size, 0); AT(pace_audit_t, balances, 4); AT(pace_audit_t, reserved, 5);
AT(pace_audit_t, submitted, 8); AT(pace_audit_t, accepted, 16); AT(pace_audit_t, rejected, 24);
AT(pace_audit_t, completed, 32); AT(pace_audit_t, failed, 40); AT(pace_audit_t, cancelled, 48);
AT(pace_audit_t, in_flight, 56);

SIZE(pace_conn_hooks_t, 104);
AT(pace_conn_hooks_t, struct_size, 0); AT(pace_conn_hooks_t, reserved, 4);
AT(pace_conn_hooks_t, open, 8); AT(pace_conn_hooks_t, data, 16);
AT(pace_conn_hooks_t, finished, 24); AT(pace_conn_hooks_t, writable, 32);
AT(pace_conn_hooks_t, written, 40); AT(pace_conn_hooks_t, timeout, 48);
AT(pace_conn_hooks_t, notified, 56); AT(pace_conn_hooks_t, draining, 64);
AT(pace_conn_hooks_t, error, 72); AT(pace_conn_hooks_t, close, 80);
AT(pace_conn_hooks_t, user_data, 88); AT(pace_conn_hooks_t, drop, 96);

SIZE(pace_filter_hooks_t, 72);
AT(pace_filter_hooks_t, struct_size, 0); AT(pace_filter_hooks_t, reserved, 4);
AT(pace_filter_hooks_t, make, 8); AT(pace_filter_hooks_t, received, 16);
AT(pace_filter_hooks_t, written, 24); AT(pace_filter_hooks_t, finish, 32);
AT(pace_filter_hooks_t, cut_off, 40); AT(pace_filter_hooks_t, free, 48);
AT(pace_filter_hooks_t, user_data, 56); AT(pace_filter_hooks_t, drop, 64);

SIZE(pace_listener_options_t, 176);
AT(pace_listener_options_t, struct_size, 0); AT(pace_listener_options_t, fd, 4);
AT(pace_listener_options_t, address, 8); AT(pace_listener_options_t, max_connections, 16);
AT(pace_listener_options_t, refusal, 24); AT(pace_listener_options_t, refusal_size, 32);
AT(pace_listener_options_t, max_requests, 40); AT(pace_listener_options_t, busy, 48);
AT(pace_listener_options_t, busy_size, 56); AT(pace_listener_options_t, max_unconsumed, 64);
AT(pace_listener_options_t, output_low, 72); AT(pace_listener_options_t, output_high, 80);
AT(pace_listener_options_t, output_max, 88); AT(pace_listener_options_t, idle_timeout_ns, 96);
AT(pace_listener_options_t, read_timeout_ns, 104);
AT(pace_listener_options_t, stall_timeout_ns, 112); AT(pace_listener_options_t, linger_ns, 120);
AT(pace_listener_options_t, keep_alive_ns, 128); AT(pace_listener_options_t, send_buffer, 136);
AT(pace_listener_options_t, receive_buffer, 144); AT(pace_listener_options_t, socket_mode, 152);
AT(pace_listener_options_t, backlog, 156); AT(pace_listener_options_t, no_delay, 160);
AT(pace_listener_options_t, v6_only, 161); AT(pace_listener_options_t, reuse_port, 162);
AT(pace_listener_options_t, allow_half_open, 163); AT(pace_listener_options_t, reserved, 164);
AT(pace_listener_options_t, filter, 168);

SIZE(pace_inherited_t, 260);
AT(pace_inherited_t, fd, 0); AT(pace_inherited_t, name, 4);

SIZE(pace_server_options_t, 48);
AT(pace_server_options_t, struct_size, 0); AT(pace_server_options_t, reserved, 4);
AT(pace_server_options_t, listeners, 8); AT(pace_server_options_t, listener_count, 16);
AT(pace_server_options_t, outgoing, 24); AT(pace_server_options_t, connect_timeout_ns, 32);
AT(pace_server_options_t, on_exhausted, 40);

SIZE(pace_drain_report_t, 24);
AT(pace_drain_report_t, struct_size, 0); AT(pace_drain_report_t, drained, 4);
AT(pace_drain_report_t, requested, 5); AT(pace_drain_report_t, reserved, 6);
AT(pace_drain_report_t, cut_off, 8); AT(pace_drain_report_t, open, 16);

SIZE(pace_server_stats_t, 184);
AT(pace_server_stats_t, struct_size, 0); AT(pace_server_stats_t, balances, 4);
AT(pace_server_stats_t, reserved, 5); AT(pace_server_stats_t, accepted, 8);
AT(pace_server_stats_t, connected, 16); AT(pace_server_stats_t, turned_away, 24);
AT(pace_server_stats_t, open, 32); AT(pace_server_stats_t, closed_peer, 40);
AT(pace_server_stats_t, closed_local, 48); AT(pace_server_stats_t, closed_aborted, 56);
AT(pace_server_stats_t, closed_refused, 64); AT(pace_server_stats_t, closed_timed_out, 72);
AT(pace_server_stats_t, closed_failed, 80); AT(pace_server_stats_t, closed_unconsumed, 88);
AT(pace_server_stats_t, closed_panicked, 96); AT(pace_server_stats_t, closed_drained, 104);
AT(pace_server_stats_t, closed_cut_off, 112); AT(pace_server_stats_t, closed_pool_ended, 120);
AT(pace_server_stats_t, panics_in_close, 128); AT(pace_server_stats_t, exhausted, 136);
AT(pace_server_stats_t, requests, 144); AT(pace_server_stats_t, answered, 152);
AT(pace_server_stats_t, requests_aborted, 160); AT(pace_server_stats_t, busy, 168);
AT(pace_server_stats_t, in_work, 176);

SIZE(pace_frame_t, 24);
AT(pace_frame_t, body, 0); AT(pace_frame_t, size, 8); AT(pace_frame_t, length, 16);

SIZE(pace_http_options_t, 112);
AT(pace_http_options_t, struct_size, 0); AT(pace_http_options_t, max_headers, 4);
AT(pace_http_options_t, listeners, 8); AT(pace_http_options_t, listener_count, 16);
AT(pace_http_options_t, max_head, 24); AT(pace_http_options_t, max_target, 32);
AT(pace_http_options_t, max_body, 40); AT(pace_http_options_t, body_rate, 48);
AT(pace_http_options_t, max_requests, 56); AT(pace_http_options_t, head_timeout_ns, 64);
AT(pace_http_options_t, body_timeout_ns, 72); AT(pace_http_options_t, keep_alive_timeout_ns, 80);
AT(pace_http_options_t, keep_alive_requests, 88); AT(pace_http_options_t, reserved, 92);
AT(pace_http_options_t, on_exhausted, 96); AT(pace_http_options_t, exhausted_data, 104);

SIZE(pace_request_body_hooks_t, 32);
AT(pace_request_body_hooks_t, struct_size, 0); AT(pace_request_body_hooks_t, reserved, 4);
AT(pace_request_body_hooks_t, begin, 8); AT(pace_request_body_hooks_t, data, 16);
AT(pace_request_body_hooks_t, end, 24);

SIZE(pace_http_end_t, 64);
AT(pace_http_end_t, status, 0); AT(pace_http_end_t, reserved, 4); AT(pace_http_end_t, method, 8);
AT(pace_http_end_t, target, 24); AT(pace_http_end_t, duration_ns, 40);
AT(pace_http_end_t, peer, 48);

SIZE(pace_http_stats_t, 216);
AT(pace_http_stats_t, struct_size, 0); AT(pace_http_stats_t, balances, 4);
AT(pace_http_stats_t, reserved, 5); AT(pace_http_stats_t, begun, 8);
AT(pace_http_stats_t, in_work, 16); AT(pace_http_stats_t, answered_upgraded, 24);
AT(pace_http_stats_t, answered_successful, 32); AT(pace_http_stats_t, answered_redirected, 40);
AT(pace_http_stats_t, answered_client_errors, 48);
AT(pace_http_stats_t, answered_server_errors, 56); AT(pace_http_stats_t, refused_bad_request, 64);
AT(pace_http_stats_t, refused_not_found, 72); AT(pace_http_stats_t, refused_method_not_allowed, 80);
AT(pace_http_stats_t, refused_timed_out, 88); AT(pace_http_stats_t, refused_body_too_large, 96);
AT(pace_http_stats_t, refused_target_too_long, 104);
AT(pace_http_stats_t, refused_expectation, 112); AT(pace_http_stats_t, refused_head_too_large, 120);
AT(pace_http_stats_t, refused_panicked, 128); AT(pace_http_stats_t, refused_unanswered, 136);
AT(pace_http_stats_t, refused_not_implemented, 144); AT(pace_http_stats_t, refused_busy, 152);
AT(pace_http_stats_t, refused_version, 160); AT(pace_http_stats_t, aborted_disconnected, 168);
AT(pace_http_stats_t, aborted_timed_out, 176); AT(pace_http_stats_t, aborted_unfinished, 184);
AT(pace_http_stats_t, aborted_closed, 192); AT(pace_http_stats_t, aborted_cut_off, 200);
AT(pace_http_stats_t, panics, 208);

SIZE(pace_ip_t, 24);
AT(pace_ip_t, version, 0); AT(pace_ip_t, reserved, 1); AT(pace_ip_t, port, 2);
AT(pace_ip_t, scope, 4); AT(pace_ip_t, bytes, 8);

SIZE(pace_datagram_t, 48);
AT(pace_datagram_t, bytes, 0); AT(pace_datagram_t, size, 8); AT(pace_datagram_t, length, 16);
AT(pace_datagram_t, peer, 24);

SIZE(pace_udp_hooks_t, 48);
AT(pace_udp_hooks_t, struct_size, 0); AT(pace_udp_hooks_t, reserved, 4);
AT(pace_udp_hooks_t, data, 8); AT(pace_udp_hooks_t, error, 16); AT(pace_udp_hooks_t, close, 24);
AT(pace_udp_hooks_t, user_data, 32); AT(pace_udp_hooks_t, drop, 40);

SIZE(pace_udp_options_t, 56);
AT(pace_udp_options_t, struct_size, 0); AT(pace_udp_options_t, fd, 4);
AT(pace_udp_options_t, bind, 8); AT(pace_udp_options_t, connect, 16);
AT(pace_udp_options_t, batch, 24); AT(pace_udp_options_t, max_datagram, 28);
AT(pace_udp_options_t, send_buffer, 32); AT(pace_udp_options_t, receive_buffer, 40);
AT(pace_udp_options_t, multicast_ttl, 48); AT(pace_udp_options_t, v6_only, 52);
AT(pace_udp_options_t, reuse_port, 53); AT(pace_udp_options_t, broadcast, 54);
AT(pace_udp_options_t, multicast_loop, 55);

SIZE(pace_udp_stats_t, 80);
AT(pace_udp_stats_t, struct_size, 0); AT(pace_udp_stats_t, reserved, 4);
AT(pace_udp_stats_t, received, 8); AT(pace_udp_stats_t, received_bytes, 16);
AT(pace_udp_stats_t, truncated, 24); AT(pace_udp_stats_t, errors, 32);
AT(pace_udp_stats_t, sent, 40); AT(pace_udp_stats_t, sent_bytes, 48);
AT(pace_udp_stats_t, refused, 56); AT(pace_udp_stats_t, failed, 64);
AT(pace_udp_stats_t, dropped, 72);

SIZE(pace_attempt_work_t, 24);
AT(pace_attempt_work_t, run, 0); AT(pace_attempt_work_t, user_data, 8);
AT(pace_attempt_work_t, drop, 16);

SIZE(pace_middleware_t, 40);
AT(pace_middleware_t, before, 0); AT(pace_middleware_t, after, 8);
AT(pace_middleware_t, on_error, 16); AT(pace_middleware_t, user_data, 24);
AT(pace_middleware_t, drop, 32);

SIZE(pace_workers_config_t, 112);
AT(pace_workers_config_t, struct_size, 0); AT(pace_workers_config_t, max_waiting, 4);
AT(pace_workers_config_t, max_queued, 8); AT(pace_workers_config_t, max_tasks, 12);
AT(pace_workers_config_t, seed, 16); AT(pace_workers_config_t, scaling, 24);
AT(pace_workers_config_t, metrics, 25); AT(pace_workers_config_t, reserved, 26);
AT(pace_workers_config_t, min_active, 28); AT(pace_workers_config_t, scaling_high_ns, 32);
AT(pace_workers_config_t, scaling_low_ns, 40); AT(pace_workers_config_t, scaling_period_ns, 48);
AT(pace_workers_config_t, scaling_percentile, 56); AT(pace_workers_config_t, scaling_patience, 60);
AT(pace_workers_config_t, name, 64); AT(pace_workers_config_t, full, 72);
AT(pace_workers_config_t, max_droppable, 76); AT(pace_workers_config_t, full_wait_ns, 80);
AT(pace_workers_config_t, middleware, 88); AT(pace_workers_config_t, middleware_count, 96);
AT(pace_workers_config_t, reserved2, 100); AT(pace_workers_config_t, log, 104);

SIZE(pace_workers_report_t, 32);
AT(pace_workers_report_t, struct_size, 0); AT(pace_workers_report_t, requested, 4);
AT(pace_workers_report_t, drained, 5); AT(pace_workers_report_t, reserved, 6);
AT(pace_workers_report_t, completed, 8); AT(pace_workers_report_t, cancelled, 16);
AT(pace_workers_report_t, stuck, 24); AT(pace_workers_report_t, failed_hooks, 28);

SIZE(pace_task_type_config_t, 184);
AT(pace_task_type_config_t, struct_size, 0); AT(pace_task_type_config_t, lane, 4);
AT(pace_task_type_config_t, retry, 8); AT(pace_task_type_config_t, timeout_ns, 48);
AT(pace_task_type_config_t, queue_timeout_ns, 56); AT(pace_task_type_config_t, deadline_ns, 64);
AT(pace_task_type_config_t, retry_delay, 72); AT(pace_task_type_config_t, retry_data, 80);
AT(pace_task_type_config_t, retry_drop, 88); AT(pace_task_type_config_t, retry_budget, 96);
AT(pace_task_type_config_t, reserved, 97); AT(pace_task_type_config_t, budget_per_second, 100);
AT(pace_task_type_config_t, budget_ratio, 104); AT(pace_task_type_config_t, budget_burst, 112);
AT(pace_task_type_config_t, rate_starts, 116); AT(pace_task_type_config_t, rate_per_ns, 120);
AT(pace_task_type_config_t, rate_burst, 128); AT(pace_task_type_config_t, max_running, 132);
AT(pace_task_type_config_t, soft_timeout_ns, 136); AT(pace_task_type_config_t, grace_ns, 144);
AT(pace_task_type_config_t, full, 152); AT(pace_task_type_config_t, reserved2, 156);
AT(pace_task_type_config_t, full_wait_ns, 160); AT(pace_task_type_config_t, overlap_retries, 168);
AT(pace_task_type_config_t, reserved3, 169); AT(pace_task_type_config_t, lease_ns, 176);

SIZE(pace_task_options_t, 128);
AT(pace_task_options_t, struct_size, 0); AT(pace_task_options_t, lane, 4);
AT(pace_task_options_t, retry, 8); AT(pace_task_options_t, timeout_ns, 48);
AT(pace_task_options_t, queue_timeout_ns, 56); AT(pace_task_options_t, deadline_ns, 64);
AT(pace_task_options_t, delay_ns, 72); AT(pace_task_options_t, key, 80);
AT(pace_task_options_t, keyed, 88); AT(pace_task_options_t, reserved, 89);
AT(pace_task_options_t, soft_timeout_ns, 96); AT(pace_task_options_t, grace_ns, 104);
AT(pace_task_options_t, full, 112); AT(pace_task_options_t, reserved2, 116);
AT(pace_task_options_t, full_wait_ns, 120);

SIZE(pace_task_report_t, 64);
AT(pace_task_report_t, struct_size, 0); AT(pace_task_report_t, status, 4);
AT(pace_task_report_t, id, 8); AT(pace_task_report_t, name, 16);
AT(pace_task_report_t, message, 24); AT(pace_task_report_t, outcome, 32);
AT(pace_task_report_t, attempts, 36); AT(pace_task_report_t, queue_time_ns, 40);
AT(pace_task_report_t, run_time_ns, 48); AT(pace_task_report_t, worker, 56);
AT(pace_task_report_t, reserved, 60);

SIZE(pace_task_type_stats_t, 104);
AT(pace_task_type_stats_t, struct_size, 0); AT(pace_task_type_stats_t, reserved, 4);
AT(pace_task_type_stats_t, submitted, 8); AT(pace_task_type_stats_t, accepted, 16);
AT(pace_task_type_stats_t, rejected, 24); AT(pace_task_type_stats_t, completed, 32);
AT(pace_task_type_stats_t, failed, 40); AT(pace_task_type_stats_t, cancelled, 48);
AT(pace_task_type_stats_t, timed_out, 56); AT(pace_task_type_stats_t, dropped, 64);
AT(pace_task_type_stats_t, retried, 72); AT(pace_task_type_stats_t, retries_refused, 80);
AT(pace_task_type_stats_t, running, 88); AT(pace_task_type_stats_t, discarded, 96);

SIZE(pace_workers_audit_t, 80);
AT(pace_workers_audit_t, struct_size, 0); AT(pace_workers_audit_t, balances, 4);
AT(pace_workers_audit_t, reserved, 5); AT(pace_workers_audit_t, submitted, 8);
AT(pace_workers_audit_t, accepted, 16); AT(pace_workers_audit_t, rejected, 24);
AT(pace_workers_audit_t, completed, 32); AT(pace_workers_audit_t, failed, 40);
AT(pace_workers_audit_t, cancelled, 48); AT(pace_workers_audit_t, timed_out, 56);
AT(pace_workers_audit_t, dropped, 64); AT(pace_workers_audit_t, in_flight, 72);

SIZE(pace_worker_stats_t, 64);
AT(pace_worker_stats_t, struct_size, 0); AT(pace_worker_stats_t, role, 4);
AT(pace_worker_stats_t, stuck, 8); AT(pace_worker_stats_t, reserved, 9);
AT(pace_worker_stats_t, task_type, 16); AT(pace_worker_stats_t, attempts, 24);
AT(pace_worker_stats_t, completed, 32); AT(pace_worker_stats_t, failed, 40);
AT(pace_worker_stats_t, run_time_ns, 48); AT(pace_worker_stats_t, utilisation, 56);

SIZE(pace_health_t, 40);
AT(pace_health_t, struct_size, 0); AT(pace_health_t, health, 4); AT(pace_health_t, threads, 8);
AT(pace_health_t, stuck, 12); AT(pace_health_t, capacity, 16); AT(pace_health_t, free, 20);
AT(pace_health_t, reserved_threads, 24); AT(pace_health_t, reserved, 28);
AT(pace_health_t, queued, 32);

SIZE(pace_label_t, 16);
AT(pace_label_t, name, 0); AT(pace_label_t, value, 8);

SIZE(pace_publication_t, 32);
AT(pace_publication_t, struct_size, 0); AT(pace_publication_t, priority, 4);
AT(pace_publication_t, headers, 8); AT(pace_publication_t, header_count, 16);
AT(pace_publication_t, reserved, 24);

SIZE(pace_subscription_t, 8);
AT(pace_subscription_t, id, 0);

SIZE(pace_message_t, 88);
AT(pace_message_t, sequence, 0); AT(pace_message_t, time_ns, 8);
AT(pace_message_t, lost_before, 16); AT(pace_message_t, key, 24); AT(pace_message_t, payload, 40);
AT(pace_message_t, size, 48); AT(pace_message_t, headers, 56); AT(pace_message_t, header_count, 64);
AT(pace_message_t, priority, 72); AT(pace_message_t, attempt, 76);
AT(pace_message_t, subscription, 80);

SIZE(pace_history_options_t, 136);
AT(pace_history_options_t, struct_size, 0); AT(pace_history_options_t, when_full, 4);
AT(pace_history_options_t, pattern, 8); AT(pace_history_options_t, keep_count, 16);
AT(pace_history_options_t, keep_bytes, 24); AT(pace_history_options_t, keep_age_ns, 32);
AT(pace_history_options_t, archive, 40); AT(pace_history_options_t, archive_count, 48);
AT(pace_history_options_t, archive_bytes, 56); AT(pace_history_options_t, archive_age_ns, 64);
AT(pace_history_options_t, lines, 72); AT(pace_history_options_t, lines_max_size, 80);
AT(pace_history_options_t, lines_files, 88); AT(pace_history_options_t, commit_messages, 92);
AT(pace_history_options_t, commit_delay_ns, 96); AT(pace_history_options_t, waiting_messages, 104);
AT(pace_history_options_t, waiting_bytes, 112); AT(pace_history_options_t, disk_wait_ns, 120);
AT(pace_history_options_t, process_only, 128); AT(pace_history_options_t, check, 129);
AT(pace_history_options_t, reserved, 130);

SIZE(pace_hub_options_t, 80);
AT(pace_hub_options_t, struct_size, 0); AT(pace_hub_options_t, reserved, 4);
AT(pace_hub_options_t, max_payload, 8); AT(pace_hub_options_t, dead_letters, 16);
AT(pace_hub_options_t, histories, 24); AT(pace_hub_options_t, history_count, 32);
AT(pace_hub_options_t, name, 40); AT(pace_hub_options_t, errors, 48);
AT(pace_hub_options_t, notice_interval_ns, 56); AT(pace_hub_options_t, count_keys, 64);
AT(pace_hub_options_t, stats_interval_ns, 72);

SIZE(pace_receipt_t, 56);
AT(pace_receipt_t, struct_size, 0); AT(pace_receipt_t, reserved, 4);
AT(pace_receipt_t, sequence, 8); AT(pace_receipt_t, matched, 16); AT(pace_receipt_t, enqueued, 24);
AT(pace_receipt_t, dropped, 32); AT(pace_receipt_t, rejected, 40);
AT(pace_receipt_t, dead_lettered, 48);

SIZE(pace_hub_audit_t, 96);
AT(pace_hub_audit_t, struct_size, 0); AT(pace_hub_audit_t, balances, 4);
AT(pace_hub_audit_t, reserved, 5); AT(pace_hub_audit_t, published, 8);
AT(pace_hub_audit_t, matched, 16); AT(pace_hub_audit_t, delivered, 24);
AT(pace_hub_audit_t, failed, 32); AT(pace_hub_audit_t, dead_lettered, 40);
AT(pace_hub_audit_t, dropped, 48); AT(pace_hub_audit_t, rejected, 56);
AT(pace_hub_audit_t, discarded, 64); AT(pace_hub_audit_t, waiting, 72);
AT(pace_hub_audit_t, running, 80); AT(pace_hub_audit_t, redelivered, 88);

SIZE(pace_publish_item_t, 32);
AT(pace_publish_item_t, key, 0); AT(pace_publish_item_t, publication, 8);
AT(pace_publish_item_t, bytes, 16); AT(pace_publish_item_t, size, 24);

SIZE(pace_publisher_options_t, 40);
AT(pace_publisher_options_t, struct_size, 0); AT(pace_publisher_options_t, no_wait, 4);
AT(pace_publisher_options_t, reserved, 5); AT(pace_publisher_options_t, quota, 8);
AT(pace_publisher_options_t, quota_burst, 12); AT(pace_publisher_options_t, quota_per_ns, 16);
AT(pace_publisher_options_t, allow, 24); AT(pace_publisher_options_t, allow_count, 32);

SIZE(pace_publisher_stats_t, 40);
AT(pace_publisher_stats_t, struct_size, 0); AT(pace_publisher_stats_t, reserved, 4);
AT(pace_publisher_stats_t, published, 8); AT(pace_publisher_stats_t, refused, 16);
AT(pace_publisher_stats_t, enqueued, 24); AT(pace_publisher_stats_t, lost, 32);

SIZE(pace_subscription_options_t, 208);
AT(pace_subscription_options_t, struct_size, 0); AT(pace_subscription_options_t, execution, 4);
AT(pace_subscription_options_t, threads, 8); AT(pace_subscription_options_t, overflow, 12);
AT(pace_subscription_options_t, capacity, 16); AT(pace_subscription_options_t, block_ns, 24);
AT(pace_subscription_options_t, lease_ns, 32); AT(pace_subscription_options_t, by_priority, 40);
AT(pace_subscription_options_t, acknowledged, 41); AT(pace_subscription_options_t, reserved, 42);
AT(pace_subscription_options_t, retry, 48); AT(pace_subscription_options_t, on_exhausted, 88);
AT(pace_subscription_options_t, restarts, 92); AT(pace_subscription_options_t, within_ns, 96);
AT(pace_subscription_options_t, supervisor, 104); AT(pace_subscription_options_t, on_restart, 112);
AT(pace_subscription_options_t, filter, 120); AT(pace_subscription_options_t, group, 128);
AT(pace_subscription_options_t, balance_header, 136);
AT(pace_subscription_options_t, balance_seed, 144); AT(pace_subscription_options_t, balance, 152);
AT(pace_subscription_options_t, reserved2, 156); AT(pace_subscription_options_t, measured, 160);
AT(pace_subscription_options_t, reserved3, 161);
AT(pace_subscription_options_t, suspension_ns, 168);
AT(pace_subscription_options_t, longest_suspension_ns, 176);
AT(pace_subscription_options_t, unique, 184); AT(pace_subscription_options_t, factory, 192);
AT(pace_subscription_options_t, drop_handler, 200);

SIZE(pace_subscription_stats_t, 184);
AT(pace_subscription_stats_t, struct_size, 0); AT(pace_subscription_stats_t, reserved, 4);
AT(pace_subscription_stats_t, matched, 8); AT(pace_subscription_stats_t, delivered, 16);
AT(pace_subscription_stats_t, failed, 24); AT(pace_subscription_stats_t, dead_lettered, 32);
AT(pace_subscription_stats_t, dropped, 40); AT(pace_subscription_stats_t, rejected, 48);
AT(pace_subscription_stats_t, discarded, 56); AT(pace_subscription_stats_t, waiting, 64);
AT(pace_subscription_stats_t, running, 72); AT(pace_subscription_stats_t, redelivered, 80);
AT(pace_subscription_stats_t, filtered, 88); AT(pace_subscription_stats_t, restarts, 96);
AT(pace_subscription_stats_t, number, 104); AT(pace_subscription_stats_t, suspended, 112);
AT(pace_subscription_stats_t, reserved2, 113); AT(pace_subscription_stats_t, filter_failures, 120);
AT(pace_subscription_stats_t, latencies, 128); AT(pace_subscription_stats_t, latency_mean_ns, 136);
AT(pace_subscription_stats_t, latency_p50_ns, 144);
AT(pace_subscription_stats_t, latency_p90_ns, 152);
AT(pace_subscription_stats_t, latency_p99_ns, 160);
AT(pace_subscription_stats_t, latency_p999_ns, 168);
AT(pace_subscription_stats_t, latency_max_ns, 176);

SIZE(pace_dead_filter_t, 56);
AT(pace_dead_filter_t, struct_size, 0); AT(pace_dead_filter_t, reason, 4);
AT(pace_dead_filter_t, pattern, 8); AT(pace_dead_filter_t, subscription, 16);
AT(pace_dead_filter_t, first, 24); AT(pace_dead_filter_t, last, 32);
AT(pace_dead_filter_t, since_ns, 40); AT(pace_dead_filter_t, limit, 48);

SIZE(pace_dead_letter_t, 152);
AT(pace_dead_letter_t, message, 0); AT(pace_dead_letter_t, number, 88);
AT(pace_dead_letter_t, subscription, 96); AT(pace_dead_letter_t, died_ns, 104);
AT(pace_dead_letter_t, pattern, 112); AT(pace_dead_letter_t, failure, 128);
AT(pace_dead_letter_t, reason, 144); AT(pace_dead_letter_t, attempts, 148);

SIZE(pace_redelivered_t, 32);
AT(pace_redelivered_t, struct_size, 0); AT(pace_redelivered_t, reserved, 4);
AT(pace_redelivered_t, enqueued, 8); AT(pace_redelivered_t, refused, 16);
AT(pace_redelivered_t, orphaned, 24);

SIZE(pace_dead_letter_stats_t, 40);
AT(pace_dead_letter_stats_t, struct_size, 0); AT(pace_dead_letter_stats_t, reserved, 4);
AT(pace_dead_letter_stats_t, buried, 8); AT(pace_dead_letter_stats_t, held, 16);
AT(pace_dead_letter_stats_t, forgotten, 24); AT(pace_dead_letter_stats_t, removed, 32);

SIZE(pace_asked_t, 8);
AT(pace_asked_t, id, 0);

SIZE(pace_error_filter_t, 48);
AT(pace_error_filter_t, struct_size, 0); AT(pace_error_filter_t, severity, 4);
AT(pace_error_filter_t, event, 8); AT(pace_error_filter_t, origin, 16);
AT(pace_error_filter_t, since_ns, 24); AT(pace_error_filter_t, after, 32);
AT(pace_error_filter_t, limit, 40);

SIZE(pace_hub_error_t, 72);
AT(pace_hub_error_t, number, 0); AT(pace_hub_error_t, time_ns, 8); AT(pace_hub_error_t, event, 16);
AT(pace_hub_error_t, origin, 32); AT(pace_hub_error_t, message, 48);
AT(pace_hub_error_t, severity, 64); AT(pace_hub_error_t, reserved, 68);

SIZE(pace_query_t, 56);
AT(pace_query_t, struct_size, 0); AT(pace_query_t, newest, 4); AT(pace_query_t, reserved, 5);
AT(pace_query_t, pattern, 8); AT(pace_query_t, first, 16); AT(pace_query_t, last, 24);
AT(pace_query_t, since_ns, 32); AT(pace_query_t, until_ns, 40); AT(pace_query_t, limit, 48);

SIZE(pace_history_stats_t, 144);
AT(pace_history_stats_t, pattern, 0); AT(pace_history_stats_t, recorded, 16);
AT(pace_history_stats_t, in_memory, 24); AT(pace_history_stats_t, memory_bytes, 32);
AT(pace_history_stats_t, waiting, 40); AT(pace_history_stats_t, commits, 48);
AT(pace_history_stats_t, given_up, 56); AT(pace_history_stats_t, errors, 64);
AT(pace_history_stats_t, read_errors, 72); AT(pace_history_stats_t, durable, 80);
AT(pace_history_stats_t, lines_lost, 88); AT(pace_history_stats_t, last_error, 96);
AT(pace_history_stats_t, last_read_error, 112); AT(pace_history_stats_t, last_lines_error, 128);

SIZE(pace_replay_options_t, 128);
AT(pace_replay_options_t, struct_size, 0); AT(pace_replay_options_t, from, 4);
AT(pace_replay_options_t, at, 8); AT(pace_replay_options_t, retry, 16);
AT(pace_replay_options_t, on_exhausted, 56); AT(pace_replay_options_t, restarts, 60);
AT(pace_replay_options_t, within_ns, 64); AT(pace_replay_options_t, supervisor, 72);
AT(pace_replay_options_t, on_restart, 80); AT(pace_replay_options_t, suspension_ns, 88);
AT(pace_replay_options_t, longest_suspension_ns, 96); AT(pace_replay_options_t, factory, 104);
AT(pace_replay_options_t, drop_handler, 112); AT(pace_replay_options_t, acknowledged, 120);
AT(pace_replay_options_t, reserved, 121);

SIZE(pace_replay_stats_t, 112);
AT(pace_replay_stats_t, struct_size, 0); AT(pace_replay_stats_t, reserved, 4);
AT(pace_replay_stats_t, delivered, 8); AT(pace_replay_stats_t, failed, 16);
AT(pace_replay_stats_t, lost, 24); AT(pace_replay_stats_t, last, 32);
AT(pace_replay_stats_t, matched, 40); AT(pace_replay_stats_t, dead_lettered, 48);
AT(pace_replay_stats_t, discarded, 56); AT(pace_replay_stats_t, waiting, 64);
AT(pace_replay_stats_t, running, 72); AT(pace_replay_stats_t, restarts, 80);
AT(pace_replay_stats_t, number, 88); AT(pace_replay_stats_t, suspended, 96);
AT(pace_replay_stats_t, reserved2, 97); AT(pace_replay_stats_t, redelivered, 104);

SIZE(pace_ops_options_t, 72);
AT(pace_ops_options_t, struct_size, 0); AT(pace_ops_options_t, environment, 4);
AT(pace_ops_options_t, reserved, 5); AT(pace_ops_options_t, address, 8);
AT(pace_ops_options_t, token, 16); AT(pace_ops_options_t, blocked_after_ns, 24);
AT(pace_ops_options_t, workers, 32); AT(pace_ops_options_t, settings, 40);
AT(pace_ops_options_t, settings_count, 48); AT(pace_ops_options_t, ready_after_ns, 56);
AT(pace_ops_options_t, dead_after_ns, 64);

SIZE(pace_hub_stats_t, 80);
AT(pace_hub_stats_t, struct_size, 0); AT(pace_hub_stats_t, reserved, 4);
AT(pace_hub_stats_t, keys, 8); AT(pace_hub_stats_t, subscriptions, 16);
AT(pace_hub_stats_t, suspended, 24); AT(pace_hub_stats_t, publishers, 32);
AT(pace_hub_stats_t, dead_letters, 40); AT(pace_hub_stats_t, told, 48);
AT(pace_hub_stats_t, lost, 56); AT(pace_hub_stats_t, errors, 64);
AT(pace_hub_stats_t, forgotten, 72);

SIZE(pace_threshold_t, 64);
AT(pace_threshold_t, struct_size, 0); AT(pace_threshold_t, part, 4);
AT(pace_threshold_t, severity, 8); AT(pace_threshold_t, below, 12);
AT(pace_threshold_t, reserved, 13); AT(pace_threshold_t, metric, 16);
AT(pace_threshold_t, labels, 24); AT(pace_threshold_t, label_count, 32);
AT(pace_threshold_t, limit, 40); AT(pace_threshold_t, back_at, 48);
AT(pace_threshold_t, quantile, 56);

SIZE(pace_crossing_t, 40);
AT(pace_crossing_t, message, 0); AT(pace_crossing_t, figure, 16);
AT(pace_crossing_t, threshold, 24); AT(pace_crossing_t, severity, 32);
AT(pace_crossing_t, crossed, 36); AT(pace_crossing_t, reserved, 37);

SIZE(pace_watch_stats_t, 16);
AT(pace_watch_stats_t, struct_size, 0); AT(pace_watch_stats_t, crossed, 4);
AT(pace_watch_stats_t, looks, 8);

SIZE(pace_webhook_options_t, 96);
AT(pace_webhook_options_t, struct_size, 0); AT(pace_webhook_options_t, reserved, 4);
AT(pace_webhook_options_t, capacity, 8); AT(pace_webhook_options_t, timeout_ns, 16);
AT(pace_webhook_options_t, retry, 24); AT(pace_webhook_options_t, headers, 64);
AT(pace_webhook_options_t, header_count, 72); AT(pace_webhook_options_t, proxy, 80);
AT(pace_webhook_options_t, url, 88);

SIZE(pace_webhook_stats_t, 48);
AT(pace_webhook_stats_t, struct_size, 0); AT(pace_webhook_stats_t, reserved, 4);
AT(pace_webhook_stats_t, posted, 8); AT(pace_webhook_stats_t, delivered, 16);
AT(pace_webhook_stats_t, retried, 24); AT(pace_webhook_stats_t, failed, 32);
AT(pace_webhook_stats_t, dropped, 40);

SIZE(pace_bridge_options_t, 160);
AT(pace_bridge_options_t, struct_size, 0); AT(pace_bridge_options_t, require_tls, 4);
AT(pace_bridge_options_t, reserved, 5); AT(pace_bridge_options_t, servers, 8);
AT(pace_bridge_options_t, name, 16); AT(pace_bridge_options_t, connection_name, 24);
AT(pace_bridge_options_t, user, 32); AT(pace_bridge_options_t, password, 40);
AT(pace_bridge_options_t, token, 48); AT(pace_bridge_options_t, nkey_file, 56);
AT(pace_bridge_options_t, credentials_file, 64); AT(pace_bridge_options_t, root_certificates, 72);
AT(pace_bridge_options_t, client_certificate, 80); AT(pace_bridge_options_t, client_key, 88);
AT(pace_bridge_options_t, connect_timeout_ns, 96); AT(pace_bridge_options_t, ping_interval_ns, 104);
AT(pace_bridge_options_t, reconnect_first_ns, 112);
AT(pace_bridge_options_t, reconnect_cap_ns, 120); AT(pace_bridge_options_t, window_ns, 128);
AT(pace_bridge_options_t, window_count, 136); AT(pace_bridge_options_t, password_file, 144);
AT(pace_bridge_options_t, token_file, 152);

SIZE(pace_bridge_export_options_t, 56);
AT(pace_bridge_export_options_t, struct_size, 0); AT(pace_bridge_export_options_t, overflow, 4);
AT(pace_bridge_export_options_t, prefix, 8); AT(pace_bridge_export_options_t, stream, 16);
AT(pace_bridge_export_options_t, buffer, 24); AT(pace_bridge_export_options_t, block_ns, 32);
AT(pace_bridge_export_options_t, in_flight, 40); AT(pace_bridge_export_options_t, spool, 48);

SIZE(pace_bridge_import_options_t, 136);
AT(pace_bridge_import_options_t, struct_size, 0); AT(pace_bridge_import_options_t, start, 4);
AT(pace_bridge_import_options_t, prefix, 8); AT(pace_bridge_import_options_t, group, 16);
AT(pace_bridge_import_options_t, stream, 24); AT(pace_bridge_import_options_t, durable, 32);
AT(pace_bridge_import_options_t, buffer, 40);
AT(pace_bridge_import_options_t, request_timeout_ns, 48);
AT(pace_bridge_import_options_t, start_sequence, 56);
AT(pace_bridge_import_options_t, start_time_ns, 64); AT(pace_bridge_import_options_t, retry, 72);
AT(pace_bridge_import_options_t, in_flight, 112);
AT(pace_bridge_import_options_t, ack_wait_ns, 120);
AT(pace_bridge_import_options_t, handle_timeout_ns, 128);

SIZE(pace_bridge_stats_t, 56);
AT(pace_bridge_stats_t, struct_size, 0); AT(pace_bridge_stats_t, connected, 4);
AT(pace_bridge_stats_t, reserved, 5); AT(pace_bridge_stats_t, connects, 8);
AT(pace_bridge_stats_t, requests_out, 16); AT(pace_bridge_stats_t, requests_in, 24);
AT(pace_bridge_stats_t, lost, 32); AT(pace_bridge_stats_t, exports, 40);
AT(pace_bridge_stats_t, imports, 48);

SIZE(pace_bridge_export_stats_t, 112);
AT(pace_bridge_export_stats_t, struct_size, 0); AT(pace_bridge_export_stats_t, reserved, 4);
AT(pace_bridge_export_stats_t, pattern, 8); AT(pace_bridge_export_stats_t, stream, 24);
AT(pace_bridge_export_stats_t, waiting, 40); AT(pace_bridge_export_stats_t, sent, 48);
AT(pace_bridge_export_stats_t, stored, 56); AT(pace_bridge_export_stats_t, in_flight, 64);
AT(pace_bridge_export_stats_t, sent_again, 72); AT(pace_bridge_export_stats_t, dropped, 80);
AT(pace_bridge_export_stats_t, refused, 88); AT(pace_bridge_export_stats_t, late, 96);
AT(pace_bridge_export_stats_t, turned_back, 104);

SIZE(pace_bridge_import_stats_t, 112);
AT(pace_bridge_import_stats_t, struct_size, 0); AT(pace_bridge_import_stats_t, reserved, 4);
AT(pace_bridge_import_stats_t, pattern, 8); AT(pace_bridge_import_stats_t, stream, 24);
AT(pace_bridge_import_stats_t, published, 40); AT(pace_bridge_import_stats_t, acknowledged, 48);
AT(pace_bridge_import_stats_t, in_flight, 56); AT(pace_bridge_import_stats_t, again, 64);
AT(pace_bridge_import_stats_t, dead, 72); AT(pace_bridge_import_stats_t, lag, 80);
AT(pace_bridge_import_stats_t, duplicates, 88); AT(pace_bridge_import_stats_t, turned_back, 96);
AT(pace_bridge_import_stats_t, refused, 104);

SIZE(pace_job_info_t, 64);
AT(pace_job_info_t, struct_size, 0); AT(pace_job_info_t, number, 4); AT(pace_job_info_t, id, 8);
AT(pace_job_info_t, name, 24); AT(pace_job_info_t, arguments, 40); AT(pace_job_info_t, size, 48);
AT(pace_job_info_t, time_left_ns, 56);

SIZE(pace_durable_options_t, 32);
AT(pace_durable_options_t, struct_size, 0); AT(pace_durable_options_t, in_flight, 4);
AT(pace_durable_options_t, results_ns, 8); AT(pace_durable_options_t, ack_wait_ns, 16);
AT(pace_durable_options_t, window_ns, 24);

SIZE(pace_submission_t, 40);
AT(pace_submission_t, struct_size, 0); AT(pace_submission_t, lane, 4);
AT(pace_submission_t, delay_ns, 8); AT(pace_submission_t, deadline_ns, 16);
AT(pace_submission_t, attempts, 24); AT(pace_submission_t, ignore_result, 28);
AT(pace_submission_t, reserved, 29); AT(pace_submission_t, unique, 32);

SIZE(pace_durable_id_t, 40);
AT(pace_durable_id_t, text, 0);

SIZE(pace_durable_info_t, 88);
AT(pace_durable_info_t, struct_size, 0); AT(pace_durable_info_t, status, 4);
AT(pace_durable_info_t, attempts, 8); AT(pace_durable_info_t, reserved, 12);
AT(pace_durable_info_t, number, 16); AT(pace_durable_info_t, id, 24);
AT(pace_durable_info_t, name, 40); AT(pace_durable_info_t, bytes, 56);
AT(pace_durable_info_t, size, 64); AT(pace_durable_info_t, failure, 72);

SIZE(pace_cq_ready_t, 16);
AT(pace_cq_ready_t, handle, 0); AT(pace_cq_ready_t, ready, 8); AT(pace_cq_ready_t, reserved, 12);

SIZE(pace_cq_conn_t, 24);
AT(pace_cq_conn_t, conn, 0); AT(pace_cq_conn_t, event, 8); AT(pace_cq_conn_t, detail, 12);
AT(pace_cq_conn_t, number, 16);

SIZE(pace_cq_request_t, 16);
AT(pace_cq_request_t, conn, 0); AT(pace_cq_request_t, request, 8);

SIZE(pace_cq_datagram_t, 40);
AT(pace_cq_datagram_t, length, 0); AT(pace_cq_datagram_t, peer, 8);
AT(pace_cq_datagram_t, os_error, 32);

SIZE(pace_cq_attempt_t, 16);
AT(pace_cq_attempt_t, id, 0); AT(pace_cq_attempt_t, number, 8); AT(pace_cq_attempt_t, status, 12);

SIZE(pace_cq_detail_t, 88);
AT(pace_cq_detail_t, ready, 0); AT(pace_cq_detail_t, conn, 0); AT(pace_cq_detail_t, request, 0);
AT(pace_cq_detail_t, datagram, 0); AT(pace_cq_detail_t, attempt, 0);
AT(pace_cq_detail_t, message, 0); AT(pace_cq_detail_t, record, 0); AT(pace_cq_detail_t, signal, 0);

SIZE(pace_cq_entry_t, 136);
AT(pace_cq_entry_t, kind, 0); AT(pace_cq_entry_t, flags, 4); AT(pace_cq_entry_t, token, 8);
AT(pace_cq_entry_t, tag, 16); AT(pace_cq_entry_t, bytes, 24); AT(pace_cq_entry_t, size, 32);
AT(pace_cq_entry_t, status, 40); AT(pace_cq_entry_t, reserved, 44); AT(pace_cq_entry_t, detail, 48);

SIZE(pace_cq_config_t, 16);
AT(pace_cq_config_t, struct_size, 0); AT(pace_cq_config_t, beside, 4);
AT(pace_cq_config_t, leased_when_renewed, 5); AT(pace_cq_config_t, reserved, 6);
AT(pace_cq_config_t, lease_ns, 8);

SIZE(pace_cq_stats_t, 40);
AT(pace_cq_stats_t, struct_size, 0); AT(pace_cq_stats_t, reserved, 4);
AT(pace_cq_stats_t, brought, 8); AT(pace_cq_stats_t, completed, 16);
AT(pace_cq_stats_t, withdrawn, 24); AT(pace_cq_stats_t, out, 32);

SIZE(pace_cq_completion_t, 88);
AT(pace_cq_completion_t, token, 0); AT(pace_cq_completion_t, flags, 8);
AT(pace_cq_completion_t, answer, 12); AT(pace_cq_completion_t, bytes, 16);
AT(pace_cq_completion_t, size, 24); AT(pace_cq_completion_t, headers, 32);
AT(pace_cq_completion_t, headers_size, 40); AT(pace_cq_completion_t, length, 48);
AT(pace_cq_completion_t, after_ns, 56); AT(pace_cq_completion_t, message, 64);
AT(pace_cq_completion_t, error, 72); AT(pace_cq_completion_t, status, 76);
AT(pace_cq_completion_t, result, 80); AT(pace_cq_completion_t, reserved, 84);
