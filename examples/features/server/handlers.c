/* A server with a TCP and a Unix listener, and with state of its own for each connection.
 *
 * feature: server/handlers
 * prints:
 *   over TCP: 3 bytes so far
 *   over TCP: 5 bytes so far
 *   over a Unix socket: 1 bytes so far
 */
#include <arpa/inet.h>
#include <paceline/net.h>
#include <paceline/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static int32_t open_conn(void *data, pace_conn_t *conn) {
    (void)data;
    must(pace_conn_set_user_data(conn, calloc(1, sizeof(int)))); /* this connection's counter */
    return PACE_ACCEPT_YES;                                      /* or PACE_ACCEPT_REFUSE */
}

static size_t count(void *counter, pace_conn_t *conn, const void *bytes, size_t size) {
    char text[32];
    (void)bytes;
    *(int *)counter += (int)size;
    int length = snprintf(text, sizeof text, "%d bytes so far", *(int *)counter);
    must(pace_conn_write(conn, text, (size_t)length, NULL));
    return size; /* how many are consumed; what is left comes again, with more */
}

static void close_conn(void *counter, pace_conn_t *conn, uint32_t reason, int32_t detail) {
    (void)conn, (void)reason, (void)detail; /* by the peer, by this program, at a time-out … */
    free(counter);
}

/* The other side: a client with a socket that blocks. */
static int connect_to(const void *address, socklen_t size) {
    const int fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM, 0);
    if (connect(fd, address, size) != 0) exit(EXIT_FAILURE);
    return fd;
}

static void ask(const char *client, int fd, const char *bytes) {
    char text[32] = "";
    send(fd, bytes, strlen(bytes), 0);
    printf("%s: %.*s\n", client, (int)recv(fd, text, strlen("1 bytes so far"), MSG_WAITALL), text);
}

int main(void) {
    char address[PACE_ADDRESS_SIZE], name[64];
    pace_listener_options_t listeners[2];
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    pace_server_t *server;
    pace_pool_t *pool;
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    snprintf(path.sun_path, sizeof path.sun_path, "/tmp/handlers-%d.socket", getpid());
    snprintf(name, sizeof name, "unix:/tmp/handlers-%d.socket", getpid());
    must(pace_pool_new(NULL, &pool));
    for (int n = 0; n < 2; n++) must(pace_listener_options_init(&listeners[n], sizeof listeners[n]));
    listeners[0].address = "127.0.0.1:0"; /* a free port */
    listeners[1].address = name;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = listeners;
    options.listener_count = 2;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.open = open_conn;
    hooks.data = count;
    hooks.close = close_conn;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    const struct sockaddr_in port = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = connect_to(&port, sizeof port), other = connect_to(&path, sizeof path);
    ask("over TCP", one, "abc");
    ask("over TCP", one, "de");
    ask("over a Unix socket", other, "x");
    close(one), close(other);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
