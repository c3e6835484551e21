// A bounded number of requests in work, and an answer that comes later from another thread.
//
// feature: server/requests
// prints:
//   second client: busy
//   first client: done
//   answered: 1, refused as busy: 1

#include <arpa/inet.h>
#include <cstdint>
#include <future>
#include <iostream>
#include <optional>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using paceline::Admission;
using paceline::Conn;
using paceline::ConnRef;

// What the first request needs for its answer.
static std::optional<Admission> admission;
static ConnRef waiting;
static std::promise<void> admitted;

struct Handler : paceline::ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        if (auto accepted = conn.admit()) { // else: the busy message is written
            admission.emplace(*std::move(accepted));
            waiting = conn.ref();
            admitted.set_value();
        }
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
    auto listen = paceline::Listen().set_address("127.0.0.1:0"); // a free port
    listen.set_max_requests(1).set_busy("busy");
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Handler>(pool, config).value();
    const int first = connect_to(server.address().value());
    const int second = connect_to(server.address().value());
    send(first, "?", 1, 0);
    admitted.get_future().wait();
    send(second, "?", 1, 0);
    std::cout << "second client: " << read_from(second, 4) << '\n';
    pool.post([] {
            waiting.write("done").value();
            admission->answered();
        })
        .value();
    std::cout << "first client: " << read_from(first, 4) << '\n';
    close(first), close(second);
    server.drain(paceline::forever).value();
    const auto stats = server.stats().value();
    std::cout << "answered: " << stats.answered << ", refused as busy: " << stats.busy << '\n';
    waiting = ConnRef();
    return 0;
}
