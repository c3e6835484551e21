/* A service to look at: an HTTP server, a worker pool and a hub on one pool, a handler that sometimes blocks its thread, a
 * subscription that lags, and the live page that shows all of it.
 *
 *     cc examples/c/observe.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o observe
 *
 * Then open the page in a browser. SIGINT and SIGTERM end it.
 */
#include <paceline/http.h>
#include <paceline/ops.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

/* Ends the program with the reason unless a call has worked. */
static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void hello(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    must(pace_response_send(response, "hello\n", 6));
}

/* What a handler should not do: others of its thread wait meanwhile, until the watch steps in. */
static void slow(void *data, const pace_request_t *request, pace_response_t *response) {
    (void)data, (void)request;
    usleep(3000000);
    pace_response_send(response, "at last\n", 8);
}

static void resize(void *data, pace_attempt_t *attempt, int32_t *outcome) {
    (void)data, (void)attempt;
    usleep(2000);
    *outcome = 0;
}

static void quick(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data, (void)message;
    *outcome = 0;
}

/* 66 orders a second, of the 100 that come: it lags, until the oldest are dropped. */
static void slow_order(void *data, const pace_message_t *message, int32_t *outcome) {
    (void)data, (void)message;
    usleep(15000);
    *outcome = 0;
}

typedef struct work {
    pace_workers_t *workers;
    pace_task_type_t *resize;
    pace_hub_t *hub;
} work_t;

static int32_t bring(void *data, pace_handle_t handle) {
    work_t *work = data;
    (void)handle;
    pace_workers_submit(work->workers, work->resize, resize, NULL, NULL, NULL, NULL);
    pace_hub_publish(work->hub, "orders.new", "one more", 8, PACE_PUBLISH_NO_RECEIPT, NULL);
    return PACE_FLOW_WAIT;
}

/* The handler that sometimes blocks: 2 s of 12. */
static int32_t report(void *data, pace_handle_t handle) {
    (void)data, (void)handle;
    usleep(2000000);
    return PACE_FLOW_WAIT;
}

int main(int argc, char **argv) {
    char page[PACE_ADDRESS_SIZE], address[PACE_ADDRESS_SIZE];
    pace_pool_config_t config;
    pace_http_options_t http_options;
    pace_listener_options_t listener;
    pace_subscription_options_t lagging;
    pace_subscription_t subscription;
    pace_handle_t handle;
    pace_pool_t *pool;
    pace_http_t *http;
    pace_server_t *server;
    pace_ops_t *ops;
    work_t work;
    sigset_t signals;
    int caught;

    /* Before the first thread is made, which inherits it. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    must(pace_pool_config_init(&config, sizeof config));
    config.name = "observe";
    config.threads = 4;
    must(pace_pool_new(&config, &pool));

    must(pace_http_new(pool, &http));
    must(pace_http_route(http, "GET", "/hello", hello, NULL, NULL));
    must(pace_http_route(http, "GET", "/slow", slow, NULL, NULL));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = argc > 2 ? argv[2] : "127.0.0.1:8080";
    must(pace_http_options_init(&http_options, sizeof http_options));
    http_options.listeners = &listener;
    http_options.listener_count = 1;
    must(pace_http_start(http, &http_options));
    must(pace_http_server(http, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    must(pace_workers_new(pool, NULL, &work.workers));
    must(pace_task_type_new(work.workers, "resize", NULL, &work.resize));
    must(pace_hub_new(pool, NULL, &work.hub));
    must(pace_hub_subscribe(work.hub, "orders.>", NULL, quick, NULL, NULL, &subscription));
    must(pace_subscription_options_init(&lagging, sizeof lagging));
    lagging.capacity = 500;
    lagging.overflow = PACE_OVERFLOW_DROP_OLDEST;
    lagging.measured = true;
    must(pace_hub_subscribe(work.hub, "orders.*", &lagging, slow_order, NULL, NULL, &subscription));
    must(pace_pool_every(pool, 10 * MILLISECOND, bring, &work, NULL, &handle));
    must(pace_pool_every(pool, 12000 * MILLISECOND, report, NULL, NULL, &handle));

    must(pace_ops_serve(pool, argc > 1 ? argv[1] : "127.0.0.1:9090", NULL, &ops));
    must(pace_ops_address(ops, page, sizeof page));
    printf("the live page: http://%s/\nthe server: http://%s/hello, and /slow\n", page, address);
    fflush(stdout);
    sigwait(&signals, &caught);
    pace_ops_free(ops);
    pace_pool_shutdown(pool, 30000 * MILLISECOND, NULL);
    pace_hub_free(work.hub);
    pace_task_type_free(work.resize);
    pace_workers_free(work.workers);
    pace_http_free(http);
    pace_pool_free(pool);
    return 0;
}
