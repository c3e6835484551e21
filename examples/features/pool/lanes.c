/* Lanes of priority: what waits in a higher lane begins first.
 *
 * feature: pool/lanes
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool gate_closed, gate_open;
static char order[5];

static void gate(void *data, int32_t *outcome) {
    (void)data;
    atomic_store(&gate_closed, true);
    WAIT_FOR(atomic_load(&gate_open));
    *outcome = 0;
}

/* The only thread runs these, so `order` needs no lock. */
static void note(void *letter, int32_t *outcome) {
    strcat(order, letter);
    *outcome = 0;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.ageing_ns = PACE_FOREVER; /* by default what has waited for a second is looked at, too */
    must(pace_pool_new(&config, &pool));

    must(pace_pool_post(pool, PACE_LANE_NORMAL, gate, NULL, NULL));
    WAIT_FOR(atomic_load(&gate_closed));
    must(pace_pool_post(pool, PACE_LANE_LOW, note, "l", NULL));
    must(pace_pool_post(pool, PACE_LANE_NORMAL, note, "n", NULL));
    must(pace_pool_post(pool, PACE_LANE_HIGH, note, "h", NULL));
    must(pace_pool_post(pool, PACE_LANE_CRITICAL, note, "c", NULL));
    atomic_store(&gate_open, true);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    CHECK(strcmp(order, "chnl") == 0);
    pace_pool_free(pool);
    return 0;
}
