// Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
//
// feature: server/limits
// prints:
//   first client: hello
//   second client: too many
//   silent client: is closed
//   refused: 1, timed out: 1

#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using namespace std::chrono_literals;

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

// The other side: a client with a socket that blocks.
static int connect_to(const std::string &address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof to) != 0) {
        throw std::runtime_error("no connection to " + address);
    }
    return fd;
}

// The next `size` bytes that come, or what comes before the end.
static std::string read_from(int fd, std::size_t size) {
    std::string text(size, '\0');
    const auto got = recv(fd, text.data(), size, MSG_WAITALL);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto free_port = paceline::Listen().set_address("127.0.0.1:0");
    const auto small = paceline::Listen(free_port).set_max_connections(1).set_refusal("too many");
    const auto strict = paceline::Listen(free_port).set_idle_timeout(20ms);
    const auto config = paceline::ServerConfig().add_listener(small).add_listener(strict);
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();

    const int first = connect_to(server.address(0).value());
    send(first, "hello", 5, 0);
    std::cout << "first client: " << read_from(first, 5) << '\n';
    const int second = connect_to(server.address(0).value());
    std::cout << "second client: " << read_from(second, 64) << '\n';
    const int silent = connect_to(server.address(1).value());
    std::cout << "silent client: " << (read_from(silent, 1).empty() ? "is closed\n" : "is open\n");
    close(first), close(second), close(silent);
    server.drain(paceline::forever).value(); // the counters are exact at rest
    const auto stats = server.stats().value();
    std::cout << "refused: " << stats.turned_away << ", timed out: " << stats.closed_timed_out << '\n';
    return 0;
}
