/* HTTP requests as data.
 *
 * feature: cq/requests
 */
#include "../peer.h"
#include <paceline/cq.h>
#include <paceline/http.h>
#include <paceline/pool.h>

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    static const char type[] = "Content-Type: text/plain\r\n";
    pace_listener_options_t listener;
    pace_http_options_t options;
    pace_http_t *http;
    pace_server_t *server;
    pace_pool_t *pool;
    pace_cq_t *cq;
    pace_cq_entry_t entry;
    size_t got;
    must(pace_pool_new(NULL, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_http_new(pool, &http));
    must(pace_cq_route(cq, http, "GET", "/hello/{name}", false, 7));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0";
    must(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_http_start(http, &options));
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int peer = peer_connect(address);
    peer_send(peer, "GET /hello/you HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    CHECK(got == 1 && entry.kind == PACE_CQ_REQUEST && entry.tag == 7);
    pace_cq_completion_t answer = {.token = entry.token, .answer = 200};
    answer.headers = type, answer.headers_size = sizeof type - 1;
    answer.bytes = "hello", answer.size = 5;
    must(pace_cq_complete(cq, &answer, 1));
    const char *text = peer_read_all(peer);
    CHECK(strncmp(text, "HTTP/1.1 200 OK\r\n", 17) == 0 && strstr(text, "\r\n\r\nhello") != NULL);
    close(peer);
    pace_http_free(http);
    pace_cq_free(cq);
    pace_pool_free(pool);
    return 0;
}
