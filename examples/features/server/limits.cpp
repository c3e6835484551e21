// Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
//
// feature: server/limits
// prints:
//   first client: hello
//   second client: too many
//   refused: 1
//   silent client: is closed
//   timed out: 1

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

static paceline::Server serve(const paceline::Pool &pool, const paceline::Listen &listen) {
    return paceline::Server::create_for<Echo>(pool, paceline::ServerConfig().add_listener(listen))
        .value();
}

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
    const auto small =
        serve(pool, paceline::Listen(free_port).set_max_connections(1).set_refusal("too many"));
    const auto strict = serve(pool, paceline::Listen(free_port).set_idle_timeout(20ms));

    const int first = connect_to(small.address().value());
    send(first, "hello", 5, 0);
    std::cout << "first client: " << read_from(first, 5) << '\n';
    const int second = connect_to(small.address().value());
    std::cout << "second client: " << read_from(second, 64) << '\n';
    close(first), close(second);
    small.drain(paceline::forever).value(); // the counters are exact at rest
    std::cout << "refused: " << small.stats().value().turned_away << '\n';

    const int silent = connect_to(strict.address().value());
    std::cout << "silent client: " << (read_from(silent, 1).empty() ? "is closed\n" : "is open\n");
    close(silent);
    strict.drain(paceline::forever).value();
    std::cout << "timed out: " << strict.stats().value().closed_timed_out << '\n';
    return 0;
}
