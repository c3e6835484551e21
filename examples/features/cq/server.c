/* Connections as data: what has arrived comes as an entry, and its completion says what is written, and what next.
 *
 * feature: cq/server
 * prints:
 *   a connection was opened
 *   client: hello
 *   client: bye
 */
#include <arpa/inet.h>
#include <paceline/cq.h>
#include <paceline/pool.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void *serve(void *queue) {
    pace_cq_entry_t entry;
    size_t got;
    for (;;) {
        if (pace_cq_wait(queue, &entry, 1, PACE_FOREVER, &got) != PACE_OK) return NULL; /* closed */
        if (entry.kind != PACE_CQ_CONN) continue; /* the server has ended */
        pace_cq_completion_t completion = {.token = entry.token};
        if (entry.detail.conn.event == PACE_CONN_EVENT_OPENED) puts("a connection was opened");
        if (entry.detail.conn.event == PACE_CONN_EVENT_DATA) {
            completion.bytes = entry.bytes; /* an echo */
            completion.size = entry.size;
            if (memchr(entry.bytes, 'b', entry.size)) completion.flags = PACE_CQ_CLOSE; /* "bye" */
        }
        must(pace_cq_complete(queue, &completion, 1));
    }
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
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_server_t *server;
    pace_pool_t *pool;
    pace_cq_t *cq;
    pthread_t thread;
    must(pace_pool_new(NULL, &pool));
    must(pace_cq_new(pool, NULL, &cq));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_cq_server(cq, &options, PACE_WANTED_OPENED, 1, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    pthread_create(&thread, NULL, serve, cq); /* or several of them */

    int client = connect_to(address);
    send(client, "hello", 5, 0);
    print_answer("client", client, 5);
    send(client, "bye", 3, 0);
    print_answer("client", client, 64);
    close(client);
    must(pace_server_drain(server, PACE_FOREVER, NULL));
    must(pace_cq_close(cq));
    pthread_join(thread, NULL);
    pace_server_free(server);
    pace_cq_free(cq);
    pace_pool_free(pool);
    return 0;
}
