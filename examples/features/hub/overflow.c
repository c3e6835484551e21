/* A full mailbox: the publisher is refused, or waits, or something is dropped; each loss is counted and told.
 *
 * feature: hub/overflow
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool closed, opened;

/* What the handler has seen; it runs on one thread at a time. */
typedef struct seen {
    uint64_t lost;
    char last[2];
} seen_t;

static void slow(void *data, const pace_message_t *message, int32_t *outcome) {
    seen_t *seen = data;
    atomic_store(&closed, true);
    WAIT_FOR(atomic_load(&opened));
    seen->lost += message->lost_before;
    memcpy(seen->last, message->payload, 1);
    *outcome = 0;
}

int main(void) {
    seen_t seen = {0}, strict = {0};
    pace_subscription_options_t options;
    pace_subscription_t drops, rejects;
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    pace_receipt_t receipt = {.struct_size = sizeof receipt};
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.capacity = 2;
    options.overflow = PACE_OVERFLOW_DROP_OLDEST; /* or _DROP_NEWEST, _CONFLATE, _BLOCK */
    must(pace_hub_subscribe(hub, "news", &options, slow, &seen, NULL, &drops));
    must(pace_hub_publish(hub, "news", "0", 1, 0, &receipt));
    WAIT_FOR(atomic_load(&closed)); /* the handler is inside */
    for (const char *each = "1234"; *each; each++)
        must(pace_hub_publish(hub, "news", each, 1, PACE_PUBLISH_NO_RECEIPT, NULL));

    options.overflow = PACE_OVERFLOW_REJECT;
    must(pace_hub_subscribe(hub, "orders", &options, slow, &strict, NULL, &rejects));
    uint64_t rejected = 0;
    for (int n = 0; n < 4; n++) {
        receipt.struct_size = sizeof receipt;
        (void)pace_hub_publish(hub, "orders", "x", 1, 0, &receipt); /* PACE_EFULL: nobody has got it */
        rejected += receipt.rejected;
    }
    CHECK(rejected >= 1);

    atomic_store(&opened, true);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    must(pace_subscription_stats(hub, drops, &stats));
    CHECK(stats.dropped == 2 && seen.lost == 2 && seen.last[0] == '4');
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
