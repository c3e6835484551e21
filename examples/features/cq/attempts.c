/* Attempts of a worker pool's tasks as data, and the ends of tasks.
 *
 * feature: cq/attempts
 */
#include "../check.h"
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <paceline/workers.h>

enum { ATTEMPTS, FETCH, ENDS };

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
        pace_cq_completion_t completion = {.token = entry.token};
        if (entry.kind == PACE_CQ_TASK_ENDED) {
            ended = entry.tag == ENDS;
            continue;
        }
        CHECK(entry.kind == PACE_CQ_ATTEMPT && entry.tag == FETCH);
        if (entry.detail.attempt.number == 1) completion.flags = PACE_CQ_FAIL; /* is tried again */
        must(pace_cq_complete(cq, &completion, 1));
    }
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    CHECK(report.status == PACE_TASK_COMPLETED && report.attempts == 2);
    pace_task_type_free(type);
    pace_cq_free(cq);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
