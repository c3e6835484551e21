/* A task that does not return after its time is over cannot be killed: its thread is reported as stuck until it returns.
 *
 * feature: workers/stuck
 * prints:
 *   the task: timed out
 *   threads that are stuck: 1
 *   the task returns
 *   threads that are stuck: 0
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t go_on;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void hang(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    sem_wait(&go_on); /* does not ask whether it is cancelled */
    puts("the task returns");
    *outcome = 0;
}

static void wait_until_stuck(pace_workers_t *workers, uint32_t threads) {
    pace_health_t health = {.struct_size = sizeof health};
    do {
        usleep(1000);
        health.struct_size = sizeof health;
        must(pace_workers_health(workers, &health));
    } while (health.stuck != threads);
    printf("threads that are stuck: %d\n", (int)health.stuck);
}

int main(void) {
    pace_task_options_t options;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_task_t task;
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    sem_init(&go_on, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    must(pace_pool_new(&config, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "hang", NULL, &type));
    must(pace_task_options_init(&options, sizeof options));
    options.timeout_ns = options.grace_ns = 5000000;
    must(pace_workers_submit(workers, type, hang, NULL, NULL, &options, &task));
    must(pace_workers_wait(workers, task, PACE_FOREVER, &report)); /* nobody waits for the thread */
    printf("the task: %s\n", report.status == PACE_TASK_TIMED_OUT ? "timed out" : "in time");
    wait_until_stuck(workers, 1);
    sem_post(&go_on);
    wait_until_stuck(workers, 0);
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
