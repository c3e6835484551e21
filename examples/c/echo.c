/* An echo server.
 *
 * Both handlers are edge-triggered: they are told once that something has become possible, so they go
 * on until the kernel says EAGAIN, and only then answer PACE_FLOW_WAIT. A connection that does not read
 * what it asked for is held to one buffer's worth, because nothing more is read until that is sent.
 *
 *     cc examples/c/echo.c -I include -L target/release -lpaceline -Wl,-rpath,target/release -o echo
 *     ./echo --listen 127.0.0.1:7007 --threads 2
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <paceline/pool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER 16384
#define TURN 64 /* accepts or reads before others have their turn */
#define RETRY UINT64_C(50000000)

static void must(pace_status_t status) {
    if (status == PACE_OK) return;
    fprintf(stderr, "%s: %s\n", pace_status_name(status), pace_last_error());
    exit(EXIT_FAILURE);
}

static void need(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "echo: %s\n", what);
    exit(EXIT_FAILURE);
}

typedef struct connection {
    int fd;
    size_t from, to; /* what is to be sent still */
    char bytes[BUFFER];
} connection_t;

/* The last thing that happens to a connection: the descriptor is its own again. */
static void end(void *user_data) {
    connection_t *connection = user_data;
    close(connection->fd);
    free(connection);
}

/* Sends what is left. False: the socket takes no more now, or is broken (errno). */
static bool send_rest(connection_t *connection) {
    while (connection->from < connection->to) {
        ssize_t sent = send(connection->fd, connection->bytes + connection->from,
                            connection->to - connection->from, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        connection->from += (size_t)sent;
    }
    return true;
}

static int32_t echo(void *user_data, pace_handle_t self, int32_t fd, uint32_t ready) {
    connection_t *connection = user_data;
    (void)self, (void)ready;
    for (int turn = 0; turn < TURN; turn++) {
        if (!send_rest(connection)) return errno == EAGAIN ? PACE_FLOW_WAIT : PACE_FLOW_DONE;
        ssize_t size = recv(fd, connection->bytes, BUFFER, 0);
        if (size == 0) return PACE_FLOW_DONE;
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return errno == EAGAIN ? PACE_FLOW_WAIT : PACE_FLOW_DONE;
        connection->from = 0;
        connection->to = (size_t)size;
    }
    return PACE_FLOW_AGAIN;
}

static void add(pace_pool_t *pool, int fd) {
    connection_t *connection = malloc(sizeof *connection);
    pace_handle_t handle; /* it ends by itself, so nobody keeps it */
    if (connection == NULL) {
        close(fd);
        return;
    }
    connection->fd = fd;
    connection->from = connection->to = 0;
    if (pace_pool_register(pool, fd, NULL, echo, connection, end, &handle) != PACE_OK)
        end(connection); /* it has not moved */
}

typedef struct acceptor {
    pace_pool_t *pool;
    pace_handle_t handle;
} acceptor_t;

static void resume(void *user_data, int32_t *outcome) {
    acceptor_t *acceptor = user_data;
    *outcome = pace_handle_resume(acceptor->pool, acceptor->handle);
}

static int32_t accept_all(void *user_data, pace_handle_t self, int32_t fd, uint32_t ready) {
    acceptor_t *acceptor = user_data;
    (void)ready;
    for (int turn = 0; turn < TURN; turn++) {
        int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            add(acceptor->pool, client);
        } else if (errno == EAGAIN) {
            return PACE_FLOW_WAIT;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* Stops for a while instead of spinning. What arrives meanwhile waits in the backlog. */
            acceptor->handle = self;
            pace_pool_after(acceptor->pool, RETRY, resume, acceptor, NULL, NULL);
            return PACE_FLOW_PAUSE;
        } /* else this connection is gone already; the next may be well */
    }
    return PACE_FLOW_AGAIN;
}

static int listen_at(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[64];
    unsigned port = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    socklen_t length = sizeof address;
    need(sscanf(text, "%63[0-9.]:%u", host, &port) == 2 && port < 65536 &&
             inet_pton(AF_INET, host, &address.sin_addr) == 1,
         "--listen needs an address like 127.0.0.1:7007");
    address.sin_port = htons((uint16_t)port);
    need(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
             bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 4096) == 0 &&
             getsockname(fd, (struct sockaddr *)&address, &length) == 0,
         "this address cannot be listened at");
    printf("listening on %s:%u\n", host, ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void usage(void) {
    puts("echo [--listen ADDRESS:PORT] [--threads N]\n"
         "serves until it gets SIGINT or SIGTERM; default 127.0.0.1:7007, a thread per CPU");
}

int main(int argc, char **argv) {
    const char *address = "127.0.0.1:7007";
    pace_pool_config_t config;
    must(pace_pool_config_init(&config, sizeof config));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage();
            return 0;
        }
        need(i + 1 < argc, "see --help");
        if (strcmp(argv[i], "--listen") == 0)
            address = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0)
            config.threads = (uint32_t)atoi(argv[++i]);
        else
            need(false, "see --help");
    }

    /* Threads of the pool block signals anyway; this one waits for them. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    acceptor_t acceptor = {NULL, {0}};
    pace_handle_t handle;
    pace_handle_options_t options;
    int listener = listen_at(address), caught = 0;
    must(pace_pool_new(&config, &acceptor.pool));
    must(pace_handle_options_init(&options, sizeof options));
    options.interest = PACE_INTEREST_READABLE;
    must(pace_pool_register(acceptor.pool, listener, &options, accept_all, &acceptor, NULL, &handle));
    sigwait(&signals, &caught);

    must(pace_pool_shutdown(acceptor.pool, 0, NULL)); /* closes every connection, by `end` */
    pace_thread_stats_t thread = {.struct_size = sizeof thread};
    printf("\nthread        led   events  handled\n");
    for (uint32_t i = 0; pace_pool_thread_stats(acceptor.pool, i, &thread) == PACE_OK; i++)
        if (thread.terms > 0)
            printf("%6u %10llu %8llu %8llu\n", i, (unsigned long long)thread.terms,
                   (unsigned long long)thread.events, (unsigned long long)thread.handled);
    pace_pool_free(acceptor.pool);
    close(listener);
    return 0;
}
