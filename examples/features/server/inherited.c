/* Sockets that systemd has opened for the program. Here the program stands for systemd, too.
 *
 * feature: server/inherited
 * prints:
 *   inherited: echo
 *   client: hello
 */
#define _GNU_SOURCE
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

/* What systemd does: a socket that listens becomes descriptor 3 of the program. */
static void stand_for_systemd(void) {
    char pid[16];
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (const struct sockaddr *)&any, sizeof any);
    if (listen(listener, 8) != 0 || dup2(listener, 3) != 3) exit(EXIT_FAILURE);
    snprintf(pid, sizeof pid, "%d", getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "echo", 1);
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
    size_t found;
    pace_inherited_t sockets[4];
    pace_conn_hooks_t hooks;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_server_t *server;
    pace_pool_t *pool;
    stand_for_systemd();
    must(pace_inherited_take(sockets, 4, &found));
    if (found != 1) return EXIT_FAILURE;
    printf("inherited: %s\n", sockets[0].name);
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.fd = sockets[0].fd;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int client = connect_to(address);
    send(client, "hello", 5, 0);
    print_answer("client", client, 5);
    close(client);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
