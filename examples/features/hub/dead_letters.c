/* A message that a handler fails at is tried again, and then becomes a dead letter, which can be delivered once more.
 *
 * feature: hub/dead_letters
 * prints:
 *   attempt 1
 *   attempt 2
 *   attempt 3
 *   dead letter 42: the database is down
 *   delivered again: 42
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_bool is_mended;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void handle(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    if (atomic_load(&is_mended)) {
        printf("delivered again: %.*s\n", (int)message->size, (const char *)message->payload);
        *outcome = 0;
    } else {
        printf("attempt %d\n", (int)message->attempt);
        must(pace_message_fail("the database is down"));
    }
}

static void print(void *data, const pace_dead_letter_t *letter) {
    (void)data;
    printf("dead letter %.*s: %.*s\n", (int)letter->message.size, (const char *)letter->message.payload,
           (int)letter->failure.size, letter->failure.text);
}

int main(void) {
    size_t count = 0;
    pace_redelivered_t redelivered = {.struct_size = sizeof redelivered};
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.retry = (pace_retry_t){.shape = PACE_RETRY_FIXED, .retries = 2, .first_ns = 1000000};
    must(pace_hub_subscribe(hub, "orders", &options, handle, NULL, NULL, &subscription));
    must(pace_hub_publish(hub, "orders", "42", 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    while (count == 0) must(pace_hub_dead_letters(hub, NULL, print, NULL, &count));

    atomic_store(&is_mended, true);
    must(pace_hub_redeliver(hub, NULL, &redelivered));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
