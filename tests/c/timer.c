/* Timers that run once. */
#include "check.h"

int main(void) {
    check_begin();
    pace_pool_t *pool = pool_of(2);
    counts_t counts = {0};
    pace_timer_t timer = {0};
    bool flag = false;
    OK(pace_pool_after(pool, MILLI, count_run, &counts, count_drop, NULL));
    OK(pace_pool_after(pool, 0, count_run, &counts, count_drop, &timer));
    UNTIL(atomic_load(&counts.runs) == 2 && atomic_load(&counts.drops) == 2);
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(!flag);
    flag = true;
    OK(pace_timer_is_pending(pool, timer, &flag));
    CHECK(!flag);
    flag = true;
    OK(pace_timer_postpone(pool, timer, SECOND, &flag));
    CHECK(!flag);

    OK(pace_pool_after(pool, 3600 * SECOND, count_run, &counts, count_drop, &timer));
    OK(pace_timer_is_pending(pool, timer, &flag));
    CHECK(flag);
    flag = false;
    OK(pace_timer_postpone(pool, timer, 7200 * SECOND, &flag));
    CHECK(flag);
    flag = false;
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(flag && atomic_load(&counts.drops) == 3 && atomic_load(&counts.runs) == 2);
    OK(pace_timer_cancel(pool, timer, &flag));
    CHECK(!flag);

    SAYS(PACE_EINVAL, pace_pool_after(pool, UINT64_MAX, count_run, &counts, count_drop, &timer));
    TELLS("delay");
    SAYS(PACE_EINVAL, pace_pool_after(pool, 0, NULL, &counts, count_drop, &timer));
    SAYS(PACE_EINVAL, pace_timer_cancel(pool, timer, NULL));
    CHECK(atomic_load(&counts.drops) == 3);

    /* What is not due when the pool ends is dropped. */
    OK(pace_pool_after(pool, 3600 * SECOND, count_run, &counts, count_drop, &timer));
    OK(pace_pool_shutdown(pool, SECOND, NULL));
    CHECK(atomic_load(&counts.drops) == 4 && atomic_load(&counts.runs) == 2);
    SAYS(PACE_ESHUTDOWN, pace_pool_after(pool, 0, count_run, &counts, count_drop, &timer));
    pace_pool_free(pool);
    CHECK(atomic_load(&counts.drops) == 4);
    return 0;
}
