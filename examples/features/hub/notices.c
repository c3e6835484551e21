/* The hub publishes what happens and goes wrong in it under $SYS, and keeps its latest errors for queries.
 *
 * feature: hub/notices
 * prints:
 *   notice: $SYS.subscription.overflow
 *   error: subscription.overflow
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t noticed;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* The key of a notice says what it is about, and its payload is JSON. */
static void notice(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    printf("notice: %.*s\n", (int)message->key.size, message->key.text);
    sem_post(&noticed);
    *outcome = 0;
}

static void print(void *data, const pace_hub_error_t *error) {
    (void)data;
    printf("error: %.*s\n", (int)error->event.size, error->event.text);
}

int main(void) {
    pace_error_filter_t serious = {.struct_size = sizeof serious, .severity = PACE_SEVERITY_WARNING};
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_mailbox_t *small;
    pace_pool_t *pool;
    pace_hub_t *hub;
    sem_init(&noticed, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_hub_subscribe(hub, "$SYS.subscription.overflow", NULL, notice, NULL, NULL, &subscription));
    must(pace_subscription_options_init(&options, sizeof options));
    options.capacity = 1;
    options.overflow = PACE_OVERFLOW_DROP_OLDEST;
    must(pace_hub_mailbox(hub, "orders", &options, &small));
    for (int n = 0; n < 2; n++) /* the second drops the first */
        must(pace_hub_publish(hub, "orders", "42", 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    sem_wait(&noticed);
    must(pace_hub_errors(hub, &serious, print, NULL, NULL));
    pace_mailbox_free(small);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
