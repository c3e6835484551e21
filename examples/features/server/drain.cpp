// A graceful end: no new connections, what has arrived is answered, and connections hear of it. What remains is cut off.
//
// feature: server/drain

#include "../peer.h"
#include <chrono>
#include <cstddef>
#include <paceline/net.hpp>
#include <string_view>

using paceline::Conn;

struct Echo : paceline::ConnHandler {
    std::size_t data(Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
    void draining(Conn &conn) override { conn.write("bye\n").value(); }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    const auto listen = paceline::Listen().set_address("127.0.0.1:0");
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();
    const int peer = peer_connect(server.address().value().c_str());
    peer_send(peer, "hello");
    CHECK(peer_read(peer, 5) == std::string_view("hello"));
    const auto report = server.drain(std::chrono::minutes(1)).value();
    CHECK(report.drained && report.cut_off == 0);
    CHECK(peer_read_all(peer) == std::string_view("bye\n"));
    close(peer);
    return 0;
}
