/* Uses what an installation has beyond the engine, each once: an archive, a webhook, systemd, metrics, settings from a
 * file, a bridge. Each line is the name of a part, and what came of it. The argument is an empty directory. */

#include <arpa/inet.h>
#include <paceline/bridge.h>
#include <paceline/history.h>
#include <paceline/ops.h>
#include <paceline/pool.h>
#include <paceline/workers.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, pace_last_error());
    exit(EXIT_FAILURE);
}

/* Prints the end of a part: its status if it is not PACE_OK. Says whether it is. */
static bool begins(const char *part, pace_status_t status) {
    if (status != PACE_OK) printf("%s: %s\n", part, pace_status_name(status));
    return status == PACE_OK;
}

static void count(void *user_data, const pace_message_t *message) {
    (void)message;
    ++*(int *)user_data;
}

static void archive(pace_pool_t *pool, const char *path) {
    pace_hub_options_t options;
    pace_history_options_t history;
    pace_query_t query = {0};
    pace_hub_t *hub;
    size_t found;
    int counted = 0;
    must(pace_hub_options_init(&options, sizeof options) == PACE_OK, "hub options");
    must(pace_history_options_init(&history, sizeof history) == PACE_OK, "history options");
    history.archive = path;
    options.histories = &history;
    options.history_count = 1;
    if (!begins("archive", pace_hub_new(pool, &options, &hub))) return;
    must(pace_hub_publish(hub, "orders", "1", 1, PACE_PUBLISH_NO_RECEIPT, NULL) == PACE_OK, "publish");
    must(pace_hub_flush(hub, NULL) == PACE_OK, "flush");
    query.struct_size = sizeof query;
    query.pattern = "orders";
    must(pace_hub_query(hub, &query, count, &counted, &found) == PACE_OK, "query");
    printf("archive: %d message, %s\n", counted, access(path, F_OK) == 0 ? "on disk" : "nowhere");
    pace_hub_free(hub);
}

static void webhook(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    char url[64], request[1024];
    pace_webhook_t *made;
    int client, listener = socket(AF_INET, SOCK_STREAM, 0);
    static const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0, "listen");
    must(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    if (!begins("webhook", pace_webhook_new(url, NULL, &made))) return;
    must(pace_webhook_post(made, "{}", 2) == PACE_OK, "post");
    must((client = accept(listener, NULL, NULL)) >= 0, "accept");
    must(read(client, request, sizeof request) > 0, "read");
    must(write(client, answer, strlen(answer)) > 0, "write");
    must(pace_webhook_flush(made, 60 * SECOND) == PACE_OK, "flush");
    printf("webhook: %.4s\n", request);
    pace_webhook_free(made);
    close(client);
    close(listener);
}

static void systemd(pace_pool_t *pool, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char told[64] = "";
    pace_service_t *service;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    must(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    setenv("NOTIFY_SOCKET", path, 1);
    if (!begins("systemd", pace_service_start(pool, NULL, NULL, NULL, &service))) return;
    must(read(fd, told, sizeof told - 1) > 0, "read");
    told[strcspn(told, "\n")] = '\0';
    printf("systemd: %s\n", told);
    pace_service_free(service);
    close(fd);
}

static void metrics(pace_pool_t *pool) {
    static char text[1 << 20];
    size_t needed;
    pace_workers_config_t config;
    pace_workers_t *workers;
    must(pace_workers_config_init(&config, sizeof config) == PACE_OK, "worker settings");
    config.metrics = true;
    must(pace_workers_new(pool, &config, &workers) == PACE_OK, "workers");
    pace_status_t status =
        pace_workers_metrics(workers, PACE_METRICS_PROMETHEUS, text, sizeof text, &needed);
    if (begins("metrics", status)) {
        printf("metrics: %s\n", strncmp(text, "# ", 2) == 0 ? "Prometheus" : text);
    }
    pace_workers_free(workers);
}

static void config(const char *path) {
    pace_pool_config_t config;
    FILE *file = fopen(path, "w");
    must(file != NULL && fputs("pool:\n  threads: 3\n", file) >= 0 && fclose(file) == 0, path);
    must(pace_pool_config_init(&config, sizeof config) == PACE_OK, "settings");
    if (begins("config", pace_pool_config_load(&config, path, false))) {
        printf("config: %u threads\n", (unsigned)config.threads);
    }
}

static void bridge(pace_pool_t *pool) {
    pace_bridge_options_t options;
    pace_bridge_t *bridge;
    pace_hub_t *hub;
    must(pace_hub_new(pool, NULL, &hub) == PACE_OK, "hub");
    must(pace_bridge_options_init(&options, sizeof options) == PACE_OK, "bridge settings");
    options.servers = "nats://127.0.0.1:1";
    if (begins("bridge", pace_bridge_new(hub, &options, &bridge))) {
        must(pace_bridge_export(bridge, "orders.>", NULL) == PACE_OK, "export");
        must(pace_bridge_open(bridge) == PACE_OK, "open");
        pace_status_t status = pace_bridge_wait_connected(bridge, 0);
        printf("bridge: %s\n", status == PACE_ETIMEDOUT ? "waits for a broker" : pace_last_error());
        pace_bridge_free(bridge);
    }
    pace_hub_free(hub);
}

int main(int argc, char **argv) {
    pace_pool_t *pool;
    must(argc == 2 && chdir(argv[1]) == 0, "an empty directory is needed");
    must(pace_pool_new(NULL, &pool) == PACE_OK, "pool");
    archive(pool, "archive.db");
    webhook();
    systemd(pool, "notify");
    metrics(pool);
    config("settings.yaml");
    bridge(pool);
    pace_pool_free(pool);
    return 0;
}
