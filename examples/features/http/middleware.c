/* What surrounds routes: middleware, a fallback for what has no route, and a hook that hears how each request ended.
 *
 * feature: http/middleware
 */
#include "../peer.h"
#include "serve.h"
#include <stdatomic.h>

static atomic_int ended;

static void hello(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_text(response, "hello"));
}

static void stamp(void *data, const pace_request_t *request, pace_response_t *response,
                  pace_next_t *next) {
    uint32_t status;
    (void)data;
    must(pace_response_header(response, "X-Served-By",
                              "example")); /* or answers here, and runs nothing */
    must(pace_next_run(next, request, response, &status));
}

static void missing(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_status(response, 404));
    must(pace_response_text(response, "nothing here"));
}

static void log_end(void *data, const pace_http_end_t *end) {
    (void)data;
    CHECK(end->status == 200 || end->status == 404);
    atomic_fetch_add(&ended, 1);
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool;
    pace_http_t *http;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", hello, NULL, NULL));
    must(pace_http_around(http, stamp, NULL, NULL));
    must(pace_http_fallback(http, missing, NULL, NULL));
    must(pace_http_on_end(http, log_end, NULL, NULL));
    start(http, address);
    const char *answer = peer_ask(address, "GET /", "");
    CHECK(strstr(answer, "X-Served-By: example\r\n") != NULL && strstr(answer, "\r\n\r\nhello") != NULL);
    CHECK(strstr(peer_ask(address, "GET /none", ""), "nothing here") != NULL);
    WAIT_FOR(atomic_load(&ended) == 2);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
