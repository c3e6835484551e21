/* Request and reply.
 *
 * feature: hub/requests
 * prints:
 *   the reply: pong
 *   the reply, without waiting for it: pong
 *   a key without a subscription: PACE_ENORESPONDERS
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND UINT64_C(1000000000)

static sem_t came;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void answer(void *hub, const pace_message_t *request, int32_t *outcome) {
    must(pace_hub_reply(*(pace_hub_t **)hub, request, "pong", 4, NULL));
    *outcome = 0;
}

static void replied(void *data, pace_status_t status, const pace_message_t *reply) {
    (void)data;
    must(status);
    printf("the reply, without waiting for it: %.*s\n", (int)reply->size, (const char *)reply->payload);
    sem_post(&came);
}

int main(void) {
    pace_pool_t *pool;
    pace_hub_t *hub;
    pace_key_t *ping, *nobody;
    pace_subscription_t subscription;
    pace_message_t reply;
    pace_asked_t asked;
    pace_status_t status;
    sem_init(&came, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_hub_subscribe(hub, "ping", NULL, answer, &hub, NULL, &subscription));
    must(pace_hub_key(hub, "ping", &ping));
    must(pace_hub_key(hub, "nobody", &nobody));

    must(pace_key_request(ping, NULL, "?", 1, 60 * SECOND, &reply)); /* waits */
    printf("the reply: %.*s\n", (int)reply.size, (const char *)reply.payload);
    must(pace_key_request_async(ping, NULL, "?", 1, 60 * SECOND, replied, NULL, NULL, &asked));
    sem_wait(&came);
    status = pace_key_request(nobody, NULL, "?", 1, 60 * SECOND, &reply);
    printf("a key without a subscription: %s\n", pace_status_name(status));
    pace_key_free(ping);
    pace_key_free(nobody);
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
