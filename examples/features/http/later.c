/* A response that is sent later, by another thread.
 *
 * feature: http/later
 * prints:
 *   the handler returns without an answer
 *   the task answers
 *   202 {"ok":true}
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

static void answer(void *response, int32_t *outcome) {
    puts("the task answers");
    must(pace_response_status(response, 202));
    must(pace_response_send_as(response, "application/json", "{\"ok\":true}", 11)); /* it is gone now */
    *outcome = 0;
}

static void handle(void *pool, const pace_request_t *request, pace_response_t *response) {
    (void)request; /* lent until this returns; the response is ours */
    puts("the handler returns without an answer");
    must(pace_pool_post(pool, PACE_LANE_NORMAL, answer, response, NULL));
}

/* The other side: sends a request, and waits for the whole answer. */
static const char *ask(const char *address, const char *what, const char *body) {
    static char answer[4096];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
    dprintf(fd, "%s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n%s", what, strlen(body), body);
    const ssize_t size = recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    answer[size < 0 ? 0 : size] = '\0';
    close(fd);
    return answer;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/slow", handle, pool, NULL));
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    const char *text = ask(address, "GET /slow", "");
    printf("%.3s %s\n", text + strlen("HTTP/1.1 "), strstr(text, "\r\n\r\n") + 4);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
