/* The end: a drain completes what was accepted, a stop cancels what has not begun, and every task is accounted for.
 *
 * feature: pool/shutdown
 */
#include "../check.h"
#include <paceline/pool.h>

static void work(void *data, int32_t *outcome) {
    (void)data;
    usleep(100);
    *outcome = 0;
}

static pace_pool_t *busy_pool(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    must(pace_pool_new(&config, &pool));
    for (int n = 0; n < 100; n++) must(pace_pool_post(pool, PACE_LANE_NORMAL, work, NULL, NULL));
    return pool;
}

int main(void) {
    pace_report_t report = {.struct_size = sizeof report};
    pace_audit_t audit = {.struct_size = sizeof audit};

    pace_pool_t *pool = busy_pool();
    must(pace_pool_shutdown(pool, PACE_FOREVER, &report));
    must(pace_pool_audit(pool, &audit));
    CHECK(report.drained && audit.completed == 100 && audit.balances);
    CHECK(pace_pool_post(pool, PACE_LANE_NORMAL, work, NULL, NULL) == PACE_ESHUTDOWN);
    pace_pool_free(pool);

    pool = busy_pool();
    report.struct_size = sizeof report, audit.struct_size = sizeof audit;
    must(pace_pool_stop_now(pool, &report));
    must(pace_pool_audit(pool, &audit));
    CHECK(audit.completed + audit.cancelled == 100 && audit.cancelled == report.cancelled);
    CHECK(audit.balances && audit.in_flight == 0);
    pace_pool_free(pool);
    return 0;
}
