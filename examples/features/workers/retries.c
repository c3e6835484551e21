/* Retries: with a back-off, as long as it may help; not after a permanent failure; at a time that the attempt says.
 *
 * feature: workers/retries
 * prints:
 *   fixed: completed, attempts: 3
 *   linear: completed, attempts: 3
 *   exponential: completed, attempts: 3
 *   random: completed, attempts: 3
 *   custom: completed, attempts: 3
 *   permanent: no such number, attempts: 1
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND UINT64_C(1000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void third_time(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    uint32_t number;
    (void)data;
    must(pace_attempt_number(attempt, &number));
    if (number == 3)
        *outcome = 0;
    else if (number == 2)
        must(pace_attempt_retry_after(attempt, 2 * MILLISECOND)); /* what the backend has asked for */
}

static void in_vain(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)outcome;
    must(pace_attempt_fail(attempt, "no such number"));
    must(pace_attempt_permanent(attempt));
}

static uint64_t custom(void *data, uint32_t retry) {
    (void)data;
    return retry * MILLISECOND;
}

static void run(pace_workers_t *workers, const char *name, uint32_t shape, pace_attempt_fn work) {
    pace_task_type_config_t config;
    pace_task_type_t *type;
    pace_task_t task;
    pace_task_report_t report = {.struct_size = sizeof report};
    must(pace_task_type_config_init(&config, sizeof config));
    config.retry = (pace_retry_t){
        .shape = shape, .retries = 5, .first_ns = MILLISECOND, .cap_ns = 10 * MILLISECOND};
    config.retry_delay = shape == PACE_RETRY_CUSTOM ? custom : NULL;
    must(pace_task_type_new(workers, name, &config, &type));
    must(pace_workers_submit(workers, type, work, NULL, NULL, NULL, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    printf("%s: %s, attempts: %d\n", name,
           report.status == PACE_TASK_COMPLETED ? "completed" : report.message, (int)report.attempts);
    pace_task_type_free(type);
}

int main(void) {
    pace_pool_t *pool;
    pace_workers_t *workers;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    run(workers, "fixed", PACE_RETRY_FIXED, third_time);
    run(workers, "linear", PACE_RETRY_LINEAR, third_time);
    run(workers, "exponential", PACE_RETRY_EXPONENTIAL, third_time);
    run(workers, "random", PACE_RETRY_RANDOM, third_time);
    run(workers, "custom", PACE_RETRY_CUSTOM, third_time);
    run(workers, "permanent", PACE_RETRY_FIXED, in_vain);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
