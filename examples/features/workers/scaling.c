/* Threads are not added; how many of them take tasks follows the wait in the queue, between a minimum and all.
 *
 * feature: workers/scaling
 * prints:
 *   the queue grows: another thread takes tasks
 *   by hand: all 4 threads take tasks
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int inside;
static atomic_bool two_at_once;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void work(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    if (atomic_fetch_add(&inside, 1) == 1) atomic_store(&two_at_once, true);
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
    while (!atomic_load(&two_at_once)) { /* more than one thread can run */
        for (int n = 0; n < 4; n++) {
            must(pace_workers_submit(workers, type, work, NULL, NULL, NULL, &task));
            must(pace_workers_detach(workers, task));
        }
        usleep(1000);
    }
    puts("the queue grows: another thread takes tasks");
    must(pace_pool_set_active(pool, 4));
    puts("by hand: all 4 threads take tasks");
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
