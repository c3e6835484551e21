/* Figures of a pool, the process, the disks and a hub, as JSON or as text for a collector.
 *
 * feature: ops/metrics
 * prints:
 *   without room: PACE_EFULL, and the size is known: yes
 *   # TYPE paceline_handles gauge
 *   paceline_hub_published_total{hub="main"} 1.0
 *   JSON: {"failures":0,"families":[
 */
#include <paceline/hub.h>
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void print_line(const char *text, const char *start) {
    const char *line = strstr(text, start);
    if (line != NULL) printf("%.*s\n", (int)strcspn(line, "\n"), line);
}

int main(void) {
    static char text[1 << 18];
    size_t needed = 0;
    pace_status_t status;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_pool_disk(pool, "/"));
    must(pace_hub_publish(hub, "orders", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));

    status = pace_pool_metrics(pool, PACE_METRICS_PROMETHEUS, text, 1, &needed);
    printf("without room: %s, and the size is known: %s\n", pace_status_name(status),
           needed > 1 ? "yes" : "no");
    must(pace_pool_metrics(pool, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed));
    print_line(text, "# TYPE paceline_handles ");
    must(pace_hub_metrics(hub, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed));
    print_line(text, "paceline_hub_published_total{");
    must(pace_hub_metrics(hub, PACE_METRICS_JSON, text, sizeof text, &needed));
    printf("JSON: %.*s\n", (int)strlen("{\"failures\":0,\"families\":["), text);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
