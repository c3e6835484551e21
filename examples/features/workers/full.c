/* Bounded: what a submission does when there is no room, here to drop the oldest, to be refused, to run at once, or to wait.
 *
 * feature: workers/full
 * prints:
 *   the oldest task was dropped: yes
 *   refused: PACE_EFULL
 *   this task runs in the thread that has submitted it
 *   this task has waited for room
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
    if (text != NULL) puts(text);
    *outcome = 0;
}

static pace_status_t submit(pace_workers_t *workers, pace_task_type_t *type, uint32_t full, char *text,
                            pace_task_t *task) {
    pace_task_options_t options;
    must(pace_task_options_init(&options, sizeof options));
    options.full = full;
    options.full_wait_ns = PACE_FOREVER; /* for PACE_OVERLOAD_WAIT */
    return pace_workers_submit(workers, type, say, text, NULL, &options, task);
}

int main(void) {
    pace_pool_config_t threads;
    pace_workers_config_t config;
    pace_task_t oldest, task;
    pace_task_report_t report = {.struct_size = sizeof report};
    pace_status_t status;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    sem_init(&busy, 0, 0), sem_init(&go_on, 0, 0);
    must(pace_pool_config_init(&threads, sizeof threads));
    threads.threads = 1;
    threads.lane_capacity = 4;
    must(pace_pool_new(&threads, &pool));
    must(pace_workers_config_init(&config, sizeof config));
    config.max_droppable = 1;
    must(pace_workers_new(pool, &config, &workers));
    must(pace_task_type_new(workers, "say", NULL, &type));
    must(pace_workers_submit(workers, type, keep_busy, NULL, NULL, NULL, &task));
    sem_wait(&busy); /* the only thread is inside */

    must(submit(workers, type, PACE_OVERLOAD_DROP_OLDEST, NULL, &oldest));
    must(submit(workers, type, PACE_OVERLOAD_DROP_OLDEST, NULL, &task));
    must(pace_workers_wait(workers, oldest, PACE_FOREVER, &report));
    printf("the oldest task was dropped: %s\n", report.status == PACE_TASK_REJECTED ? "yes" : "no");

    do status = submit(workers, type, PACE_OVERLOAD_REJECT, NULL, &task);
    while (status == PACE_OK);
    printf("refused: %s\n", pace_status_name(status));
    must(submit(workers, type, PACE_OVERLOAD_RUN_HERE,
                "this task runs in the thread that has submitted it", &task));
    sem_post(&go_on);
    must(submit(workers, type, PACE_OVERLOAD_WAIT, "this task has waited for room", &task));
    must(pace_workers_shutdown(workers, PACE_FOREVER, 0, 0, NULL, NULL, NULL));
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
