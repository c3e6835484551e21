// Output never blocks: what a slow reader has not taken waits in a bounded queue, and the hook hears when there is room.
// The peer may finish sending, and still read.
//
// feature: server/output
// prints:
//   the queue is full: the rest is written when there is room
//   all is written
//   read by the client: 19660800 bytes

#include <arpa/inet.h>
#include <cstdint>
#include <future>
#include <iostream>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

using paceline::Conn;
using paceline::WriteStatus;

static std::promise<void> full;

struct Handler : paceline::ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        writable(conn);
        if (left_ > 0) {
            std::cout << "the queue is full: the rest is written when there is room\n";
        }
        full.set_value();
        return bytes.size();
    }
    // Writes only while there is room, and goes on when there is some again.
    void writable(Conn &conn) override {
        auto wrote = WriteStatus::Sent;
        for (; left_ > 0 && wrote != WriteStatus::AboveHighMark; --left_) {
            wrote = conn.write(chunk_).value();
        }
        if (left_ == 0) {
            std::cout << "all is written\n";
            conn.close(); // when all is sent
        }
    }

private:
    const std::string chunk_ = std::string(65536, 'x');
    int left_ = 300;
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
    auto listen = paceline::Listen().set_address("127.0.0.1:0"); // a free port
    listen.set_output_marks(1 << 16, 1 << 18, 1 << 20);
    listen.set_allow_half_open(); // stays open though the peer has finished sending
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Handler>(pool, config).value();

    const int client = connect_to(server.address().value());
    send(client, "!", 1, 0);
    shutdown(client, SHUT_WR);
    full.get_future().wait(); // reads nothing until then
    ssize_t total = 0, got = 1;
    for (char bytes[4096]; got > 0; total += got) {
        got = recv(client, bytes, sizeof bytes, 0);
    }
    std::cout << "read by the client: " << total << " bytes\n";
    close(client);
    return 0;
}
