/* Writes to what a task was given while the task writes to it: ThreadSanitizer must see that. What is
 * written before the task is posted, or after it was waited for, must go without a word. */
#include "../check.h"

static void add(void *user_data, int32_t *outcome) {
    *outcome = 0;
    *(int *)user_data += 1;
}

int main(void) {
    check_begin();
    pace_pool_t *pool = pool_of(1);
    pace_task_t task;
    int number = 0;
    OK(pace_pool_submit(pool, PACE_LANE_NORMAL, add, &number, NULL, &task));
    number += 1;
    OK(pace_task_wait(pool, task, PACE_FOREVER, NULL));
    number += 1;
    finish(pool);
    return 0;
}
