// What the C++ echo servers share: the command line, the listening socket and the slow request.
#pragma once

#include <netinet/tcp.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "serve.hpp"

namespace echo {

constexpr size_t kReadBuffer = 32 * 1024;

struct Options {
    std::string address = "127.0.0.1:0";
    int threads = 2;
    /* A slow request burns 1 ms, or sleeps for so long. */
    int sleep_us = 0;
};

inline Options parse(int argc, char **argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--listen")
            options.address = value;
        else if (flag == "--threads")
            options.threads = std::atoi(value.c_str());
        else if (flag == "--slow")
            options.sleep_us = value == "sleep" ? 1000 : value == "database" ? 50000 : 0;
    }
    return options;
}

inline void set_nodelay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Listens and announces the address.
inline int listen_on(const Options &options) {
    serve::raise_open_files();
    sockaddr_in address = serve::parse_address(options.address);
    const int fd = serve::listen_on(address, 0, false);
    serve::announce(address);
    return fd;
}

inline long thread_cpu_ns() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Holds the calling thread up if `chunk` begins a slow request.
inline void hold(const char *chunk, int sleep_us) {
    if (static_cast<unsigned char>(chunk[0]) != 0xBB) return;
    if (sleep_us > 0) {
        usleep(sleep_us);
        return;
    }
    const long end = thread_cpu_ns() + 1000000;
    while (thread_cpu_ns() < end) {
    }
}

} // namespace echo
