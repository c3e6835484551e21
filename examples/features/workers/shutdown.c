/* The end in phases: no new tasks, a drain, a stop of what is left, hooks that clean up; and a report.
 *
 * feature: workers/shutdown
 * prints:
 *   the task is asked to stop
 *   the hook closes the database
 *   drained: no, threads that are stuck: 0
 *   another task: PACE_ESHUTDOWN
 */
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static sem_t running;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void until_stopped(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    bool is_cancelled = false;
    (void)data;
    sem_post(&running);
    while (!is_cancelled) {
        usleep(1000);
        must(pace_attempt_is_cancelled(attempt, &is_cancelled));
    }
    puts("the task is asked to stop");
    *outcome = 0;
}

static void clean_up(void *what) { printf("the hook closes the %s\n", (const char *)what); }

int main(void) {
    pace_workers_report_t report = {.struct_size = sizeof report};
    pace_status_t status;
    pace_task_t task;
    pace_pool_t *pool;
    pace_workers_t *workers;
    pace_task_type_t *type;
    sem_init(&running, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_workers_new(pool, NULL, &workers));
    must(pace_task_type_new(workers, "endless", NULL, &type));
    must(pace_workers_on_shutdown(workers, "close the database", clean_up, "database", NULL));
    must(pace_workers_submit(workers, type, until_stopped, NULL, NULL, NULL, &task));
    sem_wait(&running);

    /* Drains for 10 ms, which is too short; stops for a minute; cleans up for a minute. */
    must(pace_workers_shutdown(workers, SECOND / 100, 60 * SECOND, 60 * SECOND, &report, NULL, NULL));
    printf("drained: %s, threads that are stuck: %d\n", report.drained ? "yes" : "no",
           (int)report.stuck);
    status = pace_workers_submit(workers, type, until_stopped, NULL, NULL, NULL, &task);
    printf("another task: %s\n", pace_status_name(status));
    pace_task_type_free(type);
    pace_workers_free(workers);
    pace_pool_free(pool);
    return 0;
}
