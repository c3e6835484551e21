/* An operations endpoint: a live page, figures and health of a pool, which answers while the pool's threads are blocked.
 *
 * feature: ops/endpoint
 * prints:
 *   /metrics: 200
 *   all threads are busy: /health/live: 200
 *   a timer that is due waits: /health/live: 503
 *   the threads are free: /health/live: 200
 */
#include <arpa/inet.h>
#include <paceline/ops.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t busy, go_on;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void block(void *data, int32_t *outcome) {
    (void)data;
    sem_post(&busy);
    sem_wait(&go_on);
    *outcome = 0;
}

/* Asks until there is a part in the answer, and prints the status. */
static void ask_until(const char *address, const char *path, const char *part) {
    char text[4096] = "";
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    while (strstr(text, part) == NULL) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
        dprintf(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
        const ssize_t size = recv(fd, text, sizeof text - 1, MSG_WAITALL);
        text[size < 0 ? 0 : size] = '\0';
        close(fd);
    }
    printf("%s: %.3s\n", path, text + strlen("HTTP/1.1 "));
}

int main(void) {
    char address[PACE_ADDRESS_SIZE];
    pace_pool_config_t config;
    pace_ops_options_t options;
    pace_pool_t *pool;
    pace_ops_t *ops;
    sem_init(&busy, 0, 0), sem_init(&go_on, 0, 0);
    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 1;
    must(pace_pool_new(&config, &pool));

    must(pace_ops_options_init(&options, sizeof options));
    options.blocked_after_ns = 10000000; /* 10 ms, for this program; by default seconds */
    options.ready_after_ns = 20000000;
    options.dead_after_ns = 50000000;
    must(pace_ops_serve(pool, "127.0.0.1:0", &options, &ops)); /* then open it in a browser */
    must(pace_ops_address(ops, address, sizeof address));
    ask_until(address, "/metrics", "paceline_");

    must(pace_pool_post(pool, PACE_LANE_NORMAL, block, NULL, NULL));
    sem_wait(&busy);
    printf("all threads are busy: "); /* for however long: the pool is alive and ready */
    ask_until(address, "/health/live", "thread 0 is blocked");
    must(pace_pool_after(pool, 1000000, block, NULL, NULL, NULL));
    printf("a timer that is due waits: ");
    ask_until(address, "/health/live", "the pool starves");
    sem_post(&go_on), sem_post(&go_on);
    printf("the threads are free: ");
    ask_until(address, "/health/live", "200 OK");
    pace_ops_free(ops);
    pace_pool_free(pool);
    return 0;
}
