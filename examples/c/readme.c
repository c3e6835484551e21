#include <paceline.h>
#include <stdio.h>
#include <unistd.h>

static void say(void *text, int32_t *outcome) { *outcome = puts(text) < 0; }
static void slow(void *text, int32_t *outcome) { sleep(1); say(text, outcome); }

int main(void) {
    pace_pool_t *pool;
    if (pace_pool_new(NULL, &pool) != PACE_OK || /* one thread per CPU */
        pace_pool_post(pool, PACE_LANE_NORMAL, slow, "the slow task has ended", NULL) != PACE_OK ||
        pace_pool_after(pool, 20000000, say, "20 ms have passed", NULL, NULL) != PACE_OK) return 1;
    pace_pool_free(pool); /* waits for the slow task */
}
