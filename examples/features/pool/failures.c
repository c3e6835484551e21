/* A task that fails is counted and told to whoever waits for it; nothing else ends with it.
 *
 * feature: pool/failures
 */
#include "../check.h"
#include <paceline/pool.h>

static void fails(void *data, int32_t *outcome) {
    (void)data;
    *outcome = 7;
}

static void works(void *data, int32_t *outcome) {
    (void)data;
    *outcome = 0;
}

int main(void) {
    int32_t outcome = 0;
    pace_task_t task;
    pace_audit_t audit = {.struct_size = sizeof audit};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, fails, NULL, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, &outcome));
    CHECK(outcome == 7);
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, works, NULL, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL)); /* the counters are exact at rest */
    must(pace_pool_audit(pool, &audit));
    CHECK(audit.failed == 1 && audit.completed == 1);
    pace_pool_free(pool);
    return 0;
}
