/* Leader and followers: a handler that is about to block hands the lead on, and another thread sees the next event.
 *
 * feature: pool/leader
 */
#include "../check.h"
#include <paceline/pool.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

static atomic_bool first_blocks, second_ran;

static int32_t blocks(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    must(pace_promote_new_leader()); /* from here on another thread waits for events */
    atomic_store(&first_blocks, true);
    WAIT_FOR(atomic_load(&second_ran));
    return PACE_FLOW_DONE;
}

static int32_t runs(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    atomic_store(&second_ran, true);
    return PACE_FLOW_DONE;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_handle_t handle;
    pace_set_stats_t set = {.struct_size = sizeof set};
    int first = eventfd(1, EFD_NONBLOCK), second = eventfd(0, EFD_NONBLOCK);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.leaders = 1; /* one handle set: one leader at a time */
    must(pace_pool_new(&config, &pool));

    must(pace_pool_register(pool, second, NULL, runs, NULL, NULL, &handle));
    must(pace_pool_register(pool, first, NULL, blocks, NULL, NULL, &handle));
    WAIT_FOR(atomic_load(&first_blocks));
    CHECK(eventfd_write(second, 1) == 0);
    WAIT_FOR(atomic_load(&second_ran));

    /* The statistics tell who leads. */
    do must(pace_pool_set_stats(pool, 0, &set));
    while (set.leader == PACE_NONE);
    CHECK(set.leader < 2);
    pace_pool_free(pool);
    return 0;
}
