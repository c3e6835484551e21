// Sockets that systemd has opened for the program. Here the program stands for systemd, too.
//
// feature: server/inherited

#include "../peer.h"
#include <cstddef>
#include <cstdlib>
#include <paceline/net.hpp>
#include <string>
#include <string_view>

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
    CHECK(bind(listener, reinterpret_cast<const sockaddr *>(&any), sizeof any) == 0);
    CHECK(listen(listener, 8) == 0 && dup2(listener, 3) == 3);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "echo", 1);
}

int main() {
    stand_for_systemd();
    const auto sockets = paceline::inherited().value();
    CHECK(sockets.size() == 1 && sockets[0].name() == "echo");
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_fd(sockets[0].fd());
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();
    const int peer = peer_connect(server.address().value().c_str());
    peer_send(peer, "hello");
    CHECK(peer_read(peer, 5) == std::string_view("hello"));
    close(peer);
    return 0;
}
