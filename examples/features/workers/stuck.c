/* A task that does not return after its time is over cannot be killed: its thread is reported as stuck until it returns.
 *
 * feature: workers/stuck
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>

static atomic_bool opened;

static void hang(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    WAIT_FOR(atomic_load(&opened)); /* does not ask whether it is cancelled */
    *outcome = 0;
}

static uint32_t stuck(pace_workers_t *workers) {
    pace_health_t health = {.struct_size = sizeof health};
    must(pace_workers_health(workers, &health));
    return health.stuck;
}

int main(void) {
    pace_task_options_t options;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_task_t task;
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    must(pace_pool_new(&config, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "hang", NULL, &type));
    must(pace_task_options_init(&options, sizeof options));
    options.timeout_ns = options.grace_ns = 5000000;
    must(pace_workers_submit(workers, type, hang, NULL, NULL, &options, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report)); /* nobody waits for the thread */
    CHECK(report.status == PACE_TASK_TIMED_OUT);
    WAIT_FOR(stuck(workers) == 1);
    atomic_store(&opened, true);
    WAIT_FOR(stuck(workers) == 0);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
