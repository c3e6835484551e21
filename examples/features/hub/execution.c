/* Where a handler runs: serially on the pool, in the publisher's thread, on several threads, or in one order with others.
 *
 * feature: hub/execution
 * prints:
 *   inline: in the publisher's thread
 *   concurrent: two messages at once
 *   strand: ababab
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t both;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void in_publisher(void *publisher, const pace_message_t *message, int32_t *outcome) {
    (void)message;
    const bool same = pthread_equal(*(pthread_t *)publisher, pthread_self());
    printf("inline: in %s thread\n", same ? "the publisher's" : "another");
    *outcome = 0;
}

/* Each waits until the other is here, too. */
static void meet(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data, (void)message;
    if (pthread_barrier_wait(&both) != 0) puts("concurrent: two messages at once");
    *outcome = 0;
}

/* Of several subscriptions, but all of the hub's one strand: one at a time, in one order over all keys. */
static void note(void *order, const pace_message_t *message, int32_t *outcome) {
    strncat(order, message->payload, message->size);
    *outcome = 0;
}

int main(void) {
    char order[8] = "";
    pthread_t publisher = pthread_self();
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pthread_barrier_init(&both, NULL, 2);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    must(pace_pool_new(&config, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options)); /* PACE_EXECUTION_SERIAL */

    options.execution = PACE_EXECUTION_INLINE;
    must(pace_hub_subscribe(hub, "inline", &options, in_publisher, &publisher, NULL, &subscription));
    must(pace_hub_publish(hub, "inline", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));

    options.execution = PACE_EXECUTION_CONCURRENT;
    options.threads = 2;
    must(pace_hub_subscribe(hub, "concurrent", &options, meet, NULL, NULL, &subscription));
    must(pace_hub_publish(hub, "concurrent", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_hub_publish(hub, "concurrent", "", 0, PACE_PUBLISH_NO_RECEIPT, NULL));

    options.execution = PACE_EXECUTION_STRAND;
    options.threads = 1;
    must(pace_hub_subscribe(hub, "strand.a", &options, note, order, NULL, &subscription));
    must(pace_hub_subscribe(hub, "strand.b", &options, note, order, NULL, &subscription));
    for (int n = 0; n < 3; n++) {
        must(pace_hub_publish(hub, "strand.a", "a", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
        must(pace_hub_publish(hub, "strand.b", "b", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    printf("strand: %s\n", order);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
