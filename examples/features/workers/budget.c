/* A budget for retries: while a backend is down, only some of its failures are tried again.
 *
 * feature: workers/budget
 * prints:
 *   50 tasks have failed
 *   retries that the budget has refused: some
 *   retries without a budget: 150, with it: fewer
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void fails(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)outcome;
    must(pace_attempt_fail(attempt, "the backend is down"));
}

int main(void) {
    pace_task_type_config_t config;
    pace_task_type_stats_t stats = {.struct_size = sizeof stats};
    pace_task_t tasks[50];
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_config_init(&config, sizeof config));
    config.retry = (pace_retry_t){.shape = PACE_RETRY_FIXED, .retries = 3, .first_ns = 1000000};
    config.retry_budget = true;
    config.budget_ratio = 0.1; /* of the tasks */
    config.budget_per_second = 1;
    config.budget_burst = 5;
    must(pace_task_type_new(workers, "fetch", &config, &type));
    for (int n = 0; n < 50; n++)
        must(pace_workers_submit(workers, type, fails, NULL, NULL, NULL, &tasks[n]));
    for (int n = 0; n < 50; n++) must(pace_workers_wait(workers, tasks[n], PACE_FOREVER, NULL));
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    must(pace_task_type_stats(type, &stats));
    printf("%d tasks have failed\n", (int)stats.failed);
    printf("retries that the budget has refused: %s\n", stats.retries_refused > 0 ? "some" : "none");
    printf("retries without a budget: 150, with it: %s\n", stats.retried < 150 ? "fewer" : "as many");
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
