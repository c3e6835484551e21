/* Eager promotion: before each handler another thread begins to lead. It is for handlers that block as a rule; by default
 * a thread that watches takes over the lead from a handler that is slow.
 *
 * feature: pool/promotion
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

static atomic_int inside;

/* Both handlers are inside at once, though neither says that it blocks. */
static int32_t meet(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    atomic_fetch_add(&inside, 1);
    WAIT_FOR(atomic_load(&inside) == 2);
    return PACE_FLOW_DONE;
}

int main(void) {
    pace_pool_config_t config;
    pace_handle_t handle;
    pace_pool_t *pool;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    config.promotion = PACE_PROMOTION_EAGER;
    must(pace_pool_new(&config, &pool));
    for (int n = 0; n < 2; n++)
        must(pace_pool_register(pool, eventfd(1, EFD_NONBLOCK), NULL, meet, NULL, NULL, &handle));
    WAIT_FOR(atomic_load(&inside) == 2);
    pace_pool_free(pool);
    return 0;
}
