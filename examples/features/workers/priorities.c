/* Priorities: what is more urgent begins first, and what is critical can have a thread of its own.
 *
 * feature: workers/priorities
 * prints:
 *   critical, while the other thread is busy
 *   high
 *   normal
 *   low
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t busy, go_on;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void keep_busy(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    sem_post(&busy);
    sem_wait(&go_on);
    *outcome = 0;
}

static void say(void *text, pace_attempt_t *attempt, int32_t *outcome) {
    (void)attempt;
    puts(text);
    *outcome = 0;
}

static pace_task_t submit(pace_workers_t *workers, pace_task_type_t *type, pace_attempt_fn run,
                          char *text, uint32_t lane) {
    pace_task_options_t options;
    pace_task_t task;
    must(pace_task_options_init(&options, sizeof options));
    options.lane = lane;
    must(pace_workers_submit(workers, type, run, text, NULL, &options, &task));
    return task;
}

int main(void) {
    pace_pool_config_t config;
    pace_task_t critical;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    sem_init(&busy, 0, 0), sem_init(&go_on, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    config.reserve[PACE_LANE_CRITICAL] = 1; /* one thread more, for critical tasks alone */
    config.ageing_ns =
        PACE_FOREVER; /* by default a task that has waited for a second gets a turn, too */
    must(pace_pool_new(&config, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "say", NULL, &type));

    submit(workers, type, keep_busy, NULL, PACE_LANE_NORMAL);
    sem_wait(&busy); /* from here on all tasks wait, but for critical ones */
    submit(workers, type, say, "low", PACE_LANE_LOW);
    submit(workers, type, say, "normal", PACE_LANE_NORMAL);
    submit(workers, type, say, "high", PACE_LANE_HIGH);
    critical =
        submit(workers, type, say, "critical, while the other thread is busy", PACE_LANE_CRITICAL);
    must(pace_workers_wait(workers, critical, PACE_FOREVER, NULL));
    sem_post(&go_on);
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
