/* A hook is called for each handler or task that takes too long: once for each.
 *
 * feature: pool/slow
 * prints:
 *   the hook: a task has taken more than 10 ms, and still runs
 *   the task ends
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND UINT64_C(1000000)

static sem_t reported;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void report(void *data, uint32_t thread, uint64_t elapsed_ns, bool running) {
    (void)data, (void)thread;
    printf("the hook: a task has taken more than %d ms, and %s\n",
           elapsed_ns < 10 * MILLISECOND ? 0 : 10, running ? "still runs" : "has returned meanwhile");
    sem_post(&reported);
}

static void slow(void *data, int32_t *outcome) {
    (void)data;
    sem_wait(&reported);
    puts("the task ends");
    *outcome = 0;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_task_t task;
    sem_init(&reported, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.on_slow = report;
    config.slow_ns = 10 * MILLISECOND;
    must(pace_pool_new(&config, &pool));
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, slow, NULL, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    pace_pool_free(pool);
    return 0;
}
