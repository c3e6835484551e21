/* Publishers with a name, permitted keys and a quota: a guard against mistakes.
 *
 * feature: hub/publishers
 * prints:
 *   a key that is not permitted: PACE_EINVAL
 *   published: 5
 *   then: PACE_EFULL
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

int main(void) {
    const char *const allow[] = {"sensors.roof.>"};
    pace_status_t status;
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

    status = pace_publisher_publish(roof, other, NULL, "1", 1, 0, &receipt);
    printf("a key that is not permitted: %s\n", pace_status_name(status));
    do status = pace_publisher_publish(roof, own, NULL, "1", 1, 0, &receipt);
    while (status == PACE_OK);
    must(pace_publisher_stats(roof, &stats));
    printf("published: %d\nthen: %s\n", (int)stats.published, pace_status_name(status));
    pace_publisher_free(roof);
    pace_key_free(own);
    pace_key_free(other);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
