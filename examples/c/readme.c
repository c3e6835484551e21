#include <paceline/pool.h>
#include <stdio.h>
#include <unistd.h>

static void say(void *text, int32_t *outcome) { *outcome = puts(text) < 0; }
static void slow(void *text, int32_t *outcome) { *outcome = sleep(1) != 0 || puts(text) < 0; }

int main(void) {
    pace_pool_t *pool;
    if (pace_pool_new(NULL, &pool)) return 1; /* one thread per CPU */
    if (pace_pool_post(pool, PACE_LANE_NORMAL, slow, "the slow task has ended", NULL)) return 1;
    if (pace_pool_after(pool, 20000000, say, "20 ms have passed", NULL, NULL)) return 1;
    pace_pool_free(pool); /* waits for the slow task */
}
