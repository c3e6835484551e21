/* A task that fails is counted, and its outcome is reported to the thread that waits for it; nothing else ends with it.
 *
 * feature: pool/failures
 * prints:
 *   outcome of the task that fails: 7
 *   outcome of the next task: 0
 *   failed: 1, completed: 1
 */
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void fails(void *data, int32_t *outcome) {
    (void)data;
    *outcome = 7;
}

static void works(void *data, int32_t *outcome) {
    (void)data;
    *outcome = 0;
}

int main(void) {
    int32_t outcome;
    pace_task_t task;
    pace_audit_t audit = {.struct_size = sizeof audit};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, fails, NULL, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    printf("outcome of the task that fails: %d\n", outcome);
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, works, NULL, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    printf("outcome of the next task: %d\n", outcome);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL)); /* the counters are exact at rest */
    must(pace_pool_audit(pool, &audit));
    printf("failed: %d, completed: %d\n", (int)audit.failed, (int)audit.completed);
    pace_pool_free(pool);
    return 0;
}
