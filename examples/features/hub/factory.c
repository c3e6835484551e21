/* A factory makes the state of a handler anew when it was restarted, so nothing that was half changed is used again.
 *
 * feature: hub/factory
 * prints:
 *   a handler is made
 *   work, handled by it: 1
 *   crash
 *   a handler is made
 *   work, handled by it: 1
 *   work, handled by it: 2
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static pace_status_t make(void *data, void **handler_data) {
    (void)data;
    puts("a handler is made");
    *handler_data = calloc(1, sizeof(int));
    return PACE_OK;
}

static void handle(void *handler_data, const pace_message_t *message, int32_t *outcome) {
    int *handled = handler_data;
    if (memcmp(message->payload, "crash", message->size) == 0) {
        puts("crash");
        *handled = -1; /* half changed, and never seen again */
        *outcome = PACE_EPANIC;
        return;
    }
    printf("work, handled by it: %d\n", ++*handled);
    *outcome = 0;
}

int main(void) {
    const char *const messages[] = {"work", "crash", "work", "work"};
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_quiet(true); /* no line on the standard error stream */
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.factory = make;
    options.drop_handler = free;
    must(pace_hub_subscribe(hub, "jobs", &options, handle, NULL, NULL, &subscription));
    for (int n = 0; n < 4; n++)
        must(pace_hub_publish(hub, "jobs", messages[n], strlen(messages[n]), PACE_PUBLISH_NO_RECEIPT,
                              NULL));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
