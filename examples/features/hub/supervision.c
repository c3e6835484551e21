/* Supervision: a handler that crashes is started anew and goes on with the next message; one that crashes too often is
 * suspended for a while.
 *
 * feature: hub/supervision
 * prints:
 *   crash
 *   crash
 *   crash
 *   suspended
 *   resumed
 *   work
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MINUTE UINT64_C(60000000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void handle(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    printf("%.*s\n", (int)message->size, (const char *)message->payload);
    const bool crash = memcmp(message->payload, "crash", message->size) == 0;
    *outcome = crash ? PACE_EPANIC : 0; /* PACE_EFAILED would only be a message that fails */
}

/* Where the handler has a state, it is made anew here. */
static void start_anew(void *data, pace_text_t failure, uint64_t restarts) {
    (void)data, (void)failure, (void)restarts;
}

int main(void) {
    bool resumed;
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
    options.within_ns = MINUTE;
    options.suspension_ns = options.longest_suspension_ns = 60 * MINUTE;
    options.on_restart = start_anew;
    must(pace_hub_subscribe(hub, "jobs", &options, handle, NULL, NULL, &subscription));
    for (int n = 0; n < 3; n++)
        must(pace_hub_publish(hub, "jobs", "crash", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    while (!stats.suspended && usleep(1000) == 0) {
        stats.struct_size = sizeof stats;
        must(pace_subscription_stats(hub, subscription, &stats));
    }
    puts("suspended");
    must(pace_hub_resume(hub, subscription, &resumed)); /* or after the suspension, by itself */
    puts(resumed ? "resumed" : "not resumed");
    must(pace_hub_publish(hub, "jobs", "work", 4, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
