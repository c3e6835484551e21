/* A fixed pool of threads, made at its start and pinned to CPUs.
 *
 * feature: pool/threads
 */
#define _GNU_SOURCE
#include "../check.h"
#include <paceline/pool.h>
#include <sched.h>
#include <stdatomic.h>

static void count(void *threads, uint32_t thread) {
    (void)thread;
    atomic_fetch_add((atomic_int *)threads, 1);
}

int main(void) {
    atomic_int threads = 0;
    pace_pool_config_t config;
    pace_pool_stats_t stats = {.struct_size = sizeof stats};
    pace_thread_stats_t thread = {.struct_size = sizeof thread};
    pace_pool_t *pool;
    char cpu[16];
    snprintf(cpu, sizeof cpu, "%d", sched_getcpu());
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.max_joined = 0; /* no places for threads of the program */
    config.name = "pinned";
    config.pin = cpu; /* a list of CPUs, or "compact", "spread", "none" */
    config.pin_strict = true;
    config.on_start = config.on_stop = count;
    config.hook_data = &threads;
    must(pace_pool_new(&config, &pool));

    must(pace_pool_stats(pool, &stats));
    CHECK(stats.threads == 2);
    must(pace_pool_thread_stats(pool, 1, &thread));
    CHECK(thread.cpu == (uint32_t)atoi(cpu) && !thread.pin_failed);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_pool_free(pool);
    CHECK(atomic_load(&threads) == 4); /* each has begun and ended */
    return 0;
}
