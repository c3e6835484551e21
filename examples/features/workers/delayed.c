/* Tasks that begin later, at a rate, or one at a time for each key.
 *
 * feature: workers/delayed
 * prints:
 *   a task is to begin in 20 ms
 *   it runs
 *   tasks of two keys, without a lock: 100 and 100
 *   5 tasks at a rate of 100 per second
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

static void say(void *text, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    puts(text);
    *outcome = 0;
}

static void count(void *counter, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    ++*(int *)counter;
    *outcome = 0;
}

int main(void) {
    int counters[2] = {0, 0}, limited = 0;
    pace_task_type_config_t config;
    pace_task_options_t later, keyed;
    pace_task_t task, tasks[200];
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type, *slow;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "work", NULL, &type));

    must(pace_task_options_init(&later, sizeof later));
    later.delay_ns = 20000000;
    puts("a task is to begin in 20 ms");
    must(pace_workers_submit(workers, type, say, "it runs", NULL, &later, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, NULL));

    must(pace_task_options_init(&keyed, sizeof keyed));
    keyed.keyed = true; /* tasks of one key run one at a time and in order */
    for (int n = 0; n < 200; n++) {
        keyed.key = (uint64_t)n % 2;
        must(pace_workers_submit(workers, type, count, &counters[n % 2], NULL, &keyed, &tasks[n]));
    }
    for (int n = 0; n < 200; n++) must(pace_workers_wait(workers, tasks[n], PACE_FOREVER, NULL));
    printf("tasks of two keys, without a lock: %d and %d\n", counters[0], counters[1]);

    must(pace_task_type_config_init(&config, sizeof config));
    config.rate_starts = 100; /* in a second */
    config.rate_per_ns = 1000000000;
    config.rate_burst = 1;
    config.max_running = 1; /* at once */
    must(pace_task_type_new(workers, "slow", &config, &slow));
    for (int n = 0; n < 5; n++)
        must(pace_workers_submit(workers, slow, count, &limited, NULL, NULL, &tasks[n]));
    for (int n = 0; n < 5; n++) must(pace_workers_wait(workers, tasks[n], PACE_FOREVER, NULL));
    printf("%d tasks at a rate of 100 per second\n", limited);
    pace_task_type_free(type);
    pace_task_type_free(slow);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
