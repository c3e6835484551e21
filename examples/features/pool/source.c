/* A pool that waits at a source in memory, and not at epoll: tasks, timers and rings as ever, but no descriptors.
 *
 * feature: pool/source
 * prints:
 *   a task: 42
 *   a descriptor: PACE_EINVAL
 */
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void answer(void *number, int32_t *outcome) {
    *(int *)number = 42;
    *outcome = 0;
}

static int32_t never(void *data, pace_handle_t self, int32_t fd, uint32_t ready) {
    (void)data, (void)self, (void)fd, (void)ready;
    return PACE_FLOW_DONE;
}

int main(void) {
    int number = 0;
    pace_pool_config_t config;
    pace_task_t task;
    pace_handle_t handle;
    pace_pool_t *pool;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 2;
    config.source = PACE_SOURCE_RING;
    must(pace_pool_new(&config, &pool));
    must(pace_pool_submit(pool, PACE_LANE_NORMAL, answer, &number, NULL, &task));
    must(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    printf("a task: %d\n", number);
    const pace_status_t refused = pace_pool_register(pool, 0, NULL, never, NULL, NULL, &handle);
    printf("a descriptor: %s\n", pace_status_name(refused));
    pace_pool_free(pool);
    return 0;
}
