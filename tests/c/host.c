/* Host threads: joining, and a loop of the host's own. */
#include "check.h"

static void joins(void *data, int32_t *outcome) {
    *outcome = pace_pool_join((pace_pool_t *)data, 0, NULL) == PACE_EINVAL ? 0 : 1;
}

int main(void) {
    check_begin();
    counts_t counts = {0};
    uint64_t ran = 99;
    int fd = -1;
    pace_pool_t *pool = pool_of(0);
    OK(pace_pool_join(pool, 0, &ran));
    CHECK(ran == 0);
    OK(pace_pool_pollable(pool, &fd));
    CHECK(fd >= 0 && !readable(fd));
    for (int i = 1; i <= 100; i++) {
        if (i % 2)
            OK(pace_pool_post(pool, PACE_LANE_NORMAL, count_run, &counts, count_drop));
        else
            OK(pace_pool_after(pool, MILLI, count_run, &counts, count_drop, NULL));
        while (atomic_load(&counts.runs) < i) {
            struct pollfd waits = {.fd = fd, .events = POLLIN};
            CHECK(poll(&waits, 1, 60000) == 1);
            OK(pace_pool_join(pool, 0, NULL));
        }
    }
    OK(pace_pool_post(pool, PACE_LANE_NORMAL, joins, pool, NULL));
    OK(pace_pool_join(pool, MILLI, &ran));
    CHECK(ran == 1);
    pace_audit_t audit = {0};
    audit.struct_size = sizeof audit;
    OK(pace_pool_audit(pool, &audit));
    CHECK(audit.failed == 0 && audit.completed == 101);
    OK(pace_pool_shutdown(pool, 0, NULL));
    SAYS(PACE_ESHUTDOWN, pace_pool_join(pool, 0, &ran));
    SAYS(PACE_ESHUTDOWN, pace_pool_pollable(pool, &fd));
    pace_pool_free(pool);

    pool = pool_of(1);
    SAYS(PACE_EINVAL, pace_pool_pollable(pool, &fd));
    TELLS("threads");
    finish(pool);
    return 0;
}
