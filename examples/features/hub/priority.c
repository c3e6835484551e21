/* Priority of messages: in a mailbox of this kind what is more urgent comes first.
 *
 * feature: hub/priority
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool closed, opened;

static void note(void *order, const pace_message_t *message, int32_t *outcome) {
    atomic_store(&closed, true);
    WAIT_FOR(atomic_load(&opened));
    strncat(order, message->payload, message->size);
    *outcome = 0;
}

int main(void) {
    char order[8] = "";
    const int32_t priorities[] = {PACE_PRIORITY_LOW, PACE_PRIORITY_NORMAL, PACE_PRIORITY_HIGH};
    pace_subscription_options_t options;
    pace_publication_t publication;
    pace_subscription_t subscription;
    pace_key_t *key;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_subscription_options_init(&options, sizeof options));
    options.by_priority = true;
    must(pace_hub_subscribe(hub, "news", &options, note, order, NULL, &subscription));
    must(pace_hub_key(hub, "news", &key));
    must(pace_key_publish(key, "0", 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    WAIT_FOR(atomic_load(&closed)); /* the handler is inside */
    must(pace_publication_init(&publication, sizeof publication));
    for (int n = 0; n < 3; n++) {
        publication.priority = priorities[n];
        must(pace_key_publish_with(key, &publication, "lnh" + n, 1, PACE_PUBLISH_NO_RECEIPT, NULL));
    }
    atomic_store(&opened, true);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    CHECK(strcmp(order, "0hnl") == 0);
    pace_key_free(key);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
