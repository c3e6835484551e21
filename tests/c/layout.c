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

int main(void) {
    /* The library agrees: it accepts the sizes of the first version, and none below. */
    union {
        pace_pool_config_t config;
        pace_handle_options_t options;
    } first;
    check_begin();
    OK(pace_pool_config_init(&first.config, 128));
    SAYS(PACE_EVERSION, pace_pool_config_init(&first.config, 127));
    OK(pace_handle_options_init(&first.options, 12));
    SAYS(PACE_EVERSION, pace_handle_options_init(&first.options, 11));
    return 0;
}
