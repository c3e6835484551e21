/* An access log: a line in Apache's combined format for each request, which the log's thread gives to a function.
 *
 * feature: http/access_log
 */
#include "../peer.h"
#include "serve.h"
#include <paceline/log.h>
#include <stdatomic.h>

static atomic_int lines;

static void hello(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_text(response, "hello"));
}

static void write_line(void *data, const pace_log_record_t *record) {
    (void)data;
    if (strcmp(record->event, "request.ended") != 0) return;
    CHECK(strncmp(record->message, "127.0.0.1 - - [", 15) == 0); /* or fputs() it */
    CHECK(strstr(record->message, "] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"") != NULL);
    atomic_fetch_add(&lines, 1);
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_log_config_t config;
    pace_log_t *log;
    pace_pool_t *pool;
    pace_http_t *http;
    must(pace_log_config_init(&config, sizeof config));
    config.on_record = write_line;
    must(pace_log_new(&config, &log));
    must(pace_pool_new(NULL, &pool));
    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/", hello, NULL, NULL));
    /* NULL: the pool's log. PACE_ACCESS_JSON: fields, which the file of a log has as JSON. */
    must(pace_http_access_log(http, PACE_ACCESS_COMBINED, log));
    start(http, address);
    CHECK(strstr(peer_ask(address, "GET /", ""), "hello") != NULL);
    WAIT_FOR(atomic_load(&lines) == 1);
    pace_http_free(http);
    pace_pool_free(pool);
    pace_log_free(log);
    return 0;
}
