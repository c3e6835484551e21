#include <paceline.h>
#include <stdio.h>
#include <unistd.h>

static void mail(void *text, int32_t *outcome) { *outcome = puts(text) < 0; }
static void order(void *pool, const pace_request_t *request, pace_response_t *response) {
    sleep(1); /* a slow database: no other request waits for it */
    if (pace_pool_post(pool, PACE_LANE_NORMAL, mail, "a job: send a mail", NULL) == PACE_OK)
        pace_response_send_as(response, "application/json", "\"ordered\"", 9);
}
int main(void) {
    pace_pool_t *pool;
    pace_http_t *http;
    pace_signals_t *end;
    if (pace_pool_new(NULL, &pool) || pace_http_new(pool, &http) ||
        pace_http_route(http, "GET", "/order", order, pool, NULL) ||
        pace_http_serve(http, "127.0.0.1:8080") || pace_signals_shut_down(pool, PACE_SEC(30), &end))
        return fprintf(stderr, "%s\n", pace_last_error()), 1;
    return puts("http://127.0.0.1:8080/order is served") < 0 || pace_signals_wait(end, NULL);
}
