/* A change of protocol: after a request the connection has hooks of its own.
 *
 * feature: http/upgrade
 * prints:
 *   asked for: echo
 *   HTTP/1.1 101
 *   the new protocol: hello
 */
#include <arpa/inet.h>
#include <paceline/http.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

static void upgrade(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_conn_hooks_t hooks;
    pace_text_t protocol;
    (void)data;
    must(pace_request_upgrade(request, &protocol));
    printf("asked for: %.*s\n", (int)protocol.size, protocol.text);
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_response_upgrade(response, "echo", &hooks));
}

/* The other side: a client with a socket that blocks. */
static int connect_to(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
    return fd;
}

int main(void) {
    static const char request[] =
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    char address[PACE_ADDRESS_SIZE], text[1024] = "";
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", upgrade, NULL, NULL));
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    int client = connect_to(address);
    send(client, request, strlen(request), 0);
    for (size_t size = 0; strstr(text, "\r\n\r\n") == NULL && size < sizeof text - 1; size++)
        if (recv(client, text + size, 1, 0) != 1) return EXIT_FAILURE;
    printf("%.12s\n", text);
    send(client, "hello", 5, 0);
    printf("the new protocol: %.*s\n", (int)recv(client, text, 5, MSG_WAITALL), text);
    close(client);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
