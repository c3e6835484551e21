/* Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
 *
 * feature: server/limits
 * prints:
 *   first client: hello
 *   second client: too many
 *   refused: 1
 *   silent client: is closed
 *   timed out: 1
 */
#include <arpa/inet.h>
#include <paceline/net.h>
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

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

static pace_server_t *serve(pace_pool_t *pool, pace_listener_options_t listener,
                            char address[PACE_ADDRESS_SIZE]) {
    pace_conn_hooks_t hooks;
    pace_server_options_t options;
    pace_server_t *server;
    listener.address = "127.0.0.1:0"; /* a free port */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
    return server;
}

/* The other side: a client with a socket that blocks. */
static int connect_to(const char *address) {
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
    return fd;
}

/* Prints the next `size` bytes that come, or what comes before the end. */
static void print_answer(const char *client, int fd, size_t size) {
    char text[64];
    const ssize_t got = recv(fd, text, size, MSG_WAITALL);
    printf("%s: %.*s\n", client, got < 0 ? 0 : (int)got, text);
}

int main(void) {
    char small_address[PACE_ADDRESS_SIZE], strict_address[PACE_ADDRESS_SIZE], byte;
    pace_listener_options_t one, idle;
    pace_server_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&one, sizeof one));
    one.max_connections = 1;
    one.refusal = "too many";
    one.refusal_size = 8;
    pace_server_t *small = serve(pool, one, small_address);
    must(pace_listener_options_init(&idle, sizeof idle));
    idle.idle_timeout_ns = 20000000;
    pace_server_t *strict = serve(pool, idle, strict_address);

    int first = connect_to(small_address);
    send(first, "hello", 5, 0);
    print_answer("first client", first, 5);
    int second = connect_to(small_address);
    print_answer("second client", second, 64);
    close(first), close(second);
    must(pace_server_drain(small, PACE_FOREVER, NULL)); /* the counters are exact at rest */
    must(pace_server_stats(small, &stats));
    printf("refused: %d\n", (int)stats.turned_away);

    int silent = connect_to(strict_address);
    printf("silent client: %s\n", recv(silent, &byte, 1, 0) == 0 ? "is closed" : "is open");
    close(silent);
    must(pace_server_drain(strict, PACE_FOREVER, NULL));
    stats.struct_size = sizeof stats;
    must(pace_server_stats(strict, &stats));
    printf("timed out: %d\n", (int)stats.closed_timed_out);
    pace_server_free(small);
    pace_server_free(strict);
    pace_pool_free(pool);
    return 0;
}
