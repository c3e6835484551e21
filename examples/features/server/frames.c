/* Where a message ends: at a delimiter, after a length in front of it, or after a fixed length.
 *
 * feature: server/frames
 * prints:
 *   line: one
 *   line: two
 *   line: three
 *   after its length: abc
 *   of a fixed length: abc
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

/* Prints each whole line, and leaves a part of a line for the next call. */
static size_t lines(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)conn;
    size_t consumed = 0, searched = 0;
    pace_frame_t frame;
    while (pace_frame_delimited((const char *)bytes + consumed, size - consumed, "\n", 1, 1024,
                                &searched, &frame) == PACE_OK &&
           frame.length > 0) {
        printf("line: %.*s\n", (int)frame.size, (const char *)frame.body);
        consumed += frame.length;
        searched = 0;
    }
    return consumed;
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
    char address[PACE_ADDRESS_SIZE];
    pace_frame_t frame;
    pace_conn_hooks_t hooks;
    pace_listener_options_t listener;
    pace_server_options_t options;
    pace_server_t *server;
    pace_pool_t *pool;
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = lines;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));
    int client = connect_to(address);
    send(client, "one\ntwo\nthr", 11, 0);
    send(client, "ee\n", 3, 0);
    close(client);
    must(pace_server_drain(server, PACE_FOREVER, NULL)); /* what has arrived is handled */
    pace_server_free(server);
    pace_pool_free(pool);

    must(pace_frame_prefixed("\0\3abcd", 6, 2, 1024, &frame)); /* two bytes of length */
    printf("after its length: %.*s\n", (int)frame.size, (const char *)frame.body);
    must(pace_frame_fixed("abcd", 4, 3, &frame));
    printf("of a fixed length: %.*s\n", (int)frame.size, (const char *)frame.body);
    return 0;
}
