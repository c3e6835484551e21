/* A program that finds paceline where it was installed. */

#include <paceline/pool.h>
#include <stdio.h>

static void answer(void *user_data, int32_t *outcome) {
    (void)user_data;
    *outcome = 42;
}

int main(void) {
    pace_pool_t *pool;
    pace_task_t task;
    int32_t outcome = 0;
    if (pace_pool_new(NULL, &pool) != PACE_OK ||
        pace_pool_submit(pool, PACE_LANE_NORMAL, answer, NULL, NULL, &task) != PACE_OK ||
        pace_task_wait(pool, task, PACE_FOREVER, &outcome) != PACE_OK) {
        fprintf(stderr, "%s\n", pace_last_error());
        return 1;
    }
    pace_pool_free(pool);
    printf("C %d\n", (int)outcome);
    return 0;
}
