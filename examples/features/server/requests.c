/* A bounded number of requests in work, and an answer that comes later from another thread.
 *
 * feature: server/requests
 * prints:
 *   second client: busy
 *   first client: done
 *   answered: 1, refused as busy: 1
 */
#include <arpa/inet.h>
#include <paceline/net.h>
#include <paceline/pool.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pace_server_t *server;
static pace_admission_t *admission;
static pace_conn_id_t waiting;
static sem_t admitted;

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static size_t request(void *data, pace_conn_t *conn, const void *bytes, size_t size) {
    (void)data, (void)bytes;
    if (pace_conn_admit(conn, &admission) == PACE_OK) { /* else: the busy message is written */
        must(pace_conn_id(conn, &waiting));
        sem_post(&admitted);
    }
    return size;
}

/* Runs on another thread than the hook, or later on the same one. */
static void answer(void *data, int32_t *outcome) {
    (void)data;
    must(pace_server_conn_write(server, waiting, "done", 4, NULL));
    must(pace_admission_answered(admission));
    *outcome = 0;
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
    pace_server_stats_t stats = {.struct_size = sizeof stats};
    pace_pool_t *pool;
    sem_init(&admitted, 0, 0);
    must(pace_pool_new(NULL, &pool));
    must(pace_listener_options_init(&listener, sizeof listener));
    listener.address = "127.0.0.1:0"; /* a free port */
    listener.max_requests = 1;
    listener.busy = "busy";
    listener.busy_size = 4;
    must(pace_server_options_init(&options, sizeof options));
    options.listeners = &listener;
    options.listener_count = 1;
    must(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = request;
    must(pace_server_new(pool, &options, &hooks, &server));
    must(pace_server_address(server, 0, address, sizeof address));

    int first = connect_to(address), second = connect_to(address);
    send(first, "?", 1, 0);
    sem_wait(&admitted);
    send(second, "?", 1, 0);
    print_answer("second client", second, 4);
    must(pace_pool_post(pool, PACE_LANE_NORMAL, answer, NULL, NULL));
    print_answer("first client", first, 4);
    close(first), close(second);
    must(pace_server_drain(server, PACE_FOREVER, NULL));
    must(pace_server_stats(server, &stats));
    printf("answered: %d, refused as busy: %d\n", (int)stats.answered, (int)stats.busy);
    pace_server_free(server);
    pace_pool_free(pool);
    return 0;
}
