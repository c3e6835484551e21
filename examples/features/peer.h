/* The other side of the servers in this directory: a client that blocks. For C and C++; one thread at a time. */
#ifndef PEER_H
#define PEER_H

#include "check.h"
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

/* Connects a socket to "127.0.0.1:<port>", or to "unix:@<name>". */
static inline void peer_join(int fd, const char *address) {
    const struct timeval patience = {60, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (strncmp(address, "unix:@", 6) == 0) {
        struct sockaddr_un name;
        const size_t size = strlen(address + 6);
        memset(&name, 0, sizeof name);
        name.sun_family = AF_UNIX;
        memcpy(name.sun_path + 1, address + 6, size);
        CHECK(connect(fd, (struct sockaddr *)&name,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size)) == 0);
    } else {
        struct sockaddr_in name;
        memset(&name, 0, sizeof name);
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        name.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
        CHECK(connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
    }
}

static inline int peer_connect(const char *address) {
    const int fd = socket(strncmp(address, "unix:", 5) == 0 ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    peer_join(fd, address);
    return fd;
}

static inline void peer_send(int fd, const char *text) {
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* The next `size` bytes as a text, or what comes before the end. It stays until the next call. */
static inline const char *peer_read(int fd, size_t size) {
    static char text[65536];
    size_t length = 0;
    ssize_t got = 1;
    while (length < size && length < sizeof text - 1 && got > 0) {
        got = recv(fd, text + length, size - length, 0);
        if (got > 0) length += (size_t)got;
    }
    text[length] = '\0';
    return text;
}

/* All that comes until the server closes. */
static inline const char *peer_read_all(int fd) { return peer_read(fd, 65535); }

/* One request of HTTP as "GET /path" or "POST /path", with a body, and all of the answer. */
static inline const char *peer_ask(const char *address, const char *what, const char *body) {
    char request[4096];
    const int fd = peer_connect(address);
    const char *answer;
    snprintf(request, sizeof request,
             "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             what, strlen(body), body);
    peer_send(fd, request);
    answer = peer_read_all(fd);
    close(fd);
    return answer;
}

#endif
