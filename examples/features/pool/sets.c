/* Several handle sets, each with a leader of its own. A set whose leader is inside a slow handler is served by other
 * threads.
 *
 * feature: pool/sets
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#define HANDLES 8

static atomic_int ran;

/* The first of them waits for all others, in whichever set they are. */
static int32_t run(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    if (atomic_fetch_add(&ran, 1) == 0) WAIT_FOR(atomic_load(&ran) == HANDLES);
    return PACE_FLOW_DONE;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_stats_t stats = {.struct_size = sizeof stats};
    pace_handle_t handle;
    pace_pool_t *pool;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    config.leaders = 2;
    must(pace_pool_new(&config, &pool));
    must(pace_pool_stats(pool, &stats));
    CHECK(stats.sets == 2);
    for (int n = 0; n < HANDLES; n++)
        must(pace_pool_register(pool, eventfd(1, EFD_NONBLOCK), NULL, run, NULL, NULL, &handle));
    WAIT_FOR(atomic_load(&ran) == HANDLES);
    pace_pool_free(pool);
    return 0;
}
