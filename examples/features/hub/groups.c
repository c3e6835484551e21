/* A group: each message goes to one of its members.
 *
 * feature: hub/groups
 * prints:
 *   in turn: 5 and 5
 *   by key: one member has got all 10, the other none
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

static void count(void *counter, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    ++*(int *)counter;
    *outcome = 0;
}

int main(void) {
    int first = 0, second = 0, third = 0, fourth = 0;
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.group = "workers";
    options.balance = PACE_BALANCE_ROUND_ROBIN; /* or _LEAST_LOADED, _RANDOM, _BY_KEY, _BY_HEADER */
    must(pace_hub_subscribe(hub, "jobs", &options, count, &first, NULL, &subscription));
    must(pace_hub_subscribe(hub, "jobs", &options, count, &second, NULL, &subscription));
    for (int n = 0; n < 10; n++)
        must(pace_hub_publish(hub, "jobs", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));

    options.group = "shops";
    options.balance = PACE_BALANCE_BY_KEY; /* all messages of a key go to the same member */
    must(pace_hub_subscribe(hub, "orders.*", &options, count, &third, NULL, &subscription));
    must(pace_hub_subscribe(hub, "orders.*", &options, count, &fourth, NULL, &subscription));
    for (int n = 0; n < 10; n++)
        must(pace_hub_publish(hub, "orders.one", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    printf("in turn: %d and %d\n", first, second);
    printf("by key: one member has got all %d, the other %s\n", third + fourth,
           third == 0 || fourth == 0 ? "none" : "some");
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
