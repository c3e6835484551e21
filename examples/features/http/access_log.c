/* An access log: a line in Apache's combined format for each request, which the log's thread gives to a function.
 *
 * feature: http/access_log
 * prints:
 *   from 127.0.0.1: "GET / HTTP/1.0" 200 5 "-" "-"
 */
#include <arpa/inet.h>
#include <paceline/http.h>
#include <paceline/log.h>
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

static void hello(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_text(response, "hello"));
}

/* Prints the line without the time: 127.0.0.1 - - [30/Nov/2026:00:05:21 +0000] "GET / HTTP/1.0" 200 5 "-" "-" */
static void print(void *data, const pace_log_record_t *record) {
    (void)data;
    if (strcmp(record->event, "request.ended") != 0) return;
    printf("from %.9s: %s\n", record->message, strchr(record->message, '"'));
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
    pace_log_config_t config;
    pace_log_t *log;
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    must(pace_log_config_init(&config, sizeof config));
    config.on_record = print;
    must(pace_log_new(&config, &log));
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", hello, NULL, NULL));
    /* NULL: the pool's log. PACE_ACCESS_JSON: fields, which the file of a log has as JSON. */
    must(pace_http_access_log(http, PACE_ACCESS_COMBINED, log));
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    ask(address, "GET /", "");
    pace_http_free(http);
    pace_pool_free(pool);
    pace_log_free(log); /* what was logged has been printed then */
    return 0;
}
