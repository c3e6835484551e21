/* Bodies in pieces: an answer that is produced as it leaves, and an upload that is taken as it comes.
 *
 * feature: http/streaming
 * prints:
 *   download: [piece][piece][piece]
 *   upload: 5 bytes
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

/* Called whenever there is room; the state is the number of pieces. */
static int32_t produce(void *pieces, pace_body_t *body) {
    must(pace_body_write(body, "[piece]", 7, NULL));
    return ++*(int *)pieces < 3 ? PACE_FLOW_AGAIN : PACE_FLOW_DONE;
}

static void download(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_body_t *body;
    must(pace_response_stream(response, PACE_LENGTH_UNKNOWN, &body)); /* chunked, in HTTP/1.1 */
    must(pace_body_pump(body, produce, calloc(1, sizeof(int)), free));
}

/* What becomes of one upload. */
typedef struct upload {
    pace_response_t *response;
    size_t size;
} upload_t;

static void begin(void *data, const pace_request_t *request, pace_response_t *response, void **body) {
    (void)data, (void)request;
    upload_t *upload = calloc(1, sizeof *upload);
    upload->response = response;
    *body = upload;
}

static size_t take(void *body, const void *bytes, size_t size) {
    (void)bytes;
    ((upload_t *)body)->size += size;
    return size;
}

static void end(void *body, bool is_whole) {
    upload_t *upload = body;
    char text[32];
    snprintf(text, sizeof text, "%zu bytes%s", upload->size, is_whole ? "" : ", and no end");
    must(pace_response_text(upload->response, text));
    free(upload);
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
    pace_request_body_hooks_t hooks;
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", download, NULL, NULL));
    must(pace_request_body_hooks_init(&hooks, sizeof hooks));
    hooks.begin = begin;
    hooks.data = take;
    hooks.end = end;
    must(pace_http_route_streaming(http, "POST", "/", &hooks, NULL, NULL));
    must(pace_http_serve(http, "127.0.0.1:0")); /* a free port */
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    printf("download: %s\n", strstr(ask(address, "GET /", ""), "\r\n\r\n") + 4);
    printf("upload: %s\n", strstr(ask(address, "POST /", "hello"), "\r\n\r\n") + 4);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
