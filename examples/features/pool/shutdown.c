/* The end: a drain completes what was accepted, a stop cancels what has not begun, and every task is accounted for.
 *
 * feature: pool/shutdown
 * prints:
 *   drained: 100 of 100 tasks are completed
 *   another task: PACE_ESHUTDOWN
 *   stopped: 100 of 100 tasks are completed or cancelled
 */
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

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
    printf("%s: %d of 100 tasks are completed\n", report.drained ? "drained" : "not drained",
           (int)audit.completed);
    const pace_status_t late = pace_pool_post(pool, PACE_LANE_NORMAL, work, NULL, NULL);
    printf("another task: %s\n", pace_status_name(late));
    pace_pool_free(pool);

    pool = busy_pool();
    must(pace_pool_stop_now(pool, NULL));
    audit.struct_size = sizeof audit;
    must(pace_pool_audit(pool, &audit));
    printf("stopped: %d of 100 tasks are completed or cancelled\n",
           (int)(audit.completed + audit.cancelled));
    pace_pool_free(pool);
    return 0;
}
