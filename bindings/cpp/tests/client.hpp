// Who talks to servers.

#ifndef PACELINE_TESTS_CLIENT_HPP
#define PACELINE_TESTS_CLIENT_HPP

#include "common.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/// A blocking client.
class Client {
public:
    template <class Server>
    explicit Client(const Server &server) : Client(server, [] {}) {}
    /// `before` is called when it has its descriptor, and before it connects.
    template <class Server, class Before>
    Client(const Server &server, Before before) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const std::string address = server.address().value();
        const auto port = std::stoi(address.substr(address.rfind(':') + 1));
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<std::uint16_t>(port));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval patience{60, 0};
        REQUIRE(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
        before();
        REQUIRE(connect(fd_, reinterpret_cast<const sockaddr *>(&to), sizeof to) == 0);
    }
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;
    ~Client() { ::close(fd_); }

    void send(std::string_view bytes) {
        REQUIRE(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }

    /// Sends no more.
    void finish() { (void)shutdown(fd_, SHUT_WR); }

    /// Has it end with a reset when it goes.
    void reset() {
        const linger abrupt{1, 0};
        REQUIRE(setsockopt(fd_, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt) == 0);
    }

    /// So many bytes, or all up to the end.
    std::string receive(std::size_t size = SIZE_MAX) {
        std::string all;
        char part[4096];
        while (all.size() < size) {
            const ssize_t got = recv(fd_, part, std::min(sizeof part, size - all.size()), 0);
            if (got <= 0) {
                break;
            }
            all.append(part, static_cast<std::size_t>(got));
        }
        return all;
    }

private:
    int fd_;
};

#endif
