//! Sizes and offsets, as `tests/c/layout.h` has them for C. Generated from the headers; not to be edited:
//! `PACELINE_BLESS=1 cargo test --test header` renews it.

use std::mem::offset_of;

macro_rules! layout {
    ($($file:ident :: $name:ident $size:literal { $($field:ident $offset:literal)* })*) => {$(
        const _: () = {
            use super::$file::$name as Struct;
            assert!(size_of::<Struct>() == $size, stringify!($name));
            $(assert!(offset_of!(Struct, $field) == $offset, stringify!($name.$field));)*
        };
    )*};
}

layout! {
    values::pace_text_t 16 {
        text 0 size 8
    }
    values::pace_field_t 32 {
        name 0 value 16
    }
    values::pace_piece_t 16 {
        bytes 0 size 8
    }
    callback::pace_task_t 8 {
        id 0
    }
    callback::pace_strand_t 8 {
        id 0
    }
    callback::pace_handle_t 8 {
        id 0
    }
    callback::pace_timer_t 8 {
        id 0
    }
    callback::pace_conn_id_t 8 {
        id 0
    }
    retry::pace_retry_t 40 {
        shape 0 jitter 4 retries 8 reserved 12 first_ns 16 cap_ns 24 within_ns 32
    }
    log::pace_log_field_t 48 {
        name 0 kind 8 reserved 12 u64 16 i64 24 f64 32 text 40
    }
    log::pace_log_record_t 56 {
        time_ns 0 level 8 component 12 event 16 pool 24 message 32 fields 40 field_count 48
    }
    log::pace_log_config_t 64 {
        struct_size 0 capacity 4 levels 8 file 16 max_size 24 files 32 cq_capacity 36 on_record 40
        user_data 48 drop 56
    }
    log::pace_log_stats_t 48 {
        struct_size 0 reserved 4 told 8 dropped 16 errors 24 last_error 32 queued 40
    }
    pool::pace_pool_config_t 168 {
        struct_size 0 threads 4 max_joined 8 leaders 12 source 16 promotion 20 watch_period_ns 24
        spin_ns 32 lane_capacity 40 strand_capacity 44 max_handles 48 pin_strict 52 reserved 53
        pin 56 name 64 stack_size 72 on_start 80 on_stop 88 on_slow 96 slow_ns 104 hook_data 112
        hook_drop 120 reserve 128 ageing_ns 144 log 152 max_turn_ns 160
    }
    pool::pace_report_t 48 {
        struct_size 0 drained 4 requested 5 reserved 6 cancelled 8 stuck 16 reserved2 20 left 24
        worker_tasks 32 connections 40
    }
    task::pace_work_t 24 {
        run 0 user_data 8 drop 16
    }
    handle::pace_handle_options_t 12 {
        struct_size 0 interest 4 level 8 may_block 9 paused 10 reserved 11
    }
    stats::pace_pool_stats_t 72 {
        struct_size 0 threads 4 sets 8 parked 12 watch 16 reserved 20 handles 24 wakes 32 queued 40
    }
    stats::pace_thread_stats_t 104 {
        struct_size 0 role 4 cpu 8 pin_failed 12 reserved 13 terms 16 handovers 24 rescues 32
        events 40 handled 48 tasks 56 panics 64 stolen 72 parked 80 ticks 88 native_id 96
        reserved2 100
    }
    stats::pace_set_stats_t 24 {
        struct_size 0 leader 4 harvests 8 surplus 16
    }
    stats::pace_audit_t 64 {
        struct_size 0 balances 4 reserved 5 submitted 8 accepted 16 rejected 24 completed 32
        failed 40 cancelled 48 in_flight 56
    }
    conn::pace_conn_hooks_t 104 {
        struct_size 0 reserved 4 open 8 data 16 finished 24 writable 32 written 40 timeout 48
        notified 56 draining 64 error 72 close 80 user_data 88 drop 96
    }
    filter::pace_filter_hooks_t 72 {
        struct_size 0 reserved 4 make 8 received 16 written 24 finish 32 cut_off 40 free 48
        user_data 56 drop 64
    }
    listener::pace_listener_options_t 176 {
        struct_size 0 fd 4 address 8 max_connections 16 refusal 24 refusal_size 32 max_requests 40
        busy 48 busy_size 56 max_unconsumed 64 output_low 72 output_high 80 output_max 88
        idle_timeout_ns 96 read_timeout_ns 104 stall_timeout_ns 112 linger_ns 120 keep_alive_ns 128
        send_buffer 136 receive_buffer 144 socket_mode 152 backlog 156 no_delay 160 v6_only 161
        reuse_port 162 allow_half_open 163 reserved 164 filter 168
    }
    inherited::pace_inherited_t 260 {
        fd 0 name 4
    }
    server::pace_server_options_t 48 {
        struct_size 0 reserved 4 listeners 8 listener_count 16 outgoing 24 connect_timeout_ns 32
        on_exhausted 40
    }
    server::pace_drain_report_t 24 {
        struct_size 0 drained 4 requested 5 reserved 6 cut_off 8 open 16
    }
    server::pace_server_stats_t 184 {
        struct_size 0 balances 4 reserved 5 accepted 8 connected 16 turned_away 24 open 32
        closed_peer 40 closed_local 48 closed_aborted 56 closed_refused 64 closed_timed_out 72
        closed_failed 80 closed_unconsumed 88 closed_panicked 96 closed_drained 104
        closed_cut_off 112 closed_pool_ended 120 panics_in_close 128 exhausted 136 requests 144
        answered 152 requests_aborted 160 busy 168 in_work 176
    }
    framing::pace_frame_t 24 {
        body 0 size 8 length 16
    }
    http_options::pace_http_options_t 112 {
        struct_size 0 max_headers 4 listeners 8 listener_count 16 max_head 24 max_target 32
        max_body 40 body_rate 48 max_requests 56 head_timeout_ns 64 body_timeout_ns 72
        keep_alive_timeout_ns 80 keep_alive_requests 88 reserved 92 on_exhausted 96
        exhausted_data 104
    }
    http::pace_request_body_hooks_t 32 {
        struct_size 0 reserved 4 begin 8 data 16 end 24
    }
    http::pace_http_end_t 64 {
        status 0 reserved 4 method 8 target 24 duration_ns 40 peer 48
    }
    http::pace_http_stats_t 216 {
        struct_size 0 balances 4 reserved 5 begun 8 in_work 16 answered_upgraded 24
        answered_successful 32 answered_redirected 40 answered_client_errors 48
        answered_server_errors 56 refused_bad_request 64 refused_not_found 72
        refused_method_not_allowed 80 refused_timed_out 88 refused_body_too_large 96
        refused_target_too_long 104 refused_expectation 112 refused_head_too_large 120
        refused_panicked 128 refused_unanswered 136 refused_not_implemented 144 refused_busy 152
        refused_version 160 aborted_disconnected 168 aborted_timed_out 176 aborted_unfinished 184
        aborted_closed 192 aborted_cut_off 200 panics 208
    }
    udp::pace_ip_t 24 {
        version 0 reserved 1 port 2 scope 4 bytes 8
    }
    udp::pace_datagram_t 48 {
        bytes 0 size 8 length 16 peer 24
    }
    udp::pace_udp_hooks_t 48 {
        struct_size 0 reserved 4 data 8 error 16 close 24 user_data 32 drop 40
    }
    udp::pace_udp_options_t 56 {
        struct_size 0 fd 4 bind 8 connect 16 batch 24 max_datagram 28 send_buffer 32
        receive_buffer 40 multicast_ttl 48 v6_only 52 reuse_port 53 broadcast 54 multicast_loop 55
    }
    udp::pace_udp_stats_t 80 {
        struct_size 0 reserved 4 received 8 received_bytes 16 truncated 24 errors 32 sent 40
        sent_bytes 48 refused 56 failed 64 dropped 72
    }
    attempt::pace_attempt_work_t 24 {
        run 0 user_data 8 drop 16
    }
    middleware::pace_middleware_t 40 {
        before 0 after 8 on_error 16 user_data 24 drop 32
    }
    workers::pace_workers_config_t 112 {
        struct_size 0 max_waiting 4 max_queued 8 max_tasks 12 seed 16 scaling 24 metrics 25
        reserved 26 min_active 28 scaling_high_ns 32 scaling_low_ns 40 scaling_period_ns 48
        scaling_percentile 56 scaling_patience 60 name 64 full 72 max_droppable 76 full_wait_ns 80
        middleware 88 middleware_count 96 reserved2 100 log 104
    }
    workers::pace_workers_report_t 32 {
        struct_size 0 requested 4 drained 5 reserved 6 completed 8 cancelled 16 stuck 24
        failed_hooks 28
    }
    task_type::pace_task_type_config_t 184 {
        struct_size 0 lane 4 retry 8 timeout_ns 48 queue_timeout_ns 56 deadline_ns 64 retry_delay 72
        retry_data 80 retry_drop 88 retry_budget 96 reserved 97 budget_per_second 100
        budget_ratio 104 budget_burst 112 rate_starts 116 rate_per_ns 120 rate_burst 128
        max_running 132 soft_timeout_ns 136 grace_ns 144 full 152 reserved2 156 full_wait_ns 160
        overlap_retries 168 reserved3 169 lease_ns 176
    }
    work_task::pace_task_options_t 128 {
        struct_size 0 lane 4 retry 8 timeout_ns 48 queue_timeout_ns 56 deadline_ns 64 delay_ns 72
        key 80 keyed 88 reserved 89 soft_timeout_ns 96 grace_ns 104 full 112 reserved2 116
        full_wait_ns 120
    }
    work_task::pace_task_report_t 64 {
        struct_size 0 status 4 id 8 name 16 message 24 outcome 32 attempts 36 queue_time_ns 40
        run_time_ns 48 worker 56 reserved 60
    }
    work_stats::pace_task_type_stats_t 104 {
        struct_size 0 reserved 4 submitted 8 accepted 16 rejected 24 completed 32 failed 40
        cancelled 48 timed_out 56 dropped 64 retried 72 retries_refused 80 running 88 discarded 96
    }
    work_stats::pace_workers_audit_t 80 {
        struct_size 0 balances 4 reserved 5 submitted 8 accepted 16 rejected 24 completed 32
        failed 40 cancelled 48 timed_out 56 dropped 64 in_flight 72
    }
    work_stats::pace_worker_stats_t 64 {
        struct_size 0 role 4 stuck 8 reserved 9 task_type 16 attempts 24 completed 32 failed 40
        run_time_ns 48 utilisation 56
    }
    work_stats::pace_health_t 40 {
        struct_size 0 health 4 threads 8 stuck 12 capacity 16 free 20 reserved_threads 24
        reserved 28 queued 32
    }
    metric::pace_label_t 16 {
        name 0 value 8
    }
    message::pace_publication_t 32 {
        struct_size 0 priority 4 headers 8 header_count 16 reserved 24
    }
    message::pace_subscription_t 8 {
        id 0
    }
    message::pace_message_t 88 {
        sequence 0 time_ns 8 lost_before 16 key 24 payload 40 size 48 headers 56 header_count 64
        priority 72 attempt 76 subscription 80
    }
    history::pace_history_options_t 136 {
        struct_size 0 when_full 4 pattern 8 keep_count 16 keep_bytes 24 keep_age_ns 32 archive 40
        archive_count 48 archive_bytes 56 archive_age_ns 64 lines 72 lines_max_size 80
        lines_files 88 commit_messages 92 commit_delay_ns 96 waiting_messages 104 waiting_bytes 112
        disk_wait_ns 120 process_only 128 check 129 reserved 130
    }
    hub::pace_hub_options_t 80 {
        struct_size 0 reserved 4 max_payload 8 dead_letters 16 histories 24 history_count 32 name 40
        errors 48 notice_interval_ns 56 count_keys 64 stats_interval_ns 72
    }
    hub::pace_receipt_t 56 {
        struct_size 0 reserved 4 sequence 8 matched 16 enqueued 24 dropped 32 rejected 40
        dead_lettered 48
    }
    hub::pace_hub_audit_t 96 {
        struct_size 0 balances 4 reserved 5 published 8 matched 16 delivered 24 failed 32
        dead_lettered 40 dropped 48 rejected 56 discarded 64 waiting 72 running 80 redelivered 88
    }
    publish_all::pace_publish_item_t 32 {
        key 0 publication 8 bytes 16 size 24
    }
    publisher::pace_publisher_options_t 40 {
        struct_size 0 no_wait 4 reserved 5 quota 8 quota_burst 12 quota_per_ns 16 allow 24
        allow_count 32
    }
    publisher::pace_publisher_stats_t 40 {
        struct_size 0 reserved 4 published 8 refused 16 enqueued 24 lost 32
    }
    subscription::pace_subscription_options_t 208 {
        struct_size 0 execution 4 threads 8 overflow 12 capacity 16 block_ns 24 lease_ns 32
        by_priority 40 acknowledged 41 reserved 42 retry 48 on_exhausted 88 restarts 92 within_ns 96
        supervisor 104 on_restart 112 filter 120 group 128 balance_header 136 balance_seed 144
        balance 152 reserved2 156 measured 160 reserved3 161 suspension_ns 168
        longest_suspension_ns 176 unique 184 factory 192 drop_handler 200
    }
    subscription::pace_subscription_stats_t 184 {
        struct_size 0 reserved 4 matched 8 delivered 16 failed 24 dead_lettered 32 dropped 40
        rejected 48 discarded 56 waiting 64 running 72 redelivered 80 filtered 88 restarts 96
        number 104 suspended 112 reserved2 113 filter_failures 120 latencies 128 latency_mean_ns 136
        latency_p50_ns 144 latency_p90_ns 152 latency_p99_ns 160 latency_p999_ns 168
        latency_max_ns 176
    }
    dead::pace_dead_filter_t 56 {
        struct_size 0 reason 4 pattern 8 subscription 16 first 24 last 32 since_ns 40 limit 48
    }
    dead::pace_dead_letter_t 152 {
        message 0 number 88 subscription 96 died_ns 104 pattern 112 failure 128 reason 144
        attempts 148
    }
    dead::pace_redelivered_t 32 {
        struct_size 0 reserved 4 enqueued 8 refused 16 orphaned 24
    }
    dead::pace_dead_letter_stats_t 40 {
        struct_size 0 reserved 4 buried 8 held 16 forgotten 24 removed 32
    }
    ask::pace_asked_t 8 {
        id 0
    }
    notice::pace_error_filter_t 48 {
        struct_size 0 severity 4 event 8 origin 16 since_ns 24 after 32 limit 40
    }
    notice::pace_hub_error_t 72 {
        number 0 time_ns 8 event 16 origin 32 message 48 severity 64 reserved 68
    }
    replay::pace_query_t 56 {
        struct_size 0 newest 4 reserved 5 pattern 8 first 16 last 24 since_ns 32 until_ns 40
        limit 48
    }
    replay::pace_history_stats_t 144 {
        pattern 0 recorded 16 in_memory 24 memory_bytes 32 waiting 40 commits 48 given_up 56
        errors 64 read_errors 72 durable 80 lines_lost 88 last_error 96 last_read_error 112
        last_lines_error 128
    }
    replay::pace_replay_options_t 128 {
        struct_size 0 from 4 at 8 retry 16 on_exhausted 56 restarts 60 within_ns 64 supervisor 72
        on_restart 80 suspension_ns 88 longest_suspension_ns 96 factory 104 drop_handler 112
        acknowledged 120 reserved 121
    }
    replay::pace_replay_stats_t 112 {
        struct_size 0 reserved 4 delivered 8 failed 16 lost 24 last 32 matched 40 dead_lettered 48
        discarded 56 waiting 64 running 72 restarts 80 number 88 suspended 96 reserved2 97
        redelivered 104
    }
    ops::pace_ops_options_t 72 {
        struct_size 0 environment 4 reserved 5 address 8 token 16 blocked_after_ns 24 workers 32
        settings 40 settings_count 48 ready_after_ns 56 dead_after_ns 64
    }
    figures::pace_hub_stats_t 80 {
        struct_size 0 reserved 4 keys 8 subscriptions 16 suspended 24 publishers 32 dead_letters 40
        told 48 lost 56 errors 64 forgotten 72
    }
    threshold::pace_threshold_t 64 {
        struct_size 0 part 4 severity 8 below 12 reserved 13 metric 16 labels 24 label_count 32
        limit 40 back_at 48 quantile 56
    }
    threshold::pace_crossing_t 40 {
        message 0 figure 16 threshold 24 severity 32 crossed 36 reserved 37
    }
    threshold::pace_watch_stats_t 16 {
        struct_size 0 crossed 4 looks 8
    }
    webhook::pace_webhook_options_t 96 {
        struct_size 0 reserved 4 capacity 8 timeout_ns 16 retry 24 headers 64 header_count 72
        proxy 80 url 88
    }
    webhook::pace_webhook_stats_t 48 {
        struct_size 0 reserved 4 posted 8 delivered 16 retried 24 failed 32 dropped 40
    }
    bridge_options::pace_bridge_options_t 160 {
        struct_size 0 require_tls 4 reserved 5 servers 8 name 16 connection_name 24 user 32
        password 40 token 48 nkey_file 56 credentials_file 64 root_certificates 72
        client_certificate 80 client_key 88 connect_timeout_ns 96 ping_interval_ns 104
        reconnect_first_ns 112 reconnect_cap_ns 120 window_ns 128 window_count 136 password_file 144
        token_file 152
    }
    bridge_options::pace_bridge_export_options_t 56 {
        struct_size 0 overflow 4 prefix 8 stream 16 buffer 24 block_ns 32 in_flight 40 spool 48
    }
    bridge_options::pace_bridge_import_options_t 136 {
        struct_size 0 start 4 prefix 8 group 16 stream 24 durable 32 buffer 40 request_timeout_ns 48
        start_sequence 56 start_time_ns 64 retry 72 in_flight 112 ack_wait_ns 120
        handle_timeout_ns 128
    }
    bridge::pace_bridge_stats_t 56 {
        struct_size 0 connected 4 reserved 5 connects 8 requests_out 16 requests_in 24 lost 32
        exports 40 imports 48
    }
    bridge::pace_bridge_export_stats_t 112 {
        struct_size 0 reserved 4 pattern 8 stream 24 waiting 40 sent 48 stored 56 in_flight 64
        sent_again 72 dropped 80 refused 88 late 96 turned_back 104
    }
    bridge::pace_bridge_import_stats_t 112 {
        struct_size 0 reserved 4 pattern 8 stream 24 published 40 acknowledged 48 in_flight 56
        again 64 dead 72 lag 80 duplicates 88 turned_back 96 refused 104
    }
    job::pace_job_info_t 64 {
        struct_size 0 number 4 id 8 name 24 arguments 40 size 48 time_left_ns 56
    }
    durable::pace_durable_options_t 32 {
        struct_size 0 in_flight 4 results_ns 8 ack_wait_ns 16 window_ns 24
    }
    durable::pace_submission_t 40 {
        struct_size 0 lane 4 delay_ns 8 deadline_ns 16 attempts 24 ignore_result 28 reserved 29
        unique 32
    }
    durable::pace_durable_id_t 40 {
        text 0
    }
    durable::pace_durable_info_t 88 {
        struct_size 0 status 4 attempts 8 reserved 12 number 16 id 24 name 40 bytes 56 size 64
        failure 72
    }
    cq_entry::pace_cq_ready_t 16 {
        handle 0 ready 8 reserved 12
    }
    cq_entry::pace_cq_conn_t 24 {
        conn 0 event 8 detail 12 number 16
    }
    cq_entry::pace_cq_request_t 16 {
        conn 0 request 8
    }
    cq_entry::pace_cq_datagram_t 40 {
        length 0 peer 8 os_error 32
    }
    cq_entry::pace_cq_attempt_t 16 {
        id 0 number 8 status 12
    }
    cq_entry::pace_cq_detail_t 88 {
        ready 0 conn 0 request 0 datagram 0 attempt 0 message 0 record 0 signal 0
    }
    cq_entry::pace_cq_entry_t 136 {
        kind 0 flags 4 token 8 tag 16 bytes 24 size 32 status 40 reserved 44 detail 48
    }
    cq::pace_cq_config_t 16 {
        struct_size 0 beside 4 leased_when_renewed 5 reserved 6 lease_ns 8
    }
    cq::pace_cq_stats_t 40 {
        struct_size 0 reserved 4 brought 8 completed 16 withdrawn 24 out 32
    }
    cq_answer::pace_cq_completion_t 88 {
        token 0 flags 8 answer 12 bytes 16 size 24 headers 32 headers_size 40 length 48 after_ns 56
        message 64 error 72 status 76 result 80 reserved 84
    }
}
