/* Without descriptors to spare a server stops accepting for a moment, reports it, and goes on when there are some.
 *
 * feature: server/exhausted
 * prints:
 *   no descriptor is free: the server does not accept for a moment
 *   descriptors are free
 *   client: hello
 */
#include <arpa/inet.h>
#include <paceline/net.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static sem_t exhausted;
static atomic_bool reported;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void report(void *data, const char *message) {
    (void)data, (void)message; /* with the system's reason */
    if (atomic_exchange(&reported, true)) return;
    puts("no descriptor is free: the server does not accept for a moment");
    sem_post(&exhausted);
}

static size_t echo(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data;
    must(pace_conn_write(conn, bytes, size, NULL));
    return size;
}

int main(void) {
    char address[PACE_ADDRESS_SIZE], answer[8] = "";
    struct rlimit before, few;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_conn_hooks_t hooks;
    pace_server_t *server;
    pace_pool_t *pool;
    sem_init(&exhausted, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    options.on_exhausted = report;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = echo;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)client + 1; /* all are in use */
    setrlimit(RLIMIT_NOFILE, &few);
    /* The kernel has the connection, but the server cannot accept it. */
    if (connect(client, (const struct sockaddr *)&to, sizeof to) != 0) return EXIT_FAILURE;
    send(client, "hello", 5, 0);
    sem_wait(&exhausted);
    puts("descriptors are free");
    setrlimit(RLIMIT_NOFILE, &before);
    recv(client, answer, 5, MSG_WAITALL);
    printf("client: %s\n", answer);
    close(client);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
