/* An operations endpoint: a live page, figures and health of a pool, which answers while the pool's threads are blocked.
 *
 * feature: ops/endpoint
 */
#include "../peer.h"
#include <paceline/ops.h>
#include <stdatomic.h>

static atomic_int open_now, inside;

static void block(void *data, int32_t *outcome) {
    (void)data;
    (void)outcome;
    atomic_fetch_add(&inside, 1);
    while (!atomic_load(&open_now)) {
        usleep(1000);
    }
}

static int answers(const char *address, const char *path, const char *part) {
    char request[256];
    int found;
    const int fd = peer_connect(address);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
             path);
    peer_send(fd, request);
    found = strstr(peer_read_all(fd), part) != NULL;
    close(fd);
    return found;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_config_t config;
    pace_ops_options_t options;
    pace_pool_t *pool;
    pace_ops_t *ops;
    int busy;
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    must(pace_pool_new(&config, &pool));

    must(pace_ops_options_init(&options, sizeof options));
    options.blocked_after_ns = 10000000;
    options.ready_after_ns = 20000000;
    options.dead_after_ns = 50000000;
    must(pace_ops_serve(pool, "127.0.0.1:0", &options, &ops)); /* then open it in a browser */
    must(pace_ops_address(ops, address, sizeof address));
    CHECK(answers(address, "/", "<title>paceline</title>"));
    CHECK(answers(address, "/metrics", "paceline_thread_led_total"));
    CHECK(answers(address, "/health/ready", "200 OK"));

    must(pace_pool_post(pool, PACE_LANE_NORMAL, block, NULL, NULL));
    WAIT_FOR(atomic_load(&inside) == 1);
    /* A pool whose threads are all busy is alive and ready, for however long. */
    for (busy = 0; busy < 10 || !answers(address, "/health/live", "thread 0 is blocked"); busy++) {
        CHECK(answers(address, "/health/live", "200 OK"));
        CHECK(answers(address, "/health/ready", "200 OK"));
        usleep(20000);
    }
    CHECK(answers(address, "/health/live", "200 OK"));
    /* But if something waits meanwhile, it starves. */
    must(pace_pool_after(pool, 1000000, block, NULL, NULL, NULL));
    WAIT_FOR(answers(address, "/health/ready", "a timer that is due has waited"));
    WAIT_FOR(answers(address, "/health/live", "the pool starves"));
    atomic_store(&open_now, 1);
    WAIT_FOR(answers(address, "/health/live", "200 OK"));
    WAIT_FOR(answers(address, "/health/ready", "200 OK"));
    pace_ops_free(ops);
    pace_pool_free(pool);
    return 0;
}
