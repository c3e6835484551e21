/* Publish and subscribe: keys, patterns, how many got a message, and an end after which no handler runs.
 *
 * feature: hub/subscribe
 * prints:
 *   subscriptions that got the message: 2
 *   a key with an empty part: PACE_EINVAL
 *   orders.eu: 4 messages
 *   orders.>: 5 messages
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

/* Serial, by default: one thread at a time, so this needs no lock. */
static void count(void *counter, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    ++*(int *)counter;
    *outcome = 0;
}

int main(void) {
    int exact = 0, all = 0;
    bool ended;
    pace_status_t status;
    pace_receipt_t receipt = {.struct_size = sizeof receipt};
    const pace_piece_t batch[] = {{"order", 5}, {"order", 5}, {"order", 5}};
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_key_t *key;
    pace_subscription_t one, other;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_hub_subscribe(hub, "orders.eu", NULL, count, &exact, NULL, &one));
    must(pace_hub_subscribe(hub, "orders.>", NULL, count, &all, NULL, &other)); /* or "orders.*" */

    must(pace_hub_publish(hub, "orders.eu", "order", 5, 0, &receipt));
    printf("subscriptions that got the message: %d\n", (int)receipt.enqueued);
    must(pace_hub_publish(hub, "orders.us.ny", "order", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_hub_key(hub, "orders.eu", &key)); /* looked up once, for many messages */
    must(pace_key_publish_batch(key, batch, 3, PACE_PUBLISH_NO_RECEIPT, NULL));
    status = pace_hub_publish(hub, "orders..eu", "order", 5, PACE_PUBLISH_NO_RECEIPT, NULL);
    printf("a key with an empty part: %s\n", pace_status_name(status));

    must(pace_hub_unsubscribe(hub, one, PACE_UNSUBSCRIBE_DRAIN, &ended)); /* what waits is handled */
    must(pace_hub_unsubscribe(hub, other, PACE_UNSUBSCRIBE_DRAIN, &ended));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    printf("orders.eu: %d messages\norders.>: %d messages\n", exact, all);
    pace_key_free(key);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
