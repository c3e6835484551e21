/* Bodies in pieces: an answer that is produced as it leaves, and an upload that is taken as it comes.
 *
 * feature: http/streaming
 */
#include "../peer.h"
#include "serve.h"

/* Called whenever there is room; the state is the number of pieces. */
static int32_t produce(void *pieces, pace_body_t *body) {
    must(pace_body_write(body, "piece ", 6, NULL));
    return ++*(int *)pieces < 3 ? PACE_FLOW_AGAIN : PACE_FLOW_DONE;
}

static void download(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    pace_body_t *body;
    must(pace_response_stream(response, PACE_LENGTH_UNKNOWN, &body)); /* chunked */
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
    snprintf(text, sizeof text, "%zu bytes", upload->size);
    CHECK(is_whole);
    must(pace_response_text(upload->response, text));
    free(upload);
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_request_body_hooks_t hooks;
    pace_pool_t *pool;
    pace_http_t *http;
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", download, NULL, NULL));
    must(pace_request_body_hooks_init(&hooks, sizeof hooks));
    hooks.begin = begin;
    hooks.data = take;
    hooks.end = end;
    must(pace_http_route_streaming(http, "POST", "/", &hooks, NULL, NULL));
    start(http, address);
    CHECK(strstr(peer_ask(address, "GET /", ""), "6\r\npiece \r\n6\r\npiece \r\n6\r\npiece \r\n0\r\n") !=
          NULL);
    CHECK(strstr(peer_ask(address, "POST /", "hello"), "5 bytes") != NULL);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
