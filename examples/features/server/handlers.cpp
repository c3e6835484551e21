// A server with a TCP and a Unix listener, and with a handler object for each connection.
//
// feature: server/handlers
// prints:
//   over TCP: 3 bytes so far
//   over TCP: 5 bytes so far
//   over a Unix socket: 1 bytes so far

#include <arpa/inet.h>
#include <cstdint>
#include <iostream>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <sys/un.h>
#include <unistd.h>

using paceline::Conn;
using paceline::Listen;

struct Count : paceline::ConnHandler {
    paceline::Accept open(Conn &) override { return paceline::Accept::Yes; } // or Refuse
    std::size_t data(Conn &conn, std::string_view bytes) override {
        count_ += bytes.size();
        conn.write(std::to_string(count_) + " bytes so far").value();
        return bytes.size(); // how many are consumed; what is left comes again, with more
    }
    void close(Conn &, paceline::Reason) override {} // by the peer, by this program, at a time-out …

private:
    std::size_t count_ = 0;
};

// The other side: a client with a socket that blocks.
template <class Address>
static int connect_to(const Address &address, int family) {
    const int fd = socket(family, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
        throw std::runtime_error("no connection");
    }
    return fd;
}

static std::string ask(int fd, const std::string &bytes) {
    send(fd, bytes.data(), bytes.size(), 0);
    std::string text("1 bytes so far");
    recv(fd, text.data(), text.size(), MSG_WAITALL);
    return text;
}

int main() {
    const std::string path = "/tmp/handlers-cpp-" + std::to_string(getpid()) + ".socket";
    const auto pool = paceline::Pool::create().value();
    const auto config = paceline::ServerConfig()
                            .add_listener(Listen().set_address("127.0.0.1:0")) // a free port
                            .add_listener(Listen().set_address("unix:" + path));
    const auto server = paceline::Server::create_for<Count>(pool, config).value();

    const std::string address = server.address().value();
    sockaddr_in port{};
    port.sin_family = AF_INET;
    port.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    const int one = connect_to(port, AF_INET), other = connect_to(name, AF_UNIX);
    std::cout << "over TCP: " << ask(one, "abc") << '\n';
    std::cout << "over TCP: " << ask(one, "de") << '\n';
    std::cout << "over a Unix socket: " << ask(other, "x") << '\n';
    close(one), close(other);
    return 0;
}
