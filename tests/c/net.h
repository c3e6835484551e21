/* Servers, and clients that cannot hang, for the programs beside this. */
#ifndef NET_H
#define NET_H

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A socket to connect to an address with. */
static inline int socket_for(const char *address) {
    struct timeval patience = {200, 0};
    const bool is_local = strncmp(address, "unix:", 5) == 0;
    int fd = socket(is_local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
    return fd;
}

static inline bool connects_to(int fd, const char *address) {
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in remote = {.sin_family = AF_INET};
    if (strncmp(address, "unix:", 5) == 0) {
        const char *name = address + 5;
        const size_t length = strlen(name);
        CHECK(length < sizeof local.sun_path);
        memcpy(local.sun_path, name, length);
        if (name[0] == '@') local.sun_path[0] = 0;
        const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
        return connect(fd, (struct sockaddr *)&local, size) == 0;
    }
    char host[64];
    unsigned port;
    CHECK(sscanf(address, "%63[0-9.]:%u", host, &port) == 2);
    CHECK(inet_pton(AF_INET, host, &remote.sin_addr) == 1);
    remote.sin_port = htons((uint16_t)port);
    return connect(fd, (struct sockaddr *)&remote, sizeof remote) == 0;
}

/* Connects to an address as pace_server_address() tells it: "127.0.0.1:80", "unix:@name" or a path. */
static inline int try_dial(const char *address) {
    int fd = socket_for(address);
    if (connects_to(fd, address)) return fd;
    const int os_error = errno;
    close(fd);
    errno = os_error;
    return -1;
}

static inline int dial(const char *address) {
    int fd = try_dial(address);
    CHECK(fd >= 0);
    return fd;
}

static inline void send_all(int fd, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        CHECK(sent > 0);
        done += (size_t)sent;
    }
}

static inline void send_text(int fd, const char *text) { send_all(fd, text, strlen(text)); }

/* recv(), which a fork may interrupt. */
static inline ssize_t receive(int fd, void *bytes, size_t size, int flags) {
    ssize_t got;
    do got = recv(fd, bytes, size, flags);
    while (got < 0 && errno == EINTR);
    return got;
}

/* The next bytes must be these. */
static inline void expect_text(int fd, const char *text) {
    char bytes[4096];
    const size_t size = strlen(text);
    CHECK(size <= sizeof bytes);
    for (size_t done = 0; done < size;) {
        ssize_t got = receive(fd, bytes + done, size - done, 0);
        CHECK(got > 0);
        done += (size_t)got;
    }
    CHECK(memcmp(bytes, text, size) == 0);
}

/* The peer must have ended, in order or by a reset. */
static inline void expect_end(int fd) {
    char byte;
    CHECK(receive(fd, &byte, 1, 0) == 0);
    close(fd);
}

static inline void expect_reset(int fd) {
    char byte;
    CHECK(receive(fd, &byte, 1, 0) < 0 && errno == ECONNRESET);
    close(fd);
}

/* A connection that its server resets as it opens: a busy machine lets connect() itself hear of it. */
static inline void expect_reset_at(const char *address) {
    int fd = try_dial(address);
    if (fd >= 0)
        expect_reset(fd);
    else
        CHECK(errno == ECONNRESET);
}

static inline pace_listener_options_t listener_at(const char *address) {
    pace_listener_options_t listener;
    OK(pace_listener_options_init(&listener, sizeof listener));
    listener.address = address;
    return listener;
}

static inline pace_server_options_t options_with(const pace_listener_options_t *listeners,
                                                 size_t count) {
    pace_server_options_t options;
    OK(pace_server_options_init(&options, sizeof options));
    options.listeners = listeners;
    options.listener_count = count;
    return options;
}

static inline pace_conn_hooks_t hooks_with(pace_conn_data_fn data) {
    pace_conn_hooks_t hooks;
    OK(pace_conn_hooks_init(&hooks, sizeof hooks));
    hooks.data = data;
    return hooks;
}

/* A server with one listener of default settings, and where it listens. */
static inline pace_server_t *serve(pace_pool_t *pool, const char *at, const pace_conn_hooks_t *hooks,
                                   char address[PACE_ADDRESS_SIZE]) {
    pace_listener_options_t listener = listener_at(at);
    pace_server_options_t options = options_with(&listener, 1);
    pace_server_t *server = NULL;
    OK(pace_server_new(pool, &options, hooks, &server));
    OK(pace_server_address(server, 0, address, PACE_ADDRESS_SIZE));
    return server;
}

static inline pace_server_stats_t stats_of(pace_server_t *server) {
    pace_server_stats_t stats = {0};
    stats.struct_size = sizeof stats;
    OK(pace_server_stats(server, &stats));
    return stats;
}

/* Everything must end in order, and the books balance. Frees. */
static inline void stop(pace_server_t *server) {
    pace_drain_report_t report = {0};
    report.struct_size = sizeof report;
    OK(pace_server_drain(server, PACE_FOREVER, &report));
    CHECK(report.drained && !report.requested && report.cut_off == 0 && report.open == 0);
    CHECK(stats_of(server).balances);
    pace_server_free(server);
}

#define TCP "127.0.0.1:0"

#endif
