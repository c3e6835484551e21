/* Filters: what a subscription does not want never comes to its mailbox.
 *
 * feature: hub/filters
 * prints:
 *   handled: long and urgent
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

static void print(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data;
    printf("handled: %.*s\n", (int)message->size, (const char *)message->payload);
    *outcome = 0;
}

static int32_t is_long(void *least, const pace_message_t *message) {
    return message->size >= *(size_t *)least;
}

int main(void) {
    size_t least = 10;
    const pace_field_t urgent = {{"kind", 4}, {"urgent", 6}};
    pace_publication_t publication;
    pace_subscription_options_t options;
    pace_subscription_t subscription;
    pace_message_filter_t *by_header, *by_test, *both;
    pace_key_t *key;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_message_filter_header("kind", "urgent", &by_header));
    must(pace_message_filter_test(is_long, &least, NULL, &by_test));
    must(pace_message_filter_and(by_header, by_test, &both)); /* also: bytes, time, rate; or, not */
    must(pace_subscription_options_init(&options, sizeof options));
    options.filter = both;
    must(pace_hub_subscribe(hub, "news", &options, print, NULL, NULL, &subscription));

    must(pace_hub_key(hub, "news", &key));
    must(pace_publication_init(&publication, sizeof publication));
    publication.headers = &urgent;
    publication.header_count = 1;
    must(pace_key_publish_with(key, &publication, "urgent", 6, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_key_publish(key, "long, but not urgent", 20, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_key_publish_with(key, &publication, "long and urgent", 15, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_key_free(key);
    pace_message_filter_free(by_header);
    pace_message_filter_free(by_test);
    pace_message_filter_free(both);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
