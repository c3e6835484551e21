/* HTTP requests as data.
 *
 * feature: cq/requests
 * prints:
 *   a request with the tag 7
 *   HTTP/1.1 200 OK
 *   hello
 */
#include <arpa/inet.h>
#include <paceline/cq.h>
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

/* The other side: a client with a socket that blocks. */
static int connect_to(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
    return fd;
}

int main(void) {
    static const char type[] = "Content-Type: text/plain\r\n";
    static const char request[] = "GET /hello/you HTTP/1.0\r\n\r\n";
    char address[PACE_ADDRESS_SIZE], text[1024];
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
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int client = connect_to(address);
    send(client, request, strlen(request), 0);
    must(pace_cq_wait(cq, &entry, 1, PACE_FOREVER, &got));
    if (entry.kind == PACE_CQ_REQUEST) printf("a request with the tag %d\n", (int)entry.tag);
    pace_cq_completion_t answer = {.token = entry.token, .answer = 200};
    answer.headers = type, answer.headers_size = sizeof type - 1;
    answer.bytes = "hello", answer.size = 5;
    must(pace_cq_complete(cq, &answer, 1));

    const ssize_t size = recv(client, text, sizeof text - 1, MSG_WAITALL);
    text[size < 0 ? 0 : size] = '\0';
    const char *body = strstr(text, "\r\n\r\n");
    printf("%.*s\n%s\n", (int)strcspn(text, "\r"), text, body == NULL ? "" : body + 4);
    close(client);
    pace_http_free(http);
    pace_cq_free(cq);
    pace_pool_free(pool);
    return 0;
}
