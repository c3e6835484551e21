// What the C++ echo servers share: the command line, the listening socket and the slow request.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace echo {

constexpr size_t kReadBuffer = 32 * 1024;
constexpr int kBacklog = 4096;

struct Options {
    std::string address = "127.0.0.1:0";
    int threads = 2;
    bool burn = true;
};

[[noreturn]] inline void die(const char *what) {
    std::perror(what);
    std::exit(1);
}

inline Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--listen") options.address = value;
        else if (flag == "--threads") options.threads = std::atoi(value.c_str());
        else if (flag == "--slow") options.burn = value == "burn";
    }
    return options;
}

inline void set_nodelay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Listens and announces the address.
inline int listen_on(const Options &options) {
    rlimit files{20000, 20000};
    setrlimit(RLIMIT_NOFILE, &files);
    const auto colon = options.address.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(std::atoi(options.address.c_str() + colon + 1));
    inet_pton(AF_INET, options.address.substr(0, colon).c_str(), &address.sin_addr);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) < 0) die("bind");
    if (listen(fd, kBacklog) < 0) die("listen");
    socklen_t length = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length);
    std::printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    return fd;
}

inline long thread_cpu_ns() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Holds the calling thread up if `chunk` begins a slow request.
inline void hold(const char *chunk, bool burn) {
    if (static_cast<unsigned char>(chunk[0]) != 0xBB) return;
    if (!burn) {
        usleep(1000);
        return;
    }
    const long end = thread_cpu_ns() + 1000000;
    while (thread_cpu_ns() < end) {
    }
}

}  // namespace echo
