/* A timeline of what each thread does, for Perfetto.
 *
 * feature: ops/timeline
 * prints:
 *   a text for https://ui.perfetto.dev: {"displayTimeUnit":"ns" ...
 *   with a row for thread 0: yes
 */
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void work(void *data, int32_t *outcome) {
    (void)data;
    usleep(1000);
    *outcome = 0;
}

int main(void) {
    pace_pool_t *pool;
    pace_trace_t *trace;
    pace_text_t json;
    must(pace_pool_new(NULL, &pool));
    for (int n = 0; n < 10; n++) must(pace_pool_post(pool, PACE_LANE_NORMAL, work, NULL, NULL));

    /* For 20 ms, with as many records as usual; to be written to a file. */
    must(pace_pool_trace(pool, 20000000, 0, &trace));
    must(pace_trace_json(trace, &json));
    printf("a text for https://ui.perfetto.dev: %.23s ...\n", json.text);
    printf("with a row for thread 0: %s\n", strstr(json.text, "\"thread 0\"") != NULL ? "yes" : "no");
    pace_trace_free(trace);
    pace_pool_free(pool);
    return 0;
}
