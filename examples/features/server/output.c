/* Output never blocks: what a slow reader has not taken waits in a bounded queue, and the hook hears when there is room.
 * The peer may finish sending, and still read.
 *
 * feature: server/output
 * prints:
 *   the queue is full: the rest is written when there is room
 *   all is written
 *   read by the client: 19660800 bytes
 */
#include <arpa/inet.h>
#include <paceline/net.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536
#define CHUNKS 300

static sem_t full;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

/* Writes only while there is room, and goes on when there is some again. */
static void write_on(void *left, pace_conn_t *conn) {
    static const char chunk[CHUNK];
    uint32_t wrote = PACE_WRITE_STATUS_SENT;
    while (*(int *)left > 0 && wrote != PACE_WRITE_STATUS_ABOVE_HIGH_MARK) {
        must(pace_conn_write(conn, chunk, CHUNK, &wrote));
        --*(int *)left;
    }
    if (*(int *)left > 0) return;
    puts("all is written");
    must(pace_conn_close(conn)); /* when all is sent */
}

static size_t begin(void *left, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)bytes;
    write_on(left, conn);
    if (*(int *)left > 0) puts("the queue is full: the rest is written when there is room");
    sem_post(&full);
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

int main(void) {
    char address[PACE_ADDRESS_SIZE], bytes[CHUNK];
    int left = CHUNKS;
    ssize_t total = 0, got;
    pace_conn_hooks_t hooks;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_server_t *server;
    pace_pool_t *pool;
    sem_init(&full, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    listener.output_low = 1 << 16, listener.output_high = 1 << 18, listener.output_max = 1 << 20;
    listener.allow_half_open = true; /* stays open though the peer has finished sending */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = begin;
    hooks.writable = write_on;
    hooks.user_data = &left;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int client = connect_to(address);
    send(client, "!", 1, 0);
    shutdown(client, SHUT_WR);
    sem_wait(&full); /* reads nothing until then */
    while ((got = recv(client, bytes, sizeof bytes, 0)) > 0) total += got;
    printf("read by the client: %d bytes\n", (int)total);
    close(client);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
