/* A change of protocol: after a request the connection has hooks of its own.
 *
 * feature: http/upgrade
 */
#include "../peer.h"
#include "serve.h"

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

static void upgrade(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_conn_hooks_t hooks;
    pace_text_t protocol;
    (void)data;
    must(pace_request_upgrade(request, &protocol)); /* what the peer asks for */
    CHECK(protocol.size == 4 && memcmp(protocol.text, "echo", 4) == 0);
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_response_upgrade(response, "echo", &hooks));
}

int main(void) {
    static const char head[] = "HTTP/1.1 101 ";
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool;
    pace_http_t *http;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", upgrade, NULL, NULL));
    start(http, address);
    int peer = peer_connect(address);
    peer_send(peer, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    CHECK(strcmp(peer_read(peer, strlen(head)), head) == 0);
    char end[5] = "";
    while (strcmp(end, "\r\n\r\n") != 0) { /* the rest of the head */
        memmove(end, end + 1, 3);
        end[3] = *peer_read(peer, 1);
    }
    peer_send(peer, "hello");
    CHECK(strcmp(peer_read(peer, 5), "hello") == 0);
    close(peer);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
