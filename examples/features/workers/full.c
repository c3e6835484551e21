/* Bounded: what a submission does when there is no room, here to be refused, to run at once, or to drop the oldest.
 *
 * feature: workers/full
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>

static atomic_bool closed, opened;

static void gate(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    atomic_store(&closed, true);
    WAIT_FOR(atomic_load(&opened));
    *outcome = 0;
}

static void note(void *ran, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    if (ran != NULL) *(bool *)ran = true;
    *outcome = 0;
}

static pace_status_t submit(pace_workers_t *workers, pace_task_type_t *type, uint32_t full, bool *ran,
                            pace_task_t *task) {
    pace_task_options_t options;
    must(pace_task_options_init(&options, sizeof options));
    options.full = full;
    options.full_wait_ns = PACE_FOREVER; /* for PACE_OVERLOAD_WAIT */
    return pace_workers_submit(workers, type, note, ran, NULL, &options, task);
}

int main(void) {
    bool ran = false;
    int accepted = 0;
    pace_pool_config_t threads;
    pace_workers_config_t config;
    pace_task_t first, oldest, task;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_config_init(&threads, sizeof threads));
    threads.threads = 1;
    threads.lane_capacity = 4;
    must(pace_pool_new(&threads, &pool));
    must(pace_workers_config_init(&config, sizeof config));
    config.max_droppable = 1;
    must(pace_workers_new(pool, &config, &workers));
    must(pace_task_type_new(workers, "gate", NULL, &type));
    must(pace_workers_submit(workers, type, gate, NULL, NULL, NULL, &first));
    WAIT_FOR(atomic_load(&closed)); /* the only thread is inside */

    must(submit(workers, type, PACE_OVERLOAD_DROP_OLDEST, NULL, &oldest));
    must(submit(workers, type, PACE_OVERLOAD_DROP_OLDEST, NULL, &task));
    must(pace_workers_wait(workers, oldest, PACE_FOREVER, &report));
    CHECK(report.status == PACE_TASK_REJECTED);

    while (submit(workers, type, PACE_OVERLOAD_REJECT, NULL, &task) == PACE_OK) CHECK(++accepted < 100);
    must(submit(workers, type, PACE_OVERLOAD_RUN_HERE, &ran, &task));
    CHECK(ran); /* in this thread */
    atomic_store(&opened, true);
    must(submit(workers, type, PACE_OVERLOAD_WAIT, NULL, &task));
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
