/* Retries: with a back-off, as long as it may help; not after a permanent failure; at a time that the attempt says.
 *
 * feature: workers/retries
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)

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

static pace_task_report_t run(pace_workers_t *workers, pace_retry_t retry, pace_delay_fn delay,
                              pace_attempt_fn work) {
    pace_task_type_config_t config;
    pace_task_type_t *type;
    pace_task_t task;
    pace_task_report_t report = {.struct_size = sizeof report};
    static int types;
    char name[16];
    snprintf(name, sizeof name, "fetch %d", ++types); /* a name has settings of its own */
    must(pace_task_type_config_init(&config, sizeof config));
    config.retry = retry;
    config.retry_delay = delay;
    must(pace_task_type_new(workers, name, &config, &type));
    must(pace_workers_submit(workers, type, work, NULL, NULL, NULL, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    pace_task_type_free(type);
    return report;
}

int main(void) {
    static const uint32_t shapes[] = {PACE_RETRY_FIXED, PACE_RETRY_LINEAR, PACE_RETRY_EXPONENTIAL,
                                      PACE_RETRY_RANDOM, PACE_RETRY_CUSTOM};
    pace_retry_t retry = {.retries = 5, .first_ns = MILLISECOND, .cap_ns = 10 * MILLISECOND};
    pace_task_report_t report;
    pace_pool_t *pool;
    pace_workers_t *workers;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
        retry.shape = shapes[n];
        report = run(workers, retry, shapes[n] == PACE_RETRY_CUSTOM ? custom : NULL, third_time);
        CHECK(report.status == PACE_TASK_COMPLETED && report.attempts == 3);
    }
    report = run(workers, retry, custom, in_vain);
    CHECK(report.status == PACE_TASK_FAILED && report.attempts == 1);
    CHECK(strcmp(report.message, "no such number") == 0);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
