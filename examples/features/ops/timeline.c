/* A timeline of what each thread does, for Perfetto.
 *
 * feature: ops/timeline
 */
#include "../check.h"
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <string.h>

static void works(void *data, int32_t *outcome) {
    (void)data;
    usleep(1000);
    *outcome = 0;
}

int main(void) {
    pace_pool_t *pool;
    pace_trace_t *trace;
    pace_text_t json;
    must(pace_pool_new(NULL, &pool));
    for (int n = 0; n < 10; n++) must(pace_pool_post(pool, PACE_LANE_NORMAL, works, NULL, NULL));

    /* For 20 ms, with as many records as usual. https://ui.perfetto.dev opens a file of this text. */
    must(pace_pool_trace(pool, 20000000, 0, &trace));
    must(pace_trace_json(trace, &json));
    CHECK(memcmp(json.text, "{\"displayTimeUnit\"", 18) == 0);
    pace_trace_free(trace);
    pace_pool_free(pool);
    return 0;
}
