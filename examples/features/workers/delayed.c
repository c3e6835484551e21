/* Tasks that begin later, at a rate, or one at a time for each key.
 *
 * feature: workers/delayed
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>

/* Tasks of one key run one at a time and in order, so this needs no lock. */
static void count(void *counter, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    ++*(int *)counter;
    *outcome = 0;
}

int main(void) {
    int one = 0, other = 0;
    pace_task_type_config_t config;
    pace_task_options_t options;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_task_t task, tasks[200];
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type, *slow;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "count", NULL, &type));

    must(pace_task_options_init(&options, sizeof options));
    options.delay_ns = 20000000;
    must(pace_workers_submit(workers, type, count, &one, NULL, &options, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    CHECK(one == 1);

    must(pace_task_options_init(&options, sizeof options));
    options.keyed = true;
    for (int n = 0; n < 200; n++) {
        options.key = (uint64_t)n % 2;
        must(
            pace_workers_submit(workers, type, count, n % 2 ? &one : &other, NULL, &options, &tasks[n]));
    }
    for (int n = 0; n < 200; n++) must(pace_workers_wait(workers, tasks[n], PACE_FOREVER, NULL));
    CHECK(one == 101 && other == 100);

    must(pace_task_type_config_init(&config, sizeof config));
    config.rate_starts = 100; /* in a second */
    config.rate_per_ns = 1000000000;
    config.rate_burst = 1;
    config.max_running = 1; /* at once */
    must(pace_task_type_new(workers, "slow", &config, &slow));
    for (int n = 0; n < 5; n++)
        must(pace_workers_submit(workers, slow, count, &one, NULL, NULL, &tasks[n]));
    for (int n = 0; n < 5; n++) must(pace_workers_wait(workers, tasks[n], PACE_FOREVER, NULL));
    CHECK(one == 106);
    pace_task_type_free(type);
    pace_task_type_free(slow);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
