/* What each thread has run for a worker pool: the thread of a task, and the figures of each.
 *
 * feature: workers/threads
 * prints:
 *   the last task has run on one of the 2 threads: yes
 *   attempts of both: 10, failed: 0
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

static void work(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    *outcome = 0;
}

int main(void) {
    int attempts = 0, failed = 0;
    pace_pool_config_t config;
    pace_task_t task;
    pace_task_report_t report;
    pace_worker_stats_t stats;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    must(pace_pool_new(&config, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "work", NULL, &type));
    for (int n = 0; n < 10; n++) {
        must(pace_workers_submit(workers, type, work, NULL, NULL, NULL, &task));
        report.struct_size = sizeof report;
        must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    }
    printf("the last task has run on one of the 2 threads: %s\n", report.worker < 2 ? "yes" : "no");
    for (uint32_t worker = 0; worker < 2; worker++) {
        stats.struct_size = sizeof stats;
        must(pace_workers_worker_stats(workers, worker, &stats));
        attempts += (int)stats.attempts;
        failed += (int)stats.failed;
    }
    printf("attempts of both: %d, failed: %d\n", attempts, failed);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
