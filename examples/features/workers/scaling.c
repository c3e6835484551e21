/* Threads are not added; how many of them take tasks follows the wait in the queue, between a minimum and all.
 *
 * feature: workers/scaling
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>

static atomic_int inside, most;

static void work(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
    }
    usleep(1000);
    atomic_fetch_sub(&inside, 1);
    *outcome = 0;
}

int main(void) {
    pace_pool_config_t threads;
    pace_workers_config_t config;
    pace_task_t task;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_config_init(&threads, sizeof threads));
    threads.threads = 4;
    must(pace_pool_new(&threads, &pool));
    must(pace_workers_config_init(&config, sizeof config));
    config.scaling = true;
    config.min_active = 1;
    config.scaling_high_ns = 2000000; /* a longer wait: one thread more */
    config.scaling_low_ns = 200000;   /* a shorter one: one thread less */
    config.scaling_period_ns = 5000000;
    must(pace_workers_new(pool, &config, &workers));
    must(pace_task_type_new(workers, "work", NULL, &type));
    for (int n = 0; n < 60000 && atomic_load(&most) < 2; n++) {
        for (int more = 0; more < 4; more++)
            must(pace_workers_submit(workers, type, work, NULL, NULL, NULL, &task)),
                must(pace_workers_detach(workers, task));
        usleep(1000);
    }
    CHECK(atomic_load(&most) >= 2);
    must(pace_pool_set_active(pool, 4)); /* by hand: all */
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
