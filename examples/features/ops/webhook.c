/* Notices by HTTP POST: what matches a pattern of the hub is sent to a URL, here of this program's own server.
 *
 * feature: ops/webhook
 */
#include "../http/serve.h"
#include <paceline/hub.h>
#include <paceline/ops.h>
#include <stdatomic.h>
#include <string.h>

static atomic_int posted;

static void take(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_piece_t body;
    (void)data;
    must(pace_request_body(request, &body));
    CHECK(body.size > 0 && *(const char *)body.bytes == '{');
    atomic_fetch_add(&posted, 1);
    must(pace_response_send(response, NULL, 0));
}

int main(void) {
    char address[PACE_ADDRESS_SIZE], url[PACE_ADDRESS_SIZE + 32];
    pace_subscription_t subscription;
    pace_webhook_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    pace_http_t *http;
    pace_hub_t *hub;
    pace_webhook_t *webhook;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "POST", "/notices", take, NULL, NULL));
    start(http, address);
    snprintf(url, sizeof url, "http://%s/notices", address);
    must(pace_hub_new(pool, NULL, &hub));
    must(pace_webhook_new(url, NULL, &webhook)); /* with retries, a time-out, headers */
    must(pace_webhook_forward(webhook, hub, "alarms.>", &subscription));
    must(pace_hub_publish(hub, "alarms.roof", "{}", 2, PACE_PUBLISH_NO_RECEIPT, NULL));
    must(pace_webhook_post(webhook, "{\"by\":\"hand\"}", 13));
    WAIT_FOR(atomic_load(&posted) == 2);
    must(pace_webhook_flush(webhook, 60000000000));
    must(pace_webhook_stats(webhook, &stats));
    CHECK(stats.delivered == 2);
    pace_webhook_free(webhook);
    pace_hub_free(hub);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
