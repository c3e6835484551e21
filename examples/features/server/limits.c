/* Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
 *
 * feature: server/limits
 * prints:
 *   first client: hello
 *   second client: too many
 *   silent client: is closed
 *   refused: 1, timed out: 1
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

/* The other side: a client with a socket that blocks. */
static int connect_to(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) exit(EXIT_FAILURE);
    return fd;
}

/* Prints the next `size` bytes that come, or what comes before the end. */
static void print_answer(const char *client, int fd, size_t size) {
    char text[64];
    const ssize_t got = recv(fd, text, size, MSG_WAITALL);
    printf("%s: %.*s\n", client, got < 0 ? 0 : (int)got, text);
}

int main(void) {
    char small[PACE_ADDRESS_SIZE], strict[PACE_ADDRESS_SIZE], byte;
    pace_conn_hooks_t hooks;
    pace_listener_options_t listeners[2];
    pace_server_options_t options;
    pace_server_stats_t stats = {.struct_size = sizeof stats};
    pace_server_t *server;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    for (int n = 0; n < 2; n++) {
        must(pace_listener_options_init(&listeners[n], sizeof listeners[n]));
        listeners[n].address = "127.0.0.1:0"; /* a free port */
    }
    listeners[0].max_connections = 1;
    listeners[0].refusal = "too many";
    listeners[0].refusal_size = 8;
    listeners[1].idle_timeout_ns = 20000000; /* 20 ms */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = listeners;
    options.listener_count = 2;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, small, sizeof small));
    must(pace_server_address(server, 1, strict, sizeof strict));

    int first = connect_to(small);
    send(first, "hello", 5, 0);
    print_answer("first client", first, 5);
    int second = connect_to(small);
    print_answer("second client", second, 64);
    int silent = connect_to(strict);
    printf("silent client: %s\n", recv(silent, &byte, 1, 0) == 0 ? "is closed" : "is open");
    close(first), close(second), close(silent);
    must(pace_server_drain(server, PACE_FOREVER, NULL)); /* the counters are exact at rest */
    must(pace_server_stats(server, &stats));
    printf("refused: %d, timed out: %d\n", (int)stats.turned_away, (int)stats.closed_timed_out);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
