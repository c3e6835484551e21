// Where a message ends: at a delimiter, after a length in front of it, or after a fixed length.
//
// feature: server/frames
// prints:
//   line: one
//   line: two
//   line: three
//   after its length: abc
//   of a fixed length: abc

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

struct Lines : paceline::ConnHandler {
    // Prints each whole line, and leaves a part of a line for the next call.
    std::size_t data(paceline::Conn &, std::string_view bytes) override {
        std::size_t consumed = 0;
        while (const auto frame = line_.next(bytes.substr(consumed)).value()) {
            std::cout << "line: " << frame->body << '\n';
            consumed += frame->length;
        }
        return consumed;
    }

private:
    paceline::Delimited line_{"\n", 1024};
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

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0"); // a free port
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Lines>(pool, config).value();
    const int client = connect_to(server.address().value());
    send(client, "one\ntwo\nthr", 11, 0);
    send(client, "ee\n", 3, 0);
    close(client);
    server.drain(paceline::forever).value(); // what has arrived is handled

    const paceline::LengthPrefixed prefixed(2, 1024); // two bytes of length
    const auto one = prefixed.next(std::string_view("\0\3abcd", 6)).value();
    std::cout << "after its length: " << one.value().body << '\n';
    const auto other = paceline::FixedLength(3).next("abcd").value();
    std::cout << "of a fixed length: " << other.value().body << '\n';
    return 0;
}
