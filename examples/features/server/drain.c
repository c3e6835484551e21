/* A graceful end: no new connections, what has arrived is answered, and connections hear of it. What remains is cut off.
 *
 * feature: server/drain
 * prints:
 *   client: hello
 *   client: goodbye
 *   drained: yes, connections that were cut off: 0
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

static void say_goodbye(void *data, pace_conn_t *conn) {
    (void)data;
    must(pace_conn_write(conn, "goodbye", 7, NULL));
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
    char address[PACE_ADDRESS_SIZE];
    pace_conn_hooks_t hooks;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_drain_report_t report = {.struct_size = sizeof report};
    pace_server_t *server;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    hooks.draining = say_goodbye;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int client = connect_to(address);
    send(client, "hello", 5, 0);
    print_answer("client", client, 5);
    must(pace_server_drain(server, 60000000000, &report)); /* a minute at most */
    print_answer("client", client, 64);
    printf("drained: %s, connections that were cut off: %d\n", report.drained ? "yes" : "no",
           (int)report.cut_off);
    close(client);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
