/* Limits of HTTP: what is too large or too slow is refused; keep-alive and pipelined requests share a connection.
 *
 * feature: http/limits
 * prints:
 *   POST / with 2000 bytes: 413
 *   GET /: 405
 *   GET /none: 404
 *   a head that does not end: 408
 *   two requests over one connection: both are answered
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

static void echo(void *data, const pace_request_t *request, pace_response_t *response) {
    pace_piece_t body;
    (void)data;
    must(pace_request_body(request, &body));
    must(pace_response_send(response, body.bytes, body.size));
}

/* Sends bytes, and waits for all that comes. */
static const char *send_and_read(const char *address, const char *bytes) {
    static char answer[4096];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
    send(fd, bytes, strlen(bytes), 0);
    const ssize_t size = recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    answer[size < 0 ? 0 : size] = '\0';
    close(fd);
    return answer;
}

static void print_status(const char *address, const char *what, const char *bytes) {
    printf("%s: %.3s\n", what, send_and_read(address, bytes) + strlen("HTTP/1.1 "));
}

int main(void) {
    char address[PACE_ADDRESS_SIZE], large[2100];
    pace_listener_options_t listener;
    pace_http_options_t options;
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "POST", "/", echo, NULL, NULL));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    must(pace_http_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    options.max_body = 1024;             /* also heads, targets, headers, rates */
    options.head_timeout_ns = 500000000; /* half a second */
    must(pace_http_start(http, &options));
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    snprintf(large, sizeof large, "POST / HTTP/1.0\r\nContent-Length: 2000\r\n\r\n%02000d", 0);
    print_status(address, "POST / with 2000 bytes", large);
    print_status(address, "GET /", "GET / HTTP/1.0\r\n\r\n");
    print_status(address, "GET /none", "GET /none HTTP/1.0\r\n\r\n");
    print_status(address, "a head that does not end", "POST / HTTP/1.1\r\nHost:");

    const char *both = send_and_read(
        address, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\none"
                 "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo");
    printf("two requests over one connection: %s\n",
           strstr(both, "\r\n\r\none") && strstr(both, "\r\n\r\ntwo") ? "both are answered" : both);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
