// Sockets that systemd has opened for the program. Here the program stands for systemd, too.
//
// feature: server/inherited
// prints:
//   inherited: echo
//   client: hello

#include <arpa/inet.h>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <paceline/net.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

// What systemd does: a socket that listens becomes descriptor 3 of the program.
static void stand_for_systemd() {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<const sockaddr *>(&any), sizeof any) != 0 ||
        listen(listener, 8) != 0 || dup2(listener, 3) != 3) {
        throw std::runtime_error("no socket that listens");
    }
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "echo", 1);
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
    stand_for_systemd();
    const auto sockets = paceline::inherited().value();
    std::cout << "inherited: " << sockets.at(0).name() << '\n';
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_fd(sockets[0].fd());
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();
    const int client = connect_to(server.address().value());
    send(client, "hello", 5, 0);
    std::cout << "client: " << read_from(client, 5) << '\n';
    close(client);
    return 0;
}
