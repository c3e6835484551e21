/* A fixed pool of threads, made at its start and pinned to CPUs.
 *
 * feature: pool/threads
 * prints:
 *   2 threads
 *   pinned to the CPU that was asked for: yes
 *   begun: 2, ended: 2
 */
#define _GNU_SOURCE
#include <paceline/pool.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int begun, ended;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void begin(void *data, uint32_t thread) {
    (void)data, (void)thread;
    atomic_fetch_add(&begun, 1);
}

static void end(void *data, uint32_t thread) {
    (void)data, (void)thread;
    atomic_fetch_add(&ended, 1);
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_stats_t stats = {.struct_size = sizeof stats};
    pace_thread_stats_t thread = {.struct_size = sizeof thread};
    pace_pool_t *pool;
    const int cpu = sched_getcpu();
    char pin[16];
    snprintf(pin, sizeof pin, "%d", cpu);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.max_joined = 0; /* no places for threads of the program */
    config.name = "pinned";
    config.pin = pin; /* a list of CPUs, or "compact", "spread", "none" */
    config.pin_strict = true;
    config.on_start = begin;
    config.on_stop = end;
    must(pace_pool_new(&config, &pool));

    must(pace_pool_stats(pool, &stats));
    printf("%d threads\n", (int)stats.threads);
    must(pace_pool_thread_stats(pool, 1, &thread));
    printf("pinned to the CPU that was asked for: %s\n", (int)thread.cpu == cpu ? "yes" : "no");
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_pool_free(pool);
    printf("begun: %d, ended: %d\n", begun, ended);
    return 0;
}
