/* Limits of HTTP: what is too large or too slow is refused; keep-alive and pipelined requests share a connection.
 *
 * feature: http/limits
 */
#include "../peer.h"
#include "serve.h"

static void echo(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_piece_t body;
    (void)data;
    must(pace_request_body(request, &body));
    must(pace_response_send(response, body.bytes, body.size));
}

int main(void) {
    char address[PACE_ADDRESS_SIZE], large[2048];
    pace_http_options_t options;
    pace_http_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    pace_http_t *http, *strict;
    pace_server_t *server;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "POST", "/", echo, NULL, NULL));
    must(pace_http_options_init(&options, sizeof options));
    options.max_body = 1024; /* also heads, targets, headers, rates */
    start_with(http, options, address);
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    CHECK(strncmp(peer_ask(address, "POST /", large), "HTTP/1.1 413 ", 13) == 0);
    CHECK(strncmp(peer_ask(address, "GET /", ""), "HTTP/1.1 405 ", 13) == 0);
    CHECK(strncmp(peer_ask(address, "GET /none", ""), "HTTP/1.1 404 ", 13) == 0);

    int peer = peer_connect(address);
    peer_send(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none"
                    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo");
    const char *both = peer_read_all(peer);
    CHECK(strstr(both, "one") != NULL && strstr(strstr(both, "one"), "two") != NULL);
    close(peer);

    must(pace_http_new(pool, &strict));
    options.head_timeout_ns = 20000000;
    start_with(strict, options, address);
    peer = peer_connect(address);
    peer_send(peer, "POST / HTTP/1.1\r\nHost:"); /* and no more: such clients are not waited for */
    CHECK(strncmp(peer_read_all(peer), "HTTP/1.1 408 ", 13) == 0);
    close(peer);
    must(pace_http_server(http, &server));
    must(pace_server_drain(server, PACE_FOREVER, NULL)); /* the counters are exact at rest */
    must(pace_http_stats(http, &stats));
    CHECK(stats.refused_body_too_large == 1 && stats.answered_successful == 2);
    pace_http_free(http);
    pace_http_free(strict);
    pace_pool_free(pool);
    return 0;
}
