/* What each thread has run for a worker pool: the thread of a task, and the figures of each.
 *
 * feature: workers/threads
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>

static void work(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    *outcome = 0;
}

int main(void) {
    uint64_t attempts = 0;
    pace_pool_config_t config;
    pace_task_t task;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_worker_stats_t stats = {.struct_size = sizeof stats};
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
        must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
        report.struct_size = sizeof report;
    }
    CHECK(report.worker < 2);
    for (uint32_t worker = 0; worker < 2; worker++) {
        stats.struct_size = sizeof stats;
        must(pace_workers_worker_stats(workers, worker, &stats));
        attempts += stats.attempts;
        CHECK(!stats.stuck && stats.failed == 0 && stats.utilisation <= 1);
    }
    CHECK(attempts == 10);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
