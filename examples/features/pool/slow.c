/* A hook hears of handlers that take too long: once for each.
 *
 * feature: pool/slow
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>

#define MILLISECOND UINT64_C(1000000)

static atomic_int told;

static void hear(void *data, uint32_t thread, uint64_t elapsed_ns, bool running) {
    (void)data, (void)thread;
    CHECK(elapsed_ns >= 10 * MILLISECOND && running); /* false: it has returned meanwhile */
    atomic_fetch_add(&told, 1);
}

static void slow(void *data, int32_t *outcome) {
    (void)data;
    WAIT_FOR(atomic_load(&told) == 1);
    *outcome = 0;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.on_slow = hear;
    config.slow_ns = 10 * MILLISECOND;
    must(pace_pool_new(&config, &pool));
    must(pace_pool_post(pool, PACE_LANE_NORMAL, slow, NULL, NULL));
    WAIT_FOR(atomic_load(&told) == 1);
    pace_pool_free(pool);
    return 0;
}
