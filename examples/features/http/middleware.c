/* What surrounds routes: middleware, a fallback for what has no route, and a hook that hears how each request ended.
 *
 * feature: http/middleware
 * prints:
 *   the middleware runs
 *   ended with 200
 *   hello
 *   the middleware runs
 *   ended with 404
 *   nothing here
 */
#include <arpa/inet.h>
#include <paceline/http.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t ended;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void hello(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_text(response, "hello"));
}

static void around(void *data, const pace_request_t *request, pace_response_t *response,
                   pace_next_t *next) {
    uint32_t status;
    (void)data;
    puts("the middleware runs");
    must(pace_response_header(response, "X-Served-By", "example"));
    must(pace_next_run(next, request, response, &status)); /* or answers here, and runs nothing */
}

static void missing(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_status(response, 404));
    must(pace_response_text(response, "nothing here"));
}

static void on_end(void *data, const pace_http_end_t *end) {
    (void)data;
    printf("ended with %d\n", (int)end->status);
    sem_post(&ended);
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
    sem_init(&ended, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", hello, NULL, NULL));
    must(pace_http_around(http, around, NULL, NULL));
    must(pace_http_fallback(http, missing, NULL, NULL));
    must(pace_http_on_end(http, on_end, NULL, NULL));
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    const char *const requests[] = {"GET /", "GET /none"};
    for (int n = 0; n < 2; n++) {
        const char *answer = ask(address, requests[n], "");
        sem_wait(&ended);
        puts(strstr(answer, "\r\n\r\n") + 4);
    }
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
