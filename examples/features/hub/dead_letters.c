/* A message that a handler fails at is tried again, and then becomes a dead letter, which can be delivered once more.
 *
 * feature: hub/dead_letters
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int attempts;
static atomic_bool is_mended;

static void handle(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data, (void)message;
    atomic_fetch_add(&attempts, 1);
    if (atomic_load(&is_mended))
        *outcome = 0;
    else
        must(pace_message_fail("the database is down"));
}

static void look(void *data, const pace_dead_letter_t *letter) {
    (void)data;
    CHECK(letter->attempts == 3 && letter->reason == PACE_DEAD_FAILED);
    CHECK(memcmp(letter->failure.text, "the database is down", letter->failure.size) == 0);
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
    while (count == 0) must(pace_hub_dead_letters(hub, NULL, look, NULL, &count));

    atomic_store(&is_mended, true);
    must(pace_hub_redeliver(hub, NULL, &redelivered));
    CHECK(redelivered.enqueued == 1);
    WAIT_FOR(atomic_load(&attempts) == 4);
    must(pace_hub_dead_letters(hub, NULL, NULL, NULL, &count));
    CHECK(count == 0);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
