/* A TCP server that echoes, with the limits that a server in production has: 4 threads, 20,000 connections, 120 s without a
 * byte, 10,000 requests. It ends at SIGTERM or Ctrl-C, and drains first. For 20,000 connections: `ulimit -n 20100`.
 *
 *     cc examples/c/tcp.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o tcp
 *     ./tcp 127.0.0.1:3333    # without an address: port 3333 of all addresses
 *     nc 127.0.0.1 3333
 */
#include <paceline/net.h>
#include <paceline/pool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s\n", pace_last_error());
    exit(1);
}

static size_t echo(void *user_data, pace_conn_t *conn, const void *request, size_t size) {
    pace_admission_t *admission;
    (void)user_data;
    /* One of 10,000; if there is none, the busy message is written. */
    if (pace_conn_admit(conn, &admission) == PACE_OK) {
        must(pace_conn_write(conn, request, size, NULL));
        must(pace_admission_answered(admission)); /* here at once; another thread may do it later */
    }
    return size;
}

static void ignore(void *user_data, int32_t signal) { (void)user_data, (void)signal; }

int main(int argc, char **argv) {
    static const char full[] = "too many connections\n", busy[] = "too many requests\n";
    pace_pool_config_t config;
    pace_listener_options_t listen;
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    pace_pool_t *pool;
    pace_signals_t *signals;
    pace_server_t *server;
    char address[PACE_ADDRESS_SIZE];
    pace_drain_report_t report = {.struct_size = sizeof report};
    pace_server_stats_t stats = {.struct_size = sizeof stats};

    must(pace_pool_config_init(&config, sizeof config));
    config.threads = 4;
    must(pace_pool_new(&config, &pool));
    must(pace_signals_new(pool, (int32_t[]){SIGTERM, SIGINT}, 2, ignore, NULL, NULL, &signals));
    must(pace_listener_options_init(&listen, sizeof listen));
    listen.address = argc > 1 ? argv[1] : "*:3333";
    listen.idle_timeout_ns = PACE_MS(120000);
    listen.max_connections = 20000;
    listen.refusal = full, listen.refusal_size = sizeof full - 1;
    listen.max_requests = 10000;
    listen.busy = busy, listen.busy_size = sizeof busy - 1;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listen, options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    printf("listening on %s\n", address);
    fflush(stdout);
    must(pace_signals_wait(signals, &(int32_t){0}));
    must(pace_server_drain(server, PACE_MS(10000), &report));
    must(pace_server_stats(server, &stats));
    printf("drained: %s, connections: %llu, requests: %llu\n", report.drained ? "true" : "false",
           (unsigned long long)stats.accepted, (unsigned long long)stats.answered);
    pace_server_free(server);
    pace_signals_free(signals);
    pace_pool_free(pool);
    return 0;
}
