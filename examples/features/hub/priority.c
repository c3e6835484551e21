/* Priority of messages: in a mailbox of this kind what is more urgent comes first.
 *
 * feature: hub/priority
 * prints:
 *   first
 *   high
 *   normal
 *   low
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sem_t busy, go_on;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void print(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    printf("%.*s\n", (int)message->size, (const char *)message->payload);
    sem_post(&busy);
    sem_wait(&go_on);
    *outcome = 0;
}

static void publish(const pace_key_t *key, int32_t priority, const char *text) {
    pace_publication_t publication;
    must(pace_publication_init(&publication, sizeof publication));
    publication.priority = priority;
    must(pace_key_publish_with(key, &publication, text, strlen(text), PACE_PUBLISH_NO_RECEIPT, NULL));
}

int main(void) {
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_key_t *key;
    pace_pool_t *pool;
    pace_hub_t *hub;
    sem_init(&busy, 0, 0), sem_init(&go_on, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.by_priority = true;
    must(pace_hub_subscribe(hub, "news", &options, print, NULL, NULL, &subscription));
    must(pace_hub_key(hub, "news", &key));
    must(pace_key_publish(key, "first", 5, PACE_PUBLISH_NO_RECEIPT, NULL));
    sem_wait(&busy); /* the handler is inside: the others wait */
    publish(key, PACE_PRIORITY_LOW, "low");
    publish(key, PACE_PRIORITY_NORMAL, "normal");
    publish(key, PACE_PRIORITY_HIGH, "high");
    for (int n = 0; n < 4; n++) sem_post(&go_on);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_key_free(key);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
