/* Gives a task memory that it frees at once: memcheck must see it. */
#include "../check.h"

int main(void) {
    check_begin();
    pace_pool_t *pool = pool_of(1);
    counts_t *counts = (counts_t *)calloc(1, sizeof *counts), hold = {0};
    OK(pace_pool_post(pool, PACE_LANE_NORMAL, count_gated, &hold, NULL));
    OK(pace_pool_post(pool, PACE_LANE_NORMAL, count_run, counts, NULL));
    free(counts);
    atomic_store(&hold.gate, true);
    finish(pool);
    return 0;
}
