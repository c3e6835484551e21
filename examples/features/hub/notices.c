/* The hub publishes what happens and goes wrong in it under $SYS, and keeps its latest errors for queries.
 *
 * feature: hub/notices
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>

static void notice(void *notices, const pace_message_t *message, int32_t *outcome) {
    (void)message; /* its key says what it is about, its payload is JSON */
    atomic_fetch_add((atomic_int *)notices, 1);
    *outcome = 0;
}

static void look(void *data, const pace_hub_error_t *error) {
    (void)data;
    CHECK(error->severity >= PACE_SEVERITY_WARNING && error->message.size > 0);
}

int main(void) {
    atomic_int notices = 0;
    size_t errors = 0;
    pace_error_filter_t serious = {.struct_size = sizeof serious, .severity = PACE_SEVERITY_WARNING};
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_mailbox_t *small;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_hub_subscribe(hub, "$SYS.subscription.overflow", NULL, notice, &notices, NULL,
                            &subscription));
    must(pace_subscription_options_init(&options, sizeof options));
    options.capacity = 1;
    options.overflow = PACE_OVERFLOW_DROP_OLDEST;
    must(pace_hub_mailbox(hub, "orders", &options, &small));
    for (int n = 0; n < 2; n++) /* the second drops the first */
        must(pace_hub_publish(hub, "orders", "42", 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    WAIT_FOR(atomic_load(&notices) > 0);
    must(pace_hub_errors(hub, &serious, look, NULL, &errors));
    CHECK(errors == 1);
    pace_mailbox_free(small);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
