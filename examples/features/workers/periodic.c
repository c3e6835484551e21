/* A periodic task: again and again, beside the others, until it is freed.
 *
 * feature: workers/periodic
 */
#include "../check.h"
#include <paceline/pool.h>
#include <paceline/workers.h>

static void beat(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    *outcome = 0;
}

int main(void) {
    uint64_t runs = 0, missed = 0;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    pace_periodic_t *periodic;
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "heartbeat", NULL, &type));
    /* A tick that comes while the last one still runs is skipped, or made up for later (_COALESCE). */
    must(pace_workers_every(workers, type, 1000000, PACE_MISSED_TICK_SKIP, beat, NULL, NULL, NULL,
                            &periodic));
    while (runs < 3) must(pace_periodic_counts(periodic, &runs, &missed));
    pace_periodic_free(periodic);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
