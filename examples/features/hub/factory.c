/* A factory makes the state of a handler anew when it was restarted, so nothing that was half changed is used again.
 *
 * feature: hub/factory
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int made, dropped, handled;

static pace_status_t make(void *data, void **handler_data) {
    (void)data;
    *handler_data = calloc(1, sizeof(int));
    atomic_fetch_add(&made, 1);
    return PACE_OK;
}

static void drop(void *state) {
    free(state);
    atomic_fetch_add(&dropped, 1);
}

static void handle(void *state, const pace_message_t *message, int32_t *outcome) {
    if (memcmp(message->payload, "crash", message->size) == 0) {
        *(int *)state = -1; /* half changed, and never seen again */
        *outcome = PACE_EPANIC;
        return;
    }
    CHECK(*(int *)state >= 0);
    ++*(int *)state;
    atomic_fetch_add(&handled, 1);
    *outcome = 0;
}

int main(void) {
    const char *const messages[] = {"work", "crash", "work", "work"};
    bool ended;
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_quiet(true); /* no line on the standard error stream */
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.factory = make;
    options.drop_handler = drop;
    must(pace_hub_subscribe(hub, "jobs", &options, handle, NULL, NULL, &subscription));
    for (int n = 0; n < 4; n++)
        must(pace_hub_publish(hub, "jobs", messages[n], strlen(messages[n]), PACE_PUBLISH_NO_RECEIPT,
                              NULL));
    WAIT_FOR(atomic_load(&handled) == 3);
    must(pace_hub_unsubscribe(hub, subscription, PACE_UNSUBSCRIBE_SYNC, &ended));
    WAIT_FOR(atomic_load(&dropped) == 2);
    CHECK(atomic_load(&made) == 2);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
