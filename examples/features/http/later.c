/* A response that is sent later, by another thread.
 *
 * feature: http/later
 */
#include "../peer.h"
#include "serve.h"

static void answer(void *response, int32_t *outcome) {
    must(pace_response_status(response, 202));
    must(pace_response_send_as(response, "application/json", "{\"ok\":true}", 11)); /* it is gone now */
    *outcome = 0;
}

static void handle(void *pool, const pace_request_t *request, pace_response_t *response) {
    (void)request; /* lent until this returns; the response is ours */
    must(pace_pool_post(pool, PACE_LANE_NORMAL, answer, response, NULL));
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool;
    pace_http_t *http;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/slow", handle, pool, NULL));
    start(http, address);
    const char *answer = peer_ask(address, "GET /slow", "");
    CHECK(strncmp(answer, "HTTP/1.1 202 Accepted\r\n", 23) == 0 &&
          strstr(answer, "{\"ok\":true}") != NULL);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
