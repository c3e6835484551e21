/* Lanes of priority: what waits in a higher lane begins first.
 *
 * feature: pool/lanes
 * prints:
 *   critical
 *   high
 *   normal
 *   low
 */
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t busy, go_on;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void keep_busy(void *data, int32_t *outcome) {
    (void)data;
    sem_post(&busy);
    sem_wait(&go_on);
    *outcome = 0;
}

static void say(void *text, int32_t *outcome) {
    puts(text);
    *outcome = 0;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    sem_init(&busy, 0, 0), sem_init(&go_on, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.ageing_ns =
        PACE_FOREVER; /* by default a task that has waited for a second gets a turn, too */
    must(pace_pool_new(&config, &pool));

    must(pace_pool_post(pool, PACE_LANE_NORMAL, keep_busy, NULL, NULL));
    sem_wait(&busy); /* from here on all tasks wait */
    must(pace_pool_post(pool, PACE_LANE_LOW, say, "low", NULL));
    must(pace_pool_post(pool, PACE_LANE_NORMAL, say, "normal", NULL));
    must(pace_pool_post(pool, PACE_LANE_HIGH, say, "high", NULL));
    must(pace_pool_post(pool, PACE_LANE_CRITICAL, say, "critical", NULL));
    sem_post(&go_on);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_pool_free(pool);
    return 0;
}
