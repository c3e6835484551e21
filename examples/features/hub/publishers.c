/* Publishers with a name, permitted keys and a quota: a guard against mistakes.
 *
 * feature: hub/publishers
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>

int main(void) {
    const char *const allow[] = {"sensors.roof.>"};
    int accepted = 0;
    pace_publisher_options_t options;
    pace_publisher_stats_t stats = {.struct_size = sizeof stats};
    pace_receipt_t receipt = {.struct_size = sizeof receipt};
    pace_publisher_t *roof;
    pace_key_t *own, *other;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_publisher_options_init(&options, sizeof options));
    options.allow = allow;
    options.allow_count = 1;
    options.quota = 1; /* in an hour, and five at once */
    options.quota_per_ns = 3600000000000;
    options.quota_burst = 5;
    must(pace_publisher_new(hub, "roof", &options, &roof));
    must(pace_hub_key(hub, "sensors.roof.wind", &own));
    must(pace_hub_key(hub, "sensors.cellar.damp", &other));

    CHECK(pace_publisher_publish(roof, other, NULL, "1", 1, 0, &receipt) == PACE_EINVAL);
    while (pace_publisher_publish(roof, own, NULL, "1", 1, 0, &receipt) == PACE_OK)
        CHECK(++accepted < 100);
    must(pace_publisher_stats(roof, &stats));
    CHECK(accepted == 5 && stats.published == 5 && stats.refused >= 1);
    pace_publisher_free(roof);
    pace_key_free(own);
    pace_key_free(other);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
