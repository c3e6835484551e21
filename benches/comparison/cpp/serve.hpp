// What the C++ servers share: the address on the command line and the listening socket.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace serve {

constexpr int kBacklog = 4096;

[[noreturn]] inline void die(const char *what) {
    std::perror(what);
    std::exit(1);
}

// Listens, non-blocking or not; with `share`, others may listen on the same port. `address` is
// the one that the kernel gave afterwards.
inline int listen_on(sockaddr_in &address, int flags, bool share) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    int on = 1;
    setsockopt(fd, SOL_SOCKET, share ? SO_REUSEPORT : SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) < 0) die("bind");
    if (listen(fd, kBacklog) < 0) die("listen");
    socklen_t length = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length);
    return fd;
}

inline sockaddr_in parse_address(const std::string &text) {
    const auto colon = text.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(std::atoi(text.c_str() + colon + 1));
    inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr);
    return address;
}

inline void raise_open_files() {
    rlimit files{20000, 20000};
    setrlimit(RLIMIT_NOFILE, &files);
}

inline void announce(const sockaddr_in &address) {
    std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
}

} // namespace serve
