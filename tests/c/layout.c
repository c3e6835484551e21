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

GROWS(pace_report_t, 24);
AT(pace_report_t, drained, 4);
AT(pace_report_t, requested, 5);
AT(pace_report_t, cancelled, 8);
AT(pace_report_t, stuck, 16);

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
    return 0;
}
