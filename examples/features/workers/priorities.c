/* Priorities: what is more urgent begins first, and what is critical can have a thread of its own.
 *
 * feature: workers/priorities
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool closed, opened;
static char order[4];

static void gate(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    atomic_store(&closed, true);
    WAIT_FOR(atomic_load(&opened));
    *outcome = 0;
}

static void note(void *letter, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    if (letter != NULL) strcat(order, letter);
    *outcome = 0;
}

static pace_task_t submit(pace_workers_t *workers, pace_task_type_t *type, pace_attempt_fn run,
                          char *data, uint32_t lane) {
    pace_task_options_t options;
    pace_task_t task;
    must(pace_task_options_init(&options, sizeof options));
    options.lane = lane;
    must(pace_workers_submit(workers, type, run, data, NULL, &options, &task));
    return task;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.reserve[PACE_LANE_CRITICAL] = 1; /* one thread more, for critical tasks alone */
    config.ageing_ns = PACE_FOREVER; /* by default what has waited for a second is looked at, too */
    must(pace_pool_new(&config, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "note", NULL, &type));

    submit(workers, type, gate, NULL, PACE_LANE_NORMAL);
    WAIT_FOR(atomic_load(&closed));
    submit(workers, type, note, "l", PACE_LANE_LOW);
    submit(workers, type, note, "n", PACE_LANE_NORMAL);
    submit(workers, type, note, "h", PACE_LANE_HIGH);
    /* The thread of the pool is blocked, and this ends all the same. */
    must(pace_workers_wait(workers, submit(workers, type, note, NULL, PACE_LANE_CRITICAL), PACE_FOREVER,
                           NULL));
    atomic_store(&opened, true);
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    CHECK(strcmp(order, "hnl") == 0);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
