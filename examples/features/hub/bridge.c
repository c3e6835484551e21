/* A bridge: keys of one hub reach another one over a NATS server, here of the same process. The address of a server with
 * streams (nats-server -js) is in NATS_URL; without one there is nothing to show.
 *
 * feature: hub/bridge
 * prints:
 *   the message 42 comes, and the handler fails
 *   the message 42 comes again
 *   acknowledged
 *   left to be sent: 0
 */
#include <paceline/bridge.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MINUTE UINT64_C(60000000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* The first attempt fails: the message comes again, here or in another process. */
static void handle(void *data, const pace_message_t *message, int32_t *outcome) {
    int *attempts = data; /* of one thread at a time */
    const char *what = ++*attempts == 1 ? "comes, and the handler fails" : "comes again";
    printf("the message %.*s %s\n", (int)message->size, (const char *)message->payload, what);
    *outcome = *attempts == 1 ? PACE_EFAILED : 0;
}

static pace_bridge_t *bridge_of(const pace_hub_t *hub, const char *url) {
    pace_bridge_options_t options;
    pace_bridge_t *bridge;
    must(pace_bridge_options_init(&options, sizeof options));
    options.servers = url;
    must(pace_bridge_new(hub, &options, &bridge)); /* with a login, TLS, how it connects again */
    return bridge;
}

int main(void) {
    const char *url = getenv("NATS_URL");
    int attempts = 0;
    pace_bridge_export_options_t out;
    pace_bridge_import_options_t in;
    pace_bridge_import_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    pace_hub_t *here, *there;
    pace_subscription_t subscription;
    pace_pending_store_t *pending;
    uint64_t left;
    if (url == NULL) {
        puts("There is no NATS_URL, the address of a NATS server.");
        return 0;
    }
    must(pace_pool_new(NULL, &pool));
    must(pace_hub_new(pool, NULL, &here));
    must(pace_hub_new(pool, NULL, &there));
    pace_bridge_t *from = bridge_of(here, url), *to = bridge_of(there, url);

    /* At least once: the server stores what is published, and it is acknowledged when handlers have dealt with it. */
    must(pace_bridge_export_options_init(&out, sizeof out));
    out.stream = "EXAMPLE_C";
    must(pace_bridge_export(from, "example.c.>", &out));
    must(pace_bridge_open(from));
    must(pace_bridge_import_options_init(&in, sizeof in));
    in.stream = "EXAMPLE_C";
    in.durable = "billing"; /* processes with this name take turns */
    must(pace_bridge_import(to, "example.c.>", &in));
    must(pace_hub_subscribe(there, "example.c.*", NULL, handle, &attempts, NULL, &subscription));
    must(pace_bridge_open(to));

    must(pace_bridge_publish(from, "example.c.order", NULL, "42", 2, 0, &pending));
    must(pace_pending_store_wait(pending, MINUTE)); /* it is stored now */
    pace_pending_store_free(pending);
    while (stats.acknowledged == 0 && usleep(1000) == 0) must(pace_bridge_import_stats(to, 0, &stats));
    puts("acknowledged");
    must(pace_bridge_close(from, MINUTE, &left));
    printf("left to be sent: %d\n", (int)left);
    pace_bridge_free(to);
    pace_bridge_free(from);
    pace_hub_free(there);
    pace_hub_free(here);
    pace_pool_free(pool);
    return 0;
}
