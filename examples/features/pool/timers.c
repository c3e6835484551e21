/* Timers: one that rings once, one that rings again and again, and one that is put off and then cancelled.
 *
 * feature: pool/timers
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>

#define MILLISECOND UINT64_C(1000000)

static void ring(void *bell, int32_t *outcome) {
    atomic_fetch_add((atomic_int *)bell, 1);
    *outcome = 0;
}

static int32_t tick(void *ticks, pace_handle_t self) {
    (void)self;
    return atomic_fetch_add((atomic_int *)ticks, 1) + 1 < 3 ? PACE_FLOW_WAIT : PACE_FLOW_DONE;
}

int main(void) {
    atomic_int once = 0, never = 0, ticks = 0;
    pace_timer_t timer;
    pace_handle_t ticker;
    bool answer;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));

    must(pace_pool_after(pool, MILLISECOND, ring, &once, NULL, NULL));
    WAIT_FOR(atomic_load(&once) == 1);

    must(pace_pool_every(pool, MILLISECOND, tick, &ticks, NULL, &ticker)); /* until the third */
    WAIT_FOR(atomic_load(&ticks) == 3);

    must(pace_pool_after(pool, 3600000 * MILLISECOND, ring, &never, NULL, &timer));
    must(pace_timer_postpone(pool, timer, 7200000 * MILLISECOND, &answer)); /* from now */
    CHECK(answer);
    must(pace_timer_cancel(pool, timer, &answer));
    CHECK(answer && atomic_load(&never) == 0);
    pace_pool_free(pool);
    return 0;
}
