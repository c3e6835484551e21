/* Request and reply.
 *
 * feature: hub/requests
 */
#include "../check.h"
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdatomic.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static void answer(void *hub, const pace_message_t *request, int32_t *outcome) {
    must(pace_hub_reply(*(pace_hub_t **)hub, request, "pong", 4, NULL));
    *outcome = 0;
}

static void replied(void *came, pace_status_t status, const pace_message_t *reply) {
    CHECK(status == PACE_OK && reply->size == 4);
    atomic_store((atomic_bool *)came, true);
}

int main(void) {
    atomic_bool came = false;
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_key_t *ping, *nobody;
    pace_subscription_t subscription;
    pace_message_t reply;
    pace_asked_t asked;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_hub_subscribe(hub, "ping", NULL, answer, &hub, NULL, &subscription));
    must(pace_hub_key(hub, "ping", &ping));
    must(pace_hub_key(hub, "nobody", &nobody));

    must(pace_key_request(ping, NULL, "?", 1, 60 * SECOND, &reply)); /* waits */
    CHECK(reply.size == 4 && memcmp(reply.payload, "pong", 4) == 0);
    must(pace_key_request_async(ping, NULL, "?", 1, 60 * SECOND, replied, &came, NULL, &asked));
    WAIT_FOR(atomic_load(&came));
    CHECK(pace_key_request(nobody, NULL, "?", 1, 60 * SECOND, &reply) == PACE_ENORESPONDERS);
    pace_key_free(ping);
    pace_key_free(nobody);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
