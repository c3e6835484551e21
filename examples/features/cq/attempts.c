/* Attempts of a worker pool's tasks as data, and the ends of tasks.
 *
 * feature: cq/attempts
 * prints:
 *   attempt 1: fails
 *   attempt 2: works
 *   the task has ended
 *   completed, attempts: 2
 */
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>

enum { ATTEMPTS, FETCH, ENDS };

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

int main(void) {
    bool ended = false;
    pace_task_options_t options;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_task_t task;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    pace_cq_t *cq;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_cq_workers(cq, workers, ATTEMPTS));
    must(pace_task_type_new(workers, "fetch", NULL, &type));
    must(pace_task_options_init(&options, sizeof options));
    options.retry = (pace_retry_t){.shape = PACE_RETRY_FIXED, .retries = 3, .first_ns = 1000000};
    must(pace_workers_submit_tagged(workers, type, FETCH, &options, &task));
    must(pace_cq_task(cq, workers, task, ENDS));

    while (!ended) {
        pace_cq_entry_t entry;
        size_t got = 0;
        must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
        if (entry.kind == PACE_CQ_TASK_ENDED) {
            ended = entry.tag == ENDS;
            continue;
        }
        const bool fails = entry.detail.attempt.number == 1; /* is tried again */
        printf("attempt %d: %s\n", (int)entry.detail.attempt.number, fails ? "fails" : "works");
        pace_cq_completion_t completion = {.token = entry.token, .flags = fails ? PACE_CQ_FAIL : 0};
        must(pace_cq_complete(cq, &completion, 1));
    }
    puts("the task has ended");
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    printf("%s, attempts: %d\n", report.status == PACE_TASK_COMPLETED ? "completed" : "failed",
           (int)report.attempts);
    pace_task_type_free(type);
    pace_cq_free(cq);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
