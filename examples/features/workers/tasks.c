/* Tasks with a report of how each ended; many at once; and those for which nobody waits.
 *
 * feature: workers/tasks
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdatomic.h>
#include <string.h>

static void square(void *number, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    *(int *)number *= *(int *)number;
    *outcome = 0; /* without this it would have failed */
}

static void count(void *counter, int32_t *outcome) {
    atomic_fetch_add((atomic_int *)counter, 1);
    *outcome = 0;
}

int main(void) {
    int numbers[] = {1, 2, 3, 4, 5}, sum = 0;
    atomic_int posted = 0;
    pace_attempt_work_t work[4];
    pace_task_t first, others[4];
    size_t accepted;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *squares;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "square", NULL, &squares));

    must(pace_workers_submit(workers, squares, square, &numbers[4], NULL, NULL, &first));
    must(pace_workers_wait(workers, first, PACE_FOREVER, &report));
    CHECK(report.status == PACE_TASK_COMPLETED && report.attempts == 1 && numbers[4] == 25);
    CHECK(strcmp(report.name, "square") == 0);

    for (int n = 0; n < 4; n++) work[n] = (pace_attempt_work_t){square, &numbers[n], NULL};
    must(pace_workers_submit_batch(workers, squares, work, 4, NULL, others, &accepted));
    for (int n = 0; n < 4; n++) must(pace_workers_wait(workers, others[n], PACE_FOREVER, NULL));
    for (int n = 0; n < 5; n++) sum += numbers[n];
    CHECK(accepted == 4 && sum == 55);

    must(pace_task_type_post(squares, count, &posted, NULL)); /* fire and forget */
    WAIT_FOR(atomic_load(&posted) == 1);
    pace_task_type_free(squares);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
