// Limits of a listener: connections at once, with a message for those that are refused, and time without a byte.
//
// feature: server/limits

#include "../peer.h"
#include <chrono>
#include <cstddef>
#include <paceline/net.hpp>
#include <string_view>

using namespace std::chrono_literals;

struct Echo : paceline::ConnHandler {
    std::size_t data(paceline::Conn &conn, std::string_view bytes) override {
        conn.write(bytes).value();
        return bytes.size();
    }
};

int main() {
    const auto pool = paceline::Pool::create().value();
    auto listen = paceline::Listen().set_address("127.0.0.1:0");
    listen.set_max_connections(1).set_refusal("too many\n").set_idle_timeout(200ms);
    const auto config = paceline::ServerConfig().add_listener(listen);
    const auto server = paceline::Server::create_for<Echo>(pool, config).value();
    const auto address = server.address().value();

    const int first = peer_connect(address.c_str());
    peer_send(first, "hello");
    CHECK(peer_read(first, 5) == std::string_view("hello"));
    const int second = peer_connect(address.c_str());
    CHECK(peer_read_all(second) == std::string_view("too many\n")); // and the end
    CHECK(peer_read_all(first) == std::string_view());              // it says nothing, and is closed
    server.drain(paceline::forever).value();
    const auto stats = server.stats().value();
    CHECK(stats.turned_away == 1 && stats.closed_timed_out == 1 && stats.balances);
    close(first), close(second);
    return 0;
}
