/* Typed messages: a pair of functions makes bytes of values, and values of bytes. A handler fails at what is no value.
 *
 * feature: hub/topics
 * prints:
 *   -20 degrees
 *   62 degrees
 *   dead letters: 1
 */
#include <paceline/hub.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* The value of the topic: in a message it has 4 bytes, the lowest first. */
typedef struct degrees {
    int32_t value;
} degrees_t;

static pace_status_t degrees_publish(const pace_key_t *key, degrees_t degrees) {
    const uint32_t bits = (uint32_t)degrees.value;
    const uint8_t bytes[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                             (uint8_t)(bits >> 24)};
    return pace_key_publish(key, bytes, sizeof bytes, PACE_PUBLISH_NO_RECEIPT, NULL);
}

static bool degrees_read(const pace_message_t *message, degrees_t *degrees) {
    const uint8_t *bytes = message->payload;
    if (message->size != 4) return false;
    degrees->value = (int32_t)(bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                               (uint32_t)bytes[3] << 24);
    return true;
}

static void print(void *data, const pace_message_t *message, int32_t *outcome) {
    degrees_t degrees;
    (void)data;
    if (!degrees_read(message, &degrees)) {
        must(pace_message_fail("no degrees"));
        return;
    }
    printf("%d degrees\n", degrees.value);
    *outcome = 0;
}

int main(void) {
    size_t letters;
    pace_subscription_t subscription;
    pace_key_t *room;
    pace_pool_t *pool;
    pace_hub_t *hub;
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_hub_subscribe(hub, "temperature.room", NULL, print, NULL, NULL, &subscription));
    must(pace_hub_key(hub, "temperature.room", &room));
    must(degrees_publish(room, (degrees_t){-20}));
    must(degrees_publish(room, (degrees_t){62}));
    must(pace_key_publish(room, "warm!", 5, PACE_PUBLISH_NO_RECEIPT, NULL)); /* is a dead letter */
    must(pace_pool_shutdown(pool, PACE_FOREVER, NULL));
    must(pace_hub_dead_letters(hub, NULL, NULL, NULL, &letters));
    printf("dead letters: %d\n", (int)letters);
    pace_key_free(room);
    pace_hub_free(hub);
    pace_pool_free(pool);
    return 0;
}
