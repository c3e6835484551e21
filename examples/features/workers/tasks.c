/* Tasks with a report of how each ended; many at once; and those for which nobody waits.
 *
 * feature: workers/tasks
 * prints:
 *   square: completed, attempts: 1, result: 25
 *   a batch: 1 4 9 16
 *   nobody waits for this
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

static void square(void *number, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    *(int *)number *= *(int *)number;
    *outcome = 0; /* without this it would have failed */
}

static void say(void *text, int32_t *outcome) {
    puts(text);
    *outcome = 0;
}

int main(void) {
    int number = 5, numbers[] = {1, 2, 3, 4};
    pace_attempt_work_t work[4];
    pace_task_t task, tasks[4];
    size_t accepted;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *squares;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "square", NULL, &squares));

    must(pace_workers_submit(workers, squares, square, &number, NULL, NULL, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report));
    printf("%s: %s, attempts: %d, result: %d\n", report.name,
           report.status == PACE_TASK_COMPLETED ? "completed" : "failed", (int)report.attempts, number);

    for (int n = 0; n < 4; n++) work[n] = (pace_attempt_work_t){square, &numbers[n], NULL};
    must(pace_workers_submit_batch(workers, squares, work, 4, NULL, tasks, &accepted));
    for (int n = 0; n < 4; n++) must(pace_workers_wait(workers, tasks[n], PACE_FOREVER, NULL));
    printf("a batch: %d %d %d %d\n", numbers[0], numbers[1], numbers[2], numbers[3]);

    must(pace_task_type_post(squares, say, "nobody waits for this", NULL)); /* fire and forget */
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_task_type_free(squares);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
