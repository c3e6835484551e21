/* Figures of a pool, the process, the disks and a hub, as JSON or as text for a collector.
 *
 * feature: ops/metrics
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <string.h>

int main(void) {
    static char text[1 << 18];
    size_t needed;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_pool_disk(pool, "/"));
    must(pace_hub_publish(hub, "orders", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));

    CHECK(pace_pool_metrics(pool, PACE_METRICS_PROMETHEUS, text, 1, &needed) == PACE_EFULL);
    CHECK(needed > 1 && needed <= sizeof text); /* so much room it needs */
    must(pace_pool_metrics(pool, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed));
    CHECK(strstr(text, "paceline_handles{pool=") != NULL && strstr(text, "# TYPE ") != NULL);
    must(pace_hub_metrics(hub, PACE_METRICS_JSON, text, sizeof text, &needed));
    CHECK(text[0] == '{' && strstr(text, "paceline_hub_published") != NULL);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
