/* Limits in time, of one attempt and of all of them, and cancellation. No code is killed: an attempt sees that it should end.
 *
 * feature: workers/timeouts
 * prints:
 *   5 ms for each attempt: timed out
 *   5 ms for the task: timed out
 *   cancelled: yes
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void until_cancelled(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    bool is_cancelled = false;
    (void)data, (void)outcome;
    while (!is_cancelled) {
        usleep(1000);
        must(pace_attempt_is_cancelled(attempt, &is_cancelled));
    }
    must(pace_attempt_fail(attempt, "given up"));
}

static void run(pace_workers_t *workers, pace_task_type_t *type, const pace_task_options_t *options,
                const char *limit) {
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_task_t task;
    must(pace_workers_submit(workers, type, until_cancelled, NULL, NULL, options, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    printf("%s: %s\n", limit, report.status == PACE_TASK_TIMED_OUT ? "timed out" : report.message);
}

int main(void) {
    pace_task_options_t options;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_task_t task;
    bool waited;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "slow", NULL, &type));

    must(pace_task_options_init(&options, sizeof options));
    options.timeout_ns = 5 * MILLISECOND;
    options.retry = (pace_retry_t){.shape = PACE_RETRY_FIXED, .retries = 2, .first_ns = MILLISECOND};
    run(workers, type, &options, "5 ms for each attempt");

    must(pace_task_options_init(&options, sizeof options));
    options.deadline_ns = 5 * MILLISECOND; /* of all attempts, and of the waits between them */
    run(workers, type, &options, "5 ms for the task");

    must(pace_workers_submit(workers, type, until_cancelled, NULL, NULL, NULL, &task));
    /* *waited: true, it waited, and has ended; false, it runs, and sees that it should end. */
    must(pace_workers_cancel(workers, task, &waited));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    printf("cancelled: %s\n", report.status == PACE_TASK_CANCELLED ? "yes" : "no");
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
