// A graceful end: no new connections, what has arrived is answered, and connections hear of it. What remains is cut off.
//
// feature: server/drain
// prints:
//   client: hello
//   client: goodbye
//   drained: true, connections that were cut off: 0

#include <arpa/inet.h>
#include <chrono>
#include <iostream>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using paceline::Conn;

struct Echo : paceline::ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
    void draining(Conn &conn) override { conn.write("goodbye").value(); }
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
    const auto listen = paceline::Listen().set_address("127.0.0.1:0"); // a free port
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();

    const int client = connect_to(server.address().value());
    send(client, "hello", 5, 0);
    std::cout << "client: " << read_from(client, 5) << '\n';
    const auto report = server.drain(std::chrono::minutes(1)).value();
    std::cout << "client: " << read_from(client, 64) << '\n';
    std::cout << std::boolalpha << "drained: " << report.drained
              << ", connections that were cut off: " << report.cut_off << '\n';
    close(client);
    return 0;
}
