/* A full mailbox: the publisher is refused, or waits, or something is dropped; each loss is counted and reported.
 *
 * feature: hub/overflow
 * prints:
 *   news 0, lost before it: 0
 *   orders: PACE_EFULL
 *   news 3, lost before it: 2
 *   news 4, lost before it: 0
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t busy, go_on;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void wait_to_go_on(void) {
    sem_wait(&go_on);
    sem_post(&go_on); /* for the next */
}

static void news(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    printf("news %.*s, lost before it: %d\n", (int)message->size, (const char *)message->payload,
           (int)message->lost_before);
    sem_post(&busy);
    wait_to_go_on();
    *outcome = 0;
}

static void orders(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data, (void)message;
    wait_to_go_on();
    *outcome = 0;
}

int main(void) {
    pace_subscription_options_t options;
    pace_subscription_t drops, rejects;
    pace_receipt_t receipt = {.struct_size = sizeof receipt};
    pace_status_t status;
    pace_pool_config_t config;
    pace_pool_t *pool;
    pace_hub_t *hub;
    sem_init(&busy, 0, 0), sem_init(&go_on, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 3;
    must(pace_pool_new(&config, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.capacity = 2;
    options.overflow = PACE_OVERFLOW_DROP_OLDEST; /* or _DROP_NEWEST, _CONFLATE, _BLOCK */
    must(pace_hub_subscribe(hub, "news", &options, news, NULL, NULL, &drops));
    must(pace_hub_publish(hub, "news", "0", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    sem_wait(&busy); /* the handler is inside */
    for (const char *each = "1234"; *each; each++)
        must(pace_hub_publish(hub, "news", each, 1, PACE_PUBLISH_NO_RECEIPT, NULL));

    options.overflow = PACE_OVERFLOW_REJECT;
    must(pace_hub_subscribe(hub, "orders", &options, orders, NULL, NULL, &rejects));
    do status = pace_hub_publish(hub, "orders", "x", 1, 0, &receipt);
    while (status == PACE_OK);
    printf("orders: %s\n", pace_status_name(status)); /* no subscription has got it */

    sem_post(&go_on);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
