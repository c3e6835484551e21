/* Workers that take turns at a queue of tasks. The worker that leads takes a task, hands the lead on, and handles the task.
 * In `roles` one worker waits for events. Here tasks are in a queue, and whoever is free takes the next one.
 *
 *     cc examples/c/turns.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -pthread -o turns && ./turns
 */
#define _GNU_SOURCE
#include <paceline/pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s\n", pace_last_error());
    exit(1);
}

static void handle(void *task, int32_t *outcome) {
    char worker[16];
    pthread_getname_np(pthread_self(), worker, sizeof worker);
    printf("%s leads, and takes task %d\n", worker, *(int *)task);
    must(pace_promote_new_leader()); /* another worker is called for the next task */
    usleep(25000);                   /* what the task takes */
    printf("%s has handled task %d\n", worker, *(int *)task);
    *outcome = 0;
}

int main(void) {
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_report_t report = {.struct_size = sizeof report};
    int tasks[9];
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    config.name = "worker";
    must(pace_pool_new(&config, &pool));
    for (int i = 0; i < 9; i++) {
        tasks[i] = i + 1;
        /* The queue: a lane of the pool. It is bounded, and a post waits for room. */
        must(pace_pool_post(pool, PACE_LANE_NORMAL, handle, &tasks[i], NULL));
        usleep(10000); /* until the next task comes */
    }
    must(pace_pool_shutdown(pool, PACE_MS(60000), &report)); /* handles what was accepted, and ends */
    for (uint32_t i = 0; i < 3; i++) {
        pace_thread_stats_t thread = {.struct_size = sizeof thread};
        must(pace_pool_thread_stats(pool, i, &thread));
        printf("worker-%u: %llu tasks\n", i, (unsigned long long)thread.tasks);
    }
    printf("drained: %s\n", report.drained ? "true" : "false");
    pace_pool_free(pool);
    return 0;
}
