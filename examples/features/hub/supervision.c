/* Supervision: a handler that crashes is started anew and goes on with the next message; one that crashes too often is
 * suspended for a while.
 *
 * feature: hub/supervision
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <string.h>

/* The state of the handler, which a restart makes anew. */
typedef struct state {
    int handled, restarts;
} state_t;

static void handle(void *data, const pace_message_t *message, int32_t *outcome) {
    state_t *state = data;
    if (message->size == 5 && memcmp(message->payload, "crash", 5) == 0) {
        *outcome = PACE_EPANIC; /* this is a crash, and not only a message that fails */
        return;
    }
    state->handled++;
    *outcome = 0;
}

static void start_anew(void *data, pace_text_t failure, uint64_t count) {
    state_t *state = data;
    (void)failure;
    state->handled = 0;
    state->restarts = (int)count;
}

int main(void) {
    state_t state = {0};
    bool resumed, suspended = false;
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_subscription_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_quiet(true); /* no line on the standard error stream */
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.restarts = 2; /* a third crash within a minute suspends it */
    options.within_ns = 60000000000;
    options.suspension_ns = options.longest_suspension_ns = 3600000000000;
    options.on_restart = start_anew;
    must(pace_hub_subscribe(hub, "jobs", &options, handle, &state, NULL, &subscription));
    for (int n = 0; n < 3; n++)
        must(pace_hub_publish(hub, "jobs", "crash", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    while (!suspended) {
        stats.struct_size = sizeof stats;
        must(pace_subscription_stats(hub, subscription, &stats));
        suspended = stats.suspended;
    }
    must(pace_hub_resume(hub, subscription, &resumed)); /* or after the suspension, by itself */
    CHECK(resumed);
    must(pace_hub_publish(hub, "jobs", "work", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    CHECK(state.handled == 1 && state.restarts >= 2);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
