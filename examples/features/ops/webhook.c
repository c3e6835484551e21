/* Notices by HTTP POST: what matches a pattern of the hub is sent to a URL, here of this program's own server.
 *
 * feature: ops/webhook
 * prints:
 *   posted: {"alarm":"fire"}
 *   posted: {"by":"hand"}
 *   delivered: 2
 */
#include <paceline/http.h>
#include <paceline/hub.h>
#include <paceline/ops.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t posted;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void take(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_piece_t body;
    (void)data;
    must(pace_request_body(request, &body));
    printf("posted: %.*s\n", (int)body.size, (const char *)body.bytes);
    must(pace_response_send(response, NULL, 0));
    sem_post(&posted);
}

int main(void) {
    char address[PACE_ADDRESS_SIZE], url[PACE_ADDRESS_SIZE + 32];
    pace_subscription_t subscription;
    pace_webhook_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    pace_hub_t *hub;
    pace_webhook_t *webhook;
    sem_init(&posted, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "POST", "/notices", take, NULL, NULL));
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    snprintf(url, sizeof url, "http://%s/notices", address);

    must(pace_hub_new(pool, NULL, &hub));
    must(pace_webhook_new(url, NULL, &webhook)); /* with retries, a time-out, headers */
    must(pace_webhook_forward(webhook, hub, "alarms.>", &subscription));
    must(
        pace_hub_publish(hub, "alarms.roof", "{\"alarm\":\"fire\"}", 16, PACE_PUBLISH_NO_RECEIPT, NULL));
    sem_wait(&posted);
    must(pace_webhook_post(webhook, "{\"by\":\"hand\"}", 13));
    sem_wait(&posted);
    must(pace_webhook_flush(webhook, 60000000000));
    must(pace_webhook_stats(webhook, &stats));
    printf("delivered: %d\n", (int)stats.delivered);
    pace_webhook_free(webhook);
    pace_hub_free(hub);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
